//! The SQLSTATEs of this server, by PostgreSQL's condition names, in the order of the codes.

use std::fmt;

/// A SQLSTATE: five characters, the first two of which name its class.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SqlState(pub &'static str);

impl SqlState {
    /// `successful_completion`
    pub const SUCCESSFUL_COMPLETION: SqlState = SqlState("00000");
    /// `warning`
    pub const WARNING: SqlState = SqlState("01000");
    /// The outcome of a commit is not known.
    pub const TRANSACTION_RESOLUTION_UNKNOWN: SqlState = SqlState("08007");
    /// A message that the protocol does not allow.
    pub const PROTOCOL_VIOLATION: SqlState = SqlState("08P01");
    /// A feature of PostgreSQL that Cortado lacks.
    pub const FEATURE_NOT_SUPPORTED: SqlState = SqlState("0A000");
    /// `cardinality_violation`
    pub const CARDINALITY_VIOLATION: SqlState = SqlState("21000");
    /// `data_exception`
    pub const DATA_EXCEPTION: SqlState = SqlState("22000");
    /// `string_data_right_truncation`
    pub const STRING_DATA_RIGHT_TRUNCATION: SqlState = SqlState("22001");
    /// `numeric_value_out_of_range`
    pub const NUMERIC_VALUE_OUT_OF_RANGE: SqlState = SqlState("22003");
    /// `null_value_not_allowed`
    pub const NULL_VALUE_NOT_ALLOWED: SqlState = SqlState("22004");
    /// `invalid_datetime_format`
    pub const INVALID_DATETIME_FORMAT: SqlState = SqlState("22007");
    /// `datetime_field_overflow`
    pub const DATETIME_FIELD_OVERFLOW: SqlState = SqlState("22008");
    /// `invalid_time_zone_displacement_value`
    pub const INVALID_TIME_ZONE_DISPLACEMENT: SqlState = SqlState("22009");
    /// `invalid_use_of_escape_character`
    pub const INVALID_USE_OF_ESCAPE_CHARACTER: SqlState = SqlState("2200C");
    /// `substring_error`
    pub const SUBSTRING_ERROR: SqlState = SqlState("22011");
    /// `division_by_zero`
    pub const DIVISION_BY_ZERO: SqlState = SqlState("22012");
    /// `invalid_preceding_or_following_size`
    pub const INVALID_PRECEDING_OR_FOLLOWING_SIZE: SqlState = SqlState("22013");
    /// `invalid_argument_for_ntile_function`
    pub const INVALID_ARGUMENT_FOR_NTILE: SqlState = SqlState("22014");
    /// `interval_field_overflow`
    pub const INTERVAL_FIELD_OVERFLOW: SqlState = SqlState("22015");
    /// `invalid_argument_for_nth_value_function`
    pub const INVALID_ARGUMENT_FOR_NTH_VALUE: SqlState = SqlState("22016");
    /// `invalid_regular_expression`
    pub const INVALID_REGULAR_EXPRESSION: SqlState = SqlState("2201B");
    /// `invalid_argument_for_logarithm`
    pub const INVALID_LOGARITHM: SqlState = SqlState("2201E");
    /// `invalid_argument_for_power_function`
    pub const INVALID_POWER: SqlState = SqlState("2201F");
    /// `invalid_argument_for_width_bucket_function`
    pub const INVALID_WIDTH_BUCKET: SqlState = SqlState("2201G");
    /// `invalid_row_count_in_limit_clause`
    pub const INVALID_LIMIT: SqlState = SqlState("2201W");
    /// `invalid_row_count_in_result_offset_clause`
    pub const INVALID_OFFSET: SqlState = SqlState("2201X");
    /// Bytes that are not text in the client's encoding.
    pub const CHARACTER_NOT_IN_REPERTOIRE: SqlState = SqlState("22021");
    /// A value that the parameter or function does not accept.
    pub const INVALID_PARAMETER_VALUE: SqlState = SqlState("22023");
    /// `invalid_escape_sequence` of a LIKE pattern
    pub const INVALID_ESCAPE_SEQUENCE: SqlState = SqlState("22025");
    /// `sequence_generator_limit_exceeded`
    pub const SEQUENCE_GENERATOR_LIMIT_EXCEEDED: SqlState = SqlState("2200H");
    /// `array_subscript_error`
    pub const ARRAY_SUBSCRIPT_ERROR: SqlState = SqlState("2202E");
    /// `invalid_text_representation`
    pub const INVALID_TEXT_REPRESENTATION: SqlState = SqlState("22P02");
    /// `invalid_binary_representation`
    pub const INVALID_BINARY_REPRESENTATION: SqlState = SqlState("22P03");
    /// `bad_copy_file_format`
    pub const BAD_COPY_FILE_FORMAT: SqlState = SqlState("22P04");
    /// `untranslatable_character`
    pub const UNTRANSLATABLE_CHARACTER: SqlState = SqlState("22P05");
    /// `not_null_violation`
    pub const NOT_NULL_VIOLATION: SqlState = SqlState("23502");
    /// `unique_violation`
    pub const UNIQUE_VIOLATION: SqlState = SqlState("23505");
    /// A statement that is not allowed in a transaction, or a mode set too late.
    pub const ACTIVE_SQL_TRANSACTION: SqlState = SqlState("25001");
    /// A write in a read-only transaction.
    pub const READ_ONLY_SQL_TRANSACTION: SqlState = SqlState("25006");
    /// No transaction is open.
    pub const NO_ACTIVE_SQL_TRANSACTION: SqlState = SqlState("25P01");
    /// The transaction has failed. Only COMMIT, ROLLBACK and ROLLBACK TO are accepted.
    pub const IN_FAILED_SQL_TRANSACTION: SqlState = SqlState("25P02");
    /// The idle-in-transaction timeout.
    pub const IDLE_IN_TRANSACTION_SESSION_TIMEOUT: SqlState = SqlState("25P03");
    /// No prepared statement has this name.
    pub const INVALID_SQL_STATEMENT_NAME: SqlState = SqlState("26000");
    /// The startup packet names no user.
    pub const INVALID_AUTHORIZATION_SPECIFICATION: SqlState = SqlState("28000");
    /// No portal has this name.
    pub const INVALID_CURSOR_NAME: SqlState = SqlState("34000");
    /// `invalid_name`
    pub const INVALID_NAME: SqlState = SqlState("42602");
    /// No savepoint has this name.
    pub const INVALID_SAVEPOINT: SqlState = SqlState("3B001");
    /// A schema of that name exists.
    pub const DUPLICATE_SCHEMA: SqlState = SqlState("42P06");
    /// A database of that name exists.
    pub const DUPLICATE_DATABASE: SqlState = SqlState("42P04");
    /// `generated_always`
    pub const GENERATED_ALWAYS: SqlState = SqlState("428C9");
    /// The name is reserved.
    pub const RESERVED_NAME: SqlState = SqlState("42939");
    /// No database has this name.
    pub const INVALID_CATALOG_NAME: SqlState = SqlState("3D000");
    /// `invalid_schema_name`
    pub const INVALID_SCHEMA_NAME: SqlState = SqlState("3F000");
    /// A conflict with another transaction. The whole transaction can be retried.
    pub const SERIALIZATION_FAILURE: SqlState = SqlState("40001");
    /// A transaction waits for one that waits for it.
    pub const DEADLOCK_DETECTED: SqlState = SqlState("40P01");
    /// The statement cannot be parsed.
    pub const SYNTAX_ERROR: SqlState = SqlState("42601");
    /// `name_too_long`
    pub const NAME_TOO_LONG: SqlState = SqlState("42622");
    /// `duplicate_alias`
    pub const DUPLICATE_ALIAS: SqlState = SqlState("42712");
    /// `duplicate_column`
    pub const DUPLICATE_COLUMN: SqlState = SqlState("42701");
    /// `ambiguous_column`
    pub const AMBIGUOUS_COLUMN: SqlState = SqlState("42702");
    /// `undefined_column`
    pub const UNDEFINED_COLUMN: SqlState = SqlState("42703");
    /// No parameter, type or other object has this name.
    pub const UNDEFINED_OBJECT: SqlState = SqlState("42704");
    /// `ambiguous_function`, operators included
    pub const AMBIGUOUS_FUNCTION: SqlState = SqlState("42725");
    /// `ambiguous_parameter`
    pub const AMBIGUOUS_PARAMETER: SqlState = SqlState("42P08");
    /// `grouping_error`
    pub const GROUPING_ERROR: SqlState = SqlState("42803");
    /// `datatype_mismatch`
    pub const DATATYPE_MISMATCH: SqlState = SqlState("42804");
    /// `wrong_object_type`
    pub const WRONG_OBJECT_TYPE: SqlState = SqlState("42809");
    /// `cannot_coerce`
    pub const CANNOT_COERCE: SqlState = SqlState("42846");
    /// `undefined_function`, operators included
    pub const UNDEFINED_FUNCTION: SqlState = SqlState("42883");
    /// `undefined_table`
    pub const UNDEFINED_TABLE: SqlState = SqlState("42P01");
    /// `check_violation`
    pub const CHECK_VIOLATION: SqlState = SqlState("23514");
    /// `foreign_key_violation`
    pub const FOREIGN_KEY_VIOLATION: SqlState = SqlState("23503");
    /// `invalid_foreign_key`
    pub const INVALID_FOREIGN_KEY: SqlState = SqlState("42830");
    /// `duplicate_object`
    pub const DUPLICATE_OBJECT: SqlState = SqlState("42710");
    /// `dependent_objects_still_exist`
    pub const DEPENDENT_OBJECTS_STILL_EXIST: SqlState = SqlState("2BP01");
    /// `invalid_cursor_definition`
    pub const INVALID_CURSOR_DEFINITION: SqlState = SqlState("42P11");
    /// `undefined_parameter`
    pub const UNDEFINED_PARAMETER: SqlState = SqlState("42P02");
    /// A portal of this name exists.
    pub const DUPLICATE_CURSOR: SqlState = SqlState("42P03");
    /// A prepared statement of this name exists.
    pub const DUPLICATE_PREPARED_STATEMENT: SqlState = SqlState("42P05");
    /// `duplicate_table`
    pub const DUPLICATE_TABLE: SqlState = SqlState("42P07");
    /// `invalid_column_reference`
    pub const INVALID_COLUMN_REFERENCE: SqlState = SqlState("42P10");
    /// `invalid_table_definition`
    pub const INVALID_TABLE_DEFINITION: SqlState = SqlState("42P16");
    /// `invalid_object_definition`
    pub const INVALID_OBJECT_DEFINITION: SqlState = SqlState("42P17");
    /// `indeterminate_datatype`
    pub const INDETERMINATE_DATATYPE: SqlState = SqlState("42P18");
    /// `invalid_recursion`
    pub const INVALID_RECURSION: SqlState = SqlState("42P19");
    /// 42501
    pub const INSUFFICIENT_PRIVILEGE: SqlState = SqlState("42501");
    /// `windowing_error`
    pub const WINDOWING_ERROR: SqlState = SqlState("42P20");
    /// The cluster has no room for a statement: others come first.
    pub const INSUFFICIENT_RESOURCES: SqlState = SqlState("53000");
    /// `out_of_memory`
    pub const OUT_OF_MEMORY: SqlState = SqlState("53200");
    /// The connection limit is reached.
    pub const TOO_MANY_CONNECTIONS: SqlState = SqlState("53300");
    /// A limit on a session's objects.
    pub const CONFIGURATION_LIMIT_EXCEEDED: SqlState = SqlState("53400");
    /// A limit on the size of a statement or transaction.
    pub const PROGRAM_LIMIT_EXCEEDED: SqlState = SqlState("54000");
    /// `statement_too_complex`
    pub const STATEMENT_TOO_COMPLEX: SqlState = SqlState("54001");
    /// Too many result columns.
    pub const TOO_MANY_COLUMNS: SqlState = SqlState("54011");
    /// An object in the wrong state.
    pub const OBJECT_NOT_IN_PREREQUISITE_STATE: SqlState = SqlState("55000");
    /// A cursor of the session uses the object.
    pub const OBJECT_IN_USE: SqlState = SqlState("55006");
    /// A parameter that cannot be changed.
    pub const CANT_CHANGE_RUNTIME_PARAM: SqlState = SqlState("55P02");
    /// `lock_not_available`
    pub const LOCK_NOT_AVAILABLE: SqlState = SqlState("55P03");
    /// A cancel request or the statement timeout.
    pub const QUERY_CANCELED: SqlState = SqlState("57014");
    /// The server is shutting down.
    pub const ADMIN_SHUTDOWN: SqlState = SqlState("57P01");
    /// The cluster cannot serve now.
    pub const CANNOT_CONNECT_NOW: SqlState = SqlState("57P03");
    /// The idle-session timeout.
    pub const IDLE_SESSION_TIMEOUT: SqlState = SqlState("57P05");
    /// `snapshot_too_old`
    pub const SNAPSHOT_TOO_OLD: SqlState = SqlState("72000");
    /// A defect of the server.
    pub const INTERNAL_ERROR: SqlState = SqlState("XX000");
    /// `data_corrupted`
    pub const DATA_CORRUPTED: SqlState = SqlState("XX001");

    /// The first two characters.
    pub fn class(self) -> &'static str {
        self.0.get(..2).unwrap_or(self.0)
    }
}

impl fmt::Debug for SqlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

//! The SQLSTATEs that types, binder and executor raise, by PostgreSQL's condition names.

use crate::error::SqlState;

/// `feature_not_supported`
pub const FEATURE_NOT_SUPPORTED: SqlState = SqlState("0A000");
/// `protocol_violation`
pub const PROTOCOL_VIOLATION: SqlState = SqlState("08P01");
/// `string_data_right_truncation`
pub const STRING_DATA_RIGHT_TRUNCATION: SqlState = SqlState("22001");
/// `numeric_value_out_of_range`
pub const NUMERIC_VALUE_OUT_OF_RANGE: SqlState = SqlState("22003");
/// `invalid_datetime_format`
pub const INVALID_DATETIME_FORMAT: SqlState = SqlState("22007");
/// `datetime_field_overflow`
pub const DATETIME_FIELD_OVERFLOW: SqlState = SqlState("22008");
/// `invalid_time_zone_displacement_value`
pub const INVALID_TIME_ZONE_DISPLACEMENT: SqlState = SqlState("22009");
/// `substring_error`
pub const SUBSTRING_ERROR: SqlState = SqlState("22011");
/// `division_by_zero`
pub const DIVISION_BY_ZERO: SqlState = SqlState("22012");
/// `invalid_escape_sequence` of a LIKE pattern
pub const INVALID_ESCAPE_SEQUENCE: SqlState = SqlState("22025");
/// `character_not_in_repertoire`
pub const CHARACTER_NOT_IN_REPERTOIRE: SqlState = SqlState("22021");
/// `invalid_parameter_value`
pub const INVALID_PARAMETER_VALUE: SqlState = SqlState("22023");
/// `invalid_row_count_in_limit_clause`
pub const INVALID_LIMIT: SqlState = SqlState("2201W");
/// `invalid_row_count_in_result_offset_clause`
pub const INVALID_OFFSET: SqlState = SqlState("2201X");
/// `invalid_argument_for_logarithm`
pub const INVALID_LOGARITHM: SqlState = SqlState("2201E");
/// `invalid_argument_for_power_function`
pub const INVALID_POWER: SqlState = SqlState("2201F");
/// `invalid_text_representation`
pub const INVALID_TEXT_REPRESENTATION: SqlState = SqlState("22P02");
/// `invalid_binary_representation`
pub const INVALID_BINARY_REPRESENTATION: SqlState = SqlState("22P03");
/// `not_null_violation`
pub const NOT_NULL_VIOLATION: SqlState = SqlState("23502");
/// `unique_violation`
pub const UNIQUE_VIOLATION: SqlState = SqlState("23505");
/// `cardinality_violation`
pub const CARDINALITY_VIOLATION: SqlState = SqlState("21000");
/// `invalid_schema_name`
pub const INVALID_SCHEMA_NAME: SqlState = SqlState("3F000");
/// `syntax_error`
pub const SYNTAX_ERROR: SqlState = SqlState("42601");
/// `invalid_column_reference`
pub const INVALID_COLUMN_REFERENCE: SqlState = SqlState("42P10");
/// `duplicate_column`
pub const DUPLICATE_COLUMN: SqlState = SqlState("42701");
/// `ambiguous_column`
pub const AMBIGUOUS_COLUMN: SqlState = SqlState("42702");
/// `undefined_column`
pub const UNDEFINED_COLUMN: SqlState = SqlState("42703");
/// `undefined_object`
pub const UNDEFINED_OBJECT: SqlState = SqlState("42704");
/// `duplicate_alias`
pub const DUPLICATE_ALIAS: SqlState = SqlState("42712");
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
/// `ambiguous_function`, operators included
pub const AMBIGUOUS_FUNCTION: SqlState = SqlState("42725");
/// `undefined_table`
pub const UNDEFINED_TABLE: SqlState = SqlState("42P01");
/// `undefined_parameter`
pub const UNDEFINED_PARAMETER: SqlState = SqlState("42P02");
/// `duplicate_table`
pub const DUPLICATE_TABLE: SqlState = SqlState("42P07");
/// `ambiguous_parameter`
pub const AMBIGUOUS_PARAMETER: SqlState = SqlState("42P08");
/// `invalid_table_definition`
pub const INVALID_TABLE_DEFINITION: SqlState = SqlState("42P16");
/// `indeterminate_datatype`
pub const INDETERMINATE_DATATYPE: SqlState = SqlState("42P18");
/// `out_of_memory`
pub const OUT_OF_MEMORY: SqlState = SqlState("53200");
/// `program_limit_exceeded`
pub const PROGRAM_LIMIT_EXCEEDED: SqlState = SqlState("54000");
/// `statement_too_complex`
pub const STATEMENT_TOO_COMPLEX: SqlState = SqlState("54001");
/// `too_many_columns`
pub const TOO_MANY_COLUMNS: SqlState = SqlState("54011");
/// `serialization_failure`
pub const SERIALIZATION_FAILURE: SqlState = SqlState("40001");
/// `transaction_resolution_unknown`
pub const RESOLUTION_UNKNOWN: SqlState = SqlState("08007");
/// `cannot_connect_now`
pub const CANNOT_CONNECT_NOW: SqlState = SqlState("57P03");
/// `internal_error`: a defect of ours
pub const INTERNAL_ERROR: SqlState = SqlState("XX000");
/// `data_corrupted`
pub const DATA_CORRUPTED: SqlState = SqlState("XX001");

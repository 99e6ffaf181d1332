//! Functions of the system catalog: what an object is called, how it is defined, who may use it. The front end, which
//! has the catalog, computes them.

use super::row::{ProcRow, scalar, session};
use crate::datum::Datum;
use crate::error::ValueError;
use crate::functions::args::Args;
use crate::oid::Oid;
use crate::sql_type::SqlType as T;

const fn of(oid: u32) -> T {
    T { oid: Oid(oid), typmod: -1 }
}

/// Sorted by OID.
pub(super) static ROWS: &[ProcRow] = &[
    session(1039, "getdatabaseencoding", &[], T::NAME),
    session(1081, "format_type", &[T::OID, T::INT4], T::TEXT).on_null(),
    session(1215, "obj_description", &[T::OID, T::NAME], T::TEXT),
    session(1216, "col_description", &[T::OID, T::INT4], T::TEXT),
    session(1264, "pg_char_to_encoding", &[T::NAME], T::INT4),
    session(1348, "obj_description", &[T::OID], T::TEXT),
    session(1387, "pg_get_constraintdef", &[T::OID], T::TEXT),
    session(1403, "current_schemas", &[T::BOOL], T::NAME_ARRAY),
    session(1573, "pg_get_ruledef", &[T::OID], T::TEXT),
    session(1597, "pg_encoding_to_char", &[T::INT4], T::NAME),
    session(1640, "pg_get_viewdef", &[T::TEXT], T::TEXT),
    session(1641, "pg_get_viewdef", &[T::OID], T::TEXT),
    session(1642, "pg_get_userbyid", &[T::OID], T::NAME),
    session(1643, "pg_get_indexdef", &[T::OID], T::TEXT),
    session(1662, "pg_get_triggerdef", &[T::OID], T::TEXT),
    session(1665, "pg_get_serial_sequence", &[T::TEXT, T::TEXT], T::TEXT),
    session(1716, "pg_get_expr", &[T::PG_NODE_TREE, T::OID], T::TEXT),
    session(1922, "has_table_privilege", &[T::NAME, T::TEXT, T::TEXT], T::BOOL),
    session(1923, "has_table_privilege", &[T::NAME, T::OID, T::TEXT], T::BOOL),
    session(1924, "has_table_privilege", &[T::OID, T::TEXT, T::TEXT], T::BOOL),
    session(1925, "has_table_privilege", &[T::OID, T::OID, T::TEXT], T::BOOL),
    session(1926, "has_table_privilege", &[T::TEXT, T::TEXT], T::BOOL),
    session(1927, "has_table_privilege", &[T::OID, T::TEXT], T::BOOL),
    session(1993, "shobj_description", &[T::OID, T::NAME], T::TEXT),
    session(2034, "pg_conf_load_time", &[], T::TIMESTAMPTZ),
    session(2079, "pg_table_is_visible", &[T::OID], T::BOOL),
    session(2080, "pg_type_is_visible", &[T::OID], T::BOOL),
    session(2081, "pg_function_is_visible", &[T::OID], T::BOOL),
    session(2082, "pg_operator_is_visible", &[T::OID], T::BOOL),
    session(2083, "pg_opclass_is_visible", &[T::OID], T::BOOL),
    session(2084, "pg_show_all_settings", &[], T::RECORD).of_session_set().columns(&[
        ("name", T::TEXT),
        ("setting", T::TEXT),
        ("unit", T::TEXT),
        ("category", T::TEXT),
        ("short_desc", T::TEXT),
        ("extra_desc", T::TEXT),
        ("context", T::TEXT),
        ("vartype", T::TEXT),
        ("source", T::TEXT),
        ("min_val", T::TEXT),
        ("max_val", T::TEXT),
        ("enumvals", T::TEXT_ARRAY),
        ("boot_val", T::TEXT),
        ("reset_val", T::TEXT),
        ("sourcefile", T::TEXT),
        ("sourceline", T::INT4),
        ("pending_restart", T::BOOL),
    ]),
    session(2093, "pg_conversion_is_visible", &[T::OID], T::BOOL),
    session(2098, "pg_get_functiondef", &[T::OID], T::TEXT),
    session(2162, "pg_get_function_arguments", &[T::OID], T::TEXT),
    session(2165, "pg_get_function_result", &[T::OID], T::TEXT),
    session(2168, "pg_database_size", &[T::NAME], T::INT8).volatile(),
    session(2181, "has_sequence_privilege", &[T::NAME, T::TEXT, T::TEXT], T::BOOL),
    session(2182, "has_sequence_privilege", &[T::NAME, T::OID, T::TEXT], T::BOOL),
    session(2183, "has_sequence_privilege", &[T::OID, T::TEXT, T::TEXT], T::BOOL),
    session(2184, "has_sequence_privilege", &[T::OID, T::OID, T::TEXT], T::BOOL),
    session(2185, "has_sequence_privilege", &[T::TEXT, T::TEXT], T::BOOL),
    session(2186, "has_sequence_privilege", &[T::OID, T::TEXT], T::BOOL),
    session(2197, "inet_client_port", &[], T::INT4).on_null(),
    session(2199, "inet_server_port", &[], T::INT4).on_null(),
    session(2232, "pg_get_function_identity_arguments", &[T::OID], T::TEXT),
    session(2250, "has_database_privilege", &[T::NAME, T::TEXT, T::TEXT], T::BOOL),
    session(2251, "has_database_privilege", &[T::NAME, T::OID, T::TEXT], T::BOOL),
    session(2252, "has_database_privilege", &[T::OID, T::TEXT, T::TEXT], T::BOOL),
    session(2253, "has_database_privilege", &[T::OID, T::OID, T::TEXT], T::BOOL),
    session(2254, "has_database_privilege", &[T::TEXT, T::TEXT], T::BOOL),
    session(2255, "has_database_privilege", &[T::OID, T::TEXT], T::BOOL),
    session(2256, "has_function_privilege", &[T::NAME, T::TEXT, T::TEXT], T::BOOL),
    session(2257, "has_function_privilege", &[T::NAME, T::OID, T::TEXT], T::BOOL),
    session(2258, "has_function_privilege", &[T::OID, T::TEXT, T::TEXT], T::BOOL),
    session(2259, "has_function_privilege", &[T::OID, T::OID, T::TEXT], T::BOOL),
    session(2260, "has_function_privilege", &[T::TEXT, T::TEXT], T::BOOL),
    session(2261, "has_function_privilege", &[T::OID, T::TEXT], T::BOOL),
    session(2262, "has_language_privilege", &[T::NAME, T::TEXT, T::TEXT], T::BOOL),
    session(2263, "has_language_privilege", &[T::NAME, T::OID, T::TEXT], T::BOOL),
    session(2264, "has_language_privilege", &[T::OID, T::TEXT, T::TEXT], T::BOOL),
    session(2265, "has_language_privilege", &[T::OID, T::OID, T::TEXT], T::BOOL),
    session(2266, "has_language_privilege", &[T::TEXT, T::TEXT], T::BOOL),
    session(2267, "has_language_privilege", &[T::OID, T::TEXT], T::BOOL),
    session(2268, "has_schema_privilege", &[T::NAME, T::TEXT, T::TEXT], T::BOOL),
    session(2269, "has_schema_privilege", &[T::NAME, T::OID, T::TEXT], T::BOOL),
    session(2270, "has_schema_privilege", &[T::OID, T::TEXT, T::TEXT], T::BOOL),
    session(2271, "has_schema_privilege", &[T::OID, T::OID, T::TEXT], T::BOOL),
    session(2272, "has_schema_privilege", &[T::TEXT, T::TEXT], T::BOOL),
    session(2273, "has_schema_privilege", &[T::OID, T::TEXT], T::BOOL),
    session(2286, "pg_total_relation_size", &[T::REGCLASS], T::INT8).volatile(),
    session(2289, "pg_options_to_table", &[T::TEXT_ARRAY], T::RECORD)
        .of_session_set()
        .named(&["options_array"])
        .columns(&[("option_name", T::TEXT), ("option_value", T::TEXT)]),
    session(2322, "pg_tablespace_size", &[T::OID], T::INT8).volatile(),
    session(2323, "pg_tablespace_size", &[T::NAME], T::INT8).volatile(),
    session(2324, "pg_database_size", &[T::OID], T::INT8).volatile(),
    session(2325, "pg_relation_size", &[T::REGCLASS], T::INT8).volatile(),
    session(2332, "pg_relation_size", &[T::REGCLASS, T::TEXT], T::INT8).volatile(),
    session(2390, "has_tablespace_privilege", &[T::NAME, T::TEXT, T::TEXT], T::BOOL),
    session(2391, "has_tablespace_privilege", &[T::NAME, T::OID, T::TEXT], T::BOOL),
    session(2392, "has_tablespace_privilege", &[T::OID, T::TEXT, T::TEXT], T::BOOL),
    session(2393, "has_tablespace_privilege", &[T::OID, T::OID, T::TEXT], T::BOOL),
    session(2394, "has_tablespace_privilege", &[T::TEXT, T::TEXT], T::BOOL),
    session(2395, "has_tablespace_privilege", &[T::OID, T::TEXT], T::BOOL),
    session(2504, "pg_get_ruledef", &[T::OID, T::BOOL], T::TEXT),
    session(2505, "pg_get_viewdef", &[T::TEXT, T::BOOL], T::TEXT),
    session(2506, "pg_get_viewdef", &[T::OID, T::BOOL], T::TEXT),
    session(2507, "pg_get_indexdef", &[T::OID, T::INT4, T::BOOL], T::TEXT),
    session(2508, "pg_get_constraintdef", &[T::OID, T::BOOL], T::TEXT),
    session(2509, "pg_get_expr", &[T::PG_NODE_TREE, T::OID, T::BOOL], T::TEXT),
    session(2510, "pg_prepared_statement", &[], T::RECORD).of_session_set().columns(&[
        ("name", T::TEXT),
        ("statement", T::TEXT),
        ("prepare_time", T::TIMESTAMPTZ),
        ("parameter_types", of(2211)),
        ("from_sql", T::BOOL),
        ("generic_plans", T::INT8),
        ("custom_plans", T::INT8),
    ]),
    session(2560, "pg_postmaster_start_time", &[], T::TIMESTAMPTZ),
    session(2599, "pg_timezone_abbrevs", &[], T::RECORD).of_session_set().columns(&[
        ("abbrev", T::TEXT),
        ("utc_offset", T::INTERVAL),
        ("is_dst", T::BOOL),
    ]),
    session(2705, "pg_has_role", &[T::NAME, T::NAME, T::TEXT], T::BOOL),
    session(2706, "pg_has_role", &[T::NAME, T::OID, T::TEXT], T::BOOL),
    session(2707, "pg_has_role", &[T::OID, T::NAME, T::TEXT], T::BOOL),
    session(2708, "pg_has_role", &[T::OID, T::OID, T::TEXT], T::BOOL),
    session(2709, "pg_has_role", &[T::NAME, T::TEXT], T::BOOL),
    session(2710, "pg_has_role", &[T::OID, T::TEXT], T::BOOL),
    session(2730, "pg_get_triggerdef", &[T::OID, T::BOOL], T::TEXT),
    session(2854, "pg_my_temp_schema", &[], T::OID),
    session(2855, "pg_is_other_temp_schema", &[T::OID], T::BOOL),
    session(2856, "pg_timezone_names", &[], T::RECORD).of_session_set().columns(&[
        ("name", T::TEXT),
        ("abbrev", T::TEXT),
        ("utc_offset", T::INTERVAL),
        ("is_dst", T::BOOL),
    ]),
    session(2943, "txid_current", &[], T::INT8),
    session(2997, "pg_table_size", &[T::REGCLASS], T::INT8).volatile(),
    session(2998, "pg_indexes_size", &[T::REGCLASS], T::INT8).volatile(),
    session(3000, "has_foreign_data_wrapper_privilege", &[T::NAME, T::TEXT, T::TEXT], T::BOOL),
    session(3001, "has_foreign_data_wrapper_privilege", &[T::NAME, T::OID, T::TEXT], T::BOOL),
    session(3002, "has_foreign_data_wrapper_privilege", &[T::OID, T::TEXT, T::TEXT], T::BOOL),
    session(3003, "has_foreign_data_wrapper_privilege", &[T::OID, T::OID, T::TEXT], T::BOOL),
    session(3004, "has_foreign_data_wrapper_privilege", &[T::TEXT, T::TEXT], T::BOOL),
    session(3005, "has_foreign_data_wrapper_privilege", &[T::OID, T::TEXT], T::BOOL),
    session(3006, "has_server_privilege", &[T::NAME, T::TEXT, T::TEXT], T::BOOL),
    session(3007, "has_server_privilege", &[T::NAME, T::OID, T::TEXT], T::BOOL),
    session(3008, "has_server_privilege", &[T::OID, T::TEXT, T::TEXT], T::BOOL),
    session(3009, "has_server_privilege", &[T::OID, T::OID, T::TEXT], T::BOOL),
    session(3010, "has_server_privilege", &[T::TEXT, T::TEXT], T::BOOL),
    session(3011, "has_server_privilege", &[T::OID, T::TEXT], T::BOOL),
    session(3012, "has_column_privilege", &[T::NAME, T::TEXT, T::TEXT, T::TEXT], T::BOOL),
    session(3013, "has_column_privilege", &[T::NAME, T::TEXT, T::INT2, T::TEXT], T::BOOL),
    session(3014, "has_column_privilege", &[T::NAME, T::OID, T::TEXT, T::TEXT], T::BOOL),
    session(3015, "has_column_privilege", &[T::NAME, T::OID, T::INT2, T::TEXT], T::BOOL),
    session(3016, "has_column_privilege", &[T::OID, T::TEXT, T::TEXT, T::TEXT], T::BOOL),
    session(3017, "has_column_privilege", &[T::OID, T::TEXT, T::INT2, T::TEXT], T::BOOL),
    session(3018, "has_column_privilege", &[T::OID, T::OID, T::TEXT, T::TEXT], T::BOOL),
    session(3019, "has_column_privilege", &[T::OID, T::OID, T::INT2, T::TEXT], T::BOOL),
    session(3020, "has_column_privilege", &[T::TEXT, T::TEXT, T::TEXT], T::BOOL),
    session(3021, "has_column_privilege", &[T::TEXT, T::INT2, T::TEXT], T::BOOL),
    session(3022, "has_column_privilege", &[T::OID, T::TEXT, T::TEXT], T::BOOL),
    session(3023, "has_column_privilege", &[T::OID, T::INT2, T::TEXT], T::BOOL),
    session(3024, "has_any_column_privilege", &[T::NAME, T::TEXT, T::TEXT], T::BOOL),
    session(3025, "has_any_column_privilege", &[T::NAME, T::OID, T::TEXT], T::BOOL),
    session(3026, "has_any_column_privilege", &[T::OID, T::TEXT, T::TEXT], T::BOOL),
    session(3027, "has_any_column_privilege", &[T::OID, T::OID, T::TEXT], T::BOOL),
    session(3028, "has_any_column_privilege", &[T::TEXT, T::TEXT], T::BOOL),
    session(3029, "has_any_column_privilege", &[T::OID, T::TEXT], T::BOOL),
    session(3138, "has_type_privilege", &[T::NAME, T::TEXT, T::TEXT], T::BOOL),
    session(3139, "has_type_privilege", &[T::NAME, T::OID, T::TEXT], T::BOOL),
    session(3140, "has_type_privilege", &[T::OID, T::TEXT, T::TEXT], T::BOOL),
    session(3141, "has_type_privilege", &[T::OID, T::OID, T::TEXT], T::BOOL),
    session(3142, "has_type_privilege", &[T::TEXT, T::TEXT], T::BOOL),
    session(3143, "has_type_privilege", &[T::OID, T::TEXT], T::BOOL),
    session(3159, "pg_get_viewdef", &[T::OID, T::INT4], T::TEXT),
    session(3298, "row_security_active", &[T::OID], T::BOOL),
    session(3299, "row_security_active", &[T::TEXT], T::BOOL),
    session(3348, "txid_current_if_assigned", &[], T::INT8),
    session(3352, "pg_get_partkeydef", &[T::OID], T::TEXT),
    session(3376, "pg_safe_snapshot_blocking_pids", &[T::INT4], T::INT4_ARRAY).volatile(),
    session(3403, "pg_statistics_obj_is_visible", &[T::OID], T::BOOL),
    session(3408, "pg_get_partition_constraintdef", &[T::OID], T::TEXT),
    session(3415, "pg_get_statisticsobjdef", &[T::OID], T::TEXT),
    session(3424, "pg_partition_root", &[T::REGCLASS], T::REGCLASS).immutable(),
    session(3425, "pg_partition_ancestors", &[T::REGCLASS], T::REGCLASS)
        .of_session_set()
        .volatile()
        .named(&["partitionid"])
        .columns(&[("relid", T::REGCLASS)]),
    session(3476, "to_regoperator", &[T::TEXT], T::REGOPERATOR),
    session(3479, "to_regprocedure", &[T::TEXT], T::REGPROCEDURE),
    session(3492, "to_regoper", &[T::TEXT], T::REGOPER),
    session(3493, "to_regtype", &[T::TEXT], T::REGTYPE),
    session(3494, "to_regproc", &[T::TEXT], T::REGPROC),
    session(3495, "to_regclass", &[T::TEXT], T::REGCLASS),
    session(3778, "pg_tablespace_location", &[T::OID], T::TEXT),
    session(3756, "pg_ts_parser_is_visible", &[T::OID], T::BOOL),
    session(3757, "pg_ts_dict_is_visible", &[T::OID], T::BOOL),
    session(3758, "pg_ts_config_is_visible", &[T::OID], T::BOOL),
    session(3768, "pg_ts_template_is_visible", &[T::OID], T::BOOL),
    session(3810, "pg_is_in_recovery", &[], T::BOOL).volatile(),
    session(3815, "pg_collation_is_visible", &[T::OID], T::BOOL),
    session(3829, "pg_opfamily_is_visible", &[T::OID], T::BOOL),
    session(4086, "to_regnamespace", &[T::TEXT], T::REGNAMESPACE),
    session(4093, "to_regrole", &[T::TEXT], T::REGROLE),
    session(4195, "to_regcollation", &[T::TEXT], T::REGCOLLATION),
    session(5059, "pg_current_xact_id", &[], T::XID8),
    session(5060, "pg_current_xact_id_if_assigned", &[], T::XID8),
    session(6120, "pg_get_replica_identity_index", &[T::REGCLASS], T::REGCLASS),
    session(6121, "pg_relation_is_publishable", &[T::REGCLASS], T::BOOL),
    session(6174, "pg_get_statisticsobjdef_columns", &[T::OID], T::TEXT),
    session(6197, "pg_get_function_sqlbody", &[T::OID], T::TEXT),
];

/// What is computed from the arguments alone.
pub(super) static SIZES: &[ProcRow] = &[scalar(2288, "pg_size_pretty", &[T::INT8], T::TEXT, size_pretty)];

/// The units of sizes: their names, the sizes up to which they are used, and the power of two that one is.
const UNITS: [(&str, i64, u32); 6] = [
    ("bytes", 10 * 1024, 0),
    ("kB", 20 * 1024 - 1, 10),
    ("MB", 20 * 1024 - 1, 20),
    ("GB", 20 * 1024 - 1, 30),
    ("TB", 20 * 1024 - 1, 40),
    ("PB", i64::MAX, 50),
];

/// A number of bytes in the unit that leaves it short. All units but the first count in halves, which are rounded.
fn size_pretty(args: &Args<'_>) -> Result<Datum, ValueError> {
    let Datum::Int(mut size) = *args.get(0) else { return Ok(Datum::Null) };
    let mut shift = 0;
    for (unit, limit, bits) in UNITS {
        // A bit is left for the halves.
        let wanted = bits.saturating_sub(1);
        size /= 1_i64 << (wanted - shift);
        shift = wanted;
        if size.unsigned_abs() < limit.unsigned_abs() || bits == 50 {
            let whole = if bits == 0 { size } else { (size + size.signum()) / 2 };
            return Ok(Datum::Text(format!("{whole} {unit}").into()));
        }
    }
    Ok(Datum::Null)
}

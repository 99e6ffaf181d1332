//! The table of the built-in types. A type is a row, and what its functions do is one file in [`crate::forms`].
//!
//! The table is `pg_type` of PostgreSQL 15 as far as it goes: OIDs, names, lengths and categories are the same. Each
//! type that may be an element of an array has an array type, whose row is derived from it.

use crate::datum::Repr;
use crate::forms::{array, boolean, bytea, enums, float, integer, json, numeric, record, reg, string, times, uuid};
use crate::oid::Oid;
use crate::row::{Category, Modifier, TypeIo, TypeRow};

/// A type without a modifier.
const fn row(
    (oid, array): (u32, u32),
    (name, sql_name): (&'static str, &'static str),
    (len, category): (i16, Category),
    (repr, io): (Repr, TypeIo),
) -> TypeRow {
    let (oid, array, element) = (Oid(oid), Oid(array), Oid::NONE);
    TypeRow { oid, name, sql_name, len, category, is_preferred: false, array, element, repr, io, modifier: None }
}

const fn preferred(row: TypeRow) -> TypeRow {
    TypeRow { is_preferred: true, ..row }
}

const fn modified(row: TypeRow, modifier: Modifier) -> TypeRow {
    TypeRow { modifier: Some(modifier), ..row }
}

/// A type whose name is the same everywhere, of values of the kind Int.
const fn int(oids: (u32, u32), name: &'static str, len: i16, category: Category, io: TypeIo) -> TypeRow {
    row(oids, (name, name), (len, category), (Repr::Int, io))
}

/// A type whose values are texts, with the name the same everywhere.
const fn text(oids: (u32, u32), name: &'static str, len: i16, category: Category) -> TypeRow {
    row(oids, (name, name), (len, category), (Repr::Text, string::IO))
}

/// A type of arguments and results only.
const fn pseudo(oid: u32, name: &'static str, len: i16) -> TypeRow {
    row((oid, 0), (name, name), (len, Pseudo), (Repr::None, string::IO))
}

/// A vector of the catalog: an array without a type of arrays of its own kind.
const fn vector(oids: (u32, u32), name: &'static str, element: u32) -> TypeRow {
    TypeRow { element: Oid(element), ..row(oids, (name, name), (-1, Array), (Repr::Array, array::VECTOR_IO)) }
}

/// The row of the array type of a type.
pub(crate) fn array_of(element: &'static TypeRow) -> TypeRow {
    TypeRow {
        oid: element.array,
        // The rows live as long as the program.
        name: Box::leak(format!("_{}", element.name).into_boxed_str()),
        sql_name: Box::leak(format!("{}[]", element.sql_name).into_boxed_str()),
        len: -1,
        category: Array,
        is_preferred: false,
        array: Oid::NONE,
        element: element.oid,
        repr: Repr::Array,
        io: array::IO,
        modifier: element.modifier.map(|_| array::MODIFIER),
    }
}

/// `unknown`
pub(crate) static UNKNOWN_ROW: TypeRow =
    row((705, 0), ("unknown", "unknown"), (-2, Category::Unknown), (Repr::Text, string::IO));
/// All enums.
pub(crate) static ENUM_ROW: TypeRow = row((0, 0), ("enum", "enum"), (4, Category::Enum), (Repr::Int, enums::IO));
/// The arrays of all enums.
pub(crate) static ENUM_ARRAY_ROW: TypeRow =
    row((0, 0), ("_enum", "enum[]"), (-1, Category::Array), (Repr::Array, array::IO));

use Category::{Array, Boolean, DateTime, Internal, Numeric, Pseudo, String, Timespan, User};

/// The types but `unknown` and the arrays. Sorted by OID.
pub(crate) static ROWS: [TypeRow; 66] = [
    preferred(row((16, 1000), ("bool", "boolean"), (1, Boolean), (Repr::Bool, boolean::IO))),
    row((17, 1001), ("bytea", "bytea"), (-1, User), (Repr::Bytes, bytea::IO)),
    row((18, 1002), ("char", "\"char\""), (1, Internal), (Repr::Text, string::CHAR_IO)),
    row((19, 1003), ("name", "name"), (64, String), (Repr::Text, string::NAME_IO)),
    row((20, 1016), ("int8", "bigint"), (8, Numeric), (Repr::Int, integer::INT8_IO)),
    row((21, 1005), ("int2", "smallint"), (2, Numeric), (Repr::Int, integer::INT2_IO)),
    vector((22, 1006), "int2vector", 21),
    row((23, 1007), ("int4", "integer"), (4, Numeric), (Repr::Int, integer::INT4_IO)),
    int((24, 1008), "regproc", 4, Numeric, reg::IO),
    preferred(text((25, 1009), "text", -1, String)),
    preferred(int((26, 1028), "oid", 4, Numeric, integer::OID_IO)),
    text((27, 1010), "tid", 6, User),
    int((28, 1011), "xid", 4, User, integer::OID_IO),
    int((29, 1012), "cid", 4, User, integer::OID_IO),
    vector((30, 1013), "oidvector", 26),
    row((114, 199), ("json", "json"), (-1, User), (Repr::Text, json::JSON_IO)),
    text((194, 0), "pg_node_tree", -1, Internal),
    row((700, 1021), ("float4", "real"), (4, Numeric), (Repr::Float, float::FLOAT4_IO)),
    preferred(row((701, 1022), ("float8", "double precision"), (8, Numeric), (Repr::Float, float::FLOAT8_IO))),
    text((1033, 1034), "aclitem", 12, User),
    modified(
        row((1042, 1014), ("bpchar", "character"), (-1, String), (Repr::Padded, string::PADDED_IO)),
        string::PADDED_MODIFIER,
    ),
    modified(
        row((1043, 1015), ("varchar", "character varying"), (-1, String), (Repr::Text, string::IO)),
        string::VARCHAR_MODIFIER,
    ),
    int((1082, 1182), "date", 4, DateTime, times::DATE_IO),
    modified(
        row((1083, 1183), ("time", "time without time zone"), (8, DateTime), (Repr::Int, times::TIME_IO)),
        times::TIME_MODIFIER,
    ),
    modified(
        row(
            (1114, 1115),
            ("timestamp", "timestamp without time zone"),
            (8, DateTime),
            (Repr::Int, times::TIMESTAMP_IO),
        ),
        times::TIMESTAMP_MODIFIER,
    ),
    preferred(modified(
        row(
            (1184, 1185),
            ("timestamptz", "timestamp with time zone"),
            (8, DateTime),
            (Repr::Int, times::TIMESTAMPTZ_IO),
        ),
        times::TIMESTAMP_MODIFIER,
    )),
    preferred(modified(
        row((1186, 1187), ("interval", "interval"), (16, Timespan), (Repr::Interval, times::INTERVAL_IO)),
        times::INTERVAL_MODIFIER,
    )),
    modified(
        row((1266, 1270), ("timetz", "time with time zone"), (12, DateTime), (Repr::TimeTz, times::TIMETZ_IO)),
        times::TIME_MODIFIER,
    ),
    modified(row((1700, 1231), ("numeric", "numeric"), (-1, Numeric), (Repr::Numeric, numeric::IO)), numeric::MODIFIER),
    text((1790, 2201), "refcursor", -1, User),
    int((2202, 2207), "regprocedure", 4, Numeric, reg::IO),
    int((2203, 2208), "regoper", 4, Numeric, reg::IO),
    int((2204, 2209), "regoperator", 4, Numeric, reg::IO),
    int((2205, 2210), "regclass", 4, Numeric, reg::IO),
    int((2206, 2211), "regtype", 4, Numeric, reg::IO),
    row((2249, 2287), ("record", "record"), (-1, Pseudo), (Repr::Record, record::IO)),
    text((2275, 1263), "cstring", -2, Pseudo),
    row((2276, 0), ("any", "\"any\""), (4, Pseudo), (Repr::None, string::IO)),
    pseudo(2277, "anyarray", -1),
    text((2278, 0), "void", 4, Pseudo),
    pseudo(2279, "trigger", 4),
    pseudo(2280, "language_handler", 4),
    pseudo(2281, "internal", 8),
    pseudo(2283, "anyelement", 4),
    pseudo(2776, "anynonarray", 4),
    row((2950, 2951), ("uuid", "uuid"), (16, User), (Repr::Uuid, uuid::IO)),
    pseudo(3115, "fdw_handler", 4),
    text((3220, 3221), "pg_lsn", 8, User),
    pseudo(3310, "tsm_handler", 4),
    text((3361, 0), "pg_ndistinct", -1, Internal),
    text((3402, 0), "pg_dependencies", -1, Internal),
    pseudo(3500, "anyenum", 4),
    row((3802, 3807), ("jsonb", "jsonb"), (-1, User), (Repr::Jsonb, json::JSONB_IO)),
    pseudo(3831, "anyrange", -1),
    pseudo(3838, "event_trigger", 4),
    int((4089, 4090), "regnamespace", 4, Numeric, reg::IO),
    int((4096, 4097), "regrole", 4, Numeric, reg::IO),
    int((4191, 4192), "regcollation", 4, Numeric, reg::IO),
    pseudo(4537, "anymultirange", -1),
    pseudo(4538, "anycompatiblemultirange", -1),
    text((5017, 0), "pg_mcv_list", -1, Internal),
    row((5069, 271), ("xid8", "xid8"), (8, User), (Repr::Int, integer::XID8_IO)),
    pseudo(5077, "anycompatible", 4),
    pseudo(5078, "anycompatiblearray", -1),
    pseudo(5079, "anycompatiblenonarray", 4),
    pseudo(5080, "anycompatiblerange", -1),
];

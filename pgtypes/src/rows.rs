//! The table of the built-in types. A type is a row, and what its functions do is one file.
//!
//! The table is `pg_type` of PostgreSQL 15 as far as it goes: OIDs, names, lengths and categories are the same. Each
//! type that may be an element of an array has an array type, which is derived from it.

use crate::datum::Repr;
use crate::oid::Oid;
use crate::row::{Category, TypeIo, TypeRow};
use crate::{boolean, bytea_form, float, integer, string, times};

/// A type without a modifier.
const fn row(
    (oid, array): (u32, u32),
    (name, sql_name): (&'static str, &'static str),
    (len, category, is_preferred): (i16, Category, bool),
    (repr, io): (Repr, TypeIo),
) -> TypeRow {
    let (oid, array) = (Oid(oid), Oid(array));
    TypeRow { oid, name, sql_name, len, category, is_preferred, array, repr, io, show_modifier: None }
}

const fn modified(row: TypeRow, show: fn(&TypeRow, i32) -> std::string::String) -> TypeRow {
    TypeRow { show_modifier: Some(show), ..row }
}

/// A type whose values have an upper bound of 8 bytes in PostgreSQL.
const fn small(
    oids: (u32, u32),
    names: (&'static str, &'static str),
    (len, category, is_preferred): (i16, Category, bool),
    io: TypeIo,
) -> TypeRow {
    row(oids, names, (len, category, is_preferred), (Repr::Int, io))
}

const fn text(oids: (u32, u32), names: (&'static str, &'static str), len: i16, category: Category) -> TypeRow {
    row(oids, names, (len, category, false), (Repr::Text, string::IO))
}

/// `unknown`
pub(crate) const UNKNOWN_ROW: TypeRow = text((705, 0), ("unknown", "unknown"), -2, Category::Unknown);

use Category::{Boolean, DateTime, Internal, Numeric, Pseudo, String, User};

/// The types. Sorted by OID.
pub(crate) static ROWS: [TypeRow; 20] = [
    row((16, 1000), ("bool", "boolean"), (1, Boolean, true), (Repr::Bool, boolean::IO)),
    row((17, 1001), ("bytea", "bytea"), (-1, User, false), (Repr::Bytes, bytea_form::IO)),
    row((18, 1002), ("char", "\"char\""), (1, Internal, false), (Repr::Text, string::CHAR_IO)),
    row((19, 1003), ("name", "name"), (64, String, false), (Repr::Text, string::NAME_IO)),
    small((20, 1016), ("int8", "bigint"), (8, Numeric, false), integer::INT8_IO),
    small((21, 1005), ("int2", "smallint"), (2, Numeric, false), integer::INT2_IO),
    small((23, 1007), ("int4", "integer"), (4, Numeric, false), integer::INT4_IO),
    row((25, 1009), ("text", "text"), (-1, String, true), (Repr::Text, string::IO)),
    small((26, 1028), ("oid", "oid"), (4, Numeric, true), integer::OID_IO),
    small((28, 1011), ("xid", "xid"), (4, User, false), integer::OID_IO),
    row((700, 1021), ("float4", "real"), (4, Numeric, false), (Repr::Float, float::FLOAT4_IO)),
    row((701, 1022), ("float8", "double precision"), (8, Numeric, true), (Repr::Float, float::FLOAT8_IO)),
    UNKNOWN_ROW,
    modified(
        row((1042, 1014), ("bpchar", "character"), (-1, String, false), (Repr::Padded, string::PADDED_IO)),
        string::show_length,
    ),
    modified(text((1043, 1015), ("varchar", "character varying"), -1, String), string::show_length),
    small((1184, 1185), ("timestamptz", "timestamp with time zone"), (8, DateTime, true), times::TIMESTAMPTZ_IO),
    text((2275, 1263), ("cstring", "cstring"), -2, Pseudo),
    row((2276, 0), ("any", "\"any\""), (4, Pseudo, false), (Repr::None, string::IO)),
    text((2278, 0), ("void", "void"), 4, Pseudo),
    small((5069, 271), ("xid8", "xid8"), (8, User, false), integer::XID8_IO),
];

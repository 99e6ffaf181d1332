//! The functions of `pg_cast`: each is the cast between its types, as if it was written explicitly.
//!
//! The functions that apply a modifier are casts of a type to itself. They take the modifier, and `character` and
//! `character varying` also whether to truncate.

use super::args::Args;
use super::row::{ProcRow, scalar};
use crate::cast::Cast;
use crate::datum::Datum;
use crate::error::ValueError;
use crate::sql_type::SqlType as T;
use crate::sqlstate::SqlState;

/// The most bytes that PostgreSQL allocates for a value.
const MAX_BYTES: usize = 0x3fff_ffff;
/// The bytes of a value's length in PostgreSQL.
const HEADER: usize = 4;

fn cast(args: &Args<'_>) -> Result<Datum, ValueError> {
    convert(args, args.ty(0), args.result().base(), true)
}

fn convert(args: &Args<'_>, from: T, to: T, is_explicit: bool) -> Result<Datum, ValueError> {
    let cast = Cast::find(from, to, is_explicit).ok_or_else(|| {
        let (from, to) = (from.base_name(), to.base_name());
        ValueError::internal(&format!("there is no cast from {from} to {to}"))
    })?;
    cast.apply(args.get(0).clone(), args.env())
}

/// Applies a modifier.
fn modify(args: &Args<'_>) -> Result<Datum, ValueError> {
    let to = T { oid: args.result().oid, typmod: args.i32(1)? };
    convert(args, args.result().base(), to, true)
}

/// Applies a length. Without truncation, a longer text is an error.
fn limit(args: &Args<'_>) -> Result<Datum, ValueError> {
    let to = T { oid: args.result().oid, typmod: args.i32(1)? };
    if let (T::BPCHAR, Some(length)) = (args.result().base(), to.length()) {
        let text = args.text(0)?;
        let size = text.len() + length.saturating_sub(text.chars().count()) + HEADER;
        if length > MAX_BYTES - HEADER && size > MAX_BYTES {
            let message = format!("invalid memory alloc request size {size}");
            return Err(ValueError::new(SqlState::INTERNAL_ERROR, message));
        }
    }
    convert(args, args.result().base(), to, args.bool(2)?)
}

pub(super) static ROWS: &[ProcRow] = &[
    scalar(77, "int4", &[T::CHAR], T::INT4, cast),
    scalar(78, "char", &[T::INT4], T::CHAR, cast),
    scalar(235, "float8", &[T::INT2], T::FLOAT8, cast),
    scalar(236, "float4", &[T::INT2], T::FLOAT4, cast),
    scalar(237, "int2", &[T::FLOAT8], T::INT2, cast),
    scalar(238, "int2", &[T::FLOAT4], T::INT2, cast),
    scalar(311, "float8", &[T::FLOAT4], T::FLOAT8, cast),
    scalar(312, "float4", &[T::FLOAT8], T::FLOAT4, cast),
    scalar(313, "int4", &[T::INT2], T::INT4, cast),
    scalar(314, "int2", &[T::INT4], T::INT2, cast),
    scalar(316, "float8", &[T::INT4], T::FLOAT8, cast),
    scalar(317, "int4", &[T::FLOAT8], T::INT4, cast),
    scalar(318, "float4", &[T::INT4], T::FLOAT4, cast),
    scalar(319, "int4", &[T::FLOAT4], T::INT4, cast),
    scalar(401, "text", &[T::BPCHAR], T::TEXT, cast),
    scalar(406, "text", &[T::NAME], T::TEXT, cast),
    scalar(407, "name", &[T::TEXT], T::NAME, cast),
    scalar(408, "bpchar", &[T::NAME], T::BPCHAR, cast),
    scalar(409, "name", &[T::BPCHAR], T::NAME, cast),
    scalar(480, "int4", &[T::INT8], T::INT4, cast),
    scalar(481, "int8", &[T::INT4], T::INT8, cast),
    scalar(482, "float8", &[T::INT8], T::FLOAT8, cast),
    scalar(483, "int8", &[T::FLOAT8], T::INT8, cast),
    scalar(652, "float4", &[T::INT8], T::FLOAT4, cast),
    scalar(653, "int8", &[T::FLOAT4], T::INT8, cast),
    scalar(668, "bpchar", &[T::BPCHAR, T::INT4, T::BOOL], T::BPCHAR, limit),
    scalar(669, "varchar", &[T::VARCHAR, T::INT4, T::BOOL], T::VARCHAR, limit),
    scalar(714, "int2", &[T::INT8], T::INT2, cast),
    scalar(754, "int8", &[T::INT2], T::INT8, cast),
    scalar(860, "bpchar", &[T::CHAR], T::BPCHAR, cast),
    scalar(944, "char", &[T::TEXT], T::CHAR, cast),
    scalar(946, "text", &[T::CHAR], T::TEXT, cast),
    scalar(1079, "regclass", &[T::TEXT], T::REGCLASS, cast).stable(),
    scalar(1174, "timestamptz", &[T::DATE], T::TIMESTAMPTZ, cast).stable(),
    scalar(1178, "date", &[T::TIMESTAMPTZ], T::DATE, cast).stable(),
    scalar(1200, "interval", &[T::INTERVAL, T::INT4], T::INTERVAL, modify),
    scalar(1287, "oid", &[T::INT8], T::OID, cast),
    scalar(1288, "int8", &[T::OID], T::INT8, cast),
    scalar(1316, "time", &[T::TIMESTAMP], T::TIME, cast),
    scalar(1370, "interval", &[T::TIME], T::INTERVAL, cast),
    scalar(1388, "timetz", &[T::TIMESTAMPTZ], T::TIMETZ, cast).stable(),
    scalar(1400, "name", &[T::VARCHAR], T::NAME, cast),
    scalar(1401, "varchar", &[T::NAME], T::VARCHAR, cast),
    scalar(1419, "time", &[T::INTERVAL], T::TIME, cast),
    scalar(1703, "numeric", &[T::NUMERIC, T::INT4], T::NUMERIC, modify),
    scalar(1740, "numeric", &[T::INT4], T::NUMERIC, cast),
    scalar(1742, "numeric", &[T::FLOAT4], T::NUMERIC, cast),
    scalar(1743, "numeric", &[T::FLOAT8], T::NUMERIC, cast),
    scalar(1744, "int4", &[T::NUMERIC], T::INT4, cast),
    scalar(1745, "float4", &[T::NUMERIC], T::FLOAT4, cast),
    scalar(1746, "float8", &[T::NUMERIC], T::FLOAT8, cast),
    scalar(1779, "int8", &[T::NUMERIC], T::INT8, cast),
    scalar(1781, "numeric", &[T::INT8], T::NUMERIC, cast),
    scalar(1782, "numeric", &[T::INT2], T::NUMERIC, cast),
    scalar(1783, "int2", &[T::NUMERIC], T::INT2, cast),
    scalar(1961, "timestamp", &[T::TIMESTAMP, T::INT4], T::TIMESTAMP, modify),
    scalar(1967, "timestamptz", &[T::TIMESTAMPTZ, T::INT4], T::TIMESTAMPTZ, modify),
    scalar(1968, "time", &[T::TIME, T::INT4], T::TIME, modify),
    scalar(1969, "timetz", &[T::TIMETZ, T::INT4], T::TIMETZ, modify),
    scalar(2019, "time", &[T::TIMESTAMPTZ], T::TIME, cast).stable(),
    scalar(2024, "timestamp", &[T::DATE], T::TIMESTAMP, cast),
    scalar(2027, "timestamp", &[T::TIMESTAMPTZ], T::TIMESTAMP, cast).stable(),
    scalar(2028, "timestamptz", &[T::TIMESTAMP], T::TIMESTAMPTZ, cast).stable(),
    scalar(2029, "date", &[T::TIMESTAMP], T::DATE, cast),
    scalar(2046, "time", &[T::TIMETZ], T::TIME, cast),
    scalar(2047, "timetz", &[T::TIME], T::TIMETZ, cast).stable(),
    scalar(2557, "bool", &[T::INT4], T::BOOL, cast),
    scalar(2558, "int4", &[T::BOOL], T::INT4, cast),
    scalar(2580, "float8", &[T::JSONB], T::FLOAT8, cast),
    scalar(2971, "text", &[T::BOOL], T::TEXT, cast),
    scalar(3449, "numeric", &[T::JSONB], T::NUMERIC, cast),
    scalar(3450, "int2", &[T::JSONB], T::INT2, cast),
    scalar(3451, "int4", &[T::JSONB], T::INT4, cast),
    scalar(3452, "int8", &[T::JSONB], T::INT8, cast),
    scalar(3453, "float4", &[T::JSONB], T::FLOAT4, cast),
    scalar(3556, "bool", &[T::JSONB], T::BOOL, cast),
    scalar(5071, "xid", &[T::XID8], T::XID, cast),
];

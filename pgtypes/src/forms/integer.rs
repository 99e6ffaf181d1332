//! The integers, `oid` and its like.

use bytes::{BufMut, BytesMut};

use crate::datum::{Datum, DatumRef};
use crate::error::ValueError;
use crate::form::{fixed, invalid};
use crate::integer::{int_range, out_of_range, parse_int, write};
use crate::letters::is_space;
use crate::row::{IoEnv, TypeIo};
use crate::sql_type::SqlType;

pub(crate) const INT2_IO: TypeIo = TypeIo {
    input,
    output,
    receive: |bytes, _, _| Ok(Datum::Int(i16::from_be_bytes(fixed(bytes)?).into())),
    // The type bounds the value, so dropping the high bytes loses nothing.
    send: |value, _, _, out| out.extend_from_slice(&value.int().to_be_bytes()[6..]),
};

pub(crate) const INT4_IO: TypeIo = TypeIo {
    input,
    output,
    receive: |bytes, _, _| Ok(Datum::Int(i32::from_be_bytes(fixed(bytes)?).into())),
    send: send_4,
};

pub(crate) const INT8_IO: TypeIo = TypeIo {
    input,
    output,
    receive: |bytes, _, _| Ok(Datum::Int(i64::from_be_bytes(fixed(bytes)?))),
    send: |value, _, _, out| out.put_i64(value.int()),
};

/// Unsigned.
pub(crate) const OID_IO: TypeIo = TypeIo {
    input: |text, ty, _| parse_unsigned(ty, text, u32::MAX.into()),
    output,
    receive: |bytes, _, _| Ok(Datum::Int(u32::from_be_bytes(fixed(bytes)?).into())),
    send: send_4,
};

/// Unsigned, of 8 bytes. Those above the largest `bigint` do not occur.
pub(crate) const XID8_IO: TypeIo = TypeIo {
    input: |text, ty, _| parse_unsigned(ty, text, i64::MAX),
    output,
    receive: |bytes, _, _| Ok(Datum::Int(i64::from_be_bytes(fixed(bytes)?))),
    send: |value, _, _, out| out.put_i64(value.int()),
};

fn send_4(value: &DatumRef<'_>, _: SqlType, _: &IoEnv<'_>, out: &mut BytesMut) {
    out.extend_from_slice(&value.int().to_be_bytes()[4..]);
}

fn name_of(ty: SqlType) -> &'static str {
    match ty.base() {
        SqlType::INT2 => "smallint",
        SqlType::INT4 => "integer",
        SqlType::INT8 => "bigint",
        SqlType::OID => "oid",
        SqlType::XID => "xid",
        _ => "xid8",
    }
}

fn input(text: &str, ty: SqlType, _: &IoEnv<'_>) -> Result<Datum, ValueError> {
    parse_int(text, int_range(ty), name_of(ty)).map(Datum::Int)
}

/// Reads an unsigned number. As in PostgreSQL a negative one of 32 bits wraps around.
fn parse_unsigned(ty: SqlType, text: &str, most: i64) -> Result<Datum, ValueError> {
    let body = text.trim_matches(is_space);
    let digits = body.strip_prefix(['+', '-']).unwrap_or(body);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(invalid(name_of(ty), text));
    }
    match body.parse::<i64>() {
        Ok(value) if (0..=most).contains(&value) => Ok(Datum::Int(value)),
        Ok(value) if value < 0 && value >= i64::from(i32::MIN) => Ok(Datum::Int(value & most)),
        _ => Err(out_of_range(name_of(ty), text)),
    }
}

fn output(value: &DatumRef<'_>, _: SqlType, _: &IoEnv<'_>, out: &mut BytesMut) {
    write(value.int(), out);
}

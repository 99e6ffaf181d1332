//! The integers, `oid` and its like: their forms and ranges.

use bytes::{BufMut, BytesMut};

use crate::datum::{Datum, DatumRef};
use crate::error::ValueError;
use crate::form::{fixed, invalid};
use crate::letters::is_space;
use crate::number::{out_of_range, parse_int};
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

/// The bounds of an integer type.
pub fn int_range(ty: SqlType) -> (i64, i64) {
    match ty.base() {
        SqlType::INT2 => (i64::from(i16::MIN), i64::from(i16::MAX)),
        SqlType::INT4 => (i64::from(i32::MIN), i64::from(i32::MAX)),
        _ => (i64::MIN, i64::MAX),
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

/// Appends the digits of an integer.
pub fn write(value: i64, out: &mut BytesMut) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    let mut rest = value.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + u8::try_from(rest % 10).unwrap_or(0);
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        out.extend_from_slice(b"-");
    }
    out.extend_from_slice(&digits[at..]);
}

//! The wire forms of values: text, and PostgreSQL's binary form (big-endian numbers, raw text and bytes).

use bytes::{BufMut, Bytes, BytesMut};

use crate::datum::{Datum, DatumRef};
use crate::error::ValueError;
use crate::sql_type::SqlType;
use crate::sqlstate::SqlState;
use crate::timestamp::{self, Now, TimeZone};
use crate::{input, output};

/// Wire formats of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Human-readable
    Text,
    /// PostgreSQL's binary form
    Binary,
}

impl Datum {
    /// Decodes a value from its wire form. Errors are those of PostgreSQL's input functions (22P02, 22003, 22007,
    /// 22008, 22021, 22P03, ...).
    pub fn decode(ty: SqlType, format: Format, bytes: &[u8], zone: &TimeZone, now: Now) -> Result<Datum, ValueError> {
        match format {
            Format::Text => {
                let text = input::utf8(bytes)?;
                input::parse(ty, text, zone, now)
            }
            Format::Binary => decode_binary(ty, bytes),
        }
    }
}

impl DatumRef<'_> {
    /// Appends the wire form without its length. Never called on `Null`.
    pub fn encode(self, ty: SqlType, format: Format, zone: &TimeZone, out: &mut BytesMut) {
        match format {
            Format::Text => output::write(self, zone, out),
            Format::Binary => encode_binary(self, ty, out),
        }
    }
}

/// Decodes the binary form of a type.
fn decode_binary(ty: SqlType, bytes: &[u8]) -> Result<Datum, ValueError> {
    Ok(match ty {
        SqlType::Bool => Datum::Bool(fixed::<1>(bytes)?[0] != 0),
        SqlType::Int2 => Datum::Int(i16::from_be_bytes(fixed(bytes)?).into()),
        SqlType::Int4 => Datum::Int(i32::from_be_bytes(fixed(bytes)?).into()),
        SqlType::Int8 => Datum::Int(i64::from_be_bytes(fixed(bytes)?)),
        SqlType::Float8 => Datum::Float(f64::from_be_bytes(fixed(bytes)?)),
        SqlType::Timestamptz => {
            let micros = i64::from_be_bytes(fixed(bytes)?);
            if !timestamp::in_range(micros) {
                return Err(ValueError::new(SqlState::DATETIME_FIELD_OVERFLOW, "timestamp out of range"));
            }
            Datum::Timestamp(micros)
        }
        SqlType::Text | SqlType::Varchar(_) | SqlType::Void | SqlType::Unknown => {
            Datum::Text(input::utf8(bytes)?.into())
        }
        SqlType::Bytea => Datum::Bytes(Bytes::copy_from_slice(bytes)),
    })
}

/// Exactly `N` bytes. Fewer are a protocol violation, more a bad representation.
fn fixed<const N: usize>(bytes: &[u8]) -> Result<[u8; N], ValueError> {
    bytes.try_into().map_err(|_| {
        if bytes.len() < N {
            ValueError::new(SqlState::PROTOCOL_VIOLATION, "insufficient data left in message")
        } else {
            ValueError::new(SqlState::INVALID_BINARY_REPRESENTATION, "incorrect binary data format")
        }
    })
}

/// Appends the binary form; nothing for NULL. An integer has the width of `ty`, whose range it keeps to.
fn encode_binary(datum: DatumRef<'_>, ty: SqlType, out: &mut BytesMut) {
    match datum {
        DatumRef::Null => {}
        DatumRef::Bool(value) => out.put_u8(u8::from(value)),
        // The type bounds the value, so dropping the high bytes loses nothing.
        DatumRef::Int(value) => match ty {
            SqlType::Int2 => out.extend_from_slice(&value.to_be_bytes()[6..]),
            SqlType::Int4 => out.extend_from_slice(&value.to_be_bytes()[4..]),
            _ => out.put_i64(value),
        },
        DatumRef::Float(value) => out.put_f64(value),
        DatumRef::Text(text) => out.extend_from_slice(text.as_bytes()),
        DatumRef::Bytes(bytes) => out.extend_from_slice(bytes),
        DatumRef::Timestamp(micros) => out.put_i64(micros),
    }
}

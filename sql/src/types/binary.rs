//! Binary wire forms: big-endian numbers, raw text and bytes, as in PostgreSQL's send and receive functions.

use bytes::{BufMut, Bytes, BytesMut};

use super::timestamp;
use super::{Datum, SqlType, input};
use crate::error::{SqlError, SqlState};

/// Decodes the binary form of a type.
pub fn decode(ty: SqlType, bytes: &[u8]) -> Result<Datum, SqlError> {
    Ok(match ty {
        SqlType::Bool => Datum::Bool(fixed::<1>(bytes)?[0] != 0),
        SqlType::Int2 => Datum::Int(i16::from_be_bytes(fixed(bytes)?).into()),
        SqlType::Int4 => Datum::Int(i32::from_be_bytes(fixed(bytes)?).into()),
        SqlType::Int8 => Datum::Int(i64::from_be_bytes(fixed(bytes)?)),
        SqlType::Float8 => Datum::Float(f64::from_be_bytes(fixed(bytes)?)),
        SqlType::Timestamptz => {
            let micros = i64::from_be_bytes(fixed(bytes)?);
            if !timestamp::in_range(micros) {
                return Err(SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, "timestamp out of range"));
            }
            Datum::Timestamp(micros)
        }
        SqlType::Text | SqlType::Varchar(_) | SqlType::Unknown => Datum::Text(input::utf8(bytes)?.into()),
        SqlType::Bytea => Datum::Bytes(Bytes::copy_from_slice(bytes)),
    })
}

/// Exactly `N` bytes. Fewer are a protocol violation, more a bad representation.
fn fixed<const N: usize>(bytes: &[u8]) -> Result<[u8; N], SqlError> {
    bytes.try_into().map_err(|_| {
        if bytes.len() < N {
            SqlError::new(SqlState::PROTOCOL_VIOLATION, "insufficient data left in message")
        } else {
            SqlError::new(SqlState::INVALID_BINARY_REPRESENTATION, "incorrect binary data format")
        }
    })
}

/// Appends the binary form; nothing for NULL. An integer has the width of `ty`, whose range it keeps to.
pub fn encode(datum: &Datum, ty: SqlType, out: &mut BytesMut) {
    match datum {
        Datum::Null => {}
        Datum::Bool(value) => out.put_u8(u8::from(*value)),
        // The type bounds the value, so dropping the high bytes loses nothing.
        Datum::Int(value) => match ty {
            SqlType::Int2 => out.extend_from_slice(&value.to_be_bytes()[6..]),
            SqlType::Int4 => out.extend_from_slice(&value.to_be_bytes()[4..]),
            _ => out.put_i64(*value),
        },
        Datum::Float(value) => out.put_f64(*value),
        Datum::Text(text) => out.extend_from_slice(text.as_bytes()),
        Datum::Bytes(bytes) => out.extend_from_slice(bytes),
        Datum::Timestamp(micros) => out.put_i64(*micros),
    }
}

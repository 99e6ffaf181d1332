//! The compact form of a value in a row. The row tells its length, and the table its type.
//!
//! | value | bytes |
//! |---|---|
//! | boolean | `0` or `1` |
//! | of the kind Int | the fewest bytes of two's complement, little-endian; none for 0 |
//! | float | 4 bytes, little-endian, if that is exact, else 8 |
//! | text, bytea | the bytes |

use super::Malformed;
use crate::datum::{Datum, DatumRef, Repr};
use crate::sql_type::SqlType;

/// Appends a value; nothing for NULL.
pub fn put(value: &Datum, out: &mut Vec<u8>) {
    match value {
        Datum::Null => {}
        Datum::Bool(value) => out.push(u8::from(*value)),
        Datum::Int(value) => {
            let size = if *value < 0 { !*value } else { *value };
            // One more bit for the sign.
            let bits = if *value == 0 { 0 } else { 65 - size.leading_zeros() as usize };
            let count = bits.div_ceil(8);
            out.extend_from_slice(value.to_le_bytes().get(..count).unwrap_or_default());
        }
        Datum::Float(value) => {
            let narrow = *value as f32;
            if f64::from(narrow).to_bits() == value.to_bits() {
                out.extend_from_slice(&narrow.to_bits().to_le_bytes());
            } else {
                out.extend_from_slice(&value.to_bits().to_le_bytes());
            }
        }
        Datum::Text(text) | Datum::Padded(text) => out.extend_from_slice(text.as_bytes()),
        Datum::Bytes(bytes) => out.extend_from_slice(bytes),
    }
}

/// About the bytes that a value takes.
pub fn size_hint(value: &Datum) -> usize {
    match value {
        Datum::Text(text) | Datum::Padded(text) => text.len(),
        Datum::Bytes(bytes) => bytes.len(),
        _ => 8,
    }
}

/// Reads a value of a type, without a copy where it can be.
pub fn get(ty: SqlType, bytes: &[u8]) -> Result<DatumRef<'_>, Malformed> {
    Ok(match ty.row().repr {
        Repr::Bool => match bytes {
            [0] => DatumRef::Bool(false),
            [1] => DatumRef::Bool(true),
            _ => return Err(Malformed("no boolean")),
        },
        Repr::Int => DatumRef::Int(get_int(bytes)?),
        Repr::Float => DatumRef::Float(match (<[u8; 4]>::try_from(bytes), <[u8; 8]>::try_from(bytes)) {
            (Ok(narrow), _) => f32::from_bits(u32::from_le_bytes(narrow)).into(),
            (_, Ok(wide)) => f64::from_bits(u64::from_le_bytes(wide)),
            _ => return Err(Malformed("no float")),
        }),
        Repr::Text | Repr::Padded => {
            DatumRef::Text(std::str::from_utf8(bytes).map_err(|_| Malformed("text is not UTF-8"))?)
        }
        Repr::Bytes => DatumRef::Bytes(bytes),
        Repr::None => return Err(Malformed("a type without values")),
    })
}

/// Reads a value of a type.
pub fn get_datum(ty: SqlType, bytes: &[u8]) -> Result<Datum, Malformed> {
    Ok(match (get(ty, bytes)?, ty.row().repr) {
        (DatumRef::Text(text), Repr::Padded) => Datum::Padded(text.into()),
        (DatumRef::Owned(value), _) => value,
        (value, _) => value.to_datum(),
    })
}

fn get_int(bytes: &[u8]) -> Result<i64, Malformed> {
    let Some(last) = bytes.last() else { return Ok(0) };
    if bytes.len() > 8 {
        return Err(Malformed("integer too long"));
    }
    let sign = if *last & 0x80 == 0 { 0 } else { -1 };
    Ok(bytes.iter().rev().fold(sign, |value: i64, byte| value << 8 | i64::from(*byte)))
}

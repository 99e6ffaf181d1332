//! The compact form of a value in a row. The row tells its length, and the table its type.
//!
//! | value | bytes |
//! |---|---|
//! | boolean | `0` or `1` |
//! | of the kind Int | the fewest bytes of two's complement, little-endian; none for 0 |
//! | float | 4 bytes, little-endian, if that is exact, else 8 |
//! | text, bytea, uuid | the bytes |
//! | numeric | its own form |
//! | interval, timetz, jsonb | as on the wire |
//! | array | number of dimensions; length and lower bound of each; the elements |
//!
//! An element of an array is its length plus one and its form, or 0 for NULL. The numbers of an array are varints.

use super::{Malformed, take};
use crate::datetime::{Interval, TimeTz};
use crate::datum::{Array, Datum, DatumRef, Dimension, MAX_DIMENSIONS, Repr};
use crate::json::Jsonb;
use crate::numeric::Numeric;
use crate::sql_type::SqlType;
use crate::uuid::Uuid;

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
        Datum::Numeric(number) => number.write_stored(out),
        Datum::Interval(interval) => out.extend_from_slice(&interval.to_wire()),
        Datum::TimeTz(time) => out.extend_from_slice(&time.to_wire()),
        Datum::Uuid(uuid) => out.extend_from_slice(uuid.as_bytes()),
        Datum::Jsonb(json) => out.extend_from_slice(&json.to_binary()),
        Datum::Array(array) => put_array(array, out),
        // No column has this type.
        Datum::Record(_) => {}
    }
}

fn put_array(array: &Array, out: &mut Vec<u8>) {
    put_varint(array.dimensions().len() as u64, out);
    for dimension in array.dimensions() {
        put_varint(u64::from(dimension.length.cast_unsigned()), out);
        put_varint(u64::from(dimension.lower.cast_unsigned()), out);
    }
    let mut form = Vec::new();
    for element in array.elements() {
        if element.is_null() {
            put_varint(0, out);
            continue;
        }
        form.clear();
        put(element, &mut form);
        put_varint(form.len() as u64 + 1, out);
        out.extend_from_slice(&form);
    }
}

/// Seven bits a byte, the lowest first; the highest bit says that more follow.
fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn get_varint(input: &mut &[u8]) -> Result<u64, Malformed> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = take(input, 1)?[0];
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(Malformed("integer too long"))
}

fn get_array(element: SqlType, mut bytes: &[u8]) -> Result<Datum, Malformed> {
    let input = &mut bytes;
    let number = |input: &mut &[u8]| {
        let value = u32::try_from(get_varint(input)?).map_err(|_| Malformed("no dimension"))?;
        Ok(value.cast_signed())
    };
    let count = get_varint(input)?;
    if count > MAX_DIMENSIONS as u64 {
        return Err(Malformed("too many dimensions"));
    }
    let mut dimensions = Vec::new();
    for _ in 0..count {
        dimensions.push(Dimension { length: number(input)?, lower: number(input)? });
    }
    let mut elements = Vec::new();
    while !input.is_empty() {
        let value = match usize::try_from(get_varint(input)?).unwrap_or(usize::MAX).checked_sub(1) {
            None => Datum::Null,
            Some(length) => get_datum(element, take(input, length)?)?,
        };
        elements.push(value);
    }
    let array = Array::new(element.oid, dimensions, elements).map_err(|_| Malformed("no array"))?;
    Ok(Datum::Array(Box::new(array)))
}

/// About the bytes that a value takes.
pub fn size_hint(value: &Datum) -> usize {
    match value {
        Datum::Text(text) | Datum::Padded(text) => text.len(),
        Datum::Bytes(bytes) => bytes.len(),
        Datum::Array(array) => 8 * array.elements().len(),
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
        Repr::Uuid => {
            let bytes = bytes.try_into().map_err(|_| Malformed("no uuid"))?;
            DatumRef::Owned(Datum::Uuid(Uuid::from_bytes(bytes)))
        }
        repr => DatumRef::Owned(get_boxed(repr, ty, bytes)?),
    })
}

fn get_boxed(repr: Repr, ty: SqlType, bytes: &[u8]) -> Result<Datum, Malformed> {
    let wrong = |_| Malformed("no value of its type");
    Ok(match repr {
        Repr::Numeric => Datum::Numeric(Numeric::parse_stored(bytes).map_err(wrong)?),
        Repr::Interval => Datum::Interval(Interval::from_wire(bytes).map_err(wrong)?),
        Repr::TimeTz => Datum::TimeTz(TimeTz::from_wire(bytes).map_err(wrong)?),
        Repr::Jsonb => Datum::Jsonb(Box::new(Jsonb::from_binary(bytes).map_err(wrong)?)),
        Repr::Array => get_array(ty.element().unwrap_or(SqlType::UNKNOWN), bytes)?,
        _ => return Err(Malformed("a type without values")),
    })
}

/// Reads a value of a type.
pub fn get_datum(ty: SqlType, bytes: &[u8]) -> Result<Datum, Malformed> {
    Ok(match get(ty, bytes)? {
        DatumRef::Owned(value) => value,
        value => value.to_datum(ty),
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

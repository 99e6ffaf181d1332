//! Memory-comparable keys: the byte order of encodings is the SQL order of the values.
//!
//! | value | bytes |
//! |---|---|
//! | of the kind Int | `0x80 + n` (from 0) or `0x7f - n` (below 0), then the `n` significant bytes, big-endian |
//! | boolean | `0` or `1` |
//! | float | 8 bytes: sign bit flipped, or all bits of a negative one; -0 as 0, one NaN above infinity |
//! | text, bytea | the bytes with `00` written `00 ff`, then `00 01`; of `character` without the blanks at its end |
//! | numeric, interval, timetz, uuid | their own key forms, without what equal values differ in |
//! | jsonb | its order, as bytea; the value cannot be read from it |
//! | array | `01` and its form for each element, `02` for NULL, `00`; then count of dimensions, lengths, lower bounds |
//! | record | `01`, the id of the type and the form of an element for each field; `00`. Of equality, not of the order |
//!
//! Every encoding is prefix-free, so columns need no separators. Equal values have equal bytes. What they do not tell
//! of a value ([`loses`]) is stored beside the key.
//!
//! A column of an index may be NULL and may descend ([`KeyOrder`]): a byte that places NULL goes before the value, and
//! all bits of the value are flipped if it descends.

use super::{Malformed, take};
use crate::datetime::{Interval, TimeTz};
use crate::datum::{Array, Datum, Dimension, MAX_DIMENSIONS, Record, Repr, unpadded};
use crate::numeric::Numeric;
use crate::sql_type::SqlType;
use crate::uuid::Uuid;

/// The order of a column in an index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct KeyOrder {
    /// DESC
    pub descends: bool,
    /// NULLS FIRST
    pub nulls_first: bool,
}

/// Precedes a value, and a NULL that sorts first or last.
const NULL_FIRST: u8 = 0;
const VALUE: u8 = 1;
const NULL_LAST: u8 = 2;

/// Whether the key form of a value does not tell it exactly.
pub fn loses(value: &Datum) -> bool {
    match value {
        Datum::Float(float) => *float == 0.0 && float.is_sign_negative(),
        Datum::Padded(text) => text.ends_with(' '),
        Datum::Numeric(number) => number.scale() != number.min_scale(),
        Datum::Interval(interval) => !Interval::from_key(interval.to_key()).is_identical(interval),
        Datum::TimeTz(time) => TimeTz::from_key(time.to_key()) != *time,
        Datum::Jsonb(_) => true,
        Datum::Array(array) => array.elements().iter().any(loses),
        Datum::Record(record) => record.fields().iter().any(|(_, field)| loses(field)),
        _ => false,
    }
}

/// Appends a column of an index.
pub fn put_ordered(value: &Datum, order: KeyOrder, out: &mut Vec<u8>) {
    let start = out.len() + 1;
    out.push(VALUE);
    if put(value, out).is_none() {
        out.truncate(start - 1);
        return out.push(if order.nulls_first { NULL_FIRST } else { NULL_LAST });
    }
    if order.descends {
        out.iter_mut().skip(start).for_each(|byte| *byte = !*byte);
    }
}

/// Reads a column of an index.
pub fn get_ordered(ty: SqlType, order: KeyOrder, input: &mut &[u8]) -> Result<Datum, Malformed> {
    match take(input, 1)?.first().copied() {
        Some(VALUE) if order.descends => {
            let flipped: Vec<u8> = input.iter().map(|byte| !*byte).collect();
            let mut rest = &flipped[..];
            let value = get(ty, &mut rest)?;
            take(input, flipped.len() - rest.len())?;
            Ok(value)
        }
        Some(VALUE) => get(ty, input),
        Some(NULL_FIRST) if order.nulls_first => Ok(Datum::Null),
        Some(NULL_LAST) if !order.nulls_first => Ok(Datum::Null),
        _ => Err(Malformed("no mark of NULL")),
    }
}

/// Appends a value. NULL appends nothing and returns `None`.
pub fn put(value: &Datum, out: &mut Vec<u8>) -> Option<()> {
    match value {
        Datum::Null => return None,
        Datum::Bool(value) => out.push(u8::from(*value)),
        Datum::Int(value) => put_int(*value, out),
        Datum::Float(value) => out.extend_from_slice(&float_bits(*value).to_be_bytes()),
        Datum::Text(text) => put_bytes(text.as_bytes(), out),
        Datum::Padded(text) => put_bytes(unpadded(text).as_bytes(), out),
        Datum::Bytes(bytes) => put_bytes(bytes, out),
        Datum::Numeric(number) => number.write_key(out),
        Datum::Interval(interval) => out.extend_from_slice(&interval.to_key()),
        Datum::TimeTz(time) => out.extend_from_slice(&time.to_key()),
        Datum::Uuid(uuid) => out.extend_from_slice(uuid.as_bytes()),
        Datum::Jsonb(json) => {
            let mut order = Vec::new();
            json.write_order_key(&mut order);
            put_bytes(&order, out);
        }
        Datum::Array(array) => put_array(array, out),
        Datum::Record(record) => put_record(record, out),
    }
    Some(())
}

/// Ends the elements of an array.
const ARRAY_END: u8 = 0;

fn put_array(array: &Array, out: &mut Vec<u8>) {
    for element in array.elements() {
        put_ordered(element, KeyOrder::default(), out);
    }
    out.push(ARRAY_END);
    // There are at most six.
    out.push(array.dimensions().len() as u8);
    for dimension in array.dimensions() {
        put_int(dimension.length.into(), out);
    }
    for dimension in array.dimensions() {
        put_int(dimension.lower.into(), out);
    }
}

/// Ends the fields of a record, and precedes each.
const RECORD_END: u8 = 0;
const FIELD: u8 = 1;

/// No column has this type: the form is that of keys which only tell equal values. Records of different types differ.
fn put_record(record: &Record, out: &mut Vec<u8>) {
    for (ty, field) in record.fields() {
        out.push(FIELD);
        out.extend_from_slice(&ty.oid.0.to_be_bytes());
        put_ordered(field, KeyOrder::default(), out);
    }
    out.push(RECORD_END);
}

fn put_int(value: i64, out: &mut Vec<u8>) {
    // A negative number counts the bytes of its complement: none for -1, one for -256.
    let size = if value < 0 { !value } else { value };
    let count = 8 - (size.leading_zeros() / 8) as usize;
    let tag = if value < 0 { 0x7f - count as u8 } else { 0x80 + count as u8 };
    out.push(tag);
    out.extend_from_slice(&value.to_be_bytes()[8 - count..]);
}

fn float_bits(value: f64) -> u64 {
    let value = if value.is_nan() {
        f64::NAN
    } else if value == 0.0 {
        0.0
    } else {
        value
    };
    let bits = value.to_bits() & if value.is_nan() { !(1 << 63) } else { u64::MAX };
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    out.reserve(bytes.len() + 2);
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|b| *b == 0) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(&[0, 0xff]);
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
    out.extend_from_slice(&[0, 1]);
}

/// Reads a value of a type and advances `input`.
pub fn get(ty: SqlType, input: &mut &[u8]) -> Result<Datum, Malformed> {
    Ok(match ty.row().repr {
        Repr::Bool => match take(input, 1)? {
            [0] => Datum::Bool(false),
            [1] => Datum::Bool(true),
            _ => return Err(Malformed("no boolean")),
        },
        Repr::Int => Datum::Int(get_int(input)?),
        Repr::Float => {
            let bytes = take(input, 8)?;
            let bits = bytes.iter().fold(0u64, |bits, byte| bits << 8 | u64::from(*byte));
            Datum::Float(f64::from_bits(if bits >> 63 == 1 { bits & !(1 << 63) } else { !bits }))
        }
        Repr::Text => Datum::Text(get_text(input)?),
        Repr::Padded => Datum::Padded(get_text(input)?),
        Repr::Bytes => Datum::Bytes(get_bytes(input)?.into()),
        Repr::Numeric => {
            let (number, rest) = Numeric::parse_key(input).map_err(|_| Malformed("no numeric"))?;
            *input = rest;
            Datum::Numeric(number)
        }
        Repr::Interval => Datum::Interval(Interval::from_key(fixed(input)?)),
        Repr::TimeTz => Datum::TimeTz(TimeTz::from_key(fixed(input)?)),
        Repr::Uuid => Datum::Uuid(Uuid::from_bytes(fixed(input)?)),
        // The value is the one beside the key.
        Repr::Jsonb => get_bytes(input).map(|_| Datum::Null)?,
        Repr::Array => get_array(ty.element().unwrap_or(SqlType::UNKNOWN), input)?,
        Repr::Record | Repr::None => return Err(Malformed("a type without values")),
    })
}

fn fixed<const N: usize>(input: &mut &[u8]) -> Result<[u8; N], Malformed> {
    take(input, N)?.try_into().map_err(|_| Malformed("cut short"))
}

fn get_array(element: SqlType, input: &mut &[u8]) -> Result<Datum, Malformed> {
    let mut elements = Vec::new();
    while input.first().is_some_and(|mark| *mark != ARRAY_END) {
        elements.push(get_ordered(element, KeyOrder::default(), input)?);
    }
    take(input, 1)?;
    let count = usize::from(take(input, 1)?[0]);
    if count > MAX_DIMENSIONS {
        return Err(Malformed("too many dimensions"));
    }
    let mut numbers = Vec::with_capacity(2 * count);
    for _ in 0..2 * count {
        numbers.push(i32::try_from(get_int(input)?).map_err(|_| Malformed("no dimension"))?);
    }
    let (lengths, lowers) = numbers.split_at(count);
    let dimensions = lengths.iter().zip(lowers).map(|(length, lower)| Dimension { length: *length, lower: *lower });
    let array = Array::new(element.oid, dimensions.collect(), elements).map_err(|_| Malformed("no array"))?;
    Ok(Datum::Array(Box::new(array)))
}

fn get_text(input: &mut &[u8]) -> Result<Box<str>, Malformed> {
    String::from_utf8(get_bytes(input)?).map(String::into_boxed_str).map_err(|_| Malformed("text is not UTF-8"))
}

fn get_int(input: &mut &[u8]) -> Result<i64, Malformed> {
    let tag = take(input, 1)?[0];
    let (negative, count) = if tag >= 0x80 { (false, tag - 0x80) } else { (true, 0x7f - tag) };
    if count > 8 {
        return Err(Malformed("integer too long"));
    }
    let bytes = take(input, usize::from(count))?;
    let start = if negative { -1i64 } else { 0 };
    let value = bytes.iter().fold(start, |value, byte| value << 8 | i64::from(*byte));
    if (value < 0) != negative {
        return Err(Malformed("integer out of range"));
    }
    Ok(value)
}

fn get_bytes(input: &mut &[u8]) -> Result<Vec<u8>, Malformed> {
    let mut out = Vec::new();
    loop {
        let Some(at) = input.iter().position(|b| *b == 0) else {
            return Err(Malformed("string without end"));
        };
        out.extend_from_slice(&input[..at]);
        let escape = input.get(at + 1).copied();
        *input = input.get(at + 2..).unwrap_or_default();
        match escape {
            Some(0xff) => out.push(0),
            Some(1) => return Ok(out),
            _ => return Err(Malformed("bad escape in a string")),
        }
    }
}

//! Arrays of all types: text, binary form, modifier. The elements are read and written by their type.
//!
//! # Layers
//!
//! 1. `input`: the text form in reading

mod input;

use bytes::{Buf, BufMut, BytesMut};

use crate::datum::{Array, Datum, DatumRef, Dimension, MAX_DIMENSIONS};
use crate::error::ValueError;
use crate::form::size;
use crate::integer::write;
use crate::letters::is_space;
use crate::row::{IoEnv, Modifier, TypeIo};
use crate::sql_type::SqlType;
use crate::sqlstate::SqlState;

pub(crate) const IO: TypeIo =
    TypeIo { input: |text, ty, env| input::parse(text, element(ty), env), output, receive, send };

/// `int2vector` and `oidvector`: numbers with blanks between them.
pub(crate) const VECTOR_IO: TypeIo =
    TypeIo { input: |text, ty, env| parse_vector(text, element(ty), env), output: output_vector, receive, send };

/// The modifier of the elements.
pub(crate) const MODIFIER: Modifier = Modifier {
    show: |row, typmod| {
        let element = SqlType { oid: row.element, typmod };
        format!("{}[]", element.name())
    },
    read: |row, written| {
        let element = SqlType::new(row.element).row();
        element.modifier.map_or(Ok(-1), |modifier| (modifier.read)(element, written))
    },
    apply: |value, ty, is_explicit| {
        let (Datum::Array(array), Some(modifier)) = (&value, element(ty).row().modifier) else { return Ok(value) };
        let apply = |value: &Datum| match value {
            Datum::Null => Ok(Datum::Null),
            value => (modifier.apply)(value.clone(), element(ty), is_explicit),
        };
        array.try_map(array.element(), apply).map(|array| Datum::Array(Box::new(array)))
    },
};

fn element(ty: SqlType) -> SqlType {
    ty.element().unwrap_or(SqlType::UNKNOWN)
}

fn parse_vector(text: &str, element: SqlType, env: &IoEnv<'_>) -> Result<Datum, ValueError> {
    let words = text.split(is_space).filter(|word| !word.is_empty());
    let values: Vec<Datum> =
        words.map(|word| (element.row().io.input)(word, element, env)).collect::<Result<_, _>>()?;
    Ok(Datum::Array(Box::new(Array::vector(element.oid, values))))
}

fn output_vector(value: &DatumRef<'_>, _: SqlType, _: &IoEnv<'_>, out: &mut BytesMut) {
    let Datum::Array(array) = value.other() else { return };
    for (at, value) in array.elements().iter().enumerate() {
        if at > 0 {
            out.put_u8(b' ');
        }
        write(value.borrow().int(), out);
    }
}

fn output(value: &DatumRef<'_>, ty: SqlType, env: &IoEnv<'_>, out: &mut BytesMut) {
    let Datum::Array(array) = value.other() else { return };
    if array.dimensions().iter().any(|dimension| dimension.lower != 1) {
        for dimension in array.dimensions() {
            let upper = i64::from(dimension.lower) + i64::from(dimension.length) - 1;
            out.extend_from_slice(format!("[{}:{upper}]", dimension.lower).as_bytes());
        }
        out.put_u8(b'=');
    }
    if array.elements().is_empty() {
        return out.extend_from_slice(b"{}");
    }
    write_level(array.dimensions(), &mut array.elements().iter(), element(ty), env, out);
}

/// Writes one dimension, and those in it.
fn write_level<'d>(
    dimensions: &[Dimension],
    elements: &mut impl Iterator<Item = &'d Datum>,
    element: SqlType,
    env: &IoEnv<'_>,
    out: &mut BytesMut,
) {
    let Some((dimension, inner)) = dimensions.split_first() else { return };
    out.put_u8(b'{');
    for at in 0..dimension.length {
        if at > 0 {
            out.put_u8(b',');
        }
        if !inner.is_empty() {
            write_level(inner, elements, element, env, out);
        } else if let Some(value) = elements.next() {
            write_element(value, element, env, out);
        }
    }
    out.put_u8(b'}');
}

fn write_element(value: &Datum, ty: SqlType, env: &IoEnv<'_>, out: &mut BytesMut) {
    if value.is_null() {
        return out.extend_from_slice(b"NULL");
    }
    let start = out.len();
    (ty.row().io.output)(&value.borrow(), ty, env, out);
    let text = out.get(start..).unwrap_or_default();
    let special = |b: &u8| matches!(b, b'"' | b'\\' | b'{' | b'}' | b',' | b' ' | b'\t'..=b'\r');
    if !text.is_empty() && !text.iter().any(special) && !text.eq_ignore_ascii_case(b"null") {
        return;
    }
    // A part that is split off would leave the buffer without room: each element would copy what is before it.
    let text = text.to_vec();
    out.truncate(start);
    out.put_u8(b'"');
    for byte in text {
        if matches!(byte, b'"' | b'\\') {
            out.put_u8(b'\\');
        }
        out.put_u8(byte);
    }
    out.put_u8(b'"');
}

fn send(value: &DatumRef<'_>, ty: SqlType, env: &IoEnv<'_>, out: &mut BytesMut) {
    let Datum::Array(array) = value.other() else { return };
    let element = element(ty);
    out.put_i32(size(array.dimensions().len()));
    out.put_i32(i32::from(array.elements().iter().any(Datum::is_null)));
    out.put_u32(element.oid.0);
    for dimension in array.dimensions() {
        out.put_i32(dimension.length);
        out.put_i32(dimension.lower);
    }
    for value in array.elements() {
        if value.is_null() {
            out.put_i32(-1);
            continue;
        }
        let at = out.len();
        out.put_i32(0);
        (element.row().io.send)(&value.borrow(), element, env, out);
        let length = size(out.len() - at - 4);
        if let Some(place) = out.get_mut(at..at + 4) {
            place.copy_from_slice(&length.to_be_bytes());
        }
    }
}

fn cut_short() -> ValueError {
    ValueError::new(SqlState::PROTOCOL_VIOLATION, "insufficient data left in message")
}

fn receive(mut bytes: &[u8], ty: SqlType, env: &IoEnv<'_>) -> Result<Datum, ValueError> {
    let bad = |message: String| ValueError::new(SqlState::INVALID_BINARY_REPRESENTATION, message);
    let element = element(ty);
    let count = bytes.try_get_i32().map_err(|_| cut_short())?;
    match usize::try_from(count) {
        Err(_) => return Err(bad(format!("invalid number of dimensions: {count}"))),
        Ok(count) if count > MAX_DIMENSIONS => return Err(crate::datum::too_many_dimensions(count)),
        Ok(_) => {}
    }
    let flags = bytes.try_get_i32().map_err(|_| cut_short())?;
    if !(0..=1).contains(&flags) {
        return Err(bad("invalid array flags".to_owned()));
    }
    let sent = bytes.try_get_u32().map_err(|_| cut_short())?;
    if sent != element.oid.0 {
        let name = |oid: u32| SqlType::from_oid(oid).map_or_else(|| oid.to_string(), SqlType::name);
        let (sent_name, wanted) = (name(sent), element.base_name());
        let message = format!(
            "binary data has array element type {sent} ({sent_name}) instead of expected {} ({wanted})",
            element.oid
        );
        return Err(ValueError::new(SqlState::DATATYPE_MISMATCH, message));
    }
    let mut dimensions = Vec::new();
    let mut total: usize = 1;
    for _ in 0..count {
        let length = bytes.try_get_i32().map_err(|_| cut_short())?;
        let lower = bytes.try_get_i32().map_err(|_| cut_short())?;
        total = total.saturating_mul(usize::try_from(length).unwrap_or(usize::MAX));
        dimensions.push(Dimension { length, lower });
    }
    // Each element takes four bytes at least, so a count that lies does not reserve memory.
    if count > 0 && total > bytes.len() / 4 {
        Array::check_dimensions(&dimensions)?;
        return Err(cut_short());
    }
    let mut elements = Vec::with_capacity(if count == 0 { 0 } else { total });
    for _ in 0..elements.capacity() {
        elements.push(receive_element(&mut bytes, element, env)?);
    }
    if !bytes.is_empty() {
        return Err(bad("incorrect binary data format".to_owned()));
    }
    Array::new(element.oid, dimensions, elements).map(|array| Datum::Array(Box::new(array)))
}

fn receive_element(bytes: &mut &[u8], element: SqlType, env: &IoEnv<'_>) -> Result<Datum, ValueError> {
    let length = bytes.try_get_i32().map_err(|_| cut_short())?;
    if length == -1 {
        return Ok(Datum::Null);
    }
    let length = usize::try_from(length).map_err(|_| cut_short())?;
    let (value, rest) = bytes.split_at_checked(length).ok_or_else(cut_short)?;
    *bytes = rest;
    (element.row().io.receive)(value, element, env)
}

//! Anonymous rows: `(1,"a b",)`. They occur in results only.

use bytes::{BufMut, BytesMut};

use crate::datum::{Datum, DatumRef};
use crate::error::ValueError;
use crate::form::size;
use crate::row::{IoEnv, TypeIo};
use crate::sql_type::SqlType;
use crate::sqlstate::SqlState;
use crate::utf8::utf8;

pub(crate) const IO: TypeIo =
    TypeIo { input: |_, _, _| Err(no_input()), output, receive: |_, _, _| Err(no_input()), send };

fn no_input() -> ValueError {
    let message = "input of anonymous composite types is not implemented";
    ValueError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
}

fn output(value: &DatumRef<'_>, _: SqlType, env: &IoEnv<'_>, out: &mut BytesMut) {
    let Datum::Record(record) = value.other() else { return };
    out.extend_from_slice(b"(");
    for (at, (ty, field)) in record.fields().iter().enumerate() {
        if at > 0 {
            out.extend_from_slice(b",");
        }
        if field.is_null() {
            continue;
        }
        let mut text = BytesMut::new();
        (ty.row().io.output)(&field.borrow(), *ty, env, &mut text);
        // The text forms are UTF-8.
        write_field(utf8(&text).unwrap_or_default(), out);
    }
    out.extend_from_slice(b")");
}

/// A field, in quotes if it is empty or has characters with a meaning.
fn write_field(text: &str, out: &mut BytesMut) {
    let special = |b: u8| matches!(b, b'"' | b'\\' | b'(' | b')' | b',' | b' ' | b'\t'..=b'\r');
    if !text.is_empty() && !text.bytes().any(special) {
        return out.extend_from_slice(text.as_bytes());
    }
    out.extend_from_slice(b"\"");
    for byte in text.bytes() {
        if matches!(byte, b'"' | b'\\') {
            out.put_u8(byte);
        }
        out.put_u8(byte);
    }
    out.extend_from_slice(b"\"");
}

fn send(value: &DatumRef<'_>, _: SqlType, env: &IoEnv<'_>, out: &mut BytesMut) {
    let Datum::Record(record) = value.other() else { return };
    out.put_i32(size(record.fields().len()));
    for (ty, field) in record.fields() {
        out.put_u32(ty.oid.0);
        if field.is_null() {
            out.put_i32(-1);
            continue;
        }
        let at = out.len();
        out.put_i32(0);
        (ty.row().io.send)(&field.borrow(), *ty, env, out);
        let length = size(out.len() - at - 4);
        if let Some(place) = out.get_mut(at..at + 4) {
            place.copy_from_slice(&length.to_be_bytes());
        }
    }
}

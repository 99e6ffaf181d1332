//! `bytea`.

use bytes::BytesMut;

use crate::bytea_text::{parse_bytea, write_escaped, write_hex};
use crate::datum::{Datum, DatumRef};
use crate::row::{IoEnv, TypeIo};
use crate::sql_type::SqlType;

pub(crate) const IO: TypeIo = TypeIo {
    input: |text, _, _| parse_bytea(text).map(|bytes| Datum::Bytes(bytes.into())),
    output: |value, _, env, out| match env.style.escapes_bytes {
        true => write_escaped(value.bytes(), out),
        false => write_hex(value.bytes(), out),
    },
    receive: |bytes, _, _| Ok(Datum::Bytes(bytes.into())),
    send,
};

fn send(value: &DatumRef<'_>, _: SqlType, _: &IoEnv<'_>, out: &mut BytesMut) {
    out.extend_from_slice(value.bytes());
}

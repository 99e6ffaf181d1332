//! `uuid`.

use bytes::BytesMut;

use crate::datum::{Datum, DatumRef};
use crate::row::{IoEnv, TypeIo};
use crate::sql_type::SqlType;
use crate::uuid::Uuid;

pub(crate) const IO: TypeIo = TypeIo {
    input: |text, _, _| Uuid::parse(text).map(Datum::Uuid),
    output,
    receive: |bytes, _, _| Uuid::from_binary(bytes).map(Datum::Uuid),
    send,
};

fn output(value: &DatumRef<'_>, _: SqlType, _: &IoEnv<'_>, out: &mut BytesMut) {
    if let Datum::Uuid(uuid) = value.other() {
        out.extend_from_slice(uuid.to_string().as_bytes());
    }
}

fn send(value: &DatumRef<'_>, _: SqlType, _: &IoEnv<'_>, out: &mut BytesMut) {
    if let Datum::Uuid(uuid) = value.other() {
        out.extend_from_slice(uuid.as_bytes());
    }
}

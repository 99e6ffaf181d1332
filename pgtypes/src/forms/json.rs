//! `json`, which is kept as a text, and `jsonb`.

use bytes::BytesMut;

use super::string;
use crate::datum::{Datum, DatumRef};
use crate::json::{Json, Jsonb};
use crate::row::{IoEnv, TypeIo};
use crate::sql_type::SqlType;

pub(crate) const JSON_IO: TypeIo = TypeIo {
    input: |text, _, _| Json::parse(text).map(|json| Datum::Text(json.into_text())),
    receive: |bytes, _, _| Json::from_binary(bytes).map(|json| Datum::Text(json.into_text())),
    ..string::IO
};

pub(crate) const JSONB_IO: TypeIo = TypeIo {
    input: |text, _, _| Jsonb::parse(text).map(|json| Datum::Jsonb(Box::new(json))),
    output,
    receive: |bytes, _, _| Jsonb::from_binary(bytes).map(|json| Datum::Jsonb(Box::new(json))),
    send,
};

fn output(value: &DatumRef<'_>, _: SqlType, _: &IoEnv<'_>, out: &mut BytesMut) {
    if let Datum::Jsonb(json) = value.other() {
        let mut text = String::new();
        json.write_text(&mut text);
        out.extend_from_slice(text.as_bytes());
    }
}

fn send(value: &DatumRef<'_>, _: SqlType, _: &IoEnv<'_>, out: &mut BytesMut) {
    if let Datum::Jsonb(json) = value.other() {
        out.extend_from_slice(&json.to_binary());
    }
}

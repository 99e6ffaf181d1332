//! `regclass`, `regtype` and the like: OIDs that are read and written as names.

use bytes::BytesMut;

use super::integer::OID_IO;
use crate::datum::{Datum, DatumRef};
use crate::error::ValueError;
use crate::integer::write;
use crate::oid::Oid;
use crate::row::{IoEnv, TypeIo};
use crate::sql_type::SqlType;

pub(crate) const IO: TypeIo = TypeIo { input, output, ..OID_IO };

fn input(text: &str, ty: SqlType, env: &IoEnv<'_>) -> Result<Datum, ValueError> {
    if text == "-" {
        return Ok(Datum::Int(0));
    }
    if text.bytes().next().is_some_and(|b| b.is_ascii_digit()) && text.bytes().all(|b| b.is_ascii_digit()) {
        return (OID_IO.input)(text, SqlType::OID, env);
    }
    env.names.find(ty, text).map(|oid| Datum::Int(oid.0.into()))
}

fn output(value: &DatumRef<'_>, ty: SqlType, env: &IoEnv<'_>, out: &mut BytesMut) {
    let oid = Oid(u32::try_from(value.int()).unwrap_or(0));
    match env.names.show(ty, oid) {
        _ if oid == Oid::NONE => out.extend_from_slice(b"-"),
        Some(name) => out.extend_from_slice(name.as_bytes()),
        None => write(value.int(), out),
    }
}

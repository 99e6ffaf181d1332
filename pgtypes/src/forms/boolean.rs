//! `boolean`.

use bytes::{BufMut, BytesMut};

use crate::boolean::parse;
use crate::datum::{Datum, DatumRef};
use crate::form::fixed;
use crate::row::{IoEnv, TypeIo};
use crate::sql_type::SqlType;

pub(crate) const IO: TypeIo = TypeIo {
    input: |text, _, _| parse(text).map(Datum::Bool),
    output: |value, _, _, out| out.extend_from_slice(if *value == DatumRef::Bool(true) { b"t" } else { b"f" }),
    receive: |bytes, _, _| Ok(Datum::Bool(fixed::<1>(bytes)?[0] != 0)),
    send,
};

fn send(value: &DatumRef<'_>, _: SqlType, _: &IoEnv<'_>, out: &mut BytesMut) {
    out.put_u8(u8::from(*value == DatumRef::Bool(true)));
}

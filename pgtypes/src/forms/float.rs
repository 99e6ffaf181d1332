//! `real` and `double precision`.

use bytes::{BufMut, BytesMut};

use crate::datum::Datum;
use crate::float::{narrow, parse_float, parse_float4, show_float4_with, show_with};
use crate::form::fixed;
use crate::row::TypeIo;

pub(crate) const FLOAT8_IO: TypeIo = TypeIo {
    input: |text, _, _| parse_float(text).map(Datum::Float),
    output: |value, _, env, out| out.extend_from_slice(show_with(value.float(), env.style.float_digits).as_bytes()),
    receive: |bytes, _, _| Ok(Datum::Float(f64::from_be_bytes(fixed(bytes)?))),
    send: |value, _, _, out| out.put_f64(value.float()),
};

pub(crate) const FLOAT4_IO: TypeIo = TypeIo {
    input: |text, _, _| parse_float4(text).map(|value| Datum::Float(value.into())),
    output: |value, _, env, out| {
        let shown = show_float4_with(narrow(value.float()), env.style.float_digits);
        out.extend_from_slice(shown.as_bytes());
    },
    receive: |bytes, _, _| Ok(Datum::Float(f32::from_be_bytes(fixed(bytes)?).into())),
    send: |value, _, _, out: &mut BytesMut| out.put_f32(narrow(value.float())),
};

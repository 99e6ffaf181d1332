//! `timestamp with time zone`: its forms.

use bytes::BufMut;

use crate::datum::Datum;
use crate::error::ValueError;
use crate::form::fixed;
use crate::row::TypeIo;
use crate::sqlstate::SqlState;
use crate::timestamp;

pub(crate) const TIMESTAMPTZ_IO: TypeIo = TypeIo {
    input: |text, _, env| timestamp::parse(text, env.zone, env.now).map(Datum::Int),
    output: |value, _, env, out| out.extend_from_slice(timestamp::format(value.int(), env.zone).as_bytes()),
    receive: |bytes, _, _| {
        let micros = i64::from_be_bytes(fixed(bytes)?);
        if !timestamp::in_range(micros) {
            return Err(ValueError::new(SqlState::DATETIME_FIELD_OVERFLOW, "timestamp out of range"));
        }
        Ok(Datum::Int(micros))
    },
    send: |value, _, _, out| out.put_i64(value.int()),
};

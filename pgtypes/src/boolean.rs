//! `boolean`: its forms.

use bytes::{BufMut, BytesMut};

use crate::datum::{Datum, DatumRef};
use crate::error::ValueError;
use crate::form::{fixed, invalid};
use crate::letters::is_space;
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

/// Reads a boolean: `true`, `yes`, `on`, `1` and their opposites, or a prefix that is not ambiguous.
pub(crate) fn parse(text: &str) -> Result<bool, ValueError> {
    let word = text.trim_matches(is_space).to_ascii_lowercase();
    let is_prefix = |full: &str, least: usize| word.len() >= least && full.starts_with(&word);
    if is_prefix("true", 1) || is_prefix("yes", 1) || word == "on" || word == "1" {
        Ok(true)
    } else if is_prefix("false", 1) || is_prefix("no", 1) || is_prefix("off", 2) || word == "0" {
        Ok(false)
    } else {
        Err(invalid("boolean", text))
    }
}

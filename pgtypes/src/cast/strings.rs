//! Casts between strings, and of booleans and numbers to them.

use super::row::mismatch;
use crate::datum::{Datum, unpadded};
use crate::error::ValueError;
use crate::row::IoEnv;
use crate::sql_type::SqlType;
use crate::wire;

pub(super) fn bool_to_text(value: Datum, to: SqlType, _: &IoEnv<'_>) -> Result<Datum, ValueError> {
    let text: Box<str> = if value == Datum::Bool(true) { "true" } else { "false" }.into();
    Ok(if to.oid == SqlType::BPCHAR.oid { Datum::Padded(text) } else { Datum::Text(text) })
}

pub(super) fn to_padded(value: Datum, _: SqlType, _: &IoEnv<'_>) -> Result<Datum, ValueError> {
    if let Datum::Text(text) = value { Ok(Datum::Padded(text)) } else { Err(mismatch()) }
}

pub(super) fn from_padded(value: Datum, _: SqlType, _: &IoEnv<'_>) -> Result<Datum, ValueError> {
    if let Datum::Padded(text) = value { Ok(Datum::Text(unpadded(&text).into())) } else { Err(mismatch()) }
}

pub(super) fn padded_to_name(value: Datum, to: SqlType, env: &IoEnv<'_>) -> Result<Datum, ValueError> {
    let Datum::Padded(text) = value else { return Err(mismatch()) };
    wire::parse(to, unpadded(&text), env)
}

/// The code of a character.
pub(super) fn char_to_int(value: Datum, _: SqlType, _: &IoEnv<'_>) -> Result<Datum, ValueError> {
    let Datum::Text(text) = value else { return Err(mismatch()) };
    Ok(Datum::Int(text.chars().next().map_or(0, |c| i64::from(u32::from(c)))))
}

/// The character of a code.
pub(super) fn int_to_char(value: Datum, _: SqlType, _: &IoEnv<'_>) -> Result<Datum, ValueError> {
    let Datum::Int(code) = value else { return Err(mismatch()) };
    let Ok(byte) = i8::try_from(code) else {
        let message = "\"char\" out of range";
        return Err(ValueError::new(crate::sqlstate::SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message));
    };
    let text = if byte == 0 { String::new() } else { char::from(byte.cast_unsigned()).to_string() };
    Ok(Datum::Text(text.into()))
}

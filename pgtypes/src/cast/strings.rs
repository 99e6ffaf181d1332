//! Casts between strings, and of booleans and numbers to them.

use super::row::mismatch;
use crate::datum::{Datum, unpadded};
use crate::error::ValueError;
use crate::forms::string::{byte_of_char, char_of_byte, char_text};
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

/// The text of a `"char"`.
pub(super) fn char_to_text(value: Datum, to: SqlType, _: &IoEnv<'_>) -> Result<Datum, ValueError> {
    let Datum::Text(value) = value else { return Err(mismatch()) };
    let text = char_text(&value).into_boxed_str();
    Ok(if to.oid == SqlType::BPCHAR.oid { Datum::Padded(text) } else { Datum::Text(text) })
}

/// The code of a `"char"`, with a sign.
pub(super) fn char_to_int(value: Datum, _: SqlType, _: &IoEnv<'_>) -> Result<Datum, ValueError> {
    let Datum::Text(value) = value else { return Err(mismatch()) };
    Ok(Datum::Int(byte_of_char(&value).cast_signed().into()))
}

/// The `"char"` of a code.
pub(super) fn int_to_char(value: Datum, _: SqlType, _: &IoEnv<'_>) -> Result<Datum, ValueError> {
    let Datum::Int(code) = value else { return Err(mismatch()) };
    let Ok(byte) = i8::try_from(code) else {
        let message = "\"char\" out of range";
        return Err(ValueError::new(crate::sqlstate::SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message));
    };
    Ok(char_of_byte(byte.cast_unsigned()))
}

//! Integers in texts.

use crate::error::ValueError;
use crate::form::invalid;
use crate::letters::is_space;
use crate::sqlstate::SqlState;

/// Reads an integer between two bounds. 22P02 for a text that is none, 22003 beyond the bounds.
pub(crate) fn parse_int(text: &str, (low, high): (i64, i64), type_name: &str) -> Result<i64, ValueError> {
    let body = text.trim_matches(is_space);
    let digits = body.strip_prefix(['+', '-']).unwrap_or(body);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(invalid(type_name, text));
    }
    match body.parse::<i64>() {
        Ok(value) if (low..=high).contains(&value) => Ok(value),
        _ => Err(out_of_range(type_name, text)),
    }
}

pub(crate) fn out_of_range(type_name: &str, text: &str) -> ValueError {
    let message = format!("value \"{text}\" is out of range for type {type_name}");
    ValueError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message)
}

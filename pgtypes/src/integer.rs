//! Integers: their ranges and digits.

use bytes::BytesMut;

use crate::error::ValueError;
use crate::form::invalid;
use crate::letters::is_space;
use crate::sql_type::SqlType;
use crate::sqlstate::SqlState;

/// Reads an integer between two bounds. 22P02 for a text that is none, 22003 beyond the bounds, whatever follows the
/// digits.
pub(crate) fn parse_int(text: &str, (low, high): (i64, i64), type_name: &str) -> Result<i64, ValueError> {
    let body = text.trim_matches(is_space);
    let unsigned = body.strip_prefix(['+', '-']).unwrap_or(body);
    let end = unsigned.find(|c: char| !c.is_ascii_digit()).unwrap_or(unsigned.len());
    let sign = body.len() - unsigned.len();
    if end == 0 {
        return Err(invalid(type_name, text));
    }
    match body[..sign + end].parse::<i64>() {
        Ok(value) if (low..=high).contains(&value) && end == unsigned.len() => Ok(value),
        Ok(value) if (low..=high).contains(&value) => Err(invalid(type_name, text)),
        _ => Err(out_of_range(type_name, text)),
    }
}

pub(crate) fn out_of_range(type_name: &str, text: &str) -> ValueError {
    let message = format!("value \"{text}\" is out of range for type {type_name}");
    ValueError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message)
}

/// The bounds of an integer type.
pub fn int_range(ty: SqlType) -> (i64, i64) {
    match ty.base() {
        SqlType::INT2 => (i64::from(i16::MIN), i64::from(i16::MAX)),
        SqlType::INT4 => (i64::from(i32::MIN), i64::from(i32::MAX)),
        _ => (i64::MIN, i64::MAX),
    }
}

/// Appends the digits of an integer.
pub fn write(value: i64, out: &mut BytesMut) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    let mut rest = value.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + u8::try_from(rest % 10).unwrap_or(0);
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        out.extend_from_slice(b"-");
    }
    out.extend_from_slice(&digits[at..]);
}

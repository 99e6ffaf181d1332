//! Text input: PostgreSQL's input functions of the supported types, with their errors.

use bytes::Bytes;

use crate::datum::Datum;
use crate::error::ValueError;
use crate::letters::is_space;
use crate::sql_type::SqlType;
use crate::sqlstate::SqlState;
use crate::timestamp::{self, Now, TimeZone};

/// Checks text from the client: valid UTF-8 without NUL, else 22021 with the first bad byte as in PostgreSQL.
pub fn utf8(bytes: &[u8]) -> Result<&str, ValueError> {
    let bad = match std::str::from_utf8(bytes) {
        Ok(text) => match bytes.iter().position(|b| *b == 0) {
            None => return Ok(text),
            Some(at) => &bytes[at..=at],
        },
        Err(error) => {
            let start = error.valid_up_to();
            let end = (start + sequence_length(bytes[start])).min(bytes.len());
            &bytes[start..end]
        }
    };
    let shown: Vec<String> = bad.iter().map(|b| format!("0x{b:02x}")).collect();
    let message = format!("invalid byte sequence for encoding \"UTF8\": {}", shown.join(" "));
    Err(ValueError::new(SqlState::CHARACTER_NOT_IN_REPERTOIRE, message))
}

/// The length of the UTF-8 sequence that starts with `lead`.
fn sequence_length(lead: u8) -> usize {
    match lead {
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf7 => 4,
        _ => 1,
    }
}

/// Parses the text form of a type. Does not check the limit of `varchar(n)`, which is left to the cast or assignment.
pub fn parse(ty: SqlType, text: &str, zone: &TimeZone, now: Now) -> Result<Datum, ValueError> {
    match ty {
        SqlType::Bool => parse_bool(text).map(Datum::Bool),
        SqlType::Int2 | SqlType::Int4 | SqlType::Int8 => parse_int(ty, text).map(Datum::Int),
        SqlType::Float8 => parse_float(text).map(Datum::Float),
        SqlType::Text | SqlType::Varchar(_) | SqlType::Void | SqlType::Unknown => Ok(Datum::Text(text.into())),
        SqlType::Bytea => parse_bytea(text).map(Datum::Bytes),
        SqlType::Timestamptz => timestamp::parse(text, zone, now).map(Datum::Timestamp),
    }
}

fn invalid(ty: SqlType, text: &str) -> ValueError {
    let message = format!("invalid input syntax for type {}: \"{text}\"", ty.base_name());
    ValueError::new(SqlState::INVALID_TEXT_REPRESENTATION, message)
}

fn parse_bool(text: &str) -> Result<bool, ValueError> {
    let word = text.trim_matches(is_space).to_ascii_lowercase();
    let is_prefix = |full: &str, least: usize| word.len() >= least && full.starts_with(&word);
    if is_prefix("true", 1) || is_prefix("yes", 1) || word == "on" || word == "1" {
        Ok(true)
    } else if is_prefix("false", 1) || is_prefix("no", 1) || is_prefix("off", 2) || word == "0" {
        Ok(false)
    } else {
        Err(invalid(SqlType::Bool, text))
    }
}

/// The bounds of an integer type.
pub fn int_range(ty: SqlType) -> (i64, i64) {
    match ty {
        SqlType::Int2 => (i64::from(i16::MIN), i64::from(i16::MAX)),
        SqlType::Int4 => (i64::from(i32::MIN), i64::from(i32::MAX)),
        _ => (i64::MIN, i64::MAX),
    }
}

fn parse_int(ty: SqlType, text: &str) -> Result<i64, ValueError> {
    let body = text.trim_matches(is_space);
    let digits = body.strip_prefix(['+', '-']).unwrap_or(body);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(invalid(ty, text));
    }
    let (low, high) = int_range(ty);
    match body.parse::<i64>() {
        Ok(value) if (low..=high).contains(&value) => Ok(value),
        _ => {
            let message = format!("value \"{text}\" is out of range for type {}", ty.base_name());
            Err(ValueError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message))
        }
    }
}

/// Parses a float. Underflow and overflow are 22003.
pub fn parse_float(text: &str) -> Result<f64, ValueError> {
    let body = text.trim_matches(is_space);
    let unsigned = body.strip_prefix(['+', '-']).unwrap_or(body);
    let negative = body.starts_with('-');
    if unsigned.eq_ignore_ascii_case("infinity") || unsigned.eq_ignore_ascii_case("inf") {
        return Ok(if negative { f64::NEG_INFINITY } else { f64::INFINITY });
    }
    if unsigned.eq_ignore_ascii_case("nan") {
        return Ok(f64::NAN);
    }
    if !unsigned.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-')) {
        return Err(invalid(SqlType::Float8, text));
    }
    let value: f64 = body.parse().map_err(|_| invalid(SqlType::Float8, text))?;
    let mantissa = unsigned.split(['e', 'E']).next().unwrap_or(unsigned);
    let underflowed = value == 0.0 && mantissa.bytes().any(|b| matches!(b, b'1'..=b'9'));
    if value.is_infinite() || underflowed {
        let message = format!("\"{body}\" is out of range for type double precision");
        return Err(ValueError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message));
    }
    Ok(value)
}

fn parse_bytea(text: &str) -> Result<Bytes, ValueError> {
    match text.strip_prefix("\\x") {
        Some(hex) => parse_hex(hex),
        None => parse_escaped(text),
    }
}

fn parse_hex(hex: &str) -> Result<Bytes, ValueError> {
    let mut out = Vec::with_capacity(hex.len() / 2);
    let mut chars = hex.chars().filter(|c| !matches!(c, ' ' | '\n' | '\t' | '\r'));
    let digit = |c: char| {
        c.to_digit(16).and_then(|d| u8::try_from(d).ok()).ok_or_else(|| {
            ValueError::new(SqlState::INVALID_PARAMETER_VALUE, format!("invalid hexadecimal digit: \"{c}\""))
        })
    };
    while let Some(high) = chars.next() {
        let high = digit(high)?;
        let Some(low) = chars.next() else {
            return Err(ValueError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                "invalid hexadecimal data: odd number of digits",
            ));
        };
        out.push(high << 4 | digit(low)?);
    }
    Ok(out.into())
}

/// The escape form: a backslash precedes another backslash or three octal digits.
fn parse_escaped(text: &str) -> Result<Bytes, ValueError> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        rest = match (first, tail) {
            (b'\\', [b'\\', after @ ..]) => {
                out.push(b'\\');
                after
            }
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', after @ ..]) => {
                out.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                after
            }
            (b'\\', _) => {
                return Err(ValueError::new(
                    SqlState::INVALID_TEXT_REPRESENTATION,
                    "invalid input syntax for type bytea",
                ));
            }
            (byte, after) => {
                out.push(byte);
                after
            }
        };
    }
    Ok(out.into())
}

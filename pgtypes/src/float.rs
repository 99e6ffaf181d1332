//! Floats in texts.

use std::fmt::Write;

use crate::error::ValueError;
use crate::form::invalid;
use crate::hex_float::HexFloat;
use crate::letters::is_space;
use crate::shortest::{digits, digits_float4};
use crate::sqlstate::SqlState;

const DOUBLE: &str = "double precision";
const REAL: &str = "real";

/// The nearest `real`.
pub fn narrow(value: f64) -> f32 {
    value as f32
}

/// Parses a `double precision`. Underflow and overflow are 22003.
pub fn parse_float(text: &str) -> Result<f64, ValueError> {
    let value = match hexadecimal(text) {
        Some((hex, sign)) => sign * hex.nearest(53, -1074),
        None => parse(text, DOUBLE)?,
    };
    check(text, value.is_infinite(), value == 0.0, DOUBLE).map(|()| value)
}

/// Parses a `real`.
pub fn parse_float4(text: &str) -> Result<f32, ValueError> {
    if let Some((hex, sign)) = hexadecimal(text) {
        let value = narrow(sign * hex.nearest(24, -149));
        return check(text, value.is_infinite(), value == 0.0, REAL).map(|()| value);
    }
    parse(text, REAL)?;
    let body = text.trim_matches(is_space);
    let unsigned = body.strip_prefix(['+', '-']).unwrap_or(body);
    let value: f32 = match special(unsigned) {
        Some(value) if body.starts_with('-') => narrow(-value),
        Some(value) => narrow(value),
        None => body.parse().map_err(|_| invalid(REAL, text))?,
    };
    check(text, value.is_infinite(), value == 0.0, REAL).map(|()| value)
}

/// A hexadecimal number without its sign, and the sign as a factor.
fn hexadecimal(text: &str) -> Option<(HexFloat, f64)> {
    let body = text.trim_matches(is_space);
    let number = HexFloat::parse(body.strip_prefix(['+', '-']).unwrap_or(body))?;
    Some((number, if body.starts_with('-') { -1.0 } else { 1.0 }))
}

fn special(unsigned: &str) -> Option<f64> {
    if unsigned.eq_ignore_ascii_case("infinity") || unsigned.eq_ignore_ascii_case("inf") {
        return Some(f64::INFINITY);
    }
    unsigned.eq_ignore_ascii_case("nan").then_some(f64::NAN)
}

fn parse(text: &str, type_name: &str) -> Result<f64, ValueError> {
    let body = text.trim_matches(is_space);
    let unsigned = body.strip_prefix(['+', '-']).unwrap_or(body);
    if let Some(value) = special(unsigned) {
        return Ok(if body.starts_with('-') { -value } else { value });
    }
    if !unsigned.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-')) {
        return Err(invalid(type_name, text));
    }
    body.parse().map_err(|_| invalid(type_name, text))
}

/// 22003 if a number that was written with digits has become infinite or zero.
fn check(text: &str, is_infinite: bool, is_zero: bool, type_name: &str) -> Result<(), ValueError> {
    let body = text.trim_matches(is_space);
    let unsigned = body.strip_prefix(['+', '-']).unwrap_or(body);
    if special(unsigned).is_some() {
        return Ok(());
    }
    let is_written_as_zero = match HexFloat::parse(unsigned) {
        Some(hex) => hex.is_zero(),
        None => {
            let mantissa = unsigned.split(['e', 'E']).next().unwrap_or(unsigned);
            !mantissa.bytes().any(|b| matches!(b, b'1'..=b'9'))
        }
    };
    let underflowed = is_zero && !is_written_as_zero;
    if is_infinite || underflowed {
        let message = format!("\"{body}\" is out of range for type {type_name}");
        return Err(ValueError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message));
    }
    Ok(())
}

/// The shortest decimal that parses to the same `double precision`, in PostgreSQL's layout: scientific from 1e15 on and
/// below 1e-4, with a signed exponent of at least two digits.
pub fn show(value: f64) -> String {
    layout(&digits(value), 15).unwrap_or_else(|| not_finite(value))
}

/// The same of a `real`: scientific from 1e6 on.
pub fn show_float4(value: f32) -> String {
    layout(&digits_float4(value), 6).unwrap_or_else(|| not_finite(value.into()))
}

/// A `double precision` with `extra_float_digits`: the shortest exact form above 0, else 15 and that many digits.
pub fn show_with(value: f64, extra: i8) -> String {
    if extra > 0 { show(value) } else { rounded(value, 15 + i32::from(extra)) }
}

/// A `real` with `extra_float_digits`: the shortest exact form above 0, else 6 and that many digits.
pub fn show_float4_with(value: f32, extra: i8) -> String {
    if extra > 0 { show_float4(value) } else { rounded(value.into(), 6 + i32::from(extra)) }
}

/// At most so many digits, at least one, without zeros at the end: C's `%g`.
fn rounded(value: f64, digits: i32) -> String {
    let digits = digits.max(1);
    let places = usize::try_from(digits - 1).unwrap_or(0);
    let scientific = format!("{value:.places$e}");
    let short = scientific.split_once('e').map(|(mantissa, exponent)| {
        let mantissa =
            if mantissa.contains('.') { mantissa.trim_end_matches('0').trim_end_matches('.') } else { mantissa };
        format!("{mantissa}e{exponent}")
    });
    short.and_then(|short| layout(&short, digits)).unwrap_or_else(|| not_finite(value))
}

fn not_finite(value: f64) -> String {
    let name = if value.is_nan() {
        "NaN"
    } else if value > 0.0 {
        "Infinity"
    } else {
        "-Infinity"
    };
    name.to_owned()
}

/// The layout of digits in the form of `{:e}`. `None` for what has no digits.
fn layout(scientific: &str, limit: i32) -> Option<String> {
    let (mantissa, exponent) = scientific.split_once('e')?;
    let exponent: i32 = exponent.parse().ok()?;
    if (-4..limit).contains(&exponent) {
        return Some(fixed(mantissa, exponent));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    let mut out = String::with_capacity(24);
    // Writing to a String cannot fail.
    let _ = write!(out, "{mantissa}e{sign}{:02}", exponent.unsigned_abs());
    Some(out)
}

/// `1.25` with exponent 1 as `12.5`.
fn fixed(mantissa: &str, exponent: i32) -> String {
    let mut out = String::with_capacity(24);
    let unsigned = mantissa.strip_prefix('-').unwrap_or(mantissa);
    if unsigned.len() < mantissa.len() {
        out.push('-');
    }
    let digits = unsigned.chars().filter(char::is_ascii_digit);
    let Ok(last) = usize::try_from(exponent) else {
        out.push_str("0.");
        out.extend((exponent + 1..0).map(|_| '0'));
        out.extend(digits);
        return out;
    };
    for (at, digit) in digits.enumerate() {
        if at == last + 1 {
            out.push('.');
        }
        out.push(digit);
    }
    let count = unsigned.len().saturating_sub(1).max(1);
    out.extend((count..=last).map(|_| '0'));
    out
}

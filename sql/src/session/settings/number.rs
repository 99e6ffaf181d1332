//! Values of settings that are numbers: integers, reals, times, and sizes in memory with their units. Pure.
//!
//! As in PostgreSQL an integer may be written as a decimal fraction, which is rounded, or in hexadecimal.

use crate::error::{SqlError, SqlState};
use pgtypes::float::show_with;

/// The units of sizes: their names and bytes, the largest first.
const UNITS: [(&str, f64); 5] =
    [("TB", 1_099_511_627_776.0), ("GB", 1_073_741_824.0), ("MB", 1_048_576.0), ("kB", 1024.0), ("B", 1.0)];

/// 22023 for a value of a setting.
pub(super) fn invalid(name: &str, value: &str) -> SqlError {
    let message = format!("invalid value for parameter \"{name}\": \"{value}\"");
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

/// Why a text is no time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BadTime {
    /// It does not begin with a number.
    NoNumber,
    /// The unit is not known.
    Unit,
    /// More milliseconds than 32 bits hold.
    TooLong,
}

/// Parses a time with an optional unit into milliseconds, which may be negative.
pub(super) fn parse_time(value: &str) -> Result<i32, BadTime> {
    let value = value.trim();
    let digits = value.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-')).unwrap_or(value.len());
    let (number, unit) = value.split_at(digits);
    let number = number.parse::<f64>().map_err(|_| BadTime::NoNumber)?;
    let factor = match unit.trim() {
        "us" => 0.001,
        "" | "ms" => 1.0,
        "s" => 1000.0,
        "min" => 60_000.0,
        "h" => 3_600_000.0,
        "d" => 86_400_000.0,
        _ => return Err(BadTime::Unit),
    };
    let millis = (number * factor).round_ties_even();
    if millis.abs() > f64::from(i32::MAX) {
        return Err(BadTime::TooLong);
    }
    #[expect(clippy::cast_possible_truncation, reason = "checked to be in range")]
    Ok(millis as i32)
}

/// Parses a time as [`parse_time`] does. `None` for what is none, or below 0.
pub(super) fn parse_millis(value: &str) -> Option<u64> {
    parse_time(value).ok().and_then(|millis| u64::try_from(millis).ok())
}

/// An integer from `low` to `high`.
pub(super) fn integer(name: &str, value: &str, (low, high): (i64, i64)) -> Result<String, SqlError> {
    let (number, unit) = split(value).ok_or_else(|| invalid(name, value))?;
    if !unit.is_empty() {
        return Err(invalid(name, value));
    }
    within(name, whole(name, value, number)?, (low, high), "").map(|number| number.to_string())
}

/// A real number from `low` to `high`.
pub(super) fn real(name: &str, value: &str, (low, high): (f64, f64)) -> Result<String, SqlError> {
    let number: f64 = value.trim().parse().map_err(|_| invalid(name, value))?;
    if !number.is_finite() {
        return Err(invalid(name, value));
    }
    if !(low..=high).contains(&number) {
        let show = |number| show_with(number, -9);
        let (number, low, high) = (show(number), show(low), show(high));
        let message = format!("{number} is outside the valid range for parameter \"{name}\" ({low} .. {high})");
        return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
    }
    Ok(show_with(number, -9))
}

/// A size in memory. A number without a unit counts blocks of `block` bytes, and so does the range.
pub(super) fn size(name: &str, value: &str, block: u32, range: (i64, i64)) -> Result<String, SqlError> {
    let (number, unit) = split(value).ok_or_else(|| invalid(name, value))?;
    let factor = match UNITS.iter().find(|(known, _)| *known == unit) {
        Some((_, bytes)) => bytes / f64::from(block),
        None if unit.is_empty() => 1.0,
        None => {
            let hint = "Valid units for this parameter are \"B\", \"kB\", \"MB\", \"GB\", and \"TB\".";
            return Err(invalid(name, value).hint(hint));
        }
    };
    let blocks = within(name, whole(name, value, number * factor)?, range, unit_of(block))?;
    Ok(show_size(blocks, block))
}

/// The unit of a setting that counts blocks, as `pg_settings` names it.
pub(super) fn unit_of(block: u32) -> &'static str {
    if block == 8192 { "8kB" } else { "kB" }
}

/// The blocks of a normalized size.
pub(super) fn blocks(text: &str, block: u32) -> i64 {
    let Some((number, unit)) = split(text) else { return 0 };
    let bytes = UNITS.iter().find(|(known, _)| *known == unit).map_or(f64::from(block), |(_, bytes)| *bytes);
    #[expect(clippy::cast_possible_truncation, reason = "a normalized size is below 2^31 blocks")]
    let blocks = (number * bytes / f64::from(block)) as i64;
    blocks
}

/// A size in the largest unit that divides it.
fn show_size(blocks: i64, block: u32) -> String {
    let bytes = blocks.saturating_mul(block.into());
    let (mut size, mut unit) = (bytes, "B");
    for larger in ["kB", "MB", "GB", "TB"] {
        if size <= 0 || size % 1024 != 0 {
            break;
        }
        (size, unit) = (size / 1024, larger);
    }
    if blocks > 0 { format!("{size}{unit}") } else { blocks.to_string() }
}

/// A number, and what is behind it. `None`: there is no number.
fn split(value: &str) -> Option<(f64, &str)> {
    let value = value.trim();
    let unsigned = value.strip_prefix(['-', '+']).unwrap_or(value);
    if let Some(hex) = unsigned.strip_prefix("0x").or_else(|| unsigned.strip_prefix("0X")) {
        let end = hex.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(hex.len());
        let number = u32::from_str_radix(&hex[..end], 16).ok().map(f64::from)?;
        return Some((if value.starts_with('-') { -number } else { number }, hex[end..].trim()));
    }
    let is_exponent = |at: usize| {
        let rest = unsigned[at + 1..].strip_prefix(['-', '+']).unwrap_or(&unsigned[at + 1..]);
        matches!(unsigned.as_bytes().get(at), Some(b'e' | b'E')) && rest.starts_with(|c: char| c.is_ascii_digit())
    };
    let digits = |text: &str| text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let mut end = digits(unsigned);
    if end < unsigned.len() && is_exponent(end) {
        let sign = usize::from(matches!(unsigned.as_bytes().get(end + 1), Some(b'-' | b'+')));
        let from = end + 1 + sign;
        end = from + digits(&unsigned[from..]);
    }
    let end = end + value.len() - unsigned.len();
    let number = value[..end].parse().ok()?;
    Some((number, value[end..].trim()))
}

/// A number rounded to an integer of 32 bits.
fn whole(name: &str, value: &str, number: f64) -> Result<i64, SqlError> {
    let number = number.round_ties_even();
    if number.abs() > f64::from(i32::MAX) {
        return Err(invalid(name, value).hint("Value exceeds integer range."));
    }
    #[expect(clippy::cast_possible_truncation, reason = "checked to be in range")]
    Ok(number as i64)
}

fn within(name: &str, number: i64, (low, high): (i64, i64), unit: &str) -> Result<i64, SqlError> {
    if (low..=high).contains(&number) {
        return Ok(number);
    }
    let space = if unit.is_empty() { "" } else { " " };
    let message =
        format!("{number}{space}{unit} is outside the valid range for parameter \"{name}\" ({low} .. {high})");
    Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message))
}

//! Values of settings that are numbers: integers, reals, and sizes in memory with their units. Pure.
//!
//! As in PostgreSQL an integer may be written as a decimal fraction, which is rounded, or in hexadecimal.

use super::table::Setting;
use super::value::invalid;
use crate::error::{SqlError, SqlState};
use pgtypes::float::show_with;

/// The units of sizes: their names and bytes, the largest first.
const UNITS: [(&str, f64); 5] =
    [("TB", 1_099_511_627_776.0), ("GB", 1_073_741_824.0), ("MB", 1_048_576.0), ("kB", 1024.0), ("B", 1.0)];

/// An integer from `low` to `high`.
pub(super) fn integer(setting: &Setting, value: &str, (low, high): (i64, i64)) -> Result<String, SqlError> {
    let (number, unit) = split(value).ok_or_else(|| invalid(setting, value))?;
    if !unit.is_empty() {
        return Err(invalid(setting, value));
    }
    within(setting, whole(setting, value, number)?, (low, high), "").map(|number| number.to_string())
}

/// A real number from `low` to `high`.
pub(super) fn real(setting: &Setting, value: &str, (low, high): (f64, f64)) -> Result<String, SqlError> {
    let number: f64 = value.trim().parse().map_err(|_| invalid(setting, value))?;
    if !number.is_finite() {
        return Err(invalid(setting, value));
    }
    if !(low..=high).contains(&number) {
        let show = |number| show_with(number, -9);
        let (number, low, high) = (show(number), show(low), show(high));
        let message =
            format!("{number} is outside the valid range for parameter \"{}\" ({low} .. {high})", setting.name);
        return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
    }
    Ok(show_with(number, -9))
}

/// A size in memory. A number without a unit counts blocks of `block` bytes, and so does the range.
pub(super) fn size(setting: &Setting, value: &str, block: u32, range: (i64, i64)) -> Result<String, SqlError> {
    let (number, unit) = split(value).ok_or_else(|| invalid(setting, value))?;
    let factor = match UNITS.iter().find(|(name, _)| *name == unit) {
        Some((_, bytes)) => bytes / f64::from(block),
        None if unit.is_empty() => 1.0,
        None => {
            let hint = "Valid units for this parameter are \"B\", \"kB\", \"MB\", \"GB\", and \"TB\".";
            return Err(invalid(setting, value).hint(hint));
        }
    };
    let blocks = within(setting, whole(setting, value, number * factor)?, range, unit_of(block))?;
    Ok(show_size(blocks, block))
}

/// The unit of a setting that counts blocks, as `pg_settings` names it.
pub(super) fn unit_of(block: u32) -> &'static str {
    if block == 8192 { "8kB" } else { "kB" }
}

/// The blocks of a normalized size.
pub(super) fn blocks(text: &str, block: u32) -> i64 {
    let Some((number, unit)) = split(text) else { return 0 };
    let bytes = UNITS.iter().find(|(name, _)| *name == unit).map_or(f64::from(block), |(_, bytes)| *bytes);
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
fn whole(setting: &Setting, value: &str, number: f64) -> Result<i64, SqlError> {
    let number = number.round_ties_even();
    if number.abs() > f64::from(i32::MAX) {
        return Err(invalid(setting, value).hint("Value exceeds integer range."));
    }
    #[expect(clippy::cast_possible_truncation, reason = "checked to be in range")]
    Ok(number as i64)
}

fn within(setting: &Setting, number: i64, (low, high): (i64, i64), unit: &str) -> Result<i64, SqlError> {
    if (low..=high).contains(&number) {
        return Ok(number);
    }
    let (name, space) = (setting.name, if unit.is_empty() { "" } else { " " });
    let message =
        format!("{number}{space}{unit} is outside the valid range for parameter \"{name}\" ({low} .. {high})");
    Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message))
}

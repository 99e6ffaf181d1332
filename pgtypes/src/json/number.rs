//! The numbers of `jsonb`: decimals with their scale, kept as normalised text.
//!
//! The text is an optional minus sign, digits without a leading zero, and a point with as many digits as the scale
//! says. Zero has no sign. Comparison and equality are by value: `1.0` equals `1`. The bounds are those of `numeric`.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use crate::error::ValueError;
use crate::sqlstate::SqlState;

/// The digits that `numeric` can have before its point.
const MAX_INTEGER_DIGITS: i64 = 131_072;
/// The digits that `numeric` can have after its point.
const MAX_SCALE: i64 = 16_383;
/// Exponents from here on overflow, whatever the digits are.
const MAX_EXPONENT: i64 = 1_073_741_823;

/// A decimal number with its scale.
#[derive(Clone)]
pub struct JsonNumber(Box<str>);

impl JsonNumber {
    /// Reads a number as JSON writes it: `-1.50e3` is `-1500`, `1e-2` is `0.01`. 22003 beyond the bounds of `numeric`.
    /// 22P02 if the text is not a number.
    pub fn parse(text: &str) -> Result<JsonNumber, ValueError> {
        let overflow = || ValueError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "value overflows numeric format");
        let (negative, unsigned) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = [whole, fraction].concat();
        let magnitude = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if !is_number(&digits) || !is_number(magnitude) {
            let message = format!("invalid input syntax for type numeric: \"{text}\"");
            return Err(ValueError::new(SqlState::INVALID_TEXT_REPRESENTATION, message));
        }
        // Too many digits for i64 overflow as well.
        let exponent: i64 = exponent.parse().map_err(|_| overflow())?;
        if exponent.abs() >= MAX_EXPONENT {
            return Err(overflow());
        }
        let length = |part: &str| i64::try_from(part.len()).unwrap_or(i64::MAX);
        let point = length(whole).saturating_add(exponent);
        let scale = length(fraction).saturating_sub(exponent).max(0);
        let significant = digits.trim_start_matches('0');
        let leading = length(&digits) - length(significant);
        if scale > MAX_SCALE || (!significant.is_empty() && point - leading > MAX_INTEGER_DIGITS) {
            return Err(overflow());
        }
        Ok(JsonNumber(layout(negative, significant, point - leading, scale).into()))
    }

    /// The normalised text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The number in `double precision`. 22003 if it is too large or too small.
    pub fn to_f64(&self) -> Result<f64, ValueError> {
        crate::float::parse_float(&self.0)
    }

    /// The nearest integer, halves away from zero. `None` out of the range of `i64`.
    pub fn to_i64(&self) -> Option<i64> {
        let (negative, whole, fraction) = self.parts();
        let whole: i128 = if whole.is_empty() { 0 } else { i128::from(whole.parse::<u64>().ok()?) };
        let rounded = whole + i128::from(fraction.bytes().next().is_some_and(|b| b >= b'5'));
        i64::try_from(if negative { -rounded } else { rounded }).ok()
    }

    /// Whether it is negative, the digits before the point without leading zeros, those after it without trailing ones.
    pub(super) fn parts(&self) -> (bool, &str, &str) {
        let (negative, unsigned) = match self.0.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, &*self.0),
        };
        let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
        (negative, whole.trim_start_matches('0'), fraction.trim_end_matches('0'))
    }
}

/// The text of digits without leading zeros, of which `point` precede the point. A negative `point` counts zeros.
fn layout(negative: bool, significant: &str, point: i64, scale: i64) -> String {
    let size = |count: i64| usize::try_from(count).unwrap_or(0);
    let scale = size(scale);
    let mut out = String::with_capacity(size(point) + scale + 3);
    if negative && !significant.is_empty() {
        out.push('-');
    }
    if significant.is_empty() || point <= 0 {
        out.push('0');
    }
    let (whole, fraction) = significant.split_at(size(point).min(significant.len()));
    out.push_str(whole);
    if !significant.is_empty() {
        out.extend(std::iter::repeat_n('0', size(point).saturating_sub(whole.len())));
    }
    if scale > 0 {
        out.push('.');
        let zeros = if significant.is_empty() { scale } else { size(-point) };
        out.extend(std::iter::repeat_n('0', zeros.min(scale)));
        out.push_str(fraction);
        let written = zeros.min(scale) + fraction.len();
        out.extend(std::iter::repeat_n('0', scale.saturating_sub(written)));
    }
    out
}

impl From<i64> for JsonNumber {
    fn from(value: i64) -> JsonNumber {
        JsonNumber(value.to_string().into())
    }
}

impl fmt::Display for JsonNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for JsonNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Ord for JsonNumber {
    fn cmp(&self, other: &JsonNumber) -> Ordering {
        let (negative, whole, fraction) = self.parts();
        let (other_negative, other_whole, other_fraction) = other.parts();
        match (negative, other_negative) {
            (false, true) => return Ordering::Greater,
            (true, false) => return Ordering::Less,
            _ => {}
        }
        let size = (whole.len(), whole, fraction).cmp(&(other_whole.len(), other_whole, other_fraction));
        if negative { size.reverse() } else { size }
    }
}

impl PartialOrd for JsonNumber {
    fn partial_cmp(&self, other: &JsonNumber) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for JsonNumber {
    fn eq(&self, other: &JsonNumber) -> bool {
        self.parts() == other.parts()
    }
}

impl Eq for JsonNumber {}

impl Hash for JsonNumber {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.parts().hash(state);
    }
}

//! The text form of `numeric`: what `numeric_in` accepts, what `numeric_out` prints.

use std::fmt;

use num_bigint::{BigInt, BigUint, Sign};
use num_traits::Zero;

use super::decimal;
use super::typmod::Typmod;
use super::value::{MAX_INTEGER_DIGITS, MAX_SCALE, Numeric, Repr, overflow};
use crate::error::ValueError;
use crate::letters::is_space;
use crate::sqlstate::SqlState;

/// Exponents that PostgreSQL refuses whatever the digits.
const EXPONENT_LIMIT: i64 = 1_073_741_823;

impl Numeric {
    /// Parses the text form. 22P02 for text that is no number, 22003 for one with too many digits.
    pub fn parse(text: &str) -> Result<Numeric, ValueError> {
        Numeric::parse_typed(text, None)
    }

    /// Parses the text form as a value of `numeric(p, s)`, as COPY does: the value is rounded first, so digits after
    /// the scale do not count as too many.
    pub fn parse_typed(text: &str, typmod: Option<Typmod>) -> Result<Numeric, ValueError> {
        let body = text.trim_start_matches(is_space);
        if let Some((value, rest)) = special(body) {
            if !rest.chars().all(is_space) {
                return Err(invalid(text));
            }
            return value.apply_typmod(typmod);
        }
        let (literal, rest) = Literal::scan(body, text)?;
        if !rest.chars().all(is_space) {
            return Err(invalid(text));
        }
        match typmod {
            None => literal.value(),
            Some(typmod) => literal.typed_value(typmod),
        }
    }

    /// The text form.
    pub fn to_text(&self) -> String {
        match &self.0 {
            Repr::NaN => "NaN".to_owned(),
            Repr::PosInfinity => "Infinity".to_owned(),
            Repr::NegInfinity => "-Infinity".to_owned(),
            Repr::Small { unscaled, scale } => {
                layout(*unscaled < 0, unscaled.unsigned_abs().to_string(), usize::from(*scale))
            }
            Repr::Big(big) => {
                layout(big.unscaled.sign() == Sign::Minus, big.unscaled.magnitude().to_string(), usize::from(big.scale))
            }
        }
    }
}

impl Numeric {
    /// Scientific notation with this many digits after the point; `None` for a value that is no number. The digits are
    /// rounded after the exponent is chosen, so they may start with 10.
    pub(super) fn to_scientific(&self, digits: usize) -> Option<String> {
        let (value, scale) = self.as_finite()?;
        let scale = i64::from(scale);
        let length = i64::try_from(decimal::count_digits(value.magnitude())).unwrap_or(i64::MAX);
        let exponent = if length == 0 { 0 } else { length - 1 - scale };
        // Digits behind the last one of the value are zeros.
        let own = usize::try_from(scale + exponent).unwrap_or(0);
        let exact = digits.min(own);
        let mantissa = decimal::rescale(&value, scale + exponent, i64::try_from(exact).unwrap_or(i64::MAX));
        let mut text = layout(mantissa.sign() == Sign::Minus, mantissa.magnitude().to_string(), exact);
        if exact == 0 && digits > 0 {
            text.push('.');
        }
        text.extend(std::iter::repeat_n('0', digits - exact));
        Some(format!("{text}e{exponent:+03}"))
    }
}

impl fmt::Debug for Numeric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Numeric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_text())
    }
}

/// Places the sign and the decimal point.
fn layout(negative: bool, digits: String, scale: usize) -> String {
    let sign = if negative { "-" } else { "" };
    if scale == 0 {
        return if negative { format!("-{digits}") } else { digits };
    }
    match digits.len().checked_sub(scale) {
        None | Some(0) => format!("{sign}0.{}{digits}", "0".repeat(scale - digits.len())),
        Some(point) => {
            let (whole, fraction) = digits.split_at(point);
            format!("{sign}{whole}.{fraction}")
        }
    }
}

fn invalid(text: &str) -> ValueError {
    let message = format!("invalid input syntax for type numeric: \"{text}\"");
    ValueError::new(SqlState::INVALID_TEXT_REPRESENTATION, message)
}

/// NaN or an infinity at the start of the text, and what follows it.
fn special(text: &str) -> Option<(Numeric, &str)> {
    // Longer words precede their prefixes.
    const WORDS: [(&str, Numeric); 7] = [
        ("nan", Numeric::NAN),
        ("infinity", Numeric::INFINITY),
        ("+infinity", Numeric::INFINITY),
        ("-infinity", Numeric::NEG_INFINITY),
        ("inf", Numeric::INFINITY),
        ("+inf", Numeric::INFINITY),
        ("-inf", Numeric::NEG_INFINITY),
    ];
    WORDS.into_iter().find_map(|(word, value)| {
        let (head, rest) = text.split_at_checked(word.len())?;
        head.eq_ignore_ascii_case(word).then_some((value, rest))
    })
}

/// The digits of a number before they become an integer. There may be very many.
struct Literal {
    negative: bool,
    /// Decimal digits without leading zeros.
    digits: Vec<u8>,
    /// Digits after the point; negative if zeros follow the digits.
    scale: i64,
}

impl Literal {
    /// Scans a number at the start of `body`. Returns it with the text that follows it.
    fn scan<'a>(body: &'a str, text: &str) -> Result<(Literal, &'a str), ValueError> {
        let unsigned = body.strip_prefix(['+', '-']).unwrap_or(body);
        let is_digit = |c: char| c.is_ascii_digit();
        let (whole, rest) = split_while(unsigned, is_digit);
        let (fraction, rest) = match rest.strip_prefix('.') {
            Some(rest) => split_while(rest, is_digit),
            None => ("", rest),
        };
        // A second point is an error of the number, not trailing text. The message is the same.
        if (whole.is_empty() && fraction.is_empty()) || rest.starts_with('.') {
            return Err(invalid(text));
        }
        let (exponent, rest) = match rest.strip_prefix(['e', 'E']) {
            Some(rest) => exponent(rest).ok_or_else(|| invalid(text))?,
            None => (0, rest),
        };
        if exponent.abs() >= EXPONENT_LIMIT {
            return Err(overflow());
        }
        let digits = whole.bytes().chain(fraction.bytes()).skip_while(|digit| *digit == b'0').collect();
        let scale = i64::try_from(fraction.len()).unwrap_or(i64::MAX).saturating_sub(exponent);
        Ok((Literal { negative: body.starts_with('-'), digits, scale }, rest))
    }

    /// The exact value.
    fn value(self) -> Result<Numeric, ValueError> {
        if self.scale > i64::from(MAX_SCALE) {
            return Err(overflow());
        }
        self.check_length()?;
        let (value, scale) = self.integer();
        Numeric::from_big(value, scale)
    }

    /// The value rounded to a declared type.
    fn typed_value(mut self, typmod: Typmod) -> Result<Numeric, ValueError> {
        // Rounding needs the first digit after the scale, not the ones that follow it.
        let last = i64::from(typmod.scale().max(0)) + 1;
        if self.scale > last {
            let surplus = usize::try_from(self.scale - last).unwrap_or(usize::MAX);
            self.digits.truncate(self.digits.len().saturating_sub(surplus));
            self.scale = last;
        }
        if self.check_length().is_err() {
            return Err(typmod.field_overflow());
        }
        let (value, scale) = self.integer();
        typmod.round(&value, scale)
    }

    /// Refuses a number of too many digits before its digits are converted.
    fn check_length(&self) -> Result<(), ValueError> {
        let length = i64::try_from(self.digits.len()).unwrap_or(i64::MAX);
        if length > 0 && length.saturating_sub(self.scale) > i64::from(MAX_INTEGER_DIGITS) {
            return Err(overflow());
        }
        Ok(())
    }

    /// The unscaled value and its scale, which is not negative.
    fn integer(self) -> (BigInt, i64) {
        let value = unsigned(&self.digits);
        let sign = if self.negative { Sign::Minus } else { Sign::Plus };
        let value = BigInt::from_biguint(if value.is_zero() { Sign::NoSign } else { sign }, value);
        if self.scale >= 0 {
            return (value, self.scale);
        }
        (decimal::rescale(&value, self.scale, 0), 0)
    }
}

/// The number that decimal digits denote.
fn unsigned(digits: &[u8]) -> BigUint {
    if digits.len() <= 18 {
        let small = digits.iter().fold(0u64, |value, digit| value * 10 + u64::from(digit.wrapping_sub(b'0')));
        return small.into();
    }
    BigUint::parse_bytes(digits, 10).unwrap_or_default()
}

fn split_while(text: &str, accepts: impl Fn(char) -> bool) -> (&str, &str) {
    let end = text.find(|c: char| !accepts(c)).unwrap_or(text.len());
    text.split_at(end)
}

/// An exponent and what follows it. Spaces may precede it, as for C's `strtol`. Saturates.
fn exponent(text: &str) -> Option<(i64, &str)> {
    let text = text.trim_start_matches(is_space);
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (digits, rest) = split_while(unsigned, |c| c.is_ascii_digit());
    if digits.is_empty() {
        return None;
    }
    let value = digits
        .bytes()
        .fold(0i64, |value, digit| value.saturating_mul(10).saturating_add(i64::from(digit.wrapping_sub(b'0'))));
    Some((if text.starts_with('-') { -value } else { value }, rest))
}

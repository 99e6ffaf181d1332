//! `to_char` of numbers and `to_number`: number pictures, in the locale C.
//!
//! A picture is text with patterns: `9 0 . , D G V S SG MI PL PR L RN TH EEEE FM` and some that have no effect. Other
//! text stands for itself. Unusual pictures give what PostgreSQL gives for them, as far as that is known.
//!
//! # Layers
//!
//! 1. `picture`: reads a picture
//! 2. `read`, `write`: read a number by it, render a number by it

mod picture;
mod read;
mod write;

use super::value::Numeric;
use crate::error::ValueError;
use crate::sqlstate::SqlState;
use picture::Picture;
use write::Digits;

pub use read::to_number;

/// Significant digits of a `double precision`.
const DOUBLE_DIGITS: usize = 15;
/// Digits after the point that PostgreSQL's output of floats computes. Zeros follow.
const MAX_FLOAT_DIGITS: usize = 350;
/// Significant digits of a `real`.
const REAL_DIGITS: usize = 6;

/// `to_char(numeric, text)`. 42601 for a bad picture, 22003 for a Roman numeral beyond `integer`.
pub fn to_char(value: &Numeric, format: &str) -> Result<String, ValueError> {
    let mut picture = Picture::parse(format)?;
    if picture.roman {
        return write::render(&picture, &Digits::bare(roman(value.round(0)?.to_i32()?)));
    }
    if picture.exponent {
        return Ok(scientific(value, &picture));
    }
    let shifted = if picture.shift {
        let power = i64::try_from(picture.multi).unwrap_or(i64::MAX);
        picture.pre += picture.multi;
        value.mul(&Numeric::from(10i64).power(&power.into())?)?
    } else {
        value.clone()
    };
    let rounded = shifted.round(i32::try_from(picture.post).unwrap_or(i32::MAX))?;
    write::render(&picture, &Digits::fit(&rounded.to_text(), &picture))
}

/// `to_char(integer, text)`, also for `smallint`. 42601 for a bad picture. `V` wraps a number that it makes too large.
pub fn to_char_i32(value: i32, format: &str) -> Result<String, ValueError> {
    let mut picture = Picture::parse(format)?;
    if picture.roman {
        return write::render(&picture, &Digits::bare(roman(value)));
    }
    if picture.exponent {
        return Ok(float_scientific(value.into(), &picture));
    }
    let mut shifted = value;
    if picture.shift {
        // PostgreSQL does not check this product, and a power beyond the type becomes the least integer.
        let power = u32::try_from(picture.multi).ok().and_then(|power| 10i32.checked_pow(power)).unwrap_or(i32::MIN);
        shifted = value.wrapping_mul(power);
        picture.pre += picture.multi;
    }
    integer(shifted.to_string(), &picture)
}

/// `to_char(bigint, text)`. 42601 for a bad picture, 22003 if `V` makes the number too large and for a Roman numeral
/// beyond `integer`.
pub fn to_char_i64(value: i64, format: &str) -> Result<String, ValueError> {
    let mut picture = Picture::parse(format)?;
    if picture.roman {
        let value = i32::try_from(value).map_err(|_| out_of_range("integer"))?;
        return write::render(&picture, &Digits::bare(roman(value)));
    }
    if picture.exponent {
        return Ok(scientific(&value.into(), &picture));
    }
    let mut shifted = value;
    if picture.shift {
        let power = u32::try_from(picture.multi).ok().and_then(|power| 10i64.checked_pow(power));
        shifted = power.and_then(|power| value.checked_mul(power)).ok_or_else(|| out_of_range("bigint"))?;
        picture.pre += picture.multi;
    }
    integer(shifted.to_string(), &picture)
}

/// `to_char(double precision, text)`: at most 15 significant digits. 42601 for a bad picture.
pub fn to_char_f64(value: f64, format: &str) -> Result<String, ValueError> {
    float(value, DOUBLE_DIGITS, format)
}

/// `to_char(real, text)`: at most 6 significant digits. Errors as for `double precision`.
pub fn to_char_f32(value: f32, format: &str) -> Result<String, ValueError> {
    float(value.into(), REAL_DIGITS, format)
}

fn out_of_range(ty: &str) -> ValueError {
    ValueError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, format!("{ty} out of range"))
}

/// An integer. Digits after the point are zeros.
fn integer(mut digits: String, picture: &Picture) -> Result<String, ValueError> {
    if picture.post > 0 {
        digits.push('.');
        digits.extend(std::iter::repeat_n('0', picture.post));
    }
    write::render(picture, &Digits::fit(&digits, picture))
}

fn float(value: f64, limit: usize, format: &str) -> Result<String, ValueError> {
    let mut picture = Picture::parse(format)?;
    if picture.roman {
        // No numeral is the same as one that is too large.
        let rounded = Numeric::from_f64(value.round_ties_even())?;
        return write::render(&picture, &Digits::bare(roman(rounded.to_i32().unwrap_or(i32::MAX))));
    }
    if picture.exponent {
        return Ok(if value.is_finite() { float_scientific(value, &picture) } else { unprintable(&picture) });
    }
    let mut shifted = value;
    if picture.shift {
        let power = i32::try_from(picture.multi).unwrap_or(i32::MAX);
        // A real is multiplied in its own precision.
        shifted = if limit == REAL_DIGITS { real_product(value, power) } else { value * 10f64.powi(power) };
        picture.pre += picture.multi;
    }
    let whole = fixed(shifted.abs(), 0).len();
    picture.post = picture.post.min(limit.saturating_sub(whole));
    let text = fixed(shifted, picture.post);
    write::render(&picture, &Digits::fit(&text, &picture))
}

fn real_product(value: f64, power: i32) -> f64 {
    use num_traits::ToPrimitive;
    let narrow = |value: f64| value.to_f32().unwrap_or(f32::NAN);
    (narrow(value) * narrow(10f64.powi(power))).into()
}

/// A float with a fixed number of digits after the point, as C's `%.*f` with PostgreSQL's words.
fn fixed(value: f64, digits: usize) -> String {
    if value.is_nan() {
        "NaN".to_owned()
    } else if value.is_infinite() {
        if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned()
    } else {
        format!("{value:.digits$}")
    }
}

/// A float in scientific notation, with a space for a plus sign.
fn float_scientific(value: f64, picture: &Picture) -> String {
    let digits = picture.post.min(MAX_FLOAT_DIGITS);
    let zeros = "0".repeat(picture.post - digits);
    let text = format!("{value:.digits$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let sign = if value.is_sign_negative() { "" } else { " " };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    format!("{sign}{mantissa}{zeros}e{exponent:+03}")
}

/// A number in scientific notation, with a space for a plus sign.
fn scientific(value: &Numeric, picture: &Picture) -> String {
    match value.to_scientific(picture.post) {
        None => unprintable(picture),
        Some(text) if text.starts_with('-') => text,
        Some(text) => format!(" {text}"),
    }
}

/// What stands for a value that is no number in scientific notation.
fn unprintable(picture: &Picture) -> String {
    format!(" {}.{}", "#".repeat(picture.pre), "#".repeat(picture.post + 4))
}

/// The Roman numeral of a number from 1 to 3999; otherwise 15 number signs.
fn roman(number: i32) -> String {
    const LETTERS: [(i32, &str); 13] = [
        (1000, "M"),
        (900, "CM"),
        (500, "D"),
        (400, "CD"),
        (100, "C"),
        (90, "XC"),
        (50, "L"),
        (40, "XL"),
        (10, "X"),
        (9, "IX"),
        (5, "V"),
        (4, "IV"),
        (1, "I"),
    ];
    if !(1..=3999).contains(&number) {
        return "#".repeat(15);
    }
    let mut rest = number;
    let mut out = String::new();
    for (value, letters) in LETTERS {
        while rest >= value {
            out.push_str(letters);
            rest -= value;
        }
    }
    out
}

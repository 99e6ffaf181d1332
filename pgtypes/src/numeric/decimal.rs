//! Integer arithmetic in powers of ten: shifts by decimal digits, rounding, counts of digits.
//!
//! All functions are exact. Rounding is half away from zero. Functions named `wide` work on 128 bits and return `None`
//! where the result does not fit.

use num_bigint::{BigInt, BigUint};
use num_integer::Integer;
use num_traits::{Signed, ToPrimitive, Zero};

/// Digits of a 64-bit chunk.
const CHUNK_DIGITS: u32 = 18;

/// `10^exponent`, if it fits.
pub(super) fn pow10_wide(exponent: u32) -> Option<i128> {
    10i128.checked_pow(exponent)
}

/// `10^exponent`
pub(super) fn pow10(exponent: u32) -> BigUint {
    match 10u64.checked_pow(exponent) {
        Some(power) => power.into(),
        None => BigUint::from(5u32).pow(exponent) << exponent,
    }
}

/// `value * 10^digits`, if it fits.
pub(super) fn scale_up_wide(value: i128, digits: u32) -> Option<i128> {
    value.checked_mul(pow10_wide(digits)?)
}

/// `value * 10^digits`
pub(super) fn scale_up(value: &BigInt, digits: u32) -> BigInt {
    if digits == 0 || value.is_zero() {
        return value.clone();
    }
    value * BigInt::from(pow10(digits))
}

/// `dividend / divisor`, rounded. The divisor is not zero.
pub(super) fn div_round_wide(dividend: i128, divisor: i128) -> i128 {
    let (quotient, rest) = (dividend / divisor, dividend % divisor);
    // The rest is less than the divisor, so `divisor - rest` does not overflow where doubling it could.
    if rest.unsigned_abs() >= divisor.unsigned_abs() - rest.unsigned_abs() {
        if (dividend < 0) == (divisor < 0) { quotient + 1 } else { quotient - 1 }
    } else {
        quotient
    }
}

/// `dividend / divisor`, rounded. The divisor is not zero.
pub(super) fn div_round(dividend: &BigInt, divisor: &BigInt) -> BigInt {
    let (quotient, rest) = dividend.div_rem(divisor);
    if rest.magnitude() * 2u32 >= *divisor.magnitude() {
        if dividend.is_negative() == divisor.is_negative() { quotient + 1 } else { quotient - 1 }
    } else {
        quotient
    }
}

/// The unscaled value at scale `to` of a value at scale `from`, rounded.
pub(super) fn rescale(value: &BigInt, from: i64, to: i64) -> BigInt {
    match digits_between(from, to) {
        Shift::Up(digits) => scale_up(value, digits),
        Shift::Down(digits) if drops_all(value, digits) => BigInt::ZERO,
        Shift::Down(digits) => div_round(value, &pow10(digits).into()),
    }
}

/// The unscaled value at scale `to` of a value at scale `from`, cut toward zero.
pub(super) fn rescale_trunc(value: &BigInt, from: i64, to: i64) -> BigInt {
    match digits_between(from, to) {
        Shift::Up(digits) => scale_up(value, digits),
        Shift::Down(digits) if drops_all(value, digits) => BigInt::ZERO,
        Shift::Down(digits) => value / BigInt::from(pow10(digits)),
    }
}

enum Shift {
    Up(u32),
    Down(u32),
}

/// The shift between two scales. Scales are far below 2^31, so saturation does not happen.
fn digits_between(from: i64, to: i64) -> Shift {
    let digits = u32::try_from(from.abs_diff(to)).unwrap_or(u32::MAX);
    if to >= from { Shift::Up(digits) } else { Shift::Down(digits) }
}

/// Whether the value is certainly below half of `10^digits`, so that no power needs to be computed.
fn drops_all(value: &BigInt, digits: u32) -> bool {
    // A digit is more than three bits.
    value.bits() + 1 < u64::from(digits) * 3
}

/// Decimal digits of a number; 0 for zero.
pub(super) fn count_digits_small(value: u64) -> u32 {
    value.checked_ilog10().map_or(0, |log| log + 1)
}

/// Decimal digits of a number; 0 for zero.
pub(super) fn count_digits(value: &BigUint) -> u64 {
    if let Some(small) = value.to_u64() {
        return count_digits_small(small).into();
    }
    let least = least_digits(value.bits());
    least + u64::from(*value >= pow10(u32::try_from(least).unwrap_or(u32::MAX)))
}

/// The digits of the smallest number with this many bits. The largest has at most one more.
fn least_digits(bits: u64) -> u64 {
    // log10(2), rounded down far beyond the precision that the lengths of values need.
    const LOG: u128 = 301_029_995_663_981_195;
    let log = u128::from(bits.saturating_sub(1)) * LOG / 1_000_000_000_000_000_000;
    u64::try_from(log).unwrap_or(u64::MAX).saturating_add(1)
}

/// Whether a number has at most this many decimal digits.
pub(super) fn fits_digits(value: &BigUint, limit: u64) -> bool {
    let least = least_digits(value.bits());
    if value.is_zero() || least > limit {
        return value.is_zero();
    }
    least < limit || count_digits(value) <= limit
}

/// A number without its trailing zeros, and their count. Zero has none.
pub(super) fn strip_zeros_small(value: i64) -> (i64, u32) {
    let (mut value, mut zeros) = (value, 0);
    while value != 0 && value % 10 == 0 {
        value /= 10;
        zeros += 1;
    }
    (value, zeros)
}

/// A number without its trailing zeros, and their count. Zero has none.
pub(super) fn strip_zeros(value: &BigUint) -> (BigUint, u32) {
    let mut value = value.clone();
    let mut zeros = 0;
    // Each decimal zero is a factor of two, so the binary zeros bound the steps.
    let bound = u32::try_from(value.trailing_zeros().unwrap_or(0)).unwrap_or(u32::MAX);
    let mut step = bound.checked_next_power_of_two().unwrap_or(bound);
    while step > 0 {
        if step <= bound && zeros + step <= bound {
            let (quotient, rest) = value.div_rem(&pow10(step));
            if rest.is_zero() {
                value = quotient;
                zeros += step;
            }
        }
        step /= 2;
    }
    (value, zeros)
}

/// The leading decimal digits of a positive number, `keep` of them at most 18, as a number; fewer if it has fewer.
pub(super) fn leading_digits(value: &BigUint, digits: u64, keep: u32) -> u64 {
    let drop = u32::try_from(digits.saturating_sub(u64::from(keep.min(CHUNK_DIGITS)))).unwrap_or(u32::MAX);
    let lead = if drop == 0 { value.clone() } else { value / pow10(drop) };
    lead.to_u64().unwrap_or(u64::MAX)
}

/// The leading digits of a number in base 10000, as PostgreSQL aligns them to the decimal point. The scales of several
/// results depend on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// The power of 10000 of the first digit; 0 for zero.
    pub weight: i64,
    /// The first digit, 1 to 9999; 0 for zero.
    pub first: u64,
    /// The number of decimal digits of the first digit.
    pub first_len: u32,
    /// The number of decimal digits of the unscaled value.
    pub digits: u64,
}

/// The shape of `value / 10^scale`.
pub(super) fn shape(value: &BigUint, scale: i64) -> Shape {
    if let Some(small) = value.to_u64() {
        return shape_small(small, scale);
    }
    let digits = count_digits(value);
    let (weight, first_len) = position(digits, scale);
    Shape { weight, first: leading_digits(value, digits, first_len), first_len, digits }
}

/// The shape of `value / 10^scale`.
pub(super) fn shape_small(value: u64, scale: i64) -> Shape {
    let digits = count_digits_small(value);
    if digits == 0 {
        return Shape { weight: 0, first: 0, first_len: 0, digits: 0 };
    }
    let (weight, first_len) = position(digits.into(), scale);
    let first = match digits.checked_sub(first_len) {
        Some(drop) => value / 10u64.pow(drop),
        // The first digit of base 10000 ends right of the last decimal digit.
        None => value * 10u64.pow(first_len - digits),
    };
    Shape { weight, first, first_len, digits: digits.into() }
}

/// The power of 10000 of the first digit, and its decimal digits.
fn position(digits: u64, scale: i64) -> (i64, u32) {
    let exponent = i64::try_from(digits).unwrap_or(i64::MAX) - 1 - scale;
    (exponent.div_euclid(4), u32::try_from(exponent.rem_euclid(4)).unwrap_or(0) + 1)
}

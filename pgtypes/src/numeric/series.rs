//! Square roots, exponentials, logarithms and integral powers of decimal numbers, rounded to a scale.
//!
//! The computation is decimal. Each intermediate result is rounded to a scale that leaves it the digits of the final
//! one and at least eight more. So a result is the exact one, rounded, unless the exact one is closer than about 10^-6
//! of a unit to the middle between two results. For arguments near 1 (or 0) such results are common, as the exact ones
//! have long runs of zeros or nines. There the rounding of the intermediate results decides the last digit, so their
//! scales and their order are the ones that PostgreSQL uses.

use std::cmp::Ordering;

use num_bigint::{BigInt, BigUint, Sign};
use num_integer::Integer;
use num_traits::{One, ToPrimitive, Zero};

use super::arithmetic::div_to_scale;
use super::{decimal, wire};

/// `log10(e)` with the digits that PostgreSQL has. The choice of a scale may depend on the last one.
#[expect(clippy::approx_constant, reason = "not the nearest float on purpose")]
pub(super) const LOG10_E: f64 = 0.434_294_481_903_252;
/// Digits that intermediate results have beyond the final one.
pub(super) const EXTRA_DIGITS: i64 = 8;
/// Arguments up to this need no reduction for the series of the exponential.
const NEAR_ZERO: f64 = 0.01;

/// A positive number `value / 10^scale`. The scale may be negative.
#[derive(Clone)]
pub(super) struct Positive {
    pub(super) value: BigUint,
    pub(super) scale: i64,
}

impl Positive {
    fn new(value: BigInt, scale: i64) -> Positive {
        Positive { value: value.into_parts().1, scale }
    }

    /// The power of 10000 of the first digit.
    fn weight(&self) -> i64 {
        decimal::shape(&self.value, self.scale).weight
    }

    /// The product at a scale, or the exact one if that has fewer digits.
    fn times(&self, other: &Positive, scale: i64) -> Positive {
        let exact = self.scale + other.scale;
        let scale = scale.min(exact).max(0);
        Positive::new(decimal::rescale(&BigInt::from(&self.value * &other.value), exact, scale), scale)
    }

    /// The order against `tenths / 10`.
    fn compare_tenths(&self, tenths: u32) -> Ordering {
        let scale = self.scale.max(1);
        let value = decimal::rescale(&self.value.clone().into(), self.scale, scale);
        value.cmp(&decimal::rescale(&tenths.into(), 1, scale))
    }
}

/// The integer part of a float of moderate size.
pub(super) fn truncated(value: f64) -> i64 {
    value.to_i64().unwrap_or(0)
}

/// The square root of `value / 10^scale` at scale `target`, both of which may be negative.
pub(super) fn sqrt(value: &BigUint, scale: i64, target: i64) -> BigInt {
    // One digit more than the result decides the rounding.
    let shift = 2 * (target + 1) - scale;
    let root = match u32::try_from(shift) {
        Ok(up) => (value * decimal::pow10(up)).sqrt(),
        Err(_) => (value / decimal::pow10(u32::try_from(-shift).unwrap_or(0))).sqrt(),
    };
    decimal::rescale(&root.into(), 1, 0)
}

/// `e ^ (value / 10^scale)` at scale `target`. The argument, also given as a float, is between -6000 and 6000.
pub(super) fn exp(value: &BigInt, scale: i64, argument: f64, target: i64) -> BigInt {
    // Halvings bring the argument near zero, squares undo them.
    let mut halvings = 0u32;
    let mut reduced = argument.abs();
    while reduced > NEAR_ZERO {
        reduced /= 2.0;
        halvings += 1;
    }
    let value = value * BigInt::from(5u32).pow(halvings);
    let scale = scale + i64::from(halvings);
    let digits =
        1 + truncated(argument * LOG10_E) + target + truncated(f64::from(halvings) * std::f64::consts::LOG10_2);
    let digits = digits.max(0) + EXTRA_DIGITS;
    let (sum, sum_scale) = exp_near_zero(&value, scale, digits - 1);
    let mut result = Positive::new(sum, sum_scale);
    for _ in 0..halvings {
        let inner = (digits - result.weight() * 2 * 4).max(0);
        result = result.times(&result, inner);
    }
    decimal::rescale(&result.value.into(), result.scale, target)
}

/// The Taylor series of the exponential, and its scale. The first two terms are exact, the others have scale `inner`.
fn exp_near_zero(value: &BigInt, scale: i64, inner: i64) -> (BigInt, i64) {
    let wide = inner.max(scale);
    let mut sum = decimal::rescale(&BigInt::one(), 0, wide) + decimal::rescale(value, scale, wide);
    let mut term = decimal::rescale(&(value * value), scale * 2, inner);
    let mut n = 2u32;
    loop {
        term = decimal::div_round(&term, &n.into());
        if term.is_zero() {
            return (sum, wide);
        }
        sum += decimal::rescale(&term, inner, wide);
        term = decimal::rescale(&(term * value), inner + scale, inner);
        n += 1;
    }
}

/// `ln(value / 10^scale)` at scale `target`. The argument is positive.
pub(super) fn ln(value: &BigUint, scale: i64, target: i64) -> BigInt {
    // Square roots bring the argument near 1; each halves the logarithm.
    let mut x = Positive { value: value.clone(), scale };
    let mut roots = 0u32;
    while x.compare_tenths(9) != Ordering::Greater || x.compare_tenths(11) != Ordering::Less {
        let inner = target - x.weight() * 2 + EXTRA_DIGITS;
        x = Positive::new(sqrt(&x.value, x.scale, inner), inner);
        roots += 1;
    }
    // ln(x) = 2 artanh(z), z = (x - 1) / (x + 1)
    let inner = target + truncated(f64::from(roots + 1) * std::f64::consts::LOG10_2) + EXTRA_DIGITS;
    let one = decimal::rescale(&BigInt::one(), 0, x.scale);
    let x_value = BigInt::from(x.value);
    let mut sum = div_to_scale(&(&x_value - &one), 0, &(x_value + one), 0, inner);
    let mut power = sum.clone();
    let square = decimal::rescale(&(&sum * &sum), inner * 2, inner);
    let mut n = 3u64;
    loop {
        power = decimal::rescale(&(power * &square), inner * 2, inner);
        let term = decimal::div_round(&power, &n.into());
        if term.is_zero() {
            break;
        }
        sum += term;
        n += 2;
    }
    double(&sum, inner, roots + 1, target)
}

/// `value / 10^scale` doubled `times` times, at scale `target`.
///
/// The product is one in base 10000. As in PostgreSQL, digits of the value that only count more than two digits behind
/// the result are left out, which may be felt in one of a hundred thousand results.
fn double(value: &BigInt, scale: i64, times: u32, target: i64) -> BigInt {
    let (factor, factor_weight) = wire::base_digits(&(BigUint::one() << times), 0);
    let factor_weight = i64::from(factor_weight);
    let lowest = -(target + 3).div_euclid(4) - 2;
    let mut product = BigInt::ZERO;
    let mut product_scale = 0;
    for (weight, digit) in (0..=factor_weight).rev().zip(&factor) {
        // The digits of the value that this digit is multiplied with end at this scale.
        let end = ((weight - lowest) * 4).min(scale);
        let part = decimal::rescale_trunc(value, scale, end) * i64::from(*digit);
        let next_scale = product_scale.max(end - weight * 4);
        product = decimal::rescale(&product, product_scale, next_scale)
            + decimal::rescale(&part, end - weight * 4, next_scale);
        product_scale = next_scale;
    }
    decimal::rescale(&product, product_scale, target)
}

/// An integral power at scale `target` by squares and products. `digits` are the significant digits that the result
/// has.
pub(super) fn power(base: Positive, exponent: i32, target: i64, digits: i64) -> BigInt {
    let times = exponent.unsigned_abs();
    let digits = digits + truncated(f64::from(times).ln()) + EXTRA_DIGITS;
    let product = |a: &Positive, b: &Positive| a.times(b, digits - (a.weight() + b.weight()) * 4);
    let mut square = base;
    let mut result = if times & 1 == 1 { square.clone() } else { Positive { value: BigUint::one(), scale: 0 } };
    let mut rest = times >> 1;
    while rest > 0 {
        square = product(&square, &square);
        if rest & 1 == 1 {
            result = product(&square, &result);
        }
        rest >>= 1;
    }
    if exponent < 0 && !result.value.is_zero() {
        return inverse(&result, target);
    }
    decimal::rescale(&result.value.into(), result.scale, target)
}

/// `1 / x` at scale `target`. As in PostgreSQL the quotient has four digits in base 10000 more than the result, so one
/// that is closer to the middle than that counts as in the middle.
fn inverse(x: &Positive, target: i64) -> BigInt {
    let dividend = decimal::pow10(u32::try_from(target + x.scale).unwrap_or(0));
    let (quotient, rest) = dividend.div_rem(&x.value);
    let near = decimal::pow10(u32::try_from((target + 3).div_euclid(4) * 4 + 16 - target).unwrap_or(0));
    let up = rest * 2u32 * &near + &x.value * 2u32 >= &x.value * near;
    BigInt::from_biguint(Sign::Plus, quotient) + u32::from(up)
}

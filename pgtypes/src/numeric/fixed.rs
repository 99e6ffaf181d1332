//! Exponentials, logarithms and powers of decimal numbers, rounded to a scale.
//!
//! The computation is in binary fixed point: an integer `m` with `w` fraction bits denotes `m / 2^w`. Each function
//! works with enough guard bits that its result is the exact one, rounded. Where the exact one is closer than 10^-8 to
//! the middle between two results, it counts as in the middle and is rounded away from zero. PostgreSQL does nearly the
//! same, as it computes eight digits more than it shows; numbers like `ln(1.0000000000000005)` are that close to the
//! middle.

use num_bigint::{BigInt, BigUint, Sign};
use num_integer::Roots;
use num_traits::{One, ToPrimitive, Zero};

use super::decimal;

/// Bits beyond those that the result needs.
const GUARD: u64 = 40;
/// The distance from the middle that is none, in bits: less than 10^-8 of a unit.
const NEAR_BITS: u64 = 27;
/// Bits that the logarithm of a float has right.
const FLOAT_BITS: u64 = 48;

/// Bits that hold this many decimal digits.
pub(super) fn bits_of_digits(digits: i64) -> u64 {
    // log2(10), rounded up.
    u64::try_from(digits).map_or(0, |digits| digits.saturating_mul(33_220) / 10_000 + 1)
}

/// `e ^ (value / 10^scale)` at scale `target`. The argument is between -10000 and 10000.
pub(super) fn exp(value: &BigInt, scale: i64, target: i64) -> BigInt {
    // The integer part of the argument tells how long the result is, 1.4427 bits to one.
    let whole = decimal::rescale_trunc(value, scale, 0).to_i64().unwrap_or(0);
    let length = if whole < 0 { whole * 7 / 5 } else { whole * 3 / 2 };
    let bits = i64::try_from(bits_of_digits(target)).unwrap_or(i64::MAX) + length + 8;
    let width = u64::try_from(bits).unwrap_or(0) + GUARD;
    let argument = to_fixed(value, scale, width + 16);
    let (mantissa, exponent) = exp_fixed(&argument, width + 16);
    let scaled = mantissa * BigInt::from(decimal::pow10(u32::try_from(target).unwrap_or(0)));
    shift_round(scaled, exponent - i64::try_from(width + 16).unwrap_or(i64::MAX))
}

/// `ln(value / 10^scale)` at scale `target`. The argument is positive.
pub(super) fn ln(value: &BigUint, scale: i64, target: i64) -> BigInt {
    let width = bits_of_digits(target) + GUARD;
    let log = ln_fixed(value, scale, width);
    let scaled = log * BigInt::from(decimal::pow10(u32::try_from(target).unwrap_or(0)));
    shift_round(scaled, -i64::try_from(width).unwrap_or(i64::MAX))
}

/// `(value / 10^scale) ^ exponent` at scale `target`, or its inverse. `digits` is the number of significant decimal
/// digits that the result has. The argument is positive.
pub(super) fn power(value: &BigUint, scale: i64, exponent: i64, target: i64, digits: i64) -> BigInt {
    // Without zeros at the end a result with few digits is exact, also where it is half of the last digit.
    let (value, zeros) = decimal::strip_zeros(value);
    let scale = scale - i64::from(zeros);
    let times = exponent.unsigned_abs();
    // Each multiplication adds an error; the errors of early ones are multiplied by the exponents that follow.
    let width = bits_of_digits(digits) + 2 * u64::from(64 - times.leading_zeros()) + GUARD + 24;
    let base = Float::power(&value, times, width);
    let tens = i128::from(scale) * i128::from(times);
    let shift = if exponent >= 0 { i128::from(target) - tens } else { i128::from(target) + tens };
    let shift_tens = u64::try_from(shift.unsigned_abs()).unwrap_or(u64::MAX);
    let tens = Float::power(&BigUint::from(10u32), shift_tens, width);
    let (numerator, divisor) = match (exponent >= 0, shift >= 0) {
        (true, true) => (base.times(&tens, u64::MAX), Float::one()),
        (true, false) => (base, tens),
        (false, true) => (tens, base),
        (false, false) => (Float::one(), base.times(&tens, u64::MAX)),
    };
    numerator.divide_round(&divisor)
}

/// `value / 10^scale` in fixed point.
fn to_fixed(value: &BigInt, scale: i64, width: u64) -> BigInt {
    match u32::try_from(scale) {
        Ok(scale) => (value << width) / BigInt::from(decimal::pow10(scale)),
        Err(_) => decimal::rescale(value, scale, 0) << width,
    }
}

/// `value * 2^shift`, rounded half away from zero. A value `NEAR_BITS` below the middle counts as in the middle.
fn shift_round(value: BigInt, shift: i64) -> BigInt {
    let Ok(down) = u64::try_from(-shift) else {
        return value << shift.unsigned_abs();
    };
    let (sign, magnitude) = value.into_parts();
    let rounded = match down.checked_sub(1) {
        Some(half) if half <= magnitude.bits() => {
            let near = down.checked_sub(NEAR_BITS).map_or(BigUint::ZERO, |near| BigUint::one() << near);
            (magnitude + (BigUint::one() << half) + near) >> down
        }
        Some(_) => BigUint::ZERO,
        None => magnitude,
    };
    BigInt::from_biguint(if rounded.is_zero() { Sign::NoSign } else { sign }, rounded)
}

/// `ln(2)` in fixed point.
fn ln2(width: u64) -> BigInt {
    let wide = width + 16;
    let series = |inverse: u32| inverse_hyperbolic_tangent(inverse, wide);
    (series(26) * 18u32 - series(4801) * 2u32 + series(8749) * 8u32) >> 16u32
}

/// `artanh(1 / inverse)` in fixed point, by its series.
fn inverse_hyperbolic_tangent(inverse: u32, width: u64) -> BigInt {
    let square = u64::from(inverse) * u64::from(inverse);
    let mut power = (BigUint::one() << width) / inverse;
    let mut sum = BigUint::ZERO;
    let mut odd = 1u64;
    while !power.is_zero() {
        sum += &power / odd;
        power /= square;
        odd += 2;
    }
    sum.into()
}

/// `e ^ x` as `(m, k)`: the power is `m / 2^width * 2^k`, and `m` has about `width` bits.
fn exp_fixed(x: &BigInt, width: u64) -> (BigInt, i64) {
    let halvings = width.sqrt() / 2 + 4;
    let wide = width + halvings + 32;
    let x = x << (wide - width);
    // x = k ln(2) + rest. The error of ln(2) is multiplied by k, which has at most 15 bits.
    let ln2 = ln2(wide);
    let k = (&x / &ln2).to_i64().unwrap_or(0);
    let rest = x - ln2 * k;
    let small = rest >> halvings;
    let mut sum = BigInt::one() << wide;
    let mut term = sum.clone();
    let mut n = 1u64;
    while !term.is_zero() && term != BigInt::from(-1) {
        term = (term * &small) >> wide;
        term /= n;
        sum += &term;
        n += 1;
    }
    for _ in 0..halvings {
        sum = (&sum * &sum) >> wide;
    }
    (sum >> (wide - width), k)
}

/// `ln(value / 10^scale)` in fixed point.
fn ln_fixed(value: &BigUint, scale: i64, width: u64) -> BigInt {
    let wide = width + 32;
    let divisor = decimal::pow10(u32::try_from(scale).unwrap_or(0));
    // The argument is m * 2^exponent with m between 1/2 and 2.
    let exponent = i64::try_from(value.bits()).unwrap_or(0) - i64::try_from(divisor.bits()).unwrap_or(0);
    let shift = i64::try_from(wide).unwrap_or(0) - exponent;
    let m: BigInt = match u64::try_from(shift) {
        Ok(up) => (value << up) / divisor,
        Err(_) => value / (divisor << shift.unsigned_abs()),
    }
    .into();
    let log = ln_near_one(&m, wide) + ln2(wide) * exponent;
    log >> (wide - width)
}

/// The logarithm of a fixed point number between 1/2 and 2, by Halley's iteration over the exponential. Each step
/// triples the bits that are right.
fn ln_near_one(m: &BigInt, width: u64) -> BigInt {
    let mut steps = vec![width + 8];
    while let Some(last) = steps.last().filter(|last| **last > FLOAT_BITS) {
        steps.push(last / 3 + 8);
    }
    steps.reverse();
    let mut y = ln_float(m, width);
    let mut y_width = FLOAT_BITS + 8;
    for step in steps.into_iter().skip(1) {
        let target = rewidth(m, width, step);
        y = rewidth(&y, y_width, step);
        y_width = step;
        let (mantissa, exponent) = exp_fixed(&y, step);
        let power =
            if exponent < 0 { mantissa >> exponent.unsigned_abs() } else { mantissa << exponent.unsigned_abs() };
        let sum = &target + &power;
        y += ((target - power) << (step + 1)) / sum;
    }
    rewidth(&y, y_width, width)
}

/// A first logarithm, from floats, with `FLOAT_BITS + 8` fraction bits.
fn ln_float(m: &BigInt, width: u64) -> BigInt {
    let short = rewidth(m, width, 60).to_f64().unwrap_or(0.0) / (1u64 << 60).to_f64().unwrap_or(1.0);
    let scaled = short.ln() * (1u64 << (FLOAT_BITS + 8)).to_f64().unwrap_or(1.0);
    scaled.to_i64().unwrap_or(0).into()
}

fn rewidth(value: &BigInt, from: u64, to: u64) -> BigInt {
    if to >= from { value << (to - from) } else { value >> (from - to) }
}

/// A positive number `mantissa * 2^exponent`.
struct Float {
    mantissa: BigUint,
    exponent: i128,
}

impl Float {
    fn one() -> Float {
        Float { mantissa: BigUint::one(), exponent: 0 }
    }

    /// `base ^ times` with `width` bits.
    fn power(base: &BigUint, times: u64, width: u64) -> Float {
        let mut result = Float::one();
        let mut square = Float { mantissa: base.clone(), exponent: 0 }.cut(width);
        let mut rest = times;
        while rest > 0 {
            if rest & 1 == 1 {
                result = result.times(&square, width);
            }
            rest >>= 1;
            if rest > 0 {
                square = square.times(&square, width);
            }
        }
        result
    }

    fn times(&self, other: &Float, width: u64) -> Float {
        let mantissa = &self.mantissa * &other.mantissa;
        Float { mantissa, exponent: self.exponent + other.exponent }.cut(width)
    }

    /// Drops the bits beyond `width`.
    fn cut(self, width: u64) -> Float {
        match self.mantissa.bits().checked_sub(width) {
            Some(surplus) if surplus > 0 => {
                Float { mantissa: self.mantissa >> surplus, exponent: self.exponent + i128::from(surplus) }
            }
            _ => self,
        }
    }

    /// The quotient, rounded to an integer.
    fn divide_round(&self, divisor: &Float) -> BigInt {
        let shift = self.exponent - divisor.exponent;
        let distance = u64::try_from(shift.unsigned_abs()).unwrap_or(u64::MAX);
        if shift >= 0 {
            return decimal::div_round(
                &(BigInt::from(self.mantissa.clone()) << distance),
                &divisor.mantissa.clone().into(),
            );
        }
        if distance > self.mantissa.bits() + 1 {
            return BigInt::ZERO;
        }
        let divisor = BigInt::from(divisor.mantissa.clone()) << distance;
        decimal::div_round(&self.mantissa.clone().into(), &divisor)
    }
}

//! `sqrt`, `exp`, `ln` and `log`.
//!
//! Results have at least 16 significant digits, at least the scale of the arguments, and at most scale 1000. The choice
//! starts from an estimate of the weight of the result.

use num_bigint::BigInt;
use num_traits::ToPrimitive;

use super::arithmetic::{MIN_SIGNIFICANT, clamp_scale, div_to_scale, division_by_zero};
use super::series::{self, EXTRA_DIGITS, LOG10_E, truncated};
use super::value::{Class, Numeric, overflow};
use super::{decimal, wire};
use crate::error::ValueError;
use crate::sqlstate::SqlState;

/// The largest estimated weight that counts in the choice of a scale.
const WEIGHT_LIMIT: f64 = 2000.0;
/// Arguments from this on overflow `exp`.
const EXP_LIMIT: f64 = 6000.0;

fn negative_logarithm() -> ValueError {
    ValueError::new(SqlState::INVALID_LOGARITHM, "cannot take logarithm of a negative number")
}

fn zero_logarithm() -> ValueError {
    ValueError::new(SqlState::INVALID_LOGARITHM, "cannot take logarithm of zero")
}

impl Numeric {
    /// The square root. 2201F for negative arguments.
    pub fn sqrt(&self) -> Result<Numeric, ValueError> {
        if self.signum() == Some(-1) {
            let message = "cannot take square root of a negative number";
            return Err(ValueError::new(SqlState::INVALID_POWER, message));
        }
        let Some((value, scale)) = self.as_finite() else {
            return Ok(self.clone());
        };
        let scale = i64::from(scale);
        let weight = decimal::shape(value.magnitude(), scale).weight;
        let target = clamp_scale(MIN_SIGNIFICANT - ((weight + 1) * 2 - 1), scale);
        Numeric::from_big(series::sqrt(value.magnitude(), scale, target), target)
    }

    /// `e ^ self`. 22003 from 6000 on.
    pub fn exp(&self) -> Result<Numeric, ValueError> {
        let Some((value, scale)) = self.as_finite() else {
            return Ok(if self.class() == Class::NegInfinity { Numeric::ZERO } else { self.clone() });
        };
        let argument = self.to_f64_saturating();
        let weight = truncated((argument * LOG10_E).clamp(-WEIGHT_LIMIT, WEIGHT_LIMIT));
        let target = clamp_scale(MIN_SIGNIFICANT - weight, scale.into());
        Numeric::from_big(exp_to_scale(&value, scale.into(), argument, target)?, target)
    }

    /// The natural logarithm. 2201E for zero and negative arguments.
    pub fn ln(&self) -> Result<Numeric, ValueError> {
        self.check_logarithm()?;
        let Some((value, scale)) = self.as_finite() else {
            return Ok(self.clone());
        };
        let target = clamp_scale(MIN_SIGNIFICANT - self.ln_weight()?, scale.into());
        Numeric::from_big(series::ln(value.magnitude(), scale.into(), target), target)
    }

    /// The logarithm to base 10. 2201E for zero and negative arguments.
    pub fn log10(&self) -> Result<Numeric, ValueError> {
        Numeric::small(10, 0).log(self)
    }

    /// The logarithm of `number` to the base `self`. 2201E for zero and negative arguments, 22012 for base 1.
    pub fn log(&self, number: &Numeric) -> Result<Numeric, ValueError> {
        let (Some((base, base_scale)), Some((value, scale))) = (self.as_finite(), number.as_finite()) else {
            let (Some(base_sign), Some(sign)) = (self.signum(), number.signum()) else {
                return Ok(Numeric::NAN);
            };
            if base_sign < 0 || sign < 0 {
                return Err(negative_logarithm());
            }
            if base_sign == 0 || sign == 0 {
                return Err(zero_logarithm());
            }
            return Ok(match (self.is_finite(), number.is_finite()) {
                (false, false) => Numeric::NAN,
                (false, true) => Numeric::ZERO,
                (true, _) => Numeric::INFINITY,
            });
        };
        self.check_logarithm()?;
        number.check_logarithm()?;
        let (base_weight, weight) = (self.ln_weight()?, number.ln_weight()?);
        let result_weight = weight - base_weight;
        let (base_scale, scale) = (i64::from(base_scale), i64::from(scale));
        let target = clamp_scale(MIN_SIGNIFICANT - result_weight, base_scale.max(scale));
        // The logarithms have more digits than the result. As in PostgreSQL, they are rounded before the division.
        let digits = target + result_weight + EXTRA_DIGITS;
        let base_target = (digits - base_weight).max(0);
        let value_target = (digits - weight).max(0);
        let base = series::ln(base.magnitude(), base_scale, base_target);
        if base == BigInt::ZERO {
            return Err(division_by_zero());
        }
        let value = series::ln(value.magnitude(), scale, value_target);
        Numeric::from_big(div_to_scale(&value, value_target, &base, base_target, target), target)
    }

    fn check_logarithm(&self) -> Result<(), ValueError> {
        match self.signum() {
            Some(-1) => Err(negative_logarithm()),
            Some(0) => Err(zero_logarithm()),
            _ => Ok(()),
        }
    }

    /// An estimate of the decimal weight of the natural logarithm of a finite number: its integer digits less one, or
    /// the zeros behind its point, negative. Exact estimates are not wanted: result scales depend on PostgreSQL's.
    pub(super) fn ln_weight(&self) -> Result<i64, ValueError> {
        if self.signum() != Some(1) {
            return Ok(0);
        }
        if *self >= Numeric::small(9, 1) && *self <= Numeric::small(11, 1) {
            // Near 1 the logarithm is about the distance from 1.
            let Some((distance, scale)) = self.sub(&Numeric::ONE)?.as_finite().map(|(v, s)| (v.into_owned(), s)) else {
                return Ok(0);
            };
            let shape = decimal::shape(distance.magnitude(), scale.into());
            return Ok(shape.weight * 4 + i64::from(shape.first_len.saturating_sub(1)));
        }
        let Some((value, scale)) = self.as_finite() else {
            return Ok(0);
        };
        let (digits, weight) = wire::base_digits(value.magnitude(), scale);
        let mut exponent = i64::from(weight) * 4;
        let lead = match digits.as_slice() {
            [] => return Ok(0),
            [first] => u32::from(*first),
            [first, second, ..] => {
                exponent -= 4;
                u32::from(*first) * 10_000 + u32::from(*second)
            }
        };
        let log = f64::from(lead).ln() + exponent.to_f64().unwrap_or(0.0) * std::f64::consts::LN_10;
        Ok(truncated(log.abs().log10()))
    }
}

/// The square root at a scale, of a number that is not negative.
pub(super) fn sqrt_at(value: &Numeric, target: i64) -> Result<Numeric, ValueError> {
    match value.as_finite() {
        Some((unscaled, scale)) => Numeric::from_big(series::sqrt(unscaled.magnitude(), scale.into(), target), target),
        None => Ok(value.clone()),
    }
}

/// `e ^ (value / 10^scale)` at scale `target`. `argument` is the argument as a float. 22003 for 6000 and more.
pub(super) fn exp_to_scale(value: &BigInt, scale: i64, argument: f64, target: i64) -> Result<BigInt, ValueError> {
    if argument.abs() >= EXP_LIMIT {
        return if argument > 0.0 { Err(overflow()) } else { Ok(BigInt::ZERO) };
    }
    Ok(series::exp(value, scale, argument, target))
}

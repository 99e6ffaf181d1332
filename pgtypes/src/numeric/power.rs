//! `power`: numbers raised to integral and other exponents.

use num_bigint::{BigInt, Sign};
use num_traits::{Signed, ToPrimitive, Zero};

use super::arithmetic::{MIN_SIGNIFICANT, clamp_scale, div_to_scale, division_by_zero};
use super::logarithm::exp_to_scale;
use super::series::{self, EXTRA_DIGITS, LOG10_E, Positive, truncated};
use super::value::{Class, MAX_INTEGER_DIGITS, Numeric, overflow};
use super::{decimal, wire};
use crate::error::ValueError;
use crate::sqlstate::SqlState;

/// The scale of zeros that stand for results too small for any scale.
const TINY_SCALE: u16 = 1000;
/// The scale of a power of zero.
const ZERO_SCALE: u16 = 16;
/// Estimated exponents of `e` beyond this surely overflow or vanish.
const EXP_FUZZY_LIMIT: f64 = 6020.0;

impl Numeric {
    /// `self ^ exponent`. 2201F for zero to a negative exponent and for a negative number to an exponent that is no
    /// integer, 22003 for results that are too large.
    pub fn power(&self, exponent: &Numeric) -> Result<Numeric, ValueError> {
        if !self.is_finite() || !exponent.is_finite() {
            return self.special_power(exponent);
        }
        self.check_power(exponent)?;
        let integer = if exponent.is_integral() { exponent.to_i32().ok() } else { None };
        match integer {
            Some(integer) => self.integral_power(integer),
            None => self.real_power(exponent),
        }
    }

    /// Whether the value is an integer or infinite.
    pub(super) fn is_integral(&self) -> bool {
        match self.class() {
            Class::NaN => false,
            Class::Finite => self.min_scale() == Some(0),
            Class::PosInfinity | Class::NegInfinity => true,
        }
    }

    /// Whether the value is an odd integer.
    fn is_odd(&self) -> bool {
        let even_digit = |digit: &BigInt| (digit % 2u32).is_zero();
        self.is_integral()
            && self.as_finite().is_some_and(|(value, scale)| !even_digit(&decimal::rescale(&value, scale.into(), 0)))
    }

    fn check_power(&self, exponent: &Numeric) -> Result<(), ValueError> {
        let error = |message: &'static str| Err(ValueError::new(SqlState::INVALID_POWER, message));
        match (self.signum(), exponent.signum()) {
            (Some(0), Some(-1)) => error("zero raised to a negative power is undefined"),
            (Some(-1), _) if !exponent.is_integral() => {
                error("a negative number raised to a non-integer power yields a complex result")
            }
            _ => Ok(()),
        }
    }

    /// A power of which one operand at least is no number, by the rules of POSIX.
    fn special_power(&self, exponent: &Numeric) -> Result<Numeric, ValueError> {
        let (Some(sign), Some(exponent_sign)) = (self.signum(), exponent.signum()) else {
            let is_one = *self == Numeric::ONE || exponent.is_zero();
            return Ok(if is_one { Numeric::ONE } else { Numeric::NAN });
        };
        self.check_power(exponent)?;
        if *self == Numeric::ONE || exponent_sign == 0 {
            return Ok(Numeric::ONE);
        }
        if sign == 0 {
            return Ok(Numeric::ZERO);
        }
        if !exponent.is_finite() {
            let magnitude = self.abs();
            if magnitude == Numeric::ONE {
                return Ok(Numeric::ONE);
            }
            let grows = (magnitude > Numeric::ONE) == (exponent_sign > 0);
            return Ok(if grows { Numeric::INFINITY } else { Numeric::ZERO });
        }
        Ok(match (sign, exponent_sign) {
            (_, -1) => Numeric::ZERO,
            (-1, _) if exponent.is_odd() => Numeric::NEG_INFINITY,
            _ => Numeric::INFINITY,
        })
    }

    /// A power with an integral exponent. The result has scale 16, or that of the base if it is larger.
    fn integral_power(&self, exponent: i32) -> Result<Numeric, ValueError> {
        let Some((base, scale)) = self.as_finite() else {
            return Err(ValueError::internal("a power of an infinity"));
        };
        let scale = i64::from(scale);
        let target = clamp_scale(MIN_SIGNIFICANT, scale);
        let weight = self.power_weight(exponent);
        // The estimate errs by far less than a digit.
        if weight > f64::from(MAX_INTEGER_DIGITS) + 1.0 {
            return Err(overflow());
        }
        let result = match exponent {
            0 => decimal::rescale(&BigInt::from(1), 0, target),
            1 => decimal::rescale(&base, scale, target),
            -1 if base.is_zero() => return Err(division_by_zero()),
            -1 => div_to_scale(&BigInt::from(1), 0, &base, scale, target),
            2 => decimal::rescale(&(base.as_ref() * base.as_ref()), scale * 2, target),
            _ if base.is_zero() && exponent < 0 => return Err(division_by_zero()),
            _ if base.is_zero() => BigInt::ZERO,
            _ if truncated(weight + 1.0) < -target => BigInt::ZERO,
            _ => {
                let digits = 1 + target + truncated(weight);
                let factor = Positive { value: base.magnitude().clone(), scale };
                let power = series::power(factor, exponent, target, digits);
                if base.is_negative() && exponent % 2 != 0 { -power } else { power }
            }
        };
        Numeric::from_big(result, target)
    }

    /// An estimate of the decimal weight of an integral power, from at most four digits in base 10000.
    fn power_weight(&self, exponent: i32) -> f64 {
        let Some((base, scale)) = self.as_finite() else {
            return 0.0;
        };
        let (digits, weight) = wire::base_digits(base.magnitude(), scale);
        let Some((first, more)) = digits.split_first() else {
            return 0.0;
        };
        let mut lead = f64::from(*first);
        let mut tens = f64::from(weight) * 4.0;
        for digit in more.iter().take(3) {
            lead = lead * 10_000.0 + f64::from(*digit);
            tens -= 4.0;
        }
        f64::from(exponent) * (lead.log10() + tens)
    }

    /// A power by logarithm and exponential, for exponents that are no integers of 32 bits.
    fn real_power(&self, exponent: &Numeric) -> Result<Numeric, ValueError> {
        let (Some((base, scale)), Some((factor, factor_scale))) = (self.as_finite(), exponent.as_finite()) else {
            return Err(ValueError::internal("a power of an infinity"));
        };
        if base.is_zero() {
            return Ok(Numeric::small(0, ZERO_SCALE));
        }
        let (scale, factor_scale) = (i64::from(scale), i64::from(factor_scale));
        let ln_weight = self.abs().ln_weight()?;
        // The exponent of e at a scale. PostgreSQL rounds the logarithm and the product to it.
        let product = |target: i64| {
            let log = series::ln(base.magnitude(), scale, target);
            decimal::rescale(&(log * factor.as_ref()), target + factor_scale, target)
        };
        // A rough computation gives the weight of the result, thus its scale.
        let rough_scale = (EXTRA_DIGITS - ln_weight).max(0);
        let estimate = float_of(&product(rough_scale), rough_scale);
        if estimate.abs() > EXP_FUZZY_LIMIT {
            return if estimate > 0.0 { Err(overflow()) } else { Ok(Numeric::small(0, TINY_SCALE)) };
        }
        let weight = truncated(estimate * LOG10_E);
        let target = clamp_scale(MIN_SIGNIFICANT - weight, scale.max(factor_scale));
        let digits = (target + weight).max(0);
        let log_scale = (digits - ln_weight + EXTRA_DIGITS).max(0);
        let log = product(log_scale);
        let power = exp_to_scale(&log, log_scale, float_of(&log, log_scale), target)?;
        let negative = base.sign() == Sign::Minus && exponent.is_odd();
        Numeric::from_big(if negative { -power } else { power }, target)
    }
}

/// The nearest float of `value / 10^scale`; infinite beyond the range of floats.
fn float_of(value: &BigInt, scale: i64) -> f64 {
    if let (Some(small), 0) = (value.to_i64(), scale) {
        return small.to_f64().unwrap_or(0.0);
    }
    format!("{value}e-{scale}").parse().unwrap_or(0.0)
}

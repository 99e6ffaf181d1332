//! Addition, subtraction, multiplication, division and remainder, with PostgreSQL's result scales.
//!
//! Sums and remainders have the larger scale of the operands, products the sum of the scales. A quotient has a scale
//! that gives it at least 16 significant digits, as [`div_scale`] computes.

use num_bigint::BigInt;
use num_traits::Zero;

use super::decimal::{self, Shape};
use super::value::{Class, MAX_PRECISION, MAX_SCALE, Numeric};
use crate::error::ValueError;
use crate::sqlstate::SqlState;

/// The significant digits that results of divisions and real functions have at least.
pub(super) const MIN_SIGNIFICANT: i64 = 16;

pub(super) fn division_by_zero() -> ValueError {
    ValueError::new(SqlState::DIVISION_BY_ZERO, "division by zero")
}

/// The scale of a quotient, from the leading digits and the scales of the operands.
pub(super) fn div_scale(dividend: Shape, dividend_scale: i64, divisor: Shape, divisor_scale: i64) -> i64 {
    let mut weight = dividend.weight - divisor.weight;
    if dividend.first <= divisor.first {
        weight -= 1;
    }
    clamp_scale(MIN_SIGNIFICANT - weight * 4, dividend_scale.max(divisor_scale))
}

/// A wanted scale, raised to the scale of the operands and bounded by the scales that functions choose.
pub(super) fn clamp_scale(wanted: i64, operands: i64) -> i64 {
    wanted.max(operands).clamp(0, i64::from(MAX_PRECISION))
}

/// `a / 10^a_scale` divided by `b / 10^b_scale`, rounded to a scale. The divisor is not zero.
pub(super) fn div_to_scale(a: &BigInt, a_scale: i64, b: &BigInt, b_scale: i64, scale: i64) -> BigInt {
    match u32::try_from(scale + b_scale - a_scale) {
        Ok(up) => decimal::div_round(&decimal::scale_up(a, up), b),
        Err(_) => {
            let up = u32::try_from(a_scale - b_scale - scale).unwrap_or(0);
            decimal::div_round(a, &decimal::scale_up(b, up))
        }
    }
}

impl Numeric {
    /// `self + other`
    pub fn add(&self, other: &Numeric) -> Result<Numeric, ValueError> {
        self.sum(other, false)
    }

    /// `self - other`
    pub fn sub(&self, other: &Numeric) -> Result<Numeric, ValueError> {
        self.sum(other, true)
    }

    fn sum(&self, other: &Numeric, negate: bool) -> Result<Numeric, ValueError> {
        if let (Some((a, a_scale)), Some((b, b_scale))) = (self.as_small(), other.as_small()) {
            let scale = a_scale.max(b_scale);
            let a = decimal::scale_up_wide(a.into(), u32::from(scale - a_scale));
            let b = decimal::scale_up_wide(if negate { -i128::from(b) } else { b.into() }, u32::from(scale - b_scale));
            if let Some(sum) = a.zip(b).and_then(|(a, b)| a.checked_add(b)) {
                return Ok(Numeric::from_wide(sum, scale));
            }
        }
        let (Some((a, a_scale)), Some((b, b_scale))) = (self.as_finite(), other.as_finite()) else {
            let other = if negate { other.class().negated() } else { other.class() };
            return Ok(match (self.class(), other) {
                (Class::NaN, _) | (_, Class::NaN) => Numeric::NAN,
                (Class::PosInfinity, Class::NegInfinity) | (Class::NegInfinity, Class::PosInfinity) => Numeric::NAN,
                (Class::PosInfinity, _) | (_, Class::PosInfinity) => Numeric::INFINITY,
                _ => Numeric::NEG_INFINITY,
            });
        };
        let scale = a_scale.max(b_scale);
        let a = decimal::scale_up(&a, u32::from(scale - a_scale));
        let b = decimal::scale_up(&b, u32::from(scale - b_scale));
        Numeric::from_big(if negate { a - b } else { a + b }, scale.into())
    }

    /// `self * other`. A product of more than 16383 digits after the point is rounded to them.
    pub fn mul(&self, other: &Numeric) -> Result<Numeric, ValueError> {
        if let (Some((a, a_scale)), Some((b, b_scale))) = (self.as_small(), other.as_small()) {
            let scale = a_scale + b_scale;
            if scale <= MAX_SCALE {
                return Ok(Numeric::from_wide(i128::from(a) * i128::from(b), scale));
            }
        }
        let (Some((a, a_scale)), Some((b, b_scale))) = (self.as_finite(), other.as_finite()) else {
            let (Some(a), Some(b)) = (self.signum(), other.signum()) else {
                return Ok(Numeric::NAN);
            };
            return Ok(Numeric::infinity_of_sign(a * b).unwrap_or(Numeric::NAN));
        };
        let product = a.as_ref() * b.as_ref();
        let scale = i64::from(a_scale) + i64::from(b_scale);
        let bounded = scale.min(MAX_SCALE.into());
        Numeric::from_big(decimal::rescale(&product, scale, bounded), bounded)
    }

    /// An infinity of a sign; `None` for sign 0.
    pub(super) fn infinity_of_sign(sign: i32) -> Option<Numeric> {
        match sign {
            0 => None,
            1.. => Some(Numeric::INFINITY),
            _ => Some(Numeric::NEG_INFINITY),
        }
    }

    /// `self / other`. 22012 for a divisor of zero, unless the dividend is NaN.
    pub fn div(&self, other: &Numeric) -> Result<Numeric, ValueError> {
        if let (Some((a, a_scale)), Some((b, b_scale))) = (self.as_small(), other.as_small())
            && b != 0
        {
            let (a_scale, b_scale) = (i64::from(a_scale), i64::from(b_scale));
            let a_shape = decimal::shape_small(a.unsigned_abs(), a_scale);
            let b_shape = decimal::shape_small(b.unsigned_abs(), b_scale);
            let scale = div_scale(a_shape, a_scale, b_shape, b_scale);
            let up = u32::try_from(scale + b_scale - a_scale).ok();
            if let Some(dividend) = up.and_then(|up| decimal::scale_up_wide(a.into(), up)) {
                let quotient = decimal::div_round_wide(dividend, b.into());
                return Ok(Numeric::from_wide(quotient, u16::try_from(scale).unwrap_or(MAX_SCALE)));
            }
        }
        let (Some((a, a_scale)), Some((b, b_scale))) = (self.as_finite(), other.as_finite()) else {
            return self.special_quotient(other);
        };
        if b.is_zero() {
            return Err(division_by_zero());
        }
        let (a_scale, b_scale) = (i64::from(a_scale), i64::from(b_scale));
        let a_shape = decimal::shape(a.magnitude(), a_scale);
        let b_shape = decimal::shape(b.magnitude(), b_scale);
        let scale = div_scale(a_shape, a_scale, b_shape, b_scale);
        Numeric::from_big(div_to_scale(&a, a_scale, &b, b_scale, scale), scale)
    }

    /// The integer part of the quotient: the SQL function `div`.
    pub fn div_trunc(&self, other: &Numeric) -> Result<Numeric, ValueError> {
        let (Some((a, a_scale)), Some((b, b_scale))) = (self.as_finite(), other.as_finite()) else {
            return self.special_quotient(other);
        };
        if b.is_zero() {
            return Err(division_by_zero());
        }
        let scale = a_scale.max(b_scale);
        let a = decimal::scale_up(&a, u32::from(scale - a_scale));
        let b = decimal::scale_up(&b, u32::from(scale - b_scale));
        Numeric::from_big(a / b, 0)
    }

    /// A quotient of which one operand at least is no number.
    fn special_quotient(&self, other: &Numeric) -> Result<Numeric, ValueError> {
        let (Some(dividend), Some(divisor)) = (self.signum(), other.signum()) else {
            return Ok(Numeric::NAN);
        };
        match (self.is_finite(), other.is_finite()) {
            (true, _) => Ok(Numeric::ZERO),
            (false, false) => Ok(Numeric::NAN),
            (false, true) => Numeric::infinity_of_sign(dividend * divisor).ok_or_else(division_by_zero),
        }
    }

    /// The remainder of the truncated division, which has the sign of the dividend: `%` and `mod`.
    pub fn rem(&self, other: &Numeric) -> Result<Numeric, ValueError> {
        if let (Some((a, a_scale)), Some((b, b_scale))) = (self.as_small(), other.as_small())
            && b != 0
        {
            let scale = a_scale.max(b_scale);
            let a = decimal::scale_up_wide(a.into(), u32::from(scale - a_scale));
            let b = decimal::scale_up_wide(b.into(), u32::from(scale - b_scale));
            if let Some((a, b)) = a.zip(b) {
                return Ok(Numeric::from_wide(a % b, scale));
            }
        }
        let (Some((a, a_scale)), Some((b, b_scale))) = (self.as_finite(), other.as_finite()) else {
            let (Some(_), Some(divisor)) = (self.signum(), other.signum()) else {
                return Ok(Numeric::NAN);
            };
            return match (self.is_finite(), divisor) {
                (true, _) => Ok(self.clone()),
                (false, 0) => Err(division_by_zero()),
                (false, _) => Ok(Numeric::NAN),
            };
        };
        if b.is_zero() {
            return Err(division_by_zero());
        }
        let scale = a_scale.max(b_scale);
        let a = decimal::scale_up(&a, u32::from(scale - a_scale));
        let b = decimal::scale_up(&b, u32::from(scale - b_scale));
        Numeric::from_big(a % b, scale.into())
    }

    /// Unary minus.
    pub fn neg(&self) -> Numeric {
        match self.class() {
            Class::NaN => Numeric::NAN,
            Class::PosInfinity => Numeric::NEG_INFINITY,
            Class::NegInfinity => Numeric::INFINITY,
            Class::Finite => match (self.as_small(), self.as_finite()) {
                (Some((value, scale)), _) => Numeric::from_wide(-i128::from(value), scale),
                // The digits stay as many, so the value stays in range.
                (None, Some((value, scale))) => {
                    Numeric::from_big(-value.as_ref(), scale.into()).unwrap_or(Numeric::NAN)
                }
                (None, None) => Numeric::NAN,
            },
        }
    }

    /// The absolute value.
    pub fn abs(&self) -> Numeric {
        if self.signum() == Some(-1) { self.neg() } else { self.clone() }
    }

    /// The SQL function `sign`: -1, 0, 1 or NaN.
    pub fn sign(&self) -> Numeric {
        self.signum().map_or(Numeric::NAN, |sign| Numeric::small(sign.into(), 0))
    }

    /// `self + 1`: the SQL function `numeric_inc`.
    pub fn inc(&self) -> Result<Numeric, ValueError> {
        self.add(&Numeric::ONE)
    }
}

impl Class {
    fn negated(self) -> Class {
        match self {
            Class::PosInfinity => Class::NegInfinity,
            Class::NegInfinity => Class::PosInfinity,
            other => other,
        }
    }
}

//! Rounding, truncation and the display scale.

use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::ToPrimitive;

use super::decimal;
use super::value::{MAX_SCALE, Numeric, Repr};
use crate::error::ValueError;

/// `round` and `trunc` take a smaller scale for this one: there are no digits so far before the point.
const MIN_SCALE: i32 = -131_073;

/// How digits are dropped.
#[derive(Clone, Copy)]
enum Mode {
    HalfAwayFromZero,
    TowardZero,
    Floor,
    Ceiling,
}

fn clamped(scale: i32) -> i32 {
    scale.clamp(MIN_SCALE, i32::from(MAX_SCALE))
}

impl Numeric {
    /// The value rounded to a scale, half away from zero. A negative scale rounds digits before the point, and the
    /// result has scale 0. 22003 if rounding up makes too many digits.
    pub fn round(&self, scale: i32) -> Result<Numeric, ValueError> {
        self.at_scale(clamped(scale), Mode::HalfAwayFromZero)
    }

    /// The value cut toward zero to a scale. A negative scale cuts digits before the point.
    pub fn trunc(&self, scale: i32) -> Result<Numeric, ValueError> {
        self.at_scale(clamped(scale), Mode::TowardZero)
    }

    /// The least integer that is not less than the value.
    pub fn ceil(&self) -> Result<Numeric, ValueError> {
        self.at_scale(0, Mode::Ceiling)
    }

    /// The greatest integer that is not greater than the value.
    pub fn floor(&self) -> Result<Numeric, ValueError> {
        self.at_scale(0, Mode::Floor)
    }

    fn at_scale(&self, target: i32, mode: Mode) -> Result<Numeric, ValueError> {
        if let Some(value) = self.small_at_scale(target, mode) {
            return Ok(value);
        }
        let Some((value, scale)) = self.as_finite() else {
            return Ok(self.clone());
        };
        let (scale, target) = (i64::from(scale), i64::from(target));
        let value = match mode {
            Mode::HalfAwayFromZero => decimal::rescale(&value, scale, target),
            Mode::TowardZero => decimal::rescale_trunc(&value, scale, target),
            Mode::Floor | Mode::Ceiling if scale <= target => {
                decimal::scale_up(&value, (target - scale).to_u32().unwrap_or(0))
            }
            Mode::Floor => value.div_floor(&BigInt::from(decimal::pow10((scale - target).to_u32().unwrap_or(0)))),
            Mode::Ceiling => {
                -(-value.as_ref()).div_floor(&BigInt::from(decimal::pow10((scale - target).to_u32().unwrap_or(0))))
            }
        };
        Numeric::from_big(decimal::rescale(&value, target, target.max(0)), target.max(0))
    }

    fn small_at_scale(&self, target: i32, mode: Mode) -> Option<Numeric> {
        let (value, scale) = self.as_small()?;
        let target = u16::try_from(target).ok()?;
        let value = i128::from(value);
        let value = if target >= scale {
            decimal::scale_up_wide(value, u32::from(target - scale))?
        } else {
            let divisor = decimal::pow10_wide(u32::from(scale - target))?;
            match mode {
                Mode::HalfAwayFromZero => decimal::div_round_wide(value, divisor),
                Mode::TowardZero => value / divisor,
                Mode::Floor => value.div_euclid(divisor),
                Mode::Ceiling => -(-value).div_euclid(divisor),
            }
        };
        Some(Numeric::from_wide(value, target))
    }

    /// The least scale that keeps the value: the SQL function `min_scale`. `None` for NaN and infinities.
    pub fn min_scale(&self) -> Option<u16> {
        let scale = self.scale()?;
        let zeros = match &self.0 {
            Repr::Small { unscaled: 0, .. } => return Some(0),
            Repr::Small { unscaled, .. } => decimal::strip_zeros_small(*unscaled).1,
            Repr::Big(big) => decimal::strip_zeros(big.unscaled.magnitude()).1,
            _ => return None,
        };
        Some(scale.saturating_sub(u16::try_from(zeros).unwrap_or(MAX_SCALE)))
    }

    /// The value with its least scale: the SQL function `trim_scale`.
    pub fn trim_scale(&self) -> Numeric {
        match (self.min_scale(), self.as_finite()) {
            (Some(least), Some((value, scale))) => {
                let value = decimal::rescale(&value, scale.into(), least.into());
                // Fewer digits than a value in range has.
                Numeric::from_big(value, least.into()).unwrap_or_else(|_| self.clone())
            }
            _ => self.clone(),
        }
    }
}

//! The type modifier of `numeric(precision, scale)`: its bounds, its integer form, and rounding to it.

use std::fmt;

use num_bigint::BigInt;
use num_traits::ToPrimitive;

use super::decimal;
use super::value::{Class, MAX_PRECISION, Numeric};
use crate::error::ValueError;
use crate::sqlstate::SqlState;

/// A declared precision and scale. The precision is 1 to 1000, the scale -1000 to 1000.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Typmod {
    precision: i16,
    scale: i16,
}

/// The offset of the integer form of a type modifier.
const OFFSET: i32 = 4;

impl Typmod {
    /// `numeric(precision, scale)`. 22023 outside of the bounds.
    pub fn new(precision: i32, scale: i32) -> Result<Typmod, ValueError> {
        if !(1..=MAX_PRECISION).contains(&precision) {
            let message = format!("NUMERIC precision {precision} must be between 1 and {MAX_PRECISION}");
            return Err(ValueError::new(SqlState::INVALID_PARAMETER_VALUE, message));
        }
        if !(-MAX_PRECISION..=MAX_PRECISION).contains(&scale) {
            let message = format!("NUMERIC scale {scale} must be between -{MAX_PRECISION} and {MAX_PRECISION}");
            return Err(ValueError::new(SqlState::INVALID_PARAMETER_VALUE, message));
        }
        let narrow = |value: i32| i16::try_from(value).unwrap_or(0);
        Ok(Typmod { precision: narrow(precision), scale: narrow(scale) })
    }

    /// From the arguments of a type name: `numeric(p)` or `numeric(p, s)`. 22023 for another count or outside of the
    /// bounds.
    pub fn from_arguments(arguments: &[i32]) -> Result<Typmod, ValueError> {
        match arguments {
            [precision] => Typmod::new(*precision, 0),
            [precision, scale] => Typmod::new(*precision, *scale),
            _ => Err(ValueError::new(SqlState::INVALID_PARAMETER_VALUE, "invalid NUMERIC type modifier")),
        }
    }

    /// The type that a picture of `to_number` declares. Its bounds do not apply; one without room is no bound.
    pub(super) fn of_picture(precision: usize, scale: usize) -> Option<Typmod> {
        Some(Typmod { precision: i16::try_from(precision).ok()?, scale: i16::try_from(scale).ok()? })
    }

    /// The digits in total.
    pub fn precision(self) -> i32 {
        self.precision.into()
    }

    /// The digits after the decimal point. Negative: digits before it that are zeros.
    pub fn scale(self) -> i32 {
        self.scale.into()
    }

    /// The integer form, as in `pg_attribute.atttypmod`.
    pub fn encode(self) -> i32 {
        (self.precision() << 16 | (self.scale() & 0x7ff)) + OFFSET
    }

    /// The modifier of an integer form; `None` for an unconstrained one, such as -1, or one that `encode` never gives.
    pub fn decode(typmod: i32) -> Option<Typmod> {
        let bits = typmod.checked_sub(OFFSET).filter(|bits| *bits >= 0)?;
        Typmod::new(bits >> 16, ((bits & 0x7ff) ^ 1024) - 1024).ok()
    }

    /// 22003 for a number that is too large for the type.
    pub(super) fn field_overflow(self) -> ValueError {
        let (precision, scale) = (self.precision(), self.scale());
        let bound = match precision - scale {
            0 => "1".to_owned(),
            digits => format!("10^{digits}"),
        };
        field_error(format!(
            "A field with precision {precision}, scale {scale} must round to an absolute value less than {bound}."
        ))
    }

    /// Rounds `value / 10^scale` to the type. 22003 if the result is too large for it.
    pub(super) fn round(self, value: &BigInt, scale: i64) -> Result<Numeric, ValueError> {
        let target = i64::from(self.scale());
        let rounded = decimal::rescale(value, scale, target);
        // Digits of the rounded value count from the target scale on, so the precision bounds them.
        let limit = u64::try_from(self.precision()).unwrap_or(0);
        if !decimal::fits_digits(rounded.magnitude(), limit) {
            return Err(self.field_overflow());
        }
        Numeric::from_big(decimal::rescale(&rounded, target, target.max(0)), target.max(0))
    }
}

impl fmt::Display for Typmod {
    /// `(precision,scale)`, as behind the name of the type.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({},{})", self.precision, self.scale)
    }
}

fn field_error(detail: String) -> ValueError {
    ValueError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "numeric field overflow").with_detail(detail)
}

impl Numeric {
    /// The value rounded to a declared type, half away from zero. 22003 if it is too large for it.
    pub fn apply_typmod(self, typmod: Option<Typmod>) -> Result<Numeric, ValueError> {
        let Some(typmod) = typmod else {
            return Ok(self);
        };
        match self.class() {
            Class::NaN => return Ok(self),
            Class::PosInfinity | Class::NegInfinity => {
                let Typmod { precision, scale } = typmod;
                return Err(field_error(format!(
                    "A field with precision {precision}, scale {scale} cannot hold an infinite value."
                )));
            }
            Class::Finite => {}
        }
        if let Some(value) = self.fast_typmod(typmod) {
            return Ok(value);
        }
        match self.as_finite() {
            Some((value, scale)) => typmod.round(&value, scale.into()),
            None => Ok(self),
        }
    }

    /// The common case: small values and precisions.
    fn fast_typmod(&self, typmod: Typmod) -> Option<Numeric> {
        let (value, scale) = self.as_small()?;
        let target = u16::try_from(typmod.scale).ok()?;
        let rounded = if target >= scale {
            decimal::scale_up_wide(value.into(), u32::from(target - scale))?
        } else {
            decimal::div_round_wide(value.into(), decimal::pow10_wide(u32::from(scale - target))?)
        };
        let limit = decimal::pow10_wide(typmod.precision.to_u32()?)?;
        (rounded.abs() < limit).then(|| Numeric::from_wide(rounded, target))
    }
}

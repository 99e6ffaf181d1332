//! Casts of `numeric` from and to integers and floats.

use num_traits::ToPrimitive;

use super::value::{Class, Numeric};
use crate::error::ValueError;
use crate::sqlstate::SqlState;

impl From<i64> for Numeric {
    fn from(value: i64) -> Numeric {
        Numeric::small(value, 0)
    }
}

impl From<i128> for Numeric {
    fn from(value: i128) -> Numeric {
        Numeric::from_wide(value, 0)
    }
}

impl Numeric {
    /// The nearest `smallint`, halves away from zero. 22003 out of its range, 0A000 for NaN and infinities.
    pub fn to_i16(&self) -> Result<i16, ValueError> {
        let value = self.to_integer("smallint")?;
        i16::try_from(value).map_err(|_| integer_range("smallint"))
    }

    /// The nearest `integer`, halves away from zero. 22003 out of its range, 0A000 for NaN and infinities.
    pub fn to_i32(&self) -> Result<i32, ValueError> {
        let value = self.to_integer("integer")?;
        i32::try_from(value).map_err(|_| integer_range("integer"))
    }

    /// The nearest `bigint`, halves away from zero. 22003 out of its range, 0A000 for NaN and infinities.
    pub fn to_i64(&self) -> Result<i64, ValueError> {
        self.to_integer("bigint")
    }

    fn to_integer(&self, ty: &str) -> Result<i64, ValueError> {
        let what = match self.class() {
            Class::Finite => {
                // A carry past the largest value leaves the range of integers too.
                let rounded = self.round(0).map_err(|_| integer_range(ty))?;
                return rounded.as_small().map(|(value, _)| value).ok_or_else(|| integer_range(ty));
            }
            Class::NaN => "NaN",
            Class::PosInfinity | Class::NegInfinity => "infinity",
        };
        Err(ValueError::new(SqlState::FEATURE_NOT_SUPPORTED, format!("cannot convert {what} to {ty}")))
    }

    /// A `double precision` as a number of 15 significant digits.
    pub fn from_f64(value: f64) -> Result<Numeric, ValueError> {
        from_float(value, format!("{value:.14e}"))
    }

    /// A `real` as a number of 6 significant digits.
    pub fn from_f32(value: f32) -> Result<Numeric, ValueError> {
        from_float(value.into(), format!("{value:.5e}"))
    }

    /// The nearest `double precision`. 22003 if it would be infinite, or zero for a number that is not.
    pub fn to_f64(&self) -> Result<f64, ValueError> {
        let text = self.to_text();
        let value = text.parse().unwrap_or(f64::NAN);
        if self.is_finite() && (value.is_infinite() || (value == 0.0 && !self.is_zero())) {
            return Err(float_range(&text, "double precision"));
        }
        Ok(value)
    }

    /// The nearest `real`. 22003 if it would be infinite, or zero for a number that is not.
    pub fn to_f32(&self) -> Result<f32, ValueError> {
        let text = self.to_text();
        let value: f32 = text.parse().unwrap_or(f32::NAN);
        if self.is_finite() && (value.is_infinite() || (value == 0.0 && !self.is_zero())) {
            return Err(float_range(&text, "real"));
        }
        Ok(value)
    }

    /// The nearest float, infinite or zero where it is out of range.
    pub(super) fn to_f64_saturating(&self) -> f64 {
        match self.as_small() {
            Some((value, 0)) => value.to_f64().unwrap_or(0.0),
            _ => self.to_text().parse().unwrap_or(f64::NAN),
        }
    }
}

fn integer_range(ty: &str) -> ValueError {
    ValueError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, format!("{ty} out of range"))
}

fn float_range(text: &str, ty: &str) -> ValueError {
    let message = format!("\"{text}\" is out of range for type {ty}");
    ValueError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message)
}

/// The number that a scientific form denotes, without the zeros that end its digits.
fn from_float(value: f64, scientific: String) -> Result<Numeric, ValueError> {
    if value.is_nan() {
        return Ok(Numeric::NAN);
    }
    if value.is_infinite() {
        return Ok(if value > 0.0 { Numeric::INFINITY } else { Numeric::NEG_INFINITY });
    }
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let mantissa = mantissa.trim_end_matches('0').trim_end_matches('.');
    Numeric::parse(&format!("{mantissa}e{exponent}"))
}

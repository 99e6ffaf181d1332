//! Casts from `jsonb` to `boolean` and to the numeric types.

use super::number::JsonNumber;
use super::value::Jsonb;
use crate::error::ValueError;
use crate::sqlstate::SqlState;

impl Jsonb {
    /// The cast to `boolean`. 22023 for another type.
    pub fn to_bool(&self) -> Result<bool, ValueError> {
        match self {
            Jsonb::Bool(value) => Ok(*value),
            _ => Err(self.no_cast("boolean")),
        }
    }

    /// The cast to `numeric`. 22023 for another type than a number.
    pub fn to_number(&self) -> Result<&JsonNumber, ValueError> {
        self.number_for("numeric")
    }

    /// The number that the cast to `real` starts with. 22023 for another type.
    pub fn to_number_for_real(&self) -> Result<&JsonNumber, ValueError> {
        self.number_for("real")
    }

    /// The cast to `smallint`, halves away from zero. 22023 for another type, 22003 out of range.
    pub fn to_i16(&self) -> Result<i16, ValueError> {
        let value = self.number_for("smallint")?.to_i64();
        value.and_then(|value| value.try_into().ok()).ok_or_else(|| out_of_range("smallint"))
    }

    /// The cast to `integer`, halves away from zero. 22023 for another type, 22003 out of range.
    pub fn to_i32(&self) -> Result<i32, ValueError> {
        let value = self.number_for("integer")?.to_i64();
        value.and_then(|value| value.try_into().ok()).ok_or_else(|| out_of_range("integer"))
    }

    /// The cast to `bigint`, halves away from zero. 22023 for another type, 22003 out of range.
    pub fn to_i64(&self) -> Result<i64, ValueError> {
        self.number_for("bigint")?.to_i64().ok_or_else(|| out_of_range("bigint"))
    }

    /// The cast to `double precision`. 22023 for another type, 22003 out of range.
    pub fn to_f64(&self) -> Result<f64, ValueError> {
        self.number_for("double precision")?.to_f64()
    }

    fn number_for(&self, target: &str) -> Result<&JsonNumber, ValueError> {
        match self {
            Jsonb::Number(number) => Ok(number),
            _ => Err(self.no_cast(target)),
        }
    }

    fn no_cast(&self, target: &str) -> ValueError {
        let name = match self {
            Jsonb::Number(_) => "numeric",
            value => value.type_name(),
        };
        ValueError::new(SqlState::INVALID_PARAMETER_VALUE, format!("cannot cast jsonb {name} to type {target}"))
    }
}

fn out_of_range(target: &str) -> ValueError {
    ValueError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, format!("{target} out of range"))
}

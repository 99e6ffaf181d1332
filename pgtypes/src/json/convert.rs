//! What the casts from `jsonb` take of a value.

use super::value::Jsonb;
use crate::error::ValueError;
use crate::numeric::Numeric;
use crate::sqlstate::SqlState;

impl Jsonb {
    /// The value of a boolean. 22023 for another type.
    pub fn to_bool(&self) -> Result<bool, ValueError> {
        match self {
            Jsonb::Bool(value) => Ok(*value),
            _ => Err(self.no_cast("boolean")),
        }
    }

    /// The value of a number. 22023 for another type: there is no cast to the type `target`.
    pub fn to_number(&self, target: &str) -> Result<&Numeric, ValueError> {
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

//! Functions of number theory: greatest common divisor, least common multiple, factorial.

use num_bigint::{BigInt, BigUint};
use num_integer::Integer;
use num_traits::{Signed, Zero};

use super::decimal;
use super::value::{Numeric, overflow};
use crate::error::ValueError;
use crate::sqlstate::SqlState;

/// The largest argument whose factorial has at most 131072 digits.
const FACTORIAL_LIMIT: i64 = 32_177;

impl Numeric {
    /// The greatest common divisor: the largest number of which both are integral multiples. NaN if one is no number.
    pub fn gcd(&self, other: &Numeric) -> Result<Numeric, ValueError> {
        match self.aligned(other) {
            Some((a, b, scale)) => Numeric::from_big(a.gcd(&b).abs(), scale.into()),
            None => Ok(Numeric::NAN),
        }
    }

    /// The least common multiple; 0 if one is 0, NaN if one is no number. 22003 if it has too many digits.
    pub fn lcm(&self, other: &Numeric) -> Result<Numeric, ValueError> {
        match self.aligned(other) {
            Some((a, b, scale)) if a.is_zero() || b.is_zero() => Numeric::from_big(BigInt::ZERO, scale.into()),
            Some((a, b, scale)) => Numeric::from_big((&a / a.gcd(&b) * b).abs(), scale.into()),
            None => Ok(Numeric::NAN),
        }
    }

    /// Both unscaled values at the larger scale.
    fn aligned(&self, other: &Numeric) -> Option<(BigInt, BigInt, u16)> {
        let ((a, a_scale), (b, b_scale)) = (self.as_finite()?, other.as_finite()?);
        let scale = a_scale.max(b_scale);
        let up = |value: &BigInt, from: u16| decimal::scale_up(value, u32::from(scale - from));
        Some((up(&a, a_scale), up(&b, b_scale), scale))
    }

    /// The factorial. 22003 for negative arguments and those above 32177.
    pub fn factorial(n: i64) -> Result<Numeric, ValueError> {
        if n < 0 {
            let message = "factorial of a negative number is undefined";
            return Err(ValueError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message));
        }
        if n > FACTORIAL_LIMIT {
            return Err(overflow());
        }
        Numeric::from_big(product(1, n.unsigned_abs().max(1)).into(), 0)
    }
}

/// The product of the integers from `low` to `high`. Halves keep the factors of similar length.
fn product(low: u64, high: u64) -> BigUint {
    if high - low < 16 {
        return (low..=high).fold(BigUint::from(1u32), |product, factor| product * factor);
    }
    let middle = low + (high - low) / 2;
    product(low, middle) * product(middle + 1, high)
}

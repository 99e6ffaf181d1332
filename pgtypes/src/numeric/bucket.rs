//! `width_bucket`: the bucket of a histogram of equal widths that a number belongs to.

use super::value::Numeric;
use crate::error::ValueError;
use crate::sqlstate::SqlState;

impl Numeric {
    /// The bucket of the number among `count` buckets of equal widths between two bounds: 0 before the first bound,
    /// `count + 1` at or after the second. The bounds may descend. 2201G for bad bounds or counts.
    pub fn width_bucket(&self, bound1: &Numeric, bound2: &Numeric, count: i32) -> Result<i32, ValueError> {
        let error = |message: &'static str| Err(ValueError::new(SqlState::INVALID_WIDTH_BUCKET, message));
        if count <= 0 {
            return error("count must be greater than zero");
        }
        if self.is_nan() || bound1.is_nan() || bound2.is_nan() {
            return error("operand, lower bound, and upper bound cannot be NaN");
        }
        if !bound1.is_finite() || !bound2.is_finite() {
            return error("lower and upper bounds must be finite");
        }
        if bound1 == bound2 {
            return error("lower bound cannot equal upper bound");
        }
        let ascending = bound1 < bound2;
        let (before, after) = if ascending { (self < bound1, self >= bound2) } else { (self > bound1, self <= bound2) };
        if before {
            return Ok(0);
        }
        if after {
            let message = "integer out of range";
            return count.checked_add(1).ok_or_else(|| ValueError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message));
        }
        let offset = self.sub(bound1)?.abs();
        let width = bound2.sub(bound1)?.abs();
        // PostgreSQL rounds the quotient like any other, so a number just below a bound may count as on it.
        let bucket = offset.mul(&i64::from(count).into())?.div(&width)?.floor()?.inc()?;
        bucket.to_i32()
    }
}

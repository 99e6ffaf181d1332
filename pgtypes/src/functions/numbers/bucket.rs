//! `width_bucket`: the place of a number among the bars of a histogram.

use super::fault::out_of_range;
use crate::datum::Datum;
use crate::error::ValueError;
use crate::functions::args::Args;
use crate::functions::compare::{check_order, order_of};
use crate::functions::row::{ProcRow, scalar};
use crate::sql_type::SqlType as T;
use crate::sqlstate::SqlState;

pub(super) static ROWS: &[ProcRow] = &[
    scalar(320, "width_bucket", &[T::FLOAT8, T::FLOAT8, T::FLOAT8, T::INT4], T::INT4, of_floats),
    scalar(2170, "width_bucket", &[T::NUMERIC, T::NUMERIC, T::NUMERIC, T::INT4], T::INT4, |args| {
        let bucket = args.numeric(0)?.width_bucket(args.numeric(1)?, args.numeric(2)?, args.i32(3)?)?;
        Ok(Datum::Int(bucket.into()))
    }),
    scalar(3218, "width_bucket", &[T::ANYCOMPATIBLE, T::ANYCOMPATIBLEARRAY], T::INT4, of_thresholds),
];

fn invalid(message: &'static str) -> ValueError {
    ValueError::new(SqlState::INVALID_WIDTH_BUCKET, message)
}

/// Bars of equal width between two bounds, which may be given in descending order. 0 is before them.
fn of_floats(args: &Args<'_>) -> Result<Datum, ValueError> {
    let (operand, bound1, bound2) = (args.float(0)?, args.float(1)?, args.float(2)?);
    let count = args.i32(3)?;
    if count <= 0 {
        return Err(invalid("count must be greater than zero"));
    }
    if operand.is_nan() || bound1.is_nan() || bound2.is_nan() {
        return Err(invalid("operand, lower bound, and upper bound cannot be NaN"));
    }
    if bound1.is_infinite() || bound2.is_infinite() {
        return Err(invalid("lower and upper bounds must be finite"));
    }
    if bound1 == bound2 {
        return Err(invalid("lower bound cannot equal upper bound"));
    }
    let ascending = bound1 < bound2;
    let bucket = match () {
        () if if ascending { operand < bound1 } else { operand > bound1 } => 0,
        () if if ascending { operand >= bound2 } else { operand <= bound2 } => {
            count.checked_add(1).ok_or_else(|| out_of_range(T::INT4))?
        }
        () => inside(operand, bound1, bound2, count),
    };
    Ok(Datum::Int(bucket.into()))
}

/// The bar, from 1, of an operand between the bounds. Both differences have the sign of the direction.
fn inside(operand: f64, bound1: f64, bound2: f64, count: i32) -> i32 {
    let place = f64::from(count) * (operand - bound1) / (bound2 - bound1) + 1.0;
    // NaN fails the test too.
    if place < f64::from(i32::MAX) {
        return place as i32;
    }
    // PostgreSQL's result is meaningless here: a difference or the product is infinite. Halves are not.
    let share = (operand / 2.0 - bound1 / 2.0) / (bound2 / 2.0 - bound1 / 2.0);
    // The share may round to 1.
    ((f64::from(count) * share) as i32).min(count - 1) + 1
}

/// The number of thresholds, which ascend, that the operand is not below of.
fn of_thresholds(args: &Args<'_>) -> Result<Datum, ValueError> {
    let (operand, array) = (args.get(0), args.array(1)?);
    let ty = T::new(array.element());
    if array.dimensions().len() > 1 {
        return Err(ValueError::new(SqlState::ARRAY_SUBSCRIPT_ERROR, "thresholds must be one-dimensional array"));
    }
    let thresholds = array.elements();
    if thresholds.iter().any(Datum::is_null) {
        return Err(ValueError::new(SqlState::NULL_VALUE_NOT_ALLOWED, "thresholds array must not contain NULLs"));
    }
    check_order(ty)?;
    let (mut left, mut right) = (0, thresholds.len());
    while left < right {
        let middle = left + (right - left) / 2;
        let Some(threshold) = thresholds.get(middle) else { break };
        if order_of(ty, operand, threshold)?.is_lt() {
            right = middle;
        } else {
            left = middle + 1;
        }
    }
    Ok(Datum::Int(i64::try_from(left).unwrap_or(i64::MAX)))
}

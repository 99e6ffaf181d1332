//! Accumulators of aggregate functions.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::HashSet;

use super::budget::Budget;
use super::rows::distinct_key;
use crate::coop::{MANY, drop_elsewhere};
use crate::error::{SqlError, SqlState};
use crate::expr::arithmetic::bounded;
use crate::expr::eval::{Env, eval, is_true};
use crate::plan::{AggregateCall, AggregateKind};
use pgtypes::datum::compare;
use pgtypes::{Datum, SqlType};

/// The state of one aggregate.
#[derive(Debug, Default)]
pub(crate) struct Accumulator {
    /// Number of rows whose argument is not NULL.
    count: i64,
    /// Exact: the sum of 2^63 bigints fits.
    int_sum: i128,
    float_sum: f64,
    saw_infinity: bool,
    /// The minimum, maximum or boolean so far.
    value: Option<Datum>,
    seen: HashSet<Vec<u8>>,
}

impl Accumulator {
    /// Adds a row.
    pub(crate) fn add(
        &mut self,
        call: &AggregateCall,
        row: &[Datum],
        env: &Env<'_>,
        budget: &mut Budget,
    ) -> Result<(), SqlError> {
        if let Some(filter) = &call.filter
            && !is_true(filter, row, env)?
        {
            return Ok(());
        }
        let Some(arg) = &call.arg else {
            self.count += 1;
            return Ok(());
        };
        let value = eval(arg, row, env)?;
        if value.is_null() {
            return Ok(());
        }
        if call.distinct {
            let key = distinct_key([&*value]);
            let bytes = key.len() + size_of::<Vec<u8>>();
            if !self.seen.insert(key) {
                return Ok(());
            }
            budget.charge(bytes)?;
        }
        self.count += 1;
        self.step(call.kind, value);
        Ok(())
    }

    fn step(&mut self, kind: AggregateKind, value: Cow<'_, Datum>) {
        match (kind, &*value) {
            (AggregateKind::SumInt | AggregateKind::AvgInt, Datum::Int(v)) => self.int_sum += i128::from(*v),
            (AggregateKind::SumFloat | AggregateKind::AvgFloat, Datum::Float(v)) => {
                self.float_sum += v;
                self.saw_infinity |= v.is_infinite();
            }
            (AggregateKind::Min, _) => self.keep_extreme(value, Ordering::Less),
            (AggregateKind::Max, _) => self.keep_extreme(value, Ordering::Greater),
            (AggregateKind::BoolAnd, Datum::Bool(v)) => {
                self.value = Some(Datum::Bool(*v && self.value != Some(Datum::Bool(false))));
            }
            (AggregateKind::BoolOr, Datum::Bool(v)) => {
                self.value = Some(Datum::Bool(*v || self.value == Some(Datum::Bool(true))));
            }
            _ => {}
        }
    }

    fn keep_extreme(&mut self, value: Cow<'_, Datum>, wanted: Ordering) {
        if self.value.as_ref().is_none_or(|best| compare(&value, best) == wanted) {
            self.value = Some(value.into_owned());
        }
    }

    /// The result over all added rows.
    pub(crate) fn finish(mut self, call: &AggregateCall) -> Result<Datum, SqlError> {
        if self.seen.len() > MANY {
            drop_elsewhere(std::mem::take(&mut self.seen));
        }
        if call.kind == AggregateKind::Count {
            return Ok(Datum::Int(self.count));
        }
        if self.count == 0 {
            return Ok(Datum::Null);
        }
        Ok(match call.kind {
            AggregateKind::SumInt => return bounded(i64::try_from(self.int_sum).ok(), SqlType::INT8),
            AggregateKind::SumFloat => Datum::Float(finite(self.float_sum, self.saw_infinity)?),
            AggregateKind::AvgInt => Datum::Float(int_average(self.int_sum, self.count)),
            AggregateKind::AvgFloat => {
                Datum::Float(finite(self.float_sum, self.saw_infinity)? / as_float(self.count.into()))
            }
            _ => self.value.unwrap_or(Datum::Null),
        })
    }
}

/// Fails if finite inputs overflowed to an infinite sum.
fn finite(sum: f64, saw_infinity: bool) -> Result<f64, SqlError> {
    if sum.is_infinite() && !saw_infinity {
        return Err(SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: overflow"));
    }
    Ok(sum)
}

fn as_float(value: i128) -> f64 {
    value as f64
}

/// The average of integers. Whole part and remainder are divided separately to keep precision.
fn int_average(sum: i128, count: i64) -> f64 {
    let count = i128::from(count);
    as_float(sum / count) + as_float(sum % count) / as_float(count)
}

//! Aggregates with a state of one value: counts, sums, bits, the least and the greatest.

use std::cmp::Ordering;

use crate::datum::Datum;
use crate::error::ValueError;
use crate::float::narrow;
use crate::functions::aggregate::Aggregate;
use crate::functions::args::Args;
use crate::functions::compare::order_of;
use crate::functions::numbers::float_overflow;
use crate::sql_type::SqlType;

fn wrong_kind() -> ValueError {
    ValueError::internal("values of an aggregate are of several kinds")
}

/// `count`: of the rows that it gets.
#[derive(Debug, Default)]
pub(super) struct Count(i64);

impl Aggregate for Count {
    fn add(&mut self, _: &Args<'_>) -> Result<(), ValueError> {
        self.0 += 1;
        Ok(())
    }

    fn finish(&mut self, _: &Args<'_>) -> Result<Datum, ValueError> {
        Ok(Datum::Int(self.0))
    }

    fn is_lasting(&self) -> bool {
        true
    }
}

/// Combines the value so far with the next one.
pub(super) type Step = fn(&Datum, &Datum) -> Result<Datum, ValueError>;

/// Combines values of a fixed size, beginning with the first. NULL of no values.
#[derive(Debug)]
pub(super) struct Fold {
    value: Datum,
    step: Step,
}

impl Fold {
    pub(super) fn new(step: Step) -> Fold {
        Fold { value: Datum::Null, step }
    }
}

impl Aggregate for Fold {
    fn add(&mut self, args: &Args<'_>) -> Result<(), ValueError> {
        let next = args.get(0);
        self.value = if self.value.is_null() { next.clone() } else { (self.step)(&self.value, next)? };
        Ok(())
    }

    fn finish(&mut self, _: &Args<'_>) -> Result<Datum, ValueError> {
        Ok(self.value.clone())
    }

    fn is_lasting(&self) -> bool {
        true
    }
}

fn ints(a: &Datum, b: &Datum, step: fn(i64, i64) -> i64) -> Result<Datum, ValueError> {
    match (a, b) {
        (Datum::Int(a), Datum::Int(b)) => Ok(Datum::Int(step(*a, *b))),
        _ => Err(wrong_kind()),
    }
}

/// `sum(integer)`, to `bigint`: the number of rows that would overflow is out of reach, and PostgreSQL wraps there.
pub(super) fn add_ints(a: &Datum, b: &Datum) -> Result<Datum, ValueError> {
    ints(a, b, i64::wrapping_add)
}

pub(super) fn bit_and(a: &Datum, b: &Datum) -> Result<Datum, ValueError> {
    ints(a, b, |a, b| a & b)
}

pub(super) fn bit_or(a: &Datum, b: &Datum) -> Result<Datum, ValueError> {
    ints(a, b, |a, b| a | b)
}

pub(super) fn bit_xor(a: &Datum, b: &Datum) -> Result<Datum, ValueError> {
    ints(a, b, |a, b| a ^ b)
}

fn bools(a: &Datum, b: &Datum, step: fn(bool, bool) -> bool) -> Result<Datum, ValueError> {
    match (a, b) {
        (Datum::Bool(a), Datum::Bool(b)) => Ok(Datum::Bool(step(*a, *b))),
        _ => Err(wrong_kind()),
    }
}

pub(super) fn bool_and(a: &Datum, b: &Datum) -> Result<Datum, ValueError> {
    bools(a, b, |a, b| a && b)
}

pub(super) fn bool_or(a: &Datum, b: &Datum) -> Result<Datum, ValueError> {
    bools(a, b, |a, b| a || b)
}

fn floats(a: &Datum, b: &Datum, sum: fn(f64, f64) -> f64) -> Result<Datum, ValueError> {
    let (Datum::Float(a), Datum::Float(b)) = (a, b) else { return Err(wrong_kind()) };
    match sum(*a, *b) {
        sum if sum.is_infinite() && a.is_finite() && b.is_finite() => Err(float_overflow()),
        sum => Ok(Datum::Float(sum)),
    }
}

pub(super) fn add_floats(a: &Datum, b: &Datum) -> Result<Datum, ValueError> {
    floats(a, b, |a, b| a + b)
}

/// In the precision of `real`, row by row.
pub(super) fn add_reals(a: &Datum, b: &Datum) -> Result<Datum, ValueError> {
    floats(a, b, |a, b| (narrow(a) + narrow(b)).into())
}

pub(super) fn add_intervals(a: &Datum, b: &Datum) -> Result<Datum, ValueError> {
    match (a, b) {
        (Datum::Interval(a), Datum::Interval(b)) => a.plus(*b).map(Datum::Interval),
        _ => Err(wrong_kind()),
    }
}

/// `min` and `max`.
#[derive(Debug)]
pub(super) struct Extreme {
    best: Datum,
    /// The order of the best value to those that it stays ahead of.
    ahead: Ordering,
    /// Of equal values with several forms the last one is the result, but the first one of `character`.
    keeps_first: bool,
    ty: SqlType,
    memory: usize,
}

impl Extreme {
    pub(super) fn new(types: &[SqlType], ahead: Ordering) -> Extreme {
        let ty = types.first().map_or(SqlType::UNKNOWN, |ty| ty.base());
        let keeps_first = ty == SqlType::BPCHAR;
        // The order of vectors is that of arrays here.
        let ty = if ty == SqlType::OIDVECTOR { SqlType::OID_ARRAY } else { ty };
        Extreme { best: Datum::Null, ahead, keeps_first, ty, memory: 0 }
    }
}

impl Aggregate for Extreme {
    fn add(&mut self, args: &Args<'_>) -> Result<(), ValueError> {
        let next = args.get(0);
        if !self.best.is_null() {
            let order = order_of(self.ty, &self.best, next)?;
            if order == self.ahead || (order.is_eq() && self.keeps_first) {
                return Ok(());
            }
        }
        self.best.clone_from(next);
        self.memory = self.best.memory() - size_of::<Datum>();
        Ok(())
    }

    fn finish(&mut self, _: &Args<'_>) -> Result<Datum, ValueError> {
        Ok(self.best.clone())
    }

    fn is_lasting(&self) -> bool {
        true
    }

    fn memory(&self) -> usize {
        self.memory
    }
}

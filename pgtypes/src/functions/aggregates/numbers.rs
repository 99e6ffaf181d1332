//! Sums, averages and variances of integers and `numeric`, which are exact, and of intervals.

use crate::datetime::Interval;
use crate::datum::Datum;
use crate::error::ValueError;
use crate::functions::aggregate::Aggregate;
use crate::functions::args::Args;
use crate::numeric::{Numeric, SumState, VarianceState};

fn datum(value: Option<Numeric>) -> Datum {
    value.map_or(Datum::Null, Datum::Numeric)
}

/// `sum` and `avg` to `numeric`.
#[derive(Debug)]
pub(super) struct Sum {
    state: SumState,
    result: fn(&SumState) -> Result<Option<Numeric>, ValueError>,
}

impl Sum {
    pub(super) fn new(result: fn(&SumState) -> Result<Option<Numeric>, ValueError>) -> Sum {
        Sum { state: SumState::new(), result }
    }
}

impl Aggregate for Sum {
    fn add(&mut self, args: &Args<'_>) -> Result<(), ValueError> {
        match args.get(0) {
            Datum::Numeric(value) => self.state.add(value),
            _ => self.state.add_int(args.int(0)?),
        }
        Ok(())
    }

    fn finish(&mut self, _: &Args<'_>) -> Result<Datum, ValueError> {
        (self.result)(&self.state).map(datum)
    }

    fn is_lasting(&self) -> bool {
        true
    }

    fn memory(&self) -> usize {
        self.state.memory()
    }
}

/// Variances and standard deviations to `numeric`.
#[derive(Debug)]
pub(super) struct Variance {
    state: VarianceState,
    result: fn(&VarianceState) -> Result<Option<Numeric>, ValueError>,
}

impl Variance {
    pub(super) fn new(result: fn(&VarianceState) -> Result<Option<Numeric>, ValueError>) -> Variance {
        Variance { state: VarianceState::new(), result }
    }
}

impl Aggregate for Variance {
    fn add(&mut self, args: &Args<'_>) -> Result<(), ValueError> {
        match args.get(0) {
            Datum::Numeric(value) => self.state.add(value),
            _ => self.state.add_int(args.int(0)?),
        }
        Ok(())
    }

    fn finish(&mut self, _: &Args<'_>) -> Result<Datum, ValueError> {
        (self.result)(&self.state).map(datum)
    }

    fn is_lasting(&self) -> bool {
        true
    }

    fn memory(&self) -> usize {
        self.state.memory()
    }
}

/// `avg(interval)`
#[derive(Debug)]
pub(super) struct IntervalAverage {
    sum: Interval,
    /// A count: PostgreSQL divides by a float.
    count: f64,
}

impl IntervalAverage {
    pub(super) fn new() -> IntervalAverage {
        IntervalAverage { sum: Interval::new(0, 0, 0), count: 0.0 }
    }
}

impl Aggregate for IntervalAverage {
    fn add(&mut self, args: &Args<'_>) -> Result<(), ValueError> {
        self.sum = self.sum.plus(args.interval(0)?)?;
        self.count += 1.0;
        Ok(())
    }

    fn finish(&mut self, _: &Args<'_>) -> Result<Datum, ValueError> {
        if self.count == 0.0 { Ok(Datum::Null) } else { self.sum.divide(self.count).map(Datum::Interval) }
    }

    fn is_lasting(&self) -> bool {
        true
    }
}

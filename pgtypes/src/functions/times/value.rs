//! Dates and times as arguments and results of functions.

use super::super::args::Args;
use crate::datetime::{Date, Extracted, Interval, Time, TimeTz, Timestamp, TimestampTz};
use crate::datum::Datum;
use crate::error::ValueError;
use crate::numeric::Numeric;

/// A `time` of the arguments.
pub(super) fn time(args: &Args<'_>, at: usize) -> Result<Time, ValueError> {
    args.int(at).map(Time)
}

/// A `timestamp` of the arguments.
pub(super) fn ts(args: &Args<'_>, at: usize) -> Result<Timestamp, ValueError> {
    args.int(at).map(Timestamp)
}

/// A `timestamptz` of the arguments.
pub(super) fn tstz(args: &Args<'_>, at: usize) -> Result<TimestampTz, ValueError> {
    args.int(at).map(TimestampTz)
}

/// What a function computes, as the value that it returns.
pub(super) trait Outcome {
    /// The value. Fails with the error that the outcome has.
    fn datum(self) -> Result<Datum, ValueError>;
}

impl<T: Outcome> Outcome for Result<T, ValueError> {
    fn datum(self) -> Result<Datum, ValueError> {
        self.and_then(Outcome::datum)
    }
}

impl<T: Outcome> Outcome for Option<T> {
    fn datum(self) -> Result<Datum, ValueError> {
        self.map_or(Ok(Datum::Null), Outcome::datum)
    }
}

impl Outcome for Date {
    fn datum(self) -> Result<Datum, ValueError> {
        self.0.datum()
    }
}

impl Outcome for Time {
    fn datum(self) -> Result<Datum, ValueError> {
        Ok(Datum::Int(self.0))
    }
}

impl Outcome for TimeTz {
    fn datum(self) -> Result<Datum, ValueError> {
        Ok(Datum::TimeTz(self))
    }
}

impl Outcome for Timestamp {
    fn datum(self) -> Result<Datum, ValueError> {
        Ok(Datum::Int(self.0))
    }
}

impl Outcome for TimestampTz {
    fn datum(self) -> Result<Datum, ValueError> {
        Ok(Datum::Int(self.0))
    }
}

impl Outcome for Interval {
    fn datum(self) -> Result<Datum, ValueError> {
        Ok(Datum::Interval(self))
    }
}

impl Outcome for i32 {
    fn datum(self) -> Result<Datum, ValueError> {
        Ok(Datum::Int(self.into()))
    }
}

impl Outcome for f64 {
    fn datum(self) -> Result<Datum, ValueError> {
        Ok(Datum::Float(self))
    }
}

impl Outcome for bool {
    fn datum(self) -> Result<Datum, ValueError> {
        Ok(Datum::Bool(self))
    }
}

impl Outcome for String {
    fn datum(self) -> Result<Datum, ValueError> {
        Ok(Datum::Text(self.into()))
    }
}

impl Outcome for Extracted {
    fn datum(self) -> Result<Datum, ValueError> {
        let number = match self {
            Extracted::Null => return Ok(Datum::Null),
            Extracted::Infinity => Numeric::INFINITY,
            Extracted::NegInfinity => Numeric::NEG_INFINITY,
            // A scale beyond 16 bits is one beyond that of numerics too.
            Extracted::Number { unscaled, scale } => Numeric::new(unscaled, u16::try_from(scale).unwrap_or(u16::MAX))?,
        };
        Ok(Datum::Numeric(number))
    }
}

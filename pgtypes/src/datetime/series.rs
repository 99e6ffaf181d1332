//! The steps of `generate_series` over timestamps.

use super::fault::parameter;
use super::value::{Interval, Timestamp, TimestampTz};
use super::zone::TimeZone;
use crate::error::ValueError;

/// The state of a series: the next value, the last value and the step.
#[derive(Clone, Copy, Debug)]
pub struct Series<T> {
    next: T,
    stop: T,
    step: Interval,
}

impl<T: Ord + Copy> Series<T> {
    /// A series from `start` to `stop`. 22023 for a step of length zero.
    pub fn new(start: T, stop: T, step: Interval) -> Result<Series<T>, ValueError> {
        if step.span() == 0 {
            return Err(parameter("step size cannot equal zero"));
        }
        Ok(Series { next: start, stop, step })
    }

    /// The next value, while the series lasts. Steps at once, so that a step out of range fails before its value.
    fn advance(&mut self, add: impl Fn(T, Interval) -> Result<T, ValueError>) -> Result<Option<T>, ValueError> {
        let current = self.next;
        let lasts = if self.step.span() > 0 { current <= self.stop } else { current >= self.stop };
        if !lasts {
            return Ok(None);
        }
        self.next = add(current, self.step)?;
        Ok(Some(current))
    }
}

impl Series<Timestamp> {
    /// The next value, `None` after the last. 22008 if the value after it is out of the range.
    pub fn next_value(&mut self) -> Result<Option<Timestamp>, ValueError> {
        self.advance(Timestamp::plus)
    }
}

impl Series<TimestampTz> {
    /// The next value, by the calendar of a zone; `None` after the last. 22008 if the value after it is out of range.
    pub fn next_value(&mut self, zone: &TimeZone) -> Result<Option<TimestampTz>, ValueError> {
        self.advance(|value, step| value.plus(step, zone))
    }
}

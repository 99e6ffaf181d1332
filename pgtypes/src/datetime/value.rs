//! The values of the six types, their ranges, and their order.
//!
//! Order, equality and hash are those of SQL: intervals compare by months of 30 days and days of 24 hours, so
//! `1 mon` equals `30 days`. [`Interval::is_identical`] compares field by field.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use super::fault;
use super::units::{DAY, END_DATE, END_TIMESTAMP, FIRST_DATE, FIRST_TIMESTAMP, SECOND};
use crate::error::ValueError;

/// `date`: days from 2000-01-01. The ends of `i32` are the infinities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date(pub i32);

/// `time without time zone`: microseconds from midnight, 24:00 included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub i64);

/// `time with time zone`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimeTz {
    /// Local time, in microseconds from midnight
    pub micros: i64,
    /// Seconds east of Greenwich, less than 16 hours
    pub offset: i32,
}

/// `timestamp without time zone`: microseconds from 2000-01-01 00:00. The ends of `i64` are the infinities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

/// `timestamp with time zone`: microseconds from 2000-01-01 00:00 UTC. The ends of `i64` are the infinities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimestampTz(pub i64);

/// `interval`: three parts that do not convert into each other.
#[derive(Clone, Copy, Debug, Default)]
pub struct Interval {
    /// Months
    pub months: i32,
    /// Days
    pub days: i32,
    /// Microseconds
    pub micros: i64,
}

impl Date {
    /// `infinity`
    pub const INFINITY: Date = Date(i32::MAX);
    /// `-infinity`
    pub const NEG_INFINITY: Date = Date(i32::MIN);

    /// `isfinite(date)`
    pub fn is_finite(self) -> bool {
        self != Date::INFINITY && self != Date::NEG_INFINITY
    }

    /// A finite date of days from 2000-01-01. 22008 out of the range.
    pub(super) fn from_days(days: i64) -> Result<Date, ValueError> {
        match i32::try_from(days) {
            Ok(small) if (FIRST_DATE..END_DATE).contains(&days) => Ok(Date(small)),
            _ => Err(fault::date_range()),
        }
    }

    pub(super) fn days(self) -> i64 {
        i64::from(self.0)
    }
}

impl Timestamp {
    /// `infinity`
    pub const INFINITY: Timestamp = Timestamp(i64::MAX);
    /// `-infinity`
    pub const NEG_INFINITY: Timestamp = Timestamp(i64::MIN);

    /// `isfinite(timestamp)`
    pub fn is_finite(self) -> bool {
        is_finite(self.0)
    }

    /// A finite value. 22008 out of the range.
    pub(super) fn checked(micros: Option<i64>) -> Result<Timestamp, ValueError> {
        finite(micros).map(Timestamp).ok_or_else(fault::timestamp_range)
    }
}

impl TimestampTz {
    /// `infinity`
    pub const INFINITY: TimestampTz = TimestampTz(i64::MAX);
    /// `-infinity`
    pub const NEG_INFINITY: TimestampTz = TimestampTz(i64::MIN);

    /// `isfinite(timestamptz)`
    pub fn is_finite(self) -> bool {
        is_finite(self.0)
    }

    /// A finite value. 22008 out of the range.
    pub(super) fn checked(micros: Option<i64>) -> Result<TimestampTz, ValueError> {
        finite(micros).map(TimestampTz).ok_or_else(fault::timestamp_range)
    }
}

/// Whether microseconds are no infinity.
pub(super) fn is_finite(micros: i64) -> bool {
    micros != i64::MAX && micros != i64::MIN
}

/// Microseconds in the range of finite timestamps.
pub(super) fn finite(micros: Option<i64>) -> Option<i64> {
    micros.filter(|micros| (FIRST_TIMESTAMP..END_TIMESTAMP).contains(micros))
}

impl TimeTz {
    /// Microseconds of the time in UTC, which may be out of the day.
    pub(super) fn utc(self) -> i64 {
        self.micros - i64::from(self.offset) * SECOND
    }
}

impl PartialOrd for TimeTz {
    fn partial_cmp(&self, other: &TimeTz) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// By the time in UTC, then zones from east to west.
impl Ord for TimeTz {
    fn cmp(&self, other: &TimeTz) -> Ordering {
        self.utc().cmp(&other.utc()).then(other.offset.cmp(&self.offset))
    }
}

impl Interval {
    /// An interval of its parts.
    pub const fn new(months: i32, days: i32, micros: i64) -> Interval {
        Interval { months, days, micros }
    }

    /// Whether the parts are the same.
    pub fn is_identical(&self, other: &Interval) -> bool {
        (self.months, self.days, self.micros) == (other.months, other.days, other.micros)
    }

    /// The length in microseconds, with months of 30 days and days of 24 hours.
    pub(super) fn span(&self) -> i128 {
        (i128::from(self.months) * 30 + i128::from(self.days)) * i128::from(DAY) + i128::from(self.micros)
    }

    /// `isfinite(interval)`: always, in PostgreSQL 15.
    pub fn is_finite(&self) -> bool {
        true
    }
}

impl PartialEq for Interval {
    fn eq(&self, other: &Interval) -> bool {
        self.span() == other.span()
    }
}

impl Eq for Interval {}

impl PartialOrd for Interval {
    fn partial_cmp(&self, other: &Interval) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Interval {
    fn cmp(&self, other: &Interval) -> Ordering {
        self.span().cmp(&other.span())
    }
}

impl Hash for Interval {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.span().hash(state);
    }
}

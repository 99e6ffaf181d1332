//! Sums and differences of dates, times and timestamps.
//!
//! Adding an interval adds its months first, with the day cut to the length of the month, then its days, then its
//! microseconds. With a zone, months and days are those of the local calendar, where a day may have 23 or 25 hours.

use super::calendar::{Fields, days_in_month};
use super::fault;
use super::units::{DAY, END_TIMESTAMP_DATE, SECOND};
use super::value::{Date, Interval, Time, TimeTz, Timestamp, TimestampTz};
use super::zone::TimeZone;
use crate::error::ValueError;
use crate::sqlstate::SqlState;

fn infinite(message: &'static str) -> ValueError {
    ValueError::new(SqlState::DATETIME_FIELD_OVERFLOW, message)
}

impl Date {
    /// `date + integer`. 22008 out of the range; an infinity stays.
    pub fn plus_days(self, days: i32) -> Result<Date, ValueError> {
        if !self.is_finite() {
            return Ok(self);
        }
        Date::from_days(self.days() + i64::from(days))
    }

    /// `date - integer`. 22008 out of the range; an infinity stays.
    pub fn minus_days(self, days: i32) -> Result<Date, ValueError> {
        if !self.is_finite() {
            return Ok(self);
        }
        Date::from_days(self.days() - i64::from(days))
    }

    /// `date - date`, in days. 22008 for an infinity.
    pub fn minus(self, other: Date) -> Result<i32, ValueError> {
        if !self.is_finite() || !other.is_finite() {
            return Err(infinite("cannot subtract infinite dates"));
        }
        Ok(self.0.wrapping_sub(other.0))
    }

    /// `date + time`. 22008 out of the range of timestamps.
    pub fn plus_time(self, time: Time) -> Result<Timestamp, ValueError> {
        let midnight = self.to_timestamp()?;
        if !midnight.is_finite() {
            return Ok(midnight);
        }
        Timestamp::checked(midnight.0.checked_add(time.0))
    }

    /// `date + timetz`. 22008 out of the range of timestamps.
    pub fn plus_timetz(self, time: TimeTz) -> Result<TimestampTz, ValueError> {
        match self {
            Date::INFINITY => return Ok(TimestampTz::INFINITY),
            Date::NEG_INFINITY => return Ok(TimestampTz::NEG_INFINITY),
            _ => {}
        }
        if self.days() >= END_TIMESTAMP_DATE {
            return Err(fault::date_without_timestamp());
        }
        let micros = (self.days() * DAY).checked_add(time.utc());
        TimestampTz::checked(micros).map_err(|_| fault::date_without_timestamp())
    }

    /// `date + interval`. 22008 out of the range of timestamps.
    pub fn plus_interval(self, interval: Interval) -> Result<Timestamp, ValueError> {
        self.to_timestamp()?.plus(interval)
    }

    /// `date - interval`. 22008 out of the range of timestamps.
    pub fn minus_interval(self, interval: Interval) -> Result<Timestamp, ValueError> {
        self.to_timestamp()?.minus_interval(interval)
    }
}

impl Time {
    /// `time + interval`: months and days do not count, and midnight follows 23:59:59.999999.
    pub fn plus(self, interval: Interval) -> Time {
        Time(self.0.wrapping_add(interval.micros).rem_euclid(DAY))
    }

    /// `time - interval`: months and days do not count.
    pub fn minus_interval(self, interval: Interval) -> Time {
        Time(self.0.wrapping_sub(interval.micros).rem_euclid(DAY))
    }

    /// `time - time`
    pub fn minus(self, other: Time) -> Interval {
        Interval::new(0, 0, self.0 - other.0)
    }
}

impl TimeTz {
    /// `timetz + interval`: months and days do not count.
    pub fn plus(self, interval: Interval) -> TimeTz {
        TimeTz { micros: Time(self.micros).plus(interval).0, ..self }
    }

    /// `timetz - interval`: months and days do not count.
    pub fn minus_interval(self, interval: Interval) -> TimeTz {
        TimeTz { micros: Time(self.micros).minus_interval(interval).0, ..self }
    }
}

impl Timestamp {
    /// `timestamp + interval`. 22008 out of the range; an infinity stays.
    pub fn plus(self, interval: Interval) -> Result<Timestamp, ValueError> {
        if !self.is_finite() {
            return Ok(self);
        }
        let mut local = self.0;
        for step in calendar_steps(interval) {
            Timestamp(local) = Timestamp::checked(move_local(local, step))?;
        }
        Timestamp::checked(local.checked_add(interval.micros))
    }

    /// `timestamp - interval`. 22008 out of the range; an infinity stays.
    pub fn minus_interval(self, interval: Interval) -> Result<Timestamp, ValueError> {
        self.plus(interval.wrapping_neg())
    }

    /// `timestamp - timestamp`, in days and microseconds. 22008 for an infinity.
    pub fn minus(self, other: Timestamp) -> Result<Interval, ValueError> {
        difference(self.0, other.0)
    }
}

impl TimestampTz {
    /// `timestamptz + interval` in the session's zone. 22008 out of the range; an infinity stays.
    pub fn plus(self, interval: Interval, zone: &TimeZone) -> Result<TimestampTz, ValueError> {
        if !self.is_finite() {
            return Ok(self);
        }
        let mut micros = self.0;
        // Each step finds the instant of its local time, also where that is not unique.
        for step in calendar_steps(interval) {
            let moved = move_local(zone.to_local(micros), step);
            let instant = moved.and_then(|local| local.checked_sub(zone.offset_of_local(local) * SECOND));
            TimestampTz(micros) = TimestampTz::checked(instant)?;
        }
        TimestampTz::checked(micros.checked_add(interval.micros))
    }

    /// `timestamptz - interval` in the session's zone. 22008 out of the range; an infinity stays.
    pub fn minus_interval(self, interval: Interval, zone: &TimeZone) -> Result<TimestampTz, ValueError> {
        self.plus(interval.wrapping_neg(), zone)
    }

    /// `timestamptz - timestamptz`, in days of 24 hours and microseconds. 22008 for an infinity.
    pub fn minus(self, other: TimestampTz) -> Result<Interval, ValueError> {
        difference(self.0, other.0)
    }
}

/// The steps of an interval in the calendar: months, then days. Each must end in the range.
fn calendar_steps(interval: Interval) -> impl Iterator<Item = Interval> {
    let steps = [Interval::new(interval.months, 0, 0), Interval::new(0, interval.days, 0)];
    steps.into_iter().filter(|step| step.months != 0 || step.days != 0)
}

/// Adds the months and the days of an interval to a local time.
fn move_local(local: i64, interval: Interval) -> Option<i64> {
    let mut fields = Fields::of(local);
    if interval.months != 0 {
        let months = fields.month - 1 + i64::from(interval.months);
        fields.year += months.div_euclid(12);
        fields.month = months.rem_euclid(12) + 1;
        fields.day = fields.day.min(days_in_month(fields.year, fields.month));
    }
    let days = fields.days().checked_add(i64::from(interval.days))?;
    days.checked_mul(DAY)?.checked_add(fields.time())
}

fn difference(a: i64, b: i64) -> Result<Interval, ValueError> {
    let is_infinite = |micros: i64| micros == i64::MAX || micros == i64::MIN;
    if is_infinite(a) || is_infinite(b) {
        return Err(infinite("cannot subtract infinite timestamps"));
    }
    // PostgreSQL 15 wraps around, beyond 292 thousand years.
    Interval::new(0, 0, a.wrapping_sub(b)).justify_hours()
}

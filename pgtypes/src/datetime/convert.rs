//! Casts between the types, comparisons between types, and the functions of the current time.

use std::cmp::Ordering;

use super::fault;
use super::session::Session;
use super::units::{DAY, END_TIMESTAMP_DATE, SECOND};
use super::value::{Date, Interval, Time, TimeTz, Timestamp, TimestampTz, is_finite};
use super::zone::TimeZone;
use crate::error::ValueError;

impl Date {
    /// Midnight of the date. 22008 for a date after the range of timestamps.
    pub fn to_timestamp(self) -> Result<Timestamp, ValueError> {
        match self {
            Date::INFINITY => Ok(Timestamp::INFINITY),
            Date::NEG_INFINITY => Ok(Timestamp::NEG_INFINITY),
            _ if self.days() >= END_TIMESTAMP_DATE => Err(fault::date_without_timestamp()),
            _ => Ok(Timestamp(self.days() * DAY)),
        }
    }

    /// Midnight of the date in a zone. 22008 out of the range of timestamps.
    pub fn to_timestamptz(self, zone: &TimeZone) -> Result<TimestampTz, ValueError> {
        let Timestamp(midnight) = self.to_timestamp()?;
        if !is_finite(midnight) {
            return Ok(TimestampTz(midnight));
        }
        let instant = midnight.checked_sub(zone.offset_of_local(midnight) * SECOND);
        TimestampTz::checked(instant).map_err(|_| fault::date_without_timestamp())
    }

    /// Compares with a timestamp. Never fails: a date without a timestamp is greater than all finite ones.
    pub fn cmp_timestamp(self, other: Timestamp) -> Ordering {
        wide(self).cmp(&i128::from(other.0))
    }

    /// Compares the midnight of the date in a zone with a timestamp.
    pub fn cmp_timestamptz(self, other: TimestampTz, zone: &TimeZone) -> Ordering {
        let midnight = wide(self);
        let instant = match i64::try_from(midnight) {
            // A date after the range of timestamps stays before infinity in every zone.
            Ok(local) if is_finite(local) => {
                (midnight - i128::from(zone.offset_of_local(local) * SECOND)).min(i128::from(i64::MAX - 1))
            }
            _ => midnight,
        };
        instant.cmp(&i128::from(other.0))
    }

    /// `current_date`: the date of the start of the transaction in the session's zone.
    pub fn current(session: &Session<'_>) -> Date {
        Date(i32::try_from(session.local_now().div_euclid(DAY)).unwrap_or(0))
    }
}

/// Midnight in microseconds. The infinities are those of timestamps, and finite dates are between.
fn wide(date: Date) -> i128 {
    match date {
        Date::INFINITY => i128::from(i64::MAX),
        Date::NEG_INFINITY => i128::from(i64::MIN),
        _ => (i128::from(date.0) * i128::from(DAY)).min(i128::from(i64::MAX - 1)),
    }
}

impl Timestamp {
    /// The date. 22008 never happens for values in range.
    pub fn to_date(self) -> Date {
        match self {
            Timestamp::INFINITY => Date::INFINITY,
            Timestamp::NEG_INFINITY => Date::NEG_INFINITY,
            Timestamp(micros) => Date(i32::try_from(micros.div_euclid(DAY)).unwrap_or(0)),
        }
    }

    /// The time of the day; NULL for an infinity.
    pub fn to_time(self) -> Option<Time> {
        self.is_finite().then(|| Time(self.0.rem_euclid(DAY)))
    }

    /// The instant of the local time in a zone. 22008 out of the range.
    pub fn to_timestamptz(self, zone: &TimeZone) -> Result<TimestampTz, ValueError> {
        if !self.is_finite() {
            return Ok(TimestampTz(self.0));
        }
        TimestampTz::checked(self.0.checked_sub(zone.offset_of_local(self.0) * SECOND))
    }

    /// Compares the local time in a zone with an instant. Never fails.
    pub fn cmp_timestamptz(self, other: TimestampTz, zone: &TimeZone) -> Ordering {
        if !self.is_finite() {
            return self.0.cmp(&other.0);
        }
        let instant = i128::from(self.0) - i128::from(zone.offset_of_local(self.0) * SECOND);
        instant.cmp(&i128::from(other.0))
    }

    /// `localtimestamp`
    pub fn current(session: &Session<'_>) -> Timestamp {
        Timestamp(session.local_now())
    }
}

impl TimestampTz {
    /// The local time in a zone. 22008 out of the range.
    pub fn to_timestamp(self, zone: &TimeZone) -> Result<Timestamp, ValueError> {
        if !self.is_finite() {
            return Ok(Timestamp(self.0));
        }
        Timestamp::checked(Some(zone.to_local(self.0)))
    }

    /// The date in a zone. 22008 out of the range.
    pub fn to_date(self, zone: &TimeZone) -> Date {
        if self.is_finite() { Timestamp(zone.to_local(self.0)).to_date() } else { Timestamp(self.0).to_date() }
    }

    /// The time of the day in a zone; NULL for an infinity.
    pub fn to_time(self, zone: &TimeZone) -> Option<Time> {
        self.is_finite().then(|| Time(zone.to_local(self.0).rem_euclid(DAY)))
    }

    /// The time of the day in a zone, with its offset; NULL for an infinity.
    pub fn to_timetz(self, zone: &TimeZone) -> Option<TimeTz> {
        let Time(micros) = self.to_time(zone)?;
        Some(TimeTz { micros, offset: i32::try_from(zone.offset_at(self.0)).unwrap_or(0) })
    }

    /// `now()`
    pub fn current(session: &Session<'_>) -> TimestampTz {
        TimestampTz(session.now.0)
    }
}

impl Time {
    /// The time in the session's zone, with the offset of today.
    pub fn to_timetz(self, session: &Session<'_>) -> TimeTz {
        let today = session.local_now().div_euclid(DAY) * DAY;
        let offset = session.zone.offset_of_local(today.saturating_add(self.0));
        TimeTz { micros: self.0, offset: i32::try_from(offset).unwrap_or(0) }
    }

    /// The time as an interval.
    pub fn to_interval(self) -> Interval {
        Interval::new(0, 0, self.0)
    }

    /// `localtime`
    pub fn current(session: &Session<'_>) -> Time {
        Time(session.local_now().rem_euclid(DAY))
    }
}

impl TimeTz {
    /// The time without its zone.
    pub fn to_time(self) -> Time {
        Time(self.micros)
    }

    /// `current_time`
    pub fn current(session: &Session<'_>) -> TimeTz {
        let offset = i32::try_from(session.zone.offset_at(session.now.0)).unwrap_or(0);
        TimeTz { micros: Time::current(session).0, offset }
    }
}

impl Interval {
    /// The time of the day that an interval ends at, if it starts at midnight. Months and days do not count.
    pub fn to_time(self) -> Time {
        Time(self.micros.rem_euclid(DAY))
    }
}

/// `(a, b) OVERLAPS (c, d)`, for ends that are times. `None` is NULL.
///
/// A period is given by its ends in any order, and contains its start only. A NULL end leaves the result open unless
/// the start decides.
pub fn overlaps<T: Ord + Copy>(first: (Option<T>, Option<T>), second: (Option<T>, Option<T>)) -> Option<bool> {
    let (start1, end1) = ordered(first)?;
    let (start2, end2) = ordered(second)?;
    let (end_of_first, start_of_second) = match start1.cmp(&start2) {
        Ordering::Equal => {
            return if end1.is_none() || end2.is_none() { None } else { Some(true) };
        }
        Ordering::Greater => (end2, start1),
        Ordering::Less => (end1, start2),
    };
    match end_of_first {
        Some(end) if start_of_second < end => Some(true),
        // An unknown end could still reach over the second start.
        None => None,
        Some(_) if end1.is_none() || end2.is_none() => None,
        Some(_) => Some(false),
    }
}

/// A start and an end that is not before it. A missing start is the end; both missing are `None`.
fn ordered<T: Ord + Copy>((a, b): (Option<T>, Option<T>)) -> Option<(T, Option<T>)> {
    match (a, b) {
        (None, None) => None,
        (Some(only), None) | (None, Some(only)) => Some((only, None)),
        (Some(a), Some(b)) if a > b => Some((b, Some(a))),
        (Some(a), b) => Some((a, b)),
    }
}

//! `age`: differences in years, months, days and time.

use super::calendar::{Fields, days_in_month};
use super::fault;
use super::session::Session;
use super::units::DAY;
use super::value::{Interval, Timestamp, TimestampTz};
use super::zone::TimeZone;
use crate::error::ValueError;

impl Timestamp {
    /// `age(timestamp, timestamp)`. 22008 for `-infinity`.
    pub fn age(self, other: Timestamp) -> Result<Interval, ValueError> {
        age((self.0, 0), (other.0, 0))
    }

    /// `age(timestamp)`: from this timestamp to the start of today. 22008 for `-infinity`.
    pub fn age_today(self, session: &Session<'_>) -> Result<Interval, ValueError> {
        let today = Timestamp(session.local_now().div_euclid(DAY) * DAY);
        today.age(self)
    }
}

impl TimestampTz {
    /// `age(timestamptz, timestamptz)` by the local times in a zone. 22008 for `-infinity`.
    pub fn age(self, other: TimestampTz, zone: &TimeZone) -> Result<Interval, ValueError> {
        age((self.0, zone.offset_at(self.0)), (other.0, zone.offset_at(other.0)))
    }

    /// `age(timestamptz)`: from this timestamp to the start of today. 22008 for `-infinity`.
    pub fn age_today(self, session: &Session<'_>) -> Result<Interval, ValueError> {
        let today = Timestamp(session.local_now().div_euclid(DAY) * DAY);
        today.to_timestamptz(session.zone)?.age(self, session.zone)
    }
}

/// The age between two instants, each with its offset in seconds.
fn age((instant1, offset1): (i64, i64), (instant2, offset2): (i64, i64)) -> Result<Interval, ValueError> {
    if instant1 == i64::MIN || instant2 == i64::MIN {
        return Err(fault::timestamp_range());
    }
    let (first, second) = (Fields::of_instant(instant1, offset1), Fields::of_instant(instant2, offset2));
    let negative = instant1 < instant2;
    let (late, early) = if negative { (second, first) } else { (first, second) };
    let mut time = late.time() - early.time();
    let mut days = late.day - early.day;
    let mut months = late.month - early.month + 12 * (late.year - early.year);
    if time < 0 {
        time += DAY;
        days -= 1;
    }
    // Days are borrowed from the month of the earlier time.
    let length = days_in_month(early.year, early.month);
    while days < 0 {
        days += length;
        months -= 1;
    }
    let sign = if negative { -1 } else { 1 };
    let small = |value: i64| i32::try_from(sign * value).map_err(|_| fault::interval_range());
    Ok(Interval::new(small(months)?, small(days)?, sign * time))
}

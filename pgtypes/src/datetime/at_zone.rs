//! `AT TIME ZONE`, the function `timezone`.
//!
//! A zone is an abbreviation, a name of the database, a description as POSIX has it, or an interval.

use super::abbreviations::{self, Meaning};
use super::calendar::Fields;
use super::fault::{self, parameter, unknown_zone};
use super::session::{IntervalStyle, Session};
use super::units::{DAY, SECOND};
use super::value::{Interval, TimeTz, Timestamp, TimestampTz};
use super::zone::TimeZone;
use crate::error::ValueError;

/// A zone that a text names.
pub(super) enum Place {
    /// Seconds east of Greenwich
    Offset(i64),
    Zone(TimeZone),
    /// What a zone means by an abbreviation
    Dynamic(String, TimeZone),
}

impl Place {
    /// The zone of a name in any case. 22023 if there is none.
    pub(super) fn find(name: &str) -> Result<Place, ValueError> {
        let lower = name.to_ascii_lowercase();
        match abbreviations::find(&lower) {
            Some(Meaning::Standard(offset) | Meaning::Daylight(offset)) => Ok(Place::Offset(offset)),
            Some(Meaning::Zone(zone)) => Ok(Place::Dynamic(lower, abbreviations::zone_of(zone))),
            None if name.is_empty() => Err(unknown_zone(name)),
            None => TimeZone::find(name).map(Place::Zone).ok_or_else(|| unknown_zone(name)),
        }
    }

    /// The offset at an instant, in seconds east of Greenwich.
    fn offset_at(&self, micros: i64) -> i64 {
        match self {
            Place::Offset(offset) => *offset,
            Place::Zone(zone) => zone.offset_at(micros),
            Place::Dynamic(name, zone) => zone.offset_of_abbreviation_at(name, micros),
        }
    }

    /// The offset at a local time, in seconds east of Greenwich.
    pub(super) fn offset_of_local(&self, local: i64) -> i64 {
        match self {
            Place::Offset(offset) => *offset,
            Place::Zone(zone) => zone.offset_of_local(local),
            Place::Dynamic(name, zone) => zone.offset_of_abbreviation(name, &Fields::of(local)),
        }
    }

    /// A zone for calendar arithmetic.
    pub(super) fn into_zone(self) -> TimeZone {
        match self {
            Place::Zone(zone) | Place::Dynamic(_, zone) => zone,
            Place::Offset(offset) => {
                TimeZone::fixed(i32::try_from(offset).unwrap_or(0), "").unwrap_or_else(TimeZone::utc)
            }
        }
    }
}

/// The seconds of an interval that is a zone. 22023 for months and days.
fn interval_offset(zone: Interval, style: IntervalStyle) -> Result<i64, ValueError> {
    if zone.months != 0 || zone.days != 0 {
        let text = zone.format_as(style);
        return Err(parameter(format!("interval time zone \"{text}\" must not include months or days")));
    }
    // PostgreSQL keeps 32 bits of the seconds.
    Ok(i64::from((zone.micros / SECOND) as i32))
}

fn shifted(micros: i64, seconds: i64) -> Option<i64> {
    micros.checked_add(seconds.checked_mul(SECOND)?)
}

impl Timestamp {
    /// `timestamp AT TIME ZONE name`: the instant of the local time. 22023 for an unknown zone, 22008 out of the range.
    pub fn at_zone(self, zone: &str) -> Result<TimestampTz, ValueError> {
        if !self.is_finite() {
            return Ok(TimestampTz(self.0));
        }
        let offset = Place::find(zone)?.offset_of_local(self.0);
        TimestampTz::checked(shifted(self.0, -offset))
    }

    /// `timestamp AT TIME ZONE interval`. 22023 for an interval of months or days, 22008 out of the range.
    pub fn at_interval(self, zone: Interval, session: &Session<'_>) -> Result<TimestampTz, ValueError> {
        if !self.is_finite() {
            return Ok(TimestampTz(self.0));
        }
        let offset = interval_offset(zone, session.interval_style)?;
        TimestampTz::checked(shifted(self.0, -offset))
    }
}

impl TimestampTz {
    /// `timestamptz AT TIME ZONE name`: the local time. 22023 for an unknown zone, 22008 out of the range.
    pub fn at_zone(self, zone: &str) -> Result<Timestamp, ValueError> {
        if !self.is_finite() {
            return Ok(Timestamp(self.0));
        }
        let offset = Place::find(zone)?.offset_at(self.0);
        Timestamp::checked(shifted(self.0, offset))
    }

    /// `timestamptz AT TIME ZONE interval`. 22023 for an interval of months or days, 22008 out of the range.
    pub fn at_interval(self, zone: Interval, session: &Session<'_>) -> Result<Timestamp, ValueError> {
        if !self.is_finite() {
            return Ok(Timestamp(self.0));
        }
        let offset = interval_offset(zone, session.interval_style)?;
        Timestamp::checked(shifted(self.0, offset))
    }
}

impl TimeTz {
    /// `timetz AT TIME ZONE name`: the same time in a zone, with its offset at the start of the transaction. 22023 for
    /// an unknown zone.
    pub fn at_zone(self, zone: &str, session: &Session<'_>) -> Result<TimeTz, ValueError> {
        let offset = Place::find(zone)?.offset_at(session.now.0);
        self.moved(offset)
    }

    /// `timetz AT TIME ZONE interval`. 22023 for an interval of months or days.
    pub fn at_interval(self, zone: Interval, session: &Session<'_>) -> Result<TimeTz, ValueError> {
        self.moved(interval_offset(zone, session.interval_style)?)
    }

    fn moved(self, offset: i64) -> Result<TimeTz, ValueError> {
        let micros = shifted(self.utc(), offset).ok_or_else(fault::interval_range)?.rem_euclid(DAY);
        Ok(TimeTz { micros, offset: i32::try_from(offset).map_err(|_| fault::interval_range())? })
    }
}

//! `date_trunc` and `date_bin`.

use super::at_zone::Place;
use super::calendar::{Fields, iso_weekday};
use super::extract::{not_recognized, not_supported, unit_name};
use super::fault;
use super::units::{DAY, HOUR, MINUTE, SECOND};
use super::value::{Interval, Timestamp, TimestampTz};
use super::words::{self, Unit};
use super::zone::TimeZone;
use crate::error::ValueError;
use crate::sqlstate::SqlState;

impl Timestamp {
    /// `date_trunc(unit, timestamp)`. 22023 for an unknown unit, 0A000 for one without meaning, 22008 out of the range.
    pub fn trunc(self, unit: &str) -> Result<Timestamp, ValueError> {
        if !self.is_finite() {
            return Ok(self);
        }
        let ty = "timestamp without time zone";
        let (name, unit) = find(unit, ty)?;
        let local = truncate(self.0, unit).ok_or_else(|| not_supported(&name, ty))?;
        Timestamp::checked(Some(local))
    }

    /// `date_bin(stride, timestamp, origin)`: the start of the bin that has the timestamp. 0A000 for a stride with
    /// months, 22008 for a stride that is not positive and for values out of range.
    pub fn bin(self, stride: Interval, origin: Timestamp) -> Result<Timestamp, ValueError> {
        bin(self.0, stride, origin.0).map(Timestamp)
    }
}

impl TimestampTz {
    /// `date_trunc(unit, timestamptz)` in the session's zone. 22023 for an unknown unit, 0A000 for one without meaning,
    /// 22008 out of the range.
    pub fn trunc(self, unit: &str, zone: &TimeZone) -> Result<TimestampTz, ValueError> {
        if !self.is_finite() {
            return Ok(self);
        }
        let ty = "timestamp with time zone";
        let (name, unit) = find(unit, ty)?;
        let offset = zone.offset_at(self.0);
        let local = self.0.saturating_add(offset * SECOND);
        let truncated = truncate(local, unit).ok_or_else(|| not_supported(&name, ty))?;
        // The start of an hour has the offset of the hour's end, also where the clock changes.
        let keeps = matches!(unit, Unit::Hour | Unit::Minute | Unit::Second | Unit::Millisecond | Unit::Microsecond);
        let offset = if keeps { offset } else { zone.offset_of_local(truncated) };
        TimestampTz::checked(truncated.checked_sub(offset * SECOND))
    }

    /// `date_trunc(unit, timestamptz, zone)`. As [`TimestampTz::trunc`], 22023 for an unknown zone.
    pub fn trunc_in(self, unit: &str, zone: &str) -> Result<TimestampTz, ValueError> {
        if !self.is_finite() {
            return Ok(self);
        }
        let zone = Place::find(zone)?.into_zone();
        self.trunc(unit, &zone)
    }

    /// `date_bin(stride, timestamptz, origin)`. As [`Timestamp::bin`].
    pub fn bin(self, stride: Interval, origin: TimestampTz) -> Result<TimestampTz, ValueError> {
        bin(self.0, stride, origin.0).map(TimestampTz)
    }
}

fn find(unit: &str, ty: &str) -> Result<(String, Unit), ValueError> {
    let name = unit_name(unit);
    let unit = words::unit(&name).ok_or_else(|| not_recognized(&name, ty))?;
    Ok((name, unit))
}

/// Truncates a local time. `None` for a unit that nothing is truncated to.
fn truncate(local: i64, unit: Unit) -> Option<i64> {
    let length = match unit {
        Unit::Microsecond => 1,
        Unit::Millisecond => 1000,
        Unit::Second => SECOND,
        Unit::Minute => MINUTE,
        Unit::Hour => HOUR,
        Unit::Day => DAY,
        _ => return truncate_date(local.div_euclid(DAY), unit).map(|days| days.saturating_mul(DAY)),
    };
    Some(local.div_euclid(length) * length)
}

fn truncate_date(days: i64, unit: Unit) -> Option<i64> {
    let fields = Fields::of_day(days);
    let year = fields.year;
    let start_of_years = |length: i64| (year - 1).div_euclid(length) * length + 1;
    let (year, month) = match unit {
        Unit::Week => return Some(days - (iso_weekday(days) - 1)),
        Unit::Month => (year, fields.month),
        Unit::Quarter => (year, (fields.month - 1) / 3 * 3 + 1),
        Unit::Year => (year, 1),
        Unit::Decade => (year.div_euclid(10) * 10, 1),
        Unit::Century => (start_of_years(100), 1),
        Unit::Millennium => (start_of_years(1000), 1),
        _ => return None,
    };
    Some(Fields { year, month, day: 1, ..fields }.days())
}

impl Interval {
    /// `date_trunc(unit, interval)`, towards zero. 22023 for an unknown unit, 0A000 for one without meaning.
    pub fn trunc(self, unit: &str) -> Result<Interval, ValueError> {
        let (name, unit) = find(unit, "interval")?;
        let time = |length: i64| Interval { micros: self.micros / length * length, ..self };
        let months = |length: i32| Interval::new(self.months / length * length, 0, 0);
        Ok(match unit {
            Unit::Microsecond => self,
            Unit::Millisecond => time(1000),
            Unit::Second => time(SECOND),
            Unit::Minute => time(MINUTE),
            Unit::Hour => time(HOUR),
            Unit::Day => Interval { micros: 0, ..self },
            Unit::Month => months(1),
            Unit::Quarter => months(3),
            Unit::Year => months(12),
            Unit::Decade => months(120),
            Unit::Century => months(1200),
            Unit::Millennium => months(12_000),
            _ => {
                let error = not_supported(&name, "interval");
                let week = unit == Unit::Week;
                return Err(if week { error.with_detail("Months usually have fractional weeks.") } else { error });
            }
        })
    }
}

fn bin(micros: i64, stride: Interval, origin: i64) -> Result<i64, ValueError> {
    if !Timestamp(micros).is_finite() {
        return Ok(micros);
    }
    if !Timestamp(origin).is_finite() {
        return Err(fault::overflow("origin out of range".to_owned()));
    }
    if stride.months != 0 {
        let message = "timestamps cannot be binned into intervals containing months or years";
        return Err(ValueError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    }
    let days = i64::from(stride.days).checked_mul(DAY);
    let length = days.and_then(|days| days.checked_add(stride.micros)).ok_or_else(fault::interval_range)?;
    if length <= 0 {
        return Err(fault::overflow("stride must be greater than zero".to_owned()));
    }
    let distance = micros.checked_sub(origin).ok_or_else(fault::interval_range)?;
    Timestamp::checked(micros.checked_sub(distance.rem_euclid(length))).map(|Timestamp(start)| start)
}

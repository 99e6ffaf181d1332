//! `extract` and `date_part`: fields of dates, times and intervals.
//!
//! `extract` is exact, as an integer and a scale from which the caller builds a numeric. `date_part` is a float.

use super::calendar::{Fields, JULIAN_OF_EPOCH, day_of_year, iso_week, iso_weekday, weekday};
use super::fault::parameter;
use super::units::{DAY, HOUR, MINUTE, SECOND, SECONDS_PER_DAY};
use super::value::{Date, Interval, Time, TimeTz, Timestamp, TimestampTz};
use super::words::{self, Unit};
use super::zone::{EPOCH_SECONDS, TimeZone};
use crate::error::ValueError;
use crate::sqlstate::SqlState;

/// The result of `extract`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extracted {
    /// NULL: a field that an infinity does not have
    Null,
    /// `infinity`
    Infinity,
    /// `-infinity`
    NegInfinity,
    /// `unscaled / 10^scale`, shown with `scale` digits after the point
    Number {
        /// The digits
        unscaled: i128,
        /// Digits after the point
        scale: u32,
    },
}

/// A field before it is a number.
enum Part {
    Null,
    /// Negative or not
    Infinite(bool),
    Int(i64),
    /// Microseconds, as milliseconds
    Millis(i64),
    /// Microseconds, as seconds
    Seconds(i64),
    /// Seconds from the Unix epoch: microseconds from that of 2000
    Epoch(i64),
    /// A Julian day and a time
    Julian(i64, i64),
    /// Seconds of an interval
    Length(Interval),
    /// Seconds of a time of the day, and seconds to add
    Utc(i64, i64),
}

/// The name of a unit in lower case, cut like an identifier.
pub(super) fn unit_name(unit: &str) -> String {
    let mut name = unit.to_ascii_lowercase();
    name.truncate(name.floor_char_boundary(63));
    name
}

/// 22023 for a unit that is none.
pub(super) fn not_recognized(unit: &str, ty: &str) -> ValueError {
    parameter(format!("unit \"{unit}\" not recognized for type {ty}"))
}

/// 0A000 for a unit that a type does not have.
pub(super) fn not_supported(unit: &str, ty: &str) -> ValueError {
    ValueError::new(SqlState::FEATURE_NOT_SUPPORTED, format!("unit \"{unit}\" not supported for type {ty}"))
}

/// Finds the field of a unit. `None` of `field` is an unknown one.
fn find(unit: &str, ty: &str, part: impl Fn(Unit) -> Option<Part>) -> Result<Part, ValueError> {
    let name = unit_name(unit);
    // Times and intervals have no special values, whose names they do not know.
    let special = ty == "date" || ty.starts_with("timestamp");
    let field = words::field(&name).filter(|field| special || *field != Unit::Reserved);
    let field = field.ok_or_else(|| not_recognized(&name, ty))?;
    part(field).ok_or_else(|| not_supported(&name, ty))
}

impl Date {
    /// `extract(unit from date)`. 22023 for an unknown unit, 0A000 for a unit of times.
    pub fn extract(self, unit: &str) -> Result<Extracted, ValueError> {
        self.part(unit).map(|part| part.exact())
    }

    fn part(self, unit: &str) -> Result<Part, ValueError> {
        find(unit, "date", |field| {
            if !date_has(field) && field != Unit::Epoch {
                return None;
            }
            match self {
                Date::INFINITY => Some(part_of_infinity(field, false)),
                Date::NEG_INFINITY => Some(part_of_infinity(field, true)),
                _ if field == Unit::Epoch => Some(Part::Int(self.days() * SECONDS_PER_DAY + EPOCH_SECONDS)),
                _ if field == Unit::Julian => Some(Part::Int(self.days() + JULIAN_OF_EPOCH)),
                _ => part_of_date(&Fields::of_day(self.days()), field),
            }
        })
    }

    /// `date_part(unit, date)`: as of the timestamp of the date. `None` is NULL. 22008 for a date without a timestamp,
    /// 22023 for an unknown unit, 0A000 for one without meaning.
    pub fn date_part(self, unit: &str) -> Result<Option<f64>, ValueError> {
        self.to_timestamp()?.date_part(unit)
    }
}

impl Timestamp {
    /// `extract(unit from timestamp)`. 22023 for an unknown unit, 0A000 for one without meaning.
    pub fn extract(self, unit: &str) -> Result<Extracted, ValueError> {
        self.part(unit).map(|part| part.exact())
    }

    /// `date_part(unit, timestamp)`. `None` is NULL. Errors as of [`Timestamp::extract`].
    pub fn date_part(self, unit: &str) -> Result<Option<f64>, ValueError> {
        self.part(unit).map(|part| part.float())
    }

    fn part(self, unit: &str) -> Result<Part, ValueError> {
        find(unit, "timestamp without time zone", |field| {
            if !self.is_finite() {
                return infinity_has(field).then(|| part_of_infinity(field, self == Timestamp::NEG_INFINITY));
            }
            part_of_local(self.0, self.0, field)
        })
    }
}

impl TimestampTz {
    /// `extract(unit from timestamptz)` in a zone. 22023 for an unknown unit, 0A000 for one without meaning.
    pub fn extract(self, unit: &str, zone: &TimeZone) -> Result<Extracted, ValueError> {
        self.part(unit, zone).map(|part| part.exact())
    }

    /// `date_part(unit, timestamptz)` in a zone. `None` is NULL. Errors as of [`TimestampTz::extract`].
    pub fn date_part(self, unit: &str, zone: &TimeZone) -> Result<Option<f64>, ValueError> {
        self.part(unit, zone).map(|part| part.float())
    }

    fn part(self, unit: &str, zone: &TimeZone) -> Result<Part, ValueError> {
        find(unit, "timestamp with time zone", |field| {
            if !self.is_finite() {
                return infinity_has(field).then(|| part_of_infinity(field, self == TimestampTz::NEG_INFINITY));
            }
            part_of_zone(field, zone.offset_at(self.0)).or_else(|| part_of_local(zone.to_local(self.0), self.0, field))
        })
    }
}

impl Time {
    /// `extract(unit from time)`. 22023 for an unknown unit, 0A000 for one without meaning.
    pub fn extract(self, unit: &str) -> Result<Extracted, ValueError> {
        self.part(unit).map(|part| part.exact())
    }

    /// `date_part(unit, time)`. Never NULL. Errors as of [`Time::extract`].
    pub fn date_part(self, unit: &str) -> Result<Option<f64>, ValueError> {
        self.part(unit).map(|part| part.float())
    }

    fn part(self, unit: &str) -> Result<Part, ValueError> {
        find(unit, "time without time zone", |field| match field {
            Unit::Epoch => Some(Part::Utc(self.0, 0)),
            _ => part_of_time(self.0, field),
        })
    }
}

impl TimeTz {
    /// `extract(unit from timetz)`. 22023 for an unknown unit, 0A000 for one without meaning.
    pub fn extract(self, unit: &str) -> Result<Extracted, ValueError> {
        self.part(unit).map(|part| part.exact())
    }

    /// `date_part(unit, timetz)`. Never NULL. Errors as of [`TimeTz::extract`].
    pub fn date_part(self, unit: &str) -> Result<Option<f64>, ValueError> {
        self.part(unit).map(|part| part.float())
    }

    fn part(self, unit: &str) -> Result<Part, ValueError> {
        let offset = i64::from(self.offset);
        find(unit, "time with time zone", |field| match field {
            Unit::Epoch => Some(Part::Utc(self.micros, -offset)),
            _ => part_of_zone(field, offset).or_else(|| part_of_time(self.micros, field)),
        })
    }
}

impl Interval {
    /// `extract(unit from interval)`. 22023 for an unknown unit, 0A000 for one without meaning.
    pub fn extract(self, unit: &str) -> Result<Extracted, ValueError> {
        self.part(unit).map(|part| part.exact())
    }

    /// `date_part(unit, interval)`. Never NULL. Errors as of [`Interval::extract`].
    pub fn date_part(self, unit: &str) -> Result<Option<f64>, ValueError> {
        self.part(unit).map(|part| part.float())
    }

    fn part(self, unit: &str) -> Result<Part, ValueError> {
        let (years, months) = (i64::from(self.months / 12), i64::from(self.months % 12));
        find(unit, "interval", |field| {
            Some(Part::Int(match field {
                Unit::Epoch => return Some(Part::Length(self)),
                Unit::Hour => self.micros / HOUR,
                Unit::Day => i64::from(self.days),
                Unit::Month => months,
                Unit::Quarter => months / 3 + 1,
                Unit::Year => years,
                Unit::Decade => years / 10,
                Unit::Century => years / 100,
                Unit::Millennium => years / 1000,
                _ => return part_of_time(self.micros, field),
            }))
        })
    }
}

/// Whether a date has the field.
fn date_has(field: Unit) -> bool {
    use Unit::{Century, Day, DayOfWeek, DayOfYear, Decade, IsoDayOfWeek, IsoYear, Julian, Millennium};
    use Unit::{Month, Quarter, Week, Year};
    matches!(
        field,
        Day | Month
            | Quarter
            | Week
            | Year
            | Decade
            | Century
            | Millennium
            | Julian
            | IsoYear
            | DayOfWeek
            | IsoDayOfWeek
            | DayOfYear
    )
}

/// Whether the field of an infinite timestamp is no error. Fields of zones are none either, of both types.
fn infinity_has(field: Unit) -> bool {
    field != Unit::Reserved
}

/// A field of an infinity: those that grow without end are infinite.
fn part_of_infinity(field: Unit, negative: bool) -> Part {
    use Unit::{Century, Decade, Epoch, IsoYear, Julian, Millennium, Year};
    match field {
        Year | Decade | Century | Millennium | Julian | IsoYear | Epoch => Part::Infinite(negative),
        _ => Part::Null,
    }
}

fn part_of_zone(field: Unit, offset: i64) -> Option<Part> {
    Some(Part::Int(match field {
        Unit::Zone => offset,
        Unit::ZoneHour => offset / 3600,
        Unit::ZoneMinute => offset / 60 % 60,
        _ => return None,
    }))
}

fn part_of_time(micros: i64, field: Unit) -> Option<Part> {
    Some(match field {
        Unit::Microsecond => Part::Int(micros % MINUTE),
        Unit::Millisecond => Part::Millis(micros % MINUTE),
        Unit::Second => Part::Seconds(micros % MINUTE),
        Unit::Minute => Part::Int(micros / MINUTE % 60),
        Unit::Hour => Part::Int(micros / HOUR),
        _ => return None,
    })
}

/// A field of a local time, which is that of an instant.
fn part_of_local(local: i64, instant: i64, field: Unit) -> Option<Part> {
    let fields = Fields::of(local);
    match field {
        Unit::Epoch => Some(Part::Epoch(instant)),
        Unit::Julian => Some(Part::Julian(fields.days() + JULIAN_OF_EPOCH, fields.time())),
        _ => part_of_time(fields.time(), field).or_else(|| part_of_date(&fields, field)),
    }
}

/// A field of a date. There is no year 0, decade 0 reaches from year 9 to 1 BC, and centuries start at 1 and -1.
fn part_of_date(fields: &Fields, field: Unit) -> Option<Part> {
    let (year, days) = (fields.year, fields.days());
    let of_years = |length: i64| {
        if year > 0 { (year + length - 1) / length } else { -((length - 1 - (year - 1)) / length) }
    };
    let shown = |year: i64| if year > 0 { year } else { year - 1 };
    Some(Part::Int(match field {
        Unit::Day => fields.day,
        Unit::Month => fields.month,
        Unit::Quarter => (fields.month - 1) / 3 + 1,
        Unit::Week => iso_week(days).1,
        Unit::Year => shown(year),
        Unit::Decade => year.div_euclid(10),
        Unit::Century => of_years(100),
        Unit::Millennium => of_years(1000),
        Unit::IsoYear => shown(iso_week(days).0),
        Unit::DayOfWeek => weekday(days),
        Unit::IsoDayOfWeek => iso_weekday(days),
        Unit::DayOfYear => day_of_year(days),
        _ => return None,
    }))
}

impl Part {
    fn exact(self) -> Extracted {
        let number = |unscaled: i128, scale| Extracted::Number { unscaled, scale };
        match self {
            Part::Null => Extracted::Null,
            Part::Infinite(false) => Extracted::Infinity,
            Part::Infinite(true) => Extracted::NegInfinity,
            Part::Int(value) => number(i128::from(value), 0),
            Part::Millis(micros) => number(i128::from(micros), 3),
            Part::Seconds(micros) => number(i128::from(micros), 6),
            Part::Epoch(micros) => {
                let unix = i128::from(micros) + i128::from(EPOCH_SECONDS * SECOND);
                // Beyond 64 bits PostgreSQL divides numerics, and the quotient has 4 digits after the point.
                let rounded = if i64::try_from(unix).is_ok() { unix } else { (unix + 50) / 100 * 100 };
                number(rounded, 6)
            }
            Part::Julian(day, time) => {
                let scale = julian_scale(time);
                let power = 10i128.pow(scale);
                // Rounded to the scale, halves up. The time is not negative.
                let fraction = (i128::from(time) * power + i128::from(DAY / 2)) / i128::from(DAY);
                number(i128::from(day) * power + fraction, scale)
            }
            Part::Length(interval) => {
                let (years, months) = (i128::from(interval.months / 12), i128::from(interval.months % 12));
                // A year has 365.25 days, a month 30.
                let quarter_days = 1461 * years + 120 * months + 4 * i128::from(interval.days);
                let seconds = quarter_days * i128::from(SECONDS_PER_DAY / 4);
                number(seconds * i128::from(SECOND) + i128::from(interval.micros), 6)
            }
            Part::Utc(micros, seconds) => number(i128::from(micros + seconds * SECOND), 6),
        }
    }

    /// The float, `None` for NULL. Computed as PostgreSQL does, which rounds twice.
    fn float(self) -> Option<f64> {
        let seconds = |micros: i64| (micros / SECOND) as f64 + (micros % SECOND) as f64 / 1e6;
        Some(match self {
            Part::Null => return None,
            Part::Infinite(false) => f64::INFINITY,
            Part::Infinite(true) => f64::NEG_INFINITY,
            Part::Int(value) => value as f64,
            Part::Millis(micros) => (micros / SECOND) as f64 * 1000.0 + (micros % SECOND) as f64 / 1000.0,
            Part::Seconds(micros) => seconds(micros),
            Part::Epoch(micros) => match micros.checked_add(EPOCH_SECONDS * SECOND) {
                Some(unix) => unix as f64 / 1e6,
                None => (micros as f64 + (EPOCH_SECONDS * SECOND) as f64) / 1e6,
            },
            Part::Julian(day, time) => day as f64 + seconds(time) / SECONDS_PER_DAY as f64,
            Part::Length(interval) => {
                let mut sum = interval.micros as f64 / 1e6;
                sum += 365.25 * SECONDS_PER_DAY as f64 * f64::from(interval.months / 12);
                sum += 30.0 * SECONDS_PER_DAY as f64 * f64::from(interval.months % 12);
                sum + SECONDS_PER_DAY as f64 * f64::from(interval.days)
            }
            Part::Utc(micros, seconds) => micros as f64 / 1e6 + seconds as f64,
        })
    }
}

/// The scale of the fraction of a day: that of PostgreSQL's numeric quotient, which has at least 16 digits that count,
/// in groups of four.
fn julian_scale(time: i64) -> u32 {
    // The first group of the divisor 864,0000,0000 is compared with the first group of the time.
    let (mut groups, mut first) = (0, time);
    while first >= 10_000 {
        first /= 10_000;
        groups += 1;
    }
    let weight = groups - 2 - i32::from(first <= 864);
    u32::try_from(16 - 4 * weight).unwrap_or(16)
}

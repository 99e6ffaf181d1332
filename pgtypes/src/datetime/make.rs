//! `make_date`, `make_time`, `make_timestamp`, `make_timestamptz`, `make_interval` and `to_timestamp(float8)`.

use super::at_zone::Place;
use super::calendar::{Fields, days_in_month, is_counted};
use super::fault::{Fault, interval_range, overflow, parameter, unknown_zone};
use super::number::{whole, zone_offset};
use super::units::{DAY, END_TIMESTAMP, FIRST_TIMESTAMP, HOUR, MINUTE, SECOND};
use super::value::{Date, Interval, Time, Timestamp, TimestampTz, finite};
use super::zone::{EPOCH_SECONDS, TimeZone};
use crate::error::ValueError;

/// Year, month and day. A negative year is BC.
type Ymd = (i32, i32, i32);

/// The date, or the year to show in an error.
fn date_fields((year, month, day): Ymd) -> Result<Fields, i64> {
    let year = i64::from(year);
    let shown = if year < 0 { year + 1 } else { year };
    if year == 0 || year == i64::from(i32::MIN) {
        return Err(year);
    }
    let (month, day) = (i64::from(month), i64::from(day));
    let fits = (1..=12).contains(&month) && (1..=days_in_month(shown, month)).contains(&day);
    if fits { Ok(Fields { year: shown, month, day, ..Fields::default() }) } else { Err(shown) }
}

/// Microseconds of a time, `None` out of the day.
fn time_of(hour: i32, minute: i32, second: f64) -> Option<i64> {
    let (hour, minute) = (i64::from(hour), i64::from(minute));
    let micros = (second * 1e6).round_ties_even();
    if !(0..=24).contains(&hour) || !(0..60).contains(&minute) || !(0.0..=6e7).contains(&micros) {
        return None;
    }
    Some(hour * HOUR + minute * MINUTE + whole(micros)).filter(|time| *time <= DAY)
}

/// A float as C's `%02g` shows it.
fn g2(value: f64) -> String {
    let text = general(value);
    if text.len() < 2 && value.is_finite() { format!("0{text}") } else { text }
}

/// A float as C's `%g` shows it: six digits, in scientific form if the exponent is below -4 or above 5.
fn general(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let scientific = format!("{value:.5e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trim = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if (-4..6).contains(&exponent) {
        let places = usize::try_from(5 - exponent).unwrap_or(0);
        return trim(&format!("{value:.places$}"));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trim(digits), exponent.unsigned_abs())
}

impl Date {
    /// `make_date(year, month, day)`: a negative year is BC. 22008 for fields that are no date.
    pub fn make(year: i32, month: i32, day: i32) -> Result<Date, ValueError> {
        let fields = date_fields((year, month, day))
            .map_err(|year| overflow(format!("date field value out of range: {year}-{month:02}-{day:02}")))?;
        Date::from_days(fields.days())
            .map_err(|_| overflow(format!("date out of range: {}-{month:02}-{day:02}", fields.year)))
    }
}

impl Time {
    /// `make_time(hour, minute, second)`. 22008 for fields that are no time.
    pub fn make(hour: i32, minute: i32, second: f64) -> Result<Time, ValueError> {
        time_of(hour, minute, second).map(Time).ok_or_else(|| time_error(hour, minute, second))
    }
}

fn time_error(hour: i32, minute: i32, second: f64) -> ValueError {
    overflow(format!("time field value out of range: {hour}:{minute:02}:{}", g2(second)))
}

impl Timestamp {
    /// `make_timestamp`: of year, month, day, and hour, minute, second. 22008 for fields that are none.
    pub fn make(date: Ymd, hour: i32, minute: i32, second: f64) -> Result<Timestamp, ValueError> {
        let (year, month, day) = date;
        let fields = date_fields(date)
            .map_err(|_| overflow(format!("date field value out of range: {year}-{month:02}-{day:02}")))?;
        if !is_counted(fields.year, fields.month) {
            return Err(overflow(format!("date out of range: {year}-{month:02}-{day:02}")));
        }
        let time = time_of(hour, minute, second).ok_or_else(|| time_error(hour, minute, second))?;
        let micros = fields.days().checked_mul(DAY).and_then(|midnight| midnight.checked_add(time));
        finite(micros).map(Timestamp).ok_or_else(|| {
            let time = format!("{hour}:{minute:02}:{}", g2(second));
            overflow(format!("timestamp out of range: {year}-{month:02}-{day:02} {time}"))
        })
    }
}

impl TimestampTz {
    /// `make_timestamptz` in the session's zone. 22008 for fields that are none.
    pub fn make(date: Ymd, hour: i32, minute: i32, second: f64, zone: &TimeZone) -> Result<TimestampTz, ValueError> {
        Timestamp::make(date, hour, minute, second)?.to_timestamptz(zone)
    }

    /// `make_timestamptz` with a zone: an offset with its sign, an abbreviation or a name. 22023 for other zones.
    pub fn make_in(date: Ymd, hour: i32, minute: i32, second: f64, zone: &str) -> Result<TimestampTz, ValueError> {
        let Timestamp(local) = Timestamp::make(date, hour, minute, second)?;
        if zone.starts_with(|c: char| c.is_ascii_digit()) {
            let message = format!("invalid input syntax for type numeric time zone: \"{zone}\"");
            let hint = "Numeric time zones must have \"-\" or \"+\" as first character.";
            return Err(parameter(message).with_hint(hint));
        }
        let offset = match zone_offset(zone) {
            Ok(offset) => offset,
            Err(Fault::Offset) => return Err(parameter(format!("numeric time zone \"{zone}\" out of range"))),
            Err(_) => Place::find(zone).map_err(|_| unknown_zone(zone))?.offset_of_local(local),
        };
        TimestampTz::checked(local.checked_sub(offset * SECOND))
    }

    /// `to_timestamp(float8)`: seconds from the Unix epoch. 22008 for NaN and out of the range.
    pub fn from_unix(seconds: f64) -> Result<TimestampTz, ValueError> {
        if seconds.is_nan() {
            return Err(overflow("timestamp cannot be NaN".to_owned()));
        }
        if seconds.is_infinite() {
            return Ok(if seconds > 0.0 { TimestampTz::INFINITY } else { TimestampTz::NEG_INFINITY });
        }
        let epoch = EPOCH_SECONDS as f64;
        let first = FIRST_TIMESTAMP as f64 / 1e6 + epoch;
        let end = END_TIMESTAMP as f64 / 1e6 + epoch;
        let error = || overflow(format!("timestamp out of range: \"{}\"", general(seconds)));
        if !(first..end).contains(&seconds) {
            return Err(error());
        }
        finite(Some(whole((seconds - epoch) * 1e6))).map(TimestampTz).ok_or_else(error)
    }
}

/// The arguments of `make_interval`, 0 by default.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct IntervalArgs {
    /// Years
    pub years: i32,
    /// Months
    pub months: i32,
    /// Weeks
    pub weeks: i32,
    /// Days
    pub days: i32,
    /// Hours
    pub hours: i32,
    /// Minutes
    pub minutes: i32,
    /// Seconds
    pub seconds: f64,
}

impl Interval {
    /// `make_interval`. 22008 for NaN and infinities. As in PostgreSQL 15, sums wrap around.
    pub fn make(args: IntervalArgs) -> Result<Interval, ValueError> {
        if !args.seconds.is_finite() {
            return Err(interval_range());
        }
        let micros = (args.seconds * 1e6).round_ties_even();
        // Seconds without a count of microseconds are the least count.
        let micros = if micros.abs() < 9_223_372_036_854_775_808.0 { micros as i64 } else { i64::MIN };
        let time = i64::from(args.hours) * HOUR;
        let time = time.wrapping_add(i64::from(args.minutes) * MINUTE).wrapping_add(micros);
        let months = args.years.wrapping_mul(12).wrapping_add(args.months);
        Ok(Interval::new(months, args.weeks.wrapping_mul(7).wrapping_add(args.days), time))
    }
}

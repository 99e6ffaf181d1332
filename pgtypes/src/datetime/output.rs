//! Text output of the six types, in all styles.

use std::fmt::Write;

use super::calendar::{Fields, MONTHS, WEEKDAYS, name_of, weekday};
use super::session::{IntervalStyle, Session};
use super::units::{HOUR, MINUTE, SECOND};
use super::value::{Date, Interval, Time, TimeTz, Timestamp, TimestampTz};
use super::zone::{DateFormat, TimeZone};

const INFINITE: &str = "infinity";
const NEGATIVE_INFINITE: &str = "-infinity";

impl Date {
    /// The text form in the session's style.
    pub fn format(self, session: &Session<'_>) -> String {
        self.format_as(session.format(), session.day_first())
    }

    /// The text form in JSON: that of ISO.
    pub fn to_json(self) -> String {
        self.format_as(DateFormat::Iso, false)
    }

    fn format_as(self, format: DateFormat, day_first: bool) -> String {
        match self {
            Date::INFINITY => return INFINITE.to_owned(),
            Date::NEG_INFINITY => return NEGATIVE_INFINITE.to_owned(),
            _ => {}
        }
        let fields = Fields::of_day(self.days());
        let (year, before_christ) = fields.shown_year();
        let (month, day) = (fields.month, fields.day);
        let (first, second) = if day_first { (day, month) } else { (month, day) };
        let mut out = match format {
            DateFormat::Iso => format!("{year:04}-{month:02}-{day:02}"),
            DateFormat::Sql => format!("{first:02}/{second:02}/{year:04}"),
            DateFormat::German => format!("{day:02}.{month:02}.{year:04}"),
            DateFormat::Postgres => format!("{first:02}-{second:02}-{year:04}"),
        };
        if before_christ {
            out.push_str(" BC");
        }
        out
    }
}

impl Time {
    /// The text form, the same in all styles.
    pub fn format(self) -> String {
        let mut out = String::with_capacity(15);
        write_clock(self.0, &mut out);
        out
    }
}

impl TimeTz {
    /// The text form, the same in all styles.
    pub fn format(self) -> String {
        let mut out = String::with_capacity(24);
        write_clock(self.micros, &mut out);
        write_offset(i64::from(self.offset), &mut out);
        out
    }
}

impl Timestamp {
    /// The text form in the session's style.
    pub fn format(self, session: &Session<'_>) -> String {
        format_timestamp(self.0, None, session.format(), session.day_first())
    }

    /// The text form in JSON: that of ISO with a `T`.
    pub fn to_json(self) -> String {
        json_timestamp(self.0, None)
    }
}

impl TimestampTz {
    /// The text form in the session's zone and style.
    pub fn format(self, session: &Session<'_>) -> String {
        format_timestamp(self.0, Some(session.zone), session.format(), session.day_first())
    }

    /// The text form in JSON: that of ISO with a `T`, and with minutes in the offset.
    pub fn to_json(self, zone: &TimeZone) -> String {
        json_timestamp(self.0, Some(zone))
    }
}

/// Formats an instant in a zone, or a local time without one.
pub(super) fn format_timestamp(micros: i64, zone: Option<&TimeZone>, format: DateFormat, day_first: bool) -> String {
    if let Some(word) = infinite(micros) {
        return word.to_owned();
    }
    let offset = zone.map_or(0, |zone| zone.offset_at(micros));
    let fields = Fields::of(micros.saturating_add(offset * SECOND));
    let (year, before_christ) = fields.shown_year();
    let (month, day) = (fields.month, fields.day);
    let (first, second) = if day_first { (day, month) } else { (month, day) };
    let mut out = String::with_capacity(40);
    // Writing to a String cannot fail.
    let _ = match format {
        DateFormat::Iso => write!(out, "{year:04}-{month:02}-{day:02} "),
        DateFormat::Sql => write!(out, "{first:02}/{second:02}/{year:04} "),
        DateFormat::German => write!(out, "{day:02}.{month:02}.{year:04} "),
        DateFormat::Postgres => {
            let short = |name: &'static str| name.get(..3).unwrap_or(name);
            let weekday = short(name_of(&WEEKDAYS, weekday(fields.days())));
            let month = short(name_of(&MONTHS, month - 1));
            match day_first {
                true => write!(out, "{weekday} {day:02} {month} "),
                false => write!(out, "{weekday} {month} {day:02} "),
            }
        }
    };
    write_clock(fields.time(), &mut out);
    if format == DateFormat::Postgres {
        let _ = write!(out, " {year:04}");
    }
    match (zone, format) {
        (None, _) => {}
        (Some(_), DateFormat::Iso) => write_offset(offset, &mut out),
        (Some(zone), _) => {
            let _ = write!(out, " {}", zone.abbreviation_at(micros));
        }
    }
    if before_christ {
        out.push_str(" BC");
    }
    out
}

/// The word for an instant that is none.
fn infinite(micros: i64) -> Option<&'static str> {
    match micros {
        i64::MAX => Some(INFINITE),
        i64::MIN => Some(NEGATIVE_INFINITE),
        _ => None,
    }
}

/// Formats an instant in a zone, or a local time without one, as JSON has it.
fn json_timestamp(micros: i64, zone: Option<&TimeZone>) -> String {
    if let Some(word) = infinite(micros) {
        return word.to_owned();
    }
    let offset = zone.map_or(0, |zone| zone.offset_at(micros));
    let fields = Fields::of(micros.saturating_add(offset * SECOND));
    let (year, before_christ) = fields.shown_year();
    let mut out = format!("{year:04}-{:02}-{:02}T", fields.month, fields.day);
    write_clock(fields.time(), &mut out);
    if zone.is_some() {
        write_offset(offset, &mut out);
        if offset % 3600 == 0 {
            out.push_str(":00");
        }
    }
    if before_christ {
        out.push_str(" BC");
    }
    out
}

/// Appends a time as `04:05:06.789`.
fn write_clock(micros: i64, out: &mut String) {
    let (hour, minute) = (micros / HOUR, micros / MINUTE % 60);
    let _ = write!(out, "{hour:02}:{minute:02}:");
    write_seconds(micros.unsigned_abs() % 60_000_000, 2, out);
}

/// Appends seconds with at least `width` digits and without zeros at the end.
fn write_seconds(micros: u64, width: usize, out: &mut String) {
    let _ = write!(out, "{:0width$}", micros / 1_000_000);
    let fraction = micros % 1_000_000;
    if fraction != 0 {
        let digits = format!("{fraction:06}");
        let _ = write!(out, ".{}", digits.trim_end_matches('0'));
    }
}

/// Appends an offset as `+01`, `-03:30`.
pub(super) fn write_offset(offset: i64, out: &mut String) {
    let size = offset.abs();
    let _ = write!(out, "{}{:02}", if offset < 0 { '-' } else { '+' }, size / 3600);
    if size % 3600 != 0 {
        let _ = write!(out, ":{:02}", size / 60 % 60);
    }
    if size % 60 != 0 {
        let _ = write!(out, ":{:02}", size % 60);
    }
}

/// The units of an interval. All of one part have the same sign.
struct Split {
    years: i32,
    months: i32,
    days: i32,
    hours: i64,
    minutes: i64,
    /// The seconds in microseconds
    seconds: i64,
}

impl Interval {
    /// The text form in the session's style.
    pub fn format(&self, session: &Session<'_>) -> String {
        self.format_as(session.interval_style)
    }

    /// The text form in a style.
    pub fn format_as(&self, style: IntervalStyle) -> String {
        let split = Split {
            years: self.months / 12,
            months: self.months % 12,
            days: self.days,
            hours: self.micros / HOUR,
            minutes: self.micros / MINUTE % 60,
            seconds: self.micros % MINUTE,
        };
        match style {
            IntervalStyle::Postgres => split.postgres(self.micros),
            IntervalStyle::PostgresVerbose => split.verbose(),
            IntervalStyle::SqlStandard => split.sql_standard(self.micros),
            IntervalStyle::Iso8601 => split.iso(self.micros),
        }
    }
}

impl Split {
    /// `hh:mm:ss.f` without a sign.
    fn write_time(&self, hour_width: usize, out: &mut String) {
        let (hours, minutes) = (self.hours.unsigned_abs(), self.minutes.unsigned_abs());
        let _ = write!(out, "{hours:0hour_width$}:{minutes:02}:");
        write_seconds(self.seconds.unsigned_abs(), 2, out);
    }

    fn postgres(&self, time: i64) -> String {
        let mut out = String::new();
        let mut before = false;
        for (value, unit) in [(self.years, "year"), (self.months, "mon"), (self.days, "day")] {
            if value == 0 {
                continue;
            }
            let space = if out.is_empty() { "" } else { " " };
            let sign = if before && value > 0 { "+" } else { "" };
            let plural = if value == 1 { "" } else { "s" };
            let _ = write!(out, "{space}{sign}{value} {unit}{plural}");
            before = value < 0;
        }
        if out.is_empty() || time != 0 {
            if !out.is_empty() {
                out.push(' ');
            }
            if time < 0 {
                out.push('-');
            } else if before {
                out.push('+');
            }
            self.write_time(2, &mut out);
        }
        out
    }

    fn verbose(&self) -> String {
        let mut out = String::from("@");
        // `ago` applies to all: the sign of the first unit.
        let mut ago = None;
        let units = [
            (i64::from(self.years), "year"),
            (i64::from(self.months), "mon"),
            (i64::from(self.days), "day"),
            (self.hours, "hour"),
            (self.minutes, "min"),
        ];
        for (value, unit) in units {
            if value == 0 {
                continue;
            }
            let value = if *ago.get_or_insert(value < 0) { -i128::from(value) } else { i128::from(value) };
            let _ = write!(out, " {value} {unit}{}", if value == 1 { "" } else { "s" });
        }
        if self.seconds != 0 {
            let negative = *ago.get_or_insert(self.seconds < 0) != (self.seconds < 0);
            out.push_str(if negative { " -" } else { " " });
            let size = self.seconds.unsigned_abs();
            write_seconds(size, 1, &mut out);
            out.push_str(if size == 1_000_000 { " sec" } else { " secs" });
        }
        match ago {
            None => out.push_str(" 0"),
            Some(true) => out.push_str(" ago"),
            Some(false) => {}
        }
        out
    }

    fn sql_standard(&self, time: i64) -> String {
        let signs = [i64::from(self.years), i64::from(self.months), i64::from(self.days), time].map(i64::signum);
        let (negative, positive) = (signs.contains(&-1), signs.contains(&1));
        let has_months = self.years != 0 || self.months != 0;
        let has_days_or_time = self.days != 0 || time != 0;
        let (years, months) = (self.years.unsigned_abs(), self.months.unsigned_abs());
        let days = self.days.unsigned_abs();
        let mut out = String::new();
        if !negative && !positive {
            return "0".to_owned();
        }
        if negative && positive || has_months && has_days_or_time {
            let sign = |negative: bool| if negative { '-' } else { '+' };
            let month_sign = sign(self.years < 0 || self.months < 0);
            let _ = write!(out, "{month_sign}{years}-{months} {}{days} {}", sign(self.days < 0), sign(time < 0));
            self.write_time(1, &mut out);
            return out;
        }
        if negative {
            out.push('-');
        }
        if has_months {
            let _ = write!(out, "{years}-{months}");
        } else {
            if days != 0 {
                let _ = write!(out, "{days} ");
            }
            self.write_time(1, &mut out);
        }
        out
    }

    fn iso(&self, time: i64) -> String {
        let mut out = String::from("P");
        for (value, unit) in [(self.years, 'Y'), (self.months, 'M'), (self.days, 'D')] {
            if value != 0 {
                let _ = write!(out, "{value}{unit}");
            }
        }
        if time != 0 {
            out.push('T');
        } else if out.len() == 1 {
            return "PT0S".to_owned();
        }
        for (value, unit) in [(self.hours, 'H'), (self.minutes, 'M')] {
            if value != 0 {
                let _ = write!(out, "{value}{unit}");
            }
        }
        if self.seconds != 0 {
            if self.seconds < 0 {
                out.push('-');
            }
            write_seconds(self.seconds.unsigned_abs(), 1, &mut out);
            out.push('S');
        }
        out
    }
}

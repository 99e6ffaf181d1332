//! `timestamp with time zone`: ISO text input, output in the session's zone and date style.
//!
//! A value counts microseconds from 2000-01-01 00:00 UTC. The ends of `i64` are the infinities. Calendar arithmetic is
//! done here, over PostgreSQL's range (4714-11-24 BC to 294276 AD), which is wider than jiff's. jiff only provides the
//! offset of a zone at an instant.

use std::fmt::Write;

use jiff::tz::{AmbiguousOffset, Offset};

use crate::error::ValueError;
use crate::letters::is_space;
use crate::sqlstate::SqlState;

/// Seconds from the Unix epoch to PostgreSQL's epoch, 2000-01-01.
pub const EPOCH_SECONDS: i64 = 946_684_800;
/// `infinity`
pub const INFINITY: i64 = i64::MAX;
/// `-infinity`
pub const NEG_INFINITY: i64 = i64::MIN;
/// The first finite value.
const FIRST: i64 = -211_813_488_000_000_000;
/// One after the last finite value.
const END: i64 = 9_223_371_331_200_000_000;
const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;

/// The session's time zone and date style, for input and output of timestamps.
#[derive(Clone, Debug)]
pub struct TimeZone {
    zone: jiff::tz::TimeZone,
    /// The abbreviation of a fixed offset. Other zones name theirs.
    abbreviation: Option<Box<str>>,
    style: DateStyle,
}

/// The text form of times: `DateStyle`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DateStyle {
    /// The format.
    pub format: DateFormat,
    /// Whether the day precedes the month, in the formats SQL and Postgres.
    pub day_first: bool,
}

/// The formats of `DateStyle`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DateFormat {
    /// `2024-03-01 13:34:56+01`
    #[default]
    Iso,
    /// `03/01/2024 13:34:56 CET`
    Sql,
    /// `Fri Mar 01 13:34:56 2024 CET`
    Postgres,
    /// `01.03.2024 13:34:56 CET`
    German,
}

impl TimeZone {
    /// Universal time, in ISO style.
    pub fn utc() -> TimeZone {
        TimeZone::new(jiff::tz::TimeZone::UTC)
    }

    /// A zone, in ISO style.
    pub fn new(zone: jiff::tz::TimeZone) -> TimeZone {
        TimeZone { zone, abbreviation: None, style: DateStyle::default() }
    }

    /// A fixed offset in seconds east of Greenwich, with its abbreviation, in ISO style. `None` from 26 hours on.
    pub fn fixed(seconds: i32, abbreviation: &str) -> Option<TimeZone> {
        let zone = jiff::tz::TimeZone::fixed(Offset::from_seconds(seconds).ok()?);
        Some(TimeZone { abbreviation: Some(abbreviation.into()), ..TimeZone::new(zone) })
    }

    /// The same zone with another style.
    pub fn with_style(self, style: DateStyle) -> TimeZone {
        TimeZone { style, ..self }
    }

    /// The name in the time zone database, if it has one.
    pub fn name(&self) -> Option<&str> {
        self.zone.iana_name()
    }
}

/// The meaning of `'now'`, `'today'`, `'tomorrow'` and `'yesterday'`: the start of the transaction, in microseconds
/// since 2000-01-01 UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now(pub i64);

/// Whether a count of microseconds is a value of the type.
pub fn in_range(micros: i64) -> bool {
    micros == INFINITY || micros == NEG_INFINITY || (FIRST..END).contains(&micros)
}

/// Days from 2000-01-01 to a proleptic Gregorian date. Year 0 is 1 BC.
fn days_from_date(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 730_425
}

/// The inverse of `days_from_date`.
fn date_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 730_425;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day)
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Rounds a value to this many digits after the seconds, halves away from the epoch of 2000.
pub fn round(micros: i64, digits: u8) -> i64 {
    let scale = 10i64.pow(6 - u32::from(digits.min(6)));
    if !(FIRST..END).contains(&micros) {
        return micros;
    }
    let rounded = (micros.abs() + scale / 2) / scale * scale;
    if micros < 0 { -rounded } else { rounded }
}

/// Formats a value in a zone and its style, as `2024-03-01 12:00:00.5+01`.
pub fn format(micros: i64, zone: &TimeZone) -> String {
    match micros {
        INFINITY => return "infinity".to_owned(),
        NEG_INFINITY => return "-infinity".to_owned(),
        _ => {}
    }
    let offset = offset_at(micros, zone);
    let local = micros.saturating_add(offset * SECOND);
    let (year, month, day) = date_from_days(local.div_euclid(DAY));
    let time = local.rem_euclid(DAY);
    let (shown_year, before_christ) = if year > 0 { (year, false) } else { (1 - year, true) };
    let seconds = time / SECOND;
    let mut out = String::with_capacity(32);
    let style = zone.style;
    let (first, second) = if style.day_first { (day, month) } else { (month, day) };
    // Writing to a String cannot fail.
    let _ = match style.format {
        DateFormat::Iso => write!(out, "{shown_year:04}-{month:02}-{day:02} "),
        DateFormat::Sql => write!(out, "{first:02}/{second:02}/{shown_year:04} "),
        DateFormat::German => write!(out, "{day:02}.{month:02}.{shown_year:04} "),
        DateFormat::Postgres => {
            let weekday = name_of(&WEEKDAYS, (local.div_euclid(DAY) + 6).rem_euclid(7));
            let month = name_of(&MONTHS, month - 1);
            match style.day_first {
                true => write!(out, "{weekday} {day:02} {month} "),
                false => write!(out, "{weekday} {month} {day:02} "),
            }
        }
    };
    let _ = write!(out, "{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    let fraction = time % SECOND;
    if fraction != 0 {
        let digits = format!("{fraction:06}");
        let _ = write!(out, ".{}", digits.trim_end_matches('0'));
    }
    let _ = match style.format {
        DateFormat::Iso => write_offset(offset, &mut out),
        DateFormat::Sql | DateFormat::German => write!(out, " {}", abbreviation_at(micros, zone)),
        DateFormat::Postgres => write!(out, " {shown_year:04} {}", abbreviation_at(micros, zone)),
    };
    if before_christ {
        out.push_str(" BC");
    }
    out
}

const WEEKDAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

fn name_of(names: &[&'static str], index: i64) -> &'static str {
    usize::try_from(index).ok().and_then(|index| names.get(index)).copied().unwrap_or("")
}

/// Appends an offset as `+01`, `-03:30`.
fn write_offset(offset: i64, out: &mut String) -> std::fmt::Result {
    let size = offset.abs();
    write!(out, "{}{:02}", if offset < 0 { '-' } else { '+' }, size / 3600)?;
    if size % 3600 != 0 {
        write!(out, ":{:02}", size / 60 % 60)?;
    }
    if size % 60 != 0 {
        write!(out, ":{:02}", size % 60)?;
    }
    Ok(())
}

/// The abbreviation of a zone at an instant, at most 10 bytes as in PostgreSQL.
fn abbreviation_at(micros: i64, zone: &TimeZone) -> String {
    let mut name = match &zone.abbreviation {
        Some(fixed) => fixed.to_string(),
        None => zone.zone.to_offset_info(instant(micros)).abbreviation().to_owned(),
    };
    name.truncate(name.floor_char_boundary(10));
    name
}

/// The zone's offset at an instant, in seconds east of Greenwich. Instants out of jiff's range use its nearest end.
fn offset_at(micros: i64, zone: &TimeZone) -> i64 {
    i64::from(zone.zone.to_offset(instant(micros)).seconds())
}

fn instant(micros: i64) -> jiff::Timestamp {
    let seconds = micros.div_euclid(SECOND).saturating_add(EPOCH_SECONDS);
    let bounded = seconds.clamp(jiff::Timestamp::MIN.as_second(), jiff::Timestamp::MAX.as_second());
    jiff::Timestamp::from_second(bounded).unwrap_or(jiff::Timestamp::UNIX_EPOCH)
}

/// The zone's offset for a local time, in seconds east of Greenwich. A time that a clock change skips has the offset
/// before it, a repeated time the offset after it, as in PostgreSQL.
fn offset_of_local(local: i64, zone: &TimeZone) -> i64 {
    let (year, month, day) = date_from_days(local.div_euclid(DAY));
    let seconds = local.rem_euclid(DAY) / SECOND;
    let part = |value: i64| i8::try_from(value).unwrap_or(0);
    let civil = i16::try_from(year.clamp(-9998, 9998)).ok().and_then(|year| {
        let (hour, minute) = (part(seconds / 3600), part(seconds / 60 % 60));
        jiff::civil::DateTime::new(year, part(month), part(day), hour, minute, part(seconds % 60), 0).ok()
    });
    let Some(civil) = civil else { return offset_at(local, zone) };
    let offset: Offset = match zone.zone.to_ambiguous_timestamp(civil).offset() {
        AmbiguousOffset::Unambiguous { offset } => offset,
        AmbiguousOffset::Gap { before, .. } => before,
        AmbiguousOffset::Fold { after, .. } => after,
    };
    i64::from(offset.seconds())
}

fn invalid(text: &str) -> ValueError {
    let message = format!("invalid input syntax for type timestamp with time zone: \"{text}\"");
    ValueError::new(SqlState::INVALID_DATETIME_FORMAT, message)
}

fn field_overflow(text: &str) -> ValueError {
    ValueError::new(SqlState::DATETIME_FIELD_OVERFLOW, format!("date/time field value out of range: \"{text}\""))
}

fn out_of_range(text: &str) -> ValueError {
    ValueError::new(SqlState::DATETIME_FIELD_OVERFLOW, format!("timestamp out of range: \"{text}\""))
}

/// Parses `YYYY-MM-DD[ T]HH:MM[:SS[.ffffff]]` with an optional zone (offset, `Z`, or a name) and era, the compact
/// `YYYYMMDD[THHMMSS]`, or one of `now`, `today`, `tomorrow`, `yesterday`, `epoch`, `infinity`, `-infinity`. The
/// default zone is the session's. 22007 for other text, 22008 for a field out of range.
pub fn parse(text: &str, zone: &TimeZone, now: Now) -> Result<i64, ValueError> {
    let body = text.trim_matches(is_space);
    if let Some(value) = special(body, zone, now) {
        return Ok(value);
    }
    let mut scanner = Scanner { text, rest: body };
    let (mut year, month, day) = scanner.date()?;
    let time = scanner.time()?;
    let given_zone = scanner.zone()?;
    if scanner.era()? {
        year = 1 - year;
    }
    if !scanner.rest.is_empty() {
        return Err(invalid(text));
    }
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return Err(field_overflow(text).with_hint("Perhaps you need a different \"datestyle\" setting."));
    }
    if day > days_in_month(year, month) {
        return Err(field_overflow(text));
    }
    let midnight = days_from_date(year, month, day).checked_mul(DAY).ok_or_else(|| out_of_range(text))?;
    let local = midnight.checked_add(time).ok_or_else(|| out_of_range(text))?;
    let offset = match given_zone {
        None => offset_of_local(local, zone),
        Some(Zone::Offset(seconds)) => seconds,
        Some(Zone::Named(named)) => offset_of_local(local, &named),
    };
    let micros = local.checked_sub(offset * SECOND).ok_or_else(|| out_of_range(text))?;
    if (FIRST..END).contains(&micros) { Ok(micros) } else { Err(out_of_range(text)) }
}

fn special(word: &str, zone: &TimeZone, now: Now) -> Option<i64> {
    let midnight = |days: i64| {
        let now = now.0;
        let local = now.saturating_add(offset_at(now, zone) * SECOND);
        let start = (local.div_euclid(DAY) + days).saturating_mul(DAY);
        start - offset_of_local(start, zone) * SECOND
    };
    Some(match word.to_ascii_lowercase().as_str() {
        "now" => now.0,
        "today" => midnight(0),
        "tomorrow" => midnight(1),
        "yesterday" => midnight(-1),
        "epoch" => -EPOCH_SECONDS * SECOND,
        "infinity" | "+infinity" => INFINITY,
        "-infinity" => NEG_INFINITY,
        _ => return None,
    })
}

/// A zone in a text.
enum Zone {
    /// Seconds east of Greenwich.
    Offset(i64),
    /// From the time zone database.
    Named(TimeZone),
}

/// A scanner over a text.
struct Scanner<'a> {
    text: &'a str,
    rest: &'a str,
}

impl<'a> Scanner<'a> {
    /// Takes the leading characters that satisfy `test`.
    fn take(&mut self, test: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|c| !test(c)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }

    fn skip_spaces(&mut self) {
        self.rest = self.rest.trim_start_matches(is_space);
    }

    /// Takes a number of at most `most` digits.
    fn number(&mut self, most: usize) -> Result<i64, ValueError> {
        let digits = self.take(|c| c.is_ascii_digit());
        if digits.is_empty() {
            return Err(invalid(self.text));
        }
        if digits.len() > most {
            return Err(field_overflow(self.text));
        }
        digits.parse().map_err(|_| field_overflow(self.text))
    }

    fn eat(&mut self, c: char) -> bool {
        match self.rest.strip_prefix(c) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn date(&mut self) -> Result<(i64, i64, i64), ValueError> {
        let digits = self.take(|c| c.is_ascii_digit());
        if digits.len() == 8 && !self.rest.starts_with('-') {
            let part = |range: std::ops::Range<usize>| digits[range].parse::<i64>().map_err(|_| invalid(self.text));
            return Ok((part(0..4)?, part(4..6)?, part(6..8)?));
        }
        if digits.len() < 3 {
            // The order of two-digit fields depends on DateStyle.
            return Err(invalid(self.text));
        }
        if digits.len() > 6 {
            return Err(field_overflow(self.text));
        }
        let year = digits.parse().map_err(|_| invalid(self.text))?;
        if !self.eat('-') {
            return Err(invalid(self.text));
        }
        let month = self.number(2)?;
        if !self.eat('-') {
            return Err(invalid(self.text));
        }
        let day = self.number(2)?;
        if year == 0 {
            return Err(field_overflow(self.text));
        }
        Ok((year, month, day))
    }

    /// The time of day in microseconds. Defaults to midnight.
    fn time(&mut self) -> Result<i64, ValueError> {
        let had_t = self.rest.starts_with(['T', 't']);
        if had_t {
            self.rest = &self.rest[1..];
        }
        self.skip_spaces();
        if !self.rest.starts_with(|c: char| c.is_ascii_digit()) {
            return if had_t { Err(invalid(self.text)) } else { Ok(0) };
        }
        let first = self.take(|c| c.is_ascii_digit());
        let (hour, minute, second) = if self.eat(':') {
            let hour = first.parse().map_err(|_| field_overflow(self.text))?;
            let minute = self.number(2)?;
            let second = if self.eat(':') { self.number(2)? } else { 0 };
            (hour, minute, second)
        } else if first.len() == 6 || first.len() == 4 {
            let part = |range: std::ops::Range<usize>| first[range].parse::<i64>().map_err(|_| invalid(self.text));
            (part(0..2)?, part(2..4)?, if first.len() == 6 { part(4..6)? } else { 0 })
        } else {
            return Err(invalid(self.text));
        };
        let fraction = if self.eat('.') { self.fraction()? } else { 0 };
        let whole: i64 = hour;
        let late = whole == 24 && (minute > 0 || second > 0 || fraction > 0);
        if whole > 24 || late || minute > 59 || second > 60 {
            return Err(field_overflow(self.text));
        }
        Ok((whole * 3600 + minute * 60 + second) * SECOND + fraction)
    }

    /// The digits after the point, rounded to microseconds.
    fn fraction(&mut self) -> Result<i64, ValueError> {
        let digits = self.take(|c| c.is_ascii_digit());
        if digits.is_empty() {
            return Ok(0);
        }
        let fraction: f64 = format!("0.{digits}").parse().map_err(|_| invalid(self.text))?;
        let micros = (fraction * 1e6).round_ties_even();
        // Within 0..=1_000_000, so the cast is exact.
        Ok(micros as i64)
    }

    fn zone(&mut self) -> Result<Option<Zone>, ValueError> {
        self.skip_spaces();
        if self.rest.starts_with(['+', '-']) {
            return self.offset().map(Some);
        }
        let word_end = self.rest.find(is_space).unwrap_or(self.rest.len());
        let word = &self.rest[..word_end];
        if word.is_empty() || is_era(word).is_some() {
            return Ok(None);
        }
        if !word.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return Err(invalid(self.text));
        }
        self.rest = &self.rest[word_end..];
        if ["z", "utc", "gmt", "zulu"].iter().any(|name| word.eq_ignore_ascii_case(name)) {
            return Ok(Some(Zone::Offset(0)));
        }
        match jiff::tz::TimeZone::get(word) {
            Ok(zone) => Ok(Some(Zone::Named(TimeZone::new(zone)))),
            Err(_) if word.contains('/') => Err(ValueError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("time zone \"{}\" not recognized", word.to_ascii_lowercase()),
            )),
            Err(_) => Err(invalid(self.text)),
        }
    }

    /// `+HH`, `+HHMM`, `+HH:MM`, `+HH:MM:SS`.
    fn offset(&mut self) -> Result<Zone, ValueError> {
        let negative = self.rest.starts_with('-');
        self.rest = &self.rest[1..];
        let first = self.take(|c| c.is_ascii_digit());
        let value: i64 = match first.len() {
            1..=4 => first.parse().map_err(|_| invalid(self.text))?,
            _ => return Err(invalid(self.text)),
        };
        let (hours, mut minutes, mut seconds) =
            if first.len() > 2 { (value / 100, value % 100, 0) } else { (value, 0, 0) };
        if first.len() <= 2 && self.eat(':') {
            minutes = self.number(2)?;
            if self.eat(':') {
                seconds = self.number(2)?;
            }
        }
        if hours > 15 || minutes > 59 || seconds > 59 {
            let message = format!("time zone displacement out of range: \"{}\"", self.text);
            return Err(ValueError::new(SqlState::INVALID_TIME_ZONE_DISPLACEMENT, message));
        }
        let size = hours * 3600 + minutes * 60 + seconds;
        Ok(Zone::Offset(if negative { -size } else { size }))
    }

    /// Whether the era is BC.
    fn era(&mut self) -> Result<bool, ValueError> {
        self.skip_spaces();
        if self.rest.is_empty() {
            return Ok(false);
        }
        let word = self.take(|c| !is_space(c));
        self.skip_spaces();
        is_era(word).ok_or_else(|| invalid(self.text))
    }
}

/// `Some(true)` for BC, `Some(false)` for AD.
fn is_era(word: &str) -> Option<bool> {
    if word.eq_ignore_ascii_case("bc") {
        Some(true)
    } else if word.eq_ignore_ascii_case("ad") {
        Some(false)
    } else {
        None
    }
}

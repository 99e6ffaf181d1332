//! `to_char` of timestamps and intervals.

use std::fmt::Write;

use super::parse::{Node, nodes};
use super::patterns::Field;
use crate::datetime::calendar::{
    Fields, JULIAN_OF_EPOCH, MONTHS, WEEKDAYS, day_of_year, days_from_date, monday_of_week, name_of, weekday,
};
use crate::datetime::units::{HOUR, MINUTE, SECOND};
use crate::datetime::value::{Interval, Timestamp, TimestampTz};
use crate::datetime::zone::TimeZone;
use crate::error::ValueError;
use crate::sqlstate::SqlState;

/// Roman months, January first.
pub(super) const ROMAN: [&str; 12] = ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"];

impl Timestamp {
    /// `to_char(timestamp, template)`. `None` is NULL, of an infinity and of an empty template.
    pub fn to_char(self, template: &str) -> Result<Option<String>, ValueError> {
        if !self.is_finite() || template.is_empty() {
            return Ok(None);
        }
        Moment::local(Fields::of(self.0), 0, String::new()).write(template).map(Some)
    }
}

impl TimestampTz {
    /// `to_char(timestamptz, template)` in a zone. `None` is NULL, of an infinity and of an empty template.
    pub fn to_char(self, template: &str, zone: &TimeZone) -> Result<Option<String>, ValueError> {
        if !self.is_finite() || template.is_empty() {
            return Ok(None);
        }
        let fields = Fields::of(zone.to_local(self.0));
        Moment::local(fields, zone.offset_at(self.0), zone.abbreviation_at(self.0)).write(template).map(Some)
    }
}

impl Interval {
    /// `to_char(interval, template)`. `None` is NULL, of an empty template. 22007 for patterns of dates.
    pub fn to_char(self, template: &str) -> Result<Option<String>, ValueError> {
        if template.is_empty() {
            return Ok(None);
        }
        let months = i64::from(self.months);
        let fields = Fields {
            year: months / 12,
            month: months % 12,
            day: i64::from(self.days),
            hour: self.micros / HOUR,
            minute: self.micros / MINUTE % 60,
            second: self.micros / SECOND % 60,
            micros: self.micros % SECOND,
        };
        // In months of 30 days, whatever the year; 32 bits of it.
        let year_day = i64::from(self.months.wrapping_mul(30).wrapping_add(self.days));
        let moment = Moment { fields, year_day, weekday: 0, offset: 0, abbreviation: String::new(), is_interval: true };
        moment.write(template).map(Some)
    }
}

/// What a template shows.
struct Moment {
    fields: Fields,
    year_day: i64,
    /// Sunday is 0
    weekday: i64,
    /// Seconds east of Greenwich
    offset: i64,
    abbreviation: String,
    is_interval: bool,
}

/// The letters of a name: as the pattern is spelled.
fn in_case(pattern: &str, name: &str) -> String {
    let mut letters = pattern.chars();
    match (letters.next(), letters.next()) {
        (Some('a'..='z'), _) => name.to_ascii_lowercase(),
        (_, Some('a'..='z')) => name.to_owned(),
        _ => name.to_ascii_uppercase(),
    }
}

/// The ending of an ordinal number.
fn ordinal(number: &str, upper: bool) -> &'static str {
    let mut digits = number.chars().rev();
    let (last, before) = (digits.next(), digits.next());
    let ending = match last {
        _ if before == Some('1') => "th",
        Some('1') => "st",
        Some('2') => "nd",
        Some('3') => "rd",
        _ => "th",
    };
    match (ending, upper) {
        (_, false) => ending,
        ("st", true) => "ST",
        ("nd", true) => "ND",
        ("rd", true) => "RD",
        _ => "TH",
    }
}

impl Moment {
    fn local(fields: Fields, offset: i64, abbreviation: String) -> Moment {
        let days = fields.days();
        let (year_day, weekday) = (day_of_year(days), weekday(days));
        Moment { fields, year_day, weekday, offset, abbreviation, is_interval: false }
    }

    fn write(&self, template: &str) -> Result<String, ValueError> {
        let mut out = String::with_capacity(template.len() * 2);
        for node in nodes(template) {
            match node {
                Node::Space(c) | Node::Separator(c) | Node::Text(c) => out.push(c),
                Node::Pattern { pattern, fill, translated, ordinal: ending } => {
                    if self.is_interval && needs_date(pattern.field) {
                        let message = "invalid format specification for an interval value";
                        let hint = "Intervals are not tied to specific calendar dates.";
                        return Err(ValueError::new(SqlState::INVALID_DATETIME_FORMAT, message).with_hint(hint));
                    }
                    if let Some(name) = self.name(pattern.field, pattern.name, (fill, translated)) {
                        out.push_str(&name);
                    } else if let Some((value, width)) = self.number(pattern.field) {
                        let start = out.len();
                        write_number(value, if fill { 0 } else { width }, &mut out);
                        push_ordinal(&mut out, start, ending);
                    } else {
                        let start = out.len();
                        self.write_other(pattern.field, fill, &mut out);
                        let counts = matches!(
                            pattern.field,
                            Field::YearWithComma | Field::Fraction(_) | Field::Milliseconds | Field::Microseconds
                        );
                        push_ordinal(&mut out, start, ending.filter(|_| counts));
                    }
                }
            }
        }
        Ok(out)
    }

    /// The text of a pattern that is no number. Names have blanks up to the longest name, unless `FM`, or `TM` for all
    /// but Roman numbers, is there.
    fn name(&self, field: Field, pattern: &str, (fill, translated): (bool, bool)) -> Option<String> {
        let padded = |text: String, bare: bool, width: usize| if bare { text } else { format!("{text:width$}") };
        let bare = fill || translated;
        let short = |name: &'static str| name.get(..3).unwrap_or(name);
        Some(match field {
            Field::Era(points) => {
                let (bc, ad) = if points { ("B.C.", "A.D.") } else { ("BC", "AD") };
                in_case_of_first(pattern, if self.fields.year <= 0 { bc } else { ad })
            }
            Field::Meridiem(points) => {
                let (am, pm) = if points { ("A.M.", "P.M.") } else { ("AM", "PM") };
                in_case_of_first(pattern, if self.fields.hour % 24 >= 12 { pm } else { am })
            }
            Field::Day => padded(in_case(pattern, name_of(&WEEKDAYS, self.weekday)), bare, 9),
            Field::ShortDay => in_case(pattern, short(name_of(&WEEKDAYS, self.weekday))),
            Field::MonthName => padded(in_case(pattern, name_of(&MONTHS, self.fields.month - 1)), bare, 9),
            Field::ShortMonth => in_case(pattern, short(name_of(&MONTHS, self.fields.month - 1))),
            Field::Roman => {
                let (year, month) = (self.fields.year, self.fields.month);
                if year == 0 && month == 0 {
                    return Some(String::new());
                }
                // Months of intervals go backwards before zero, and no month is that of a whole year.
                let index = match month {
                    0 if year >= 0 => 11,
                    0 => 0,
                    ..0 => 12 + month,
                    _ => month - 1,
                };
                padded(in_case_of_first(pattern, name_of(&ROMAN, index)), fill, 4)
            }
            Field::Zone => in_case_of_first(pattern, &self.abbreviation),
            _ => return None,
        })
    }

    /// The value of a number, and its width with zeros.
    fn number(&self, field: Field) -> Option<(i64, usize)> {
        let fields = &self.fields;
        // A negative number is one wider.
        let wide = |value: i64, width: usize| Some((value, width + usize::from(value < 0)));
        match field {
            Field::Hour12 => {
                let hour = fields.hour % 12;
                let width = 2 + usize::from(fields.hour < 0);
                Some((if hour == 0 { 12 } else { hour }, width))
            }
            Field::Hour24 => wide(fields.hour, 2),
            Field::Minute => wide(fields.minute, 2),
            Field::Second => wide(fields.second, 2),
            Field::SecondOfDay => Some((fields.hour * 3600 + fields.minute * 60 + fields.second, 0)),
            Field::Month => wide(fields.month, 2),
            Field::DayOfYear => Some((self.year_day, 3)),
            Field::IsoDayOfYear => Some((self.days_from(self.iso_week().0) + 1, 3)),
            Field::DayOfMonth => Some((fields.day, 2)),
            Field::Weekday => Some((self.weekday + 1, 0)),
            Field::IsoWeekday => Some((if self.weekday == 0 { 7 } else { self.weekday }, 0)),
            Field::Week => Some((i64::from((self.year_day as i32).wrapping_sub(1)) / 7 + 1, 2)),
            Field::IsoWeek => Some((self.iso_week().1, 2)),
            Field::WeekOfMonth => Some((i64::from((fields.day as i32).wrapping_sub(1)) / 7 + 1, 0)),
            Field::Quarter if fields.month != 0 => Some(((fields.month - 1) / 3 + 1, 0)),
            Field::Century => {
                let century = self.century();
                if century.abs() <= 99 { wide(century, 2) } else { Some((century, 0)) }
            }
            Field::Year(digits) => Some(last_digits(self.shown(fields.year), self.shown(fields.year), digits)),
            Field::IsoYear(digits) => Some(last_digits(self.shown(self.iso_week().0), self.shown(fields.year), digits)),
            Field::Julian => Some((self.julian().into(), 0)),
            _ => None,
        }
    }

    /// The day of the fields. The month of an interval may be none.
    fn days(&self) -> i64 {
        // PostgreSQL gives 31 and 30 days to the two months before March, if it counts months backwards.
        if self.fields.month < -9 {
            let before = if self.fields.month == -10 { 31 } else { 61 };
            return days_from_date(self.fields.year - 1, 3, 1) - before + self.fields.day - 1;
        }
        let months = self.fields.month - 1;
        days_from_date(self.fields.year + months.div_euclid(12), months.rem_euclid(12) + 1, self.fields.day)
    }

    /// The Julian day. It has 32 bits, which the days of an interval may exceed.
    fn julian(&self) -> i32 {
        julian(self.days())
    }

    /// The days from the start of a year of ISO 8601, in 32 bits as well.
    fn days_from(&self, year: i64) -> i64 {
        self.julian().wrapping_sub(julian(monday_of_week(year, 1))).into()
    }

    /// The year and the week of ISO 8601. The days of an interval may be many: only the years beside its own count.
    fn iso_week(&self) -> (i64, i64) {
        let (year, days) = (self.fields.year, self.julian());
        let start = |year: i64| julian(monday_of_week(year, 1));
        let week = |year: i64| self.days_from(year) / 7 + 1;
        let year = if days < start(year) { year - 1 } else { year };
        // Weeks from 52 on may be those of the next year.
        let next = self.fields.year + 1;
        if week(year) >= 52 && days >= start(next) { (next, week(next)) } else { (year, week(year)) }
    }

    /// A year as it is shown: 1 BC is 1.
    fn shown(&self, year: i64) -> i64 {
        if self.is_interval || year > 0 { year } else { 1 - year }
    }

    fn century(&self) -> i64 {
        let year = self.fields.year;
        if self.is_interval {
            year / 100
        } else if year > 0 {
            (year - 1) / 100 + 1
        } else {
            year / 100 - 1
        }
    }

    /// The patterns that are neither a name nor a plain number.
    fn write_other(&self, field: Field, fill: bool, out: &mut String) {
        let micros = self.fields.micros;
        let sign = if self.offset < 0 { '-' } else { '+' };
        let (hours, minutes) = (self.offset.abs() / 3600, self.offset.abs() / 60 % 60);
        // Writing to a String cannot fail.
        let _ = match field {
            Field::Fraction(digits) => {
                write_number(micros / 10i64.pow(6 - digits.min(6)), usize::try_from(digits).unwrap_or(6), out);
                Ok(())
            }
            Field::Milliseconds => {
                write_number(micros / 1000, 3, out);
                Ok(())
            }
            Field::Microseconds => {
                write_number(micros, 6, out);
                Ok(())
            }
            Field::YearWithComma => {
                let year = self.shown(self.fields.year);
                write!(out, "{},{:03}", year / 1000, year % 1000)
            }
            Field::ZoneHour => write!(out, "{sign}{hours:02}"),
            Field::ZoneMinute => write!(out, "{minutes:02}"),
            Field::Offset => {
                let width = if fill { 0 } else { 2 };
                let _ = write!(out, "{sign}{hours:0width$}");
                if minutes != 0 || self.offset % 60 != 0 { write!(out, ":{minutes:02}") } else { Ok(()) }
            }
            _ => Ok(()),
        };
    }
}

fn julian(days: i64) -> i32 {
    (days + JULIAN_OF_EPOCH) as i32
}

/// Whether an interval lacks the field.
fn needs_date(field: Field) -> bool {
    matches!(
        field,
        Field::Era(_)
            | Field::Day
            | Field::ShortDay
            | Field::MonthName
            | Field::ShortMonth
            | Field::Weekday
            | Field::IsoWeekday
            | Field::Zone
            | Field::ZoneHour
            | Field::ZoneMinute
            | Field::Offset
    )
}

/// The last digits of a year, with the width that another year asks for.
fn last_digits(year: i64, sign_of: i64, digits: u32) -> (i64, usize) {
    let width = usize::try_from(digits).unwrap_or(4) + usize::from(sign_of < 0);
    match digits {
        4 => (year, width),
        1 => (year % 10, 1),
        _ => (year % 10i64.pow(digits), width),
    }
}

/// Letters of abbreviations: small if the first letter of the pattern is.
fn in_case_of_first(pattern: &str, text: &str) -> String {
    if pattern.starts_with(|c: char| c.is_ascii_lowercase()) { text.to_ascii_lowercase() } else { text.to_owned() }
}

/// Appends a number with zeros up to `width`, its sign included.
fn write_number(value: i64, width: usize, out: &mut String) {
    let _ = write!(out, "{value:0width$}");
}

/// Appends the ending of the number from `start` on.
fn push_ordinal(out: &mut String, start: usize, ending: Option<bool>) {
    let Some(upper) = ending else { return };
    let ending = ordinal(out.get(start..).unwrap_or(""), upper);
    out.push_str(ending);
}

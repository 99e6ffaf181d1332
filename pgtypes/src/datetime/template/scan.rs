//! Reads a text by a template, for `to_date` and `to_timestamp`.

use super::parse::{Node, is_separator};
use super::patterns::{Convention, Field, Pattern};
use super::write::ROMAN;
use crate::datetime::calendar::{MONTHS, WEEKDAYS};
use crate::error::ValueError;
use crate::letters::is_space;
use crate::sqlstate::SqlState;

/// The fields that a text gives. 0 stands for a field that it does not give.
#[derive(Clone, Debug, Default)]
pub(super) struct Given {
    pub(super) convention: Option<Convention>,
    pub(super) hour: i64,
    pub(super) afternoon: i64,
    pub(super) twelve_hours: bool,
    pub(super) minute: i64,
    pub(super) second: i64,
    pub(super) second_of_day: i64,
    /// Sunday is 1
    pub(super) weekday: i64,
    pub(super) day: i64,
    pub(super) year_day: i64,
    pub(super) month: i64,
    pub(super) millis: i64,
    pub(super) micros: i64,
    /// Digits of `FF`
    pub(super) precision: u32,
    pub(super) year: i64,
    /// Digits of the pattern of the year
    pub(super) year_digits: u32,
    pub(super) before_christ: i64,
    pub(super) week: i64,
    pub(super) week_of_month: i64,
    pub(super) century: i64,
    pub(super) julian: i64,
    /// -1 or 1 if a zone is given
    pub(super) zone_sign: i64,
    pub(super) zone_hour: i64,
    pub(super) zone_minute: i64,
}

fn malformed(message: String) -> ValueError {
    ValueError::new(SqlState::INVALID_DATETIME_FORMAT, message)
}

/// Sets a field, which must not have another value.
fn set(field: &mut i64, value: i64, pattern: &Pattern) -> Result<(), ValueError> {
    if *field != 0 && *field != value {
        let message = format!("conflicting values for \"{}\" field in formatting string", pattern.name);
        let detail = "This value contradicts a previous setting for the same field type.";
        return Err(malformed(message).with_detail(detail));
    }
    *field = value;
    Ok(())
}

/// Reads a text by the parts of a template.
pub(super) fn scan(text: &str, nodes: &[Node]) -> Result<Given, ValueError> {
    let mut scanner = Scanner { rest: text, before: None, fixed: false, skipped: 0, given: Given::default() };
    for (index, node) in nodes.iter().enumerate() {
        if scanner.rest.is_empty() {
            break;
        }
        let next = nodes.get(index + 1);
        let is_fx = matches!(node, Node::Pattern { pattern, .. } if pattern.field == Field::Fixed);
        let may_skip = index == 0 || matches!(node, Node::Pattern { .. });
        if !scanner.fixed && !is_fx && may_skip {
            scanner.skip_spaces();
        }
        match node {
            Node::Space(_) | Node::Separator(_) => scanner.separator(),
            Node::Text(_) => scanner.text(),
            Node::Pattern { pattern, fill, ordinal, .. } => {
                let ends = ordinal.is_some() || ends_number(next);
                scanner.pattern(pattern, *fill || ends, ordinal.is_some())?;
                if !scanner.fixed {
                    scanner.skipped = 0;
                    scanner.skip_spaces();
                }
            }
        }
    }
    Ok(scanner.given)
}

/// Whether a number ends before the node, because no digit can follow.
fn ends_number(next: Option<&Node>) -> bool {
    match next {
        None => true,
        Some(Node::Pattern { pattern, .. }) => !pattern.is_number(),
        Some(Node::Space(c) | Node::Separator(c) | Node::Text(c)) => !c.is_ascii_digit(),
    }
}

struct Scanner<'a> {
    rest: &'a str,
    /// The character before the rest
    before: Option<char>,
    /// `FX`
    fixed: bool,
    /// Characters that were skipped beyond those of the template
    skipped: i64,
    given: Given,
}

impl<'a> Scanner<'a> {
    fn next(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let next = chars.next()?;
        self.before = Some(next);
        self.rest = chars.as_str();
        Some(next)
    }

    fn skip_spaces(&mut self) {
        while self.rest.starts_with(is_space) {
            self.next();
            self.skipped += 1;
        }
    }

    /// A separator of the template: one of the text, or none.
    fn separator(&mut self) {
        if self.fixed {
            self.next();
            return;
        }
        self.skipped -= 1;
        if self.rest.starts_with(|c| is_space(c) || is_separator(c)) {
            self.next();
            self.skipped += 1;
        }
    }

    /// A character of the template: any one of the text, unless more was skipped before.
    fn text(&mut self) {
        if !self.fixed && self.skipped > 0 {
            self.skipped -= 1;
        } else {
            self.next();
        }
    }

    fn pattern(&mut self, pattern: &Pattern, free: bool, ordinal: bool) -> Result<(), ValueError> {
        if let Some(convention) = pattern.convention() {
            if self.given.convention.is_some_and(|given| given != convention) {
                let hint = "Do not mix Gregorian and ISO week date conventions in a formatting template.";
                return Err(malformed("invalid combination of date conventions".to_owned()).with_hint(hint));
            }
            self.given.convention = Some(convention);
        }
        if self.name(pattern)? || self.zone(pattern, free)? {
            return Ok(());
        }
        self.number_field(pattern, free)?;
        if ordinal && pattern.field != Field::Fixed {
            self.next();
            self.next();
        }
        Ok(())
    }

    /// Reads the patterns that are names.
    fn name(&mut self, pattern: &Pattern) -> Result<bool, ValueError> {
        let shorts = |names: &[&'static str]| names.iter().map(|name| name.get(..3).unwrap_or(name)).collect();
        let names: Vec<&str> = match pattern.field {
            Field::Era(false) => vec!["ad", "bc"],
            Field::Era(true) => vec!["a.d.", "b.c."],
            Field::Meridiem(false) => vec!["am", "pm"],
            Field::Meridiem(true) => vec!["a.m.", "p.m."],
            Field::MonthName => MONTHS.to_vec(),
            Field::ShortMonth => shorts(&MONTHS),
            Field::Day => WEEKDAYS.to_vec(),
            Field::ShortDay => shorts(&WEEKDAYS),
            // The longer of two names with one start comes first.
            Field::Roman => ROMAN.iter().rev().copied().collect(),
            _ => return Ok(false),
        };
        let starts = |name: &&str| self.rest.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
        let Some(index) = names.iter().position(starts) else {
            let shown = self.rest.split([' ', '\t', '\n', '\r', '\x0c']).next().unwrap_or("");
            let message = format!("invalid value \"{shown}\" for \"{}\"", pattern.name);
            let detail = "The given value did not match any of the allowed values for this field.";
            return Err(malformed(message).with_detail(detail));
        };
        for _ in 0..names.get(index).map_or(0, |name| name.len()) {
            self.next();
        }
        let value = i64::try_from(index).unwrap_or(0);
        let given = &mut self.given;
        match pattern.field {
            Field::Era(_) => set(&mut given.before_christ, value, pattern)?,
            Field::Meridiem(_) => {
                set(&mut given.afternoon, value, pattern)?;
                given.twelve_hours = true;
            }
            Field::MonthName | Field::ShortMonth => set(&mut given.month, value + 1, pattern)?,
            Field::Roman => set(&mut given.month, 12 - value, pattern)?,
            _ => {
                set(&mut given.weekday, value, pattern)?;
                given.weekday += 1;
            }
        }
        Ok(true)
    }

    /// Reads the patterns of zones.
    fn zone(&mut self, pattern: &Pattern, free: bool) -> Result<bool, ValueError> {
        match pattern.field {
            Field::Zone | Field::Offset => {
                let message = format!("formatting field \"{}\" is only supported in to_char", pattern.name);
                return Err(ValueError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
            }
            Field::ZoneHour => {
                // A minus may have been taken for a separator.
                let taken = self.skipped > 0 && self.before == Some('-');
                let sign = if self.rest.starts_with(['+', '-', ' ']) { self.next() } else { None };
                self.given.zone_sign = if sign == Some('-') || sign.is_none() && taken { -1 } else { 1 };
                let (value, _) = self.number(pattern, 2, free)?;
                set(&mut self.given.zone_hour, value, pattern)?;
            }
            Field::ZoneMinute => {
                if self.given.zone_sign == 0 {
                    self.given.zone_sign = 1;
                }
                let (value, _) = self.number(pattern, 2, free)?;
                set(&mut self.given.zone_minute, value, pattern)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Reads the patterns that are numbers.
    fn number_field(&mut self, pattern: &Pattern, free: bool) -> Result<(), ValueError> {
        let width = match pattern.field {
            Field::Fixed => {
                self.fixed = true;
                return Ok(());
            }
            Field::YearWithComma => return self.year_with_comma(pattern),
            Field::Hour12 | Field::Hour24 => 2,
            Field::Milliseconds => 3,
            Field::Microseconds => 6,
            Field::Fraction(digits) => usize::try_from(digits).unwrap_or(6),
            Field::IsoDayOfYear => 3,
            Field::IsoWeekday => 1,
            _ => pattern.name.len(),
        };
        let (value, length) = self.number(pattern, width, free)?;
        let given = &mut self.given;
        let scale = |digits: usize| 10i64.pow(u32::try_from(digits.saturating_sub(length)).unwrap_or(0));
        match pattern.field {
            Field::Hour12 => {
                set(&mut given.hour, value, pattern)?;
                given.twelve_hours = true;
            }
            Field::Hour24 => set(&mut given.hour, value, pattern)?,
            Field::Minute => set(&mut given.minute, value, pattern)?,
            Field::Second => set(&mut given.second, value, pattern)?,
            Field::SecondOfDay => set(&mut given.second_of_day, value, pattern)?,
            // Fewer digits are those after the point: 25 is 0.25, and 0 digits scale as all.
            Field::Milliseconds => {
                set(&mut given.millis, value, pattern)?;
                given.millis *= scale(3);
            }
            Field::Microseconds | Field::Fraction(_) => {
                if let Field::Fraction(digits) = pattern.field {
                    given.precision = digits;
                }
                set(&mut given.micros, value, pattern)?;
                given.micros *= scale(6);
            }
            Field::Month => set(&mut given.month, value, pattern)?,
            Field::DayOfYear | Field::IsoDayOfYear => set(&mut given.year_day, value, pattern)?,
            Field::DayOfMonth => set(&mut given.day, value, pattern)?,
            Field::Weekday => set(&mut given.weekday, value, pattern)?,
            Field::IsoWeekday => {
                set(&mut given.weekday, value, pattern)?;
                given.weekday = if given.weekday >= 7 { 1 } else { given.weekday + 1 };
            }
            Field::Week | Field::IsoWeek => set(&mut given.week, value, pattern)?,
            Field::WeekOfMonth => set(&mut given.week_of_month, value, pattern)?,
            Field::Century => set(&mut given.century, value, pattern)?,
            Field::Julian => set(&mut given.julian, value, pattern)?,
            Field::Year(digits) | Field::IsoYear(digits) => {
                set(&mut given.year, value, pattern)?;
                if digits < 4 && length < 4 {
                    given.year = near_2020(given.year);
                }
                given.year_digits = digits;
            }
            // The quarter tells no date.
            _ => {}
        }
        Ok(())
    }

    /// Reads an integer: as many digits as there are if it is `free`, else exactly `width` characters. Returns also the
    /// count of characters.
    fn number(&mut self, pattern: &Pattern, width: usize, free: bool) -> Result<(i64, usize), ValueError> {
        let start = self.rest;
        let body = start.trim_start_matches(is_space);
        let copy = prefix_of(body, width);
        let invalid = || malformed(format!("invalid value \"{copy}\" for \"{}\"", pattern.name));
        let fixed_width = "If your source string is not fixed-width, try using the \"FM\" modifier.";
        let (used, digits) = if free {
            integer(body)
        } else {
            if copy.len() < width {
                let detail = format!("Field requires {width} characters, but only {} remain.", body.len());
                let message = format!("source string too short for \"{}\" formatting field", pattern.name);
                return Err(malformed(message).with_detail(detail).with_hint(fixed_width));
            }
            let found = integer(copy);
            if found.0 > 0 && found.0 < width {
                let detail = format!("Field requires {width} characters, but only {} could be parsed.", found.0);
                return Err(invalid().with_detail(detail).with_hint(fixed_width));
            }
            found
        };
        let consumed = if free && used == 0 { 0 } else { start.len() - body.len() + used };
        if consumed == 0 {
            return Err(invalid().with_detail("Value must be an integer."));
        }
        let value = match digits.parse::<i64>() {
            _ if digits.is_empty() => 0,
            Ok(value) if i32::try_from(value).is_ok() => value,
            _ => {
                let message = format!("value for \"{}\" in source string is out of range", pattern.name);
                let detail = format!("Value must be in the range {} to {}.", i32::MIN, i32::MAX);
                return Err(ValueError::new(SqlState::DATETIME_FIELD_OVERFLOW, message).with_detail(detail));
            }
        };
        let (taken, rest) = start.split_at(consumed);
        self.before = taken.chars().last();
        self.rest = rest;
        Ok((value, consumed))
    }

    /// `Y,YYY`: thousands, a comma and three digits at most.
    fn year_with_comma(&mut self, pattern: &Pattern) -> Result<(), ValueError> {
        let error = || malformed("invalid input string for \"Y,YYY\"".to_owned());
        let body = self.rest.trim_start_matches(is_space);
        let (used, thousands) = integer(body);
        let rest = body.get(used..).and_then(|rest| rest.strip_prefix(',')).ok_or_else(error)?;
        let rest = rest.trim_start_matches(is_space);
        let (used, years) = integer(prefix_of(rest, 3));
        if thousands.is_empty() || years.is_empty() {
            return Err(error());
        }
        // Of more than 32 bits, the low ones count.
        let low = |digits: &str| digits.parse::<i64>().unwrap_or(i64::MAX) as i32;
        let (thousands, years) = (low(thousands), low(years));
        self.rest = rest.get(used..).unwrap_or("");
        let year = thousands.wrapping_mul(1000).wrapping_add(years);
        set(&mut self.given.year, i64::from(year), pattern)?;
        self.given.year_digits = 4;
        Ok(())
    }
}

/// At most `width` bytes of a text, cut at a character.
fn prefix_of(text: &str, width: usize) -> &str {
    text.get(..text.floor_char_boundary(width)).unwrap_or(text)
}

/// The integer that a text starts with: its length and its text.
fn integer(text: &str) -> (usize, &str) {
    let sign = usize::from(text.starts_with(['+', '-']));
    let digits = text.bytes().skip(sign).take_while(u8::is_ascii_digit).count();
    let length = if digits == 0 { 0 } else { sign + digits };
    (length, text.get(..length).unwrap_or(""))
}

/// A year of fewer than four digits in the thousand around 2020.
fn near_2020(year: i64) -> i64 {
    year + match year {
        ..70 => 2000,
        70..100 => 1900,
        100..520 => 2000,
        520..1000 => 1000,
        _ => 0,
    }
}

//! Time zones and the format of `DateStyle`: offsets at instants and local times, abbreviations, and zones by name.
//!
//! jiff provides the rules of zones for the years that it knows. Later years repeat them in a cycle of 400 years.

use jiff::tz::{AmbiguousOffset, Offset};

use super::calendar::Fields;
use super::units::{DAY, SECOND};

/// Seconds from the Unix epoch to PostgreSQL's epoch, 2000-01-01.
pub const EPOCH_SECONDS: i64 = 946_684_800;

/// Seconds and days of 400 years, after which the calendar repeats.
const CYCLE_SECONDS: i64 = 146_097 * 86_400;

/// The session's time zone and date style, for input and output of timestamps.
#[derive(Clone, Debug)]
pub struct TimeZone {
    zone: jiff::tz::TimeZone,
    /// Seconds to add to the zone's offsets: jiff has no offsets of 26 hours, PostgreSQL has up to 167
    shift: i64,
    /// The abbreviations of standard and daylight saving time. Other zones name theirs.
    abbreviations: Option<Box<[Box<str>; 2]>>,
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
        TimeZone { zone, shift: 0, abbreviations: None, style: DateStyle::default() }
    }

    /// A fixed offset in seconds east of Greenwich, with its abbreviation, in ISO style. `None` from 26 hours on.
    pub fn fixed(seconds: i32, abbreviation: &str) -> Option<TimeZone> {
        let zone = jiff::tz::TimeZone::fixed(Offset::from_seconds(seconds).ok()?);
        Some(TimeZone::new(zone).with_abbreviations(abbreviation, abbreviation))
    }

    /// A zone by a name of the database (in any case) or a description as POSIX has it (`EST5EDT`, `<+03>-3`, `-3`).
    pub fn find(name: &str) -> Option<TimeZone> {
        let name = name.strip_prefix(':').unwrap_or(name);
        if let Ok(zone) = jiff::tz::TimeZone::get(name) {
            return Some(TimeZone::new(zone));
        }
        posix_zone(name)
    }

    fn with_abbreviations(self, standard: &str, daylight: &str) -> TimeZone {
        TimeZone { abbreviations: Some(Box::new([standard.into(), daylight.into()])), ..self }
    }

    /// The same zone with another style.
    pub fn with_style(self, style: DateStyle) -> TimeZone {
        TimeZone { style, ..self }
    }

    /// The style of dates.
    pub fn style(&self) -> DateStyle {
        self.style
    }

    /// The name in the time zone database, if it has one.
    pub fn name(&self) -> Option<&str> {
        self.zone.iana_name()
    }

    /// The offset if it never changes, in seconds east of Greenwich.
    pub(super) fn fixed_offset(&self) -> Option<i64> {
        let zone = &self.zone;
        // A zone of the database may have one offset and no change at all.
        let far = zone.to_offset(jiff::Timestamp::MAX);
        let changes = zone.preceding(jiff::Timestamp::MAX).any(|t| t.offset() != far);
        let first = zone.to_offset(jiff::Timestamp::MIN);
        (!changes && first == far).then(|| i64::from(far.seconds()) + self.shift)
    }

    /// The offset at an instant, in seconds east of Greenwich.
    pub(super) fn offset_at(&self, micros: i64) -> i64 {
        i64::from(self.zone.to_offset(self.instant(micros)).seconds()) + self.shift
    }

    /// The local time of an instant.
    pub(super) fn to_local(&self, micros: i64) -> i64 {
        micros.saturating_add(self.offset_at(micros) * SECOND)
    }

    /// The offset for a local time, in seconds east of Greenwich. A time that a clock change skips has the offset
    /// before it, a repeated time the offset after it, as in PostgreSQL.
    pub(super) fn offset_of_local(&self, local: i64) -> i64 {
        self.offset_of_fields(&Fields::of(local))
    }

    /// As [`TimeZone::offset_of_local`], for all dates.
    pub(super) fn offset_of_fields(&self, fields: &Fields) -> i64 {
        // Jiff knows the years until 9999. The 400 years before stand for all later ones.
        let year = if fields.year > 9998 { 9600 + (fields.year - 9600).rem_euclid(400) } else { fields.year };
        let year = if year > 9998 { year - 400 } else { year };
        let part = |value: i64| i8::try_from(value).unwrap_or(0);
        let civil = i16::try_from(year.max(-9998)).ok().and_then(|year| {
            let (hour, minute, second) = (part(fields.hour), part(fields.minute), part(fields.second));
            jiff::civil::DateTime::new(year, part(fields.month), part(fields.day), hour, minute, second, 0).ok()
        });
        let Some(civil) = civil else { return self.offset_at(fields.local().unwrap_or(i64::MAX)) };
        let offset: Offset = match self.zone.to_ambiguous_timestamp(civil).offset() {
            AmbiguousOffset::Unambiguous { offset } => offset,
            AmbiguousOffset::Gap { before, .. } => before,
            AmbiguousOffset::Fold { after, .. } => after,
        };
        i64::from(offset.seconds()) + self.shift
    }

    /// The abbreviation at an instant, at most 10 bytes as in PostgreSQL.
    pub(super) fn abbreviation_at(&self, micros: i64) -> String {
        let info = self.zone.to_offset_info(self.instant(micros));
        let mut name = match self.abbreviations.as_deref() {
            None => info.abbreviation().to_owned(),
            Some([_, summer]) if info.dst().is_dst() => summer.to_string(),
            Some([standard, _]) => standard.to_string(),
        };
        name.truncate(name.floor_char_boundary(10));
        name
    }

    /// Whether daylight saving time holds at an instant.
    pub(super) fn is_daylight_at(&self, micros: i64) -> bool {
        self.zone.to_offset_info(self.instant(micros)).dst().is_dst()
    }

    /// The offset that an abbreviation means at a local time in this zone: that of its last use until then, else of its
    /// first use after. A zone that never used it answers with its own offset at that time.
    pub(super) fn offset_of_abbreviation(&self, abbreviation: &str, fields: &Fields) -> i64 {
        let local = fields.local().unwrap_or(i64::MAX);
        self.offset_of_abbreviation_at(abbreviation, local.saturating_sub(self.offset_of_fields(fields) * SECOND))
    }

    /// As [`TimeZone::offset_of_abbreviation`], at an instant.
    pub(super) fn offset_of_abbreviation_at(&self, abbreviation: &str, micros: i64) -> i64 {
        let own = self.offset_at(micros);
        let (zone, at) = (&self.zone, self.instant(micros));
        let same = |name: &str| name.eq_ignore_ascii_case(abbreviation);
        let current = zone.to_offset_info(at);
        if same(current.abbreviation()) {
            return i64::from(current.offset().seconds());
        }
        if let Some(found) = zone.preceding(at).find(|t| same(t.abbreviation())) {
            return i64::from(found.offset().seconds());
        }
        // Rules without end repeat within two changes of a year.
        let found = zone.following(at).take(400).find(|t| same(t.abbreviation()));
        found.map_or(own, |t| i64::from(t.offset().seconds()))
    }

    /// The instant for jiff. Instants after its range use the same instant of the last 400 years in it.
    fn instant(&self, micros: i64) -> jiff::Timestamp {
        let seconds = micros.div_euclid(SECOND).saturating_add(EPOCH_SECONDS + self.shift);
        let last = jiff::Timestamp::MAX.as_second() - DAY / SECOND * 366;
        let folded = if seconds > last {
            last - CYCLE_SECONDS + (seconds - last).rem_euclid(CYCLE_SECONDS)
        } else {
            seconds.max(jiff::Timestamp::MIN.as_second())
        };
        jiff::Timestamp::from_second(folded).unwrap_or(jiff::Timestamp::UNIX_EPOCH)
    }
}

/// The rules of a description that names daylight saving time without rules: those of the United States.
const DEFAULT_RULES: &str = ",M3.2.0,M11.1.0";

/// A description as POSIX has it: `std offset [dst [offset] [,rules]]`, the offsets positive west of Greenwich. As in
/// PostgreSQL, a name may be missing and may have any characters but digits, signs and commas.
fn posix_zone(description: &str) -> Option<TimeZone> {
    let (standard, rest) = posix_name(description)?;
    let (west, rest) = posix_offset(rest)?;
    let (standard, upper) = (standard.to_ascii_uppercase(), |name: &str| name.to_ascii_uppercase());
    // A far offset becomes a shift of a zone around Greenwich.
    let shift = if west.abs() > 86_400 { -west } else { 0 };
    if rest.is_empty() {
        let zone = TimeZone::fixed(i32::try_from(-west - shift).ok()?, "")?;
        return Some(TimeZone { shift, ..zone.with_abbreviations(&standard, &standard) });
    }
    let (daylight, rest) = posix_name(rest).filter(|(name, _)| !name.is_empty())?;
    let (summer, rules) =
        if rest.is_empty() || rest.starts_with(',') { (west - 3600, rest) } else { posix_offset(rest)? };
    let rules = if rules.is_empty() { DEFAULT_RULES } else { rules };
    let offset = |west: i64| {
        let (sign, size) = (if west + shift < 0 { "-" } else { "" }, (west + shift).abs());
        format!("{sign}{}:{:02}:{:02}", size / 3600, size / 60 % 60, size % 60)
    };
    let canonical = format!("STD{}DST{}{}", offset(west), offset(summer), upper(rules));
    let zone = TimeZone::new(jiff::tz::TimeZone::posix(&canonical).ok()?);
    Some(TimeZone { shift, ..zone.with_abbreviations(&standard, &upper(daylight)) })
}

/// The name at the start of a description, and the rest.
fn posix_name(text: &str) -> Option<(&str, &str)> {
    if let Some(quoted) = text.strip_prefix('<') {
        return quoted.split_once('>');
    }
    let end = text.find(|c: char| c.is_ascii_digit() || matches!(c, ',' | '-' | '+')).unwrap_or(text.len());
    Some(text.split_at(end))
}

/// `[+-]hh[:mm[:ss]]` at the start of a description, in seconds, and the rest. Hours are up to 167.
fn posix_offset(text: &str) -> Option<(i64, &str)> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let mut seconds = 0;
    for (unit, most) in [(3600, 167), (60, 59), (1, 60)] {
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (digits, after) = rest.split_at(end);
        let value: i64 = digits.parse().ok().filter(|value| *value <= most)?;
        seconds += value * unit;
        rest = after;
        match rest.strip_prefix(':') {
            Some(after) if unit > 1 => rest = after,
            _ => break,
        }
    }
    Some((if negative { -seconds } else { seconds }, rest))
}

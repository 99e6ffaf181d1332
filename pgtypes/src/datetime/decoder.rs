//! The parts that reading a date and reading a time have in common: fields, their order, zones, and the final checks.

use super::abbreviations::{self, Meaning};
use super::calendar::{Fields, JULIAN_OF_EPOCH, date_from_days, days_from_date, days_in_month};
use super::fault::Fault;
use super::mask;
use super::number::{self, fraction_micros, leading_i32};
use super::session::{DateOrder, Session, Uses};
use super::units::DAY;
use super::words::{Fixed, Unit, Word, word};
use super::zone::TimeZone;

/// A zone that a text names.
#[derive(Clone, Debug, Default)]
pub(super) enum Zone {
    /// None
    #[default]
    Session,
    /// An offset, kept apart
    Offset,
    /// A zone whose offset depends on the date
    Named(TimeZone),
    /// An abbreviation whose offset depends on the date
    Dynamic(String, TimeZone),
}

/// What a text says so far.
pub(super) struct Decoder<'a> {
    pub(super) session: &'a Session<'a>,
    pub(super) uses: Uses,
    /// Fields of [`mask`]
    pub(super) have: u32,
    pub(super) fields: Fields,
    /// The offset, which `dst` changes, and a zone that determines it later
    pub(super) offset: i64,
    pub(super) zone: Zone,
    /// The label of the next number
    pub(super) label: Option<Unit>,
    pub(super) text_month: bool,
    pub(super) fixed: Option<Fixed>,
    year_day: i64,
    two_digits: bool,
    julian: bool,
    before_christ: bool,
    afternoon: Option<bool>,
}

impl<'a> Decoder<'a> {
    pub(super) fn new(session: &'a Session<'a>) -> Decoder<'a> {
        Decoder {
            session,
            uses: Uses::default(),
            have: 0,
            fields: Fields::default(),
            offset: 0,
            zone: Zone::Session,
            label: None,
            text_month: false,
            fixed: None,
            year_day: 0,
            two_digits: false,
            julian: false,
            before_christ: false,
            afternoon: None,
        }
    }

    pub(super) fn set_day(&mut self, days: i64) {
        (self.fields.year, self.fields.month, self.fields.day) = date_from_days(days);
    }

    pub(super) fn set_time(&mut self, time: i64) {
        self.fields = self.fields.with_time(time);
    }

    /// A Julian day.
    pub(super) fn set_julian(&mut self, day: i64) {
        self.set_day(day - JULIAN_OF_EPOCH);
        self.julian = true;
    }

    /// Whether all fields of `mask` are there.
    pub(super) fn has(&self, mask: u32) -> bool {
        self.have & mask == mask
    }

    /// Adds fields; a field that was there is an error.
    pub(super) fn add(&mut self, mask: u32) -> Result<(), Fault> {
        if self.have & mask != 0 {
            return Err(Fault::Format);
        }
        self.have |= mask;
        Ok(())
    }

    /// Reads a date of several parts. Returns its fields.
    pub(super) fn date(&mut self, text: &str) -> Result<u32, Fault> {
        let before = self.have;
        let mut numbers = Vec::new();
        let mut text_month = false;
        for part in date_parts(text)? {
            if part.starts_with(|c: char| c.is_ascii_digit()) {
                numbers.push(part);
                continue;
            }
            match word(part) {
                Some(Word::Noise) => {}
                Some(Word::Month(month)) => {
                    self.fields.month = month;
                    text_month = true;
                    self.add(mask::MONTH)?;
                }
                _ => return Err(Fault::Format),
            }
        }
        for part in numbers {
            let got = self.number(part, text_month, self.have)?;
            self.add(got)?;
        }
        let complete = self.have & !(mask::DAY_OF_YEAR | mask::ZONE) == mask::DATE;
        let got = self.have & !before;
        self.have = before;
        if complete { Ok(got) } else { Err(Fault::Format) }
    }

    /// Reads a number whose meaning follows from the fields in `have` and the order of fields. Returns its fields.
    pub(super) fn number(&mut self, text: &str, text_month: bool, have: u32) -> Result<u32, Fault> {
        let (value, rest) = leading_i32(text).ok_or(Fault::Field)?;
        let digits = text.len() - rest.len();
        if digits == 0 {
            return Err(Fault::Format);
        }
        if rest.starts_with('.') {
            // More than two digits before the point are a date or a time without separators.
            if digits > 2 {
                return self.number_field(text, have | mask::DATE);
            }
            self.fields.micros = fraction_micros(rest)?;
        } else if !rest.is_empty() {
            return Err(Fault::Format);
        }
        let length = text.len();
        if length == 3 && have & mask::DATE == mask::YEAR && (1..=366).contains(&value) {
            self.year_day = value;
            return Ok(mask::DAY_OF_YEAR | mask::MONTH | mask::DAY);
        }
        const YEAR_MONTH: u32 = mask::YEAR | mask::MONTH;
        const MONTH_DAY: u32 = mask::MONTH | mask::DAY;
        let got = match have & mask::DATE {
            0 => self.by_order(length, [mask::MONTH, mask::DAY]),
            mask::YEAR | mask::DAY => mask::MONTH,
            mask::MONTH if text_month => self.by_order(length, [mask::DAY, mask::DAY]),
            mask::MONTH => mask::DAY,
            YEAR_MONTH if text_month && length >= 3 && self.two_digits => {
                // The first number was the day.
                self.fields.day = self.fields.year;
                self.fields.year = value;
                self.two_digits = false;
                return Ok(mask::DAY);
            }
            YEAR_MONTH => mask::DAY,
            MONTH_DAY => mask::YEAR,
            mask::DATE => return self.number_field(text, have),
            _ => return Err(Fault::Format),
        };
        match got {
            mask::YEAR => {
                self.fields.year = value;
                self.two_digits = length <= 2;
            }
            mask::MONTH => self.fields.month = value,
            _ => self.fields.day = value,
        }
        Ok(got)
    }

    /// The field of a first number: a year if it is long, else as the order of the session has it.
    fn by_order(&mut self, length: usize, [mdy, dmy]: [u32; 2]) -> u32 {
        if length >= 3 {
            return mask::YEAR;
        }
        self.uses.order = true;
        match self.session.order {
            DateOrder::Ymd => mask::YEAR,
            DateOrder::Mdy => mdy,
            DateOrder::Dmy => dmy,
        }
    }

    /// Reads a date or time without separators: `YYYYMMDD`, `hhmmss.f`, `hhmm`. Returns its fields.
    pub(super) fn number_field(&mut self, text: &str, have: u32) -> Result<u32, Fault> {
        let mut digits = text;
        let int = |text: &str| leading_i32(text).map_or(-1, |(value, _)| value);
        if let Some(point) = text.find('.') {
            let (whole, fraction) = text.split_at(point);
            self.fields.micros = fraction_micros(fraction)?;
            digits = whole;
        } else if have & mask::DATE != mask::DATE && text.len() >= 6 {
            let (rest, day) = text.split_at(text.len() - 2);
            let (year, month) = rest.split_at(rest.len() - 2);
            (self.fields.year, self.fields.month, self.fields.day) = (int(year), int(month), int(day));
            if year.len() == 2 {
                self.two_digits = true;
            }
            return Ok(mask::DATE);
        }
        if have & mask::TIME != mask::TIME && matches!(digits.len(), 4 | 6) {
            let (hour, rest) = digits.split_at(2);
            let (minute, second) = rest.split_at(2);
            (self.fields.hour, self.fields.minute, self.fields.second) = (int(hour), int(minute), int(second));
            return Ok(mask::TIME);
        }
        Err(Fault::Format)
    }

    /// Reads a number after a label. Returns its fields.
    pub(super) fn labelled(&mut self, label: Unit, text: &str) -> Result<u32, Fault> {
        let (value, rest) = leading_i32(text).ok_or(Fault::Field)?;
        let fraction_fits = matches!(label, Unit::Julian | Unit::Second) && rest.starts_with('.');
        if !rest.is_empty() && !fraction_fits {
            return Err(Fault::Format);
        }
        let fields = &mut self.fields;
        Ok(match label {
            Unit::Year => {
                fields.year = value;
                mask::YEAR
            }
            // The second `m` is for minutes.
            Unit::Month if self.have & mask::MONTH != 0 && self.have & mask::HOUR != 0 => {
                fields.minute = value;
                mask::MINUTE
            }
            Unit::Month => {
                fields.month = value;
                mask::MONTH
            }
            Unit::Day => {
                fields.day = value;
                mask::DAY
            }
            Unit::Hour => {
                fields.hour = value;
                mask::HOUR
            }
            Unit::Minute => {
                fields.minute = value;
                mask::MINUTE
            }
            Unit::Second => {
                fields.second = value;
                if rest.is_empty() {
                    mask::SECOND
                } else {
                    fields.micros = fraction_micros(rest)?;
                    mask::ALL_SECONDS
                }
            }
            Unit::Julian => {
                if value < 0 {
                    return Err(Fault::Field);
                }
                self.set_julian(value);
                if rest.is_empty() {
                    mask::DATE
                } else {
                    let time = number::fraction(rest)? * DAY as f64;
                    self.set_time(time as i64);
                    mask::DATE | mask::TIME
                }
            }
            _ => return Err(Fault::Format),
        })
    }

    /// Reads a number after `t`, a time without separators. Returns its fields.
    pub(super) fn marked_time(&mut self, text: &str) -> Result<u32, Fault> {
        let (_, rest) = leading_i32(text).ok_or(Fault::Field)?;
        if !rest.is_empty() && !rest.starts_with('.') {
            return Err(Fault::Format);
        }
        let got = self.number_field(text, self.have | mask::DATE)?;
        if got == mask::TIME { Ok(got) } else { Err(Fault::Format) }
    }

    /// Reads a name that is an abbreviation of a zone. Returns its fields, 0 if it is none.
    pub(super) fn abbreviation(&mut self, text: &str) -> u32 {
        match abbreviations::find(text) {
            None => 0,
            Some(Meaning::Standard(offset)) => {
                self.offset = offset;
                self.zone = Zone::Offset;
                mask::ZONE
            }
            Some(Meaning::Daylight(offset)) => {
                self.offset = offset;
                self.zone = Zone::Offset;
                mask::ZONE | mask::DAYLIGHT_ZONE
            }
            Some(Meaning::Zone(name)) => {
                self.zone = Zone::Dynamic(text.to_owned(), abbreviations::zone_of(name));
                mask::ZONE
            }
        }
    }

    /// Takes the offset of a text such as `-08:30`.
    pub(super) fn signed_zone(&mut self, text: &str) -> Result<(), Fault> {
        self.offset = number::zone_offset(text)?;
        self.zone = Zone::Offset;
        Ok(())
    }

    /// Takes a zone by its name.
    pub(super) fn named_zone(&mut self, name: &str) -> Option<u32> {
        self.zone = Zone::Named(TimeZone::find(name)?);
        Some(mask::ZONE)
    }

    /// Reads the words that dates and times share. Returns their fields.
    pub(super) fn common_word(&mut self, word: Word) -> Result<u32, Fault> {
        Ok(match word {
            Word::Zulu => {
                self.set_time(0);
                self.offset = 0;
                self.zone = Zone::Offset;
                mask::TIME | mask::ZONE
            }
            Word::Daylight => {
                self.offset += 3600;
                mask::DAYLIGHT | mask::DAYLIGHT_ZONE
            }
            Word::Meridiem(afternoon) => {
                self.afternoon = Some(afternoon);
                mask::MERIDIEM
            }
            Word::Era(before_christ) => {
                self.before_christ = before_christ;
                mask::ERA
            }
            Word::Label(unit) => {
                self.label = Some(unit);
                0
            }
            _ => return Err(Fault::Format),
        })
    }

    /// Checks the date and completes its year.
    pub(super) fn validate_date(&mut self) -> Result<(), Fault> {
        let complete = self.has(mask::DATE);
        let fields = &mut self.fields;
        if self.have & mask::YEAR != 0 && !self.julian {
            if self.before_christ {
                if fields.year <= 0 {
                    return Err(Fault::Field);
                }
                fields.year = 1 - fields.year;
            } else if self.two_digits {
                if fields.year < 0 {
                    return Err(Fault::Field);
                }
                fields.year += match fields.year {
                    ..70 => 2000,
                    70..100 => 1900,
                    _ => 0,
                };
            } else if fields.year <= 0 {
                return Err(Fault::Field);
            }
        }
        if self.have & mask::DAY_OF_YEAR != 0 {
            let days = days_from_date(fields.year, 1, 1) + self.year_day - 1;
            (fields.year, fields.month, fields.day) = date_from_days(days);
        }
        if self.have & mask::MONTH != 0 && !(1..=12).contains(&fields.month) {
            return Err(Fault::MonthOrDay);
        }
        if self.have & mask::DAY != 0 && !(1..=31).contains(&fields.day) {
            return Err(Fault::MonthOrDay);
        }
        if complete && fields.day > days_in_month(fields.year, fields.month) {
            return Err(Fault::Field);
        }
        Ok(())
    }

    /// Applies `am` and `pm`.
    pub(super) fn apply_meridiem(&mut self) -> Result<(), Fault> {
        let Some(afternoon) = self.afternoon else { return Ok(()) };
        let hour = &mut self.fields.hour;
        if *hour > 12 {
            return Err(Fault::Field);
        }
        match (afternoon, *hour) {
            (false, 12) => *hour = 0,
            (true, hours) if hours != 12 => *hour += 12,
            _ => {}
        }
        Ok(())
    }
}

/// The parts of a date: numbers and words. The character that ends a part is dropped, also if it is no separator.
fn date_parts(text: &str) -> Result<Vec<&str>, Fault> {
    let mut parts = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        rest = rest.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
        let Some(first) = rest.chars().next() else { return Err(Fault::Format) };
        let same = |c: char| if first.is_ascii_digit() { c.is_ascii_digit() } else { c.is_ascii_alphabetic() };
        let (part, after) = rest.split_at(rest.find(|c| !same(c)).unwrap_or(rest.len()));
        parts.push(part);
        let mut after = after.chars();
        after.next();
        rest = after.as_str();
    }
    Ok(parts)
}

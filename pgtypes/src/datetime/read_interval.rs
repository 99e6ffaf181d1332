//! Reads intervals: PostgreSQL's verbose form, the forms of the SQL standard, and (`iso8601`) those of ISO 8601.
//!
//! The tokens are read from the last to the first, because a unit follows its number.

use super::fault::Fault;
use super::iso_interval;
use super::mask;
use super::number::{clock, fraction, leading_i32, leading_i64};
use super::parts::Parts;
use super::scan::{Kind, Token, scan};
use super::session::{IntervalStyle, Session, Uses};
use super::typmod::IntervalFields;
use super::units::{HOUR, MINUTE, SECOND};
use super::words::{Unit, unit};

/// The bytes of all tokens.
const ROOM: usize = 256;

/// Reads a text. Fields that a qualifier (`INTERVAL '1' YEAR`) names give numbers without a unit their meaning.
/// The parts are not yet an interval: see [`Parts::interval`].
pub(super) fn read(text: &str, fields: IntervalFields, session: &Session<'_>) -> (Result<Parts, Fault>, Uses) {
    let mut uses = Uses::default();
    let native = scan(text, ROOM, super::words::is_core).and_then(|tokens| {
        // A sign at the start may stand for all fields.
        let signed = tokens.first().is_some_and(|token| token.text.starts_with('-'));
        let others = tokens.iter().skip(1).any(|token| token.text.starts_with(['-', '+']));
        uses.interval_style = signed && !others && tokens.len() > 1;
        let negative = signed && !others && session.interval_style == IntervalStyle::SqlStandard;
        Reader { parts: Parts::default(), fields, negative, have: 0, unit: None, ago: false }.interval(&tokens)
    });
    let parts = match native {
        Err(Fault::Format) => iso_interval::read(text),
        other => other,
    };
    let parts = parts.map_err(|fault| if fault == Fault::Field { Fault::Interval } else { fault });
    (parts, uses)
}

struct Reader {
    parts: Parts,
    fields: IntervalFields,
    /// Whether numbers without a sign are negative
    negative: bool,
    have: u32,
    /// The unit of the next number to the left
    unit: Option<Unit>,
    ago: bool,
}

impl Reader {
    fn interval(mut self, tokens: &[Token]) -> Result<Parts, Fault> {
        for token in tokens.iter().rev() {
            let got = match token.kind {
                Kind::Time => self.time(&token.text)?,
                Kind::Signed => self.signed(&token.text)?,
                Kind::Date | Kind::Number => self.number(&token.text)?,
                Kind::Word | Kind::Special => {
                    self.word(&token.text)?;
                    0
                }
            };
            if self.have & got != 0 {
                return Err(Fault::Format);
            }
            self.have |= got;
        }
        if self.have == 0 {
            return Err(Fault::Format);
        }
        if self.ago {
            self.parts.negate()?;
        }
        Ok(self.parts)
    }

    fn word(&mut self, text: &str) -> Result<(), Fault> {
        if text == "ago" {
            self.ago = true;
            // A number needs a unit of its own before `ago`.
            self.unit = Some(Unit::Reserved);
            return Ok(());
        }
        self.unit = Some(unit(text).ok_or(Fault::Format)?);
        Ok(())
    }

    fn time(&mut self, text: &str) -> Result<u32, Fault> {
        let (hour, minute, second, micros) = clock(text, self.fields.is_minute_to_second())?;
        let rest = minute * MINUTE + second * SECOND + micros;
        let total = hour.checked_mul(HOUR).and_then(|hours| hours.checked_add(rest)).ok_or(Fault::Field)?;
        self.parts.micros = if self.negative && total > 0 { -total } else { total };
        self.unit = Some(Unit::Day);
        Ok(mask::TIME)
    }

    /// A signed time, number, or `years-months`.
    fn signed(&mut self, text: &str) -> Result<u32, Fault> {
        let (sign, unsigned) = text.split_at(1);
        if unsigned.contains(':') {
            let before = self.parts;
            if let Ok(got) = self.time(unsigned) {
                let micros = self.parts.micros;
                if sign == "-" && !(self.negative && micros < 0) {
                    self.parts.micros = micros.checked_neg().ok_or(Fault::Field)?;
                }
                return Ok(got);
            }
            self.parts = before;
        }
        self.number(text)
    }

    fn number(&mut self, text: &str) -> Result<u32, Fault> {
        let unit = match self.unit {
            Some(unit) => unit,
            None => self.fields.last(),
        };
        let (mut value, rest) = leading_i64(text).ok_or(Fault::Field)?;
        let negative = text.starts_with('-');
        let mut part = 0.0;
        let mut unit = unit;
        if let Some(months) = rest.strip_prefix('-') {
            let (months, rest) = leading_i32(months).ok_or(Fault::Field)?;
            if !(0..12).contains(&months) {
                return Err(Fault::Field);
            }
            if !rest.is_empty() {
                return Err(Fault::Format);
            }
            unit = Unit::Month;
            let months = if negative { -months } else { months };
            value = value.checked_mul(12).and_then(|years| years.checked_add(months)).ok_or(Fault::Field)?;
        } else if rest.starts_with('.') {
            part = fraction(rest)?;
            if negative {
                part = -part;
            }
        } else if !rest.is_empty() {
            return Err(Fault::Format);
        }
        if self.negative {
            value = value.checked_abs().and_then(i64::checked_neg).unwrap_or(value);
            part = -part.abs();
        }
        self.unit = Some(if unit == Unit::Hour { Unit::Day } else { unit });
        self.add(unit, value, part)
    }

    /// Adds a number of a unit. Returns the field.
    fn add(&mut self, unit: Unit, value: i64, part: f64) -> Result<u32, Fault> {
        let parts = &mut self.parts;
        Ok(match unit {
            Unit::Microsecond => {
                parts.add_micros(value, part, 1)?;
                mask::MICROSECOND
            }
            Unit::Millisecond => {
                parts.add_micros(value, part, 1000)?;
                mask::MILLISECOND
            }
            Unit::Second => {
                parts.add_micros(value, part, SECOND)?;
                if part == 0.0 { mask::SECOND } else { mask::ALL_SECONDS }
            }
            Unit::Minute => {
                parts.add_micros(value, part, MINUTE)?;
                mask::MINUTE
            }
            Unit::Hour => {
                parts.add_micros(value, part, HOUR)?;
                mask::HOUR
            }
            Unit::Day => {
                parts.add_days(value, part, 1)?;
                mask::DAY
            }
            Unit::Week => {
                parts.add_days(value, part, 7)?;
                mask::WEEK
            }
            Unit::Month => {
                parts.add_months(value, part)?;
                mask::MONTH
            }
            Unit::Year => {
                parts.add_years(value, part, 1)?;
                mask::YEAR
            }
            Unit::Decade => {
                parts.add_years(value, part, 10)?;
                mask::DECADE
            }
            Unit::Century => {
                parts.add_years(value, part, 100)?;
                mask::CENTURY
            }
            Unit::Millennium => {
                parts.add_years(value, part, 1000)?;
                mask::MILLENNIUM
            }
            _ => return Err(Fault::Format),
        })
    }
}

//! Reads dates and timestamps.

use super::calendar::Fields;
use super::decoder::{Decoder, Zone};
use super::fault::Fault;
use super::mask;
use super::number::{clock, clock_overflows, leading_i32};
use super::scan::{Kind, Token, scan};
use super::session::{Session, Uses};
use super::units::{DAY, SECOND};
use super::words::{Fixed, Unit, Word, is_core, word};

/// A date and time as a text has it.
pub(super) enum Moment {
    /// `epoch`, `infinity`, `-infinity`
    Fixed(Fixed),
    /// Local fields and the zone of the text
    Local(Fields, MomentZone),
}

/// The zone of a moment.
pub(super) enum MomentZone {
    /// None was given: the session's
    Session,
    /// Seconds east of Greenwich
    Offset(i64),
}

/// Reads a text. Says also what it took from the session, in case of an error as well; the zone of the session only
/// if a word such as `today` needs it.
pub(super) fn read(text: &str, room: usize, session: &Session<'_>) -> (Result<Moment, Fault>, Uses) {
    let mut reader = Reader { decoder: Decoder::new(session), at_mark: false };
    let result = scan(text, room, is_core).and_then(|tokens| reader.moment(&tokens));
    (result, reader.decoder.uses)
}

struct Reader<'a> {
    decoder: Decoder<'a>,
    /// Whether `t` announced a time
    at_mark: bool,
}

impl Reader<'_> {
    fn moment(&mut self, tokens: &[Token]) -> Result<Moment, Fault> {
        for (index, token) in tokens.iter().enumerate() {
            let got = match token.kind {
                Kind::Date => self.date(&token.text)?,
                Kind::Time => self.time(&token.text)?,
                Kind::Signed => {
                    self.decoder.signed_zone(&token.text)?;
                    mask::ZONE
                }
                Kind::Number => self.number(&token.text)?,
                Kind::Word | Kind::Special => match self.word(&token.text, tokens.get(index + 1))? {
                    Some(got) => got,
                    None => continue,
                },
            };
            self.decoder.add(got)?;
        }
        self.finish()
    }

    fn labelled(&self) -> bool {
        self.at_mark || self.decoder.label.is_some()
    }

    fn date(&mut self, text: &str) -> Result<u32, Fault> {
        if self.decoder.label == Some(Unit::Julian) {
            let (day, rest) = leading_i32(text).ok_or(Fault::Field)?;
            if day < 0 {
                return Err(Fault::Field);
            }
            self.decoder.label = None;
            self.decoder.set_julian(day);
            self.decoder.signed_zone(rest)?;
            return Ok(mask::DATE | mask::TIME | mask::ZONE);
        }
        if !self.labelled() && !self.decoder.has(mask::MONTH | mask::DAY) {
            return self.decoder.date(text);
        }
        if !self.labelled() && !text.starts_with(|c: char| c.is_ascii_digit()) {
            return self.decoder.named_zone(text).ok_or_else(|| Fault::Zone(text.to_owned()));
        }
        // A time without separators and its zone: `hhmmss-zz`.
        if self.decoder.label.is_some() {
            return Err(Fault::Format);
        }
        self.at_mark = false;
        if self.decoder.has(mask::TIME) {
            return Err(Fault::Format);
        }
        let (time, zone) = text.split_at(text.find('-').ok_or(Fault::Format)?);
        self.decoder.signed_zone(zone)?;
        Ok(self.decoder.number_field(time, self.decoder.have)? | mask::ZONE)
    }

    fn time(&mut self, text: &str) -> Result<u32, Fault> {
        if self.decoder.label.is_some() {
            return Err(Fault::Format);
        }
        self.at_mark = false;
        let (hour, minute, second, micros) = clock(text, false)?;
        if clock_overflows(hour, minute, second, micros) {
            return Err(Fault::Field);
        }
        let fields = &mut self.decoder.fields;
        (fields.hour, fields.minute, fields.second, fields.micros) = (hour, minute, second, micros);
        Ok(mask::TIME)
    }

    fn number(&mut self, text: &str) -> Result<u32, Fault> {
        if let Some(label) = self.decoder.label.take() {
            // A labelled number makes a special value before it void.
            self.decoder.fixed = None;
            return self.decoder.labelled(label, text);
        }
        let decoder = &mut self.decoder;
        if std::mem::take(&mut self.at_mark) {
            decoder.fixed = None;
            return decoder.marked_time(text);
        }
        let point = text.find('.');
        if point.is_some() && decoder.have & mask::DATE == 0 {
            return decoder.date(text);
        }
        let missing = decoder.have & mask::DATE == 0 || decoder.have & mask::TIME == 0;
        match point {
            Some(digits) if digits > 2 => decoder.number_field(text, decoder.have),
            _ if text.len() >= 6 && missing => decoder.number_field(text, decoder.have),
            _ => decoder.number(text, decoder.text_month, decoder.have),
        }
    }

    /// `None` for a word without meaning.
    fn word(&mut self, text: &str, next: Option<&Token>) -> Result<Option<u32>, Fault> {
        let got = self.decoder.abbreviation(text);
        if got != 0 {
            return Ok(Some(got));
        }
        let Some(word) = word(text) else {
            return self.decoder.named_zone(text).map(Some).ok_or(Fault::Format);
        };
        let decoder = &mut self.decoder;
        Ok(Some(match word {
            Word::Noise => return Ok(None),
            Word::Now => {
                decoder.uses.now = true;
                decoder.fixed = None;
                let local = decoder.session.local_now();
                decoder.fields = Fields::of(local);
                decoder.offset = decoder.session.zone.offset_at(decoder.session.now.0);
                decoder.zone = Zone::Offset;
                mask::DATE | mask::TIME | mask::ZONE
            }
            Word::Day(days) => {
                decoder.uses.now = true;
                decoder.uses.zone = true;
                decoder.fixed = None;
                let today = decoder.session.local_now().div_euclid(DAY);
                decoder.set_day(today + days);
                mask::DATE
            }
            Word::Fixed(fixed) => {
                decoder.fixed = Some(fixed);
                mask::FIXED
            }
            Word::Zulu => {
                decoder.fixed = None;
                decoder.common_word(word)?
            }
            Word::Month(month) => {
                let mut got = mask::MONTH;
                let first = decoder.fields.month;
                let numeric = decoder.has(mask::MONTH) && !decoder.text_month && !decoder.has(mask::DAY);
                if numeric && (1..=31).contains(&first) {
                    // The number before was the day.
                    decoder.fields.day = first;
                    got = mask::DAY;
                }
                decoder.text_month = true;
                decoder.fields.month = month;
                got
            }
            Word::Weekday(_) => mask::WEEKDAY,
            Word::TimeMark => {
                let follows = next.is_some_and(|next| matches!(next.kind, Kind::Number | Kind::Time | Kind::Date));
                if !decoder.has(mask::DATE) || !follows {
                    return Err(Fault::Format);
                }
                self.at_mark = true;
                decoder.label = None;
                0
            }
            other => decoder.common_word(other)?,
        }))
    }

    fn finish(&mut self) -> Result<Moment, Fault> {
        let decoder = &mut self.decoder;
        decoder.validate_date()?;
        decoder.apply_meridiem()?;
        if let Some(fixed) = decoder.fixed {
            return Ok(Moment::Fixed(fixed));
        }
        if !decoder.has(mask::DATE) {
            return Err(Fault::Format);
        }
        let late_daylight = decoder.have & mask::DAYLIGHT != 0;
        let zone = match &decoder.zone {
            Zone::Offset => MomentZone::Offset(decoder.offset),
            Zone::Session if decoder.have & mask::ZONE != 0 => MomentZone::Offset(decoder.offset),
            _ if late_daylight => return Err(Fault::Format),
            Zone::Session => MomentZone::Session,
            Zone::Named(zone) => MomentZone::Offset(zone.offset_of_fields(&decoder.fields)),
            Zone::Dynamic(name, zone) => MomentZone::Offset(zone.offset_of_abbreviation(name, &decoder.fields)),
        };
        Ok(Moment::Local(decoder.fields, zone))
    }
}

impl MomentZone {
    /// The offset in seconds east of Greenwich, for a local time.
    pub(super) fn offset(&self, local: i64, session: &Session<'_>) -> i64 {
        match self {
            MomentZone::Session => session.zone.offset_of_local(local),
            MomentZone::Offset(offset) => *offset,
        }
    }

    /// The instant of a local time.
    pub(super) fn instant(&self, local: i64, session: &Session<'_>) -> Option<i64> {
        local.checked_sub(self.offset(local, session) * SECOND)
    }
}

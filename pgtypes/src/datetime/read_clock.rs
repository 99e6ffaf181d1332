//! Reads times of the day, with and without a zone.

use super::calendar::Fields;
use super::decoder::{Decoder, Zone};
use super::fault::Fault;
use super::mask;
use super::number::{clock, clock_overflows};
use super::scan::{Kind, Token, scan};
use super::session::{Session, Uses};
use super::units::DAY;
use super::words::{Unit, Word, is_core, word};

/// A time of the day, with the offset of its zone in seconds east of Greenwich.
pub(super) struct Clock {
    /// Microseconds from midnight
    pub(super) time: i64,
    pub(super) offset: i64,
}

/// Reads a text. Says also what the time took from the session, and what time and offset took.
pub(super) fn read(text: &str, room: usize, session: &Session<'_>) -> (Result<Clock, Fault>, [Uses; 2]) {
    let mut reader = Reader {
        decoder: Decoder::new(session),
        at_mark: false,
        last: Kind::Word,
        date_follows: false,
        offset_uses: Uses::default(),
    };
    let result = scan(text, room, is_core).and_then(|tokens| reader.clock(&tokens));
    let (time, offset) = (reader.decoder.uses, reader.offset_uses);
    (result, [time, Uses { now: time.now || offset.now, zone: time.zone || offset.zone, ..time }])
}

struct Reader<'a> {
    decoder: Decoder<'a>,
    /// Whether `t` announced a time
    at_mark: bool,
    /// The kind of the last token
    last: Kind,
    /// Whether the second token is a time
    date_follows: bool,
    /// What the offset took from the session
    offset_uses: Uses,
}

impl Reader<'_> {
    fn clock(&mut self, tokens: &[Token]) -> Result<Clock, Fault> {
        self.last = tokens.last().map_or(Kind::Word, |token| token.kind);
        self.date_follows = tokens.get(1).is_some_and(|token| token.kind == Kind::Time);
        for (index, token) in tokens.iter().enumerate() {
            let first = index == 0 && tokens.len() >= 2;
            let got = match token.kind {
                Kind::Date => self.date(&token.text, first)?,
                Kind::Time => self.time(&token.text)?,
                Kind::Signed => {
                    self.decoder.signed_zone(&token.text)?;
                    mask::ZONE
                }
                Kind::Number => self.number(&token.text, first)?,
                Kind::Word | Kind::Special => match self.word(&token.text, tokens.get(index + 1))? {
                    Some(got) => got,
                    None => continue,
                },
            };
            self.decoder.add(got)?;
        }
        self.finish()
    }

    fn date(&mut self, text: &str, first: bool) -> Result<u32, Fault> {
        let decoder = &mut self.decoder;
        if first && (self.last == Kind::Date || self.date_follows) {
            return decoder.date(text);
        }
        if !text.starts_with(|c: char| c.is_ascii_digit()) {
            return decoder.named_zone(text).ok_or_else(|| Fault::Zone(text.to_owned()));
        }
        if decoder.has(mask::TIME) {
            return Err(Fault::Format);
        }
        let (time, zone) = text.split_at(text.find('-').ok_or(Fault::Format)?);
        decoder.signed_zone(zone)?;
        Ok(decoder.number_field(time, decoder.have | mask::DATE)? | mask::ZONE)
    }

    fn time(&mut self, text: &str) -> Result<u32, Fault> {
        let (hour, minute, second, micros) = clock(text, false)?;
        if i32::try_from(hour).is_err() {
            return Err(Fault::Field);
        }
        let fields = &mut self.decoder.fields;
        (fields.hour, fields.minute, fields.second, fields.micros) = (hour, minute, second, micros);
        Ok(mask::TIME)
    }

    fn number(&mut self, text: &str, first: bool) -> Result<u32, Fault> {
        let decoder = &mut self.decoder;
        if let Some(label) = decoder.label.take() {
            return decoder.labelled(label, text);
        }
        if std::mem::take(&mut self.at_mark) {
            return decoder.marked_time(text);
        }
        match text.find('.') {
            Some(_) if first && self.last == Kind::Date => decoder.date(text),
            Some(digits) if digits > 2 => decoder.number_field(text, decoder.have | mask::DATE),
            Some(_) => Err(Fault::Format),
            None if text.len() > 4 => decoder.number_field(text, decoder.have | mask::DATE),
            None => decoder.number(text, false, decoder.have | mask::DATE),
        }
    }

    /// `None` for a word without meaning.
    fn word(&mut self, text: &str, next: Option<&Token>) -> Result<Option<u32>, Fault> {
        let decoder = &mut self.decoder;
        let got = decoder.abbreviation(text);
        if got != 0 {
            return Ok(Some(got));
        }
        let Some(word) = word(text) else {
            return decoder.named_zone(text).map(Some).ok_or(Fault::Format);
        };
        Ok(Some(match word {
            Word::Noise => return Ok(None),
            Word::Now => {
                decoder.uses.now = true;
                decoder.uses.zone = true;
                decoder.set_time(decoder.session.local_now().rem_euclid(DAY));
                mask::TIME
            }
            Word::TimeMark => {
                let follows = next.is_some_and(|next| matches!(next.kind, Kind::Number | Kind::Time | Kind::Date));
                if !follows {
                    return Err(Fault::Format);
                }
                self.at_mark = true;
                decoder.label = None;
                0
            }
            Word::Label(Unit::Epoch) => return Err(Fault::Format),
            other => decoder.common_word(other)?,
        }))
    }

    fn finish(&mut self) -> Result<Clock, Fault> {
        let decoder = &mut self.decoder;
        decoder.validate_date()?;
        decoder.apply_meridiem()?;
        let fields = decoder.fields;
        if clock_overflows(fields.hour, fields.minute, fields.second, fields.micros) {
            return Err(Fault::Field);
        }
        if !decoder.has(mask::TIME) {
            return Err(Fault::Format);
        }
        let late_daylight = decoder.have & mask::DAYLIGHT != 0;
        let time = fields.time();
        let offset = match std::mem::take(&mut decoder.zone) {
            Zone::Offset => decoder.offset,
            Zone::Session if decoder.have & mask::ZONE != 0 => decoder.offset,
            _ if late_daylight => return Err(Fault::Format),
            Zone::Session => {
                self.offset_uses.zone = true;
                let local = self.local(fields)?;
                self.decoder.session.zone.offset_of_fields(&local)
            }
            Zone::Named(zone) => match zone.fixed_offset() {
                Some(offset) => offset,
                None if decoder.has(mask::DATE) => zone.offset_of_fields(&fields),
                None => return Err(Fault::Format),
            },
            Zone::Dynamic(name, zone) => {
                let local = self.local(fields)?;
                zone.offset_of_abbreviation(&name, &local)
            }
        };
        Ok(Clock { time, offset })
    }

    /// The local time on the date of the text, else on the day of the session.
    fn local(&mut self, fields: Fields) -> Result<Fields, Fault> {
        let decoder = &mut self.decoder;
        if decoder.has(mask::DATE) {
            return Ok(fields);
        }
        if decoder.have & mask::DATE != 0 {
            return Err(Fault::Format);
        }
        // Today is a day of the session's zone.
        self.offset_uses.now = true;
        self.offset_uses.zone = true;
        let today = decoder.session.local_now().div_euclid(DAY);
        Ok(Fields::of(today.saturating_mul(DAY).saturating_add(fields.time())))
    }
}

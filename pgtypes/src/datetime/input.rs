//! Text input of the six types, with what a literal took from the session.

use super::fault::{self, Fault, overflow};
use super::read_clock;
use super::read_interval;
use super::read_moment::{self, Moment, MomentZone};
use super::session::{Session, Uses};
use super::typmod::IntervalTypmod;
use super::units::SECOND;
use super::value::{Date, Interval, Time, TimeTz, Timestamp, TimestampTz, finite};
use super::words::Fixed;
use super::zone::EPOCH_SECONDS;
use crate::error::ValueError;

/// A literal that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading<T> {
    /// The value, or why the text has none
    pub result: Result<T, ValueError>,
    /// What the value, or the error, depends on. A result that depends on nothing is the same in each session.
    pub uses: Uses,
}

/// Bytes of the tokens of dates and times of the day.
const ROOM: usize = 129;
/// Bytes of the tokens of timestamps.
const TIMESTAMP_ROOM: usize = 153;
const EPOCH: i64 = -EPOCH_SECONDS * SECOND;

impl Date {
    /// Parses a date. 22007 for other text, 22008 for a field or date out of range, 22009 and 22023 for a zone.
    pub fn parse(text: &str, session: &Session<'_>) -> Result<Date, ValueError> {
        Date::read(text, session).result
    }

    /// As [`Date::parse`], with what the value depends on.
    pub fn read(text: &str, session: &Session<'_>) -> Reading<Date> {
        let (moment, mut uses) = read_moment::read(text, ROOM, session);
        uses.zone |= uses.now;
        let result = match moment {
            Err(fault) => Err(fault.error("date", text)),
            Ok(Moment::Fixed(Fixed::Late)) => Ok(Date::INFINITY),
            Ok(Moment::Fixed(Fixed::Early)) => Ok(Date::NEG_INFINITY),
            Ok(Moment::Fixed(Fixed::Epoch)) => Ok(Date(-10_957)),
            Ok(Moment::Local(fields, _)) => {
                Date::from_days(fields.days()).map_err(|_| overflow(format!("date out of range: \"{text}\"")))
            }
        };
        Reading { result, uses }
    }
}

impl Timestamp {
    /// Parses a timestamp; a zone in the text is checked and ignored. 22007 for other text, 22008 for a field or value
    /// out of range, 22009 and 22023 for a zone.
    pub fn parse(text: &str, session: &Session<'_>) -> Result<Timestamp, ValueError> {
        Timestamp::read(text, session).result
    }

    /// As [`Timestamp::parse`], with what the value depends on.
    pub fn read(text: &str, session: &Session<'_>) -> Reading<Timestamp> {
        let (moment, mut uses) = read_moment::read(text, TIMESTAMP_ROOM, session);
        uses.zone |= uses.now;
        let result = match moment {
            Err(fault) => Err(fault.error("timestamp", text)),
            Ok(Moment::Fixed(Fixed::Late)) => Ok(Timestamp::INFINITY),
            Ok(Moment::Fixed(Fixed::Early)) => Ok(Timestamp::NEG_INFINITY),
            Ok(Moment::Fixed(Fixed::Epoch)) => Ok(Timestamp(EPOCH)),
            Ok(Moment::Local(fields, _)) => finite(fields.local())
                .map(Timestamp)
                .ok_or_else(|| overflow(format!("timestamp out of range: \"{text}\""))),
        };
        Reading { result, uses }
    }
}

impl TimestampTz {
    /// Parses a timestamp, in the zone of the text or else of the session. 22007 for other text, 22008 for a field or
    /// value out of range, 22009 and 22023 for a zone.
    pub fn parse(text: &str, session: &Session<'_>) -> Result<TimestampTz, ValueError> {
        TimestampTz::read(text, session).result
    }

    /// As [`TimestampTz::parse`], with what the value depends on.
    pub fn read(text: &str, session: &Session<'_>) -> Reading<TimestampTz> {
        let (moment, mut uses) = read_moment::read(text, TIMESTAMP_ROOM, session);
        let result = match moment {
            Err(fault) => Err(fault.error("timestamp with time zone", text)),
            Ok(Moment::Fixed(Fixed::Late)) => Ok(TimestampTz::INFINITY),
            Ok(Moment::Fixed(Fixed::Early)) => Ok(TimestampTz::NEG_INFINITY),
            Ok(Moment::Fixed(Fixed::Epoch)) => Ok(TimestampTz(EPOCH)),
            Ok(Moment::Local(fields, zone)) => {
                uses.zone |= matches!(zone, MomentZone::Session);
                finite(fields.local().and_then(|local| zone.instant(local, session)))
                    .map(TimestampTz)
                    .ok_or_else(|| overflow(format!("timestamp out of range: \"{text}\"")))
            }
        };
        Reading { result, uses }
    }
}

impl Time {
    /// Parses a time of the day; a zone in the text is checked and ignored. 22007 for other text, 22008 for a field
    /// out of range, 22009 and 22023 for a zone.
    pub fn parse(text: &str, session: &Session<'_>) -> Result<Time, ValueError> {
        Time::read(text, session).result
    }

    /// As [`Time::parse`], with what the value depends on.
    pub fn read(text: &str, session: &Session<'_>) -> Reading<Time> {
        let (clock, [uses, _]) = read_clock::read(text, ROOM, session);
        Reading { result: clock.map(|clock| Time(clock.time)).map_err(|fault| fault.error("time", text)), uses }
    }
}

impl TimeTz {
    /// Parses a time of the day and its zone, by default the session's at the date of the text or of today. 22007 for
    /// other text, 22008 for a field out of range, 22009 and 22023 for a zone.
    pub fn parse(text: &str, session: &Session<'_>) -> Result<TimeTz, ValueError> {
        TimeTz::read(text, session).result
    }

    /// As [`TimeTz::parse`], with what the value depends on.
    pub fn read(text: &str, session: &Session<'_>) -> Reading<TimeTz> {
        let (clock, [_, uses]) = read_clock::read(text, ROOM, session);
        let result = clock.map_err(|fault| fault.error("time with time zone", text)).map(|clock| {
            // Offsets of zones are below a day.
            TimeTz { micros: clock.time, offset: i32::try_from(clock.offset).unwrap_or(0) }
        });
        Reading { result, uses }
    }
}

impl Interval {
    /// Parses an interval of a type with this modifier. 22007 for other text, 22008 and 22015 for fields and values
    /// out of range.
    pub fn parse(text: &str, typmod: IntervalTypmod, session: &Session<'_>) -> Result<Interval, ValueError> {
        Interval::read(text, typmod, session).result
    }

    /// As [`Interval::parse`], with what the value depends on.
    pub fn read(text: &str, typmod: IntervalTypmod, session: &Session<'_>) -> Reading<Interval> {
        let (parts, uses) = read_interval::read(text, typmod.fields, session);
        let result = parts
            .map_err(|fault: Fault| fault.error("interval", text))
            .and_then(|parts| parts.interval().ok_or_else(fault::interval_range))
            .map(|interval| typmod.apply(interval));
        Reading { result, uses }
    }
}

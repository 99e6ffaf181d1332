//! Type modifiers: the precision of times (`time(3)`), and the fields and precision of intervals
//! (`interval day to second(3)`), as `pg_attribute.atttypmod` has them.

use super::fault::parameter;
use super::units::{DAY, HOUR, MINUTE, round_to};
use super::value::{Interval, Time, TimeTz, Timestamp, TimestampTz, is_finite};
use super::words::Unit;
use crate::error::ValueError;

/// The greatest precision: microseconds.
pub const MAX_PRECISION: i32 = 6;

const YEAR: u16 = 1 << 2;
const MONTH: u16 = 1 << 1;
const DAY_FIELD: u16 = 1 << 3;
const HOUR_FIELD: u16 = 1 << 10;
const MINUTE_FIELD: u16 = 1 << 11;
const SECOND_FIELD: u16 = 1 << 12;

/// The fields that an interval has: a range of its units, or all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntervalFields(u16);

/// The modifier of the type `interval`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntervalTypmod {
    /// The fields
    pub fields: IntervalFields,
    /// Digits after the second, 0 to 6
    pub precision: Option<u8>,
}

impl IntervalFields {
    /// No qualifier.
    pub const ALL: IntervalFields = IntervalFields(0x7fff);
    /// `year`
    pub const YEAR: IntervalFields = IntervalFields(YEAR);
    /// `month`
    pub const MONTH: IntervalFields = IntervalFields(MONTH);
    /// `day`
    pub const DAY: IntervalFields = IntervalFields(DAY_FIELD);
    /// `hour`
    pub const HOUR: IntervalFields = IntervalFields(HOUR_FIELD);
    /// `minute`
    pub const MINUTE: IntervalFields = IntervalFields(MINUTE_FIELD);
    /// `second`
    pub const SECOND: IntervalFields = IntervalFields(SECOND_FIELD);
    /// `year to month`
    pub const YEAR_TO_MONTH: IntervalFields = IntervalFields(YEAR | MONTH);
    /// `day to hour`
    pub const DAY_TO_HOUR: IntervalFields = IntervalFields(DAY_FIELD | HOUR_FIELD);
    /// `day to minute`
    pub const DAY_TO_MINUTE: IntervalFields = IntervalFields(DAY_FIELD | HOUR_FIELD | MINUTE_FIELD);
    /// `day to second`
    pub const DAY_TO_SECOND: IntervalFields = IntervalFields(DAY_FIELD | HOUR_FIELD | MINUTE_FIELD | SECOND_FIELD);
    /// `hour to minute`
    pub const HOUR_TO_MINUTE: IntervalFields = IntervalFields(HOUR_FIELD | MINUTE_FIELD);
    /// `hour to second`
    pub const HOUR_TO_SECOND: IntervalFields = IntervalFields(HOUR_FIELD | MINUTE_FIELD | SECOND_FIELD);
    /// `minute to second`
    pub const MINUTE_TO_SECOND: IntervalFields = IntervalFields(MINUTE_FIELD | SECOND_FIELD);

    /// All qualifiers and their spelling.
    const NAMES: [(IntervalFields, &'static str); 13] = [
        (IntervalFields::YEAR, "year"),
        (IntervalFields::MONTH, "month"),
        (IntervalFields::DAY, "day"),
        (IntervalFields::HOUR, "hour"),
        (IntervalFields::MINUTE, "minute"),
        (IntervalFields::SECOND, "second"),
        (IntervalFields::YEAR_TO_MONTH, "year to month"),
        (IntervalFields::DAY_TO_HOUR, "day to hour"),
        (IntervalFields::DAY_TO_MINUTE, "day to minute"),
        (IntervalFields::DAY_TO_SECOND, "day to second"),
        (IntervalFields::HOUR_TO_MINUTE, "hour to minute"),
        (IntervalFields::HOUR_TO_SECOND, "hour to second"),
        (IntervalFields::MINUTE_TO_SECOND, "minute to second"),
    ];

    /// The fields of a qualifier such as `day to second`, with single blanks.
    pub fn named(text: &str) -> Option<IntervalFields> {
        IntervalFields::NAMES.iter().find(|(_, name)| name.eq_ignore_ascii_case(text)).map(|(fields, _)| *fields)
    }

    /// The qualifier, `None` for all fields.
    pub fn name(self) -> Option<&'static str> {
        IntervalFields::NAMES.iter().find(|(fields, _)| *fields == self).map(|(_, name)| *name)
    }

    pub(super) fn is_minute_to_second(self) -> bool {
        self == IntervalFields::MINUTE_TO_SECOND
    }

    /// The unit of a number without one.
    pub(super) fn last(self) -> Unit {
        let IntervalFields(bits) = self;
        if self == IntervalFields::ALL || bits & SECOND_FIELD != 0 {
            Unit::Second
        } else if bits & MINUTE_FIELD != 0 {
            Unit::Minute
        } else if bits & HOUR_FIELD != 0 {
            Unit::Hour
        } else if bits & DAY_FIELD != 0 {
            Unit::Day
        } else if bits & MONTH != 0 {
            Unit::Month
        } else {
            Unit::Year
        }
    }
}

impl IntervalTypmod {
    /// The type without a modifier.
    pub const NONE: IntervalTypmod = IntervalTypmod { fields: IntervalFields::ALL, precision: None };

    /// A modifier of PostgreSQL's catalogs, -1 for none. `None` if no type has it.
    pub fn decode(typmod: i32) -> Option<IntervalTypmod> {
        if typmod < 0 {
            return Some(IntervalTypmod::NONE);
        }
        let fields = IntervalFields(u16::try_from(typmod >> 16 & 0x7fff).ok()?);
        let precision = match typmod & 0xffff {
            0xffff => None,
            digits => Some(u8::try_from(digits).ok().filter(|digits| *digits <= 6)?),
        };
        (fields == IntervalFields::ALL || fields.name().is_some()).then_some(IntervalTypmod { fields, precision })
    }

    /// The modifier as PostgreSQL's catalogs have it.
    pub fn encode(self) -> i32 {
        if self == IntervalTypmod::NONE {
            return -1;
        }
        i32::from(self.fields.0) << 16 | self.precision.map_or(0xffff, i32::from)
    }

    /// Cuts an interval to the fields and rounds it to the precision.
    pub fn apply(self, interval: Interval) -> Interval {
        let Interval { months, days, micros } = interval;
        let cut = match self.fields {
            IntervalFields::ALL => interval,
            IntervalFields::YEAR => Interval::new(months / 12 * 12, 0, 0),
            IntervalFields::MONTH | IntervalFields::YEAR_TO_MONTH => Interval::new(months, 0, 0),
            IntervalFields::DAY => Interval::new(months, days, 0),
            fields => {
                let unit = match fields.last() {
                    Unit::Hour => HOUR,
                    Unit::Minute => MINUTE,
                    _ => 1,
                };
                Interval::new(months, days, micros / unit * unit)
            }
        };
        match self.precision {
            Some(digits) => Interval { micros: round_to(cut.micros, u32::from(digits)), ..cut },
            None => cut,
        }
    }
}

/// A type with a precision, for [`check_precision`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrecisionOf {
    /// `time` and `time with time zone`
    Time {
        /// With a zone
        zoned: bool,
    },
    /// `timestamp` and `timestamp with time zone`
    Timestamp {
        /// With a zone
        zoned: bool,
    },
    /// `interval`
    Interval,
}

/// A precision as a statement gives it: 22023 if it is negative. A precision over 6 is 6, with the text of the warning
/// (22023) that PostgreSQL sends.
pub fn check_precision(of: PrecisionOf, digits: i32) -> Result<(u8, Option<String>), ValueError> {
    let name = match of {
        PrecisionOf::Time { zoned: false } => format!("TIME({digits})"),
        PrecisionOf::Time { zoned: true } => format!("TIME({digits}) WITH TIME ZONE"),
        PrecisionOf::Timestamp { zoned: false } => format!("TIMESTAMP({digits})"),
        PrecisionOf::Timestamp { zoned: true } => format!("TIMESTAMP({digits}) WITH TIME ZONE"),
        PrecisionOf::Interval => format!("INTERVAL({digits})"),
    };
    match u8::try_from(digits) {
        Ok(digits) if digits <= 6 => Ok((digits, None)),
        _ if digits < 0 => Err(parameter(format!("{name} precision must not be negative"))),
        _ => Ok((6, Some(format!("{name} precision reduced to maximum allowed, {MAX_PRECISION}")))),
    }
}

impl Time {
    /// Rounds to a precision. The result may be 24:00:00.
    pub fn with_precision(self, digits: u8) -> Time {
        Time(round_to(self.0, u32::from(digits)).min(DAY))
    }
}

impl TimeTz {
    /// Rounds to a precision. The result may be 24:00:00.
    pub fn with_precision(self, digits: u8) -> TimeTz {
        TimeTz { micros: Time(self.micros).with_precision(digits).0, ..self }
    }
}

impl Timestamp {
    /// Rounds to a precision, halves away from 2000-01-01.
    pub fn with_precision(self, digits: u8) -> Timestamp {
        Timestamp(round_timestamp(self.0, digits))
    }
}

impl TimestampTz {
    /// Rounds to a precision, halves away from 2000-01-01.
    pub fn with_precision(self, digits: u8) -> TimestampTz {
        TimestampTz(round_timestamp(self.0, digits))
    }
}

/// Rounds a finite count of microseconds.
pub(super) fn round_timestamp(micros: i64, digits: u8) -> i64 {
    if is_finite(micros) { round_to(micros, u32::from(digits)) } else { micros }
}

//! Errors of dates and times, in PostgreSQL's words.

use crate::error::ValueError;
use crate::sqlstate::SqlState;

/// Why a text is no date or time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// Not the syntax
    Format,
    /// A field out of range
    Field,
    /// A month or day out of range, perhaps because of the order of fields
    MonthOrDay,
    /// A field of an interval out of range
    Interval,
    /// An offset of a zone out of range
    Offset,
    /// The name of no zone
    Zone(String),
}

impl Fault {
    /// The error for a text of a type.
    pub(super) fn error(self, ty: &str, text: &str) -> ValueError {
        match self {
            Fault::Format => ValueError::new(
                SqlState::INVALID_DATETIME_FORMAT,
                format!("invalid input syntax for type {ty}: \"{text}\""),
            ),
            Fault::Field => overflow(format!("date/time field value out of range: \"{text}\"")),
            Fault::MonthOrDay => overflow(format!("date/time field value out of range: \"{text}\""))
                .with_hint("Perhaps you need a different \"datestyle\" setting."),
            Fault::Interval => ValueError::new(
                SqlState::INTERVAL_FIELD_OVERFLOW,
                format!("interval field value out of range: \"{text}\""),
            ),
            Fault::Offset => ValueError::new(
                SqlState::INVALID_TIME_ZONE_DISPLACEMENT,
                format!("time zone displacement out of range: \"{text}\""),
            ),
            Fault::Zone(name) => unknown_zone(&name),
        }
    }
}

/// 22008
pub(super) fn overflow(message: String) -> ValueError {
    ValueError::new(SqlState::DATETIME_FIELD_OVERFLOW, message)
}

/// 22023
pub(super) fn parameter(message: impl Into<std::borrow::Cow<'static, str>>) -> ValueError {
    ValueError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

/// 22023 for a zone that nobody knows.
pub(super) fn unknown_zone(name: &str) -> ValueError {
    parameter(format!("time zone \"{name}\" not recognized"))
}

/// 22008 `date out of range`
pub(super) fn date_range() -> ValueError {
    ValueError::new(SqlState::DATETIME_FIELD_OVERFLOW, "date out of range")
}

/// 22008 `timestamp out of range`
pub(super) fn timestamp_range() -> ValueError {
    ValueError::new(SqlState::DATETIME_FIELD_OVERFLOW, "timestamp out of range")
}

/// 22008 `interval out of range`
pub(super) fn interval_range() -> ValueError {
    ValueError::new(SqlState::DATETIME_FIELD_OVERFLOW, "interval out of range")
}

/// 22008 for a date that has no timestamp.
pub(super) fn date_without_timestamp() -> ValueError {
    ValueError::new(SqlState::DATETIME_FIELD_OVERFLOW, "date out of range for timestamp")
}

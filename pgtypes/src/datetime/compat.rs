//! Timestamps with a zone as bare microseconds, for [`crate::timestamp`].

use super::output::format_timestamp;
use super::session::{Now, Session};
use super::typmod::round_timestamp;
use super::value::{TimestampTz, finite, is_finite};
use super::zone::TimeZone;
use crate::error::ValueError;
use crate::letters::is_space;
use crate::sqlstate::SqlState;

/// `infinity`
pub const INFINITY: i64 = i64::MAX;
/// `-infinity`
pub const NEG_INFINITY: i64 = i64::MIN;

/// Whether a count of microseconds is a value of the type.
pub fn in_range(micros: i64) -> bool {
    !is_finite(micros) || finite(Some(micros)).is_some()
}

/// Rounds a value to this many digits after the seconds, halves away from the epoch of 2000.
pub fn round(micros: i64, digits: u8) -> i64 {
    if finite(Some(micros)).is_some() { round_timestamp(micros, digits) } else { micros }
}

/// Formats a value in a zone and its style, as `2024-03-01 12:00:00.5+01`.
pub fn format(micros: i64, zone: &TimeZone) -> String {
    let style = zone.style();
    format_timestamp(micros, Some(zone), style.format, style.day_first)
}

/// Parses a timestamp in the zone of the text, else of the session. The callers fold what does not depend on the zone
/// and is none of the words `now`, `today`, `tomorrow` and `yesterday`. So a text that depends on DateStyle, or has one
/// of these words beside others, is 22007 here: [`TimestampTz::read`] takes them.
pub fn parse(text: &str, zone: &TimeZone, now: Now) -> Result<i64, ValueError> {
    let reading = TimestampTz::read(text, &Session::new(zone, now));
    let body = text.trim_matches(is_space).to_ascii_lowercase();
    let word = matches!(body.as_str(), "now" | "today" | "tomorrow" | "yesterday");
    if reading.uses.order || reading.uses.now && !word {
        let message = format!("invalid input syntax for type timestamp with time zone: \"{text}\"");
        return Err(ValueError::new(SqlState::INVALID_DATETIME_FORMAT, message));
    }
    reading.result.map(|TimestampTz(micros)| micros)
}

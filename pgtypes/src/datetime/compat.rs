//! Reading of timestamps with a zone as bare microseconds, for [`crate::timestamp`].

use super::session::{Now, Session};
use super::value::TimestampTz;
use super::zone::TimeZone;
use crate::error::ValueError;
use crate::letters::is_space;
use crate::sqlstate::SqlState;

/// Parses a timestamp in the zone of the text, else of the session. A text that depends on DateStyle, or has one of the
/// words `now`, `today`, `tomorrow` and `yesterday` beside others, is 22007 here: [`TimestampTz::read`] takes them.
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

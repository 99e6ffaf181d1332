//! Lengths of texts.

use crate::datum::Datum;
use crate::error::ValueError;
use crate::sql_type::SqlType;
use crate::sqlstate::SqlState;

/// Limit of a `name`, in bytes.
pub const MAX_NAME: usize = 63;

/// The first characters of a text that have at most `limit` bytes.
pub fn truncated(text: &str, limit: usize) -> &str {
    let mut end = limit.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

/// Applies the limit of `varchar(n)`. Surplus blanks are always truncated, other characters only by an explicit cast.
pub fn limit_varchar(text: Box<str>, ty: SqlType, is_explicit: bool) -> Result<Datum, ValueError> {
    let Some(limit) = ty.length() else { return Ok(Datum::Text(text)) };
    match surplus(&text, limit) {
        None => Ok(Datum::Text(text)),
        Some(cut) => shorten(&text, cut, ty, is_explicit).map(|text| Datum::Text(text.into())),
    }
}

/// Applies the length of `char(n)`: truncates as [`limit_varchar`], and pads with blanks.
pub fn pad_char(text: Box<str>, ty: SqlType, is_explicit: bool) -> Result<Datum, ValueError> {
    let Some(length) = ty.length() else { return Ok(Datum::Padded(text)) };
    if let Some(cut) = surplus(&text, length) {
        return shorten(&text, cut, ty, is_explicit).map(|text| Datum::Padded(text.into()));
    }
    let missing = length - text.chars().count();
    if missing == 0 {
        return Ok(Datum::Padded(text));
    }
    let mut padded = text.into_string();
    padded.extend(std::iter::repeat_n(' ', missing));
    Ok(Datum::Padded(padded.into_boxed_str()))
}

/// Where a text has more than `limit` characters.
fn surplus(text: &str, limit: usize) -> Option<usize> {
    // A text has at least as many bytes as characters.
    if text.len() <= limit {
        return None;
    }
    text.char_indices().nth(limit).map(|(at, _)| at)
}

fn shorten(text: &str, cut: usize, ty: SqlType, is_explicit: bool) -> Result<&str, ValueError> {
    let (kept, dropped) = text.split_at(cut);
    if is_explicit || dropped.bytes().all(|b| b == b' ') {
        return Ok(kept);
    }
    let name = if ty.oid == SqlType::BPCHAR.oid { "character" } else { "character varying" };
    let message = format!("value too long for type {name}({})", ty.length().unwrap_or_default());
    Err(ValueError::new(SqlState::STRING_DATA_RIGHT_TRUNCATION, message))
}

//! `text`, `varchar`, `char(n)`, `name`, `"char"`: their forms and lengths.

use bytes::BytesMut;

use crate::datum::{Datum, DatumRef};
use crate::error::ValueError;

use crate::row::{IoEnv, TypeIo, TypeRow};
use crate::sql_type::SqlType;
use crate::sqlstate::SqlState;
use crate::utf8::utf8;

/// Limit of a `name`, in bytes.
pub const MAX_NAME: usize = 63;

pub(crate) const IO: TypeIo = TypeIo {
    input: |text, _, _| Ok(Datum::Text(text.into())),
    output: write,
    receive: |bytes, _, _| Ok(Datum::Text(utf8(bytes)?.into())),
    send: write,
};

pub(crate) const PADDED_IO: TypeIo = TypeIo {
    input: |text, _, _| Ok(Datum::Padded(text.into())),
    output: write,
    receive: |bytes, _, _| Ok(Datum::Padded(utf8(bytes)?.into())),
    send: write,
};

/// Longer names are truncated.
pub(crate) const NAME_IO: TypeIo = TypeIo {
    input: |text, _, _| Ok(Datum::Text(truncated(text, MAX_NAME).into())),
    output: write,
    receive: |bytes, _, _| {
        let text = utf8(bytes)?;
        if text.len() > MAX_NAME {
            let error = ValueError::new(SqlState::NAME_TOO_LONG, "identifier too long");
            return Err(error.with_detail("Identifier must be less than 64 characters."));
        }
        Ok(Datum::Text(text.into()))
    },
    send: write,
};

/// A single byte in PostgreSQL, a single character here. Of a longer text the first one counts, also in binary form:
/// clients declare parameters so and send whole texts.
pub(crate) const CHAR_IO: TypeIo = TypeIo {
    input: |text, _, _| Ok(first_char(text)),
    output: write,
    receive: |bytes, _, _| utf8(bytes).map(first_char),
    send: write,
};

fn first_char(text: &str) -> Datum {
    Datum::Text(text.chars().next().map_or_else(String::new, String::from).into_boxed_str())
}

fn write(value: &DatumRef<'_>, _: SqlType, _: &IoEnv<'_>, out: &mut BytesMut) {
    out.extend_from_slice(value.str().as_bytes());
}

/// The first characters of a text that have at most `limit` bytes.
pub fn truncated(text: &str, limit: usize) -> &str {
    let mut end = limit.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

/// The name of a type with a length.
pub(crate) fn show_length(row: &TypeRow, typmod: i32) -> String {
    match (SqlType { oid: row.oid, typmod }).length() {
        Some(length) => format!("{}({length})", row.sql_name),
        None => row.sql_name.to_owned(),
    }
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

//! What functions of JSON take and return: texts of arrays, paths, rows, parts that may be missing.

use crate::datum::{Array, Datum};
use crate::error::ValueError;
use crate::functions::args::Args;
use crate::functions::row::SetRows;
use crate::json::Jsonb;
use crate::sqlstate::SqlState;

/// The elements of a `text[]`, whatever its dimensions.
pub(super) fn texts(array: &Array) -> Vec<Option<&str>> {
    array.elements().iter().map(as_text).collect()
}

fn as_text(element: &Datum) -> Option<&str> {
    if let Datum::Text(text) = element { Some(text) } else { None }
}

/// The elements of a `text[]` that is a path or a list of keys. 2202E for several dimensions.
pub(super) fn path<'a>(args: &Args<'a>, at: usize) -> Result<Vec<Option<&'a str>>, ValueError> {
    let array = args.array(at)?;
    if array.dimensions().len() > 1 { Err(wrong_dimensions()) } else { Ok(texts(array)) }
}

/// 2202E
pub(super) fn wrong_dimensions() -> ValueError {
    ValueError::new(SqlState::ARRAY_SUBSCRIPT_ERROR, "wrong number of array subscripts")
}

/// A `jsonb`.
pub(super) fn tree(value: Jsonb) -> Datum {
    Datum::Jsonb(Box::new(value))
}

/// A `jsonb`, or NULL.
pub(super) fn part(value: Option<&Jsonb>) -> Datum {
    value.map_or(Datum::Null, |value| tree(value.clone()))
}

/// A text, or NULL.
pub(super) fn text(value: Option<String>) -> Datum {
    value.map_or(Datum::Null, Datum::text)
}

/// A count of elements.
pub(super) fn count(length: usize) -> Datum {
    Datum::Int(i64::try_from(length).unwrap_or(i64::MAX))
}

/// Rows of parts.
pub(super) fn rows<P: Send + 'static>(parts: Vec<P>, row: fn(P) -> Vec<Datum>) -> SetRows {
    Box::new(parts.into_iter().map(move |part| Ok(row(part))))
}

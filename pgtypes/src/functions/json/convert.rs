//! Values of any type as JSON: `to_json` and `to_jsonb`.
//!
//! Booleans, finite numbers, JSON, arrays and rows are what JSON has for them; dates and timestamps are strings in ISO
//! form, whatever `DateStyle` says; all others are strings of their text forms. NULL is `null`.

use std::borrow::Cow;

use crate::datetime::{Date, Timestamp, TimestampTz};
use crate::datum::{Array, Datum, Dimension, Record};
use crate::error::ValueError;
use crate::json::{self, Jsonb, Layout};
use crate::numeric::Numeric;
use crate::row::IoEnv;
use crate::sql_type::SqlType;
use crate::sqlstate::SqlState;
use crate::text::limit::check_growth;
use crate::wire;

/// `to_json`: a value as JSON text. 54000 for 1 GB.
pub(in crate::functions) fn to_json(value: &Datum, ty: SqlType, env: &IoEnv<'_>) -> Result<String, ValueError> {
    match value {
        Datum::Null => Ok("null".to_owned()),
        Datum::Array(array) => array_to_json(array, Layout::Compact, env),
        Datum::Record(record) => row_to_json(record, Layout::Compact, env),
        Datum::Jsonb(value) => limited(value.to_string()),
        Datum::Text(text) if ty.base() == SqlType::JSON => Ok(text.to_string()),
        _ if is_plain(value, ty) => Ok(text_of(value, ty, env)),
        _ => limited(json::escape(&text_of(value, ty, env))),
    }
}

/// `to_jsonb`: a value as a tree of JSON. 54000 for a text that is too long for it, 54001 for deep nesting; errors of
/// [`Jsonb::parse`] for `json`.
pub(in crate::functions) fn to_jsonb(value: &Datum, ty: SqlType, env: &IoEnv<'_>) -> Result<Jsonb, ValueError> {
    match value {
        Datum::Null => Ok(Jsonb::Null),
        Datum::Bool(value) => Ok(Jsonb::Bool(*value)),
        Datum::Jsonb(value) => Ok((**value).clone()),
        Datum::Array(array) => tree_of(array.dimensions(), array.elements(), SqlType::new(array.element()), env),
        Datum::Record(record) => {
            let fields = record.fields().iter().enumerate();
            let members = fields.map(|(at, (ty, field))| Ok((record.name(at), to_jsonb(field, *ty, env)?)));
            Jsonb::from_pairs(members.collect::<Result<Vec<(Cow<'_, str>, Jsonb)>, ValueError>>()?)
        }
        Datum::Text(text) if ty.base() == SqlType::JSON => Jsonb::parse(text),
        Datum::Numeric(number) if number.is_finite() => Ok(Jsonb::Number(number.clone())),
        _ if is_plain(value, ty) => Numeric::parse(&text_of(value, ty, env)).map(Jsonb::Number),
        _ => Jsonb::string(text_of(value, ty, env)),
    }
}

/// A value that is not NULL as the key of a member. 22023 for arrays, rows and JSON.
pub(in crate::functions) fn key(value: &Datum, ty: SqlType, env: &IoEnv<'_>) -> Result<String, ValueError> {
    if matches!(value, Datum::Array(_) | Datum::Record(_) | Datum::Jsonb(_)) || ty.base() == SqlType::JSON {
        let message = "key value must be scalar, not array, composite, or json";
        return Err(ValueError::new(SqlState::INVALID_PARAMETER_VALUE, message));
    }
    Ok(text_of(value, ty, env))
}

/// `array_to_json`: the inner arrays of several dimensions are always compact. 54000 for 1 GB.
pub(super) fn array_to_json(array: &Array, layout: Layout, env: &IoEnv<'_>) -> Result<String, ValueError> {
    text_of_array(array.dimensions(), array.elements(), SqlType::new(array.element()), layout, env)
}

/// `row_to_json`. 54000 for 1 GB.
pub(super) fn row_to_json(record: &Record, layout: Layout, env: &IoEnv<'_>) -> Result<String, ValueError> {
    let fields = record.fields().iter().enumerate();
    let members = fields.map(|(at, (ty, field))| Ok((record.name(at).into_owned(), to_json(field, *ty, env)?)));
    limited(json::row_to_json(members.collect::<Result<Vec<_>, ValueError>>()?, layout))
}

/// A text that is not too long for a value. Else 54000.
pub(super) fn limited(text: String) -> Result<String, ValueError> {
    check_growth(text.len(), 0).map(|()| text)
}

/// Whether the text form of a value is a boolean or a number of JSON.
fn is_plain(value: &Datum, ty: SqlType) -> bool {
    match value {
        Datum::Bool(_) => true,
        Datum::Int(_) => ty.is_integer(),
        Datum::Float(value) => value.is_finite(),
        Datum::Numeric(value) => value.is_finite(),
        _ => false,
    }
}

/// The text of a scalar in JSON, not escaped.
fn text_of(value: &Datum, ty: SqlType, env: &IoEnv<'_>) -> String {
    match (value, ty.base()) {
        (Datum::Bool(value), _) => value.to_string(),
        (Datum::Int(days), SqlType::DATE) => match i32::try_from(*days) {
            Ok(days) => Date(days).to_json(),
            Err(_) => wire::show(value, ty, env),
        },
        (Datum::Int(micros), SqlType::TIMESTAMP) => Timestamp(*micros).to_json(),
        (Datum::Int(micros), SqlType::TIMESTAMPTZ) => TimestampTz(*micros).to_json(env.zone),
        _ => wire::show(value, ty, env),
    }
}

/// The parts of an array along its first dimension.
fn parts<'a>(first: Dimension, elements: &'a [Datum]) -> std::slice::Chunks<'a, Datum> {
    let count = usize::try_from(first.length).unwrap_or(1).max(1);
    elements.chunks((elements.len() / count).max(1))
}

fn text_of_array(
    dimensions: &[Dimension],
    elements: &[Datum],
    ty: SqlType,
    layout: Layout,
    env: &IoEnv<'_>,
) -> Result<String, ValueError> {
    let Some((first, rest)) = dimensions.split_first() else { return Ok("[]".to_owned()) };
    let rendered: Vec<String> = if rest.is_empty() {
        elements.iter().map(|element| to_json(element, ty, env)).collect::<Result<_, _>>()?
    } else {
        let inner = |part| text_of_array(rest, part, ty, Layout::Compact, env);
        parts(*first, elements).map(inner).collect::<Result<_, _>>()?
    };
    limited(json::array_to_json(rendered, layout))
}

fn tree_of(dimensions: &[Dimension], elements: &[Datum], ty: SqlType, env: &IoEnv<'_>) -> Result<Jsonb, ValueError> {
    let Some((first, rest)) = dimensions.split_first() else { return Ok(Jsonb::Array(Vec::new())) };
    let values = if rest.is_empty() {
        elements.iter().map(|element| to_jsonb(element, ty, env)).collect::<Result<_, _>>()?
    } else {
        parts(*first, elements).map(|part| tree_of(rest, part, ty, env)).collect::<Result<_, _>>()?
    };
    Jsonb::from_elements(values)
}

//! Functions of `text` and the types like it, of `bytea`, and of `uuid`.
//!
//! # Layers
//!
//! 1. `cache`: compiled regular expressions
//! 2. `bytes`, `lists`, `patterns`, `regexes`, `strings`: the rows

mod bytes;
mod cache;
mod lists;
mod patterns;
mod regexes;
mod strings;

pub(super) use bytes::ROWS as BYTES;
pub(super) use lists::ROWS as LISTS;
pub(super) use patterns::ROWS as PATTERNS;
pub(super) use regexes::ROWS as REGEXES;
pub(super) use strings::ROWS as STRINGS;

use super::args::Args;
use super::row::SetRows;
use crate::datum::{Array, Datum, MAX_ELEMENTS, too_many_elements};
use crate::error::ValueError;
use crate::sql_type::SqlType;
use crate::sqlstate::SqlState;
use crate::text::check_alloc;

/// A text. XX000 if it is too large for a value.
fn text(value: impl Into<Box<str>>) -> Result<Datum, ValueError> {
    let value = value.into();
    check_alloc(value.len())?;
    Ok(Datum::Text(value))
}

/// Bytes. XX000 if there are too many for a value.
fn bytes(value: impl Into<Box<[u8]>>) -> Result<Datum, ValueError> {
    let value = value.into();
    check_alloc(value.len())?;
    Ok(Datum::Bytes(value))
}

fn int(value: i32) -> Result<Datum, ValueError> {
    Ok(Datum::Int(value.into()))
}

fn boolean(value: bool) -> Result<Datum, ValueError> {
    Ok(Datum::Bool(value))
}

/// An `integer` that counts parts of a value. 22003 for one that does not fit: eight times a length.
fn count(value: usize) -> Result<Datum, ValueError> {
    let value = i32::try_from(value);
    int(value.map_err(|_| ValueError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "integer out of range"))?)
}

fn nullable(value: Option<&str>) -> Datum {
    value.map_or(Datum::Null, Datum::text)
}

/// A `text[]`. 54000 for too many elements.
fn text_array(elements: Vec<Option<&str>>) -> Result<Datum, ValueError> {
    if elements.len() > MAX_ELEMENTS {
        return Err(too_many_elements());
    }
    let elements = elements.into_iter().map(nullable).collect();
    Ok(Datum::Array(Box::new(Array::of(SqlType::TEXT.oid, elements))))
}

/// A row for each value.
fn rows(values: Vec<Datum>) -> SetRows {
    Box::new(values.into_iter().map(|value| Ok(vec![value])))
}

/// An argument that a call may leave out.
fn i32_or(args: &Args<'_>, at: usize, default: i32) -> Result<i32, ValueError> {
    if at < args.len() { args.i32(at) } else { Ok(default) }
}

/// An argument that a call may leave out.
fn text_or<'a>(args: &Args<'a>, at: usize, default: &'a str) -> Result<&'a str, ValueError> {
    if at < args.len() { args.text(at) } else { Ok(default) }
}

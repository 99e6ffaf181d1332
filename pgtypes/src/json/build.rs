//! JSON from parts that are rendered already, in the spacing of each of PostgreSQL's functions.
//!
//! `to_json` of a value is [`escape`] of its text, or its text for numbers, booleans and JSON; [`array_to_json`] and
//! [`row_to_json`] put such parts together. The aggregates and builders of `jsonb` need no spacing of their own.

use std::borrow::Cow;

use super::escape::{escape, escape_into};
use super::value::Jsonb;
use crate::error::ValueError;
use crate::sqlstate::SqlState;

/// Whether a function puts its parts on lines of their own: its argument `pretty_bool`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// One line
    Compact,
    /// A line for each part
    Lines,
}

impl Layout {
    fn separator(self) -> &'static str {
        match self {
            Layout::Compact => ",",
            Layout::Lines => ",\n ",
        }
    }
}

/// Joins rendered elements with a separator, in brackets.
pub fn array<P: AsRef<str>>(elements: impl IntoIterator<Item = P>, separator: &str) -> String {
    let mut out = String::from("[");
    for (at, element) in elements.into_iter().enumerate() {
        if at > 0 {
            out.push_str(separator);
        }
        out.push_str(element.as_ref());
    }
    out.push(']');
    out
}

/// Joins members in braces, each of an unescaped key, a colon, and a rendered value.
pub fn object<K: AsRef<str>, P: AsRef<str>>(
    members: impl IntoIterator<Item = (K, P)>,
    colon: &str,
    separator: &str,
) -> String {
    let mut out = String::from("{");
    write_members(members, colon, separator, &mut out);
    out.push('}');
    out
}

fn write_members<K: AsRef<str>, P: AsRef<str>>(
    members: impl IntoIterator<Item = (K, P)>,
    colon: &str,
    separator: &str,
    out: &mut String,
) {
    for (at, (key, value)) in members.into_iter().enumerate() {
        if at > 0 {
            out.push_str(separator);
        }
        escape_into(key.as_ref(), out);
        out.push_str(colon);
        out.push_str(value.as_ref());
    }
}

/// `json_build_array`: `[1, "a", null]`.
pub fn build_array<P: AsRef<str>>(elements: impl IntoIterator<Item = P>) -> String {
    array(elements, ", ")
}

/// `json_build_object`: `{"a" : 1, "b" : 2}`, of unescaped keys and rendered values.
pub fn build_object<K: AsRef<str>, P: AsRef<str>>(members: impl IntoIterator<Item = (K, P)>) -> String {
    object(members, " : ", ", ")
}

/// `row_to_json`: `{"f1":1,"f2":2}`, of names and rendered values.
pub fn row_to_json<K: AsRef<str>, P: AsRef<str>>(columns: impl IntoIterator<Item = (K, P)>, layout: Layout) -> String {
    object(columns, ":", layout.separator())
}

/// `array_to_json`: `[1,2]`, of rendered elements. For more than one dimension the elements are the rendered inner
/// arrays, which are compact.
pub fn array_to_json<P: AsRef<str>>(elements: impl IntoIterator<Item = P>, layout: Layout) -> String {
    array(elements, layout.separator())
}

/// `json_agg`: `[1, 2]`. Rows and arrays are on lines of their own.
pub fn json_agg<P: AsRef<str>>(elements: impl IntoIterator<Item = P>, composite: bool) -> String {
    array(elements, if composite { ", \n " } else { ", " })
}

fn null_field() -> ValueError {
    ValueError::new(SqlState::INVALID_PARAMETER_VALUE, "field name must not be null")
}

/// `json_object_agg`: `{ "a" : 1, "b" : 2 }`, with duplicates. 22023 for a key that is NULL.
pub fn json_object_agg<'a>(
    members: impl IntoIterator<Item = (Option<&'a str>, &'a str)>,
) -> Result<String, ValueError> {
    let named = members.into_iter().map(|(key, value)| Ok((key.ok_or_else(null_field)?, value)));
    let named = named.collect::<Result<Vec<_>, ValueError>>()?;
    let mut out = String::from("{ ");
    write_members(named, " : ", ", ", &mut out);
    out.push_str(" }");
    Ok(out)
}

/// `jsonb_object_agg`, where the last of equal keys wins. 22023 for a key that is NULL, 54001 for deep nesting.
pub fn jsonb_object_agg<'a>(members: impl IntoIterator<Item = (Option<&'a str>, Jsonb)>) -> Result<Jsonb, ValueError> {
    let named = members.into_iter().map(|(key, value)| Ok((key.map(Cow::Borrowed).ok_or_else(null_field)?, value)));
    Jsonb::from_pairs(named.collect::<Result<Vec<_>, ValueError>>()?)
}

fn null_key() -> ValueError {
    ValueError::new(SqlState::NULL_VALUE_NOT_ALLOWED, "null value not allowed for object key")
}

/// `json_object` of texts: `{"a" : "1", "b" : null}`. 22004 for a key that is NULL. The caller checks dimensions.
pub fn json_object(members: &[(Option<&str>, Option<&str>)]) -> Result<String, ValueError> {
    let mut rendered = Vec::with_capacity(members.len());
    for (key, value) in members {
        let value = value.map_or_else(|| "null".to_owned(), escape);
        rendered.push((key.ok_or_else(null_key)?, value));
    }
    Ok(build_object(rendered))
}

/// `jsonb_object` of texts. 22004 for a key that is NULL. The caller checks dimensions.
pub fn jsonb_object(members: &[(Option<&str>, Option<&str>)]) -> Result<Jsonb, ValueError> {
    let mut pairs = Vec::with_capacity(members.len());
    for (key, value) in members {
        let key = Cow::Borrowed(key.ok_or_else(null_key)?);
        pairs.push((key, value.map_or(Ok(Jsonb::Null), Jsonb::string)?));
    }
    Jsonb::from_pairs(pairs)
}

//! `jsonb`: the tree, its text, its binary and stored forms.
//!
//! The stored form is a version byte and the canonical text. It is a little larger than a binary tree, but it is one
//! pass over the bytes to read, strings without escapes are copied as they are, its objects are sorted already, and it
//! equals the wire's binary form, so a value that only passes through is never parsed.

use std::borrow::Cow;
use std::cell::Cell;
use std::cmp::Ordering;
use std::fmt::{self, Write};

use super::escape::escape_into;
use super::parser::{self, Build, MAX_DEPTH, too_deep};
use crate::error::ValueError;
use crate::numeric::Numeric;
use crate::sqlstate::SqlState;
use crate::text::limit::check_growth;

/// The version of the binary form.
const VERSION: u8 = 1;
/// The bytes that a string can have, and all numbers of a text together.
const MAX_SIZE: usize = 0x0fff_ffff;

/// A value of `jsonb`. Equality and hash are by value: `1.0` equals `1`. The order is that of PostgreSQL's btree.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Jsonb {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number, which is finite
    Number(Numeric),
    /// A string
    String(Box<str>),
    /// An array
    Array(Vec<Jsonb>),
    /// An object
    Object(Members),
}

/// The members of an object: keys are unique, ordered by length, then by bytes.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Members(Vec<(Box<str>, Jsonb)>);

/// The order of keys in an object.
fn key_order(a: &str, b: &str) -> Ordering {
    (a.len(), a).cmp(&(b.len(), b))
}

impl Members {
    /// Members from pairs in any order. The last of equal keys wins.
    pub fn from_pairs(mut pairs: Vec<(Box<str>, Jsonb)>) -> Members {
        if !pairs.is_sorted_by(|a, b| key_order(&a.0, &b.0).is_lt()) {
            pairs.sort_by(|a, b| key_order(&a.0, &b.0));
            // `dedup_by` keeps the first of a run, so the later value moves there.
            pairs.dedup_by(|later, kept| {
                let same = later.0 == kept.0;
                if same {
                    std::mem::swap(&mut later.1, &mut kept.1);
                }
                same
            });
        }
        Members(pairs)
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Jsonb> {
        let at = self.0.binary_search_by(|(k, _)| key_order(k, key)).ok()?;
        self.0.get(at).map(|(_, value)| value)
    }

    /// The members in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Jsonb)> {
        self.0.iter().map(|(key, value)| (&**key, value))
    }

    /// The number of members.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The pairs in order.
    pub(super) fn into_pairs(self) -> Vec<(Box<str>, Jsonb)> {
        self.0
    }
}

/// Builds a tree of `jsonb`.
struct Tree {
    /// The bytes that its numbers may still occupy: an exponent writes a long number in few characters.
    left: Cell<usize>,
}

impl<'a> Build<'a> for Tree {
    type Value = Jsonb;
    const UNESCAPE: bool = true;

    fn null(&self, _span: &'a str) -> Jsonb {
        Jsonb::Null
    }

    fn bool(&self, value: bool, _span: &'a str) -> Jsonb {
        Jsonb::Bool(value)
    }

    fn number(&self, span: &'a str) -> Result<Jsonb, ValueError> {
        let number = Numeric::parse(span)?;
        let left = self.left.get().checked_sub(number.memory()).ok_or_else(too_large)?;
        self.left.set(left);
        Ok(Jsonb::Number(number))
    }

    fn string(&self, value: Cow<'a, str>, _span: &'a str) -> Result<Jsonb, ValueError> {
        Jsonb::string(value)
    }

    fn array(&self, elements: Vec<Jsonb>, _span: &'a str) -> Jsonb {
        Jsonb::Array(elements)
    }

    fn object(&self, members: Vec<(Cow<'a, str>, Jsonb)>, _span: &'a str) -> Result<Jsonb, ValueError> {
        let pairs = members.into_iter().map(|(key, value)| Ok((string(key)?, value)));
        Ok(Jsonb::Object(Members::from_pairs(pairs.collect::<Result<_, ValueError>>()?)))
    }
}

fn too_large() -> ValueError {
    let message = format!("total size of jsonb array elements exceeds the maximum of {MAX_SIZE} bytes");
    ValueError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
}

/// A string that is not too long for `jsonb`.
fn string(text: Cow<'_, str>) -> Result<Box<str>, ValueError> {
    if text.len() > MAX_SIZE {
        let detail = format!("Due to an implementation restriction, jsonb strings cannot exceed {MAX_SIZE} bytes.");
        let message = "string too long to represent as jsonb string";
        return Err(ValueError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message).with_detail(detail));
    }
    Ok(text.into())
}

impl Jsonb {
    /// Parses JSON. 22P02 for bad syntax, 22P05 for `\u0000`, 22003 for a number that `numeric` cannot hold, 54000 for
    /// a string or numbers that are too long, 54001 for deep nesting.
    pub fn parse(text: &str) -> Result<Jsonb, ValueError> {
        Jsonb::parse_within(text, MAX_SIZE)
    }

    /// Parses JSON whose numbers occupy at most so many bytes.
    pub(super) fn parse_within(text: &str, size: usize) -> Result<Jsonb, ValueError> {
        parser::parse(text, &Tree { left: Cell::new(size) })
    }

    /// A JSON string. 54000 if it is too long.
    pub fn string<'a>(text: impl Into<Cow<'a, str>>) -> Result<Jsonb, ValueError> {
        string(text.into()).map(Jsonb::String)
    }

    /// An array. 54001 if its elements are nested too deep.
    pub fn from_elements(elements: Vec<Jsonb>) -> Result<Jsonb, ValueError> {
        Jsonb::Array(elements).checked()
    }

    /// An object. The last of equal keys wins. 54000 if a key is too long, 54001 if its values are nested too deep.
    pub fn from_pairs<'a>(pairs: impl IntoIterator<Item = (Cow<'a, str>, Jsonb)>) -> Result<Jsonb, ValueError> {
        let pairs = pairs.into_iter().map(|(key, value)| Ok((string(key)?, value)));
        Jsonb::Object(Members::from_pairs(pairs.collect::<Result<_, ValueError>>()?)).checked()
    }

    /// The value, if it is not nested too deep for the recursion over it. Else 54001.
    pub(super) fn checked(self) -> Result<Jsonb, ValueError> {
        if self.fits(MAX_DEPTH) { Ok(self) } else { Err(too_deep()) }
    }

    fn fits(&self, depth: usize) -> bool {
        let Some(inner) = depth.checked_sub(1) else { return self.is_scalar() };
        match self {
            Jsonb::Array(elements) => elements.iter().all(|element| element.fits(inner)),
            Jsonb::Object(members) => members.iter().all(|(_, value)| value.fits(inner)),
            _ => true,
        }
    }

    /// The bytes that it occupies beside its own size, for memory budgets.
    pub fn memory(&self) -> usize {
        let own = |value: &Jsonb| size_of::<Jsonb>() + value.memory();
        match self {
            Jsonb::Null | Jsonb::Bool(_) => 0,
            Jsonb::Number(number) => number.memory(),
            Jsonb::String(text) => text.len(),
            Jsonb::Array(elements) => elements.iter().map(own).sum(),
            Jsonb::Object(members) => {
                members.iter().map(|(key, value)| size_of::<Box<str>>() + key.len() + own(value)).sum()
            }
        }
    }

    /// Whether it is neither an array nor an object.
    pub fn is_scalar(&self) -> bool {
        !matches!(self, Jsonb::Array(_) | Jsonb::Object(_))
    }

    /// Appends the canonical text.
    pub fn write_text(&self, out: &mut String) {
        match self {
            Jsonb::Null => out.push_str("null"),
            Jsonb::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Jsonb::Number(number) => out.push_str(&number.to_text()),
            Jsonb::String(text) => escape_into(text, out),
            Jsonb::Array(elements) => {
                out.push('[');
                for (at, element) in elements.iter().enumerate() {
                    out.push_str(if at == 0 { "" } else { ", " });
                    element.write_text(out);
                }
                out.push(']');
            }
            Jsonb::Object(members) => {
                out.push('{');
                for (at, (key, value)) in members.iter().enumerate() {
                    out.push_str(if at == 0 { "" } else { ", " });
                    escape_into(key, out);
                    out.push_str(": ");
                    value.write_text(out);
                }
                out.push('}');
            }
        }
    }

    /// `jsonb_pretty`: each element and member on a line of its own, indented by four spaces. 54000 for 1 GB.
    pub fn pretty(&self) -> Result<String, ValueError> {
        let mut out = String::new();
        self.write_pretty(0, &mut out)?;
        Ok(out)
    }

    fn write_pretty(&self, depth: usize, out: &mut String) -> Result<(), ValueError> {
        match self {
            Jsonb::Array(elements) => {
                out.push('[');
                for (at, element) in elements.iter().enumerate() {
                    out.push_str(if at == 0 { "" } else { "," });
                    new_line(depth + 1, out)?;
                    element.write_pretty(depth + 1, out)?;
                }
                new_line(depth, out)?;
                out.push(']');
            }
            Jsonb::Object(members) => {
                out.push('{');
                for (at, (key, value)) in members.iter().enumerate() {
                    out.push_str(if at == 0 { "" } else { "," });
                    new_line(depth + 1, out)?;
                    escape_into(key, out);
                    out.push_str(": ");
                    value.write_pretty(depth + 1, out)?;
                }
                new_line(depth, out)?;
                out.push('}');
            }
            scalar => scalar.write_text(out),
        }
        Ok(())
    }

    /// Reads the binary form of the wire. XX000 for another version than 1, otherwise as [`Jsonb::parse`].
    pub fn from_binary(bytes: &[u8]) -> Result<Jsonb, ValueError> {
        let Some((version, text)) = bytes.split_first() else {
            return Err(ValueError::new(SqlState::PROTOCOL_VIOLATION, "no data left in message"));
        };
        if *version != VERSION {
            let message = format!("unsupported jsonb version number {version}");
            return Err(ValueError::new(SqlState::INTERNAL_ERROR, message));
        }
        Jsonb::parse(crate::utf8::utf8(text)?)
    }

    /// The binary form of the wire, which is the stored form as well.
    pub fn to_binary(&self) -> Vec<u8> {
        let mut text = String::from(char::from(VERSION));
        self.write_text(&mut text);
        text.into_bytes()
    }
}

/// Begins an indented line.
fn new_line(depth: usize, out: &mut String) -> Result<(), ValueError> {
    check_growth(out.len(), 1 + 4 * depth)?;
    out.push('\n');
    out.extend(std::iter::repeat_n("    ", depth));
    Ok(())
}

impl fmt::Display for Jsonb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = String::new();
        self.write_text(&mut out);
        f.write_str(&out)
    }
}

impl fmt::Debug for Jsonb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('`')?;
        fmt::Display::fmt(self, f)?;
        f.write_char('`')
    }
}

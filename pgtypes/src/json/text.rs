//! `json`: text that is known to be JSON, and the functions that read it again and return parts of it as they are
//! written.
//!
//! A string with `\u0000` or half of a surrogate pair is valid JSON. Only functions that need its value refuse it.

use std::borrow::Cow;

use super::escape::escape_into;
use super::lexer::{Lexer, Token};
use super::parser::{self, Build};
use super::path::{self, Path};
use crate::error::ValueError;
use crate::sqlstate::SqlState;

/// A value of `json`: a valid text, with its white space, the order of its keys and its duplicates.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Json(Box<str>);

/// Checks a text and keeps nothing.
struct Check;

impl<'a> Build<'a> for Check {
    type Value = ();
    const UNESCAPE: bool = false;

    fn null(&self, _span: &'a str) {}

    fn bool(&self, _value: bool, _span: &'a str) {}

    fn number(&self, _span: &'a str) -> Result<(), ValueError> {
        Ok(())
    }

    fn string(&self, _value: Cow<'a, str>, _span: &'a str) -> Result<(), ValueError> {
        Ok(())
    }

    fn array(&self, _elements: Vec<()>, _span: &'a str) {}

    fn object(&self, _members: Vec<(Cow<'a, str>, ())>, _span: &'a str) -> Result<(), ValueError> {
        Ok(())
    }
}

/// A part of a text.
struct Node<'a> {
    span: &'a str,
    kind: Kind<'a>,
}

enum Kind<'a> {
    Null,
    /// A number or a boolean
    Plain,
    String(Cow<'a, str>),
    Array(Vec<Node<'a>>),
    Object(Vec<(Cow<'a, str>, Node<'a>)>),
}

/// Builds the parts of a text. `UNESCAPE` gives strings their values.
struct Parts<const UNESCAPE: bool>;

impl<'a, const UNESCAPE: bool> Build<'a> for Parts<UNESCAPE> {
    type Value = Node<'a>;
    const UNESCAPE: bool = UNESCAPE;

    fn null(&self, span: &'a str) -> Node<'a> {
        Node { span, kind: Kind::Null }
    }

    fn bool(&self, _value: bool, span: &'a str) -> Node<'a> {
        Node { span, kind: Kind::Plain }
    }

    fn number(&self, span: &'a str) -> Result<Node<'a>, ValueError> {
        Ok(Node { span, kind: Kind::Plain })
    }

    fn string(&self, value: Cow<'a, str>, span: &'a str) -> Result<Node<'a>, ValueError> {
        Ok(Node { span, kind: Kind::String(value) })
    }

    fn array(&self, elements: Vec<Node<'a>>, span: &'a str) -> Node<'a> {
        Node { span, kind: Kind::Array(elements) }
    }

    fn object(&self, members: Vec<(Cow<'a, str>, Node<'a>)>, span: &'a str) -> Result<Node<'a>, ValueError> {
        Ok(Node { span, kind: Kind::Object(members) })
    }
}

fn refused(message: String) -> ValueError {
    ValueError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

impl Node<'_> {
    /// The part as text: a string without quotes, `None` for `null`.
    fn to_text(&self) -> Option<String> {
        match &self.kind {
            Kind::Null => None,
            Kind::String(value) => Some(value.to_string()),
            _ => Some(self.span.to_owned()),
        }
    }

    fn to_json(&self) -> Json {
        Json(self.span.into())
    }

    /// The last part at a path, in the order of the text: a key may occur more than once.
    fn at_path(&self, path: &Path<'_>) -> Option<&Self> {
        let Some((first, rest)) = path.split_first() else { return Some(self) };
        let first = (*first)?;
        match &self.kind {
            Kind::Object(members) => {
                let mut matches = members.iter().rev().filter(|(key, _)| key == first);
                matches.find_map(|(_, value)| value.at_path(rest))
            }
            Kind::Array(elements) => {
                let at = path::position(path::index(first)?, elements.len())?;
                elements.get(at)?.at_path(rest)
            }
            _ => None,
        }
    }

    fn write_stripped(&self, out: &mut String) {
        match &self.kind {
            Kind::Null | Kind::Plain => out.push_str(self.span),
            Kind::String(value) => escape_into(value, out),
            Kind::Array(elements) => {
                out.push('[');
                for (at, element) in elements.iter().enumerate() {
                    out.push_str(if at == 0 { "" } else { "," });
                    element.write_stripped(out);
                }
                out.push(']');
            }
            Kind::Object(members) => {
                out.push('{');
                let kept = members.iter().filter(|(_, value)| !matches!(value.kind, Kind::Null));
                for (at, (key, value)) in kept.enumerate() {
                    out.push_str(if at == 0 { "" } else { "," });
                    escape_into(key, out);
                    out.push(':');
                    value.write_stripped(out);
                }
                out.push('}');
            }
        }
    }
}

impl Json {
    /// Checks a text. 22P02 for bad syntax, 54001 for deep nesting.
    pub fn parse(text: impl Into<Box<str>>) -> Result<Json, ValueError> {
        let text = text.into();
        parser::parse(&text, &Check)?;
        Ok(Json(text))
    }

    /// JSON that this crate has made, or that was checked before it was stored.
    pub fn from_valid(text: impl Into<Box<str>>) -> Json {
        Json(text.into())
    }

    /// Reads the binary form, which is the text. Errors as [`Json::parse`], and 22021.
    pub fn from_binary(bytes: &[u8]) -> Result<Json, ValueError> {
        Json::parse(crate::utf8::utf8(bytes)?)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text.
    pub fn into_text(self) -> Box<str> {
        self.0
    }

    fn node(&self) -> Result<Node<'_>, ValueError> {
        parser::parse(&self.0, &Parts::<true>)
    }

    /// The parts, with strings as they are written.
    fn raw_node(&self) -> Result<Node<'_>, ValueError> {
        parser::parse(&self.0, &Parts::<false>)
    }

    /// `-> text`: the value of a key of an object, the last one. 22P05 if a string of the text has no value.
    pub fn field(&self, key: &str) -> Result<Option<Json>, ValueError> {
        Ok(self.node()?.field(key).map(Node::to_json))
    }

    /// `-> integer`: an element of an array, from its end if the index is negative. Errors as [`Json::field`].
    pub fn element(&self, index: i32) -> Result<Option<Json>, ValueError> {
        Ok(self.node()?.element(index).map(Node::to_json))
    }

    /// `->> text`. Errors as [`Json::field`].
    pub fn field_text(&self, key: &str) -> Result<Option<String>, ValueError> {
        Ok(self.node()?.field(key).and_then(Node::to_text))
    }

    /// `->> integer`. Errors as [`Json::field`].
    pub fn element_text(&self, index: i32) -> Result<Option<String>, ValueError> {
        Ok(self.node()?.element(index).and_then(Node::to_text))
    }

    /// `#>` and `json_extract_path`: the value at a path. A NULL in the path gives NULL. Errors as [`Json::field`].
    pub fn at_path(&self, path: &Path<'_>) -> Result<Option<Json>, ValueError> {
        if path.contains(&None) {
            return Ok(None);
        }
        let node = self.node()?;
        if path.is_empty() && !matches!(node.kind, Kind::Array(_) | Kind::Object(_)) {
            return Ok(Some(Json::from_valid(self.with_leading_space(node.span))));
        }
        Ok(node.at_path(path).map(Node::to_json))
    }

    /// `#>>` and `json_extract_path_text`. Errors as [`Json::field`].
    pub fn at_path_text(&self, path: &Path<'_>) -> Result<Option<String>, ValueError> {
        if path.contains(&None) {
            return Ok(None);
        }
        let node = self.node()?;
        if path.is_empty() && matches!(node.kind, Kind::Plain) {
            return Ok(Some(self.with_leading_space(node.span).to_owned()));
        }
        Ok(node.at_path(path).and_then(Node::to_text))
    }

    /// A scalar with the space before it: PostgreSQL keeps that of a whole text.
    fn with_leading_space(&self, span: &str) -> &str {
        let lead = self.0.len() - self.0.trim_start_matches([' ', '\t', '\n', '\r']).len();
        self.0.get(..lead + span.len()).unwrap_or(&self.0)
    }

    /// `json_typeof`
    pub fn type_name(&self) -> Result<&'static str, ValueError> {
        Ok(match self.first_token()? {
            Token::ObjectStart => "object",
            Token::ArrayStart => "array",
            Token::String => "string",
            Token::Number => "number",
            Token::True | Token::False => "boolean",
            _ => "null",
        })
    }

    /// `json_array_length`. 22023 if it is not an array.
    pub fn array_length(&self) -> Result<usize, ValueError> {
        match self.raw_node()?.kind {
            Kind::Array(elements) => Ok(elements.len()),
            Kind::Object(_) => Err(refused("cannot get array length of a non-array".to_owned())),
            _ => Err(refused("cannot get array length of a scalar".to_owned())),
        }
    }

    /// `json_object_keys`, with duplicates. 22023 if it is not an object.
    pub fn object_keys(&self) -> Result<Vec<String>, ValueError> {
        if self.first_token()? == Token::ArrayStart {
            return Err(refused("cannot call json_object_keys on an array".to_owned()));
        }
        match self.node()?.kind {
            Kind::Object(members) => Ok(members.into_iter().map(|(key, _)| key.into_owned()).collect()),
            _ => Err(refused("cannot call json_object_keys on a scalar".to_owned())),
        }
    }

    /// `json_each`, with duplicates. 22023 if it is not an object.
    pub fn each(&self) -> Result<Vec<(String, Json)>, ValueError> {
        let members = self.members()?;
        Ok(members.into_iter().map(|(key, value)| (key.into_owned(), value.to_json())).collect())
    }

    /// `json_each_text`, with duplicates. 22023 if it is not an object.
    pub fn each_text(&self) -> Result<Vec<(String, Option<String>)>, ValueError> {
        let members = self.members()?;
        Ok(members.into_iter().map(|(key, value)| (key.into_owned(), value.to_text())).collect())
    }

    fn members(&self) -> Result<Vec<(Cow<'_, str>, Node<'_>)>, ValueError> {
        if self.first_token()? == Token::ArrayStart {
            return Err(refused("cannot deconstruct an array as an object".to_owned()));
        }
        match self.node()?.kind {
            Kind::Object(members) => Ok(members),
            _ => Err(refused("cannot deconstruct a scalar".to_owned())),
        }
    }

    /// `json_array_elements`. 22023 if it is not an array.
    pub fn array_elements(&self) -> Result<Vec<Json>, ValueError> {
        Ok(self.elements(Json::raw_node, "json_array_elements")?.iter().map(Node::to_json).collect())
    }

    /// `json_array_elements_text`. 22023 if it is not an array.
    pub fn array_elements_text(&self) -> Result<Vec<Option<String>>, ValueError> {
        Ok(self.elements(Json::node, "json_array_elements_text")?.iter().map(Node::to_text).collect())
    }

    /// Elements for a function. It refuses an object before a string in it.
    fn elements<'a>(
        &'a self,
        read: impl Fn(&'a Json) -> Result<Node<'a>, ValueError>,
        function: &str,
    ) -> Result<Vec<Node<'a>>, ValueError> {
        if self.first_token()? == Token::ObjectStart {
            return Err(refused(format!("cannot call {function} on a non-array")));
        }
        match read(self)?.kind {
            Kind::Array(elements) => Ok(elements),
            _ => Err(refused(format!("cannot call {function} on a scalar"))),
        }
    }

    /// The token that tells the type of the value.
    fn first_token(&self) -> Result<Token, ValueError> {
        Lexer::new(&self.0, false).advance()
    }

    /// `json_strip_nulls`: without the members that are `null`, at every depth, and without white space.
    pub fn strip_nulls(&self) -> Result<Json, ValueError> {
        let mut out = String::with_capacity(self.0.len());
        self.node()?.write_stripped(&mut out);
        Ok(Json(out.into()))
    }
}

impl<'a> Node<'a> {
    fn field(&self, key: &str) -> Option<&Node<'a>> {
        match &self.kind {
            Kind::Object(members) => members.iter().rev().find(|(name, _)| name == key).map(|(_, value)| value),
            _ => None,
        }
    }

    fn element(&self, index: i32) -> Option<&Node<'a>> {
        match &self.kind {
            Kind::Array(elements) => elements.get(path::position(index, elements.len())?),
            _ => None,
        }
    }
}

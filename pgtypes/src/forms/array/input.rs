//! The text form of arrays: `{1,NULL,"a b"}`, `[0:1]={1,2}`, `{{1,2},{3,4}}`.

use std::iter::Peekable;
use std::str::Chars;

use crate::datum::{Array, Datum, Dimension, MAX_DIMENSIONS, too_many_dimensions};
use crate::error::ValueError;
use crate::letters::is_space;
use crate::row::IoEnv;
use crate::sql_type::SqlType;
use crate::sqlstate::SqlState;

/// Reads an array with elements of a type.
pub(super) fn parse(text: &str, element: SqlType, env: &IoEnv<'_>) -> Result<Datum, ValueError> {
    let mut reader = Reader {
        text,
        rest: text.chars().peekable(),
        element,
        env,
        elements: Vec::new(),
        shape: Vec::new(),
        error: None,
    };
    let bounds = reader.bounds()?;
    reader.skip_space();
    if reader.rest.peek() != Some(&'{') {
        let detail = if bounds.is_empty() {
            "Array value must start with \"{\" or dimension information."
        } else {
            "Array contents must start with \"{\"."
        };
        return Err(reader.malformed(detail));
    }
    reader.rest.next();
    reader.level(0)?;
    reader.skip_space();
    if reader.rest.peek().is_some() {
        return Err(reader.malformed("Junk after closing right brace."));
    }
    let Reader { text, elements, shape, error, .. } = reader;
    let lengths = if elements.is_empty() { Vec::new() } else { shape };
    let dimensions = dimensions(text, &bounds, &lengths)?;
    error.map_or(Ok(()), Err)?;
    Array::new(element.oid, dimensions, elements).map(|array| Datum::Array(Box::new(array)))
}

/// The dimensions of the lengths found, with the bounds that were written.
fn dimensions(text: &str, bounds: &[Dimension], lengths: &[i32]) -> Result<Vec<Dimension>, ValueError> {
    if bounds.is_empty() {
        return Ok(lengths.iter().map(|length| Dimension::of_length(*length)).collect());
    }
    let written = bounds.iter().map(|bound| &bound.length);
    if !written.eq(lengths) {
        return Err(malformed(text, "Specified array dimensions do not match array contents."));
    }
    Ok(bounds.to_vec())
}

fn malformed(text: &str, detail: impl Into<std::borrow::Cow<'static, str>>) -> ValueError {
    let message = format!("malformed array literal: \"{text}\"");
    ValueError::new(SqlState::INVALID_TEXT_REPRESENTATION, message).with_detail(detail)
}

struct Reader<'a> {
    text: &'a str,
    rest: Peekable<Chars<'a>>,
    element: SqlType,
    env: &'a IoEnv<'a>,
    elements: Vec<Datum>,
    /// The length of each dimension, once one of its arrays is complete.
    shape: Vec<i32>,
    /// The error of the first element that is none. Those of the array come first, wherever they are.
    error: Option<ValueError>,
}

impl Reader<'_> {
    fn malformed(&self, detail: impl Into<std::borrow::Cow<'static, str>>) -> ValueError {
        malformed(self.text, detail)
    }

    fn unexpected(&self, c: char) -> ValueError {
        self.malformed(format!("Unexpected \"{c}\" character."))
    }

    fn skip_space(&mut self) {
        while self.rest.next_if(|c| is_space(*c)).is_some() {}
    }

    /// `[1:2][0:3]=`
    fn bounds(&mut self) -> Result<Vec<Dimension>, ValueError> {
        let mut bounds = Vec::new();
        self.skip_space();
        while self.rest.next_if_eq(&'[').is_some() {
            let first = self.bound()?;
            let (lower, upper) = match self.rest.next_if_eq(&':') {
                Some(_) => (first, self.bound()?),
                None => (1, first),
            };
            if self.rest.next_if_eq(&']').is_none() {
                return Err(self.malformed("Missing \"]\" after array dimensions."));
            }
            if upper < lower {
                let message = "upper bound cannot be less than lower bound";
                return Err(ValueError::new(SqlState::ARRAY_SUBSCRIPT_ERROR, message));
            }
            let length = i64::from(upper) - i64::from(lower) + 1;
            let length = i32::try_from(length).map_err(|_| crate::datum::too_many_elements())?;
            bounds.push(Dimension { length, lower });
            if bounds.len() > MAX_DIMENSIONS {
                return Err(too_many_dimensions(bounds.len()));
            }
            self.skip_space();
        }
        if !bounds.is_empty() && self.rest.next_if_eq(&'=').is_none() {
            return Err(self.malformed("Missing \"=\" after array dimensions."));
        }
        Ok(bounds)
    }

    fn bound(&mut self) -> Result<i32, ValueError> {
        let mut digits = String::new();
        while let Some(c) = self.rest.next_if(|c| c.is_ascii_digit() || (matches!(c, '-' | '+'))) {
            digits.push(c);
        }
        if digits.is_empty() {
            return Err(self.malformed("Missing array dimension value."));
        }
        digits
            .parse()
            .map_err(|_| ValueError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "array bound is out of integer range"))
    }

    /// The elements of one array, after its left brace, up to its right brace.
    fn level(&mut self, depth: usize) -> Result<(), ValueError> {
        if depth >= MAX_DIMENSIONS {
            return Err(too_many_dimensions(depth + 1));
        }
        let mut count: i32 = 0;
        let (mut has_elements, mut has_arrays) = (false, false);
        loop {
            self.skip_space();
            match self.rest.peek().copied() {
                None => return Err(self.malformed("Unexpected end of input.")),
                Some('}') if count == 0 => break,
                Some('{') => {
                    self.rest.next();
                    if has_elements {
                        return Err(self.unexpected('{'));
                    }
                    has_arrays = true;
                    self.level(depth + 1)?;
                }
                Some(c @ (',' | '}')) => return Err(self.unexpected(c)),
                Some(_) if has_arrays || self.shape.len() > depth + 1 => {
                    return Err(self.malformed("Unexpected array element."));
                }
                Some(_) => {
                    has_elements = true;
                    let value = self.value()?;
                    self.elements.push(value);
                }
            }
            count = count.checked_add(1).ok_or_else(crate::datum::too_many_elements)?;
            self.skip_space();
            match self.rest.peek().copied() {
                Some(',') => {
                    self.rest.next();
                }
                Some('}') => break,
                Some('{') => return Err(self.unexpected('{')),
                Some(_) => return Err(self.malformed("Unexpected array element.")),
                None => return Err(self.malformed("Unexpected end of input.")),
            }
        }
        self.rest.next();
        self.close(depth, count)
    }

    /// All arrays of one depth have the same length.
    fn close(&mut self, depth: usize, count: i32) -> Result<(), ValueError> {
        if self.shape.len() <= depth {
            self.shape.resize(depth + 1, -1);
        }
        match self.shape.get_mut(depth) {
            Some(length) if *length == -1 => *length = count,
            Some(length) if *length == count => {}
            _ => {
                let detail = "Multidimensional arrays must have sub-arrays with matching dimensions.";
                return Err(self.malformed(detail));
            }
        }
        Ok(())
    }

    /// An element: quoted, or up to the next comma or brace.
    fn value(&mut self) -> Result<Datum, ValueError> {
        let mut text = String::new();
        if self.rest.next_if_eq(&'"').is_some() {
            loop {
                match self.rest.next() {
                    None => return Err(self.malformed("Unexpected end of input.")),
                    Some('"') => break,
                    Some('\\') => text.push(self.escaped()?),
                    Some(c) => text.push(c),
                }
            }
            return Ok(self.parsed(&text));
        }
        let (mut kept, mut has_escape) = (0, false);
        loop {
            match self.rest.peek().copied() {
                None => return Err(self.malformed("Unexpected end of input.")),
                Some(',' | '}') => break,
                Some('{') => return Err(self.unexpected('{')),
                Some('"') => return Err(self.malformed("Unexpected array element.")),
                Some('\\') => {
                    self.rest.next();
                    text.push(self.escaped()?);
                    (kept, has_escape) = (text.len(), true);
                }
                Some(c) => {
                    self.rest.next();
                    text.push(c);
                    if !is_space(c) {
                        kept = text.len();
                    }
                }
            }
        }
        text.truncate(kept);
        if !has_escape && text.eq_ignore_ascii_case("null") { Ok(Datum::Null) } else { Ok(self.parsed(&text)) }
    }

    fn escaped(&mut self) -> Result<char, ValueError> {
        self.rest.next().ok_or_else(|| self.malformed("Unexpected end of input."))
    }

    fn parsed(&mut self, text: &str) -> Datum {
        if self.error.is_some() {
            return Datum::Null;
        }
        let value = (self.element.row().io.input)(text, self.element, self.env);
        value.unwrap_or_else(|error| {
            self.error = Some(error);
            Datum::Null
        })
    }
}

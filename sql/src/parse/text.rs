//! The text of a query string: conversions between its locations and positions, the locations of tokens and trees, and
//! syntax errors at them.
//!
//! The parser has lines and columns, clients get characters from 1, and slicing needs bytes. An index of line starts
//! keeps each conversion cheap in long texts.

use std::sync::Arc;

use sqlparser::ast::{Expr, Query, SetExpr, Spanned};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Location, Span, Token, TokenWithSpan, Word};

use crate::error::{SqlError, SqlState};
use crate::lexer::Lexer;

/// An unknown location.
pub const NO_LOCATION: Location = Location { line: 0, column: 0 };

/// A text with an index of its lines.
#[derive(Clone, Debug)]
pub struct SourceText {
    text: Arc<str>,
    lines: Arc<[Line]>,
    end: Line,
}

/// The bytes and characters before a line, or before the end.
#[derive(Clone, Copy, Debug)]
struct Line {
    bytes: usize,
    chars: usize,
}

impl SourceText {
    /// Indexes a text.
    pub fn new(text: &str) -> SourceText {
        let mut lines = vec![Line { bytes: 0, chars: 0 }];
        let mut before = Line { bytes: 0, chars: 0 };
        for line in text.split_inclusive('\n') {
            before = Line { bytes: before.bytes + line.len(), chars: before.chars + line.chars().count() };
            if line.ends_with('\n') {
                lines.push(before);
            }
        }
        SourceText { text: text.into(), lines: lines.into(), end: before }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The position of a location in characters from 1; 0 if unknown.
    pub fn position(&self, location: Location) -> u32 {
        match self.line(location) {
            Some((line, column)) => u32::try_from(line.chars + column + 1).unwrap_or(0),
            None => 0,
        }
    }

    /// The byte offset of a location; `None` if unknown.
    pub fn offset(&self, location: Location) -> Option<usize> {
        let (line, column) = self.line(location)?;
        let end = self.line_end(location.line);
        let rest = &self.text[line.bytes..end.bytes];
        if end.bytes - line.bytes == end.chars - line.chars {
            // The line is ASCII.
            return Some(line.bytes + column.min(rest.len()));
        }
        Some(line.bytes + rest.char_indices().nth(column).map_or(rest.len(), |(at, _)| at))
    }

    /// The source text of a span; empty if unknown.
    pub fn source(&self, span: Span) -> &str {
        match (self.offset(span.start), self.offset(span.end)) {
            (Some(start), Some(end)) if start <= end => &self.text[start..end],
            _ => "",
        }
    }

    /// The word or symbol at a location, for syntax errors.
    pub fn token_at(&self, location: Location) -> &str {
        let rest = self.offset(location).and_then(|at| self.text.get(at..)).unwrap_or_default();
        let end = Lexer::new(rest).next().map_or(0, |token| token.end);
        &rest[..end]
    }

    /// The position of a byte in characters from 1.
    pub fn position_of_byte(&self, at: usize) -> u32 {
        u32::try_from(self.text[..at].chars().count() + 1).unwrap_or(0)
    }

    /// The line of a location, and its column from 0.
    fn line(&self, location: Location) -> Option<(Line, usize)> {
        let number = usize::try_from(location.line.checked_sub(1)?).ok()?;
        let column = usize::try_from(location.column.saturating_sub(1)).ok()?;
        Some((*self.lines.get(number)?, column))
    }

    /// The end of a line, numbered from 1: the start of the next one.
    fn line_end(&self, number: u64) -> Line {
        usize::try_from(number).ok().and_then(|number| self.lines.get(number)).copied().unwrap_or(self.end)
    }
}

/// An unquoted word.
pub(super) fn word(token: &Token) -> Option<&str> {
    match token {
        Token::Word(Word { value, quote_style: None, .. }) => Some(value),
        _ => None,
    }
}

/// The keyword that a token is. A quoted word is none.
pub(super) fn keyword(token: &Token) -> Keyword {
    match token {
        Token::Word(word) => word.keyword,
        _ => Keyword::NoKeyword,
    }
}

/// Whether a token is a comparison.
pub(super) fn is_comparison(token: &Token) -> bool {
    matches!(token, Token::Eq | Token::Neq | Token::Lt | Token::LtEq | Token::Gt | Token::GtEq)
}

/// The value of a string literal that can continue on another line.
pub(super) fn string_of(token: &Token) -> Option<&String> {
    match token {
        Token::SingleQuotedString(value)
        | Token::EscapedStringLiteral(value)
        | Token::UnicodeStringLiteral(value)
        | Token::NationalStringLiteral(value)
        | Token::HexStringLiteral(value)
        | Token::SingleQuotedByteStringLiteral(value) => Some(value),
        _ => None,
    }
}

/// 42601 at a token, in PostgreSQL's wording.
pub(super) fn syntax_error(text: &SourceText, found: &TokenWithSpan) -> SqlError {
    if found.token == Token::EOF || found.span.start.line == 0 {
        return end_of_input(text);
    }
    let message = format!("syntax error at or near \"{}\"", text.source(found.span));
    SqlError::new(SqlState::SYNTAX_ERROR, message).at(text.position(found.span.start))
}

/// 42601 at the end of the text.
pub(super) fn end_of_input(text: &SourceText) -> SqlError {
    let end = text.position_of_byte(text.as_str().len());
    SqlError::new(SqlState::SYNTAX_ERROR, "syntax error at end of input").at(end)
}

/// The location of an expression's first token: that of its leftmost part, found without walking the rest.
pub fn start_of(mut expr: &Expr) -> Location {
    loop {
        expr = match expr {
            Expr::BinaryOp { left, .. } => left,
            Expr::Nested(inner)
            | Expr::IsNull(inner)
            | Expr::IsNotNull(inner)
            | Expr::IsTrue(inner)
            | Expr::IsNotTrue(inner)
            | Expr::IsFalse(inner)
            | Expr::IsNotFalse(inner)
            | Expr::IsUnknown(inner)
            | Expr::IsNotUnknown(inner)
            | Expr::IsDistinctFrom(inner, _)
            | Expr::IsNotDistinctFrom(inner, _) => inner,
            Expr::UnaryOp { expr, .. }
            | Expr::Cast { expr, .. }
            | Expr::Between { expr, .. }
            | Expr::InList { expr, .. }
            | Expr::Like { expr, .. }
            | Expr::ILike { expr, .. }
            | Expr::Collate { expr, .. } => expr,
            Expr::Tuple(items) => match items.first() {
                Some(first) => first,
                None => return NO_LOCATION,
            },
            Expr::Function(call) => return call.name.span().start,
            Expr::Case { case_token, .. } => return case_token.0.span.start,
            other => return other.span().start,
        };
    }
}

/// The location of a query's first token.
pub fn query_start(query: &Query) -> Location {
    match &*query.body {
        SetExpr::Select(select) => select.select_token.0.span.start,
        SetExpr::Values(values) => values.rows.first().map_or(NO_LOCATION, |row| row.opening_token.0.span.start),
        SetExpr::Query(inner) => query_start(inner),
        SetExpr::SetOperation { left, .. } => match &**left {
            SetExpr::Select(select) => select.select_token.0.span.start,
            _ => NO_LOCATION,
        },
        _ => NO_LOCATION,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(line: u64, column: u64) -> Location {
        Location { line, column }
    }

    #[test]
    fn locations_are_converted_on_lines_of_any_characters() {
        let text = SourceText::new("abc\näöx\n\nlast");
        assert_eq!([text.offset(at(1, 2)), text.offset(at(2, 3)), text.offset(at(4, 1))], [Some(1), Some(8), Some(11)]);
        assert_eq!([text.position(at(1, 2)), text.position(at(2, 3)), text.position(at(4, 1))], [2, 7, 10]);
        assert_eq!(text.source(Span { start: at(2, 1), end: at(2, 3) }), "äö");
        assert_eq!((text.offset(at(0, 0)), text.position(at(0, 0))), (None, 0));
        assert_eq!(text.offset(at(9, 1)), None);
        assert_eq!(text.offset(at(4, 99)), Some(15));
        assert_eq!(text.position_of_byte(8), 7);
        assert_eq!(SourceText::new("").offset(at(1, 1)), Some(0));
    }
}

//! From statement text to syntax trees: sqlparser's PostgreSQL dialect, plus what it does not parse.
//!
//! The text is split into tokens once; [`prepare`] edits the few statements whose PostgreSQL spelling the dialect
//! lacks, [`check_depth`] refuses what would nest too deep for the recursive walks that follow (the parser builds
//! operator chains iteratively, so its own limit does not see them), then the parser runs statement by statement.
//! Errors are 42601 in PostgreSQL's words, with a position in characters.

use std::sync::Arc;

use sqlparser::ast::{Expr, Spanned, Statement};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Location, Span, Token, TokenWithSpan, Tokenizer, TokenizerError};

use crate::error::SqlError;
use crate::types::codes;

mod dialect;
mod prepare;

/// Longest query string, in bytes: its tokens take some twenty times as much memory.
const MAX_TEXT: usize = 8 << 20;
/// Deepest nesting of parentheses and the like that the parser follows.
const MAX_NESTING: usize = 100;
/// Most operators of one chain, AND and OR apart: the tree of `a + b + c ...` is as deep as it is long.
const MAX_CHAIN: usize = 500;
/// Most ANDs and ORs of one chain; the binder flattens these, so that only the syntax tree itself is deep.
const MAX_LOGICAL: usize = 4000;

/// The location of what has none.
pub const NOWHERE: Location = Location { line: 0, column: 0 };

/// One statement of a query string.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// Its syntax tree.
    pub tree: Statement,
    /// The whole query string, for positions in errors: sqlparser's locations are lines and columns of it.
    pub text: Arc<str>,
}

impl Parsed {
    /// The position, in characters from 1, of a location of the parser; 0 for an unknown one.
    pub fn position(&self, location: Location) -> u32 {
        position(&self.text, location)
    }
}

/// Splits and parses a query string. Empty statements and comments vanish; a syntax error has 42601 and its position.
/// Text beyond 8 MiB is 54000, nesting beyond what the walks over the tree can follow 54001.
pub fn parse(sql: &str) -> Result<Vec<Parsed>, SqlError> {
    if sql.len() > MAX_TEXT {
        let message = format!("query string of {} bytes exceeds the limit of {MAX_TEXT}", sql.len());
        return Err(SqlError::new(codes::PROGRAM_LIMIT_EXCEEDED, message));
    }
    let dialect = dialect::CortadoDialect;
    let mut tokens = Vec::new();
    let split = Tokenizer::new(&dialect, sql).tokenize_with_location_into_buf(&mut tokens);
    split.map_err(|error| tokenizer_error(sql, &error, tokens.last()))?;
    check_depth(&tokens)?;
    let (tokens, ready) = prepare::prepare(sql, tokens)?;
    let text: Arc<str> = sql.into();
    let mut ready = ready.into_iter().peekable();
    let mut parser = Parser::new(&dialect).with_recursion_limit(3 * MAX_NESTING).with_tokens_with_locations(tokens);
    let mut statements = Vec::new();
    loop {
        while parser.consume_token(&Token::SemiColon) {}
        // Statements that the parser does not know were cut out together with their tokens; each stands before the next
        // one parsed.
        let here = parser.peek_token_ref();
        let at_end = here.token == Token::EOF;
        let here = here.span.start;
        while let Some((_, tree)) = ready.next_if(|(before, _)| at_end || *before < here) {
            statements.push(Parsed { tree, text: text.clone() });
        }
        if at_end {
            return Ok(statements);
        }
        let tree = parser.parse_statement().map_err(|e| parser_error(sql, &parser, &e))?;
        let next = parser.peek_token_ref();
        if !matches!(next.token, Token::SemiColon | Token::EOF) {
            return Err(syntax_error(sql, next));
        }
        statements.push(Parsed { tree, text: text.clone() });
    }
}

/// The position of a location in a text, in characters from 1; 0 for an unknown one.
pub fn position(text: &str, location: Location) -> u32 {
    match offset(text, location) {
        Some(bytes) => u32::try_from(text[..bytes].chars().count() + 1).unwrap_or(0),
        None => 0,
    }
}

/// The byte at which a location lies.
pub fn offset(text: &str, location: Location) -> Option<usize> {
    if location.line == 0 {
        return None;
    }
    let lines_before = usize::try_from(location.line - 1).ok()?;
    let line_start = match lines_before {
        0 => 0,
        n => text.match_indices('\n').nth(n - 1)?.0 + 1,
    };
    let column = usize::try_from(location.column.saturating_sub(1)).ok()?;
    let line = &text[line_start..];
    Some(line_start + line.char_indices().nth(column).map_or(line.len(), |(at, _)| at))
}

/// The source text of a span.
pub fn source(text: &str, span: Span) -> &str {
    match (offset(text, span.start), offset(text, span.end)) {
        (Some(start), Some(end)) if start <= end => &text[start..end],
        _ => "",
    }
}

/// 42601 at a token, in PostgreSQL's words.
fn syntax_error(sql: &str, found: &TokenWithSpan) -> SqlError {
    if found.token == Token::EOF || found.span.start.line == 0 {
        return end_of_input(sql);
    }
    let message = format!("syntax error at or near \"{}\"", source(sql, found.span));
    SqlError::new(codes::SYNTAX_ERROR, message).at(position(sql, found.span.start))
}

fn end_of_input(sql: &str) -> SqlError {
    let end = u32::try_from(sql.chars().count() + 1).unwrap_or(0);
    SqlError::new(codes::SYNTAX_ERROR, "syntax error at end of input").at(end)
}

/// The parser says where it stopped only at the end of its message; failing that, it stands on the token.
fn parser_error(sql: &str, parser: &Parser<'_>, error: &ParserError) -> SqlError {
    let message = match error {
        ParserError::RecursionLimitExceeded => return too_deep(),
        ParserError::ParserError(message) | ParserError::TokenizerError(message) => message,
    };
    if message.ends_with("found: EOF") {
        return end_of_input(sql);
    }
    if let Some(location) = trailing_location(message) {
        let start = offset(sql, location).unwrap_or(sql.len());
        let token = token_at(&sql[start..]);
        if token.is_empty() {
            return end_of_input(sql);
        }
        let message = format!("syntax error at or near \"{token}\"");
        return SqlError::new(codes::SYNTAX_ERROR, message).at(position(sql, location));
    }
    syntax_error(sql, parser.peek_token_ref())
}

/// Reads ` at Line: 1, Column: 8` off the end of a message.
fn trailing_location(message: &str) -> Option<Location> {
    let (_, tail) = message.rsplit_once(" at Line: ")?;
    let (line, column) = tail.split_once(", Column: ")?;
    Some(Location { line: line.parse().ok()?, column: column.parse().ok()? })
}

/// Where an expression begins: at its leftmost part, found without walking over the rest.
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
                None => return NOWHERE,
            },
            Expr::Function(call) => return call.name.span().start,
            Expr::Case { case_token, .. } => return case_token.0.span.start,
            other => return other.span().start,
        };
    }
}

/// The first token of a text, as written.
fn token_at(text: &str) -> &str {
    let dialect = dialect::CortadoDialect;
    // A token seldom is longer than this; the whole rest is tried only when the beginning alone does not make one.
    let short = text.char_indices().nth(256).map_or(text.len(), |(at, _)| at);
    for part in [&text[..short], text] {
        if let Ok(tokens) = Tokenizer::new(&dialect, part).tokenize_with_location()
            && let Some(first) = tokens.first()
        {
            return source(part, first.span);
        }
    }
    text
}

/// What the tokenizer refuses is something without its end, or a stray character; it begins behind the last token.
fn tokenizer_error(sql: &str, error: &TokenizerError, last: Option<&TokenWithSpan>) -> SqlError {
    let location = last.map_or(Location { line: 1, column: 1 }, |token| token.span.end);
    let start = offset(sql, location).unwrap_or(sql.len());
    let rest = &sql[start..];
    let kind = error.message.to_ascii_lowercase();
    let what = if kind.contains("comment") {
        "unterminated /* comment"
    } else if kind.contains("dollar") {
        "unterminated dollar-quoted string"
    } else if kind.contains("close delimiter") {
        "unterminated quoted identifier"
    } else if kind.contains("unterminated") {
        "unterminated quoted string"
    } else {
        "syntax error"
    };
    let message = format!("{what} at or near \"{rest}\"");
    SqlError::new(codes::SYNTAX_ERROR, message).at(position(sql, location))
}

fn too_deep() -> SqlError {
    SqlError::new(codes::STATEMENT_TOO_COMPLEX, "stack depth limit exceeded")
        .hint("Simplify the statement: it nests too deep, or chains too many operators.")
}

/// How long the operator chains of one pair of parentheses have grown.
#[derive(Clone, Copy, Default)]
struct Chain {
    logical: usize,
    other: usize,
}

/// Bounds the depth that the syntax tree can reach, from the tokens alone.
fn check_depth(tokens: &[TokenWithSpan]) -> Result<(), SqlError> {
    let mut outer: Vec<Chain> = Vec::new();
    let mut depth_outside = 0usize;
    let mut chain = Chain::default();
    for token in tokens {
        match &token.token {
            Token::LParen | Token::LBracket => {
                chain.other += 1;
                depth_outside += chain.logical + chain.other;
                outer.push(chain);
                chain = Chain::default();
            }
            Token::RParen | Token::RBracket => {
                if let Some(up) = outer.pop() {
                    depth_outside = depth_outside.saturating_sub(up.logical + up.other);
                    chain = up;
                }
            }
            Token::Comma | Token::SemiColon => chain = Chain::default(),
            Token::Word(word) if word.quote_style.is_none() => match word.keyword {
                Keyword::AND | Keyword::OR => chain = Chain { logical: chain.logical + 1, other: 0 },
                Keyword::IS
                | Keyword::NOT
                | Keyword::LIKE
                | Keyword::ILIKE
                | Keyword::SIMILAR
                | Keyword::IN
                | Keyword::BETWEEN
                | Keyword::COLLATE
                | Keyword::AT
                | Keyword::OVERLAPS
                | Keyword::NOTNULL
                | Keyword::UNION
                | Keyword::INTERSECT
                | Keyword::EXCEPT => chain.other += 1,
                _ => {}
            },
            token if is_operator(token) => chain.other += 1,
            _ => {}
        }
        let deep = outer.len() > MAX_NESTING
            || chain.other > MAX_CHAIN
            || depth_outside + chain.logical + chain.other > MAX_LOGICAL;
        if deep {
            return Err(too_deep());
        }
    }
    Ok(())
}

/// Whether a token is, or may be, an operator symbol.
fn is_operator(token: &Token) -> bool {
    !matches!(
        token,
        Token::EOF
            | Token::Word(_)
            | Token::Number(..)
            | Token::Char(_)
            | Token::SingleQuotedString(_)
            | Token::DoubleQuotedString(_)
            | Token::DollarQuotedString(_)
            | Token::NationalStringLiteral(_)
            | Token::EscapedStringLiteral(_)
            | Token::UnicodeStringLiteral(_)
            | Token::HexStringLiteral(_)
            | Token::SingleQuotedByteStringLiteral(_)
            | Token::Whitespace(_)
            | Token::Period
            | Token::Placeholder(_)
    )
}

#[cfg(test)]
mod tests;

//! The grammar of JSON. One parser serves every reader: a [`Build`] makes the values.
//!
//! The parser keeps its own stack, so a deep text costs memory but no stack of the thread.

use std::borrow::Cow;

use super::lexer::{Lexer, Token, invalid};
use crate::error::ValueError;
use crate::sqlstate::SqlState;

/// The deepest nesting of arrays and objects. It keeps the recursion over a value within a small stack. PostgreSQL's
/// bound follows from `max_stack_depth` and is near 14000 with its default.
pub const MAX_DEPTH: usize = 2048;

/// Makes values of the parts of a text. `span` is the text of a part.
pub(super) trait Build<'a> {
    type Value;
    /// Whether strings are unescaped.
    const UNESCAPE: bool;

    fn null(&self, span: &'a str) -> Self::Value;
    fn bool(&self, value: bool, span: &'a str) -> Self::Value;
    fn number(&self, span: &'a str) -> Result<Self::Value, ValueError>;
    fn string(&self, value: Cow<'a, str>, span: &'a str) -> Result<Self::Value, ValueError>;
    fn array(&self, elements: Vec<Self::Value>, span: &'a str) -> Self::Value;
    /// The members come in the order of the text, with duplicates.
    fn object(&self, members: Vec<(Cow<'a, str>, Self::Value)>, span: &'a str) -> Result<Self::Value, ValueError>;
}

/// An array or object that is not complete.
struct Open<'a, V> {
    start: usize,
    content: Content<'a, V>,
}

enum Content<'a, V> {
    Array(Vec<V>),
    Object { members: Vec<(Cow<'a, str>, V)>, key: Cow<'a, str> },
}

/// 54001 for a value that is nested too deep.
pub(super) fn too_deep() -> ValueError {
    ValueError::new(SqlState::STATEMENT_TOO_COMPLEX, "stack depth limit exceeded").with_hint(
        "Increase the configuration parameter \"max_stack_depth\" (currently 2048kB), after ensuring the platform's \
         stack depth limit is adequate.",
    )
}

/// Parses a whole text. 22P02 or 22P05 as PostgreSQL says, 54001 from [`MAX_DEPTH`] on.
pub(super) fn parse<'a, B: Build<'a>>(text: &'a str, build: &B) -> Result<B::Value, ValueError> {
    let mut lexer = Lexer::new(text, B::UNESCAPE);
    let mut stack: Vec<Open<'a, B::Value>> = Vec::new();
    let mut token = lexer.advance()?;
    loop {
        let mut complete = match begin(&mut lexer, token, build, stack.len())? {
            Step::Closed(value) => value,
            Step::More(open, next) => {
                stack.push(open);
                token = next;
                continue;
            }
        };
        loop {
            let next = lexer.advance()?;
            let Some(open) = stack.pop() else {
                return match next {
                    Token::End => Ok(complete),
                    _ => Err(unexpected(&lexer, next, "end of input")),
                };
            };
            match add(&mut lexer, next, open, complete, build)? {
                Step::Closed(value) => complete = value,
                Step::More(open, next) => {
                    stack.push(open);
                    token = next;
                    break;
                }
            }
        }
    }
}

/// The parser's state after a token.
enum Step<'a, V> {
    /// A value is complete.
    Closed(V),
    /// A container is open, and its next value begins at this token.
    More(Open<'a, V>, Token),
}

/// Begins a value inside of `depth` containers.
fn begin<'a, B: Build<'a>>(
    lexer: &mut Lexer<'a>,
    token: Token,
    build: &B,
    depth: usize,
) -> Result<Step<'a, B::Value>, ValueError> {
    let start = lexer.start();
    let content = match token {
        Token::Null => return Ok(Step::Closed(build.null(lexer.lexeme()))),
        Token::True => return Ok(Step::Closed(build.bool(true, lexer.lexeme()))),
        Token::False => return Ok(Step::Closed(build.bool(false, lexer.lexeme()))),
        Token::Number => return build.number(lexer.lexeme()).map(Step::Closed),
        Token::String => {
            let value = lexer.take_string();
            return build.string(value, lexer.lexeme()).map(Step::Closed);
        }
        Token::ArrayStart | Token::ObjectStart if depth >= MAX_DEPTH => return Err(too_deep()),
        Token::ArrayStart => {
            let first = lexer.advance()?;
            if first == Token::ArrayEnd {
                return Ok(Step::Closed(build.array(Vec::new(), lexer.slice(start, lexer.start() + 1))));
            }
            return Ok(Step::More(Open { start, content: Content::Array(Vec::new()) }, first));
        }
        Token::ObjectStart => match lexer.advance()? {
            Token::ObjectEnd => {
                let span = lexer.slice(start, lexer.start() + 1);
                return build.object(Vec::new(), span).map(Step::Closed);
            }
            Token::String => Content::Object { members: Vec::new(), key: key(lexer)? },
            other => return Err(unexpected(lexer, other, "string or \"}\"")),
        },
        other => return Err(unexpected(lexer, other, "JSON value")),
    };
    let first = lexer.advance()?;
    Ok(Step::More(Open { start, content }, first))
}

/// The key on which the lexer stands. Moves to the colon after it.
fn key<'a>(lexer: &mut Lexer<'a>) -> Result<Cow<'a, str>, ValueError> {
    let key = lexer.take_string();
    match lexer.advance()? {
        Token::Colon => Ok(key),
        other => Err(unexpected(lexer, other, "\":\"")),
    }
}

/// Adds a value to its container. `next` is the token after the value.
fn add<'a, B: Build<'a>>(
    lexer: &mut Lexer<'a>,
    next: Token,
    open: Open<'a, B::Value>,
    value: B::Value,
    build: &B,
) -> Result<Step<'a, B::Value>, ValueError> {
    let Open { start, content } = open;
    let end = lexer.start() + 1;
    let content = match content {
        Content::Array(mut elements) => {
            elements.push(value);
            match next {
                Token::Comma => Content::Array(elements),
                Token::ArrayEnd => return Ok(Step::Closed(build.array(elements, lexer.slice(start, end)))),
                other => return Err(unexpected(lexer, other, "\",\" or \"]\"")),
            }
        }
        Content::Object { mut members, key: name } => {
            members.push((name, value));
            match next {
                Token::Comma => match lexer.advance()? {
                    Token::String => Content::Object { members, key: key(lexer)? },
                    other => return Err(unexpected(lexer, other, "string")),
                },
                Token::ObjectEnd => return build.object(members, lexer.slice(start, end)).map(Step::Closed),
                other => return Err(unexpected(lexer, other, "\",\" or \"}\"")),
            }
        }
    };
    let token = lexer.advance()?;
    Ok(Step::More(Open { start, content }, token))
}

fn unexpected(lexer: &Lexer<'_>, token: Token, wanted: &str) -> ValueError {
    match token {
        Token::End => invalid("The input string ended unexpectedly."),
        _ => invalid(format!("Expected {wanted}, but found \"{}\".", lexer.lexeme())),
    }
}

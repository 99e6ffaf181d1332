//! Converts tokens where the parser's tokenizer differs from PostgreSQL's:
//!
//! - strings separated by a line break are one string; without the line break, and after AS, a string is a syntax
//!   error;
//! - `IS [NOT] DISTINCT FROM` becomes one operator token, since the parser would take all that follows as its operand;
//! - `ISNULL` becomes `IS NULL`, and `==` an unknown operator; so does what PostgreSQL takes for one ([`operators`]);
//! - `ALTER VIEW` at the beginning of a statement becomes `ALTER TABLE`, since the parser lacks PostgreSQL's forms of
//!   it; the binder tells the two apart by the text;
//! - `USING <` and `USING >` of ORDER BY become ASC and DESC, also as `USING OPERATOR(pg_catalog.<)`;
//! - `U&'...'` with UESCAPE and `U&"..."` are decoded ([`unicode`]);
//! - letters directly after a number are a syntax error, and so are `1_000`, `0x1F`, `$1a` and `""`.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Location, Span, Token, TokenWithSpan, Whitespace};

use super::edits::{Edit, Edits};
use super::text::{SourceText, string_of, syntax_error, word};
use super::{operators, unicode};
use crate::error::{SqlError, SqlState};

const DISTINCT: &str = "IS DISTINCT FROM";
const NOT_DISTINCT: &str = "IS NOT DISTINCT FROM";

/// Whether an operator's text is that of `IS DISTINCT FROM` (`Some(false)`) or `IS NOT DISTINCT FROM` (`Some(true)`).
/// No symbolic operator has such a text.
pub(crate) fn is_distinct(operator: &str) -> Option<bool> {
    match operator {
        DISTINCT => Some(false),
        NOT_DISTINCT => Some(true),
        _ => None,
    }
}

/// Normalizes the tokens of a query string.
pub(super) fn normalize(
    text: &SourceText,
    tokens: Vec<TokenWithSpan>,
    edits: Edits,
) -> Result<Vec<TokenWithSpan>, SqlError> {
    let mut tokens = if edits.has(Edit::IsNull) { with_is_null(tokens) } else { tokens };
    if edits.has(Edit::Operators) {
        operators::joined(text, &mut tokens);
    }
    if !edits.has(Edit::Normalize) {
        return Ok(tokens);
    }
    // Edits in place: there may be many tokens, and no edit needs more of them.
    let mut kept = 0;
    for at in 0..tokens.len() {
        let blank = TokenWithSpan { token: Token::EOF, span: Span::empty() };
        let mut token = std::mem::replace(&mut tokens[at], blank);
        let (before, behind) = tokens.split_at_mut(at + 1);
        let before = &mut before[..kept];
        match &token.token {
            Token::Whitespace(_) => {}
            Token::Word(found) if found.quote_style.is_none() => match found.keyword {
                Keyword::VIEW if begins_alter(before) => token.token = Token::make_keyword("TABLE"),
                Keyword::FROM => {
                    check_trailing_junk(text, before, &token)?;
                    kept = join_distinct(before, &mut token);
                }
                _ if follows_unicode_text(before, &found.value) => {
                    return Err(unsupported(text, "UESCAPE behind a string of several lines", &token));
                }
                _ => check_trailing_junk(text, before, &token)?,
            },
            Token::Word(found) => {
                let is_empty = found.value.is_empty();
                if let Some(stays) = unicode::read_name(text, before, &mut token, behind)? {
                    kept = stays;
                } else if is_empty {
                    return Err(at_or_near(text, "zero-length delimited identifier", token.span));
                }
            }
            found if operators::may_be_operator(found) && join_using(text, before, &token)? => continue,
            Token::RParen => {
                if let Some(ordered) = order_by_operator(text, before)? {
                    kept = ordered;
                    continue;
                }
            }
            Token::Number(digits, long) if *long || digits.contains('_') => return Err(junk(text, token.span)),
            Token::HexStringLiteral(_) if text.source(token.span).starts_with('0') => {
                return Err(junk(text, token.span));
            }
            Token::Placeholder(name) => check_parameter(text, name, token.span)?,
            Token::DoubleEq => token.token = Token::CustomBinaryOperator("==".to_owned()),
            other if string_of(other).is_some() => {
                if matches!(other, Token::UnicodeStringLiteral(_)) {
                    unicode::read_string(text, &mut token, behind)?;
                }
                if let Some(joined) = join_string(text, before, &token)? {
                    kept = joined;
                    continue;
                }
            }
            _ => {}
        }
        tokens[kept] = token;
        kept += 1;
    }
    tokens.truncate(kept);
    Ok(tokens)
}

/// Whether the tokens end with an ALTER that begins a statement.
fn begins_alter(before: &[TokenWithSpan]) -> bool {
    let Some((at, last)) = last_token(before) else { return false };
    let is_alter = matches!(&last.token, Token::Word(word) if word.keyword == Keyword::ALTER);
    is_alter && last_token(&before[..at]).is_none_or(|(_, token)| token.token == Token::SemiColon)
}

/// The last token other than white space, with its index.
fn last_token(tokens: &[TokenWithSpan]) -> Option<(usize, &TokenWithSpan)> {
    tokens.iter().enumerate().rev().find(|(_, t)| !matches!(t.token, Token::Whitespace(_)))
}

/// Splits `ISNULL` into two words unless it is a name.
fn with_is_null(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let is_isnull = |token: &TokenWithSpan| word(&token.token).is_some_and(|w| w.eq_ignore_ascii_case("isnull"));
    let mut out: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len() + 1);
    let mut rest = tokens.into_iter().peekable();
    while let Some(token) = rest.next() {
        let previous = last_token(&out).map(|(_, t)| &t.token);
        let named = matches!(previous, Some(Token::Period))
            || previous.and_then(word).is_some_and(|w| w.eq_ignore_ascii_case("as"))
            || rest.peek().is_some_and(|t| t.token == Token::LParen);
        if is_isnull(&token) && !named {
            out.push(TokenWithSpan { token: Token::make_keyword("IS"), span: token.span });
            out.push(TokenWithSpan { token: Token::make_keyword("NULL"), span: token.span });
        } else {
            out.push(token);
        }
    }
    out
}

/// Turns this FROM into the single token of `IS [NOT] DISTINCT FROM`, if these words precede it. Returns how many
/// tokens stay before it.
fn join_distinct(before: &[TokenWithSpan], from: &mut TokenWithSpan) -> usize {
    let expect = |end: usize, keyword: Keyword| {
        let (at, token) = last_token(&before[..end])?;
        matches!(&token.token, Token::Word(word) if word.keyword == keyword).then_some(at)
    };
    let Some(distinct) = expect(before.len(), Keyword::DISTINCT) else { return before.len() };
    let not = expect(distinct, Keyword::NOT);
    let Some(is) = expect(not.unwrap_or(distinct), Keyword::IS) else { return before.len() };
    let operator = if not.is_some() { NOT_DISTINCT } else { DISTINCT };
    from.token = Token::CustomBinaryOperator(operator.to_owned());
    from.span = Span { start: before[is].span.start, end: from.span.end };
    is
}

/// Turns `USING <` of ORDER BY into ASC, and `USING >` into DESC. Returns whether that was there. 42809 for an operator
/// that is no order.
fn join_using(text: &SourceText, before: &mut [TokenWithSpan], operator: &TokenWithSpan) -> Result<bool, SqlError> {
    let Some((at, last)) = last_token(before) else { return Ok(false) };
    let is_using = matches!(&last.token, Token::Word(word) if word.keyword == Keyword::USING);
    if !is_using || !operators::consists_of_them(text.source(operator.span)) || !is_ordered(&before[..at]) {
        return Ok(false);
    }
    before[at].token = order_of(text, &operator.token, operator.span)?;
    Ok(true)
}

/// Whether a statement has ORDER so far. Without it, USING is that of ALTER COLUMN ... TYPE, and has an expression.
fn is_ordered(before: &[TokenWithSpan]) -> bool {
    let mut of_statement = before.iter().rev().take_while(|token| token.token != Token::SemiColon);
    of_statement.any(|token| matches!(&token.token, Token::Word(word) if word.keyword == Keyword::ORDER))
}

/// ASC or DESC for an operator. 42809 at a place for one that is no order.
fn order_of(text: &SourceText, operator: &Token, at: Span) -> Result<Token, SqlError> {
    match operator {
        Token::Lt => Ok(Token::make_keyword("ASC")),
        Token::Gt => Ok(Token::make_keyword("DESC")),
        Token::CustomBinaryOperator(name) if name == "~<~" || name == "~>~" => {
            let message = format!("ORDER BY USING {name} is not supported yet");
            Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message).at(text.position(at.start)))
        }
        other => {
            let message = format!("operator {other} is not a valid ordering operator");
            let error = SqlError::new(SqlState::WRONG_OBJECT_TYPE, message).at(text.position(at.start));
            Err(error.hint("Ordering operators must be \"<\" or \">\" members of btree operator families."))
        }
    }
}

/// Turns `USING OPERATOR(pg_catalog.<`, at a closing parenthesis, into ASC or DESC. Returns how many tokens there are
/// then; `None` if that is not there.
fn order_by_operator(text: &SourceText, before: &mut [TokenWithSpan]) -> Result<Option<usize>, SqlError> {
    let is = |place: Option<&(usize, &TokenWithSpan)>, keyword: Keyword| {
        place.is_some_and(|(_, found)| matches!(&found.token, Token::Word(word) if word.keyword == keyword))
    };
    let mut solid = before.iter().enumerate().rev().filter(|(_, found)| !matches!(found.token, Token::Whitespace(_)));
    let Some((_, operator)) = solid.next() else { return Ok(None) };
    if !operators::may_be_operator(&operator.token) {
        return Ok(None);
    }
    let mut next = solid.next();
    let mut schema = None;
    if next.is_some_and(|(_, found)| found.token == Token::Period) {
        schema = solid.next().map(|(_, found)| found);
        next = solid.next();
    }
    let (name, using) = (solid.next(), solid.next());
    let opens = next.is_some_and(|(_, found)| found.token == Token::LParen);
    let (Some((_, name)), Some((using, _)), true) =
        (name, using, opens && is(name.as_ref(), Keyword::OPERATOR) && is(using.as_ref(), Keyword::USING))
    else {
        return Ok(None);
    };
    let is_known = |schema: &TokenWithSpan| match &schema.token {
        Token::Word(word) if word.quote_style.is_some() => word.value == "pg_catalog",
        token => word(token).is_some_and(|word| word.eq_ignore_ascii_case("pg_catalog")),
    };
    if let Some(schema) = schema.filter(|schema| !is_known(schema)) {
        return Err(unsupported(text, "an operator of another schema", schema));
    }
    let order = order_of(text, &operator.token, name.span)?;
    before[using].token = order;
    Ok(Some(using + 1))
}

/// Whether a word is UESCAPE behind `U&'...'`.
fn follows_unicode_text(before: &[TokenWithSpan], word: &str) -> bool {
    word.eq_ignore_ascii_case("uescape")
        && matches!(last_token(before), Some((_, TokenWithSpan { token: Token::UnicodeStringLiteral(_), .. })))
}

fn unsupported(text: &SourceText, what: &str, at: &TokenWithSpan) -> SqlError {
    let message = format!("{what} is not supported yet");
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message).at(text.position(at.span.start))
}

/// 42601 for a word directly after a number.
fn check_trailing_junk(text: &SourceText, before: &[TokenWithSpan], found: &TokenWithSpan) -> Result<(), SqlError> {
    match before.last() {
        Some(TokenWithSpan { token: Token::Number(..), span }) if span.end == found.span.start => {
            Err(junk(text, Span { start: span.start, end: found.span.end }))
        }
        _ => Ok(()),
    }
}

fn junk(text: &SourceText, span: Span) -> SqlError {
    at_or_near(text, "trailing junk after numeric literal", span)
}

/// 42601 for a parameter that is not `$` and a number.
fn check_parameter(text: &SourceText, name: &str, span: Span) -> Result<(), SqlError> {
    match name.strip_prefix('$') {
        Some(rest) if rest.is_empty() || rest.bytes().any(|byte| !byte.is_ascii_digit()) => {
            let is_number = rest.starts_with(|c: char| c.is_ascii_digit());
            if is_number {
                return Err(at_or_near(text, "trailing junk after parameter", span));
            }
            let end = Location { column: span.start.column + 1, ..span.start };
            Err(at_or_near(text, "syntax error", Span { start: span.start, end }))
        }
        _ => Ok(()),
    }
}

fn at_or_near(text: &SourceText, what: &str, span: Span) -> SqlError {
    let message = format!("{what} at or near \"{}\"", text.source(span));
    SqlError::new(SqlState::SYNTAX_ERROR, message).at(text.position(span.start))
}

/// Joins a string literal to the string before it. Returns the new number of tokens; `None` if it stands alone.
fn join_string(
    text: &SourceText,
    before: &mut [TokenWithSpan],
    found: &TokenWithSpan,
) -> Result<Option<usize>, SqlError> {
    let Some((at, previous)) = last_token(before) else { return Ok(None) };
    match &previous.token {
        token if string_of(token).is_some() => {}
        Token::DollarQuotedString(_) | Token::Number(..) | Token::Placeholder(_) => {
            return Err(syntax_error(text, found));
        }
        Token::Word(word) if word.keyword == Keyword::AS => return Err(syntax_error(text, found)),
        _ => return Ok(None),
    }
    let continues = before[at + 1..].iter().any(|t| match &t.token {
        Token::Whitespace(Whitespace::Newline) => true,
        Token::Whitespace(Whitespace::SingleLineComment { comment, .. }) => comment.ends_with(['\n', '\r']),
        _ => false,
    });
    let commented =
        before[at + 1..].iter().any(|t| matches!(t.token, Token::Whitespace(Whitespace::MultiLineComment(_))));
    let Token::SingleQuotedString(more) = &found.token else { return Err(syntax_error(text, found)) };
    if !continues || commented {
        return Err(syntax_error(text, found));
    }
    let previous = &mut before[at];
    previous.span.end = found.span.end;
    match &mut previous.token {
        // The first part decides about escapes in all parts, which the tokenizer did not know.
        Token::EscapedStringLiteral(_) | Token::UnicodeStringLiteral(_) if more.contains('\\') => {
            let message = "escapes in the continuation of a string are not supported yet";
            let position = text.position(found.span.start);
            Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message).at(position))
        }
        Token::SingleQuotedString(value)
        | Token::EscapedStringLiteral(value)
        | Token::UnicodeStringLiteral(value)
        | Token::NationalStringLiteral(value)
        | Token::HexStringLiteral(value)
        | Token::SingleQuotedByteStringLiteral(value) => {
            value.push_str(more);
            Ok(Some(at + 1))
        }
        _ => Ok(None),
    }
}

//! COMMENT: forms of it that the parser lacks. `COMMENT ON CONSTRAINT c ON [DOMAIN] s.t` becomes one on a column of
//! that name, behind a mark; a string with escapes becomes a plain one.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

use super::text::word;

/// The first part of the name of a constraint in a tree that is one of a comment on a column. No text of a client
/// contains it.
pub(crate) const CONSTRAINT: &str = "\0constraint";
/// The same for the constraint of a domain.
pub(crate) const DOMAIN_CONSTRAINT: &str = "\0domain";

/// Rewrites a statement that begins with COMMENT.
pub(super) fn rewritten(statement: &[TokenWithSpan]) -> Vec<TokenWithSpan> {
    let mut out: Vec<TokenWithSpan> = statement.iter().map(plain).collect();
    let words: Vec<usize> = (0..out.len()).filter(|at| !matches!(out[*at].token, Token::Whitespace(_))).collect();
    let is = |place: usize, wanted: &str| {
        words.get(place).and_then(|at| word(&out[*at].token)).is_some_and(|w| w.eq_ignore_ascii_case(wanted))
    };
    if !(is(1, "on") && is(2, "constraint") && is(4, "on")) {
        return out;
    }
    // A table may have the name `domain`.
    let is_domain = is(5, "domain") && !is(6, "is");
    let before = if is_domain { 5 } else { 4 };
    let (Some(kind), Some(name), Some(on)) = (words.get(2), words.get(3), words.get(before)) else { return out };
    // The name of the table or domain ends before IS.
    let Some(end) = (5..words.len()).find(|place| is(*place, "is")) else { return out };
    let Some(end) = words.get(end) else { return out };
    let span = out[*kind].span;
    let made = |token| TokenWithSpan { token, span };
    let value = if is_domain { DOMAIN_CONSTRAINT } else { CONSTRAINT };
    let mark = Word { value: value.to_owned(), quote_style: Some('"'), keyword: Keyword::NoKeyword };
    let mut replaced = vec![made(Token::make_keyword("COLUMN")), made(Token::Word(mark)), made(Token::Period)];
    replaced.extend(out[on + 1..*end].iter().filter(|t| !matches!(t.token, Token::Whitespace(_))).cloned());
    replaced.extend([made(Token::Period), out[*name].clone()]);
    out.splice(*kind..*end, replaced);
    out
}

fn plain(token: &TokenWithSpan) -> TokenWithSpan {
    match &token.token {
        Token::EscapedStringLiteral(text) | Token::UnicodeStringLiteral(text) | Token::NationalStringLiteral(text) => {
            TokenWithSpan { token: Token::SingleQuotedString(text.clone()), span: token.span }
        }
        Token::DollarQuotedString(text) => {
            TokenWithSpan { token: Token::SingleQuotedString(text.value.clone()), span: token.span }
        }
        _ => token.clone(),
    }
}

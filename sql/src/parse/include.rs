//! UNIQUE constraints as the parser lacks them: `UNIQUE (a) INCLUDE (b)`, and NULLS NOT DISTINCT of a column. The
//! parser knows INCLUDE of CREATE INDEX only.

use sqlparser::ast::{ColumnOption, Ident, IndexOption, KeyOrIndexDisplay, NullsDistinctOption, UniqueConstraint};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::text::word;

/// What the text of an option that stands for INCLUDE begins with. No text of a client contains it. A name follows each
/// time, behind a quote if it is quoted.
const MARK: char = '\0';

/// Puts a comment, which the parser knows as an option of a key, in the place of INCLUDE behind the columns of a
/// constraint.
pub(super) fn with_included(mut statement: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let solid: Vec<usize> =
        (0..statement.len()).filter(|at| !matches!(statement[*at].token, Token::Whitespace(_))).collect();
    let mut dropped = Vec::new();
    for (place, at) in solid.iter().enumerate() {
        let is_include = word(&statement[*at].token).is_some_and(|word| word.eq_ignore_ascii_case("include"));
        if !is_include || !follows_key(&statement, &solid[..place]) {
            continue;
        }
        let Some((text, end)) = list(&statement, &solid[place + 1..]) else { continue };
        let behind = &solid[place + 1..=place + end];
        if let [first, rest @ ..] = behind {
            statement[*at].token = Token::make_keyword("COMMENT");
            statement[*first].token = Token::SingleQuotedString(text);
            dropped.extend_from_slice(rest);
        }
    }
    if dropped.is_empty() {
        return statement;
    }
    let mut dropped = dropped.into_iter().peekable();
    let kept = statement.into_iter().enumerate().filter(|(at, _)| dropped.next_if_eq(at).is_none());
    kept.map(|(_, token)| token).collect()
}

/// Whether tokens end with the columns of a key constraint.
fn follows_key(statement: &[TokenWithSpan], solid: &[usize]) -> bool {
    let mut before = solid.iter().rev().map(|at| &statement[*at].token);
    if before.next() != Some(&Token::RParen) {
        return false;
    }
    let mut before = before.skip_while(|token| !matches!(token, Token::LParen | Token::RParen));
    let opens = before.next() == Some(&Token::LParen);
    let keyword = before.next().and_then(word).unwrap_or_default();
    opens && ["unique", "key", "distinct"].iter().any(|known| keyword.eq_ignore_ascii_case(known))
}

/// The text that stands for a list of names, and the number of its tokens.
fn list(statement: &[TokenWithSpan], solid: &[usize]) -> Option<(String, usize)> {
    let mut text = String::new();
    for (place, at) in solid.iter().enumerate() {
        match &statement[*at].token {
            Token::LParen if place == 0 => {}
            Token::Word(word) if place % 2 == 1 => {
                text.push(MARK);
                text.extend(word.quote_style.map(|_| '"'));
                text.push_str(&word.value);
            }
            Token::Comma if place > 0 && place % 2 == 0 => {}
            Token::RParen if place > 0 && place % 2 == 0 => return Some((text, place + 1)),
            _ => return None,
        }
    }
    None
}

/// The names of INCLUDE that an option stands for.
pub(crate) fn included(option: &IndexOption) -> Option<Vec<Ident>> {
    let IndexOption::Comment(text) = option else { return None };
    let names = text.strip_prefix(MARK)?.split(MARK).map(|name| match name.strip_prefix('"') {
        Some(quoted) => Ident::with_quote('"', quoted),
        None => Ident::new(name),
    });
    Some(names.collect())
}

/// Parses `UNIQUE NULLS [NOT] DISTINCT` of a column; `None` if something else follows.
pub(super) fn unique_column(parser: &mut Parser<'_>) -> Option<Result<Option<ColumnOption>, ParserError>> {
    let is_word = |at: usize, keyword: Keyword| {
        let token = &parser.peek_nth_token_ref(at).token;
        matches!(token, Token::Word(word) if word.keyword == keyword)
    };
    if !is_word(0, Keyword::UNIQUE) || !is_word(1, Keyword::NULLS) {
        return None;
    }
    let is_negated = is_word(2, Keyword::NOT);
    let words = if is_negated { 4 } else { 3 };
    if !is_word(words - 1, Keyword::DISTINCT) {
        return None;
    }
    (0..words).for_each(|_| parser.advance_token());
    let option = |characteristics| {
        Some(ColumnOption::Unique(UniqueConstraint {
            name: None,
            index_name: None,
            index_type_display: KeyOrIndexDisplay::None,
            index_type: None,
            columns: Vec::new(),
            index_options: Vec::new(),
            characteristics,
            nulls_distinct: match is_negated {
                true => NullsDistinctOption::NotDistinct,
                false => NullsDistinctOption::Distinct,
            },
        }))
    };
    Some(parser.parse_constraint_characteristics().map(option))
}

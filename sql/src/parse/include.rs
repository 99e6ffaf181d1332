//! Key constraints as the parser lacks them: `UNIQUE (a) INCLUDE (b) WITH (fillfactor = 70)`, and NULLS NOT DISTINCT of
//! a column. The parser knows INCLUDE and WITH of CREATE INDEX only.

use sqlparser::ast::{
    ColumnOption, Ident, IndexOption, KeyOrIndexDisplay, NullsDistinctOption, PrimaryKeyConstraint, UniqueConstraint,
};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::text::{SourceText, end_of_input, syntax_error, word};
use crate::error::SqlError;

/// What the text of an option that stands for INCLUDE begins with. No text of a client contains it. A name follows each
/// time, behind a quote if it is quoted.
const MARK: char = '\0';
/// What the text of an option that stands for WITH begins with, as no list of names does.
const WITH_MARK: &str = "\0\0";

/// The text that stands for an option, and the number of its tokens; `Err` for the place of a token that does not
/// belong there.
type Read = Result<(String, usize), usize>;

/// Puts comments, which the parser knows as options of a key, in the places of INCLUDE and WITH behind the columns of a
/// constraint. 42601 for what cannot follow these words.
pub(super) fn with_key_options(
    text: &SourceText,
    mut statement: Vec<TokenWithSpan>,
) -> Result<Vec<TokenWithSpan>, SqlError> {
    let solid: Vec<usize> =
        (0..statement.len()).filter(|at| !matches!(statement[*at].token, Token::Whitespace(_))).collect();
    let (mut dropped, mut place, mut end_of_include) = (Vec::new(), 0, None);
    while let Some(at) = solid.get(place).copied() {
        let is = |known: &str| word(&statement[at].token).is_some_and(|word| word.eq_ignore_ascii_case(known));
        let is_include = is("include") && follows_key(&statement, &solid[..place]);
        let is_with = is("with") && (end_of_include == Some(place) || follows_key(&statement, &solid[..place]));
        place += 1;
        if !is_include && !is_with {
            continue;
        }
        let rest = &solid[place..];
        let read = if is_include { names(&statement, rest) } else { parameters(&statement, rest) };
        let (option, count) = read.map_err(|at| match rest.get(at) {
            Some(at) => syntax_error(text, &statement[*at]),
            None => end_of_input(text),
        })?;
        if let [first, others @ ..] = &rest[..count] {
            statement[at].token = Token::make_keyword("COMMENT");
            statement[*first].token = Token::SingleQuotedString(option);
            dropped.extend_from_slice(others);
        }
        place += count;
        end_of_include = is_include.then_some(place);
    }
    let mut dropped = dropped.into_iter().peekable();
    let kept = statement.into_iter().enumerate().filter(|(at, _)| dropped.next_if_eq(at).is_none());
    Ok(kept.map(|(_, token)| token).collect())
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
    if keyword.eq_ignore_ascii_case("key") {
        return opens && before.next().and_then(word).is_some_and(|word| word.eq_ignore_ascii_case("primary"));
    }
    opens && ["unique", "distinct"].iter().any(|known| keyword.eq_ignore_ascii_case(known))
}

/// Reads `(a, b)`.
fn names(statement: &[TokenWithSpan], solid: &[usize]) -> Read {
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
            Token::RParen if place > 0 && place % 2 == 0 => return Ok((text, place + 1)),
            _ => return Err(place),
        }
    }
    Err(solid.len())
}

/// Reads `(a = 1, b)`: parameters, with values or without. Only the names count.
fn parameters(statement: &[TokenWithSpan], solid: &[usize]) -> Read {
    let token = |place: usize| solid.get(place).map(|at| &statement[*at].token);
    if token(0) != Some(&Token::LParen) {
        return Err(0);
    }
    let (mut text, mut place) = (WITH_MARK.to_owned(), 1);
    loop {
        let Some(Token::Word(name)) = token(place) else { return Err(place) };
        if text.len() > WITH_MARK.len() {
            text.push(MARK);
        }
        text.extend(name.quote_style.map(|_| '"'));
        text.push_str(&name.value);
        place += 1;
        if token(place) == Some(&Token::Eq) {
            place += 1;
            place += usize::from(matches!(token(place), Some(Token::Minus | Token::Plus)));
            match token(place) {
                Some(Token::Word(_) | Token::Number(..) | Token::SingleQuotedString(_)) => place += 1,
                _ => return Err(place),
            }
        }
        match token(place) {
            Some(Token::Comma) => place += 1,
            Some(Token::RParen) => return Ok((text, place + 1)),
            _ => return Err(place),
        }
    }
}

/// The names of INCLUDE that an option stands for.
pub(crate) fn included(option: &IndexOption) -> Option<Vec<Ident>> {
    let IndexOption::Comment(text) = option else { return None };
    text.strip_prefix(MARK).filter(|rest| !rest.starts_with(MARK)).map(idents)
}

/// The names of the storage parameters that an option stands for.
pub(crate) fn storage_parameters(option: &IndexOption) -> Option<Vec<Ident>> {
    let IndexOption::Comment(text) = option else { return None };
    text.strip_prefix(WITH_MARK).map(idents)
}

fn idents(names: &str) -> Vec<Ident> {
    let names = names.split(MARK).map(|name| match name.strip_prefix('"') {
        Some(quoted) => Ident::with_quote('"', quoted),
        None => Ident::new(name),
    });
    names.collect()
}

/// Parses `UNIQUE NULLS [NOT] DISTINCT` of a column, and keys of a column with WITH; `None` if something else follows.
pub(super) fn key_column(parser: &mut Parser<'_>) -> Option<Result<Option<ColumnOption>, ParserError>> {
    let is_word = |at: usize, keyword: Keyword| {
        let token = &parser.peek_nth_token_ref(at).token;
        matches!(token, Token::Word(word) if word.keyword == keyword)
    };
    let is_primary = is_word(0, Keyword::PRIMARY) && is_word(1, Keyword::KEY);
    let is_negated = is_word(2, Keyword::NOT);
    let has_nulls = is_word(1, Keyword::NULLS) && is_word(if is_negated { 3 } else { 2 }, Keyword::DISTINCT);
    let (words, nulls_distinct) = match (is_primary, is_word(0, Keyword::UNIQUE)) {
        (true, _) => (2, NullsDistinctOption::None),
        (_, true) if has_nulls && is_negated => (4, NullsDistinctOption::NotDistinct),
        (_, true) if has_nulls => (3, NullsDistinctOption::Distinct),
        (_, true) => (1, NullsDistinctOption::None),
        _ => return None,
    };
    if !has_nulls && !is_word(words, Keyword::WITH) {
        return None;
    }
    (0..words).for_each(|_| parser.advance_token());
    Some(key_behind_words(parser, is_primary, nulls_distinct))
}

/// Parses WITH and what follows the words of a column's key.
fn key_behind_words(
    parser: &mut Parser<'_>,
    is_primary: bool,
    nulls_distinct: NullsDistinctOption,
) -> Result<Option<ColumnOption>, ParserError> {
    let mut index_options = Vec::new();
    if parser.parse_keyword(Keyword::WITH) {
        index_options.push(IndexOption::Comment(parse_parameters(parser)?));
    }
    let characteristics = parser.parse_constraint_characteristics()?;
    Ok(Some(match is_primary {
        true => ColumnOption::PrimaryKey(PrimaryKeyConstraint {
            name: None,
            index_name: None,
            index_type: None,
            columns: Vec::new(),
            index_options,
            characteristics,
        }),
        false => ColumnOption::Unique(UniqueConstraint {
            name: None,
            index_name: None,
            index_type_display: KeyOrIndexDisplay::None,
            index_type: None,
            columns: Vec::new(),
            index_options,
            characteristics,
            nulls_distinct,
        }),
    }))
}

/// Parses `(a = 1, b)` as [`parameters`] reads it.
fn parse_parameters(parser: &mut Parser<'_>) -> Result<String, ParserError> {
    let mut list = Vec::new();
    while list.last().is_none_or(|last: &TokenWithSpan| !matches!(last.token, Token::RParen | Token::EOF)) {
        list.push(parser.next_token());
    }
    let solid: Vec<usize> = (0..list.len()).collect();
    match parameters(&list, &solid) {
        Ok((text, _)) => Ok(text),
        Err(at) => {
            let found = list.into_iter().nth(at);
            parser.expected("a storage parameter", found.unwrap_or_else(TokenWithSpan::new_eof))
        }
    }
}

//! LIMIT, OFFSET and FETCH behind FOR UPDATE: PostgreSQL takes both orders, the parser only the other one.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::text::keyword;

/// Puts LIMIT, OFFSET and FETCH before the locking clauses that they follow. White space is dropped.
pub(super) fn with_limits_first(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    tokens.retain(|found| !matches!(found.token, Token::Whitespace(_)));
    // What a limit contains is met after it has moved.
    for start in 0..tokens.len() {
        if let Some(limits) = end_of_locks(&tokens, start)
            && begins_limit(keyword_at(&tokens, limits))
            && let Some(end) = end_of_limits(&tokens, limits)
        {
            tokens[start..end].rotate_left(limits - start);
        }
    }
    tokens
}

fn keyword_at(tokens: &[TokenWithSpan], at: usize) -> Keyword {
    tokens.get(at).map_or(Keyword::NoKeyword, |found| keyword(&found.token))
}

fn begins_limit(keyword: Keyword) -> bool {
    matches!(keyword, Keyword::LIMIT | Keyword::OFFSET | Keyword::FETCH)
}

/// Where the locking clauses that begin at a place end; `None` if there is none.
fn end_of_locks(tokens: &[TokenWithSpan], start: usize) -> Option<usize> {
    let mut at = start;
    while keyword_at(tokens, at) == Keyword::FOR
        && matches!(keyword_at(tokens, at + 1), Keyword::UPDATE | Keyword::SHARE)
    {
        at += 2;
        if keyword_at(tokens, at) == Keyword::OF {
            at = end_of_names(tokens, at + 1);
        }
        at += match (keyword_at(tokens, at), keyword_at(tokens, at + 1)) {
            (Keyword::NOWAIT, _) => 1,
            (Keyword::SKIP, Keyword::LOCKED) => 2,
            _ => 0,
        };
    }
    (at > start).then_some(at)
}

/// Where a list of names ends.
fn end_of_names(tokens: &[TokenWithSpan], start: usize) -> usize {
    let mut at = start + 1;
    while matches!(tokens.get(at).map(|found| &found.token), Some(Token::Comma | Token::Period)) {
        at += 2;
    }
    at.min(tokens.len())
}

/// Where the limits that begin at a place end; `None` if a locking clause follows, which would be the second one.
fn end_of_limits(tokens: &[TokenWithSpan], start: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, found) in tokens.iter().enumerate().skip(start) {
        match &found.token {
            Token::LParen => depth += 1,
            Token::RParen if depth == 0 => return Some(at),
            Token::RParen => depth -= 1,
            Token::SemiColon | Token::EOF => return Some(at),
            Token::Word(word) if depth == 0 => match word.keyword {
                Keyword::FOR => return None,
                Keyword::ON | Keyword::RETURNING => return Some(at),
                Keyword::WITH if keyword_at(tokens, at + 1) != Keyword::TIES => return Some(at),
                _ => {}
            },
            _ => {}
        }
    }
    Some(tokens.len())
}

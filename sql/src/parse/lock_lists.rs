//! `FOR UPDATE OF a, b`: the parser takes one name, so each gets a clause of its own.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::text::keyword;

/// Repeats locking clauses for each name after OF. White space is dropped.
pub(super) fn with_single_names(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    tokens.retain(|found| !matches!(found.token, Token::Whitespace(_)));
    let (mut out, mut at) = (Vec::with_capacity(tokens.len()), 0);
    while let Some(found) = tokens.get(at) {
        match clause(&tokens, at) {
            Some(Clause { names, head, end, tail }) => {
                for name in names {
                    out.extend_from_slice(tokens.get(at..head).unwrap_or_default());
                    out.extend_from_slice(name);
                    out.extend_from_slice(tail);
                }
                at = end;
            }
            None => {
                out.push(found.clone());
                at += 1;
            }
        }
    }
    out
}

/// A locking clause of several names.
struct Clause<'t> {
    /// Where the names begin.
    head: usize,
    names: Vec<&'t [TokenWithSpan]>,
    /// NOWAIT or SKIP LOCKED.
    tail: &'t [TokenWithSpan],
    /// Where it ends.
    end: usize,
}

fn clause(tokens: &[TokenWithSpan], start: usize) -> Option<Clause<'_>> {
    let word = |at: usize| tokens.get(at).map_or(Keyword::NoKeyword, |found| keyword(&found.token));
    let mut at = start + 1;
    at += usize::from(word(at) == Keyword::NO);
    at += usize::from(word(at) == Keyword::KEY);
    let is_lock = matches!(word(at), Keyword::UPDATE | Keyword::SHARE) && word(at + 1) == Keyword::OF;
    if word(start) != Keyword::FOR || !is_lock {
        return None;
    }
    let head = at + 2;
    let (mut names, mut name, mut end) = (Vec::new(), head, head);
    loop {
        end += 1;
        match tokens.get(end).map(|found| &found.token) {
            Some(Token::Period) => end += 1,
            Some(Token::Comma) => {
                names.push(tokens.get(name..end)?);
                end += 1;
                name = end;
            }
            _ => break,
        }
    }
    if names.is_empty() {
        return None;
    }
    names.push(tokens.get(name..end)?);
    let tail = match (word(end), word(end + 1)) {
        (Keyword::NOWAIT, _) => 1,
        (Keyword::SKIP, Keyword::LOCKED) => 2,
        _ => 0,
    };
    Some(Clause { names, head, tail: tokens.get(end..end + tail)?, end: end + tail })
}

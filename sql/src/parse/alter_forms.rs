//! The forms of ALTER TABLE that PostgreSQL knows and the parser does not: they are 0A000. All else that the parser
//! refuses is 42601, at the first token that belongs to no form.

use crate::error::{SqlError, SqlState};
use crate::lexer::{self, Lexer, Spanned, Token};

/// What may follow the table. A word in brackets may be missing. `$name`, `$number` and `$list` stand for such tokens,
/// `...` for any. Where [`KNOWN`] is, the parser reads on.
const FORMS: [&str; 57] = [
    "set logged",
    "set unlogged",
    "set without cluster",
    "set without oids",
    "set tablespace $name",
    "set access method $name",
    "set schema $known",
    "owner to $known",
    "set $list",
    "reset $list",
    "cluster on $name",
    "inherit $name",
    "no inherit $name",
    "of $name",
    "not of",
    "options $list",
    "validate constraint $known",
    "replica identity $known",
    "attach partition $name default",
    "attach partition $name for values ...",
    "detach partition $name",
    "detach partition $name concurrently",
    "detach partition $name finalize",
    "enable always trigger $known",
    "enable always rule $known",
    "enable replica trigger $known",
    "enable replica rule $known",
    "enable row level security $known",
    "disable row level security $known",
    "force row level security $known",
    "no force row level security $known",
    "alter constraint $name ...",
    "alter [column] $name set statistics $number",
    "alter [column] $name set storage $name",
    "alter [column] $name set compression $name",
    "alter [column] $name set $list",
    "alter [column] $name reset $list",
    "alter [column] $name options $list",
    "alter [column] $name drop expression $known",
    "alter [column] $name drop not null $known",
    "alter [column] $name drop default $known",
    "alter [column] $name drop identity $known",
    "alter [column] $name set not null $known",
    "alter [column] $name set default $known",
    "alter [column] $name set data type $known",
    "alter [column] $name set data type ... collate ...",
    "alter [column] $name set generated $known",
    "alter [column] $name add generated $known",
    "alter [column] $name type $known",
    "alter [column] $name type ... collate ...",
    "add exclude ...",
    "add constraint $name exclude ...",
    "add ... compression $name ...",
    "add ... with $list ...",
    "add ... using index tablespace $name ...",
    "add ... set null $list ...",
    "add ... set default $list ...",
];
/// Takes no token.
const KNOWN: &str = "$known";
/// Takes any tokens.
const ANY: &str = "...";

/// The error of a text whose first statement may be an ALTER TABLE, instead of the one of the parser.
pub(super) fn judged(text: &str, error: SqlError) -> SqlError {
    let Some(position) = error.position.and_then(|position| usize::try_from(position).ok()) else { return error };
    if lexer::command_name(text) != "ALTER TABLE" {
        return error;
    }
    let byte = text.char_indices().nth(position.saturating_sub(1)).map_or(text.len(), |(at, _)| at);
    let (tokens, end) = first_statement(text);
    let Some(mut start) = behind_table(&tokens) else { return error };
    let byte_of = |at: usize| tokens.get(at).map_or(end, |token| token.start);
    loop {
        let length = action_length(&tokens[start..]);
        if byte > byte_of(start + length) {
            start += length + 1;
            if start > tokens.len() {
                return error;
            }
            continue;
        }
        if byte < byte_of(start) {
            return error;
        }
        let action = &tokens[start..start + length];
        let mut furthest = 0;
        for form in FORMS {
            let parts: Vec<&str> = form.split(' ').collect();
            match stop(&parts, action) {
                Some(at) => furthest = furthest.max(at),
                None => {
                    let message = "this form of ALTER TABLE is not supported yet";
                    return SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message);
                }
            }
        }
        let found = byte_of(start + furthest);
        return if found > byte { error_at(text, found) } else { error };
    }
}

/// The tokens of a text's first statement, and the byte where it ends.
fn first_statement(text: &str) -> (Vec<Spanned<'_>>, usize) {
    let (mut lexer, mut tokens) = (Lexer::new(text), Vec::new());
    while let Some(token) = lexer.next() {
        if token.token == Token::Symbol(';') {
            return (tokens, token.start);
        }
        tokens.push(token);
    }
    (tokens, text.len())
}

/// 42601 at a byte, in PostgreSQL's wording.
fn error_at(text: &str, at: usize) -> SqlError {
    let mut lexer = Lexer::new(text);
    lexer.skip_to(at);
    let message = match lexer.next() {
        Some(found) => format!("syntax error at or near \"{}\"", &text[found.start..found.end]),
        None => "syntax error at end of input".to_owned(),
    };
    let position = u32::try_from(text[..at].chars().count() + 1).unwrap_or(0);
    SqlError::new(SqlState::SYNTAX_ERROR, message).at(position)
}

/// Where the actions begin, behind `ALTER TABLE [IF EXISTS] [ONLY] name [*]`.
fn behind_table(tokens: &[Spanned<'_>]) -> Option<usize> {
    let mut at = 2;
    for words in [&["if", "exists"][..], &["only"]] {
        at += stop(words, tokens.get(at..at + words.len())?).map_or(words.len(), |_| 0);
    }
    at += taken("$name", tokens.get(at..)?)?;
    Some(at + usize::from(tokens.get(at).is_some_and(|token| token.token == Token::Symbol('*'))))
}

/// The number of tokens before the next comma outside of parentheses.
fn action_length(tokens: &[Spanned<'_>]) -> usize {
    let mut depth = 0_usize;
    let is_end = |token: &Spanned<'_>| {
        match token.token {
            Token::Symbol('(') => depth += 1,
            Token::Symbol(')') => depth = depth.saturating_sub(1),
            Token::Symbol(',') => return depth == 0,
            _ => {}
        }
        false
    };
    tokens.iter().position(is_end).unwrap_or(tokens.len())
}

/// The place of the first token that does not belong to a form; `None` if all do, and none is missing.
fn stop(form: &[&str], tokens: &[Spanned<'_>]) -> Option<usize> {
    let Some((part, rest)) = form.split_first() else { return (!tokens.is_empty()).then_some(0) };
    if *part == ANY {
        let ends = rest.is_empty() || (0..tokens.len()).any(|at| stop(rest, &tokens[at..]).is_none());
        return (!ends).then_some(0);
    }
    let optional = part.strip_prefix('[').and_then(|part| part.strip_suffix(']'));
    let without = match optional {
        Some(_) => stop(rest, tokens)?,
        None => 0,
    };
    match taken(optional.unwrap_or(part), tokens) {
        Some(count) => stop(rest, &tokens[count..]).map(|at| without.max(count + at)),
        None => Some(without),
    }
}

/// How many tokens a part of a form takes; `None` if another one follows.
fn taken(part: &str, tokens: &[Spanned<'_>]) -> Option<usize> {
    let is_name = |at: usize| tokens.get(at).is_some_and(|t| matches!(t.token, Token::Word(_) | Token::Quoted(_)));
    let is_symbol = |at: usize, symbol: char| tokens.get(at).is_some_and(|t| t.token == Token::Symbol(symbol));
    match part {
        KNOWN => None,
        "$name" => {
            let mut count = is_name(0).then_some(1)?;
            while is_symbol(count, '.') && is_name(count + 1) {
                count += 2;
            }
            Some(count)
        }
        "$number" => {
            let sign = usize::from(is_symbol(0, '-') || is_symbol(0, '+'));
            tokens.get(sign).filter(|t| matches!(t.token, Token::Number(_))).map(|_| sign + 1)
        }
        "$list" => {
            let mut depth = 0_usize;
            for (at, found) in tokens.iter().enumerate() {
                match found.token {
                    Token::Symbol('(') => depth += 1,
                    Token::Symbol(')') => depth = depth.checked_sub(1)?,
                    _ => {}
                }
                if depth == 0 {
                    return (at > 0).then_some(at + 1);
                }
            }
            None
        }
        word => match tokens.first()?.token {
            Token::Word(found) => found.eq_ignore_ascii_case(word).then_some(1),
            _ => None,
        },
    }
}

//! Rewrites PostgreSQL spellings that the parser lacks: ABORT, `[NOT] DEFERRABLE`, `TRIM(LEADING FROM x)`, CREATE
//! DATABASE with options, CREATE UNLOGGED TABLE, CREATE INDEX ON ONLY, DROP INDEX CONCURRENTLY, INSERT OVERRIDING,
//! SELECT without a list, FOR NO KEY UPDATE and FOR KEY SHARE, LIKE in CREATE TABLE, the column names of CREATE TABLE
//! AS, NO INHERIT.

use sqlparser::ast::{Expr, Ident};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Location, Span, Token, TokenWithSpan, Word};

use super::comments;
use super::edits::{Edit, Edits};
use super::group_words::without_group_words;
use super::include::with_key_options;
use super::labels::with_plain_names;
use super::late_limits::with_limits_first;
use super::lock_lists::with_single_names;
use super::maintenance::{self, Maintenance};
use super::nested_joins::with_nested_joins;
use super::only::without_inheritance;
use super::quantified::with_quantified;
use super::similar::with_substrings;
use super::stars::with_stars;
use super::tables::{with_rows, with_tables};
use super::targets::with_targets;
use super::text::{NO_LOCATION, SourceText, syntax_error, word};
use super::values::with_values;
use crate::error::{SqlError, SqlState};

/// Statements that the parser does not see, with the location of their first token.
pub(super) type Prebuilt = Vec<(Location, Maintenance)>;

/// Edits tokens.
type Apply = fn(Vec<TokenWithSpan>) -> Vec<TokenWithSpan>;

/// The edits of a whole query string, in their order.
const OF_ALL: [(Edit, Apply); 15] = [
    (Edit::FieldNames, with_plain_names),
    (Edit::Rows, with_rows),
    (Edit::GroupWords, without_group_words),
    (Edit::NestedJoins, with_nested_joins),
    (Edit::Tables, with_tables),
    (Edit::Inheritance, without_inheritance),
    (Edit::Targets, with_targets),
    (Edit::Stars, with_stars),
    (Edit::Values, with_values),
    (Edit::Substrings, with_substrings),
    (Edit::EmptyLists, with_empty_lists),
    (Edit::LockLists, with_single_names),
    (Edit::KeyLocks, with_key_locks),
    (Edit::LateLimits, with_limits_first),
    (Edit::Quantified, with_quantified),
];

/// Rewrites the tokens of a query string. Returns the tokens for the parser, and the statements built from the others.
pub(super) fn rewrite(
    text: &SourceText,
    mut tokens: Vec<TokenWithSpan>,
    edits: Edits,
) -> Result<(Vec<TokenWithSpan>, Prebuilt), SqlError> {
    for (edit, apply) in OF_ALL {
        if edits.has(edit) {
            tokens = apply(tokens);
        }
    }
    if !edits.has(Edit::Statements) {
        return Ok((tokens, Vec::new()));
    }
    let mut kept = Vec::with_capacity(tokens.len());
    let mut prebuilt = Vec::new();
    let has_options = edits.has(Edit::KeyOptions);
    for statement in tokens.split_inclusive(|t| t.token == Token::SemiColon) {
        let first = statement.iter().find(|t| !matches!(t.token, Token::Whitespace(_)));
        match first.and_then(|t| word(&t.token)) {
            Some(verb) if maintenance::begins(verb) => {
                let start = first.map_or(NO_LOCATION, |t| t.span.start);
                prebuilt.push((start, maintenance::parse(text, statement)?));
                kept.extend(statement.last().filter(|t| t.token == Token::SemiColon).cloned());
            }
            Some(verb) if verb.eq_ignore_ascii_case("abort") => {
                kept.extend(statement.iter().map(|t| match word(&t.token) {
                    Some(w) if w.eq_ignore_ascii_case("abort") => {
                        TokenWithSpan { token: Token::make_keyword("ROLLBACK"), span: t.span }
                    }
                    _ => t.clone(),
                }));
            }
            Some(verb) if ["begin", "start", "set"].iter().any(|v| verb.eq_ignore_ascii_case(v)) => {
                kept.extend(without_deferrable(statement));
            }
            Some(verb) if verb.eq_ignore_ascii_case("comment") => kept.extend(comments::rewritten(statement)),
            Some(verb) if verb.eq_ignore_ascii_case("alter") => {
                let statement = without_no_inherit(statement.to_vec());
                let statement = if has_options { with_key_options(text, statement)? } else { statement };
                kept.extend(with_trim_sets(statement));
            }
            Some(verb) if verb.eq_ignore_ascii_case("create") => {
                let statement = without_no_inherit(without_unlogged(statement));
                let statement = without_database_options(text, statement)?;
                let is_index = statement.iter().filter_map(|t| word(&t.token)).take(3).any(is_index);
                let statement = if is_index {
                    without_word(&statement, "on", "only")
                } else {
                    with_likes(with_types(without_data(statement)))
                };
                let statement = if has_options && !is_index { with_key_options(text, statement)? } else { statement };
                kept.extend(with_trim_sets(statement));
            }
            Some(verb) if verb.eq_ignore_ascii_case("drop") => {
                kept.extend(without_word(statement, "index", "concurrently"));
            }
            _ => kept.extend(with_trim_sets(with_sources(without_overriding(statement)))),
        }
    }
    Ok((kept, prebuilt))
}

/// The names that stand for OVERRIDING SYSTEM VALUE and OVERRIDING USER VALUE. No text of a client contains them.
pub(crate) const OVERRIDING_SYSTEM: &str = "\0system";
pub(crate) const OVERRIDING_USER: &str = "\0user";
/// The alias of a table without one, before such a name: the parser would read PARTITION as an alias.
pub(crate) const NO_ALIAS: &str = "\0none";

/// OVERRIDING becomes a clause that the parser knows at its place: a partition.
fn without_overriding(statement: &[TokenWithSpan]) -> Vec<TokenWithSpan> {
    let mut out = Vec::with_capacity(statement.len());
    let mut rest = statement;
    while let Some((first, behind)) = rest.split_first() {
        let is = |token: &TokenWithSpan, text: &str| word(&token.token).is_some_and(|w| w.eq_ignore_ascii_case(text));
        let words: Vec<(usize, &TokenWithSpan)> = match is(first, "overriding") {
            true => {
                behind.iter().enumerate().filter(|(_, t)| !matches!(t.token, Token::Whitespace(_))).take(2).collect()
            }
            false => Vec::new(),
        };
        let name = match words.as_slice() {
            [(_, kind), (_, value)] if is(value, "value") && is(kind, "system") => Some(OVERRIDING_SYSTEM),
            [(_, kind), (_, value)] if is(value, "value") && is(kind, "user") => Some(OVERRIDING_USER),
            _ => None,
        };
        let (Some(name), Some((last, _))) = (name, words.last()) else {
            out.push(first.clone());
            rest = behind;
            continue;
        };
        out.extend(partition(&out, name, first.span));
        rest = &behind[last + 1..];
    }
    out
}

/// The name of the partition that stands before a source of INSERT in parentheses. No text of a client contains it.
pub(crate) const SOURCE: &str = "\0source";

/// Puts such a partition before `(WITH ...)`, `(VALUES ...)` and `((...` behind the table of INSERT: the parser would
/// read them as a list of columns.
fn with_sources(statement: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let solid: Vec<usize> =
        (0..statement.len()).filter(|at| !matches!(statement[*at].token, Token::Whitespace(_))).collect();
    let token = |place: usize| solid.get(place).map(|at| &statement[*at].token);
    let is = |place: usize, wanted: &str| token(place).and_then(word).is_some_and(|w| w.eq_ignore_ascii_case(wanted));
    let opens = |place: usize| token(place) == Some(&Token::LParen);
    let mut sources: Vec<usize> = Vec::new();
    for into in (1..solid.len()).filter(|place| is(*place, "into") && is(place - 1, "insert")) {
        let mut place = into + 2;
        while token(place) == Some(&Token::Period) {
            place += 2;
        }
        place += if is(place, "as") { 2 } else { 0 };
        let is_values = is(place + 1, "values") && opens(place + 2);
        let is_source = is(place + 1, "with") || is_values || opens(place + 1);
        sources.extend(solid.get(place).filter(|_| opens(place) && is_source));
    }
    if sources.is_empty() {
        return statement;
    }
    let mut sources = sources.into_iter().peekable();
    let mut out = Vec::with_capacity(statement.len() + 6);
    for (at, token) in statement.into_iter().enumerate() {
        if sources.next_if_eq(&at).is_some() {
            out.extend(partition(&out, SOURCE, token.span));
        }
        out.push(token);
    }
    out
}

/// A partition behind the table of INSERT, with an alias if the table has none.
fn partition(before: &[TokenWithSpan], name: &str, span: Span) -> Vec<TokenWithSpan> {
    let mut tokens = Vec::with_capacity(6);
    if needs_alias(before) {
        tokens.extend([Token::make_keyword("AS"), Token::make_word(NO_ALIAS, None)]);
    }
    tokens.extend([Token::make_keyword("PARTITION"), Token::LParen, Token::make_word(name, None), Token::RParen]);
    tokens.into_iter().map(|token| TokenWithSpan { token, span }).collect()
}

/// Whether the tokens end with a table's name, without an alias and without a list of columns.
fn needs_alias(tokens: &[TokenWithSpan]) -> bool {
    let mut last = tokens.iter().rev().filter(|t| !matches!(t.token, Token::Whitespace(_)));
    let has_columns = last.next().is_none_or(|t| t.token == Token::RParen);
    let has_alias = last.next().and_then(|t| word(&t.token)).is_some_and(|w| w.eq_ignore_ascii_case("as"));
    !has_columns && !has_alias
}

/// The name that stands for an empty select list. No text of a client contains it.
const EMPTY_LIST: &str = "\0";

/// Whether an expression stands for an empty select list.
pub(crate) fn is_empty_list(expr: &Expr) -> bool {
    matches!(expr, Expr::Identifier(Ident { value, .. }) if value == EMPTY_LIST)
}

/// The table that stands before FOR NO KEY UPDATE and FOR KEY SHARE, in a clause of its own. No text of a client
/// contains it.
pub(crate) const KEY_LOCK: &str = "\0key";

/// Rewrites FOR NO KEY UPDATE and FOR KEY SHARE, which the parser lacks: a clause FOR UPDATE, or FOR SHARE, of
/// [`KEY_LOCK`], and then one of what the statement says.
fn with_key_locks(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let words: Vec<usize> = (0..tokens.len()).filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_))).collect();
    let is = |place: usize, wanted: &str| {
        let found = words.get(place).and_then(|at| word(&tokens[*at].token));
        found.is_some_and(|found| found.eq_ignore_ascii_case(wanted))
    };
    // Where FOR is, and where UPDATE or SHARE.
    let found: Vec<(usize, usize)> = (0..words.len())
        .filter(|place| is(*place, "for"))
        .filter_map(|place| {
            let no_key = is(place + 1, "no") && is(place + 2, "key") && is(place + 3, "update");
            let key = is(place + 1, "key") && is(place + 2, "share");
            let last = if no_key { place + 3 } else { place + 2 };
            (no_key || key).then(|| (words[place], words[last]))
        })
        .collect();
    if found.is_empty() {
        return tokens;
    }
    let mut kept = Vec::with_capacity(tokens.len() + 4 * found.len());
    let mut next = 0;
    for (start, end) in found {
        kept.extend_from_slice(&tokens[next..start]);
        let (clause, strength) = (tokens[start].clone(), tokens[end].clone());
        let marker = Word { value: KEY_LOCK.to_owned(), quote_style: Some('"'), keyword: Keyword::NoKeyword };
        let of = TokenWithSpan { token: Token::make_keyword("OF"), span: strength.span };
        let marker = TokenWithSpan { token: Token::Word(marker), span: strength.span };
        kept.extend([clause.clone(), strength.clone(), of, marker, clause, strength]);
        next = end + 1;
    }
    kept.extend_from_slice(&tokens[next..]);
    kept
}

/// Marks the empty list of a SELECT that ends, or that continues with another clause than FROM. The parser knows the
/// latter only.
fn with_empty_lists(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    const CLAUSES: [&str; 11] =
        ["where", "group", "having", "order", "limit", "offset", "fetch", "for", "union", "intersect", "except"];
    let is = |token: Option<&Token>, words: &[&str]| {
        token.and_then(word).is_some_and(|found| words.iter().any(|w| found.eq_ignore_ascii_case(w)))
    };
    let mut marks = Vec::new();
    let mut last: [Option<&Token>; 2] = [None; 2];
    let mut end = 0;
    for (at, TokenWithSpan { token, .. }) in tokens.iter().enumerate() {
        if matches!(token, Token::Whitespace(_)) {
            continue;
        }
        let is_list = is(last[1], &["select"]) && !is(last[0], &["as"]) && last[0] != Some(&Token::Period);
        let ends = matches!(token, Token::SemiColon | Token::RParen | Token::EOF) || is(Some(token), &CLAUSES);
        if is_list && ends {
            marks.push(end);
        }
        last = [last[1], Some(token)];
        end = at + 1;
    }
    if is(last[1], &["select"]) && !is(last[0], &["as"]) {
        marks.push(end);
    }
    if marks.is_empty() {
        return tokens;
    }
    let mut kept = Vec::with_capacity(tokens.len() + marks.len());
    let mut marks = marks.into_iter().peekable();
    for (at, token) in tokens.into_iter().enumerate() {
        let span = token.span;
        kept.push(token);
        if marks.next_if_eq(&(at + 1)).is_some() {
            let marker = Word { value: EMPTY_LIST.to_owned(), quote_style: Some('"'), keyword: Keyword::NoKeyword };
            kept.push(TokenWithSpan { token: Token::Word(marker), span });
        }
    }
    kept
}

/// Drops NO INHERIT behind the condition of a CHECK: there are no tables that inherit from others.
fn without_no_inherit(statement: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let words: Vec<usize> =
        (0..statement.len()).filter(|at| !matches!(statement[*at].token, Token::Whitespace(_))).collect();
    let is = |at: usize, wanted: &str| word(&statement[at].token).is_some_and(|w| w.eq_ignore_ascii_case(wanted));
    let mut dropped = Vec::new();
    for window in words.windows(3) {
        if let [before, no, inherit] = window
            && statement[*before].token == Token::RParen
            && is(*no, "no")
            && is(*inherit, "inherit")
        {
            dropped.extend([*no, *inherit]);
        }
    }
    let kept = statement.into_iter().enumerate().filter(|(at, _)| !dropped.contains(at));
    kept.map(|(_, token)| token).collect()
}

/// Gives types to the bare column names of `CREATE TABLE t (a, b) AS`, which the parser wants. They mean nothing.
fn with_types(statement: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let words: Vec<usize> =
        (0..statement.len()).filter(|at| !matches!(statement[*at].token, Token::Whitespace(_))).collect();
    let token = |place: usize| words.get(place).map(|at| &statement[*at].token);
    let is = |place: usize, wanted: &str| token(place).and_then(word).is_some_and(|w| w.eq_ignore_ascii_case(wanted));
    if !(0..words.len().min(4)).any(|place| is(place, "table")) {
        return statement;
    }
    let Some(open) = (0..words.len()).find(|place| token(*place) == Some(&Token::LParen)) else { return statement };
    let Some(close) = (open..words.len()).find(|place| token(*place) == Some(&Token::RParen)) else { return statement };
    let names = (open + 1..close).step_by(2);
    let is_list = names.clone().all(|place| token(place).and_then(word).is_some())
        && (open + 2..close).step_by(2).all(|place| token(place) == Some(&Token::Comma));
    if !is_list || !is(close + 1, "as") || (close - open) % 2 == 1 {
        return statement;
    }
    let typed: Vec<usize> = names.filter_map(|place| words.get(place).copied()).collect();
    let mut kept = Vec::with_capacity(statement.len() + typed.len());
    for (at, token) in statement.into_iter().enumerate() {
        let span = token.span;
        kept.push(token);
        if typed.contains(&at) {
            kept.push(TokenWithSpan { token: Token::make_keyword("INT"), span });
        }
    }
    kept
}

/// The name of the constraint that stands for LIKE in CREATE TABLE. No text of a client contains it.
pub(crate) const LIKE: &str = "\0like";

/// Rewrites the elements `LIKE table [INCLUDING ...]` of CREATE TABLE, of which the parser knows one form: a constraint
/// `CHECK (table = 'including ...')` named [`LIKE`] stands for each.
fn with_likes(statement: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut words = statement.iter().filter_map(|t| word(&t.token));
    let is_table = words.by_ref().take(4).any(|w| w.eq_ignore_ascii_case("table"));
    if !is_table {
        return statement;
    }
    let mut kept: Vec<TokenWithSpan> = Vec::with_capacity(statement.len() + 8);
    let (mut depth, mut begins, mut like) = (0usize, false, None);
    for token in statement {
        let ends = depth == 1 && matches!(token.token, Token::Comma | Token::RParen);
        if ends && let Some((span, options)) = like.take() {
            let made = |token| TokenWithSpan { token, span };
            kept.extend([Token::Eq, Token::SingleQuotedString(options), Token::RParen].map(made));
        }
        if let (Some((_, options)), Some(found)) = (&mut like, word(&token.token)) {
            let is_option = ["including", "excluding"].iter().any(|w| found.eq_ignore_ascii_case(w));
            if is_option || !String::is_empty(options) {
                options.push_str(&found.to_ascii_lowercase());
                options.push(' ');
                continue;
            }
        }
        let is_like = word(&token.token).is_some_and(|w| w.eq_ignore_ascii_case("like"));
        if depth == 1 && begins && is_like {
            let span = token.span;
            let made = |token| TokenWithSpan { token, span };
            let name = Word { value: LIKE.to_owned(), quote_style: Some('"'), keyword: Keyword::NoKeyword };
            let check =
                [Token::make_keyword("CONSTRAINT"), Token::Word(name), Token::make_keyword("CHECK"), Token::LParen];
            kept.extend(check.map(made));
            like = Some((span, String::new()));
            begins = false;
            continue;
        }
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ => {}
        }
        if !matches!(token.token, Token::Whitespace(_)) {
            begins = depth == 1 && matches!(token.token, Token::LParen | Token::Comma);
        }
        kept.push(token);
    }
    kept
}

/// Drops WITH DATA at the end of CREATE TABLE AS: that is what it does anyway.
fn without_data(mut statement: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let solid: Vec<usize> =
        (0..statement.len()).filter(|at| !matches!(statement[*at].token, Token::Whitespace(_))).collect();
    let is = |place: usize, wanted: &str| {
        word(&statement[solid[place]].token).is_some_and(|w| w.eq_ignore_ascii_case(wanted))
    };
    let end = solid.len() - usize::from(solid.last().is_some_and(|at| statement[*at].token == Token::SemiColon));
    let creates = (1..end.min(4)).any(|place| is(place, "table")) && (2..end).any(|place| is(place, "as"));
    if creates && is(end - 2, "with") && is(end - 1, "data") {
        let (with, data) = (solid[end - 2], solid[end - 1]);
        statement.drain(with..=data);
    }
    statement
}

/// Drops UNLOGGED before TABLE: all tables are logged.
fn without_unlogged(statement: &[TokenWithSpan]) -> Vec<TokenWithSpan> {
    let words = || statement.iter().enumerate().filter_map(|(at, t)| Some((at, word(&t.token)?)));
    let is =
        |found: Option<(usize, &str)>, expected: &str| found.is_some_and(|(_, w)| w.eq_ignore_ascii_case(expected));
    let unlogged = words().nth(1).filter(|_| is(words().nth(1), "unlogged") && is(words().nth(2), "table"));
    let kept = statement.iter().enumerate().filter(|(at, _)| unlogged.is_none_or(|(dropped, _)| dropped != *at));
    kept.map(|(_, token)| token.clone()).collect()
}

fn is_index(word: &str) -> bool {
    word.eq_ignore_ascii_case("index")
}

/// Drops the first word `dropped` that follows the word `before`. There are no tables that inherit from others, and
/// every DROP INDEX waits for its table in the same way.
fn without_word(statement: &[TokenWithSpan], before: &str, dropped: &str) -> Vec<TokenWithSpan> {
    let mut last = "";
    let mut found = None;
    for (at, token) in statement.iter().enumerate() {
        if matches!(token.token, Token::Whitespace(_)) {
            continue;
        }
        let here = word(&token.token).unwrap_or("");
        if last.eq_ignore_ascii_case(before) && here.eq_ignore_ascii_case(dropped) {
            found = Some(at);
            break;
        }
        last = here;
    }
    let kept = statement.iter().enumerate().filter(|(at, _)| found != Some(*at));
    kept.map(|(_, token)| token.clone()).collect()
}

/// Drops `[NOT] DEFERRABLE`, which affects SERIALIZABLE transactions only, and the comma before it.
fn without_deferrable(statement: &[TokenWithSpan]) -> Vec<TokenWithSpan> {
    let is_mode_list = statement
        .iter()
        .filter_map(|t| word(&t.token))
        .take(3)
        .any(|w| ["begin", "start", "transaction", "characteristics"].iter().any(|v| w.eq_ignore_ascii_case(v)));
    let mut kept: Vec<TokenWithSpan> = Vec::with_capacity(statement.len());
    for token in statement {
        let dropped = is_mode_list && word(&token.token).is_some_and(|w| w.eq_ignore_ascii_case("deferrable"));
        if !dropped {
            kept.push(token.clone());
            continue;
        }
        let drop_last_if = |kept: &mut Vec<TokenWithSpan>, test: &dyn Fn(&Token) -> bool| {
            let last = kept.iter().rposition(|t| !matches!(t.token, Token::Whitespace(_)));
            if let Some(last) = last.filter(|at| test(&kept[*at].token)) {
                kept.truncate(last);
            }
        };
        drop_last_if(&mut kept, &|t| matches!(t, Token::Word(w) if w.keyword == Keyword::NOT));
        drop_last_if(&mut kept, &|t| *t == Token::Comma);
    }
    kept
}

/// Drops the options of CREATE DATABASE. They are what Cortado has anyway, or concern what it has not.
fn without_database_options(text: &SourceText, statement: Vec<TokenWithSpan>) -> Result<Vec<TokenWithSpan>, SqlError> {
    const IGNORED: [&str; 13] = [
        "owner",
        "locale",
        "lc_collate",
        "lc_ctype",
        "icu_locale",
        "locale_provider",
        "collation_version",
        "tablespace",
        "limit",
        "strategy",
        "is_template",
        "allow_connections",
        "oid",
    ];
    let places: Vec<usize> =
        (0..statement.len()).filter(|at| !matches!(statement[*at].token, Token::Whitespace(_))).collect();
    let is = |place: usize, wanted: &str| {
        places.get(place).and_then(|at| word(&statement[*at].token)).is_some_and(|w| w.eq_ignore_ascii_case(wanted))
    };
    if !is(1, "database") || is(2, "if") {
        return Ok(statement);
    }
    let end = places.len() - usize::from(places.last().is_some_and(|at| statement[*at].token == Token::SemiColon));
    let mut place = 3;
    place += usize::from(is(place, "with"));
    while place < end {
        let token = &statement[places[place]];
        let Some(name) = word(&token.token) else { return Err(syntax_error(text, token)) };
        if name.eq_ignore_ascii_case("connection") {
            place += 1;
            continue;
        }
        let at = place + 1;
        let at = at + usize::from(places.get(at).is_some_and(|at| statement[*at].token == Token::Eq));
        let at = at + usize::from(places.get(at).is_some_and(|at| statement[*at].token == Token::Minus));
        let value = places.get(at).filter(|_| at < end).map(|at| &statement[*at]);
        let Some(value) = value else { return Err(syntax_error(text, token)) };
        let shown = match &value.token {
            Token::SingleQuotedString(text) => text.as_str(),
            other => word(other).unwrap_or_default(),
        };
        let is_one_of = |known: &[&str]| known.iter().any(|known| shown.eq_ignore_ascii_case(known));
        let refused = if name.eq_ignore_ascii_case("encoding") {
            !is_one_of(&["utf8", "utf-8", "unicode", "default"])
        } else if name.eq_ignore_ascii_case("template") {
            !is_one_of(&["template0", "template1", "default"])
        } else if IGNORED.iter().any(|known| name.eq_ignore_ascii_case(known)) {
            false
        } else {
            let message = format!("option \"{}\" not recognized", name.to_lowercase());
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(text.position(token.span.start)));
        };
        if refused {
            let message = format!("{} {shown} is not supported", name.to_lowercase());
            let error = SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message);
            return Err(error.at(text.position(value.span.start)));
        }
        place = at + 1;
    }
    let first = places.get(3).copied().unwrap_or(statement.len());
    let tail = places.get(end).copied();
    Ok(statement
        .iter()
        .enumerate()
        .filter(|(at, _)| *at < first || Some(*at) == tail)
        .map(|(_, t)| t.clone())
        .collect())
}

/// Inserts the default set, a blank, into `TRIM(LEADING FROM x)` and `TRIM(FROM x)`.
fn with_trim_sets(statement: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut kept: Vec<TokenWithSpan> = Vec::with_capacity(statement.len() + 1);
    // The places of the last three tokens other than white space.
    let mut last: [Option<usize>; 3] = [None; 3];
    for token in statement {
        if !matches!(token.token, Token::Whitespace(_)) {
            let at = |place: Option<usize>| place.and_then(|at| kept.get(at));
            let is = |token: Option<&TokenWithSpan>, words: &[&str]| {
                token.and_then(|t| word(&t.token)).is_some_and(|w| words.iter().any(|v| w.eq_ignore_ascii_case(v)))
            };
            let opens = |place: Option<usize>| at(place).is_some_and(|t| t.token == Token::LParen);
            let is_side = is(at(last[2]), &["leading", "trailing", "both"]);
            let [name, open] = if is_side { [last[0], last[1]] } else { [last[1], last[2]] };
            let trims = opens(open) && is(at(name), &["trim"]);
            if trims && is(Some(&token), &["from"]) {
                kept.push(TokenWithSpan { token: Token::SingleQuotedString(" ".to_owned()), span: token.span });
            }
            last = [last[1], last[2], Some(kept.len())];
        }
        kept.push(token);
    }
    kept
}

//! ON CONFLICT with expressions or a predicate, of which the parser knows neither.
//!
//! A text that fails to parse is parsed again with [`TARGET`] in place of such a target. The binder then reads the
//! target itself ([`super::conflict_target`]), at its place in the text.

use crate::lexer::{Lexer, Token};

/// Stands for a target. The name of a column may be the same: its target is then read the same way.
pub(crate) const TARGET: &str = "\u{f8ff}";

/// The bytes of a target: from its parenthesis to the end of its predicate.
pub(super) type Range = std::ops::Range<usize>;

/// A text with [`TARGET`] in place of its targets, whose other parts keep their places.
pub(super) fn marked(sql: &str, targets: &[Range]) -> String {
    let mut replaced = String::with_capacity(sql.len() + 3 * targets.len());
    let mut marks = "".chars();
    for (at, found) in sql.char_indices() {
        if targets.iter().any(|target| target.start == at) {
            marks = "(\u{f8ff})".chars();
        }
        let is_inside = targets.iter().any(|target| target.contains(&at));
        replaced.push(if !is_inside || found == '\n' { found } else { marks.next().unwrap_or(' ') });
    }
    replaced
}

/// The target at a byte of a text.
pub(super) fn target_at(sql: &str, at: usize) -> Option<Range> {
    ranges(sql).into_iter().map(|(target, _)| target).find(|target| target.contains(&at))
}

/// A target in place, as a query. All else is blank, but for SELECT in place of CONFLICT.
pub(super) fn alone(sql: &str, target: &Range) -> String {
    const VERB: &str = "conflict";
    let before = sql.get(..target.start).unwrap_or_default().to_ascii_lowercase();
    let verb = before.rfind(VERB).map_or(0..0, |start| start..start + VERB.len());
    let mut select = "select".chars();
    let blank = |(at, found): (usize, char)| match found {
        '\n' => '\n',
        _ if verb.contains(&at) => select.next().unwrap_or(' '),
        _ if target.contains(&at) => found,
        _ => ' ',
    };
    sql.char_indices().map(blank).collect()
}

/// The targets that the parser does not know.
pub(super) fn targets(sql: &str) -> Vec<Range> {
    ranges(sql).into_iter().filter(|(_, is_plain)| !is_plain).map(|(target, _)| target).collect()
}

/// All targets, and whether they are lists of names.
fn ranges(sql: &str) -> Vec<(Range, bool)> {
    let mut found = Vec::new();
    let mut lexer = Lexer::new(sql);
    let mut matched = 0;
    while let Some(next) = lexer.next() {
        let expected = ["on", "conflict"].get(matched);
        match next.token {
            Token::Symbol('(') if matched == 2 => {
                found.extend(target(&mut lexer, next.start));
                matched = 0;
            }
            Token::Word(word) if expected.is_some_and(|expected| word.eq_ignore_ascii_case(expected)) => matched += 1,
            Token::Word(word) => matched = usize::from(word.eq_ignore_ascii_case("on")),
            _ => matched = 0,
        }
    }
    found
}

/// The rest of a target behind its parenthesis. `None` if it does not end.
fn target(lexer: &mut Lexer<'_>, start: usize) -> Option<(Range, bool)> {
    let (mut depth, mut is_plain, mut end, mut is_after_name) = (1_usize, true, start, false);
    while depth > 0 {
        let next = lexer.next()?;
        let is_name = matches!(next.token, Token::Word(_) | Token::Quoted(_));
        is_plain &= !(is_name && is_after_name);
        is_after_name = is_name;
        match next.token {
            Token::Symbol('(') => depth += 1,
            Token::Symbol(')') => depth -= 1,
            _ => {}
        }
        is_plain &= depth == 0 || depth == 1 && (is_name || matches!(next.token, Token::Symbol(',' | ')')));
        end = next.end;
    }
    let mut ahead = lexer.clone();
    let is_where = |word: &str| word.eq_ignore_ascii_case("where");
    if !matches!(ahead.next(), Some(next) if matches!(next.token, Token::Word(word) if is_where(word))) {
        return Some((start..end, is_plain));
    }
    // The predicate ends before DO.
    while let Some(next) = ahead.next() {
        match next.token {
            Token::Word(word) if word.eq_ignore_ascii_case("do") => return Some((start..end, false)),
            Token::Symbol(';') => break,
            _ => end = next.end,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{alone, marked, target_at, targets};

    #[test]
    fn targets_are_read_in_place() {
        let sql = "insert into t values ('é')\non Conflict (lower(a), (b +\n 1)) where c > 0 and 'do' <> d do nothing";
        let found = targets(sql);
        let [target] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!(target_at(sql, sql.find("lower").unwrap()).as_ref(), Some(target));
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(words(&alone(sql, target)), "select (lower(a), (b + 1)) where c > 0 and 'do' <> d");
        assert_eq!(alone(sql, target).find("lower"), sql.find("lower").map(|at| at - 1), "é is two bytes");
        assert_eq!(words(&marked(sql, &found)), "insert into t values ('é') on Conflict (\u{f8ff}) do nothing");
    }

    #[test]
    fn other_texts_are_left_alone() {
        for sql in ["insert into t values (1) on conflict (a, \"B\") do nothing", "select (lower(a)", "on conflict (a"]
        {
            assert!(targets(sql).is_empty(), "{sql}");
        }
        assert!(crate::parse::parse("insert into t values (1) on conflict (a +) do nothing").is_err());
    }
}

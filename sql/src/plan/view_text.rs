//! The text that a view keeps: its query, with the names in it made exact.
//!
//! The text is bound again where the view is read, over tables that may have got columns since. So each `*` becomes the
//! columns that it stood for, a column of one of several tables gets the name of its table, NATURAL becomes USING, and
//! the name of an output column in GROUP BY its number. A new column then changes nothing.

use std::ops::Range;

use sqlparser::tokenizer::Location;

use crate::lexer::{Lexer, Token};
use crate::parse::SourceText;
use crate::table::quote_identifier;

/// What becomes of a place in the text.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Edit {
    /// A star, also `TABLE name`: it becomes these columns.
    Star(String),
    /// The name of a column, which gets the name of its table before it.
    Column { name: String, table: String },
    /// The name of a table, which stands for its row: `t` becomes `t.*`.
    Row { name: String },
    /// The name of an output column in GROUP BY, which becomes its number.
    Number { name: String, number: usize },
    /// The right side of NATURAL JOIN: the columns that are common.
    Natural(Vec<String>),
}

/// A change of the text, and where it is.
pub(super) type Rewrite = (Location, Edit);

/// A part of the text that is replaced.
type Piece = (Range<usize>, String);

/// The words that an item of FROM ends before, outside of parentheses.
const ENDS: [&str; 21] = [
    "join",
    "natural",
    "left",
    "right",
    "full",
    "inner",
    "cross",
    "on",
    "using",
    "where",
    "group",
    "having",
    "order",
    "limit",
    "offset",
    "fetch",
    "for",
    "union",
    "intersect",
    "except",
    "window",
];

/// A range of a text with changes. `None` if a star is not found.
pub(super) fn rewritten<'r>(
    text: &SourceText,
    (start, end): (usize, usize),
    rewrites: impl Iterator<Item = &'r Rewrite>,
) -> Option<String> {
    let source = text.as_str();
    let mut pieces = Vec::new();
    for (location, edit) in rewrites {
        let place = text.offset(*location)?;
        match edit {
            Edit::Star(columns) => pieces.push(star(source, place, columns)?),
            Edit::Natural(columns) => pieces.extend(natural(source, (start, place), columns).into_iter().flatten()),
            other => pieces.extend(named(source, place, other)),
        }
    }
    pieces.sort_by_key(|(range, _)| (range.start, range.end));
    let mut out = String::with_capacity(end.saturating_sub(start));
    let mut at = start;
    let mut last = None;
    for (range, new) in pieces {
        // A query that is bound twice has its places twice.
        if range.start < at || last.as_ref() == Some(&range) {
            continue;
        }
        out.push_str(source.get(at..range.start)?);
        out.push_str(&new);
        at = range.end;
        last = Some(range);
    }
    out.push_str(source.get(at..end)?);
    Some(out.trim().to_owned())
}

/// A star, which begins at a place with the name of its table, or TABLE.
fn star(source: &str, place: usize, columns: &str) -> Option<Piece> {
    let mut lexer = Lexer::new(source);
    lexer.skip_to(place);
    let first = lexer.clone().next()?;
    // `TABLE name`. A star is none, and neither is the name of a table before it.
    if matches!(first.token, Token::Word(word) if word.eq_ignore_ascii_case("table")) {
        return Some((place..first.end, format!("SELECT {columns} FROM")));
    }
    loop {
        let token = lexer.next()?;
        if token.token == Token::Symbol('*') {
            return Some((place..token.end, columns.to_owned()));
        }
    }
}

/// A name at a place; `None` if something else is there.
fn named(source: &str, place: usize, edit: &Edit) -> Option<Piece> {
    let mut lexer = Lexer::new(source);
    lexer.skip_to(place);
    let token = lexer.next()?;
    let is = |name: &str| match &token.token {
        Token::Word(word) => word.eq_ignore_ascii_case(name),
        Token::Quoted(word) => word == name,
        _ => false,
    };
    match edit {
        Edit::Column { name, table } if is(name) => Some((place..place, format!("{}.", quote_identifier(table)))),
        Edit::Row { name } if is(name) => Some((token.end..token.end, ".*".to_owned())),
        Edit::Number { name, number } if is(name) => Some((place..token.end, number.to_string())),
        _ => None,
    }
}

/// The last NATURAL between a start and the place of the right side, and the end of the right side.
fn natural(source: &str, (start, place): (usize, usize), columns: &[String]) -> Option<[Piece; 2]> {
    let mut lexer = Lexer::new(source);
    lexer.skip_to(start);
    let mut found = None;
    while let Some(token) = lexer.next().filter(|token| token.start < place) {
        if matches!(token.token, Token::Word(word) if word.eq_ignore_ascii_case("natural")) {
            found = Some(token);
        }
    }
    let found = found?;
    lexer.skip_to(found.end);
    let after = lexer.clone().next()?.start;
    while !matches!(lexer.next()?.token, Token::Word(word) if word.eq_ignore_ascii_case("join")) {}
    let end = end_of_item(lexer);
    let names: Vec<String> = columns.iter().map(|name| quote_identifier(name)).collect();
    let condition = if names.is_empty() { " ON true".to_owned() } else { format!(" USING ({})", names.join(", ")) };
    Some([(found.start..after, String::new()), (end..end, condition)])
}

/// The end of an item of FROM that follows.
fn end_of_item(mut lexer: Lexer<'_>) -> usize {
    let (mut depth, mut end) = (0_usize, lexer.position());
    while let Some(token) = lexer.next() {
        match token.token {
            Token::Symbol('(') => depth += 1,
            Token::Symbol(')') if depth > 0 => depth -= 1,
            Token::Symbol(')' | ',' | ';') if depth == 0 => break,
            Token::Word(word) if depth == 0 && ENDS.contains(&word.to_ascii_lowercase().as_str()) => break,
            _ => {}
        }
        end = token.end;
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    /// The place of the n-th occurrence of a part of a text, from 0.
    fn at(text: &str, part: &str, n: usize) -> Location {
        let (byte, _) = text.match_indices(part).nth(n).expect(part);
        let line = text[..byte].matches('\n').count() as u64 + 1;
        let column = text[..byte].rsplit('\n').next().unwrap_or_default().chars().count() as u64 + 1;
        Location { line, column }
    }

    fn stored(text: &str, rewrites: &[Rewrite]) -> Option<String> {
        let parsed = parse::parse(text).expect(text);
        let statement = parsed.last()?;
        rewritten(&statement.text, statement.query_after_as()?, rewrites.iter())
    }

    fn star_of(columns: &str) -> Edit {
        Edit::Star(columns.to_owned())
    }

    #[test]
    fn the_text_of_a_query_is_cut_out() {
        for (text, expected) in [
            ("create view v as select 1;", "select 1"),
            ("select 2; create view \"as\" (a) AS (select 1 as a) ;", "(select 1 as a)"),
        ] {
            assert_eq!(stored(text, &[]).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn stars_become_their_columns() {
        for (text, place, columns, expected) in [
            ("create view v as select x.* from x", ("x.*", 0), "x.a, x.b", "select x.a, x.b from x"),
            ("create view v as\nselect 'é', *, 1 from x", ("*", 0), "x.a", "select 'é', x.a, 1 from x"),
            ("create view v as select 2 * 3, x . * from x", ("x ", 0), "x.a", "select 2 * 3, x.a from x"),
        ] {
            let star = (at(text, place.0, place.1), star_of(columns));
            // A query of WITH RECURSIVE may be bound twice.
            assert_eq!(stored(text, &[star.clone(), star]).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn names_get_their_tables() {
        let text = "create view v as select x, \"Y\", row_to_json(a) from a, b group by g";
        let column = |name: &str, table: &str| Edit::Column { name: name.to_owned(), table: table.to_owned() };
        let rewrites = [
            (at(text, "x", 0), column("x", "a")),
            (at(text, "\"Y\"", 0), column("Y", "B")),
            (at(text, "a)", 0), Edit::Row { name: "a".to_owned() }),
            (at(text, "g", 1), Edit::Number { name: "g".to_owned(), number: 1 }),
            (at(text, "from", 0), column("x", "a")),
        ];
        let expected = "select a.x, \"B\".\"Y\", row_to_json(a.*) from a, b group by 1";
        assert_eq!(stored(text, &rewrites).as_deref(), Some(expected));
    }

    #[test]
    fn natural_becomes_using() {
        for (join, place, expected) in [
            ("natural join b", "b", "join b USING (k)"),
            (
                "natural left outer join b as c (k, d) where true",
                "b as",
                "left outer join b as c (k, d) USING (k) where true",
            ),
            ("natural join (b cross join c), d", "b cross", "join (b cross join c) USING (k), d"),
            ("natural join b natural join c", "b nat", "join b USING (k) natural join c"),
            ("natural join b natural join c", " c", "natural join b join c USING (k)"),
        ] {
            let text = format!("create view v as select 1 from y {join}");
            let rewrite = (at(&text, place, 0), Edit::Natural(vec!["k".to_owned()]));
            assert_eq!(stored(&text, &[rewrite]), Some(format!("select 1 from y {expected}")), "{join}");
        }
        let text = "create view v as select 1 from a natural join b";
        let rewrite = (at(text, "b", 0), Edit::Natural(Vec::new()));
        assert_eq!(stored(text, &[rewrite]).as_deref(), Some("select 1 from a join b ON true"));
    }
}

//! The grammar of statements around a query: PREPARE, EXECUTE, DECLARE, and EXPLAIN of the latter two; and of FETCH and
//! MOVE. Pure: text in, a [`Nested`] out.
//!
//! The query inside is not parsed here. Its text keeps its place: what precedes it is replaced by blanks, so that every
//! position in it is one of the whole statement.

use super::reader::Parser;
use crate::catalog::Catalog;
use crate::error::{SqlError, SqlState};
use crate::parse;
use crate::plan;
use pgtypes::SqlType;
use sqlparser::ast::Expr as Ast;

/// A statement around a query, with the text of the query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Nested {
    /// PREPARE.
    Prepare(Prepare, String),
    /// EXECUTE. The query is VALUES of the parameters, if there are any.
    Execute(Execute, Option<String>),
    /// DECLARE.
    Declare(Declare, String),
    /// EXPLAIN of DECLARE: EXPLAIN of the query.
    Explain(String),
}

/// PREPARE name [(types)] AS query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Prepare {
    pub(crate) name: String,
    /// The declared types: the position of each, and its text.
    types: Vec<(u32, String)>,
    /// The whole statement.
    pub(crate) text: String,
}

/// EXECUTE name [(parameters)].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Execute {
    pub(crate) name: String,
    /// EXPLAIN and its options, if it is explained.
    pub(crate) explain: Option<String>,
}

/// DECLARE name ... CURSOR ... FOR query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Declare {
    pub(crate) name: String,
    /// Whether FETCH of the simple protocol sends binary values.
    pub(crate) binary: bool,
    /// SCROLL, NO SCROLL, or neither.
    pub(crate) scroll: Option<bool>,
    /// INSENSITIVE, which every cursor is.
    pub(crate) insensitive: bool,
    /// WITH HOLD.
    pub(crate) hold: bool,
    /// The error of options that exclude each other.
    pub(crate) clash: Option<Box<SqlError>>,
    /// The whole statement.
    pub(crate) text: String,
}

/// FETCH or MOVE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fetch {
    pub(crate) name: String,
    pub(crate) direction: Direction,
    /// MOVE: no rows are sent.
    pub(crate) moves: bool,
}

/// Where FETCH goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// Over so many rows; backward if negative. `None`: all.
    Forward(Option<i64>),
    /// The same, backward.
    Backward(Option<i64>),
    /// To the row of this number, from the end if negative.
    Absolute(i64),
    /// To the row so many rows from here.
    Relative(i64),
}

impl Prepare {
    /// The declared types, without modifiers. 42704 for an unknown one.
    pub(crate) fn types(&self, catalog: &Catalog) -> Result<Vec<SqlType>, SqlError> {
        let resolve = |(position, text): &(u32, String)| type_named(text, catalog).map_err(|error| error.at(*position));
        self.types.iter().map(resolve).collect()
    }
}

/// The type of a type's text.
fn type_named(text: &str, catalog: &Catalog) -> Result<SqlType, SqlError> {
    let malformed = || SqlError::new(SqlState::SYNTAX_ERROR, format!("syntax error at or near \"{text}\""));
    let parsed = parse::parse(&format!("SELECT NULL::{text}")).map_err(|_| malformed())?;
    let Some(Ast::Cast { data_type, .. }) = parsed.first().and_then(|statement| statement.only_expression()) else {
        return Err(malformed());
    };
    if text.eq_ignore_ascii_case("unknown") {
        return Ok(SqlType::UNKNOWN);
    }
    plan::type_of_name(catalog, data_type).map(|named| named.ty.base())
}

/// Parses a statement around a query; `None` if the text is another one.
pub(crate) fn parse_nested(text: &str) -> Result<Option<Nested>, SqlError> {
    let mut p = Parser::new(text);
    let Some(first) = p.word() else { return Ok(None) };
    match first.to_ascii_lowercase().as_str() {
        "prepare" if !p.is_next("transaction") => prepare(&mut p).map(Some),
        "execute" => execute(&mut p, None).map(Some),
        "declare" => declare(&mut p, 0).map(Some),
        "explain" => explain(&mut p),
        _ => Ok(None),
    }
}

fn prepare(p: &mut Parser<'_>) -> Result<Nested, SqlError> {
    p.advance();
    let name = p.identifier()?;
    let mut types = Vec::new();
    if p.take_symbol('(') {
        loop {
            let (position, start) = (p.position(), p.start());
            let end = skip_element(p)?;
            types.push((position, p.slice(start, end).trim_end().to_owned()));
            if !p.take_symbol(',') {
                break;
            }
        }
        p.advance();
    }
    let after = p.token_end();
    p.expect("as")?;
    check_begins(p, &["select", "values", "table", "with", "insert", "update", "delete", "merge"])?;
    Ok(Nested::Prepare(Prepare { name, types, text: p.text().to_owned() }, p.blanked(0, after)))
}

fn execute(p: &mut Parser<'_>, explain: Option<String>) -> Result<Nested, SqlError> {
    p.advance();
    let name = p.identifier()?;
    let mut values = None;
    if p.is_symbol('(') {
        let start = p.token_end();
        p.advance();
        loop {
            skip_element(p)?;
            if !p.take_symbol(',') {
                break;
            }
        }
        let written = p.slice(start, p.start());
        // EXECUTE, a name and the parenthesis are longer.
        let width = p.slice(0, start).chars().count();
        values = Some(format!("{:>width$}{written})", "VALUES ("));
        p.advance();
    }
    p.end()?;
    Ok(Nested::Execute(Execute { name, explain }, values))
}

/// `kept`: the bytes of the text before DECLARE that belong to the query's text.
fn declare(p: &mut Parser<'_>, kept: usize) -> Result<Nested, SqlError> {
    p.advance();
    let name = p.identifier()?;
    let (mut binary, mut scroll, mut no_scroll, mut insensitive, mut asensitive) = (false, false, false, false, false);
    while !p.take("cursor") {
        match p.word().map(str::to_ascii_lowercase).as_deref() {
            Some("binary") => binary = true,
            Some("scroll") => scroll = true,
            Some("insensitive") => insensitive = true,
            Some("asensitive") => asensitive = true,
            Some("no") if p.is_next("scroll") => {
                p.advance();
                no_scroll = true;
            }
            _ => return Err(p.error()),
        }
        p.advance();
    }
    let hold = p.take("with");
    if hold || p.take("without") {
        p.expect("hold")?;
    }
    let after = p.token_end();
    p.expect("for")?;
    check_begins(p, &["select", "values", "table", "with"])?;
    let both = |first: &str, second: &str| {
        let message = format!("cannot specify both {first} and {second}");
        Some(Box::new(SqlError::new(SqlState::INVALID_CURSOR_DEFINITION, message)))
    };
    let clash = if scroll && no_scroll {
        both("SCROLL", "NO SCROLL")
    } else if asensitive && insensitive {
        both("ASENSITIVE", "INSENSITIVE")
    } else {
        None
    };
    let scroll = if scroll || no_scroll { Some(scroll) } else { None };
    let declare = Declare { name, binary, scroll, insensitive, hold, clash, text: p.text().to_owned() };
    Ok(Nested::Declare(declare, p.blanked(kept, after)))
}

/// EXPLAIN of EXECUTE or DECLARE.
fn explain(p: &mut Parser<'_>) -> Result<Option<Nested>, SqlError> {
    p.advance();
    if p.take_symbol('(') {
        let mut depth = 1;
        while depth > 0 && !p.is_at_end() {
            depth += i32::from(p.is_symbol('(')) - i32::from(p.is_symbol(')'));
            p.advance();
        }
    } else {
        let _ = p.take("analyze") || p.take("analyse");
        p.take("verbose");
    }
    if p.is("execute") {
        let options = p.before().to_owned();
        return execute(p, Some(options)).map(Some);
    }
    if !p.is("declare") {
        return Ok(None);
    }
    let kept = p.start();
    match declare(p, kept)? {
        Nested::Declare(Declare { clash: Some(clash), .. }, _) => Err(*clash),
        Nested::Declare(_, query) => Ok(Some(Nested::Explain(query))),
        _ => Ok(None),
    }
}

/// Parses what follows FETCH or MOVE.
pub(crate) fn fetch(p: &mut Parser<'_>, moves: bool) -> Result<Fetch, SqlError> {
    let direction = direction(p)?;
    let _ = p.take("from") || p.take("in");
    Ok(Fetch { name: p.identifier()?, direction, moves })
}

fn direction(p: &mut Parser<'_>) -> Result<Direction, SqlError> {
    Ok(if keyword(p, "next") {
        Direction::Forward(Some(1))
    } else if keyword(p, "prior") {
        Direction::Backward(Some(1))
    } else if keyword(p, "first") {
        Direction::Absolute(1)
    } else if keyword(p, "last") {
        Direction::Absolute(-1)
    } else if keyword(p, "absolute") {
        Direction::Absolute(required(p)?)
    } else if keyword(p, "relative") {
        Direction::Relative(required(p)?)
    } else if keyword(p, "backward") {
        Direction::Backward(count(p)?)
    } else {
        keyword(p, "forward");
        Direction::Forward(count(p)?)
    })
}

/// Takes a keyword, unless it is the last word: then it is the cursor's name.
fn keyword(p: &mut Parser<'_>, word: &str) -> bool {
    !p.is_last() && p.take(word)
}

fn required(p: &mut Parser<'_>) -> Result<i64, SqlError> {
    p.integer()?.ok_or_else(|| p.error())
}

/// A number of rows: `ALL`, an integer, or nothing for one row.
fn count(p: &mut Parser<'_>) -> Result<Option<i64>, SqlError> {
    if p.take("all") { Ok(None) } else { Ok(Some(p.integer()?.unwrap_or(1))) }
}

/// Goes beyond one element of a list in parentheses, to the comma or the parenthesis behind it. Returns the byte at its
/// end. 42601 if it is empty or the list does not end.
fn skip_element(p: &mut Parser<'_>) -> Result<usize, SqlError> {
    let mut depth = 0;
    if p.is_symbol(')') || p.is_symbol(',') {
        return Err(p.error());
    }
    while !p.is_at_end() {
        let (opens, closes) = (p.is_symbol('(') || p.is_symbol('['), p.is_symbol(')') || p.is_symbol(']'));
        if depth == 0 && (p.is_symbol(')') || p.is_symbol(',')) {
            return Ok(p.start());
        }
        depth += i32::from(opens) - i32::from(closes);
        p.advance();
    }
    Err(p.error())
}

/// 42601 unless the next token begins a query of these kinds.
fn check_begins(p: &Parser<'_>, words: &[&str]) -> Result<(), SqlError> {
    if p.is_symbol('(') || words.iter().any(|word| p.is(word)) { Ok(()) } else { Err(p.error()) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn nested(text: &str) -> Nested {
        parse_nested(text).unwrap_or_else(|e| panic!("{text}: {e}")).unwrap_or_else(|| panic!("{text}: another one"))
    }

    fn refused(text: &str) -> (String, Option<u32>) {
        let error = parse_nested(text).unwrap_err();
        assert_eq!(error.code.0, "42601", "{text}");
        (error.message, error.position)
    }

    #[test]
    fn prepare_keeps_the_place_of_its_query() {
        let Nested::Prepare(prepare, query) = nested("prepare É (int, varchar(3) , numeric(1, 2)[]) as select $1")
        else {
            panic!("PREPARE");
        };
        assert_eq!(prepare.name, "é");
        assert_eq!(query, format!("{} select $1", " ".repeat(48)));
        let types = prepare.types(&Catalog::new(1, [])).unwrap();
        assert_eq!(types, [SqlType::INT4, SqlType::VARCHAR, SqlType::NUMERIC.array().unwrap()]);
        let Nested::Prepare(prepare, _) = nested("prepare p(int, foo) as values (1)") else { panic!("PREPARE") };
        let error = prepare.types(&Catalog::new(1, [])).unwrap_err();
        assert_eq!((error.code.0, error.position), ("42704", Some(16)));
        assert_eq!(refused("prepare p as create table t()").0, "syntax error at or near \"create\"");
        assert_eq!(
            refused("prepare \"\" as select 1"),
            ("zero-length delimited identifier at or near \"\"\"\"".to_owned(), Some(9))
        );
        assert_eq!(refused("prepare p(int").0, "syntax error at end of input");
        assert_eq!(refused("prepare p() as select 1").0, "syntax error at or near \")\"");
        assert_eq!(parse_nested("prepare transaction 'x'"), Ok(None));
        assert_eq!(parse_nested("select 1"), Ok(None));
    }

    #[test]
    fn execute_makes_values_of_its_parameters() {
        let execute =
            |name: &str, explain: Option<&str>| Execute { name: name.to_owned(), explain: explain.map(str::to_owned) };
        assert_eq!(nested("execute p"), Nested::Execute(execute("p", None), None));
        let Nested::Execute(_, Some(values)) = nested("execute p (f(1, 'a,)'), array[1,2])") else { panic!("EXECUTE") };
        assert_eq!(values, "   VALUES (f(1, 'a,)'), array[1,2])");
        let text = "explain (costs off, analyze) execute P(1)";
        let Nested::Execute(found, Some(values)) = nested(text) else { panic!("EXECUTE") };
        assert_eq!(found, execute("p", Some("explain (costs off, analyze) ")));
        assert_eq!((values.len(), values.trim_start()), (text.len(), "VALUES (1)"));
        assert_eq!(refused("execute p()"), ("syntax error at or near \")\"".to_owned(), Some(11)));
        assert_eq!(refused("execute p(1,)"), ("syntax error at or near \")\"".to_owned(), Some(13)));
        assert_eq!(refused("execute p(1) x").0, "syntax error at or near \"x\"");
        assert_eq!(refused("execute p 1").0, "syntax error at or near \"1\"");
        assert_eq!(refused("execute p(1").0, "syntax error at end of input");
    }

    #[test]
    fn declare_reads_its_options() {
        let declare = |text: &str| match nested(text) {
            Nested::Declare(declare, query) => (declare, query.trim_start().to_owned()),
            other => panic!("{text}: {other:?}"),
        };
        let (plain, query) = declare("declare c cursor for select 1");
        assert_eq!((plain.scroll, plain.hold, plain.binary, query.as_str()), (None, false, false, "select 1"));
        let (all, _) = declare("declare c binary insensitive no scroll cursor with hold for (values (1))");
        assert_eq!((all.scroll, all.hold, all.binary, all.insensitive), (Some(false), true, true, true));
        assert_eq!(declare("declare c scroll cursor without hold for table t").0.scroll, Some(true));
        for (text, message) in [
            ("declare c scroll no scroll cursor for select 1", "cannot specify both SCROLL and NO SCROLL"),
            ("declare c asensitive insensitive cursor for table t", "cannot specify both ASENSITIVE and INSENSITIVE"),
        ] {
            let clash = declare(text).0.clash.unwrap();
            assert_eq!((clash.code.0, clash.message.as_str()), ("42P11", message));
        }
        let explained = nested("explain verbose declare c cursor for select 1");
        assert_eq!(explained, Nested::Explain(format!("explain verbose {}select 1", " ".repeat(21))));
        assert_eq!(refused("declare c cursor for insert into t values (1)").0, "syntax error at or near \"insert\"");
        assert_eq!(refused("declare c for select 1").0, "syntax error at or near \"for\"");
        assert_eq!(refused("declare c cursor with for select 1").0, "syntax error at or near \"for\"");
    }

    #[test]
    fn fetch_reads_its_direction() {
        let go = |text: &str| {
            let mut p = Parser::new(text);
            let fetched = fetch(&mut p, false)?;
            p.end().map(|()| (fetched.name, fetched.direction))
        };
        for (text, name, direction) in [
            ("c", "c", Direction::Forward(Some(1))),
            ("from c", "c", Direction::Forward(Some(1))),
            ("next in c", "c", Direction::Forward(Some(1))),
            ("prior c", "c", Direction::Backward(Some(1))),
            ("first c", "c", Direction::Absolute(1)),
            ("last from c", "c", Direction::Absolute(-1)),
            ("absolute -3 c", "c", Direction::Absolute(-3)),
            ("relative +2 from c", "c", Direction::Relative(2)),
            ("5 c", "c", Direction::Forward(Some(5))),
            ("-5 c", "c", Direction::Forward(Some(-5))),
            ("all c", "c", Direction::Forward(None)),
            ("forward c", "c", Direction::Forward(Some(1))),
            ("forward 0 c", "c", Direction::Forward(Some(0))),
            ("forward all in \"C\"", "C", Direction::Forward(None)),
            ("backward 7 c", "c", Direction::Backward(Some(7))),
            ("backward all c", "c", Direction::Backward(None)),
            ("next", "next", Direction::Forward(Some(1))),
            ("from absolute", "absolute", Direction::Forward(Some(1))),
        ] {
            assert_eq!(go(text), Ok((name.to_owned(), direction)), "{text}");
        }
        for text in ["", "all", "from", "3000000000 c", "absolute c", "relative from c", "1 2 c", "c d", "- c"] {
            assert_eq!(go(text).unwrap_err().code.0, "42601", "{text}");
        }
    }

    proptest! {
        /// Any text is read without a panic, and a query never moves: it is a suffix of the text, as long as it.
        #[test]
        fn queries_keep_their_place(
            words in proptest::collection::vec(
                proptest::sample::select(vec![
                    "prepare", "declare", "explain", "execute", "p", "\"\"", "é", "(", ")", ",", "int", "as", "for",
                    "cursor", "with hold", "scroll", "select 1", "'a", "'b'", "1", "[", "]", "--x\n", "/*", "*/",
                ]),
                0..12,
            ),
        ) {
            let text = words.join(" ");
            if let Ok(Some(Nested::Prepare(_, query) | Nested::Declare(_, query))) = parse_nested(&text) {
                prop_assert_eq!(query.chars().count(), text.chars().count());
                prop_assert!(text.ends_with(query.trim_start()));
            }
        }
    }
}

//! AS OF SYSTEM TIME: its place in a statement, and the timestamp that its expression says. Pure.
//!
//! The general parser does not know the clause. [`Clause::find`] cuts it out of the text and leaves blanks in its
//! place, so that positions stay. The expression is a constant or one of CockroachDB's functions. It is evaluated for
//! each execution.

use std::ops::Range;

use tso::Timestamp;

use super::interval;
use crate::error::{SqlError, SqlState};
use crate::lexer::{Lexer, Spanned, Token};
use pgtypes::TimeZone;
use pgtypes::timestamp::EPOCH_SECONDS;
use pgtypes::timestamp::{self, Now};

/// How far `follower_read_timestamp()` lies in the past, in milliseconds. Nodes exchange what their replicas can prove
/// every 200 ms; the rest is for the distance between them.
const FOLLOWER_READ_MS: u64 = 1_000;

/// The expression of AS OF SYSTEM TIME.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// A string: a timestamp, or an interval from now.
    Text(String),
    /// A number: a timestamp of the oracle, in milliseconds with the counter behind the point.
    Number(String),
    /// `follower_read_timestamp()`.
    FollowerRead,
    /// `with_max_staleness(interval)`.
    MaxStaleness(String),
    /// `with_min_timestamp(timestamp)`.
    MinTimestamp(String),
}

/// What an expression says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resolved {
    /// The snapshot.
    At(Timestamp),
    /// The least snapshot.
    NotBelow(Timestamp),
}

/// The clause in a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Clause {
    /// Its expression.
    pub(crate) moment: Moment,
    /// Its bytes.
    span: Range<usize>,
}

impl Clause {
    /// Finds the clause in a statement. 42601 for one in a subquery, or with another expression than a constant.
    pub(crate) fn find(text: &str) -> Result<Option<Clause>, SqlError> {
        if !text.as_bytes().windows(6).any(|word| word.eq_ignore_ascii_case(b"system")) {
            return Ok(None);
        }
        let mut lexer = Lexer::new(text);
        let (mut depth, mut at, mut start, mut found) = (0usize, 0, 0, None);
        while let Some(Spanned { token, start: first, end }) = lexer.next() {
            match token {
                Token::Symbol('(') => depth += 1,
                Token::Symbol(')') => depth = depth.saturating_sub(1),
                _ => {}
            }
            let words = ["as", "of", "system", "time"];
            let is = |at: usize| matches!(&token, Token::Word(word) if word.eq_ignore_ascii_case(words[at]));
            at = if is(at) { at + 1 } else { usize::from(is(0)) };
            if at == 1 {
                start = first;
            }
            if at < words.len() {
                continue;
            }
            at = 0;
            if depth > 0 || found.is_some() {
                let message = "AS OF SYSTEM TIME must be provided on a top-level statement";
                return Err(syntax(text, start, message));
            }
            let (moment, end) = Moment::parse(text, end)?;
            lexer.skip_to(end);
            found = Some(Clause { moment, span: start..end });
        }
        Ok(found)
    }

    /// The statement with blanks in place of the clause.
    pub(crate) fn without(&self, text: &str) -> String {
        let (before, after) = (&text[..self.span.start], &text[self.span.end..]);
        let blanks = text[self.span.clone()].chars().map(|c| if c == '\n' { '\n' } else { ' ' });
        before.chars().chain(blanks).chain(after.chars()).collect()
    }
}

impl Moment {
    /// Reads an expression from byte `at` of a text. Returns the byte after it.
    pub(crate) fn parse(text: &str, at: usize) -> Result<(Moment, usize), SqlError> {
        let mut tokens = Tokens::new(text, at);
        let (moment, mut end) = tokens.expression()?;
        // A cast of a constant to the type that it has anyway.
        if tokens.take_symbol(':') && tokens.take_symbol(':') {
            match tokens.next() {
                Some(Spanned { token: Token::Word(ty), end: last, .. }) if is_type(ty) => end = last,
                _ => return Err(not_constant(text, at)),
            }
        }
        Ok((moment, end))
    }

    /// The timestamp that it says. `now`: about the oracle's time. `zone`: of timestamps without one. 22023 for what is
    /// no point in the past, as far as that is known here.
    pub(crate) fn resolve(&self, now: Timestamp, zone: &TimeZone) -> Result<Resolved, SqlError> {
        Ok(match self {
            Moment::Text(text) => Resolved::At(match absolute(text, now, zone)? {
                Some(at) => at,
                None => relative(text, now)?,
            }),
            Moment::Number(text) => Resolved::At(number(text).ok_or_else(|| out_of_range(text))?),
            Moment::FollowerRead => Resolved::At(back(now, i128::from(FOLLOWER_READ_MS) * 1_000)?),
            Moment::MaxStaleness(text) => {
                let most = interval::parse(text, 1_000_000).filter(|micros| *micros > 0);
                let most = most.ok_or_else(|| invalid(&format!("\"{text}\" is not a positive interval")))?;
                Resolved::NotBelow(back(now, most.into()).unwrap_or(Timestamp::ZERO))
            }
            Moment::MinTimestamp(text) => {
                let least = absolute(text, now, zone)?;
                Resolved::NotBelow(least.ok_or_else(|| invalid(&format!("\"{text}\" is not a timestamp")))?)
            }
        })
    }
}

/// The tokens of an expression.
struct Tokens<'a> {
    text: &'a str,
    at: usize,
    lexer: Lexer<'a>,
}

impl<'a> Tokens<'a> {
    fn new(text: &'a str, at: usize) -> Tokens<'a> {
        let mut lexer = Lexer::new(text);
        lexer.skip_to(at);
        Tokens { text, at, lexer }
    }

    fn next(&mut self) -> Option<Spanned<'a>> {
        self.lexer.next()
    }

    fn take_symbol(&mut self, symbol: char) -> bool {
        let before = self.lexer.clone();
        let found = self.next().is_some_and(|token| token.token == Token::Symbol(symbol));
        if !found {
            self.lexer = before;
        }
        found
    }

    fn expression(&mut self) -> Result<(Moment, usize), SqlError> {
        let Some(Spanned { token, start, end }) = self.next() else {
            return Err(syntax(self.text, self.text.len(), "syntax error at end of input"));
        };
        match token {
            Token::Text(text) => Ok((Moment::Text(text), end)),
            Token::Number(number) => Ok((Moment::Number(number.to_owned()), end)),
            Token::Symbol('-') => match self.next() {
                Some(Spanned { token: Token::Number(number), end, .. }) => {
                    Ok((Moment::Number(format!("-{number}")), end))
                }
                _ => Err(not_constant(self.text, self.at)),
            },
            Token::Symbol('$') => {
                let message = "parameters in AS OF SYSTEM TIME are not supported";
                let error = SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message);
                Err(error.at(position(self.text, start)))
            }
            Token::Word(word) => self.named(word),
            _ => Err(not_constant(self.text, self.at)),
        }
    }

    /// A typed constant, or a function.
    fn named(&mut self, word: &str) -> Result<(Moment, usize), SqlError> {
        let refused = not_constant(self.text, self.at);
        if is_type(word) {
            return match self.next() {
                Some(Spanned { token: Token::Text(text), end, .. }) => Ok((Moment::Text(text), end)),
                _ => Err(refused),
            };
        }
        if !self.take_symbol('(') {
            return Err(refused);
        }
        let moment = match word.to_ascii_lowercase().as_str() {
            "follower_read_timestamp" => Moment::FollowerRead,
            "with_max_staleness" => Moment::MaxStaleness(self.argument()?),
            "with_min_timestamp" => Moment::MinTimestamp(self.argument()?),
            _ => return Err(refused),
        };
        match self.next() {
            Some(Spanned { token: Token::Symbol(')'), end, .. }) => Ok((moment, end)),
            _ => Err(refused),
        }
    }

    /// The first argument, and a second that says nothing new: that other replicas may serve the read too.
    fn argument(&mut self) -> Result<String, SqlError> {
        let start = self.at;
        let value = match self.expression()?.0 {
            Moment::Text(text) | Moment::Number(text) => text,
            _ => return Err(not_constant(self.text, start)),
        };
        if self.take_symbol(',') {
            match self.next() {
                Some(Spanned { token: Token::Word(word), .. }) if word.eq_ignore_ascii_case("false") => {}
                Some(Spanned { token: Token::Word(word), start, .. }) if word.eq_ignore_ascii_case("true") => {
                    let message = "reads from the nearest replica only are not supported";
                    let error = SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message);
                    return Err(error.at(position(self.text, start)));
                }
                _ => return Err(not_constant(self.text, start)),
            }
        }
        Ok(value)
    }
}

fn is_type(word: &str) -> bool {
    ["interval", "timestamptz", "timestamp", "text", "string", "decimal", "numeric"]
        .iter()
        .any(|ty| word.eq_ignore_ascii_case(ty))
}

/// A point in time: a timestamp of the oracle, or one of PostgreSQL. `None` if the text is not one.
fn absolute(text: &str, now: Timestamp, zone: &TimeZone) -> Result<Option<Timestamp>, SqlError> {
    if text.trim().starts_with(|c: char| c.is_ascii_digit())
        && text.trim().bytes().all(|b| b.is_ascii_digit() || b == b'.')
    {
        return number(text).map(Some).ok_or_else(|| out_of_range(text));
    }
    if interval::parse(text, 1_000_000).is_some() {
        return Ok(None);
    }
    let now = i64::try_from(now.physical_ms()).unwrap_or(i64::MAX).saturating_mul(1_000);
    let epoch = EPOCH_SECONDS * 1_000_000;
    match timestamp::parse(text, zone, Now(now.saturating_sub(epoch))) {
        Ok(micros) => from_micros(i128::from(micros) + i128::from(epoch)).map(Some),
        Err(_) => Err(invalid(&format!("value \"{text}\" is neither a timestamp, a decimal, nor an interval"))),
    }
}

/// An interval from now, which must point to the past.
fn relative(text: &str, now: Timestamp) -> Result<Timestamp, SqlError> {
    match interval::parse(text, 1_000_000) {
        Some(micros) if micros < 0 => back(now, -i128::from(micros)),
        _ => {
            Err(invalid(&format!("interval \"{text}\" does not point to the past: it must be at most -1 microsecond")))
        }
    }
}

/// A timestamp of the oracle: milliseconds, and a counter behind a point.
fn number(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    let whole = if text.contains('.') { text.parse().ok() } else { format!("{text}.0").parse().ok() };
    whole.filter(|timestamp| *timestamp > Timestamp::ZERO)
}

fn back(now: Timestamp, micros: i128) -> Result<Timestamp, SqlError> {
    from_micros(i128::from(now.physical_ms()) * 1_000 - micros)
}

/// The timestamp of a time in microseconds since 1970.
fn from_micros(micros: i128) -> Result<Timestamp, SqlError> {
    // An oracle's timestamp has 46 bits of milliseconds.
    let ms = u64::try_from(micros / 1_000).ok().filter(|ms| micros > 0 && (1..1 << 46).contains(ms));
    ms.map(|ms| Timestamp::new(ms, 0)).ok_or_else(|| invalid("the timestamp is out of range: before 1970, or infinite"))
}

fn out_of_range(text: &str) -> SqlError {
    invalid(&format!("\"{text}\" is not a timestamp: milliseconds and a counter, such as 1700000000000.7"))
}

fn invalid(why: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, format!("AS OF SYSTEM TIME: {why}"))
}

fn not_constant(text: &str, at: usize) -> SqlError {
    let message = "AS OF SYSTEM TIME: only constant expressions, with_min_timestamp, with_max_staleness, or \
                   follower_read_timestamp are allowed";
    let at = at + text[at..].len() - text[at..].trim_start().len();
    syntax(text, at, message)
}

fn syntax(text: &str, at: usize, message: &str) -> SqlError {
    SqlError::new(SqlState::SYNTAX_ERROR, message).at(position(text, at))
}

/// The position of a byte in characters from 1.
fn position(text: &str, at: usize) -> u32 {
    u32::try_from(text[..at].chars().count() + 1).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> (Moment, String) {
        let clause = Clause::find(text).unwrap_or_else(|e| panic!("{text}: {e:?}")).expect(text);
        (clause.moment.clone(), clause.without(text))
    }

    #[test]
    fn the_clause_is_cut_out_and_positions_stay() {
        let (moment, rest) = found("select é from t as of System\n time '-5s' where a = 1");
        assert_eq!(
            (moment, rest.as_str()),
            (Moment::Text("-5s".into()), "select é from t             \n            where a = 1")
        );
        let text = |text: &str| Moment::Text(text.into());
        for (expr, expected) in [
            ("interval '-5s'", text("-5s")),
            ("'-5s'::interval", text("-5s")),
            ("timestamptz '2024-01-01'", text("2024-01-01")),
            ("1700000000000.7", Moment::Number("1700000000000.7".into())),
            ("-1", Moment::Number("-1".into())),
            ("follower_read_timestamp()", Moment::FollowerRead),
            ("WITH_MAX_STALENESS( '10s' , false)", Moment::MaxStaleness("10s".into())),
            ("with_min_timestamp('2024-01-01')", Moment::MinTimestamp("2024-01-01".into())),
        ] {
            assert_eq!(found(&format!("select 1 as of system time {expr} limit 1")).0, expected, "{expr}");
            assert_eq!(found(&format!("select 1 as of system time {expr}")).1.trim(), "select 1", "{expr}");
        }
        for none in ["select 'as of system time'", "select system as of, time", "select 1 /* as of system time 1 */"] {
            assert_eq!(Clause::find(none), Ok(None), "{none}");
        }
    }

    #[test]
    fn other_expressions_are_refused_with_their_position() {
        for (text, code, position) in [
            ("select 1 as of system time now()", "42601", 28),
            ("select 1 as of system time a", "42601", 28),
            ("select 1 as of system time", "42601", 27),
            ("select 1 as of system time $1", "0A000", 28),
            ("select 1 as of system time with_max_staleness('1s', true)", "0A000", 53),
            ("select 1 as of system time with_max_staleness(now())", "42601", 28),
            ("select (select 1 as of system time '-1s')", "42601", 18),
            ("select 1 as of system time '-1s' as of system time '-1s'", "42601", 34),
        ] {
            let error = Clause::find(text).expect_err(text);
            assert_eq!((error.code.0, error.position), (code, Some(position)), "{text}: {error}");
        }
    }

    #[test]
    fn expressions_say_a_point_in_the_past() {
        let now = Timestamp::new(1_700_000_000_000, 9);
        let at = |ms, counter| Ok(Resolved::At(Timestamp::new(ms, counter)));
        let text = |text: &str| Moment::Text(text.into());
        for (moment, expected) in [
            (text("-5s"), at(1_699_999_995_000, 0)),
            (text("1 min ago"), at(1_699_999_940_000, 0)),
            (text("1699999999999.12"), at(1_699_999_999_999, 12)),
            (text("2023-11-14 22:13:19+00"), at(1_699_999_999_000, 0)),
            (text("2023-11-14 23:13:19+01"), at(1_699_999_999_000, 0)),
            (Moment::Number("1699999999999".into()), at(1_699_999_999_999, 0)),
            (Moment::FollowerRead, at(1_699_999_999_000, 0)),
            (Moment::MaxStaleness("10s".into()), Ok(Resolved::NotBelow(Timestamp::new(1_699_999_990_000, 0)))),
            (
                Moment::MinTimestamp("1699999999999.12".into()),
                Ok(Resolved::NotBelow(Timestamp::new(1_699_999_999_999, 12))),
            ),
            (text("5s"), Err("22023")),
            (text("0s"), Err("22023")),
            (text("soon"), Err("22023")),
            (text("-60 years"), Err("22023")),
            (text("infinity"), Err("22023")),
            (text("1969-01-01"), Err("22023")),
            (text("0"), Err("22023")),
            (Moment::Number("-5".into()), Err("22023")),
            (Moment::Number("99999999999999999999".into()), Err("22023")),
            (Moment::MaxStaleness("-10s".into()), Err("22023")),
            (Moment::MinTimestamp("-10s".into()), Err("22023")),
        ] {
            assert_eq!(moment.resolve(now, &TimeZone::utc()).map_err(|e| e.code.0), expected, "{moment:?}");
        }
    }
}

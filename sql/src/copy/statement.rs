//! The grammar of COPY, with the spelling of older PostgreSQL versions. Text in, a [`CopyStatement`] out; names are not
//! resolved and options not checked.

use std::ops::Range;

use crate::error::{SqlError, SqlState};
use crate::lexer::{Lexer, Spanned, Token};

/// A parsed COPY.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CopyStatement {
    /// What is copied.
    pub(crate) target: CopyTarget,
    /// COPY FROM, not COPY TO.
    pub(crate) is_from: bool,
    /// Where the data is.
    pub(crate) place: Place,
    /// The options, in order.
    pub(crate) options: Vec<CopyOption>,
    /// The bytes of the condition after WHERE.
    filter: Option<Range<usize>>,
}

/// What is copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CopyTarget {
    /// A table, and some of its columns; no columns for all.
    Table {
        /// The parts of its name.
        name: Vec<Identifier>,
        /// The columns.
        columns: Vec<Identifier>,
    },
    /// The result of a query: its bytes in the statement.
    Query(Range<usize>),
}

/// An identifier as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identifier {
    /// Its characters, without quotes.
    pub(crate) text: String,
    /// Whether it was quoted.
    pub(crate) is_quoted: bool,
}

/// Where the data is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// At the client.
    Client,
    /// In a file of the server.
    File,
    /// With a program of the server.
    Program,
}

/// An option as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CopyOption {
    /// The folded name.
    pub(crate) name: String,
    /// The value.
    pub(crate) value: OptionValue,
    /// Its position in the statement, in characters from 1.
    pub(crate) position: u32,
}

/// The value of an option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OptionValue {
    /// None.
    Missing,
    /// A word, a string or a number.
    Scalar(String),
    /// `*`
    All,
    /// Names in parentheses.
    List(Vec<String>),
}

impl CopyStatement {
    /// The text that the general parser reads: the query, or a query whose condition is that of WHERE. Each part is
    /// where it is in `text`, the statement, so that the positions of errors fit.
    pub(crate) fn source(&self, text: &str) -> String {
        let padded = |range: &Range<usize>, head: &str| {
            let before = text[..range.start].chars().count();
            format!("{head}{}{}", " ".repeat(before.saturating_sub(head.len())), &text[range.clone()])
        };
        match (&self.target, &self.filter) {
            (CopyTarget::Query(range), _) => padded(range, ""),
            (CopyTarget::Table { .. }, Some(range)) => padded(range, "select 1 where"),
            (CopyTarget::Table { .. }, None) if self.is_from => "select 1".to_owned(),
            (CopyTarget::Table { name, columns }, None) => {
                let list = if columns.is_empty() { "*".to_owned() } else { joined(columns, ", ") };
                format!("select {list} from {}", joined(name, "."))
            }
        }
    }

    /// An error of the general parser, as one of the statement: behind the query is its parenthesis.
    pub(crate) fn locate(&self, text: &str, error: SqlError) -> SqlError {
        match &self.target {
            CopyTarget::Query(range) if error.message == "syntax error at end of input" => {
                let message = "syntax error at or near \")\"".to_owned();
                SqlError { message, ..error }.at(position(text, range.end))
            }
            _ => error,
        }
    }

    /// Whether the general parser's statement is the user's own, not one that stands for a table.
    pub(crate) fn is_query(&self) -> bool {
        matches!(self.target, CopyTarget::Query(_))
    }
}

fn joined(parts: &[Identifier], separator: &str) -> String {
    let quoted = |part: &Identifier| match part.is_quoted {
        true => format!("\"{}\"", part.text.replace('"', "\"\"")),
        // Words that are reserved in a query are names here.
        false => format!("\"{}\"", part.text.to_ascii_lowercase()),
    };
    parts.iter().map(quoted).collect::<Vec<_>>().join(separator)
}

/// The position of a byte, in characters from 1.
fn position(text: &str, at: usize) -> u32 {
    u32::try_from(text[..at].chars().count() + 1).unwrap_or(u32::MAX)
}

/// Parses COPY; `None` if the text is another statement.
pub(crate) fn parse(text: &str) -> Result<Option<CopyStatement>, SqlError> {
    let mut p = Parser::new(text);
    if !p.take("copy") {
        return Ok(None);
    }
    let mut options = Vec::new();
    let (target, is_from) = match p.take_symbol('(') {
        true => (p.query()?, false),
        false => {
            p.flag(&mut options, "binary", ("format", "binary"));
            let name = p.table_name()?;
            let columns = if p.is_symbol('(') { p.columns()? } else { Vec::new() };
            let is_from = p.take("from");
            if !is_from && !p.is("to") {
                return Err(p.error());
            }
            (CopyTarget::Table { name, columns }, is_from)
        }
    };
    if !is_from {
        p.expect("to")?;
    }
    let place = p.place()?;
    let is_table = matches!(target, CopyTarget::Table { .. });
    if is_table && (p.is("using") || p.is("delimiters")) {
        let position = p.position();
        p.take("using");
        p.expect("delimiters")?;
        let value = OptionValue::Scalar(p.string()?);
        options.push(CopyOption { name: "delimiter".to_owned(), value, position });
    }
    p.take("with");
    if p.take_symbol('(') {
        p.generic_options(&mut options)?;
    } else {
        p.plain_options(&mut options)?;
    }
    let filter = if is_table { p.filter(is_from)? } else { None };
    p.end()?;
    Ok(Some(CopyStatement { target, is_from, place, options, filter }))
}

/// A token reader with one token of look-ahead.
struct Parser<'a> {
    text: &'a str,
    lexer: Lexer<'a>,
    head: Option<Spanned<'a>>,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Parser<'a> {
        let mut lexer = Lexer::new(text);
        let head = lexer.next();
        Parser { text, lexer, head }
    }

    fn advance(&mut self) {
        self.head = self.lexer.next();
    }

    fn is(&self, word: &str) -> bool {
        matches!(&self.head, Some(Spanned { token: Token::Word(w), .. }) if w.eq_ignore_ascii_case(word))
    }

    fn take(&mut self, word: &str) -> bool {
        let found = self.is(word);
        if found {
            self.advance();
        }
        found
    }

    fn expect(&mut self, word: &str) -> Result<(), SqlError> {
        if self.take(word) { Ok(()) } else { Err(self.error()) }
    }

    fn is_symbol(&self, symbol: char) -> bool {
        matches!(&self.head, Some(s) if s.token == Token::Symbol(symbol))
    }

    fn take_symbol(&mut self, symbol: char) -> bool {
        let found = self.is_symbol(symbol);
        if found {
            self.advance();
        }
        found
    }

    fn expect_symbol(&mut self, symbol: char) -> Result<(), SqlError> {
        if self.take_symbol(symbol) { Ok(()) } else { Err(self.error()) }
    }

    /// The position of the next token, in characters from 1.
    fn position(&self) -> u32 {
        position(self.text, self.head.as_ref().map_or(self.text.len(), |head| head.start))
    }

    fn end(&self) -> Result<(), SqlError> {
        if self.head.is_none() { Ok(()) } else { Err(self.error()) }
    }

    /// A syntax error at the next token.
    fn error(&self) -> SqlError {
        let message = match &self.head {
            None => "syntax error at end of input".to_owned(),
            Some(Spanned { token: Token::Unterminated, start, .. }) => {
                format!("unterminated quoted string at or near \"{}\"", &self.text[*start..])
            }
            Some(s) => format!("syntax error at or near \"{}\"", &self.text[s.start..s.end]),
        };
        SqlError::new(SqlState::SYNTAX_ERROR, message).at(self.position())
    }

    fn identifier(&mut self) -> Result<Identifier, SqlError> {
        let name = match &self.head {
            Some(Spanned { token: Token::Word(word), .. }) => Identifier { text: (*word).to_owned(), is_quoted: false },
            Some(Spanned { token: Token::Quoted(word), .. }) => Identifier { text: word.clone(), is_quoted: true },
            _ => return Err(self.error()),
        };
        self.advance();
        Ok(name)
    }

    fn table_name(&mut self) -> Result<Vec<Identifier>, SqlError> {
        let mut name = vec![self.identifier()?];
        while self.take_symbol('.') {
            name.push(self.identifier()?);
        }
        Ok(name)
    }

    /// Names in parentheses.
    fn columns(&mut self) -> Result<Vec<Identifier>, SqlError> {
        self.expect_symbol('(')?;
        let columns = self.names()?;
        self.expect_symbol(')')?;
        Ok(columns)
    }

    fn names(&mut self) -> Result<Vec<Identifier>, SqlError> {
        let mut names = vec![self.identifier()?];
        while self.take_symbol(',') {
            names.push(self.identifier()?);
        }
        Ok(names)
    }

    /// The query after its opening parenthesis.
    fn query(&mut self) -> Result<CopyTarget, SqlError> {
        let start = self.head.as_ref().map_or(self.text.len(), |head| head.start);
        let mut depth = 0usize;
        loop {
            match &self.head {
                Some(Spanned { token: Token::Symbol('('), .. }) => depth += 1,
                Some(Spanned { token: Token::Symbol(')'), start: end, .. }) if depth == 0 => {
                    let end = *end;
                    if start == end {
                        return Err(self.error());
                    }
                    self.advance();
                    return Ok(CopyTarget::Query(start..end));
                }
                Some(Spanned { token: Token::Symbol(')'), .. }) => depth -= 1,
                Some(Spanned { token: Token::Unterminated, .. }) | None => return Err(self.error()),
                Some(_) => {}
            }
            self.advance();
        }
    }

    fn place(&mut self) -> Result<Place, SqlError> {
        let at = self.position();
        let is_program = self.take("program");
        if self.take("stdin") || self.take("stdout") {
            if is_program {
                let message = "STDIN/STDOUT not allowed with PROGRAM";
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(at));
            }
            return Ok(Place::Client);
        }
        self.string()?;
        Ok(if is_program { Place::Program } else { Place::File })
    }

    fn string(&mut self) -> Result<String, SqlError> {
        let Some(Spanned { token: Token::Text(text), .. }) = &self.head else { return Err(self.error()) };
        let text = text.clone();
        self.advance();
        Ok(text)
    }

    /// A word that stands for an option with a value.
    fn flag(&mut self, options: &mut Vec<CopyOption>, word: &str, (name, value): (&str, &str)) -> bool {
        let position = self.position();
        let found = self.take(word);
        if found {
            let value = if value.is_empty() { OptionValue::Missing } else { OptionValue::Scalar(value.to_owned()) };
            options.push(CopyOption { name: name.to_owned(), value, position });
        }
        found
    }

    /// Options without parentheses.
    fn plain_options(&mut self, options: &mut Vec<CopyOption>) -> Result<(), SqlError> {
        const FLAGS: [(&str, (&str, &str)); 4] = [
            ("binary", ("format", "binary")),
            ("csv", ("format", "csv")),
            ("freeze", ("freeze", "")),
            ("header", ("header", "")),
        ];
        const STRINGS: [&str; 5] = ["delimiter", "null", "quote", "escape", "encoding"];
        loop {
            let position = self.position();
            if FLAGS.iter().any(|(word, option)| self.flag(options, word, *option)) {
                continue;
            }
            let (name, value) = if let Some(name) = STRINGS.iter().find(|word| self.take(word)) {
                if *name != "encoding" {
                    self.take("as");
                }
                (*name, OptionValue::Scalar(self.string()?))
            } else if self.take("force") {
                self.forced()?
            } else {
                return Ok(());
            };
            options.push(CopyOption { name: name.to_owned(), value, position });
        }
    }

    /// The option after FORCE.
    fn forced(&mut self) -> Result<(&'static str, OptionValue), SqlError> {
        let name = if self.take("quote") {
            if self.take_symbol('*') {
                return Ok(("force_quote", OptionValue::All));
            }
            "force_quote"
        } else if self.take("not") {
            self.expect("null")?;
            "force_not_null"
        } else {
            self.expect("null")?;
            "force_null"
        };
        Ok((name, OptionValue::List(self.names()?.iter().map(Identifier::folded).collect())))
    }

    /// Options in parentheses, behind the opening one.
    fn generic_options(&mut self, options: &mut Vec<CopyOption>) -> Result<(), SqlError> {
        loop {
            let position = self.position();
            let name = self.identifier()?.folded();
            let value = if self.take_symbol('*') {
                OptionValue::All
            } else if self.take_symbol('(') {
                let mut list = vec![self.scalar()?];
                while self.take_symbol(',') {
                    list.push(self.scalar()?);
                }
                self.expect_symbol(')')?;
                OptionValue::List(list)
            } else if self.is_symbol(',') || self.is_symbol(')') {
                OptionValue::Missing
            } else {
                OptionValue::Scalar(self.scalar()?)
            };
            options.push(CopyOption { name, value, position });
            if !self.take_symbol(',') {
                return self.expect_symbol(')');
            }
        }
    }

    /// A word, a string or a number.
    fn scalar(&mut self) -> Result<String, SqlError> {
        let minus = self.take_symbol('-');
        if !minus {
            self.take_symbol('+');
        }
        let value = match &self.head {
            Some(Spanned { token: Token::Number(number), .. }) if minus => format!("-{number}"),
            Some(Spanned { token: Token::Number(number), .. }) => (*number).to_owned(),
            _ if minus => return Err(self.error()),
            Some(Spanned { token: Token::Text(text), .. }) => text.clone(),
            _ => return Ok(self.identifier()?.folded()),
        };
        self.advance();
        Ok(value)
    }

    /// The condition after WHERE, up to the end.
    fn filter(&mut self, is_from: bool) -> Result<Option<Range<usize>>, SqlError> {
        let at = self.position();
        if !self.take("where") {
            return Ok(None);
        }
        if self.head.is_none() {
            return Err(self.error());
        }
        if !is_from {
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, "WHERE clause not allowed with COPY TO").at(at));
        }
        let start = self.head.as_ref().map_or(self.text.len(), |head| head.start);
        self.head = None;
        Ok(Some(start..self.text.len()))
    }
}

impl Identifier {
    /// The name: folded to lower case unless quoted.
    fn folded(&self) -> String {
        if self.is_quoted { self.text.clone() } else { self.text.to_ascii_lowercase() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(text: &str) -> String {
        match parse(text) {
            Err(error) => format!("{} at {}", error.message, error.position.unwrap_or(0)),
            Ok(None) => "no COPY".to_owned(),
            Ok(Some(copy)) => {
                let value = |value: &OptionValue| match value {
                    OptionValue::Missing => String::new(),
                    OptionValue::Scalar(text) => format!("={text}"),
                    OptionValue::All => "=*".to_owned(),
                    OptionValue::List(list) => format!("=({})", list.join(" ")),
                };
                let options: Vec<String> =
                    copy.options.iter().map(|option| format!("{}{}", option.name, value(&option.value))).collect();
                format!("{:?} {} [{}] {:?}", copy.place, copy.is_from, options.join(", "), copy.source(text))
            }
        }
    }

    #[test]
    fn statements_and_options_old_and_new() {
        for (text, expected) in [
            ("copy t from stdin", "Client true [] \"select 1\""),
            ("select 1", "no COPY"),
            (
                "COPY public.\"T\" (a, \"B\") TO stdout",
                "Client false [] \"select \\\"a\\\", \\\"B\\\" from \\\"public\\\".\\\"T\\\"\"",
            ),
            ("copy t from stdin with (freeze on, header match)", "Client true [freeze=on, header=match] \"select 1\""),
            (
                "copy t from stdin with delimiter as ',' null '' csv header quote as '\"' escape '\\' freeze",
                "Client true [delimiter=,, null=, format=csv, header, quote=\", escape=\\, freeze] \"select 1\"",
            ),
            (
                "copy t to stdout csv force quote a, B force not null c force null \"D\" encoding 'utf8'",
                "Client false [format=csv, force_quote=(a b), force_not_null=(c), force_null=(D), encoding=utf8] \
                 \"select * from \\\"t\\\"\"",
            ),
            (
                "copy binary t to stdout using delimiters '|'",
                "Client false [format=binary, delimiter=|] \"select * from \\\"t\\\"\"",
            ),
            (
                "copy t to stdout (format csv, force_quote *, header)",
                "Client false [format=csv, force_quote=*, header] \"select * from \\\"t\\\"\"",
            ),
            ("copy (select (1)) to stdout", "Client false [] \"      select (1)\""),
            ("copy t from stdin where a > 1", "Client true [] \"select 1 where          a > 1\""),
            (
                "copy é from stdin (header 1) where a > 1",
                "Client true [header=1] \"select 1 where                     a > 1\"",
            ),
            ("copy t from 'file'", "File true [] \"select 1\""),
            ("copy t to program 'cat'", "Program false [] \"select * from \\\"t\\\"\""),
            ("copy t from program stdin", "STDIN/STDOUT not allowed with PROGRAM at 13"),
            ("copy t to stdout where a", "WHERE clause not allowed with COPY TO at 18"),
            ("copy (select 1) from stdin", "syntax error at or near \"from\" at 17"),
            ("copy () to stdout", "syntax error at or near \")\" at 7"),
            ("copy (select 1", "syntax error at end of input at 15"),
            ("copy t", "syntax error at end of input at 7"),
            ("copy t from stdin where", "syntax error at end of input at 24"),
            ("copy t from stdin csv bad", "syntax error at or near \"bad\" at 23"),
            ("copy t from stdin (format)", "Client true [format] \"select 1\""),
            ("copy t from stdin (format csv", "syntax error at end of input at 30"),
            ("copy t from stdin ()", "syntax error at or near \")\" at 20"),
        ] {
            assert_eq!(show(text), expected, "{text}");
        }
    }
}

//! VACUUM and ANALYZE, which the parser does not know as PostgreSQL writes them: options before or in parentheses,
//! several tables, each with a list of columns.

use std::iter::Peekable;

use sqlparser::ast::{Analyze, Ident, ObjectName, Statement, VacuumStatement};
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

use super::text::{SourceText, end_of_input, syntax_error, word};
use crate::error::{SqlError, SqlState};

/// VACUUM or ANALYZE.
#[derive(Clone, Debug, PartialEq)]
pub struct Maintenance {
    /// Whether it is VACUUM.
    pub is_vacuum: bool,
    /// Whether tables are analyzed.
    pub analyzes: bool,
    /// The tables, with the columns to analyze; none for all of them.
    pub tables: Vec<(ObjectName, Vec<Ident>)>,
}

impl Maintenance {
    /// The tree that stands for it.
    pub(super) fn tree(&self) -> Statement {
        if self.is_vacuum { vacuum() } else { analyze() }
    }
}

/// The options of VACUUM in parentheses. Those that are no switches take a word or a number.
const VACUUM_OPTIONS: &[&str] = &[
    "analyze",
    "analyse",
    "disable_page_skipping",
    "freeze",
    "full",
    "index_cleanup",
    "parallel",
    "process_toast",
    "skip_locked",
    "truncate",
    "verbose",
];
/// Those of ANALYZE.
const ANALYZE_OPTIONS: &[&str] = &["skip_locked", "verbose"];

/// Words that no table has as its name without quotes.
const KEYWORDS: &[&str] = &["analyse", "analyze", "freeze", "full", "verbose"];

/// Whether a word begins such a statement.
pub(super) fn begins(verb: &str) -> bool {
    ["vacuum", "analyze", "analyse"].iter().any(|known| verb.eq_ignore_ascii_case(known))
}

/// Parses a statement, of the tokens up to its semicolon.
pub(super) fn parse(text: &SourceText, statement: &[TokenWithSpan]) -> Result<Maintenance, SqlError> {
    let tokens = statement.iter().filter(|t| !matches!(t.token, Token::Whitespace(_) | Token::SemiColon));
    let mut input = Input { text, tokens: tokens.peekable() };
    let is_vacuum = input.take("vacuum");
    if !is_vacuum {
        input.tokens.next();
    }
    let mut analyzes = !is_vacuum;
    if input.peek() == Some(&Token::LParen) {
        analyzes |= input.options(is_vacuum)?;
    } else {
        if is_vacuum {
            input.take("full");
            input.take("freeze");
        }
        input.take("verbose");
        if is_vacuum {
            analyzes = input.take("analyze") || input.take("analyse");
        }
    }
    let mut tables = Vec::new();
    if input.peek().is_some() {
        loop {
            tables.push(input.table()?);
            if !input.take_token(&Token::Comma) {
                break;
            }
        }
    }
    match input.tokens.next() {
        Some(left) => Err(syntax_error(text, left)),
        None => Ok(Maintenance { is_vacuum, analyzes, tables }),
    }
}

struct Input<'t, I: Iterator<Item = &'t TokenWithSpan>> {
    text: &'t SourceText,
    tokens: Peekable<I>,
}

impl<'t, I: Iterator<Item = &'t TokenWithSpan>> Input<'t, I> {
    fn peek(&mut self) -> Option<&'t Token> {
        self.tokens.peek().map(|found| &found.token)
    }

    fn take(&mut self, keyword: &str) -> bool {
        let is_it = |found: &&TokenWithSpan| word(&found.token).is_some_and(|word| word.eq_ignore_ascii_case(keyword));
        self.tokens.next_if(is_it).is_some()
    }

    fn take_token(&mut self, token: &Token) -> bool {
        self.tokens.next_if(|found| found.token == *token).is_some()
    }

    /// 42601 at the next token.
    fn error(&mut self) -> SqlError {
        match self.tokens.peek() {
            Some(found) => syntax_error(self.text, found),
            None => end_of_input(self.text),
        }
    }

    fn identifier(&mut self) -> Result<Ident, SqlError> {
        match self.tokens.peek() {
            Some(TokenWithSpan { token: Token::Word(Word { value, quote_style, .. }), span }) => {
                let found = Ident { value: value.clone(), quote_style: *quote_style, span: *span };
                self.tokens.next();
                Ok(found)
            }
            _ => Err(self.error()),
        }
    }

    /// The options in parentheses. Returns whether ANALYZE is among them.
    fn options(&mut self, is_vacuum: bool) -> Result<bool, SqlError> {
        let (known, command) = if is_vacuum { (VACUUM_OPTIONS, "VACUUM") } else { (ANALYZE_OPTIONS, "ANALYZE") };
        let mut analyzes = false;
        self.take_token(&Token::LParen);
        loop {
            let option = self.identifier()?;
            let name = option.value.to_ascii_lowercase();
            let value = match self.peek() {
                Some(Token::Word(word)) => Some(word.value.to_ascii_lowercase()),
                Some(Token::Number(number, _)) => Some(number.clone()),
                Some(Token::SingleQuotedString(text)) => Some(text.to_ascii_lowercase()),
                _ => None,
            };
            if value.is_some() {
                self.tokens.next();
            }
            if !known.contains(&name.as_str()) {
                let message = format!("unrecognized {command} option \"{name}\"");
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(self.text.position(option.span.start)));
            }
            if name != "parallel" && name != "index_cleanup" {
                let is_on = match value.as_deref() {
                    None | Some("true" | "on" | "1") => true,
                    Some("false" | "off" | "0") => false,
                    Some(_) => {
                        let message = format!("{name} requires a Boolean value");
                        return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
                    }
                };
                if matches!(name.as_str(), "analyze" | "analyse") {
                    analyzes = is_on;
                }
            }
            if self.take_token(&Token::RParen) {
                return Ok(analyzes);
            }
            if !self.take_token(&Token::Comma) {
                return Err(self.error());
            }
        }
    }

    /// A table with its columns.
    fn table(&mut self) -> Result<(ObjectName, Vec<Ident>), SqlError> {
        let is_keyword =
            |found: &Token| word(found).is_some_and(|word| KEYWORDS.contains(&&*word.to_ascii_lowercase()));
        if self.peek().is_some_and(is_keyword) {
            return Err(self.error());
        }
        let mut parts = vec![self.identifier()?];
        while self.take_token(&Token::Period) {
            parts.push(self.identifier()?);
        }
        let mut columns = Vec::new();
        if self.take_token(&Token::LParen) {
            loop {
                columns.push(self.identifier()?);
                if self.take_token(&Token::RParen) {
                    break;
                }
                if !self.take_token(&Token::Comma) {
                    return Err(self.error());
                }
            }
        }
        Ok((ObjectName::from(parts), columns))
    }
}

fn vacuum() -> Statement {
    Statement::Vacuum(VacuumStatement {
        full: false,
        sort_only: false,
        delete_only: false,
        reindex: false,
        recluster: false,
        table_name: None,
        threshold: None,
        boost: false,
    })
}

fn analyze() -> Statement {
    Statement::Analyze(Analyze {
        table_name: None,
        partitions: None,
        for_columns: false,
        columns: Vec::new(),
        cache_metadata: false,
        noscan: false,
        compute_statistics: false,
        has_table_keyword: false,
    })
}

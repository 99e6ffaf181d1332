//! Reads the tokens of a session statement: what the grammars of [`super::control`] and [`super::nested`] share. Pure.

use crate::error::{SqlError, SqlState};
use crate::lexer::{Lexer, Spanned, Token};

/// A reader with one token of look-ahead.
pub(crate) struct Parser<'a> {
    text: &'a str,
    lexer: Lexer<'a>,
    head: Option<Spanned<'a>>,
}

impl<'a> Parser<'a> {
    /// At the first token of a text.
    pub(crate) fn new(text: &'a str) -> Parser<'a> {
        let mut lexer = Lexer::new(text);
        let head = lexer.next();
        Parser { text, lexer, head }
    }

    /// Goes to the next token.
    pub(crate) fn advance(&mut self) {
        self.head = self.lexer.next();
    }

    /// Whether the next token is this keyword.
    pub(crate) fn is(&self, word: &str) -> bool {
        matches!(&self.head, Some(Spanned { token: Token::Word(w), .. }) if w.eq_ignore_ascii_case(word))
    }

    /// Whether the token after the next one is this keyword.
    pub(crate) fn is_next(&self, word: &str) -> bool {
        let next = self.lexer.clone().next();
        matches!(next, Some(Spanned { token: Token::Word(w), .. }) if w.eq_ignore_ascii_case(word))
    }

    /// Goes beyond the next token if it is this keyword. Returns whether it was.
    pub(crate) fn take(&mut self, word: &str) -> bool {
        let found = self.is(word);
        if found {
            self.advance();
        }
        found
    }

    /// Goes beyond the next token if it is this symbol. Returns whether it was.
    pub(crate) fn take_symbol(&mut self, symbol: char) -> bool {
        let found = matches!(&self.head, Some(s) if s.token == Token::Symbol(symbol));
        if found {
            self.advance();
        }
        found
    }

    /// Goes beyond this keyword. 42601 if the next token is another one.
    pub(crate) fn expect(&mut self, word: &str) -> Result<(), SqlError> {
        if self.take(word) { Ok(()) } else { Err(self.error()) }
    }

    /// The optional noise word after BEGIN, COMMIT and ROLLBACK.
    pub(crate) fn transaction_word(&mut self) {
        let _ = self.take("transaction") || self.take("work");
    }

    /// 42601 if there is another token.
    pub(crate) fn end(&self) -> Result<(), SqlError> {
        if self.head.is_none() { Ok(()) } else { Err(self.error()) }
    }

    /// An identifier, folded to lower case unless quoted.
    pub(crate) fn identifier(&mut self) -> Result<String, SqlError> {
        let name = match &self.head {
            Some(Spanned { token: Token::Word(word), .. }) => word.to_lowercase(),
            Some(Spanned { token: Token::Quoted(word), .. }) if !word.is_empty() => word.clone(),
            _ => return Err(self.error()),
        };
        self.advance();
        Ok(name)
    }

    /// A setting's name: identifiers joined by dots.
    pub(crate) fn name(&mut self) -> Result<String, SqlError> {
        let mut name = self.identifier()?;
        while self.take_symbol('.') {
            name.push('.');
            name.push_str(&self.identifier()?);
        }
        Ok(name)
    }

    /// Continues at a byte of the text, between two tokens.
    pub(crate) fn skip_to(&mut self, at: usize) {
        self.lexer.skip_to(at);
        self.advance();
    }

    /// A setting's value: a word, a string, or a number with a sign.
    pub(crate) fn value(&mut self) -> Result<String, SqlError> {
        let minus = self.take_symbol('-');
        let plus = !minus && self.take_symbol('+');
        let value = match &self.head {
            Some(Spanned { token: Token::Number(number), .. }) if minus => format!("-{number}"),
            Some(Spanned { token: Token::Number(number), .. }) => (*number).to_owned(),
            _ if minus || plus => return Err(self.error()),
            Some(Spanned { token: Token::Text(text), .. }) => text.clone(),
            _ => return self.identifier(),
        };
        self.advance();
        Ok(value)
    }

    /// The whole text.
    pub(crate) fn text(&self) -> &'a str {
        self.text
    }

    /// The text before the next token.
    pub(crate) fn before(&self) -> &'a str {
        &self.text[..self.start()]
    }

    /// The first byte of the next token; the end of the text if there is none.
    pub(crate) fn start(&self) -> usize {
        self.head.as_ref().map_or(self.text.len(), |head| head.start)
    }

    /// The byte after the next token.
    pub(crate) fn token_end(&self) -> usize {
        self.head.as_ref().map_or(self.text.len(), |head| head.end)
    }

    /// Whether the next token is the last one.
    pub(crate) fn is_last(&self) -> bool {
        self.head.is_some() && self.lexer.clone().next().is_none()
    }

    /// The position of the next token, in characters from 1.
    pub(crate) fn position(&self) -> u32 {
        u32::try_from(self.before().chars().count() + 1).unwrap_or(u32::MAX)
    }

    /// The text between two bytes.
    pub(crate) fn slice(&self, start: usize, end: usize) -> &'a str {
        self.text.get(start..end).unwrap_or_default()
    }

    /// The text with blanks in place of the characters between two bytes.
    pub(crate) fn blanked(&self, start: usize, end: usize) -> String {
        let blanks = self.slice(start, end).chars().count();
        format!("{}{}{}", self.slice(0, start), " ".repeat(blanks), self.slice(end, self.text.len()))
    }

    /// Whether there is no more token.
    pub(crate) fn is_at_end(&self) -> bool {
        self.head.is_none()
    }

    /// Whether the next token is this symbol.
    pub(crate) fn is_symbol(&self, symbol: char) -> bool {
        matches!(&self.head, Some(head) if head.token == Token::Symbol(symbol))
    }

    /// Whether the next token is an unquoted word.
    pub(crate) fn word(&self) -> Option<&'a str> {
        match &self.head {
            Some(Spanned { token: Token::Word(word), .. }) => Some(word),
            _ => None,
        }
    }

    /// An integer of 32 bits with an optional sign, if the next token begins one. 42601 for any other number.
    pub(crate) fn integer(&mut self) -> Result<Option<i64>, SqlError> {
        let sign = if self.take_symbol('-') {
            Some(-1)
        } else if self.take_symbol('+') {
            Some(1)
        } else {
            None
        };
        match (&self.head, sign) {
            (Some(Spanned { token: Token::Number(digits), .. }), _) => {
                let value = digits.parse::<i32>().map_err(|_| self.error())?;
                self.advance();
                Ok(Some(i64::from(value) * sign.unwrap_or(1)))
            }
            (_, Some(_)) => Err(self.error()),
            (_, None) => Ok(None),
        }
    }

    /// A syntax error at the next token.
    pub(crate) fn error(&self) -> SqlError {
        let (message, start) = match &self.head {
            None => ("syntax error at end of input".to_owned(), self.text.len()),
            Some(Spanned { token: Token::Unterminated, start, .. }) => {
                (format!("unterminated quoted string at or near \"{}\"", &self.text[*start..]), *start)
            }
            Some(Spanned { token: Token::Quoted(name), start, .. }) if name.is_empty() => {
                ("zero-length delimited identifier at or near \"\"\"\"".to_owned(), *start)
            }
            Some(s) => (format!("syntax error at or near \"{}\"", &self.text[s.start..s.end]), s.start),
        };
        let position = self.text[..start].chars().count() + 1;
        SqlError::new(SqlState::SYNTAX_ERROR, message).at(u32::try_from(position).unwrap_or(u32::MAX))
    }
}

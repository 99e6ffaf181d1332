//! The tokens of dates, times and intervals.
//!
//! A token is a number, a word, or characters that belong together: `1999-01-08`, `jan-08-1999`, `04:05:06`, `-08:30`,
//! `america/new_york`. Letters become small. Other punctuation separates.

use super::fault::Fault;
use crate::letters::is_space;

/// The kinds of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Digits, with one point at most
    Number,
    /// Letters
    Word,
    /// Several parts with `-`, `/` or `.` between them; also names of zones
    Date,
    /// Digits with a colon after the first ones
    Time,
    /// A sign and a digit
    Signed,
    /// A sign and letters
    Special,
}

/// A token. The text is ASCII and not empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) text: String,
}

/// The most tokens of a text.
const MAX_TOKENS: usize = 25;

/// Splits a text. `room` bounds the bytes of all tokens, each with one byte more.
pub(super) fn scan(text: &str, room: usize, is_core_word: fn(&str) -> bool) -> Result<Vec<Token>, Fault> {
    let mut scanner = Scanner { rest: text, token: String::new(), room };
    let mut tokens = Vec::new();
    while let Some(first) = scanner.rest.chars().next() {
        if is_space(first) {
            scanner.skip(first);
            continue;
        }
        let kind = match first {
            '0'..='9' => scanner.digits()?,
            '.' => {
                scanner.take_first()?;
                scanner.take(|c| c.is_ascii_digit())?;
                Kind::Number
            }
            'a'..='z' | 'A'..='Z' => scanner.letters(is_core_word)?,
            '+' | '-' => scanner.signed()?,
            _ if first.is_ascii_punctuation() => {
                scanner.skip(first);
                continue;
            }
            _ => return Err(Fault::Format),
        };
        // The token's end takes a byte as well.
        scanner.room = scanner.room.checked_sub(1).ok_or(Fault::Format)?;
        if tokens.len() >= MAX_TOKENS {
            return Err(Fault::Format);
        }
        tokens.push(Token { kind, text: std::mem::take(&mut scanner.token) });
    }
    Ok(tokens)
}

struct Scanner<'a> {
    rest: &'a str,
    token: String,
    room: usize,
}

impl Scanner<'_> {
    fn next_is(&self, test: impl Fn(char) -> bool) -> bool {
        self.rest.starts_with(test)
    }

    fn skip(&mut self, c: char) {
        self.rest = self.rest.strip_prefix(c).unwrap_or(self.rest);
    }

    /// Moves one character to the token, in lower case.
    fn take_first(&mut self) -> Result<(), Fault> {
        let Some(c) = self.rest.chars().next() else { return Err(Fault::Format) };
        // One byte stays for the end of the token.
        if self.room <= 1 {
            return Err(Fault::Format);
        }
        self.room -= 1;
        self.token.push(c.to_ascii_lowercase());
        self.skip(c);
        Ok(())
    }

    /// Moves the next characters that satisfy `test` to the token.
    fn take(&mut self, test: impl Fn(char) -> bool) -> Result<(), Fault> {
        while self.next_is(&test) {
            self.take_first()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<Kind, Fault> {
        self.take(|c| c.is_ascii_digit())?;
        let Some(delimiter) = self.rest.chars().next() else { return Ok(Kind::Number) };
        match delimiter {
            ':' => {
                self.take(|c| c.is_ascii_digit() || c == ':' || c == '.')?;
                Ok(Kind::Time)
            }
            '-' | '/' | '.' => {
                self.take_first()?;
                if !self.next_is(|c| c.is_ascii_digit()) {
                    self.take(|c| c.is_ascii_alphanumeric() || c == delimiter)?;
                    return Ok(Kind::Date);
                }
                self.take(|c| c.is_ascii_digit())?;
                if self.next_is(|c| c == delimiter) {
                    self.take(|c| c.is_ascii_digit() || c == delimiter)?;
                    return Ok(Kind::Date);
                }
                Ok(if delimiter == '.' { Kind::Number } else { Kind::Date })
            }
            _ => Ok(Kind::Number),
        }
    }

    /// A word, or a date that starts with the name of a month, or the name of a zone with punctuation or digits.
    fn letters(&mut self, is_core_word: fn(&str) -> bool) -> Result<Kind, Fault> {
        self.take(|c| c.is_ascii_alphabetic())?;
        let joined = match self.rest.chars().next() {
            Some('-' | '/' | '.') => true,
            // `j2451187` are two tokens, `foo+3` is the name of a zone.
            Some('+' | '0'..='9') => !is_core_word(&self.token),
            _ => false,
        };
        if !joined {
            return Ok(Kind::Word);
        }
        self.take(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '/' | '_' | '.' | ':'))?;
        Ok(Kind::Date)
    }

    fn signed(&mut self) -> Result<Kind, Fault> {
        self.take_first()?;
        self.rest = self.rest.trim_start_matches(is_space);
        if self.next_is(|c| c.is_ascii_digit()) {
            self.take(|c| c.is_ascii_digit() || matches!(c, ':' | '.' | '-'))?;
            Ok(Kind::Signed)
        } else if self.next_is(|c| c.is_ascii_alphabetic()) {
            self.take(|c| c.is_ascii_alphabetic())?;
            Ok(Kind::Special)
        } else {
            Err(Fault::Format)
        }
    }
}

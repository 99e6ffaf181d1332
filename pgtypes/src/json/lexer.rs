//! The tokens of JSON, and the errors of PostgreSQL's lexer.

use std::borrow::Cow;

use crate::error::ValueError;
use crate::sqlstate::SqlState;

/// The kinds of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    ObjectStart,
    ObjectEnd,
    ArrayStart,
    ArrayEnd,
    Comma,
    Colon,
    True,
    False,
    Null,
    Number,
    String,
    End,
}

/// A scanner over a text. It stands on a token, at first before all tokens.
pub(super) struct Lexer<'a> {
    text: &'a str,
    start: usize,
    end: usize,
    /// Whether strings are unescaped, which refuses the escapes that no text can hold.
    unescape: bool,
    string: Cow<'a, str>,
}

/// 22P02 with a detail.
pub(super) fn invalid(detail: impl Into<Cow<'static, str>>) -> ValueError {
    ValueError::new(SqlState::INVALID_TEXT_REPRESENTATION, "invalid input syntax for type json").with_detail(detail)
}

fn low_surrogate() -> ValueError {
    invalid("Unicode low surrogate must follow a high surrogate.")
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str, unescape: bool) -> Lexer<'a> {
        Lexer { text, start: 0, end: 0, unescape, string: Cow::Borrowed("") }
    }

    /// The offset of the token.
    pub(super) fn start(&self) -> usize {
        self.start
    }

    /// The text of the token.
    pub(super) fn lexeme(&self) -> &'a str {
        self.slice(self.start, self.end)
    }

    /// A part of the text.
    pub(super) fn slice(&self, start: usize, end: usize) -> &'a str {
        self.text.get(start..end).unwrap_or("")
    }

    /// The value of a string token: unescaped, or as it is written.
    pub(super) fn take_string(&mut self) -> Cow<'a, str> {
        std::mem::take(&mut self.string)
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    /// The end of the run of bytes from `at` that satisfy a test.
    fn run(&self, at: usize, test: impl Fn(u8) -> bool) -> usize {
        let tail = self.text.as_bytes().get(at..).unwrap_or(&[]);
        at + tail.iter().position(|b| !test(*b)).unwrap_or(tail.len())
    }

    fn invalid_token(&self, end: usize) -> ValueError {
        invalid(format!("Token \"{}\" is invalid.", self.slice(self.start, end)))
    }

    /// Moves to the next token.
    pub(super) fn advance(&mut self) -> Result<Token, ValueError> {
        self.start = self.run(self.end, |b| matches!(b, b' ' | b'\t' | b'\n' | b'\r'));
        let Some(first) = self.byte(self.start) else {
            self.end = self.start;
            return Ok(Token::End);
        };
        let (token, end) = match first {
            b'{' => (Token::ObjectStart, self.start + 1),
            b'}' => (Token::ObjectEnd, self.start + 1),
            b'[' => (Token::ArrayStart, self.start + 1),
            b']' => (Token::ArrayEnd, self.start + 1),
            b',' => (Token::Comma, self.start + 1),
            b':' => (Token::Colon, self.start + 1),
            b'"' => (Token::String, self.scan_string()?),
            b'-' => (Token::Number, self.scan_number(self.start + 1)?),
            b'0'..=b'9' => (Token::Number, self.scan_number(self.start)?),
            _ => {
                let end = self.run(self.start, is_word);
                match self.slice(self.start, end) {
                    "true" => (Token::True, end),
                    "false" => (Token::False, end),
                    "null" => (Token::Null, end),
                    _ => return Err(self.invalid_token(end.max(self.start + 1))),
                }
            }
        };
        self.end = end;
        Ok(token)
    }

    /// The end of a number whose digits start at `at`.
    fn scan_number(&self, mut at: usize) -> Result<usize, ValueError> {
        let digit = |b: u8| b.is_ascii_digit();
        let mut bad = false;
        match self.byte(at) {
            Some(b'0') => at += 1,
            Some(b'1'..=b'9') => at = self.run(at, digit),
            _ => bad = true,
        }
        if self.byte(at) == Some(b'.') {
            let end = self.run(at + 1, digit);
            bad |= end == at + 1;
            at = end;
        }
        if matches!(self.byte(at), Some(b'e' | b'E')) {
            at += 1;
            if matches!(self.byte(at), Some(b'+' | b'-')) {
                at += 1;
            }
            let end = self.run(at, digit);
            bad |= end == at;
            at = end;
        }
        let end = self.run(at, is_word);
        if bad || end > at { Err(self.invalid_token(end)) } else { Ok(at) }
    }

    /// The end of a string token. Leaves its value in `string`.
    fn scan_string(&mut self) -> Result<usize, ValueError> {
        let begin = self.start + 1;
        let plain = |b: u8| b != b'"' && b != b'\\' && b >= b' ';
        let mut at = self.run(begin, plain);
        if self.byte(at) == Some(b'"') {
            self.string = Cow::Borrowed(self.slice(begin, at));
            return Ok(at + 1);
        }
        let mut out = self.slice(begin, at).to_owned();
        let mut high: Option<u32> = None;
        loop {
            match self.byte(at) {
                None => return Err(self.invalid_token(at)),
                Some(b'"') => break,
                Some(b'\\') => at = self.scan_escape(at + 1, &mut high, &mut out)?,
                Some(control @ 0..b' ') => {
                    return Err(invalid(format!("Character with value 0x{control:02x} must be escaped.")));
                }
                Some(_) => {
                    if high.is_some() {
                        return Err(low_surrogate());
                    }
                    let end = self.run(at, plain);
                    out.push_str(self.slice(at, end));
                    at = end;
                }
            }
        }
        if high.is_some() {
            return Err(low_surrogate());
        }
        self.string = if self.unescape { Cow::Owned(out) } else { Cow::Borrowed(self.slice(begin, at)) };
        Ok(at + 1)
    }

    /// Reads the escape after a backslash and returns its end. `high` is a high surrogate without its other half.
    fn scan_escape(&self, at: usize, high: &mut Option<u32>, out: &mut String) -> Result<usize, ValueError> {
        let Some(kind) = self.byte(at) else { return Err(self.invalid_token(at)) };
        if kind == b'u' {
            let unit = self.code_unit(at + 1)?;
            if self.unescape {
                push_unit(unit, high, out)?;
            }
            return Ok(at + 5);
        }
        if high.is_some() {
            return Err(low_surrogate());
        }
        out.push(match kind {
            b'"' | b'\\' | b'/' => char::from(kind),
            b'b' => '\x08',
            b'f' => '\x0c',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            _ => {
                let shown = self.text.get(at..).and_then(|rest| rest.chars().next()).unwrap_or('?');
                return Err(invalid(format!("Escape sequence \"\\{shown}\" is invalid.")));
            }
        });
        Ok(at + 1)
    }

    /// The value of the four hexadecimal digits at `at`.
    fn code_unit(&self, at: usize) -> Result<u32, ValueError> {
        let mut unit = 0;
        for position in at..at + 4 {
            let Some(byte) = self.byte(position) else { return Err(self.invalid_token(position)) };
            let Some(digit) = char::from(byte).to_digit(16) else {
                return Err(invalid("\"\\u\" must be followed by four hexadecimal digits."));
            };
            unit = unit * 16 + digit;
        }
        Ok(unit)
    }
}

/// Appends a code unit of UTF-16, or keeps it in `high` until its other half comes.
fn push_unit(unit: u32, high: &mut Option<u32>, out: &mut String) -> Result<(), ValueError> {
    let code = match (unit, high.take()) {
        (0xd800..=0xdbff, Some(_)) => {
            return Err(invalid("Unicode high surrogate must not follow a high surrogate."));
        }
        (0xd800..=0xdbff, None) => {
            *high = Some(unit);
            return Ok(());
        }
        (0xdc00..=0xdfff, Some(first)) => 0x10000 + ((first & 0x3ff) << 10) + (unit & 0x3ff),
        (0xdc00..=0xdfff, None) | (_, Some(_)) => return Err(low_surrogate()),
        (0, None) => {
            return Err(ValueError::new(SqlState::UNTRANSLATABLE_CHARACTER, "unsupported Unicode escape sequence")
                .with_detail("\\u0000 cannot be converted to text."));
        }
        (unit, None) => unit,
    };
    out.push(char::from_u32(code).ok_or_else(low_surrogate)?);
    Ok(())
}

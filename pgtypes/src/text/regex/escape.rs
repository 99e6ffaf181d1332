//! Escapes: characters, classes and constraints after a backslash.

use super::ast::Assert;
use super::scanner::{Parser, invalid};
use crate::error::ValueError;
use crate::text::ctype::Class;

/// What an escape stands for.
pub(super) enum Escape {
    Code(u32),
    /// A class, or what is not in it
    Class(Class, bool),
    Assert(Assert),
    BackReference(u32),
}

pub(super) fn bad_escape() -> ValueError {
    invalid("invalid escape \\ sequence")
}

impl Parser {
    /// The escape after a backslash.
    pub(super) fn escape(&mut self) -> Result<Escape, ValueError> {
        let c = self.next().ok_or_else(bad_escape)?;
        if !self.is_advanced() || !c.is_ascii_alphanumeric() {
            return Ok(Escape::Code(c.into()));
        }
        Ok(match c {
            'a' => Escape::Code(7),
            'b' => Escape::Code(8),
            'B' => Escape::Code('\\'.into()),
            'c' => Escape::Code(u32::from(self.next().ok_or_else(bad_escape)?) & 0x1f),
            'e' => Escape::Code(27),
            'f' => Escape::Code(12),
            'n' => Escape::Code(10),
            'r' => Escape::Code(13),
            't' => Escape::Code(9),
            'v' => Escape::Code(11),
            'u' => Escape::Code(self.digits(16, 4, 4)?),
            'U' => Escape::Code(self.digits(16, 8, 8)?),
            'x' => Escape::Code(self.digits(16, 1, 255)?),
            'd' | 'D' => Escape::Class(Class::Digit, c == 'D'),
            's' | 'S' => Escape::Class(Class::Space, c == 'S'),
            'w' | 'W' => Escape::Class(Class::Word, c == 'W'),
            'A' => Escape::Assert(Assert::TextStart),
            'Z' => Escape::Assert(Assert::TextEnd),
            'm' => Escape::Assert(Assert::WordStart),
            'M' => Escape::Assert(Assert::WordEnd),
            'y' => Escape::Assert(Assert::WordBoundary),
            'Y' => Escape::Assert(Assert::NotWordBoundary),
            '0'..='9' => {
                self.back(1);
                self.numbered(c)?
            }
            _ => return Err(bad_escape()),
        })
    }

    /// A back reference or an octal escape. More than one digit is a reference only if it has that many groups before.
    fn numbered(&mut self, first: char) -> Result<Escape, ValueError> {
        let start = self.position();
        if first != '0' {
            let number = self.digits(10, 1, 255)?;
            let groups = u32::try_from(self.group_count()).unwrap_or(u32::MAX);
            if self.position() == start + 1 || (number > 0 && number <= groups) {
                return Ok(Escape::BackReference(number));
            }
            self.back(self.position() - start);
        }
        let code = self.digits(8, 1, 3)?;
        if code > 0xff {
            self.back(1);
            return Ok(Escape::Code(code >> 3));
        }
        Ok(Escape::Code(code))
    }

    /// A number of this many digits. Beyond 31 bits it is a bad escape.
    fn digits(&mut self, base: u32, least: usize, most: usize) -> Result<u32, ValueError> {
        let (mut value, mut count) = (0u32, 0);
        while let Some(digit) = self.peek().filter(|_| count < most).and_then(|c| c.to_digit(base)) {
            value = value.saturating_mul(base).saturating_add(digit);
            count += 1;
            self.next();
        }
        if count < least || value > 0x7fff_fffe { Err(bad_escape()) } else { Ok(value) }
    }
}

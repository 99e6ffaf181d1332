//! Reads a number by a picture.
//!
//! The text is scanned along the patterns: digits where digit patterns are, and one character for each other one.
//! Spaces before digits are skipped, and so are signs where a pattern or a number may have them. What is left is
//! ignored.

use super::picture::{Anchor, Item, Picture};
use crate::error::ValueError;
use crate::numeric::typmod::Typmod;
use crate::numeric::value::Numeric;
use crate::sqlstate::SqlState;

/// `to_number(text, text)`; `None` for an empty picture. 42601 for a bad picture, 0A000 for pictures that only print,
/// 22P02 if the text has no digits, 22003 if it has too many.
pub fn to_number(text: &str, format: &str) -> Result<Option<Numeric>, ValueError> {
    if format.is_empty() {
        return Ok(None);
    }
    let picture = Picture::parse(format)?;
    if picture.exponent {
        return Err(unsupported("EEEE"));
    }
    if picture.roman {
        return Err(unsupported("RN"));
    }
    let mut reader = Reader::new(&picture, text.as_bytes());
    for item in &picture.items {
        if reader.ended() {
            break;
        }
        reader.item(item);
    }
    let precision = picture.pre + picture.multi + reader.after;
    let number = reader.finish();
    let value = Numeric::parse_typed(&number, Typmod::of_picture(precision, picture_scale(&number)))?;
    if !picture.shift {
        return Ok(Some(value));
    }
    let power = -i64::try_from(picture.multi).unwrap_or(i64::MAX);
    value.mul(&Numeric::from(10i64).power(&power.into())?).map(Some)
}

/// Digits after the point of a number that has been read.
fn picture_scale(number: &str) -> usize {
    number.split_once('.').map_or(0, |(_, digits)| digits.len())
}

fn unsupported(pattern: &str) -> ValueError {
    ValueError::new(SqlState::FEATURE_NOT_SUPPORTED, format!("\"{pattern}\" not supported for input"))
}

struct Reader<'a> {
    picture: &'a Picture,
    text: &'a [u8],
    at: usize,
    /// `b' '` while there is none.
    sign: u8,
    number: String,
    /// Digits before and after the point.
    before: usize,
    after: usize,
    point_read: bool,
}

impl<'a> Reader<'a> {
    fn new(picture: &'a Picture, text: &'a [u8]) -> Reader<'a> {
        Reader { picture, text, at: 0, sign: b' ', number: String::new(), before: 0, after: 0, point_read: false }
    }

    fn ended(&self) -> bool {
        self.at >= self.text.len()
    }

    fn next(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// The sign and the digits that have been read.
    fn finish(self) -> String {
        let digits = self.number.strip_suffix('.').unwrap_or(&self.number);
        format!("{}{digits}", char::from(self.sign))
    }

    fn item(&mut self, item: &Item) {
        match item {
            Item::Digit | Item::Zero => {
                self.digit(true);
                self.at += 1;
            }
            Item::Point => {
                self.digit(false);
                self.at += 1;
            }
            // Separators are skipped where they are; with FM none is expected, as output has none before digits.
            Item::Group => {
                if !self.picture.fill && self.next() == Some(b',') {
                    self.at += 1;
                }
            }
            Item::Currency => self.skip(1),
            Item::Minus => self.pattern_sign(b"-"),
            Item::Plus => self.pattern_sign(b"+"),
            Item::Sign => self.pattern_sign(b"-+"),
            Item::Ordinal { .. } => {
                if self.sign != b'-' && !self.picture.point {
                    self.skip(2);
                }
            }
            Item::Text(_) => self.at += self.character_length(),
            Item::Roman { .. } | Item::Silent => {}
        }
    }

    /// The bytes of the character that the next byte starts. A byte inside of a character counts as one.
    fn character_length(&self) -> usize {
        match self.next() {
            Some(0xc0..=0xdf) => 2,
            Some(0xe0..=0xef) => 3,
            Some(0xf0..) => 4,
            _ => 1,
        }
    }

    /// Skips characters that are no part of a number.
    fn skip(&mut self, count: usize) {
        for _ in 0..count {
            if self.next().is_none_or(|byte| b"0123456789.,+-".contains(&byte)) {
                return;
            }
            self.at += self.character_length();
        }
    }

    fn pattern_sign(&mut self, signs: &[u8]) {
        match self.next() {
            Some(byte) if signs.contains(&byte) => {
                self.sign = byte;
                self.at += 1;
            }
            _ => self.skip(1),
        }
    }

    /// A digit pattern or the point. The caller passes the character that this one stops at.
    fn digit(&mut self, is_digit: bool) {
        if self.next() == Some(b' ') {
            self.at += 1;
        }
        if self.ended() {
            return;
        }
        if self.sign == b' ' && is_digit && self.before + self.after == 0 {
            self.sign_before();
        }
        let mut read = false;
        match self.next() {
            None => return,
            Some(digit) if digit.is_ascii_digit() => {
                if self.point_read && self.after == self.picture.post {
                    return;
                }
                self.number.push(char::from(digit));
                *(if self.point_read { &mut self.after } else { &mut self.before }) += 1;
                read = true;
            }
            Some(b'.') if self.picture.point && !self.point_read => {
                self.number.push('.');
                self.point_read = true;
                read = true;
            }
            Some(_) => {}
        }
        if self.sign == b' ' && self.before + self.after > 0 {
            self.sign_behind(read);
        }
    }

    /// A sign before the first digit.
    fn sign_before(&mut self) {
        match self.next() {
            Some(sign @ (b'-' | b'+')) => self.sign = sign,
            Some(b'<') if self.picture.bracket => self.sign = b'-',
            _ => return,
        }
        self.at += 1;
    }

    /// A sign behind the last digit: that of `S` directly behind it, that of another pattern in place of a digit.
    fn sign_behind(&mut self, read: bool) {
        let anchored = self.picture.anchor != Anchor::None;
        let sign_at = |at: usize| self.text.get(at).copied().filter(|byte| matches!(byte, b'-' | b'+'));
        if anchored && read {
            if let Some(sign) = sign_at(self.at + 1) {
                self.sign = sign;
                self.at += 1;
            }
        } else if !read
            && !anchored
            && (self.picture.plus || self.picture.minus)
            && let Some(sign) = sign_at(self.at)
        {
            self.sign = sign;
        }
    }
}

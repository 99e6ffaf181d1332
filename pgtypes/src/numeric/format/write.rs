//! Renders a number by a picture.
//!
//! The digits of the number are laid over the digit patterns from the right, so a number that is shorter than the
//! picture starts with blanks, or zeros from a `0` on. Signs that no pattern asks for stand directly before the first
//! digit.

use super::picture::{Anchor, Item, Picture};
use crate::error::ValueError;
use crate::sqlstate::SqlState;

/// The sign of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sign {
    Plus,
    Minus,
    /// Of a Roman numeral.
    None,
}

/// The characters that the digit patterns stand for.
#[derive(Clone, Debug)]
pub(super) struct Digits {
    sign: Sign,
    text: Vec<u8>,
    /// Digit patterns before the first digit.
    pad: usize,
}

impl Digits {
    /// The digits of a number with a sign. Number signs replace them if there are more than the picture has before the
    /// point.
    pub(super) fn fit(number: &str, picture: &Picture) -> Digits {
        let (sign, text) = match number.strip_prefix('-') {
            Some(text) => (Sign::Minus, text),
            None => (Sign::Plus, number),
        };
        let whole = text.find('.').unwrap_or(text.len());
        let pad = picture.pre.saturating_sub(whole);
        if whole <= picture.pre {
            return Digits { sign, text: text.as_bytes().to_vec(), pad };
        }
        let mut text = vec![b'#'; picture.pre];
        text.push(b'.');
        text.resize(picture.pre + picture.post + 1, b'#');
        Digits { sign, text, pad }
    }

    /// A Roman numeral.
    pub(super) fn bare(text: String) -> Digits {
        Digits { sign: Sign::None, text: text.into_bytes(), pad: 0 }
    }
}

/// Renders a number by a picture. 22P02 if it has an ordinal ending and the number does not end in a digit.
pub(super) fn render(picture: &Picture, digits: &Digits) -> Result<String, ValueError> {
    let mut writer = Writer::new(picture, digits);
    let ordinal = picture.items.iter().any(|item| matches!(item, Item::Ordinal { .. })) && writer.takes_ordinal();
    if ordinal && !digits.text.last().is_some_and(u8::is_ascii_digit) {
        let message = format!("\"{}\" is not a number", String::from_utf8_lossy(&digits.text));
        return Err(ValueError::new(SqlState::INVALID_TEXT_REPRESENTATION, message));
    }
    for item in &picture.items {
        writer.item(item);
    }
    // A digit pattern behind the end of the number ends the text, as in PostgreSQL.
    let end = writer.out.find(END).unwrap_or(writer.out.len());
    writer.out.truncate(end);
    Ok(writer.out)
}

/// Marks a digit pattern behind the end of the number.
const END: char = '\0';

struct Writer<'a> {
    digits: &'a Digits,
    out: String,
    /// The next character of the number.
    at: usize,
    /// Digit patterns that have been passed, points among them.
    passed: usize,
    /// One more than the digit patterns that the number and its sign take.
    count: usize,
    /// The last character that `FM` keeps.
    last: Option<usize>,
    /// Whether the latest digit pattern gave a digit.
    inside: bool,
    sign_done: bool,
    /// The first `0`, as a count of digit patterns before it.
    zero_start: Option<usize>,
    anchor: Anchor,
    bracket: bool,
    fill: bool,
    point: bool,
    roman: bool,
    post: usize,
}

impl<'a> Writer<'a> {
    fn new(picture: &Picture, digits: &'a Digits) -> Writer<'a> {
        let roman = picture.roman;
        let mut writer = Writer {
            digits,
            out: String::new(),
            at: 0,
            passed: 0,
            count: 0,
            last: None,
            inside: false,
            sign_done: false,
            zero_start: picture.zero_start.filter(|_| !roman),
            anchor: if roman { Anchor::None } else { picture.anchor },
            bracket: picture.bracket && !roman,
            fill: picture.fill,
            point: picture.point && !roman,
            roman,
            post: if roman { 0 } else { picture.post },
        };
        if roman {
            return writer;
        }
        if picture.plus || picture.minus {
            // These patterns write the sign; a sole `PL` does not write minus signs.
            writer.sign_done = picture.minus;
        } else {
            writer.bracket &= digits.sign == Sign::Minus || !picture.fill;
            writer.sign_done = digits.sign == Sign::Plus && picture.fill && picture.anchor == Anchor::None;
            if picture.anchor == Anchor::Before && picture.pre == picture.anchor_pre {
                writer.anchor = Anchor::After;
            }
        }
        // A sign takes the place of a blank if there is one.
        let sign = usize::from(!writer.sign_done && digits.pad == 0);
        writer.count = picture.pre + picture.post + sign + usize::from(digits.pad > 0) + usize::from(picture.point);
        if picture.fill && picture.point {
            writer.last = last_relevant(&digits.text).map(|last| {
                // Digits of `0` patterns are kept too.
                let kept = match picture.zero_end.checked_sub(digits.pad) {
                    Some(kept) if kept > 0 => kept.min(digits.text.len().saturating_sub(1)),
                    _ => 0,
                };
                last.max(kept)
            });
        }
        writer
    }

    /// The next character of the number.
    fn next(&self) -> Option<u8> {
        self.digits.text.get(self.at).copied()
    }

    fn item(&mut self, item: &Item) {
        match item {
            Item::Digit | Item::Point => self.digit(false),
            Item::Zero => self.digit(true),
            Item::Group if self.inside => self.out.push(','),
            Item::Group => self.blank(),
            // The currency symbol of the locale C.
            Item::Currency => self.out.push(' '),
            Item::Minus if self.digits.sign == Sign::Minus => self.out.push('-'),
            Item::Plus if self.digits.sign == Sign::Plus => self.out.push('+'),
            Item::Minus | Item::Plus => self.blank(),
            Item::Sign => self.out.push(match self.digits.sign {
                Sign::Plus => '+',
                Sign::Minus => '-',
                Sign::None => END,
            }),
            Item::Roman { lower } => self.roman(*lower),
            Item::Ordinal { lower } => self.ordinal(*lower),
            Item::Text(c) => self.out.push(*c),
            Item::Silent => {}
        }
    }

    fn blank(&mut self) {
        if !self.fill {
            self.out.push(' ');
        }
    }

    fn roman(&mut self, lower: bool) {
        let numeral = String::from_utf8_lossy(&self.digits.text);
        let numeral = if lower { numeral.to_ascii_lowercase() } else { numeral.into_owned() };
        if !self.fill {
            self.out.extend(std::iter::repeat_n(' ', 15usize.saturating_sub(numeral.len())));
        }
        self.out.push_str(&numeral);
    }

    /// Whether ordinal endings are written: for integers that are not negative.
    fn takes_ordinal(&self) -> bool {
        let overflowed = self.digits.text.first() == Some(&b'#');
        !self.roman && !overflowed && self.digits.sign != Sign::Minus && !self.point
    }

    fn ordinal(&mut self, lower: bool) {
        if !self.takes_ordinal() {
            return;
        }
        let text = &self.digits.text;
        let teen = text.len().checked_sub(2).and_then(|at| text.get(at)) == Some(&b'1');
        let ending = match text.last() {
            Some(b'1') if !teen => "st",
            Some(b'2') if !teen => "nd",
            Some(b'3') if !teen => "rd",
            _ => "th",
        };
        self.out.push_str(&if lower { ending.to_owned() } else { ending.to_ascii_uppercase() });
    }

    /// Whether the next character is the zero before the point, which no `0` pattern asks for.
    fn at_idle_zero(&self) -> bool {
        self.zero_start.is_none() && self.at == 0 && self.next() == Some(b'0') && self.post > 0
    }

    /// Whether `FM` drops all digits after the point.
    fn ends_at_point(&self) -> bool {
        self.last.is_some_and(|last| self.digits.text.get(last) == Some(&b'.'))
    }

    /// A digit pattern or the point.
    fn digit(&mut self, zero: bool) {
        if self.roman {
            return;
        }
        self.inside = false;
        let starts = self.passed >= self.digits.pad || self.zero_start == Some(self.passed);
        if !self.sign_done && starts && (!self.at_idle_zero() || self.ends_at_point()) {
            self.leading_sign();
        }
        if self.passed < self.digits.pad {
            match self.zero_start {
                Some(start) if start <= self.passed => {
                    self.out.push('0');
                    self.inside = true;
                }
                _ => self.blank(),
            }
        } else {
            self.character(zero);
            if self.at < self.digits.text.len() {
                self.at += 1;
            }
        }
        self.trailing_sign();
        self.passed += 1;
    }

    /// The next character of the number.
    fn character(&mut self, zero: bool) {
        match self.next() {
            Some(b'.') => self.out.push('.'),
            _ if !zero && self.last.is_some_and(|last| self.at > last) => {}
            _ if self.at_idle_zero() => {
                if !self.fill {
                    self.out.push(' ');
                } else if self.ends_at_point() {
                    self.out.push('0');
                }
            }
            next => {
                self.out.push(next.map_or(END, char::from));
                self.inside = true;
            }
        }
    }

    /// The sign before the first digit, if it stands there.
    fn leading_sign(&mut self) {
        let sign = match (self.anchor, self.digits.sign) {
            (Anchor::Before, Sign::Minus) => Some('-'),
            (Anchor::Before, _) => Some('+'),
            (Anchor::After, _) => return,
            (Anchor::None, Sign::Minus) if self.bracket => Some('<'),
            (Anchor::None, _) if self.bracket => Some(' '),
            (Anchor::None, Sign::Minus) => Some('-'),
            (Anchor::None, _) => Some(' ').filter(|_| !self.fill),
        };
        self.out.extend(sign);
        self.sign_done = true;
    }

    /// The closing bracket or the sign behind the last digit, if this was the last one.
    fn trailing_sign(&mut self) {
        if self.last == Some(self.at) || self.passed + 2 != self.count {
            return;
        }
        let minus = self.digits.sign == Sign::Minus;
        if self.sign_done && self.bracket {
            self.out.push(if minus { '>' } else { ' ' });
        } else if self.anchor == Anchor::After {
            self.out.push(if minus { '-' } else { '+' });
        }
    }
}

/// The last digit after the point that is not zero, or the point if there is none.
fn last_relevant(text: &[u8]) -> Option<usize> {
    let point = text.iter().position(|byte| *byte == b'.')?;
    text.iter().rposition(|byte| *byte != b'0').map(|last| last.max(point))
}

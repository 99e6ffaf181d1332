//! Number pictures: their patterns, and the rules about which may stand together.

use crate::error::ValueError;
use crate::sqlstate::SqlState;

/// A pattern of a picture, or text between patterns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Item {
    /// `9`
    Digit,
    /// `0`
    Zero,
    /// `.` or `D`
    Point,
    /// `,` or `G`
    Group,
    /// `L`
    Currency,
    /// `MI`
    Minus,
    /// `PL`
    Plus,
    /// `SG`
    Sign,
    /// `RN`, or `rn` for lower case
    Roman { lower: bool },
    /// `TH`, or `th` for lower case
    Ordinal { lower: bool },
    /// A character that is no pattern.
    Text(char),
    /// A pattern that stands for no output of its own: `FM S PR V EEEE B C SP`
    Silent,
}

/// Where the sign of `S` is anchored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Anchor {
    /// There is no `S`.
    #[default]
    None,
    /// At the first digit.
    Before,
    /// Behind the last digit.
    After,
}

/// A picture that has been read.
#[derive(Clone, Debug, Default)]
pub(super) struct Picture {
    pub items: Vec<Item>,
    /// Digits before the point.
    pub pre: usize,
    /// Digits after the point.
    pub post: usize,
    /// `9`s after `V`.
    pub multi: usize,
    /// Digits before the first `0` before the point.
    pub zero_start: Option<usize>,
    /// Digits up to the last `0`, which included.
    pub zero_end: usize,
    pub anchor: Anchor,
    /// Digits before an `S` that is anchored before.
    pub anchor_pre: usize,
    /// `.` or `D`
    pub point: bool,
    /// `FM`
    pub fill: bool,
    /// `PR`
    pub bracket: bool,
    /// `MI` or `SG`
    pub minus: bool,
    /// `PL` or `SG`
    pub plus: bool,
    /// `V`
    pub shift: bool,
    /// `RN`
    pub roman: bool,
    /// `EEEE`
    pub exponent: bool,
    /// `B` before all digits
    blank: bool,
}

/// The spellings of patterns. Longer ones precede their prefixes. All are upper case, or all lower case, in a picture.
const PATTERNS: [&str; 20] =
    [",", ".", "0", "9", "B", "C", "D", "EEEE", "FM", "G", "L", "MI", "PL", "PR", "RN", "SG", "SP", "S", "TH", "V"];

impl Picture {
    /// Reads a picture. 42601 for patterns that may not stand together.
    pub(super) fn parse(format: &str) -> Result<Picture, ValueError> {
        let mut picture = Picture::default();
        let mut rest = format;
        while let Some(first) = rest.chars().next() {
            if let Some((pattern, length)) = pattern_at(rest) {
                let lower = first.is_ascii_lowercase();
                let item = picture.pattern(pattern, lower)?;
                picture.items.push(item);
                rest = rest.get(length..).unwrap_or_default();
            } else if first == '"' {
                rest = picture.quoted(rest.get(1..).unwrap_or_default());
            } else {
                // A backslash quotes a quote only.
                rest = if rest.starts_with("\\\"") { rest.get(1..).unwrap_or_default() } else { rest };
                rest = picture.text(rest);
            }
        }
        Ok(picture)
    }

    /// Adds the first character as text, and returns what follows it.
    fn text<'a>(&mut self, rest: &'a str) -> &'a str {
        let mut chars = rest.chars();
        self.items.extend(chars.next().map(Item::Text));
        chars.as_str()
    }

    /// Adds the text up to the closing quote, and returns what follows it.
    fn quoted<'a>(&mut self, text: &'a str) -> &'a str {
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            if first == '"' {
                return rest.get(1..).unwrap_or_default();
            }
            if first == '\\' && rest.len() > 1 {
                rest = rest.get(1..).unwrap_or_default();
            }
            rest = self.text(rest);
        }
        rest
    }

    /// Counts a pattern in.
    fn pattern(&mut self, pattern: &str, lower: bool) -> Result<Item, ValueError> {
        if self.exponent && pattern != "EEEE" {
            return Err(syntax("\"EEEE\" must be the last pattern used"));
        }
        Ok(match pattern {
            "9" => self.digit()?,
            "0" => self.zero()?,
            "." | "D" => self.decimal_point()?,
            "," | "G" => Item::Group,
            "L" => Item::Currency,
            "MI" | "PL" | "SG" => self.sign(pattern)?,
            "S" => self.anchored_sign()?,
            "PR" => self.brackets()?,
            "TH" => Item::Ordinal { lower },
            "RN" => {
                self.roman = true;
                Item::Roman { lower }
            }
            "FM" => {
                self.fill = true;
                Item::Silent
            }
            "V" => {
                if self.point {
                    return Err(syntax("cannot use \"V\" and decimal point together"));
                }
                self.shift = true;
                Item::Silent
            }
            "EEEE" => self.scientific()?,
            "B" => {
                self.blank |= self.pre == 0 && self.post == 0 && self.zero_start.is_none();
                Item::Silent
            }
            _ => Item::Silent,
        })
    }

    fn digit(&mut self) -> Result<Item, ValueError> {
        if self.bracket {
            return Err(syntax("\"9\" must be ahead of \"PR\""));
        }
        if self.shift {
            self.multi += 1;
        } else if self.point {
            self.post += 1;
        } else {
            self.pre += 1;
        }
        Ok(Item::Digit)
    }

    fn zero(&mut self) -> Result<Item, ValueError> {
        if self.bracket {
            return Err(syntax("\"0\" must be ahead of \"PR\""));
        }
        if self.point {
            self.post += 1;
        } else {
            self.zero_start = self.zero_start.or(Some(self.pre));
            self.pre += 1;
        }
        self.zero_end = self.pre + self.post;
        Ok(Item::Zero)
    }

    fn decimal_point(&mut self) -> Result<Item, ValueError> {
        if self.point {
            return Err(syntax("multiple decimal points"));
        }
        if self.shift {
            return Err(syntax("cannot use \"V\" and decimal point together"));
        }
        self.point = true;
        Ok(Item::Point)
    }

    fn sign(&mut self, pattern: &str) -> Result<Item, ValueError> {
        if self.anchor != Anchor::None {
            return Err(syntax(format!("cannot use \"S\" and \"{pattern}\" together")));
        }
        self.minus |= pattern != "PL";
        self.plus |= pattern != "MI";
        Ok(match pattern {
            "MI" => Item::Minus,
            "PL" => Item::Plus,
            _ => Item::Sign,
        })
    }

    fn anchored_sign(&mut self) -> Result<Item, ValueError> {
        if self.anchor != Anchor::None {
            return Err(syntax("cannot use \"S\" twice"));
        }
        if self.plus || self.minus || self.bracket {
            return Err(syntax("cannot use \"S\" and \"PL\"/\"MI\"/\"SG\"/\"PR\" together"));
        }
        if self.point {
            self.anchor = Anchor::After;
        } else {
            self.anchor = Anchor::Before;
            self.anchor_pre = self.pre;
        }
        Ok(Item::Silent)
    }

    fn brackets(&mut self) -> Result<Item, ValueError> {
        if self.anchor != Anchor::None || self.plus || self.minus {
            return Err(syntax("cannot use \"PR\" and \"S\"/\"PL\"/\"MI\"/\"SG\" together"));
        }
        self.bracket = true;
        Ok(Item::Silent)
    }

    fn scientific(&mut self) -> Result<Item, ValueError> {
        if self.exponent {
            return Err(syntax("cannot use \"EEEE\" twice"));
        }
        let signs = self.anchor != Anchor::None || self.bracket || self.minus || self.plus;
        if signs || self.blank || self.fill || self.roman || self.shift {
            let detail = "\"EEEE\" may only be used together with digit and decimal point patterns.";
            return Err(syntax("\"EEEE\" is incompatible with other formats").with_detail(detail));
        }
        self.exponent = true;
        Ok(Item::Silent)
    }
}

/// The pattern at the start of the text, in upper case, and its length.
fn pattern_at(text: &str) -> Option<(&'static str, usize)> {
    PATTERNS.into_iter().find_map(|pattern| {
        let head = text.get(..pattern.len())?;
        let same =
            head == pattern || (head.eq_ignore_ascii_case(pattern) && !head.bytes().any(|b| b.is_ascii_uppercase()));
        same.then_some((pattern, pattern.len()))
    })
}

fn syntax(message: impl Into<std::borrow::Cow<'static, str>>) -> ValueError {
    ValueError::new(SqlState::SYNTAX_ERROR, message)
}

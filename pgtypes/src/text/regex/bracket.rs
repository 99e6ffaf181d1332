//! Bracket expressions: `[a-z[:digit:]\s]`.

use super::escape::{Escape, bad_escape};
use super::scanner::{Parser, invalid};
use super::set;
use crate::error::ValueError;
use crate::text::ctype::{self, Class, Ranges};

fn unbalanced() -> ValueError {
    invalid("brackets [] not balanced")
}

fn bad_range() -> ValueError {
    invalid("invalid character range")
}

/// An element inside of brackets.
enum Element {
    /// A character, which may begin or end a range
    Code(u32),
    /// A hyphen between other elements
    Hyphen,
    Ranges(Ranges),
    End,
}

impl Parser {
    /// The characters of the brackets that begin here.
    pub(super) fn bracket(&mut self) -> Result<Ranges, ValueError> {
        self.next();
        let options = self.options();
        let negated = self.eat("^");
        let mut out = Ranges::new();
        let mut element = self.element(true)?;
        loop {
            match element {
                Element::End => break,
                Element::Hyphen => return Err(bad_range()),
                Element::Ranges(ranges) => {
                    out.extend(ranges);
                    element = self.element(false)?;
                }
                Element::Code(start) => {
                    element = self.element(false)?;
                    if !matches!(element, Element::Hyphen) {
                        out.extend(set::one(start, options.ignore_case));
                        continue;
                    }
                    if self.eat("[:") || self.eat("[=") {
                        return Err(bad_range());
                    }
                    let end = match self.element(false)? {
                        Element::Code(end) => end,
                        Element::Hyphen => '-'.into(),
                        Element::Ranges(_) | Element::End => return Err(bad_range()),
                    };
                    if end < start {
                        return Err(self.after_next(bad_range()));
                    }
                    out.extend(set::range(start, end, options.ignore_case));
                    element = self.element(false)?;
                }
            }
        }
        if !negated {
            return Ok(out);
        }
        if options.newline_stops {
            out.push((10, 10));
        }
        Ok(ctype::complement(&ctype::normalize(out)))
    }

    fn element(&mut self, first: bool) -> Result<Element, ValueError> {
        let c = self.next().ok_or_else(unbalanced)?;
        let ignore_case = self.options().ignore_case;
        Ok(match c {
            ']' if !first => Element::End,
            '-' if !first && self.peek() != Some(']') => Element::Hyphen,
            '[' => match self.peek() {
                Some('.') => Element::Code(self.collating_element()?),
                Some('=') => Element::Ranges(set::one(self.collating_element()?, ignore_case)),
                Some(':') => {
                    let name = self.named()?;
                    let class = class(name.as_deref()).map_err(|error| self.after_next(error))?;
                    Element::Ranges(set::class(class, ignore_case))
                }
                None => return Err(unbalanced()),
                Some(_) => Element::Code('['.into()),
            },
            '\\' if self.is_advanced() => match self.escape()? {
                Escape::Code(code) => Element::Code(code),
                Escape::Class(class, negated) => {
                    let ranges = set::class(class, ignore_case);
                    Element::Ranges(if negated { ctype::complement(&ranges) } else { ranges })
                }
                Escape::Assert(_) | Escape::BackReference(_) => return Err(bad_escape()),
            },
            c => Element::Code(c.into()),
        })
    }

    /// The name between marks such as `:` and `:]`. `None` if it is empty.
    fn named(&mut self) -> Result<Option<String>, ValueError> {
        let mark = self.next().ok_or_else(unbalanced)?;
        let mut name = String::new();
        loop {
            let c = self.next().ok_or_else(unbalanced)?;
            if c == mark && self.eat("]") {
                return Ok(Some(name).filter(|name| !name.is_empty()));
            }
            name.push(c);
        }
    }

    fn collating_element(&mut self) -> Result<u32, ValueError> {
        let name = self.named()?.unwrap_or_default();
        let mut chars = name.chars();
        let code = match (chars.next(), chars.next()) {
            (Some(only), None) => Some(u32::from(only)),
            _ => NAMES.iter().find(|(known, _)| *known == name).map(|(_, c)| u32::from(*c)),
        };
        code.ok_or_else(|| self.after_next(invalid("invalid collating element")))
    }

    /// An error that PostgreSQL finds after it has read the next element, so that an error of that precedes it.
    fn after_next(&mut self, error: ValueError) -> ValueError {
        match self.next() {
            None => unbalanced(),
            Some('[') if self.peek().is_none() => unbalanced(),
            Some('\\') if self.is_advanced() => self.escape().err().unwrap_or(error),
            Some(_) => error,
        }
    }
}

fn class(name: Option<&str>) -> Result<Class, ValueError> {
    Ok(match name.unwrap_or("") {
        "alnum" => Class::Alnum,
        "alpha" => Class::Alpha,
        "ascii" => Class::Ascii,
        "blank" => Class::Blank,
        "cntrl" => Class::Cntrl,
        "digit" => Class::Digit,
        "graph" => Class::Graph,
        "lower" => Class::Lower,
        "print" => Class::Print,
        "punct" => Class::Punct,
        "space" => Class::Space,
        "upper" => Class::Upper,
        "word" => Class::Word,
        "xdigit" => Class::Xdigit,
        _ => return Err(invalid("invalid character class")),
    })
}

/// POSIX's names of characters.
const NAMES: [(&str, char); 95] = [
    ("NUL", '\u{0}'),
    ("SOH", '\u{1}'),
    ("STX", '\u{2}'),
    ("ETX", '\u{3}'),
    ("EOT", '\u{4}'),
    ("ENQ", '\u{5}'),
    ("ACK", '\u{6}'),
    ("BEL", '\u{7}'),
    ("alert", '\u{7}'),
    ("BS", '\u{8}'),
    ("backspace", '\u{8}'),
    ("HT", '\u{9}'),
    ("tab", '\u{9}'),
    ("LF", '\u{a}'),
    ("newline", '\u{a}'),
    ("VT", '\u{b}'),
    ("vertical-tab", '\u{b}'),
    ("FF", '\u{c}'),
    ("form-feed", '\u{c}'),
    ("CR", '\u{d}'),
    ("carriage-return", '\u{d}'),
    ("SO", '\u{e}'),
    ("SI", '\u{f}'),
    ("DLE", '\u{10}'),
    ("DC1", '\u{11}'),
    ("DC2", '\u{12}'),
    ("DC3", '\u{13}'),
    ("DC4", '\u{14}'),
    ("NAK", '\u{15}'),
    ("SYN", '\u{16}'),
    ("ETB", '\u{17}'),
    ("CAN", '\u{18}'),
    ("EM", '\u{19}'),
    ("SUB", '\u{1a}'),
    ("ESC", '\u{1b}'),
    ("IS4", '\u{1c}'),
    ("FS", '\u{1c}'),
    ("IS3", '\u{1d}'),
    ("GS", '\u{1d}'),
    ("IS2", '\u{1e}'),
    ("RS", '\u{1e}'),
    ("IS1", '\u{1f}'),
    ("US", '\u{1f}'),
    ("space", '\u{20}'),
    ("exclamation-mark", '\u{21}'),
    ("quotation-mark", '\u{22}'),
    ("number-sign", '\u{23}'),
    ("dollar-sign", '\u{24}'),
    ("percent-sign", '\u{25}'),
    ("ampersand", '\u{26}'),
    ("apostrophe", '\u{27}'),
    ("left-parenthesis", '\u{28}'),
    ("right-parenthesis", '\u{29}'),
    ("asterisk", '\u{2a}'),
    ("plus-sign", '\u{2b}'),
    ("comma", '\u{2c}'),
    ("hyphen", '\u{2d}'),
    ("hyphen-minus", '\u{2d}'),
    ("period", '\u{2e}'),
    ("full-stop", '\u{2e}'),
    ("slash", '\u{2f}'),
    ("solidus", '\u{2f}'),
    ("zero", '\u{30}'),
    ("one", '\u{31}'),
    ("two", '\u{32}'),
    ("three", '\u{33}'),
    ("four", '\u{34}'),
    ("five", '\u{35}'),
    ("six", '\u{36}'),
    ("seven", '\u{37}'),
    ("eight", '\u{38}'),
    ("nine", '\u{39}'),
    ("colon", '\u{3a}'),
    ("semicolon", '\u{3b}'),
    ("less-than-sign", '\u{3c}'),
    ("equals-sign", '\u{3d}'),
    ("greater-than-sign", '\u{3e}'),
    ("question-mark", '\u{3f}'),
    ("commercial-at", '\u{40}'),
    ("left-square-bracket", '\u{5b}'),
    ("backslash", '\u{5c}'),
    ("reverse-solidus", '\u{5c}'),
    ("right-square-bracket", '\u{5d}'),
    ("circumflex", '\u{5e}'),
    ("circumflex-accent", '\u{5e}'),
    ("underscore", '\u{5f}'),
    ("low-line", '\u{5f}'),
    ("grave-accent", '\u{60}'),
    ("left-brace", '\u{7b}'),
    ("left-curly-bracket", '\u{7b}'),
    ("vertical-line", '\u{7c}'),
    ("right-brace", '\u{7d}'),
    ("right-curly-bracket", '\u{7d}'),
    ("tilde", '\u{7e}'),
    ("DEL", '\u{7f}'),
];

//! LIKE and ILIKE: `%` matches any run of characters, `_` one character. An escape character makes the next one
//! literal.
//!
//! A pattern is read once and matches many texts. Matching takes at worst the product of the lengths: a mismatch
//! retries only the last `%`, one character further.

use crate::error::ValueError;
use crate::letters;
use crate::sqlstate::SqlState;

/// The escape character of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Escape {
    /// Without an ESCAPE clause: the backslash.
    Default,
    /// `ESCAPE ''`: no character is literal.
    None,
    /// `ESCAPE` with a character.
    Character(char),
}

fn bad_escape() -> ValueError {
    ValueError::new(SqlState::INVALID_ESCAPE_SEQUENCE, "invalid escape string")
        .with_hint("Escape string must be empty or one character.")
}

impl Escape {
    /// Reads the string of an ESCAPE clause. 22025 for more than one character.
    pub fn parse(text: &str) -> Result<Escape, ValueError> {
        let mut chars = text.chars();
        match (chars.next(), chars.next()) {
            (None, _) => Ok(Escape::None),
            (Some(c), None) => Ok(Escape::Character(c)),
            _ => Err(bad_escape()),
        }
    }

    /// The character.
    pub(super) fn character(self) -> Option<char> {
        match self {
            Escape::Default => Some('\\'),
            Escape::None => None,
            Escape::Character(c) => Some(c),
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Element<T> {
    Literal(T),
    AnyOne,
    AnyRun,
    /// An escape character at the end. It is an error when the match comes to it with text left, or right after a run.
    Dangling,
}

/// A pattern for characters, or for the bytes of `bytea`.
#[derive(Clone, Debug)]
pub struct LikePattern<T> {
    elements: Vec<Element<T>>,
    fold: bool,
}

impl LikePattern<char> {
    /// A pattern of LIKE, or of ILIKE with `fold`.
    pub fn text(pattern: &str, escape: Escape, fold: bool) -> LikePattern<char> {
        let mut elements = elements(pattern.chars(), escape.character(), '%', '_');
        // The escape character itself is found with its case.
        for element in elements.iter_mut().filter(|_| fold) {
            if let Element::Literal(c) = element {
                *c = letters::lower_char(*c);
            }
        }
        LikePattern { elements, fold }
    }

    /// Whether a text matches. 22025 for a pattern that ends with its escape character, if the match comes to it.
    pub fn matches(&self, text: &str) -> Result<bool, ValueError> {
        if self.fold { self.run(text.chars().map(letters::lower_char)) } else { self.run(text.chars()) }
    }
}

impl LikePattern<u8> {
    /// A pattern of LIKE for `bytea`. An escape character that is not ASCII is none.
    pub fn bytes(pattern: &[u8], escape: Escape) -> LikePattern<u8> {
        let escape = escape.character().and_then(|c| u8::try_from(c).ok());
        LikePattern { elements: elements(pattern.iter().copied(), escape, b'%', b'_'), fold: false }
    }

    /// Whether bytes match. 22025 as for texts.
    pub fn matches(&self, bytes: &[u8]) -> Result<bool, ValueError> {
        self.run(bytes.iter().copied())
    }
}

fn elements<T: Copy + Eq>(mut pattern: impl Iterator<Item = T>, escape: Option<T>, run: T, one: T) -> Vec<Element<T>> {
    let mut out = Vec::with_capacity(pattern.size_hint().1.unwrap_or(0));
    while let Some(c) = pattern.next() {
        out.push(match c {
            c if Some(c) == escape => pattern.next().map_or(Element::Dangling, Element::Literal),
            c if c == run => Element::AnyRun,
            c if c == one => Element::AnyOne,
            c => Element::Literal(c),
        });
    }
    out
}

/// `like_escape`: the pattern with backslashes for its escape character. 22025 for an escape of several characters.
pub fn like_escape(pattern: &str, escape: &str) -> Result<String, ValueError> {
    let escape = Escape::parse(escape)?.character();
    let mut out = String::with_capacity(pattern.len());
    with_backslashes(pattern.chars(), escape, '\\', |c| out.push(c));
    Ok(out)
}

/// [`like_escape`] for `bytea`, where a character is a byte.
pub fn like_escape_bytes(pattern: &[u8], escape: &[u8]) -> Result<Vec<u8>, ValueError> {
    let escape = match escape {
        [] => None,
        [byte] => Some(*byte),
        _ => return Err(bad_escape()),
    };
    let mut out = Vec::with_capacity(pattern.len());
    with_backslashes(pattern.iter().copied(), escape, b'\\', |byte| out.push(byte));
    Ok(out)
}

fn with_backslashes<T: Copy + Eq>(
    pattern: impl Iterator<Item = T>,
    escape: Option<T>,
    backslash: T,
    mut push: impl FnMut(T),
) {
    let mut escaped = false;
    for c in pattern {
        let escapes = Some(c) == escape && !escaped;
        if c == backslash && !escapes && !escaped {
            push(backslash);
        }
        push(if escapes { backslash } else { c });
        escaped = escapes;
    }
}

impl<T: Copy + Eq> LikePattern<T> {
    fn run(&self, mut text: impl Iterator<Item = T> + Clone) -> Result<bool, ValueError> {
        let mut pattern = self.elements.as_slice();
        let mut retry = None;
        // Whether only wildcards stand between a run, begun before the end of the text, and here. PostgreSQL looks for
        // a literal there, at the end of the text too.
        let mut in_run = false;
        loop {
            let next = text.clone().next();
            match (pattern.split_first(), next) {
                (Some((Element::AnyRun, rest)), _) => {
                    in_run |= next.is_some();
                    retry = Some((text.clone(), rest));
                    pattern = rest;
                    continue;
                }
                (Some((Element::Dangling, _)), next) if in_run || next.is_some() => {
                    let message = "LIKE pattern must not end with escape character";
                    return Err(ValueError::new(SqlState::INVALID_ESCAPE_SEQUENCE, message));
                }
                (Some((Element::AnyOne, rest)), Some(_)) => {
                    text.next();
                    pattern = rest;
                    continue;
                }
                (Some((Element::Literal(wanted), rest)), Some(c)) if *wanted == c => {
                    in_run = false;
                    text.next();
                    pattern = rest;
                    continue;
                }
                (None, None) => return Ok(true),
                // The text is at its end: a longer run leaves less of it.
                (Some(_), None) => return Ok(false),
                _ => {}
            }
            let Some((from, rest)) = &mut retry else { return Ok(false) };
            from.next();
            in_run = false;
            text = from.clone();
            pattern = rest;
        }
    }
}

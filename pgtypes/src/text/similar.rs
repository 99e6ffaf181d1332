//! SIMILAR TO and `substring(... similar ... escape ...)`: patterns of the SQL standard, as regular expressions.

use super::like::Escape;
use super::regex::{Regex, RegexOptions};
use crate::error::ValueError;
use crate::sqlstate::SqlState;

/// How far a pattern is inside of square brackets.
#[derive(Default)]
struct Brackets {
    depth: usize,
    /// Whether a `]` is a character of the brackets: only a `^` precedes it.
    at_start: bool,
    /// Whether there was a `^` at the start.
    negated: bool,
}

impl Brackets {
    fn open(&mut self) {
        *self = Brackets { depth: 1, at_start: true, negated: false };
    }

    /// Takes a character inside of brackets.
    fn take(&mut self, c: char) {
        match c {
            ']' if !self.at_start => self.depth -= 1,
            '^' if self.at_start && !self.negated => {
                self.negated = true;
                return;
            }
            // A class or the like, such as `[:alpha:]`
            '[' => self.depth += 1,
            _ => {}
        }
        self.at_start = false;
    }
}

/// `similar_to_escape`: the regular expression for a pattern. 2200C for more than two separators (the escape character
/// before a double quote).
pub fn similar_to_regex(pattern: &str, escape: Escape) -> Result<String, ValueError> {
    let escape = escape.character();
    let mut out = String::with_capacity(pattern.len() + 8);
    out.push_str("^(?:");
    let (mut escaped, mut separators) = (false, 0);
    let mut brackets = Brackets::default();
    for c in pattern.chars() {
        let inside = brackets.depth > 0;
        if std::mem::take(&mut escaped) {
            if c == '"' && !inside {
                out.push_str(separator(separators)?);
                separators += 1;
                continue;
            }
            out.push('\\');
            out.push(c);
            brackets.at_start = false;
            continue;
        }
        match c {
            c if Some(c) == escape => escaped = true,
            c if inside => {
                if c == '\\' {
                    out.push('\\');
                }
                out.push(c);
                brackets.take(c);
            }
            '[' => {
                out.push('[');
                brackets.open();
            }
            '%' => out.push_str(".*"),
            '_' => out.push('.'),
            '(' => out.push_str("(?:"),
            '\\' | '.' | '^' | '$' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out.push_str(")$");
    Ok(out)
}

/// What divides the parts of a pattern, after so many separators.
fn separator(before: usize) -> Result<&'static str, ValueError> {
    match before {
        0 => Ok("){1,1}?("),
        1 => Ok("){1,1}(?:"),
        _ => {
            let message = "SQL regular expression may not contain more than two escape-double-quote separators";
            Err(ValueError::new(SqlState::INVALID_USE_OF_ESCAPE_CHARACTER, message))
        }
    }
}

/// Compiles a pattern. [`Regex::is_match`] is SIMILAR TO, and [`Regex::substring`] is `substring(... similar ...)`.
/// Errors of [`similar_to_regex`] and [`Regex::new`].
pub fn similar_pattern(pattern: &str, escape: Escape) -> Result<Regex, ValueError> {
    Regex::new(&similar_to_regex(pattern, escape)?, RegexOptions::default())
}

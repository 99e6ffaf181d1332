//! SIMILAR TO and `substring(... similar ... escape ...)`: patterns of the SQL standard, as regular expressions.

use super::like::Escape;
use super::regex::{Regex, RegexOptions};
use crate::error::ValueError;
use crate::sqlstate::SqlState;

/// `similar_to_escape`: the regular expression for a pattern. 2200C for more than two separators (the escape character
/// before a double quote).
pub fn similar_to_regex(pattern: &str, escape: Escape) -> Result<String, ValueError> {
    let escape = escape.character();
    let mut out = String::with_capacity(pattern.len() + 8);
    out.push_str("^(?:");
    let (mut escaped, mut bracket, mut separators) = (false, false, 0);
    for c in pattern.chars() {
        if std::mem::take(&mut escaped) {
            match (c, separators) {
                ('"', 0) if !bracket => out.push_str("){1,1}?("),
                ('"', 1) if !bracket => out.push_str("){1,1}(?:"),
                ('"', _) if !bracket => {
                    let message = "SQL regular expression may not contain more than two escape-double-quote separators";
                    return Err(ValueError::new(SqlState::INVALID_USE_OF_ESCAPE_CHARACTER, message));
                }
                _ => {
                    out.push('\\');
                    out.push(c);
                    continue;
                }
            }
            separators += 1;
            continue;
        }
        match c {
            c if Some(c) == escape => escaped = true,
            c if bracket => {
                if c == '\\' {
                    out.push('\\');
                }
                out.push(c);
                bracket = c != ']';
            }
            '[' => {
                out.push('[');
                bracket = true;
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

/// Compiles a pattern. [`Regex::is_match`] is SIMILAR TO, and [`Regex::substring`] is `substring(... similar ...)`.
/// Errors of [`similar_to_regex`] and [`Regex::new`].
pub fn similar_pattern(pattern: &str, escape: Escape) -> Result<Regex, ValueError> {
    Regex::new(&similar_to_regex(pattern, escape)?, RegexOptions::default())
}

//! `parse_ident`: the parts of a qualified name.

use crate::error::ValueError;
use crate::sqlstate::SqlState;

/// The white space between the parts.
const BLANKS: [char; 5] = [' ', '\t', '\n', '\r', '\x0c'];

fn starts(c: char) -> bool {
    c == '_' || c.is_ascii_alphabetic() || !c.is_ascii()
}

fn continues(c: char) -> bool {
    starts(c) || c == '$' || c.is_ascii_digit()
}

/// The identifiers of a qualified name: those in quotes as they are, others in lower case. 22023 for what is no name.
/// Text after the name is an error only if the call is strict.
pub fn parse_ident(name: &str, strict: bool) -> Result<Vec<String>, ValueError> {
    let invalid = || {
        let message = format!("string is not a valid identifier: \"{name}\"");
        ValueError::new(SqlState::INVALID_PARAMETER_VALUE, message)
    };
    let mut parts = Vec::new();
    let mut rest = name.trim_start_matches(BLANKS);
    loop {
        if let Some(quoted) = rest.strip_prefix('"') {
            let (part, after) =
                unquote(quoted).ok_or_else(|| invalid().with_detail("String has unclosed double quotes."))?;
            if part.is_empty() {
                return Err(invalid().with_detail("Quoted identifier must not be empty."));
            }
            parts.push(part);
            rest = after;
        } else if rest.starts_with(starts) {
            let (part, after) = rest.split_at(rest.find(|c| !continues(c)).unwrap_or(rest.len()));
            parts.push(part.to_ascii_lowercase());
            rest = after;
        } else {
            return Err(match () {
                () if rest.starts_with('.') => invalid().with_detail("No valid identifier before \".\"."),
                () if !parts.is_empty() => invalid().with_detail("No valid identifier after \".\"."),
                () => invalid(),
            });
        }
        rest = rest.trim_start_matches(BLANKS);
        match rest.strip_prefix('.') {
            Some(after) => rest = after.trim_start_matches(BLANKS),
            None if strict && !rest.is_empty() => return Err(invalid()),
            None => return Ok(parts),
        }
    }
}

/// The identifier up to the closing quote, and the text after that. A doubled quote stands for one.
fn unquote(text: &str) -> Option<(String, &str)> {
    let mut part = String::new();
    let mut rest = text;
    loop {
        let (before, after) = rest.split_once('"')?;
        part.push_str(before);
        match after.strip_prefix('"') {
            Some(after) => {
                part.push('"');
                rest = after;
            }
            None => return Some((part, after)),
        }
    }
}

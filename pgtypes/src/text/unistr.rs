//! `unistr`: text with Unicode escapes.

use crate::error::ValueError;
use crate::sqlstate::SqlState;

fn bad_pair() -> ValueError {
    ValueError::new(SqlState::SYNTAX_ERROR, "invalid Unicode surrogate pair")
}

/// Replaces the escapes `\XXXX`, `\+XXXXXX`, `\uXXXX`, `\UXXXXXXXX` and `\\`. 42601 for a bad escape or half of a
/// surrogate pair, 22023 for what is no code point.
pub fn unistr(text: &str) -> Result<String, ValueError> {
    let mut out = String::with_capacity(text.len());
    let mut high: Option<u32> = None;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let after = rest.get(first.len_utf8()..).unwrap_or("");
        if first != '\\' {
            if high.is_some() {
                return Err(bad_pair());
            }
            out.push(first);
            rest = after;
            continue;
        }
        if let Some(after) = after.strip_prefix('\\') {
            if high.is_some() {
                return Err(bad_pair());
            }
            out.push('\\');
            rest = after;
            continue;
        }
        let (code, after) = escape(after)?;
        push(code, &mut high, &mut out)?;
        rest = after;
    }
    if high.is_some() { Err(bad_pair()) } else { Ok(out) }
}

/// The value of the escape after a backslash, and the text after it.
fn escape(text: &str) -> Result<(u32, &str), ValueError> {
    let forms = [("", 4), ("u", 4), ("+", 6), ("U", 8)];
    let found = forms.iter().find_map(|(prefix, count)| {
        let digits = text.strip_prefix(prefix)?;
        let code = digits.get(..*count)?;
        code.bytes().all(|b| b.is_ascii_hexdigit()).then_some((code, digits.get(*count..)?))
    });
    let (code, rest) = found.ok_or_else(|| {
        ValueError::new(SqlState::SYNTAX_ERROR, "invalid Unicode escape")
            .with_hint("Unicode escapes must be \\XXXX, \\+XXXXXX, \\uXXXX, or \\UXXXXXXXX.")
    })?;
    Ok((u32::from_str_radix(code, 16).unwrap_or(u32::MAX), rest))
}

/// Appends a code point, or keeps the first half of a surrogate pair.
fn push(code: u32, high: &mut Option<u32>, out: &mut String) -> Result<(), ValueError> {
    if code == 0 || code > u32::from(char::MAX) {
        let message = format!("invalid Unicode code point: {code:04X}");
        return Err(ValueError::new(SqlState::INVALID_PARAMETER_VALUE, message));
    }
    let code = match (code, high.take()) {
        (0xd800..=0xdbff, None) => {
            *high = Some(code);
            return Ok(());
        }
        (0xdc00..=0xdfff, Some(first)) => 0x10000 + ((first & 0x3ff) << 10) + (code & 0x3ff),
        (_, Some(_)) => return Err(bad_pair()),
        (code, None) => code,
    };
    out.push(char::from_u32(code).ok_or_else(bad_pair)?);
    Ok(())
}

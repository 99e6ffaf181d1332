//! Byte strings in texts: hexadecimal, and escaped.

use bytes::BytesMut;

use crate::error::ValueError;
use crate::sqlstate::SqlState;

/// Appends the hexadecimal form.
pub(crate) fn write_hex(bytes: &[u8], out: &mut BytesMut) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.reserve(2 + bytes.len() * 2);
    out.extend_from_slice(b"\\x");
    for byte in bytes {
        out.extend_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
    }
}

/// Appends the escaped form: a backslash is doubled, and what is not printable ASCII is written as three octal digits.
pub(crate) fn write_escaped(bytes: &[u8], out: &mut BytesMut) {
    out.reserve(bytes.len());
    for byte in bytes {
        match byte {
            b'\\' => out.extend_from_slice(b"\\\\"),
            b' '..=b'~' => out.extend_from_slice(&[*byte]),
            other => {
                let digit = |shift: u8| b'0' + (other >> shift & 7);
                out.extend_from_slice(&[b'\\', digit(6), digit(3), digit(0)]);
            }
        }
    }
}

/// Reads either form.
pub(crate) fn parse_bytea(text: &str) -> Result<Vec<u8>, ValueError> {
    match text.strip_prefix("\\x") {
        Some(hex) => parse_hex(hex),
        None => parse_escaped(text),
    }
}

fn parse_hex(hex: &str) -> Result<Vec<u8>, ValueError> {
    let mut out = Vec::with_capacity(hex.len() / 2);
    let mut chars = hex.chars().filter(|c| !matches!(c, ' ' | '\n' | '\t' | '\r'));
    let digit = |c: char| {
        c.to_digit(16).and_then(|d| u8::try_from(d).ok()).ok_or_else(|| {
            ValueError::new(SqlState::INVALID_PARAMETER_VALUE, format!("invalid hexadecimal digit: \"{c}\""))
        })
    };
    while let Some(high) = chars.next() {
        let high = digit(high)?;
        let Some(low) = chars.next() else {
            return Err(ValueError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                "invalid hexadecimal data: odd number of digits",
            ));
        };
        out.push(high << 4 | digit(low)?);
    }
    Ok(out)
}

/// The escape form: a backslash precedes another backslash or three octal digits.
fn parse_escaped(text: &str) -> Result<Vec<u8>, ValueError> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        rest = match (first, tail) {
            (b'\\', [b'\\', after @ ..]) => {
                out.push(b'\\');
                after
            }
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', after @ ..]) => {
                out.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                after
            }
            (b'\\', _) => {
                return Err(ValueError::new(
                    SqlState::INVALID_TEXT_REPRESENTATION,
                    "invalid input syntax for type bytea",
                ));
            }
            (byte, after) => {
                out.push(byte);
                after
            }
        };
    }
    Ok(out)
}

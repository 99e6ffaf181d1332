//! `encode` and `decode`: hexadecimal, base64 in lines of 76 characters, and the escape form of bytes.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::limit::{HEADER, MAX_VALUE};
use crate::error::ValueError;
use crate::sqlstate::SqlState;

/// The characters of a line of base64.
const LINE: usize = 76;

enum Encoding {
    Hex,
    Base64,
    Escape,
}

fn refused(message: impl Into<std::borrow::Cow<'static, str>>) -> ValueError {
    ValueError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

impl Encoding {
    fn parse(name: &str) -> Result<Encoding, ValueError> {
        match name.to_ascii_lowercase().as_str() {
            "hex" => Ok(Encoding::Hex),
            "base64" => Ok(Encoding::Base64),
            "escape" => Ok(Encoding::Escape),
            _ => Err(refused(format!("unrecognized encoding: \"{name}\""))),
        }
    }
}

/// `encode`: the text of bytes in an encoding. 22023 for an unknown one, 54000 for a result that is too large.
pub fn encode(bytes: &[u8], encoding: &str) -> Result<String, ValueError> {
    let encoding = Encoding::parse(encoding)?;
    let length = match encoding {
        Encoding::Hex => bytes.len() * 2,
        Encoding::Base64 => bytes.len() / 57 * 77 + 76,
        Encoding::Escape => bytes.len() + bytes.iter().map(|b| escaped_length(*b) - 1).sum::<usize>(),
    };
    if length > MAX_VALUE - HEADER {
        let message = "result of encoding conversion is too large";
        return Err(ValueError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
    }
    Ok(match encoding {
        Encoding::Hex => hex(bytes),
        Encoding::Base64 => base64(bytes),
        Encoding::Escape => escaped(bytes),
    })
}

/// `decode`: the bytes of a text in an encoding. 22023 for an unknown encoding and for bad hexadecimal or base64, 22P02
/// for a bad escape form.
pub fn decode(text: &str, encoding: &str) -> Result<Vec<u8>, ValueError> {
    match Encoding::parse(encoding)? {
        Encoding::Hex => from_hex(text),
        Encoding::Base64 => from_base64(text),
        Encoding::Escape => from_escaped(text),
    }
}

/// Lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap_or('0');
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// White space is allowed between bytes only.
fn from_hex(text: &str) -> Result<Vec<u8>, ValueError> {
    let digit = |c: char| {
        let digit = c.to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        digit.ok_or_else(|| refused(format!("invalid hexadecimal digit: \"{c}\"")))
    };
    let mut out = Vec::with_capacity(text.len() / 2);
    let mut chars = text.chars();
    while let Some(high) = chars.find(|c| !is_blank(*c)) {
        let high = digit(high)?;
        let low = chars.next().ok_or_else(|| refused("invalid hexadecimal data: odd number of digits"))?;
        out.push(high << 4 | digit(low)?);
    }
    Ok(out)
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\n' | '\t' | '\r')
}

/// A line that its groups fill without padding ends with a newline, even the last one.
fn base64(bytes: &[u8]) -> String {
    let full = LINE / 4 * 3;
    let mut out = String::with_capacity(bytes.len() / 57 * 77 + 76);
    for line in bytes.chunks(full) {
        STANDARD.encode_string(line, &mut out);
        if line.len() == full {
            out.push('\n');
        }
    }
    out
}

/// PostgreSQL reads on after a padding, which then shortens each later group.
fn from_base64(text: &str) -> Result<Vec<u8>, ValueError> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3 + 3);
    let (mut group, mut count, mut padded_to) = (0u32, 0, 3);
    for c in text.chars().filter(|c| !is_blank(*c)) {
        let value = match c {
            'A'..='Z' => u32::from(c) - u32::from('A'),
            'a'..='z' => u32::from(c) - u32::from('a') + 26,
            '0'..='9' => u32::from(c) - u32::from('0') + 52,
            '+' => 62,
            '/' => 63,
            '=' => {
                if padded_to == 3 {
                    padded_to = match count {
                        2 => 1,
                        3 => 2,
                        _ => return Err(refused("unexpected \"=\" while decoding base64 sequence")),
                    };
                }
                0
            }
            c => return Err(refused(format!("invalid symbol \"{c}\" found while decoding base64 sequence"))),
        };
        group = group << 6 | value;
        count += 1;
        if count == 4 {
            let [_, bytes @ ..] = group.to_be_bytes();
            out.extend(bytes.iter().take(padded_to));
            (group, count) = (0, 0);
        }
    }
    if count != 0 {
        let hint = "Input data is missing padding, is truncated, or is otherwise corrupted.";
        return Err(refused("invalid base64 end sequence").with_hint(hint));
    }
    Ok(out)
}

fn escaped_length(byte: u8) -> usize {
    match byte {
        0 | 0x80.. => 4,
        b'\\' => 2,
        _ => 1,
    }
}

fn escaped(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            0 | 0x80.. => out.push_str(&format!("\\{byte:03o}")),
            b'\\' => out.push_str("\\\\"),
            byte => out.push(char::from(*byte)),
        }
    }
    out
}

fn from_escaped(text: &str) -> Result<Vec<u8>, ValueError> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = match (first, after) {
            (b'\\', [b'\\', after @ ..]) => {
                out.push(b'\\');
                after
            }
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', after @ ..]) => {
                out.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                after
            }
            (b'\\', _) => {
                let message = "invalid input syntax for type bytea";
                return Err(ValueError::new(SqlState::INVALID_TEXT_REPRESENTATION, message));
            }
            (byte, after) => {
                out.push(*byte);
                after
            }
        };
    }
    Ok(out)
}

//! Text from outside: UTF-8 without NUL.

use crate::error::ValueError;
use crate::sqlstate::SqlState;

/// Checks text from the client: valid UTF-8 without NUL, else 22021 with the first bad byte as in PostgreSQL.
pub fn utf8(bytes: &[u8]) -> Result<&str, ValueError> {
    let bad = match std::str::from_utf8(bytes) {
        Ok(text) => match bytes.iter().position(|b| *b == 0) {
            None => return Ok(text),
            Some(at) => &bytes[at..=at],
        },
        Err(error) => {
            let start = error.valid_up_to();
            let end = (start + sequence_length(bytes[start])).min(bytes.len());
            &bytes[start..end]
        }
    };
    let shown: Vec<String> = bad.iter().map(|b| format!("0x{b:02x}")).collect();
    let message = format!("invalid byte sequence for encoding \"UTF8\": {}", shown.join(" "));
    Err(ValueError::new(SqlState::CHARACTER_NOT_IN_REPERTOIRE, message))
}

/// The length of the UTF-8 sequence that starts with `lead`.
fn sequence_length(lead: u8) -> usize {
    match lead {
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf7 => 4,
        _ => 1,
    }
}

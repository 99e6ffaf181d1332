//! Session tokens: the newest timestamp that a session has committed or read at, as an opaque text that another session
//! takes. Pure.
//!
//! The text is `c1.`, the timestamp as 16 hexadecimal digits, and 8 of a checksum: a text that was cut or mistyped is
//! refused, not taken for another time. A timestamp as SHOW prints it (`1700000000000.7`) is a token too.

use tso::Timestamp;

/// The version of the format.
const PREFIX: &str = "c1.";

/// The token of a timestamp; empty for none.
pub(crate) fn show(timestamp: Timestamp) -> String {
    if timestamp == Timestamp::ZERO {
        return String::new();
    }
    let digits = format!("{:016x}", timestamp.raw());
    format!("{PREFIX}{digits}{:08x}", checksum(&digits))
}

/// The timestamp of a token; `None` if it is not one. That of an empty text is [`Timestamp::ZERO`].
pub(crate) fn parse(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    if text.is_empty() {
        return Some(Timestamp::ZERO);
    }
    let Some(digits) = text.strip_prefix(PREFIX) else {
        return text.parse().ok().filter(|timestamp| *timestamp > Timestamp::ZERO);
    };
    let (digits, sum) = digits.split_at_checked(16)?;
    let timestamp = Timestamp::from_raw(u64::from_str_radix(digits, 16).ok()?);
    (sum.len() == 8 && show(timestamp) == text).then_some(timestamp)
}

/// FNV-1a, which finds every error in one character.
fn checksum(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |sum, byte| (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_comes_back_and_a_damaged_one_does_not() {
        let timestamp = Timestamp::new(1_700_000_000_000, 7);
        let token = show(timestamp);
        assert_eq!(parse(&token), Some(timestamp));
        assert_eq!(
            (parse("1700000000000.7"), parse(""), show(Timestamp::ZERO)),
            (Some(timestamp), Some(Timestamp::ZERO), String::new())
        );
        for at in 0..token.len() {
            let mut damaged = token.clone().into_bytes();
            damaged[at] = if damaged[at] == b'5' { b'6' } else { b'5' };
            assert_eq!(parse(std::str::from_utf8(&damaged).unwrap()), None, "character {at}");
            assert_eq!(parse(&token[..at]).filter(|found| *found > Timestamp::ZERO), None, "cut at {at}");
        }
        for text in ["c1.", "c2.0", "7", "-1.0", "é", "c1.é0000000000000000000", "0.0"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}

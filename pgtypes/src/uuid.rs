//! `uuid`: 16 bytes, compared byte by byte.

use std::fmt;

use crate::error::ValueError;
use crate::sqlstate::SqlState;

/// A value of `uuid`. The order is that of the bytes, which are also the binary form, the stored form and the key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uuid([u8; 16]);

impl Uuid {
    /// Reads 32 hexadecimal digits, in braces or not, with a hyphen allowed after each group of four. 22P02 for other
    /// text.
    pub fn parse(text: &str) -> Result<Uuid, ValueError> {
        let value = Uuid::read(text.as_bytes());
        value.ok_or_else(|| {
            let message = format!("invalid input syntax for type uuid: \"{text}\"");
            ValueError::new(SqlState::INVALID_TEXT_REPRESENTATION, message)
        })
    }

    fn read(text: &[u8]) -> Option<Uuid> {
        let mut rest = match text.strip_prefix(b"{") {
            Some(inner) => inner.strip_suffix(b"}")?,
            None => text,
        };
        let mut bytes = [0; 16];
        for (at, byte) in bytes.iter_mut().enumerate() {
            let (pair, after) = rest.split_at_checked(2)?;
            let [high, low] = pair else { return None };
            let digit = |digit: u8| char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
            *byte = digit(*high)? << 4 | digit(*low)?;
            let hyphen = at % 2 == 1 && at < 15;
            rest = if hyphen { after.strip_prefix(b"-").unwrap_or(after) } else { after };
        }
        rest.is_empty().then_some(Uuid(bytes))
    }

    /// The value of 16 bytes.
    pub fn from_bytes(bytes: [u8; 16]) -> Uuid {
        Uuid(bytes)
    }

    /// Reads the binary form. 08P01 for fewer than 16 bytes, 22P03 for more.
    pub fn from_binary(bytes: &[u8]) -> Result<Uuid, ValueError> {
        bytes.try_into().map(Uuid).map_err(|_| match bytes.len() {
            ..16 => ValueError::new(SqlState::PROTOCOL_VIOLATION, "insufficient data left in message"),
            _ => ValueError::new(SqlState::INVALID_BINARY_REPRESENTATION, "incorrect binary data format"),
        })
    }

    /// The 16 bytes.
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// `gen_random_uuid`: version 4, of 16 random bytes.
    pub fn from_random(random: [u8; 16]) -> Uuid {
        let mut bytes = random;
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        Uuid(bytes)
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, byte) in self.0.iter().enumerate() {
            let hyphen = if matches!(at, 4 | 6 | 8 | 10) { "-" } else { "" };
            write!(f, "{hyphen}{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn forms_are_those_of_postgresql() {
        let same = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11";
        for text in [
            same,
            "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11",
            "{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}",
            "a0eebc999c0b4ef8bb6d6bb9bd380a11",
            "a0ee-bc99-9c0b-4ef8-bb6d-6bb9-bd38-0a11",
            "{a0eebc99-9c0b4ef8-bb6d6bb9-bd380a11}",
        ] {
            assert_eq!(Uuid::parse(text).unwrap().to_string(), same, "{text}");
        }
        for text in [
            "",
            "{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}",
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1",
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a111",
            "a0-eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
            "a0eebc99--9c0b-4ef8-bb6d-6bb9bd380a11",
            "g0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
            " a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11-",
        ] {
            let error = Uuid::parse(text).unwrap_err();
            assert_eq!(error.code().0, "22P02");
            assert_eq!(error.message(), format!("invalid input syntax for type uuid: \"{text}\""));
        }
    }

    #[test]
    fn random_values_are_of_version_4() {
        let text = Uuid::from_random([0xff; 16]).to_string();
        assert_eq!(text, "ffffffff-ffff-4fff-bfff-ffffffffffff");
        assert_eq!(Uuid::from_random([0; 16]).to_string(), "00000000-0000-4000-8000-000000000000");
    }

    #[test]
    fn binary_forms_have_16_bytes() {
        assert_eq!(Uuid::from_binary(&[0; 15]).unwrap_err().code().0, "08P01");
        assert_eq!(Uuid::from_binary(&[0; 17]).unwrap_err().code().0, "22P03");
    }

    proptest! {
        #[test]
        fn forms_are_read_back(bytes in any::<[u8; 16]>(), other in any::<[u8; 16]>()) {
            let value = Uuid::from_bytes(bytes);
            prop_assert_eq!(Uuid::parse(&value.to_string()).unwrap(), value);
            prop_assert_eq!(Uuid::from_binary(value.as_bytes()).unwrap(), value);
            prop_assert_eq!(value.cmp(&Uuid::from_bytes(other)), bytes.cmp(&other));
        }

        #[test]
        fn no_text_panics(text in ".{0,40}") {
            let _ = Uuid::parse(&text);
        }
    }
}

//! What the functions of types share: the errors of forms that no value has.

use crate::error::ValueError;
use crate::sqlstate::SqlState;

/// 22P02 for a text that is none of the type.
pub(crate) fn invalid(type_name: &str, text: &str) -> ValueError {
    let message = format!("invalid input syntax for type {type_name}: \"{text}\"");
    ValueError::new(SqlState::INVALID_TEXT_REPRESENTATION, message)
}

/// Exactly `N` bytes. Fewer are a protocol violation, more a bad representation.
pub(crate) fn fixed<const N: usize>(bytes: &[u8]) -> Result<[u8; N], ValueError> {
    bytes.try_into().map_err(|_| {
        if bytes.len() < N {
            ValueError::new(SqlState::PROTOCOL_VIOLATION, "insufficient data left in message")
        } else {
            ValueError::new(SqlState::INVALID_BINARY_REPRESENTATION, "incorrect binary data format")
        }
    })
}

/// 22P02 for a text that is no value of a kind of type.
pub(crate) fn invalid_value(kind: &str, type_name: &str, text: &str) -> ValueError {
    let message = format!("invalid input value for {kind}{type_name}: \"{text}\"");
    ValueError::new(SqlState::INVALID_TEXT_REPRESENTATION, message)
}

/// A length on the wire.
pub(crate) fn size(length: usize) -> i32 {
    i32::try_from(length).unwrap_or(i32::MAX)
}

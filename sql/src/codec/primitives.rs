//! The pieces of every encoding: varints, byte slices, and the error of malformed bytes.

use pgtypes::codec::Malformed;

use crate::error::{SqlError, SqlState};

/// Malformed bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed {what}: {why}")]
pub struct CodecError {
    /// The thing being decoded.
    pub what: &'static str,
    /// The defect.
    pub why: &'static str,
}

impl CodecError {
    /// An error about `what`.
    pub fn new(what: &'static str, why: &'static str) -> CodecError {
        CodecError { what, why }
    }
}

impl From<Malformed> for CodecError {
    fn from(Malformed(why): Malformed) -> CodecError {
        CodecError::new("value", why)
    }
}

impl From<CodecError> for SqlError {
    fn from(error: CodecError) -> SqlError {
        SqlError::new(SqlState::DATA_CORRUPTED, error.to_string())
    }
}

/// Appends an unsigned varint: seven bits per byte, low bits first.
pub fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Reads a varint and advances `input`.
pub fn get_varint(input: &mut &[u8], what: &'static str) -> Result<u64, CodecError> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let Some((&byte, rest)) = input.split_first() else { return Err(CodecError::new(what, "cut short")) };
        *input = rest;
        let bits = u64::from(byte & 0x7f);
        if shift == 63 && bits > 1 {
            break;
        }
        value |= bits << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(CodecError::new(what, "number too long"))
}

/// Takes `count` bytes off the front of `input`.
pub fn take<'a>(input: &mut &'a [u8], count: usize, what: &'static str) -> Result<&'a [u8], CodecError> {
    match input.split_at_checked(count) {
        Some((taken, rest)) => {
            *input = rest;
            Ok(taken)
        }
        None => Err(CodecError::new(what, "cut short")),
    }
}

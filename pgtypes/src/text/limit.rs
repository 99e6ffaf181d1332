//! The size of results: a value has less than 1 GB.

use crate::error::ValueError;
use crate::sqlstate::SqlState;

/// The bytes that a value can have, with its length word.
pub(crate) const MAX_VALUE: usize = 0x3fff_ffff;
/// The length word.
pub(crate) const HEADER: usize = 4;

/// Checks a size that a function was asked for. 54000 if it is too large.
pub(crate) fn check_length(bytes: Option<usize>) -> Result<usize, ValueError> {
    match bytes {
        Some(bytes) if bytes <= MAX_VALUE - HEADER => Ok(bytes),
        _ => Err(ValueError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "requested length too large")),
    }
}

/// Checks the size of a text that grew to `length` bytes and needs `more`. 54000 if it is too large.
pub(crate) fn check_growth(length: usize, more: usize) -> Result<(), ValueError> {
    if length.saturating_add(more) < MAX_VALUE {
        return Ok(());
    }
    let detail = format!("Cannot enlarge string buffer containing {length} bytes by {more} more bytes.");
    Err(ValueError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "out of memory").with_detail(detail))
}

/// Checks the bytes of a value before they are allocated. XX000 if there are too many.
pub(crate) fn check_alloc(bytes: usize) -> Result<(), ValueError> {
    let size = bytes.saturating_add(HEADER);
    if size <= MAX_VALUE {
        return Ok(());
    }
    Err(ValueError::new(SqlState::INTERNAL_ERROR, format!("invalid memory alloc request size {size}")))
}

//! Functions of `bytea`: bytes and bits, parts, trimming. Positions count bytes from 1, indexes of bytes and bits
//! from 0.

use crate::error::ValueError;
use crate::sqlstate::SqlState;
use crate::text::{check_alloc, negative_length};

/// 2202E for an index that is not below `size`.
fn out_of_range(index: i64, size: usize) -> ValueError {
    let last = i64::try_from(size).unwrap_or(i64::MAX) - 1;
    let message = format!("index {index} out of valid range, 0..{last}");
    ValueError::new(SqlState::ARRAY_SUBSCRIPT_ERROR, message)
}

fn checked(index: i64, size: usize) -> Result<usize, ValueError> {
    let at = usize::try_from(index).ok().filter(|at| *at < size);
    at.ok_or_else(|| out_of_range(index, size))
}

fn size(count: i64) -> usize {
    usize::try_from(count).unwrap_or(0)
}

fn from(bytes: &[u8], start: usize) -> &[u8] {
    bytes.get(start..).unwrap_or(&[])
}

fn first(bytes: &[u8], count: usize) -> &[u8] {
    bytes.get(..count).unwrap_or(bytes)
}

/// `get_byte`. 2202E for an index out of range.
pub fn get_byte(bytes: &[u8], index: i32) -> Result<i32, ValueError> {
    let at = checked(index.into(), bytes.len())?;
    bytes.get(at).map(|byte| i32::from(*byte)).ok_or_else(|| out_of_range(index.into(), bytes.len()))
}

/// `set_byte`: with the low byte of a value at an index. 2202E for an index out of range.
pub fn set_byte(bytes: &[u8], index: i32, value: i32) -> Result<Vec<u8>, ValueError> {
    let at = checked(index.into(), bytes.len())?;
    let [.., low] = value.to_be_bytes();
    let mut out = bytes.to_vec();
    if let Some(byte) = out.get_mut(at) {
        *byte = low;
    }
    Ok(out)
}

/// `get_bit`: bit 0 is the lowest one of the first byte. 2202E for an index out of range.
pub fn get_bit(bytes: &[u8], index: i64) -> Result<i32, ValueError> {
    let at = checked(index, bytes.len().saturating_mul(8))?;
    Ok(bytes.get(at / 8).map_or(0, |byte| i32::from(byte >> (at % 8) & 1)))
}

/// `set_bit`. 2202E for an index out of range, 22023 for another value than 0 and 1.
pub fn set_bit(bytes: &[u8], index: i64, value: i32) -> Result<Vec<u8>, ValueError> {
    let at = checked(index, bytes.len().saturating_mul(8))?;
    if value != 0 && value != 1 {
        return Err(ValueError::new(SqlState::INVALID_PARAMETER_VALUE, "new bit must be 0 or 1"));
    }
    let mut out = bytes.to_vec();
    if let Some(byte) = out.get_mut(at / 8) {
        let mask = 1 << (at % 8);
        *byte = if value == 1 { *byte | mask } else { *byte & !mask };
    }
    Ok(out)
}

/// `bit_count`: the bits that are set.
pub fn bit_count(bytes: &[u8]) -> i64 {
    bytes.iter().map(|byte| i64::from(byte.count_ones())).sum()
}

/// `substr` from a position to the end.
pub fn substr(bytes: &[u8], start: i32) -> &[u8] {
    from(bytes, size(i64::from(start) - 1))
}

/// `substr` of `length` bytes from a position that may precede the bytes. 22011 for a negative length.
pub fn substr_to(bytes: &[u8], start: i32, length: i32) -> Result<&[u8], ValueError> {
    if length < 0 {
        return Err(negative_length());
    }
    let begin = (i64::from(start) - 1).max(0);
    let end = i64::from(start) - 1 + i64::from(length);
    Ok(first(from(bytes, size(begin)), size(end - begin)))
}

/// `overlay`: replaces `length` bytes from `start` on; by default as many as there are new ones. 22011 for a start
/// below 1, 22003 for an end that is no `integer`.
pub fn overlay(bytes: &[u8], new: &[u8], start: i32, length: Option<i32>) -> Result<Vec<u8>, ValueError> {
    let length = length.unwrap_or_else(|| i32::try_from(new.len()).unwrap_or(i32::MAX));
    if start <= 0 {
        return Err(negative_length());
    }
    let Some(end) = start.checked_add(length) else {
        return Err(ValueError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "integer out of range"));
    };
    let (before, after) = (first(bytes, size(i64::from(start) - 1)), from(bytes, size(i64::from(end) - 1)));
    check_alloc(before.len() + new.len() + after.len())?;
    Ok([before, new, after].concat())
}

/// `position`: the position of the first occurrence, 0 if there is none.
pub fn position(bytes: &[u8], part: &[u8]) -> i32 {
    if part.is_empty() {
        return 1;
    }
    let at = bytes.windows(part.len()).position(|window| window == part);
    at.map_or(0, |at| i32::try_from(at + 1).unwrap_or(i32::MAX))
}

/// `ltrim`: without the bytes of a set at the start.
pub fn ltrim<'a>(bytes: &'a [u8], set: &[u8]) -> &'a [u8] {
    let start = bytes.iter().position(|byte| !set.contains(byte)).unwrap_or(bytes.len());
    from(bytes, start)
}

/// `rtrim`: without the bytes of a set at the end.
pub fn rtrim<'a>(bytes: &'a [u8], set: &[u8]) -> &'a [u8] {
    let end = bytes.iter().rposition(|byte| !set.contains(byte)).map_or(0, |at| at + 1);
    first(bytes, end)
}

/// `btrim`: without the bytes of a set at both ends.
pub fn btrim<'a>(bytes: &'a [u8], set: &[u8]) -> &'a [u8] {
    rtrim(ltrim(bytes, set), set)
}

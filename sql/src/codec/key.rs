//! Memory-comparable keys: the byte order of encodings is the SQL order of the values.
//!
//! | value | bytes |
//! |---|---|
//! | integer, timestamp | `0x80 + n` (from 0) or `0x7f - n` (below 0), then the `n` significant bytes, big-endian |
//! | boolean | `0` or `1` |
//! | float | 8 bytes: sign bit flipped, or all bits of a negative one; -0 as 0, one NaN above infinity |
//! | text, bytea | the bytes with `00` written `00 ff`, then `00 01` |
//!
//! Every encoding is prefix-free, so columns need no separators.

use bytes::Bytes;
use kv::Key;

use super::primitives::{CodecError, take};
use crate::table::{StorageId, Table};
use pgtypes::{Datum, SqlType};

const WHAT: &str = "row key";
/// Length of the prefix before the primary key: `t`, storage id, `r`.
pub const PREFIX_LEN: usize = 6;

/// The prefix of a table's row keys.
pub fn row_prefix(storage: StorageId) -> Vec<u8> {
    // Room for a typical key without growing.
    let mut out = Vec::with_capacity(PREFIX_LEN + 26);
    out.push(b't');
    out.extend_from_slice(&storage.0.to_be_bytes());
    out.push(b'r');
    out
}

/// The range of all keys under a storage id.
pub fn storage_range(storage: StorageId) -> (Key, Key) {
    let bound = |id: u64| {
        let mut out = vec![b't'];
        match u32::try_from(id) {
            Ok(id) => out.extend_from_slice(&id.to_be_bytes()),
            Err(_) => out[0] = b'u',
        }
        Key::new(out)
    };
    (bound(storage.0.into()), bound(u64::from(storage.0) + 1))
}

/// The storage id and primary key part of a row key; `None` for other keys.
pub fn split_row_key(key: &[u8]) -> Option<(StorageId, &[u8])> {
    let (prefix, rest) = key.split_at_checked(PREFIX_LEN)?;
    let id = u32::from_be_bytes(prefix[1..5].try_into().ok()?);
    (prefix[0] == b't' && prefix[5] == b'r').then_some((StorageId(id), rest))
}

/// The key of a row; `None` if a primary key column is NULL or missing.
pub fn row_key(table: &Table, row: &[Datum]) -> Option<Key> {
    let mut out = row_prefix(table.storage);
    for at in &table.primary_key {
        put(row.get(*at)?, &mut out)?;
    }
    Some(Key::new(out))
}

/// The key of a row without a primary key. Unique by the transaction's timestamp, and by `sequence` within it.
pub fn hidden_key(storage: StorageId, start_ts: tso::Timestamp, sequence: u64) -> Key {
    let mut out = row_prefix(storage);
    out.extend_from_slice(&start_ts.raw().to_be_bytes());
    put_int(i64::try_from(sequence).unwrap_or(i64::MAX), &mut out);
    Key::new(out)
}

/// The smallest byte string above all strings with this prefix; empty if there is none.
pub fn successor(prefix: &[u8]) -> Vec<u8> {
    let mut out = prefix.to_vec();
    while let Some(last) = out.pop() {
        if last < 0xff {
            out.push(last + 1);
            break;
        }
    }
    out
}

/// Appends a value. NULL appends nothing and returns `None`.
pub fn put(value: &Datum, out: &mut Vec<u8>) -> Option<()> {
    match value {
        Datum::Null => return None,
        Datum::Bool(value) => out.push(u8::from(*value)),
        Datum::Int(value) | Datum::Timestamp(value) => put_int(*value, out),
        Datum::Float(value) => out.extend_from_slice(&float_bits(*value).to_be_bytes()),
        Datum::Text(text) => put_bytes(text.as_bytes(), out),
        Datum::Bytes(bytes) => put_bytes(bytes, out),
    }
    Some(())
}

fn put_int(value: i64, out: &mut Vec<u8>) {
    // A negative number counts the bytes of its complement: none for -1, one for -256.
    let size = if value < 0 { !value } else { value };
    let count = 8 - (size.leading_zeros() / 8) as usize;
    let tag = if value < 0 { 0x7f - count as u8 } else { 0x80 + count as u8 };
    out.push(tag);
    out.extend_from_slice(&value.to_be_bytes()[8 - count..]);
}

fn float_bits(value: f64) -> u64 {
    let value = if value.is_nan() {
        f64::NAN
    } else if value == 0.0 {
        0.0
    } else {
        value
    };
    let bits = value.to_bits() & if value.is_nan() { !(1 << 63) } else { u64::MAX };
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    out.reserve(bytes.len() + 2);
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|b| *b == 0) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(&[0, 0xff]);
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
    out.extend_from_slice(&[0, 1]);
}

/// Reads a value of a type and advances `input`.
pub fn get(ty: SqlType, input: &mut &[u8]) -> Result<Datum, CodecError> {
    Ok(match ty {
        SqlType::Bool => match take(input, 1, WHAT)?[0] {
            0 => Datum::Bool(false),
            1 => Datum::Bool(true),
            _ => return Err(CodecError::new(WHAT, "no boolean")),
        },
        SqlType::Int2 | SqlType::Int4 | SqlType::Int8 => Datum::Int(get_int(input)?),
        SqlType::Timestamptz => Datum::Timestamp(get_int(input)?),
        SqlType::Float8 => {
            let bytes = take(input, 8, WHAT)?;
            let bits = bytes.iter().fold(0u64, |bits, byte| bits << 8 | u64::from(*byte));
            Datum::Float(f64::from_bits(if bits >> 63 == 1 { bits & !(1 << 63) } else { !bits }))
        }
        SqlType::Text | SqlType::Varchar(_) | SqlType::Void | SqlType::Unknown => {
            let text = String::from_utf8(get_bytes(input)?).map_err(|_| CodecError::new(WHAT, "text is not UTF-8"))?;
            Datum::Text(text.into_boxed_str())
        }
        SqlType::Bytea => Datum::Bytes(Bytes::from(get_bytes(input)?)),
    })
}

fn get_int(input: &mut &[u8]) -> Result<i64, CodecError> {
    let tag = take(input, 1, WHAT)?[0];
    let (negative, count) = if tag >= 0x80 { (false, tag - 0x80) } else { (true, 0x7f - tag) };
    if count > 8 {
        return Err(CodecError::new(WHAT, "integer too long"));
    }
    let bytes = take(input, usize::from(count), WHAT)?;
    let start = if negative { -1i64 } else { 0 };
    let value = bytes.iter().fold(start, |value, byte| value << 8 | i64::from(*byte));
    if (value < 0) != negative {
        return Err(CodecError::new(WHAT, "integer out of range"));
    }
    Ok(value)
}

fn get_bytes(input: &mut &[u8]) -> Result<Vec<u8>, CodecError> {
    let mut out = Vec::new();
    loop {
        let Some(at) = input.iter().position(|b| *b == 0) else {
            return Err(CodecError::new(WHAT, "string without end"));
        };
        out.extend_from_slice(&input[..at]);
        let escape = input.get(at + 1).copied();
        *input = input.get(at + 2..).unwrap_or_default();
        match escape {
            Some(0xff) => out.push(0),
            Some(1) => return Ok(out),
            _ => return Err(CodecError::new(WHAT, "bad escape in a string")),
        }
    }
}

/// Decodes the primary key columns of a row key into their places in `row`.
pub fn get_row_key(table: &Table, key: &Key, row: &mut [Datum]) -> Result<(), CodecError> {
    let Some((storage, mut rest)) = split_row_key(key.as_bytes()) else {
        return Err(CodecError::new(WHAT, "wrong prefix"));
    };
    if storage != table.storage {
        return Err(CodecError::new(WHAT, "of another table"));
    }
    if table.has_hidden_key() {
        return Ok(());
    }
    for at in &table.primary_key {
        row[*at] = get(table.columns[*at].ty, &mut rest)?;
    }
    if rest.is_empty() { Ok(()) } else { Err(CodecError::new(WHAT, "bytes left over")) }
}

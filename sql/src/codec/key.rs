//! Keys of rows: `t`, the storage id, `r`, then the columns of the primary key ([`pgtypes::codec::key`]).

use kv::Key;
pub use pgtypes::codec::key::{get, put};

use super::primitives::CodecError;
use crate::table::{StorageId, Table};
use pgtypes::Datum;

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
    split(key, b'r')
}

/// The storage id and the rest of a key of a kind: `r` for rows, `i` for entries of indexes.
pub(super) fn split(key: &[u8], kind: u8) -> Option<(StorageId, &[u8])> {
    let (prefix, rest) = key.split_at_checked(PREFIX_LEN)?;
    let id = u32::from_be_bytes(prefix[1..5].try_into().ok()?);
    (prefix[0] == b't' && prefix[5] == kind).then_some((StorageId(id), rest))
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
    // An integer always has a form.
    let _ = put(&Datum::Int(i64::try_from(sequence).unwrap_or(i64::MAX)), &mut out);
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

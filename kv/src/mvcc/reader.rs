//! Point reads at a snapshot timestamp.
//!
//! A read at `ts` first checks the lock. A transaction that may still commit at or below `ts` blocks the read, which
//! then fails with the lock. The reader names the transactions of which it knows that they do not: their locks are
//! passed. Otherwise the read returns the newest data record at or below `ts`.

use bytes::Bytes;
use engine::Cf;
use engine::store::Reader;
use tso::Timestamp;

use super::lock::LockRecord;
use super::versions::{Versions, long_value};
use super::write::WriteKind;
use crate::api::{KeyError, LockInfo};
use crate::error::{ActionError, Result};
use crate::key::Key;
use crate::size::BlockingLocks;

/// The lock on a key given in storage form, of any transaction.
pub fn load_lock<R: Reader + ?Sized>(reader: &R, storage: &[u8]) -> Result<Option<LockRecord>> {
    reader.get(Cf::Lock, storage)?.map(|bytes| LockRecord::decode(&bytes)).transpose()
}

/// Reads the newest value of `key` committed at or before `start_ts`, past the locks of the transactions in `pass`.
///
/// # Errors
///
/// [`KeyError::Locked`] if a lock blocks the read; [`ActionError::Mvcc`] if the store fails or its data is corrupt.
pub fn get<R: Reader + ?Sized>(
    reader: &R,
    key: &Key,
    start_ts: Timestamp,
    pass: &[Timestamp],
) -> Result<Option<Bytes>, ActionError> {
    let storage = key.to_storage();
    if let Some(lock) = blocking_lock(reader, key, &storage, start_ts, pass)? {
        return Err(KeyError::Locked(vec![lock]).into());
    }
    let mut versions = Versions::of_key(reader, &storage)?;
    Ok(visible(reader, &mut versions, &storage, start_ts)?)
}

/// The result of a batch get.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BatchPage {
    /// The pairs found, in the order of the request. Absent keys are left out.
    pub pairs: Vec<(Key, Bytes)>,
    /// The first key that was not looked up; `None` if all were.
    pub resume: Option<Key>,
}

/// Reads many distinct keys at a timestamp, past the locks of some transactions, as [`get`]. Stops once the pairs found
/// take `max_bytes` bytes; the first key is always looked up.
///
/// # Errors
///
/// [`KeyError::Locked`] if locks block the read, with the locks of all `keys` as far as [`BlockingLocks`] holds them;
/// [`ActionError::Mvcc`] if the store fails or its data is corrupt.
pub fn batch_get<R: Reader + ?Sized>(
    reader: &R,
    keys: &[Key],
    (start_ts, pass): (Timestamp, &[Timestamp]),
    max_bytes: usize,
) -> Result<BatchPage, ActionError> {
    let storage: Vec<Vec<u8>> = keys.iter().map(Key::to_storage).collect();
    let (Some(first), Some(last)) = (storage.iter().min(), storage.iter().max()) else {
        return Ok(BatchPage::default());
    };
    let mut locks = BlockingLocks::default();
    for (key, storage) in keys.iter().zip(&storage) {
        if let Some(lock) = blocking_lock(reader, key, storage, start_ts, pass)? {
            locks.push(lock);
        }
    }
    if !locks.is_empty() {
        return Err(KeyError::Locked(locks.into_locks()).into());
    }
    let mut versions = Versions::of_keys(reader, first, last)?;
    let mut page = BatchPage { pairs: Vec::with_capacity(keys.len()), resume: None };
    let mut bytes = 0;
    for (key, storage) in keys.iter().zip(&storage) {
        if bytes >= max_bytes {
            page.resume = Some(key.clone());
            break;
        }
        if let Some(value) = visible(reader, &mut versions, storage, start_ts)? {
            bytes += key.as_bytes().len() + value.len();
            page.pairs.push((key.clone(), value));
        }
    }
    Ok(page)
}

/// The lock on `key`, if it blocks a read at `ts`.
fn blocking_lock<R: Reader + ?Sized>(
    reader: &R,
    key: &Key,
    storage: &[u8],
    ts: Timestamp,
    pass: &[Timestamp],
) -> Result<Option<LockInfo>> {
    let lock = load_lock(reader, storage)?.filter(|lock| lock.blocks_read_at(ts, pass));
    Ok(lock.map(|lock| lock.info(key.clone())))
}

/// The value that a read at `ts` sees, ignoring locks.
fn visible<R: Reader + ?Sized>(
    reader: &R,
    versions: &mut Versions,
    storage: &[u8],
    ts: Timestamp,
) -> Result<Option<Bytes>> {
    if !versions.seek_data(storage, ts)? {
        return Ok(None);
    }
    let (_, write) = versions.current()?;
    match (write.kind, write.short_value) {
        (WriteKind::Put, Some(short)) => Ok(Some(Bytes::copy_from_slice(short))),
        (WriteKind::Put, None) => long_value(reader, storage, write.start_ts).map(Some),
        _ => Ok(None),
    }
}

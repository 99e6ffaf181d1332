//! Point reads at a snapshot timestamp.
//!
//! A read at `ts` first looks at the lock: a transaction that may still commit at or below `ts` is in the way, and the reader is told of
//! it. Then it takes the newest record at or below `ts` that is data.

use bytes::Bytes;
use engine::Cf;
use engine::store::Reader;
use tso::Timestamp;

use super::versions::{Versions, long_value};
use super::{LockRecord, Result, WriteKind};
use crate::api::{KeyError, LockInfo};
use crate::error::ActionError;
use crate::key::Key;
use crate::size::LocksMet;

/// The lock on a key given in storage form, whoever holds it.
pub fn load_lock<R: Reader + ?Sized>(reader: &R, storage: &[u8]) -> Result<Option<LockRecord>> {
    reader.get(Cf::Lock, storage)?.map(|bytes| LockRecord::decode(&bytes)).transpose()
}

/// The newest value of `key` committed at or before `start_ts`. `KeyError::Locked` if a lock is in the way.
pub fn get<R: Reader + ?Sized>(reader: &R, key: &Key, start_ts: Timestamp) -> Result<Option<Bytes>, ActionError> {
    let storage = key.to_storage();
    if let Some(lock) = blocking_lock(reader, key, &storage, start_ts)? {
        return Err(KeyError::Locked(vec![lock]).into());
    }
    let mut versions = Versions::of_key(reader, &storage)?;
    Ok(visible(reader, &mut versions, &storage, start_ts)?)
}

/// What a batch get found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BatchPage {
    /// In the order asked for; absent keys are left out.
    pub pairs: Vec<(Key, Bytes)>,
    /// The first key that was not looked up any more; `None` if all were.
    pub resume: Option<Key>,
}

/// The values of many distinct keys, until there are `max_bytes` of them; at least one key is looked up. `KeyError::Locked` if locks are in
/// the way, with those of all the keys, as far as one answer reports them.
pub fn batch_get<R: Reader + ?Sized>(
    reader: &R,
    keys: &[Key],
    start_ts: Timestamp,
    max_bytes: usize,
) -> Result<BatchPage, ActionError> {
    let storage: Vec<Vec<u8>> = keys.iter().map(Key::to_storage).collect();
    let (Some(first), Some(last)) = (storage.iter().min(), storage.iter().max()) else {
        return Ok(BatchPage::default());
    };
    let mut locks = LocksMet::default();
    for (key, storage) in keys.iter().zip(&storage) {
        if let Some(lock) = blocking_lock(reader, key, storage, start_ts)? {
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

/// The lock on `key` that a read at `ts` must wait for.
fn blocking_lock<R: Reader + ?Sized>(reader: &R, key: &Key, storage: &[u8], ts: Timestamp) -> Result<Option<LockInfo>> {
    let lock = load_lock(reader, storage)?.filter(|lock| lock.blocks_read_at(ts));
    Ok(lock.map(|lock| lock.info(key.clone())))
}

/// The value that a read at `ts` sees, locks aside.
fn visible<R: Reader + ?Sized>(
    reader: &R,
    versions: &mut Versions<'_>,
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

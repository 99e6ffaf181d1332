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

/// The values of many keys, in the order asked for; absent keys are left out. `KeyError::Locked` with every lock that is in the way.
pub fn batch_get<R: Reader + ?Sized>(
    reader: &R,
    keys: &[Key],
    start_ts: Timestamp,
) -> Result<Vec<(Key, Bytes)>, ActionError> {
    let storage: Vec<Vec<u8>> = keys.iter().map(Key::to_storage).collect();
    let (Some(first), Some(last)) = (storage.iter().min(), storage.iter().max()) else { return Ok(Vec::new()) };
    let mut locks = Vec::new();
    for (key, storage) in keys.iter().zip(&storage) {
        locks.extend(blocking_lock(reader, key, storage, start_ts)?);
    }
    if !locks.is_empty() {
        return Err(KeyError::Locked(locks).into());
    }
    let mut versions = Versions::of_keys(reader, first, last)?;
    let mut pairs = Vec::with_capacity(keys.len());
    for (key, storage) in keys.iter().zip(&storage) {
        if let Some(value) = visible(reader, &mut versions, storage, start_ts)? {
            pairs.push((key.clone(), value));
        }
    }
    Ok(pairs)
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

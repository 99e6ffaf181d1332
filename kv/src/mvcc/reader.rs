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
    let mut batch = BatchGet::new(keys.to_vec(), start_ts, pass.to_vec(), max_bytes);
    while !batch.advance(reader, usize::MAX)? {}
    Ok(batch.into_page())
}

/// A [`batch_get`] in slices, of one view. First it looks for the locks of all keys, then it reads their values.
pub struct BatchGet {
    /// The keys, and their storage form.
    keys: Vec<(Key, Vec<u8>)>,
    start_ts: Timestamp,
    pass: Vec<Timestamp>,
    max_bytes: usize,
    /// How many keys have no lock that was not seen.
    checked: usize,
    locks: BlockingLocks,
    /// How many keys were looked up.
    looked_up: usize,
    /// Over the write records. `None` before the first lookup.
    versions: Option<Versions>,
    bytes: usize,
    page: BatchPage,
}

impl BatchGet {
    /// A read of distinct keys of which nothing is read yet. The limits are those of [`batch_get`].
    pub fn new(keys: Vec<Key>, start_ts: Timestamp, pass: Vec<Timestamp>, max_bytes: usize) -> BatchGet {
        let keys: Vec<(Key, Vec<u8>)> = keys.into_iter().map(|key| (key.clone(), key.to_storage())).collect();
        let page = BatchPage { pairs: Vec::with_capacity(keys.len()), resume: None };
        let (checked, looked_up, locks) = (0, 0, BlockingLocks::default());
        BatchGet { keys, start_ts, pass, max_bytes, checked, locks, looked_up, versions: None, bytes: 0, page }
    }

    /// Reads the locks or the values of up to `steps` keys more, at least of one. Returns whether the page is done.
    /// Every call gets the same view.
    ///
    /// # Errors
    ///
    /// Those of [`batch_get`]. The read cannot go on after an error.
    pub fn advance<R: Reader + ?Sized>(&mut self, reader: &R, steps: usize) -> Result<bool, ActionError> {
        let steps = steps.max(1);
        if self.checked < self.keys.len() {
            let end = self.checked.saturating_add(steps).min(self.keys.len());
            for (key, storage) in self.keys.iter().take(end).skip(self.checked) {
                if let Some(lock) = blocking_lock(reader, key, storage, self.start_ts, &self.pass)? {
                    self.locks.push(lock);
                }
            }
            self.checked = end;
            if end < self.keys.len() {
                return Ok(false);
            }
            if !self.locks.is_empty() {
                return Err(KeyError::Locked(std::mem::take(&mut self.locks).into_locks()).into());
            }
            return Ok(self.keys.is_empty());
        }
        self.look_up(reader, steps)
    }

    /// What was read.
    pub fn into_page(self) -> BatchPage {
        self.page
    }

    fn look_up<R: Reader + ?Sized>(&mut self, reader: &R, steps: usize) -> Result<bool, ActionError> {
        let mut versions = match self.versions.take() {
            Some(versions) => versions,
            None => {
                let bounds = (self.keys.iter().map(|(_, key)| key).min(), self.keys.iter().map(|(_, key)| key).max());
                let (Some(first), Some(last)) = bounds else { return Ok(true) };
                Versions::of_keys(reader, first, last)?
            }
        };
        for (key, storage) in self.keys.iter().skip(self.looked_up).take(steps) {
            if self.bytes >= self.max_bytes {
                self.page.resume = Some(key.clone());
                return Ok(true);
            }
            if let Some(value) = visible(reader, &mut versions, storage, self.start_ts)? {
                self.bytes += key.as_bytes().len() + value.len();
                self.page.pairs.push((key.clone(), value));
            }
            self.looked_up += 1;
        }
        self.versions = Some(versions);
        Ok(self.looked_up == self.keys.len())
    }
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

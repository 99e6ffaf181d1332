//! Range reads at a snapshot timestamp, in both directions.
//!
//! Two cursors move through the range in step, one over the locks and one over the write records; at each key the lock is looked at first,
//! then the newest record at or below the timestamp that is data. Where versions pile up the cursor seeks past them instead of
//! stepping. A scan ends at the end of its range, at a limit of pairs or bytes, or when it has done the work it was
//! allowed; in the last three cases it says where to go on, so that a caller may run a long scan in slices.
//!
//! Locks in the way: once the page has pairs, it ends before the lock, and the next page begins with it. A page that meets one before any
//! pair reports the locks of all keys that it would have returned, so that they are resolved in one go.

use bytes::Bytes;
use engine::Cf;
use engine::store::{Cursor, Reader};
use tso::Timestamp;

use super::versions::{after_versions, is_version_of, long_value};
use super::{LockRecord, Result, WriteKind, WriteRecord};
use crate::api::{KeyError, LockInfo, ScanRequest};
use crate::error::ActionError;
use crate::key::{Key, push_ts, split_ts, storage_range};
use crate::size::LocksMet;

/// Versions of one key to step over before seeking past the rest.
const STEPS_BEFORE_SEEK: usize = 8;

/// Why a page ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageEnd {
    /// The range is exhausted.
    Range,
    /// Enough pairs or bytes.
    Limit,
    /// A lock is in the way of the next key.
    Lock,
    /// The allowed work is done.
    Work,
}

/// A page of a scan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanPage {
    /// In the order of the scan.
    pub pairs: Vec<(Key, Bytes)>,
    /// The bound to go on from (exclusive end of a reverse scan); `None` if and only if the range is exhausted.
    pub resume: Option<Key>,
    /// Why it ended.
    pub end: PageEnd,
}

/// Reads a page: at most `request.limit` pairs, about `request.max_bytes` bytes, and about `max_steps` cursor movements.
/// `KeyError::Locked` if a lock is in the way of the first pair.
pub fn scan<R: Reader + ?Sized>(reader: &R, request: &ScanRequest, max_steps: usize) -> Result<ScanPage, ActionError> {
    if !request.end.is_empty() && request.start >= request.end {
        return Ok(ScanPage { pairs: Vec::new(), resume: None, end: PageEnd::Range });
    }
    Scanner::new(reader, request)?.run(max_steps)
}

/// A cursor that remembers whether it stands on a key, and counts its movements.
struct Walk<'r> {
    cursor: Box<dyn Cursor + 'r>,
    reverse: bool,
    live: bool,
    steps: usize,
}

/// What a write record stages: the value of a put, or where it lies.
struct Found {
    start_ts: Timestamp,
    short_value: Option<Bytes>,
}

/// The state of one page being read.
struct Scanner<'r, R: ?Sized> {
    reader: &'r R,
    request: &'r ScanRequest,
    locks: Walk<'r>,
    writes: Walk<'r>,
    /// The key being looked at, in storage form.
    current: Vec<u8>,
    pairs: Vec<(Key, Bytes)>,
    bytes: usize,
    /// Locks in the way. Once there is one, keys are only counted.
    blocked: LocksMet,
    /// Keys without a lock seen since the first lock in the way.
    counted: usize,
}

impl<'r, R: Reader + ?Sized> Scanner<'r, R> {
    fn new(reader: &'r R, request: &'r ScanRequest) -> Result<Scanner<'r, R>> {
        let (start, end) = storage_range(&request.start, &request.end);
        let walk = |cf| -> Result<Walk<'r>> {
            let mut walk =
                Walk { cursor: reader.cursor(cf, &start, &end)?, reverse: request.reverse, live: false, steps: 0 };
            walk.start()?;
            Ok(walk)
        };
        Ok(Scanner {
            reader,
            request,
            locks: walk(Cf::Lock)?,
            writes: walk(Cf::Write)?,
            current: Vec::new(),
            pairs: Vec::new(),
            bytes: 0,
            blocked: LocksMet::default(),
            counted: 0,
        })
    }

    fn run(mut self, max_steps: usize) -> Result<ScanPage, ActionError> {
        let end = loop {
            if self.is_full() {
                break PageEnd::Limit;
            }
            if !self.load_current()? {
                break PageEnd::Range;
            }
            if self.locks.steps + self.writes.steps >= max_steps {
                break PageEnd::Work;
            }
            if let Some(lock) = self.take_blocking_lock()? {
                if !self.pairs.is_empty() {
                    break PageEnd::Lock;
                }
                self.blocked.push(lock);
                self.writes.skip_key(&self.current)?;
            } else {
                self.take_version()?;
            }
        };
        if !self.blocked.is_empty() {
            return Err(KeyError::Locked(self.blocked.into_locks()).into());
        }
        let resume = match end {
            PageEnd::Range => None,
            PageEnd::Limit => Some(self.bound(false)?),
            PageEnd::Lock | PageEnd::Work => Some(self.bound(true)?),
        };
        Ok(ScanPage { pairs: self.pairs, resume, end })
    }

    fn is_full(&self) -> bool {
        let seen = self.pairs.len() + self.blocked.len() + self.counted;
        seen >= (self.request.limit as usize).max(1)
            || self.bytes >= (self.request.max_bytes as usize).max(1)
            || self.blocked.is_full()
    }

    /// The bound from which a later page sees the current key again, or does not.
    fn bound(&self, again: bool) -> Result<Key> {
        let key = Key::from_storage(&self.current)?;
        // A forward scan begins with its bound, a reverse scan ends before it.
        Ok(if again == self.request.reverse { key.successor() } else { key })
    }

    /// Makes the next key that has a lock or a record the current one.
    fn load_current(&mut self) -> Result<bool> {
        let write_key = if self.writes.live { Some(split_ts(self.writes.cursor.key())?.0) } else { None };
        let lock_key = if self.locks.live { Some(self.locks.cursor.key()) } else { None };
        let next = match (write_key, lock_key) {
            (Some(write), Some(lock)) if self.request.reverse => write.max(lock),
            (Some(write), Some(lock)) => write.min(lock),
            (Some(key), None) | (None, Some(key)) => key,
            (None, None) => return Ok(false),
        };
        self.current.clear();
        self.current.extend_from_slice(next);
        Ok(true)
    }

    /// The lock of the current key if a read must wait for it. The lock cursor moves past the key.
    fn take_blocking_lock(&mut self) -> Result<Option<LockInfo>> {
        if !self.locks.live || self.locks.cursor.key() != self.current {
            return Ok(None);
        }
        let lock = LockRecord::decode(self.locks.cursor.value())?;
        self.locks.step()?;
        if !lock.blocks_read_at(self.request.start_ts) {
            return Ok(None);
        }
        Ok(Some(lock.info(Key::from_storage(&self.current)?)))
    }

    /// Takes what the snapshot sees of the current key, and moves the write cursor past the key.
    fn take_version(&mut self) -> Result<()> {
        let want_value = !self.request.keys_only && self.blocked.is_empty();
        let Some(found) = self.writes.visible(&self.current, self.request.start_ts, want_value)? else {
            return Ok(());
        };
        if !self.blocked.is_empty() {
            self.counted += 1;
            return Ok(());
        }
        let value = match found.short_value {
            _ if self.request.keys_only => Bytes::new(),
            Some(short) => short,
            None => long_value(self.reader, &self.current, found.start_ts)?,
        };
        let key = Key::from_storage(&self.current)?;
        self.bytes += key.as_bytes().len() + value.len();
        self.pairs.push((key, value));
        Ok(())
    }
}

impl Walk<'_> {
    fn start(&mut self) -> Result<()> {
        self.live = if self.reverse { self.cursor.seek_to_last()? } else { self.cursor.seek_to_first()? };
        Ok(())
    }

    fn step(&mut self) -> Result<()> {
        self.steps += 1;
        self.live = if self.reverse { self.cursor.prev()? } else { self.cursor.next()? };
        Ok(())
    }

    fn is_on(&self, storage: &[u8]) -> bool {
        self.live && is_version_of(self.cursor.key(), storage)
    }

    fn commit_ts(&self) -> Result<Timestamp> {
        Ok(split_ts(self.cursor.key())?.1)
    }

    /// Moves past all versions of a key in the direction of the scan.
    fn skip_key(&mut self, storage: &[u8]) -> Result<()> {
        for _ in 0..STEPS_BEFORE_SEEK {
            if !self.is_on(storage) {
                return Ok(());
            }
            self.step()?;
        }
        if self.is_on(storage) {
            self.steps += 1;
            // No version equals the bare storage key, so that the last key before it belongs to another one.
            self.live = if self.reverse {
                self.cursor.seek_for_prev(storage)?
            } else {
                self.cursor.seek(&after_versions(storage))?
            };
        }
        Ok(())
    }

    /// What a read at `ts` sees of the key, `None` if it does not exist. Ends past all versions of the key.
    fn visible(&mut self, storage: &[u8], ts: Timestamp, want_value: bool) -> Result<Option<Found>> {
        let found = if self.reverse {
            self.visible_from_oldest(storage, ts, want_value)?
        } else {
            self.visible_from_newest(storage, ts, want_value)?
        };
        self.skip_key(storage)?;
        Ok(found)
    }

    /// From the newest version on: past those above `ts`, then to the first that is data.
    fn visible_from_newest(&mut self, storage: &[u8], ts: Timestamp, want_value: bool) -> Result<Option<Found>> {
        let mut passed = 0;
        while self.is_on(storage) && self.commit_ts()? > ts {
            if passed == STEPS_BEFORE_SEEK {
                self.seek_version(storage, ts)?;
                break;
            }
            passed += 1;
            self.step()?;
        }
        self.first_data(storage, want_value)
    }

    /// From the oldest version on: the last that is data and not above `ts`. If there are many, from above instead.
    fn visible_from_oldest(&mut self, storage: &[u8], ts: Timestamp, want_value: bool) -> Result<Option<Found>> {
        let mut found = None;
        let mut passed = 0;
        while self.is_on(storage) && self.commit_ts()? <= ts {
            if passed == STEPS_BEFORE_SEEK {
                self.seek_version(storage, ts)?;
                let found = self.first_data(storage, want_value);
                // Wherever that ended, the key before this one is where the scan goes on.
                self.steps += 1;
                self.live = self.cursor.seek_for_prev(storage)?;
                return found;
            }
            passed += 1;
            let write = WriteRecord::decode(self.cursor.value())?;
            if write.kind.is_data() {
                found = stage(&write, want_value);
            }
            self.step()?;
        }
        Ok(found)
    }

    /// The first version from here on, towards older ones, that is data.
    fn first_data(&mut self, storage: &[u8], want_value: bool) -> Result<Option<Found>> {
        while self.is_on(storage) {
            let write = WriteRecord::decode(self.cursor.value())?;
            if write.kind.is_data() {
                return Ok(stage(&write, want_value));
            }
            self.steps += 1;
            self.live = self.cursor.next()?;
        }
        Ok(None)
    }

    /// To the newest version of the key at or below `ts`, or past the key.
    fn seek_version(&mut self, storage: &[u8], ts: Timestamp) -> Result<()> {
        let mut target = storage.to_vec();
        push_ts(&mut target, ts);
        self.steps += 1;
        self.live = self.cursor.seek(&target)?;
        Ok(())
    }
}

/// What a data record stages; `None` for a removal.
fn stage(write: &WriteRecord<'_>, want_value: bool) -> Option<Found> {
    let short_value = write.short_value.filter(|_| want_value).map(Bytes::copy_from_slice);
    (write.kind == WriteKind::Put).then_some(Found { start_ts: write.start_ts, short_value })
}

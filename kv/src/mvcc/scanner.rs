//! Range reads at a snapshot timestamp, in both directions.
//!
//! Two cursors move through the range together, one over the locks and one over the write records. At each key the
//! scan first checks the lock, then finds the newest data record at or below the timestamp. It seeks past a key with
//! many versions instead of stepping through them.
//!
//! A page ends at the end of the range, at a limit of pairs or bytes, before a blocking lock, or at a limit of cursor
//! movements. Except at the end of the range it names a resume key, so a caller can run a long scan in slices.
//!
//! A page that has pairs ends before a blocking lock, and the next page begins with it. A page that meets a blocking
//! lock before its first pair fails with the locks of all keys that it would have returned, so that the caller resolves
//! them together.

use bytes::Bytes;
use engine::Cf;
use engine::store::{Cursor, Reader};
use tso::Timestamp;

use super::lock::LockRecord;
use super::versions::{after_versions, is_version_of, long_value};
use super::write::{WriteKind, WriteRecord};
use crate::api::{KeyError, LockInfo, ScanRequest};
use crate::error::{ActionError, Result};
use crate::key::{Key, split_ts, storage_range, versioned};
use crate::size::BlockingLocks;

/// Versions of one key to step over before seeking past the rest.
const STEPS_BEFORE_SEEK: usize = 8;

/// Why a page ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageEnd {
    /// The range is exhausted.
    Range,
    /// The limit of pairs or bytes is reached.
    Limit,
    /// The next key has a blocking lock.
    Lock,
    /// The limit of cursor movements is reached.
    Work,
}

/// A page of a scan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanPage {
    /// The pairs found, in the order of the scan.
    pub pairs: Vec<(Key, Bytes)>,
    /// The start of the next page, or the exclusive end of a reverse scan's next page. `None` if and only if `end` is
    /// [`PageEnd::Range`].
    pub resume: Option<Key>,
    /// Why the page ended.
    pub end: PageEnd,
}

/// Reads a page: at most `request.limit` pairs, about `request.max_bytes` bytes, and about `max_steps` cursor
/// movements.
///
/// # Errors
///
/// [`KeyError::Locked`] if a lock blocks the first pair; [`ActionError::Mvcc`] if the store fails or its data is
/// corrupt.
pub fn scan<R: Reader + ?Sized>(reader: &R, request: &ScanRequest, max_steps: usize) -> Result<ScanPage, ActionError> {
    if !request.end.is_empty() && request.start >= request.end {
        return Ok(ScanPage { pairs: Vec::new(), resume: None, end: PageEnd::Range });
    }
    Scanner::new(reader, request)?.run(max_steps)
}

/// A cursor that moves in the direction of the scan and counts its movements.
struct DirectedCursor<'r> {
    cursor: Box<dyn Cursor + 'r>,
    reverse: bool,
    /// Whether the cursor is on a key.
    valid: bool,
    steps: usize,
}

/// The visible version of a key. A long value is in `Cf::Default` under `start_ts`.
struct VisiblePut {
    start_ts: Timestamp,
    short_value: Option<Bytes>,
}

/// The state of one page being read.
struct Scanner<'r, R: ?Sized> {
    reader: &'r R,
    request: &'r ScanRequest,
    locks: DirectedCursor<'r>,
    writes: DirectedCursor<'r>,
    /// The key being examined, in storage form.
    current: Vec<u8>,
    pairs: Vec<(Key, Bytes)>,
    bytes: usize,
    /// Locks that block the page. Once there is one, visible keys are only counted.
    blocking: BlockingLocks,
    /// Visible keys without a blocking lock, counted since the first blocking lock.
    counted: usize,
}

impl<'r, R: Reader + ?Sized> Scanner<'r, R> {
    fn new(reader: &'r R, request: &'r ScanRequest) -> Result<Scanner<'r, R>> {
        let (start, end) = storage_range(&request.start, &request.end);
        let open = |cf| -> Result<DirectedCursor<'r>> {
            let cursor = reader.cursor(cf, &start, &end)?;
            let mut cursor = DirectedCursor { cursor, reverse: request.reverse, valid: false, steps: 0 };
            cursor.seek_to_start()?;
            Ok(cursor)
        };
        Ok(Scanner {
            reader,
            request,
            locks: open(Cf::Lock)?,
            writes: open(Cf::Write)?,
            current: Vec::new(),
            pairs: Vec::new(),
            bytes: 0,
            blocking: BlockingLocks::default(),
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
                self.blocking.push(lock);
                self.writes.skip_key(&self.current)?;
            } else {
                self.take_version()?;
            }
        };
        if !self.blocking.is_empty() {
            return Err(KeyError::Locked(self.blocking.into_locks()).into());
        }
        let resume = match end {
            PageEnd::Range => None,
            PageEnd::Limit => Some(self.resume_key(false)?),
            PageEnd::Lock | PageEnd::Work => Some(self.resume_key(true)?),
        };
        Ok(ScanPage { pairs: self.pairs, resume, end })
    }

    fn is_full(&self) -> bool {
        let seen = self.pairs.len() + self.blocking.len() + self.counted;
        seen >= (self.request.limit as usize).max(1)
            || self.bytes >= (self.request.max_bytes as usize).max(1)
            || self.blocking.is_full()
    }

    /// The resume key of a next page that includes the current key, or excludes it.
    fn resume_key(&self, include_current: bool) -> Result<Key> {
        let key = Key::from_storage(&self.current)?;
        // The bound is inclusive for a forward scan and exclusive for a reverse scan.
        Ok(if include_current == self.request.reverse { key.successor() } else { key })
    }

    /// Makes the next key that has a lock or a write record the current one. Returns false at the end of the range.
    fn load_current(&mut self) -> Result<bool> {
        let write_key = if self.writes.valid { Some(split_ts(self.writes.cursor.key())?.0) } else { None };
        let lock_key = if self.locks.valid { Some(self.locks.cursor.key()) } else { None };
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

    /// The lock of the current key, if it blocks the read. Moves the lock cursor past the key.
    fn take_blocking_lock(&mut self) -> Result<Option<LockInfo>> {
        if !self.locks.valid || self.locks.cursor.key() != self.current {
            return Ok(None);
        }
        let lock = LockRecord::decode(self.locks.cursor.value())?;
        self.locks.step()?;
        if !lock.blocks_read_at(self.request.start_ts) {
            return Ok(None);
        }
        Ok(Some(lock.info(Key::from_storage(&self.current)?)))
    }

    /// Adds the visible version of the current key to the page, and moves the write cursor past the key.
    fn take_version(&mut self) -> Result<()> {
        let want_value = !self.request.keys_only && self.blocking.is_empty();
        let Some(put) = self.writes.visible(&self.current, self.request.start_ts, want_value)? else {
            return Ok(());
        };
        if !self.blocking.is_empty() {
            self.counted += 1;
            return Ok(());
        }
        let value = match put.short_value {
            _ if self.request.keys_only => Bytes::new(),
            Some(short) => short,
            None => long_value(self.reader, &self.current, put.start_ts)?,
        };
        let key = Key::from_storage(&self.current)?;
        self.bytes += key.as_bytes().len() + value.len();
        self.pairs.push((key, value));
        Ok(())
    }
}

impl DirectedCursor<'_> {
    fn seek_to_start(&mut self) -> Result<()> {
        self.valid = if self.reverse { self.cursor.seek_to_last()? } else { self.cursor.seek_to_first()? };
        Ok(())
    }

    fn step(&mut self) -> Result<()> {
        self.steps += 1;
        self.valid = if self.reverse { self.cursor.prev()? } else { self.cursor.next()? };
        Ok(())
    }

    fn is_on(&self, storage: &[u8]) -> bool {
        self.valid && is_version_of(self.cursor.key(), storage)
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
            // No version equals the bare storage key, so the last entry before it belongs to another key.
            self.valid = if self.reverse {
                self.cursor.seek_for_prev(storage)?
            } else {
                self.cursor.seek(&after_versions(storage))?
            };
        }
        Ok(())
    }

    /// The version of the key that is visible at `ts`; `None` if the key does not exist. Moves past all its versions.
    fn visible(&mut self, storage: &[u8], ts: Timestamp, want_value: bool) -> Result<Option<VisiblePut>> {
        let visible = if self.reverse {
            self.visible_from_oldest(storage, ts, want_value)?
        } else {
            self.visible_from_newest(storage, ts, want_value)?
        };
        self.skip_key(storage)?;
        Ok(visible)
    }

    /// Starts on the newest version: skips those above `ts`, then finds the first data record.
    fn visible_from_newest(&mut self, storage: &[u8], ts: Timestamp, want_value: bool) -> Result<Option<VisiblePut>> {
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

    /// Starts on the oldest version: finds the last data record at or below `ts`. If there are many versions, seeks to
    /// `ts` and searches from there instead.
    fn visible_from_oldest(&mut self, storage: &[u8], ts: Timestamp, want_value: bool) -> Result<Option<VisiblePut>> {
        let mut visible = None;
        let mut passed = 0;
        while self.is_on(storage) && self.commit_ts()? <= ts {
            if passed == STEPS_BEFORE_SEEK {
                self.seek_version(storage, ts)?;
                let visible = self.first_data(storage, want_value);
                // The search may have ended anywhere; the scan continues with the key before this one.
                self.steps += 1;
                self.valid = self.cursor.seek_for_prev(storage)?;
                return visible;
            }
            passed += 1;
            let write = WriteRecord::decode(self.cursor.value())?;
            if write.kind.is_data() {
                visible = visible_put(&write, want_value);
            }
            self.step()?;
        }
        Ok(visible)
    }

    /// The first data record from the cursor on, towards older versions.
    fn first_data(&mut self, storage: &[u8], want_value: bool) -> Result<Option<VisiblePut>> {
        while self.is_on(storage) {
            let write = WriteRecord::decode(self.cursor.value())?;
            if write.kind.is_data() {
                return Ok(visible_put(&write, want_value));
            }
            self.steps += 1;
            self.valid = self.cursor.next()?;
        }
        Ok(None)
    }

    /// Moves to the newest version of the key at or below `ts`, or past the key if there is none.
    fn seek_version(&mut self, storage: &[u8], ts: Timestamp) -> Result<()> {
        self.steps += 1;
        self.valid = self.cursor.seek(&versioned(storage, ts))?;
        Ok(())
    }
}

/// The put of a data record; `None` for a delete.
fn visible_put(write: &WriteRecord<'_>, want_value: bool) -> Option<VisiblePut> {
    let short_value = write.short_value.filter(|_| want_value).map(Bytes::copy_from_slice);
    (write.kind == WriteKind::Put).then_some(VisiblePut { start_ts: write.start_ts, short_value })
}

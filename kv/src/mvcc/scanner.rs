//! Range reads at a snapshot timestamp, in both directions.
//!
//! A page is read in two passes. The first walks the write records and finds, at each key, the newest data record at or
//! below the timestamp. It seeks past a key with many versions instead of stepping through them. It ends at the end of
//! the range, at a limit of pairs or bytes, or at a limit of cursor movements. The second pass walks the locks of
//! exactly the keys that the first one covered, and ends the page before the first lock that blocks it.
//!
//! The bounds of the second pass matter. Every commit leaves a deleted lock behind until compaction removes it, and a
//! cursor walks over deleted records unseen. A lock cursor that looked for the next lock of the range would walk the
//! deleted locks of all keys behind the page, on every page. Within the bounds of a page, each deleted lock belongs to
//! a key whose commit record the first pass has walked, or to one that was rolled back. So the cost of a page is
//! bounded by what it covers.
//!
//! Except at the end of the range a page names a resume key, so a caller can run a long scan in slices. A page that has
//! pairs ends before a blocking lock, and the next page begins with it. A page that meets a blocking lock before its
//! first pair fails with the blocking locks of all keys that it covers, so that the caller resolves them together.

use bytes::Bytes;
use engine::Cf;
use engine::store::{Cursor, Reader};
use tso::Timestamp;

use super::lock::LockRecord;
use super::versions::{after_versions, is_version_of, long_value};
use super::write::{WriteKind, WriteRecord};
use crate::api::{KeyError, ScanRequest};
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

/// Reads a page: at most `request.limit` pairs, about `request.max_bytes` bytes, and about `max_steps` cursor movements
/// over the write records and as many over the locks. A limit of 0 counts as 1.
///
/// # Errors
///
/// [`KeyError::Locked`] if a lock blocks the first pair; [`ActionError::Mvcc`] if the store fails or its data is
/// corrupt.
pub fn scan<R: Reader + ?Sized>(reader: &R, request: &ScanRequest, max_steps: usize) -> Result<ScanPage, ActionError> {
    if !request.end.is_empty() && request.start >= request.end {
        return Ok(ScanPage { pairs: Vec::new(), resume: None, end: PageEnd::Range });
    }
    let max_steps = max_steps.max(1);
    let mut page = VersionScan::new(reader, request)?.read_page(max_steps)?;
    end_before_locks(reader, request, max_steps, &mut page)?;
    Ok(page)
}

impl ScanPage {
    /// The range that the page covers: from the start of the scan to `resume`, or from `resume` to its end.
    fn covered(&self, request: &ScanRequest) -> (Vec<u8>, Vec<u8>) {
        match &self.resume {
            None => storage_range(&request.start, &request.end),
            Some(resume) if request.reverse => storage_range(resume, &request.end),
            Some(resume) => storage_range(&request.start, resume),
        }
    }

    /// Whether the page has a pair before `key`, in the direction of the scan.
    fn has_pair_before(&self, key: &Key, reverse: bool) -> bool {
        self.pairs.first().is_some_and(|(first, _)| if reverse { first > key } else { first < key })
    }

    /// Ends the page before `key`.
    fn cut(&mut self, key: Key, reverse: bool, end: PageEnd) {
        let kept = self.pairs.partition_point(|(found, _)| if reverse { *found > key } else { *found < key });
        self.pairs.truncate(kept);
        self.resume = Some(if reverse { key.successor() } else { key });
        self.end = end;
    }
}

/// Ends `page` before the first lock that blocks it, or before a lock that `max_steps` do not reach. Fails with the
/// blocking locks if no pair is before them.
fn end_before_locks<R: Reader + ?Sized>(
    reader: &R,
    request: &ScanRequest,
    max_steps: usize,
    page: &mut ScanPage,
) -> Result<(), ActionError> {
    let (lower, upper) = page.covered(request);
    let mut locks = DirectedCursor::open(reader, Cf::Lock, (&lower, &upper), request.reverse)?;
    let limit = (request.limit as usize).max(1);
    let mut blocking = BlockingLocks::default();
    while locks.valid && blocking.len() < limit && !blocking.is_full() {
        if locks.steps == max_steps {
            if blocking.is_empty() {
                page.cut(Key::from_storage(locks.cursor.key())?, request.reverse, PageEnd::Work);
            }
            break;
        }
        let lock = LockRecord::decode(locks.cursor.value())?;
        if lock.blocks_read_at(request.start_ts) {
            let key = Key::from_storage(locks.cursor.key())?;
            if blocking.is_empty() && page.has_pair_before(&key, request.reverse) {
                page.cut(key, request.reverse, PageEnd::Lock);
                break;
            }
            blocking.push(lock.info(key));
        }
        locks.step()?;
    }
    if blocking.is_empty() { Ok(()) } else { Err(KeyError::Locked(blocking.into_locks()).into()) }
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

/// The first pass of a page: the visible versions of the range, whatever their locks.
struct VersionScan<'r, R: ?Sized> {
    reader: &'r R,
    request: &'r ScanRequest,
    writes: DirectedCursor<'r>,
    /// The key being examined, in storage form.
    current: Vec<u8>,
    pairs: Vec<(Key, Bytes)>,
    bytes: usize,
}

impl<'r, R: Reader + ?Sized> VersionScan<'r, R> {
    fn new(reader: &'r R, request: &'r ScanRequest) -> Result<VersionScan<'r, R>> {
        let (start, end) = storage_range(&request.start, &request.end);
        let writes = DirectedCursor::open(reader, Cf::Write, (&start, &end), request.reverse)?;
        Ok(VersionScan { reader, request, writes, current: Vec::new(), pairs: Vec::new(), bytes: 0 })
    }

    fn read_page(mut self, max_steps: usize) -> Result<ScanPage> {
        let end = loop {
            if self.is_full() {
                break PageEnd::Limit;
            }
            if !self.load_current()? {
                break PageEnd::Range;
            }
            if self.writes.steps >= max_steps {
                break PageEnd::Work;
            }
            self.take_version()?;
        };
        let resume = match end {
            PageEnd::Range => None,
            PageEnd::Limit => Some(self.resume_key(false)?),
            PageEnd::Lock | PageEnd::Work => Some(self.resume_key(true)?),
        };
        // Nothing is before the empty key, and as the end of a range it means "after every key".
        Ok(match resume {
            Some(resume) if resume.is_empty() => ScanPage { pairs: self.pairs, resume: None, end: PageEnd::Range },
            resume => ScanPage { pairs: self.pairs, resume, end },
        })
    }

    fn is_full(&self) -> bool {
        self.pairs.len() >= (self.request.limit as usize).max(1)
            || self.bytes >= (self.request.max_bytes as usize).max(1)
    }

    /// The resume key of a next page that includes the current key, or excludes it.
    fn resume_key(&self, include_current: bool) -> Result<Key> {
        let key = Key::from_storage(&self.current)?;
        // The bound is inclusive for a forward scan and exclusive for a reverse scan.
        Ok(if include_current == self.request.reverse { key.successor() } else { key })
    }

    /// Makes the next key that has a write record the current one. Returns false at the end of the range.
    fn load_current(&mut self) -> Result<bool> {
        if !self.writes.valid {
            return Ok(false);
        }
        let (key, _) = split_ts(self.writes.cursor.key())?;
        self.current.clear();
        self.current.extend_from_slice(key);
        Ok(true)
    }

    /// Adds the visible version of the current key to the page, and moves past the key.
    fn take_version(&mut self) -> Result<()> {
        let want_value = !self.request.keys_only;
        let Some(put) = self.writes.visible(&self.current, self.request.start_ts, want_value)? else {
            return Ok(());
        };
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

impl<'r> DirectedCursor<'r> {
    /// A cursor on the first record of the bounds, in the direction of the scan.
    fn open<R: Reader + ?Sized>(
        reader: &'r R,
        cf: Cf,
        (lower, upper): (&[u8], &[u8]),
        reverse: bool,
    ) -> Result<DirectedCursor<'r>> {
        let mut cursor = reader.cursor(cf, lower, upper)?;
        let valid = if reverse { cursor.seek_to_last()? } else { cursor.seek_to_first()? };
        Ok(DirectedCursor { cursor, reverse, valid, steps: 0 })
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

    /// The first data record from the cursor on, towards older versions. See [`Versions::seek_data`].
    ///
    /// [`Versions::seek_data`]: super::versions::Versions::seek_data
    fn first_data(&mut self, storage: &[u8], want_value: bool) -> Result<Option<VisiblePut>> {
        while self.is_on(storage) {
            let write = WriteRecord::decode(self.cursor.value())?;
            let WriteKind::Lock { last_data } = write.kind else { return Ok(visible_put(&write, want_value)) };
            let Some(last_data) = last_data else { return Ok(None) };
            self.steps += 1;
            self.valid = self.cursor.next()?;
            if self.is_on(storage) && self.commit_ts()? > last_data {
                self.seek_version(storage, last_data)?;
            }
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

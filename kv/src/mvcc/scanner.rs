//! Range reads at a snapshot timestamp, in both directions.
//!
//! A page is read in two passes. The first walks the write records and finds, at each key, the newest data record at or
//! below the timestamp. It seeks past a key with many versions instead of stepping through them. It ends at the end of
//! the range, at a limit of pairs or bytes, or at a limit of cursor movements. The second pass walks the locks of
//! exactly the keys that the first one covered, and ends the page before the first lock that blocks it.
//!
//! Every transaction leaves a deleted lock behind until compaction removes it, and a cursor walks over deleted records
//! unseen. A lock cursor that looked for the next lock of the range would walk the deleted locks of all keys behind the
//! page, on every page. Within the bounds of a page, the deleted locks of committed transactions belong to keys whose
//! commit records the first pass has walked. The locks of transactions that were rolled back may be millions between
//! two keys. So the second pass walks with limited cursors, whose limit grows while they fail (`lock_walk`): what a
//! cursor passes in vain counts as steps, and the page ends where the steps end. The whole search costs a few times the
//! deleted records in the gap, and its last attempt walks all of them at once. Write records are deleted by compactions
//! alone (`gc`), each deletion in the place of a record, so the first pass meets no such gaps. On the snapshot of a
//! kept scan it passes what was written since, uncounted, but no more than a few seconds' worth
//! ([`scan_cache`](crate::scan_cache)).
//!
//! Except at the end of the range a page names a resume key, so a caller can run a long scan in slices. A slice may
//! advance by nothing at all: its steps went into a failed search. The next slice of the same scan continues the
//! search, for the write records that this one has read. A page that has pairs ends before a blocking lock, and the
//! next page begins with it. A page that meets a blocking lock before its first pair fails with the blocking locks of
//! all keys that it covers, so that the caller resolves them together.

use std::ops::ControlFlow;

use bytes::Bytes;
use engine::Cf;
use engine::store::{Cursor, Reader, is_version_of};
use tso::Timestamp;

use super::arena::Arena;
use super::lock_walk::{LockWalk, WalkLimits};
use super::versions::{after_versions, long_value};
use super::write::{WriteKind, WriteRecord};
use crate::api::{KeyError, ScanRequest};
use crate::error::{ActionError, Result};
use crate::key::{Key, split_ts, storage_range, versioned};
use crate::size::BlockingLocks;

/// Versions of one key to step over before seeking past the rest.
const STEPS_BEFORE_SEEK: usize = 8;
/// Deleted locks that one movement of a lock cursor may pass before its limit is raised: so many, or a part of the
/// page's limit of steps if that is more. And so many for each step over the write records: an update leaves two in
/// each of three places at most.
const SKIPS_MIN: usize = 256;
const SKIPS_PART_OF_STEPS: usize = 8;
const SKIPS_PER_STEP: usize = 6;

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

/// The limits of a page. Each counts as at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageLimits {
    /// The most pairs.
    pub pairs: u32,
    /// The bytes of keys and values after which the page ends. The last pair may exceed it.
    pub bytes: u32,
    /// About the most cursor movements over the write records, and as many over the locks.
    pub steps: usize,
}

impl ScanPage {
    /// The page of a range that holds no key.
    pub const fn empty() -> ScanPage {
        ScanPage { pairs: Vec::new(), resume: None, end: PageEnd::Range }
    }

    /// Whether the page has a pair before `key`, in the direction of the scan.
    fn has_pair_before(&self, key: &Key, reverse: bool) -> bool {
        self.pairs.first().is_some_and(|(first, _)| if reverse { first > key } else { first < key })
    }

    /// Ends the page at `resume`, which bounds the next page. Returns the rest of the page.
    fn cut(&mut self, resume: Key, reverse: bool, end: PageEnd) -> ScanPage {
        let is_kept =
            |(found, _): &(Key, Bytes)| if reverse { !resume.is_empty() && *found >= resume } else { *found < resume };
        let kept = self.pairs.partition_point(is_kept);
        let rest = ScanPage { pairs: self.pairs.split_off(kept), resume: self.resume.take(), end: self.end };
        (self.resume, self.end) = (Some(resume), end);
        rest
    }
}

/// A cursor that moves in the direction of the scan and counts its movements.
struct DirectedCursor {
    cursor: Box<dyn Cursor>,
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

/// A scan of a range, page after page, on one snapshot. Every call gets the reader of that snapshot.
///
/// Invariant: unless the last page ended the range or failed, the cursor is on the first write record of the rest,
/// behind those of `unchecked`.
pub struct Scanner {
    /// The part of the range that is not read yet. The limits of the request are not used.
    rest: ScanRequest,
    /// Over the write records of the whole range. It is kept from page to page.
    writes: DirectedCursor,
    /// Over the locks of what each page covers.
    locks: LockWalk,
    /// The start of the rest, if the first pass has read it and the second has not covered it.
    unchecked: Option<ScanPage>,
    /// The key being examined, in storage form.
    current: Vec<u8>,
    /// Memory of the pairs.
    arena: Arena,
    /// Whether a page failed. The cursor may be anywhere then.
    failed: bool,
}

impl Scanner {
    /// A scan at the start of the range, which must not be empty. The limits of the request have no effect.
    ///
    /// # Errors
    ///
    /// [`MvccError`](crate::error::MvccError) if the store fails.
    pub fn open<R: Reader + ?Sized>(reader: &R, request: &ScanRequest) -> Result<Scanner> {
        let (start, end) = storage_range(&request.start, &request.end);
        let writes = DirectedCursor::open(reader, Cf::Write, (&start, &end), request.reverse)?;
        let locks = LockWalk::new(request.reverse);
        let (current, arena) = (Vec::new(), Arena::default());
        Ok(Scanner { rest: request.clone(), writes, locks, unchecked: None, current, arena, failed: false })
    }

    /// The part of the range that is not read yet.
    pub fn rest(&self) -> &ScanRequest {
        &self.rest
    }

    /// Whether part of the range is read of a scan that had this `rest` before.
    pub fn has_advanced_from(&self, rest: &ScanRequest) -> bool {
        (&self.rest.start, &self.rest.end) != (&rest.start, &rest.end)
    }

    /// Forgets the pairs that are read but not returned. The next page reads them again. To be called before a pause,
    /// so that the scan takes no memory.
    ///
    /// # Errors
    ///
    /// [`MvccError`](crate::error::MvccError) if the store fails.
    pub fn forget_unchecked(&mut self) -> Result<()> {
        self.arena.clear();
        if self.unchecked.take().is_none() {
            return Ok(());
        }
        let bound = if self.rest.reverse { &self.rest.end } else { &self.rest.start };
        self.writes.valid = match (self.rest.reverse, bound.is_empty()) {
            (true, true) => self.writes.cursor.seek_to_last()?,
            // No version equals the bare storage key.
            (true, false) => self.writes.cursor.seek_for_prev(&bound.to_storage())?,
            (false, _) => self.writes.cursor.seek(&bound.to_storage())?,
        };
        Ok(())
    }

    /// Reads the next page, which may advance by nothing if it ends at the limit of steps. After a page that ended at
    /// the limit of steps or before a lock, the limits of pairs and bytes must not be below what that page left of its
    /// own: the next one returns what is read already.
    ///
    /// # Errors
    ///
    /// [`KeyError::Locked`] if a lock blocks the first pair; [`ActionError::Mvcc`] if the store fails or its data is
    /// corrupt. The scan cannot go on after an error; another call panics.
    pub fn next_page<R: Reader + ?Sized>(&mut self, reader: &R, limits: PageLimits) -> Result<ScanPage, ActionError> {
        assert!(!self.failed, "a scan ends with its first error");
        let limits = PageLimits { pairs: limits.pairs.max(1), bytes: limits.bytes.max(1), steps: limits.steps.max(1) };
        if self.rest.is_empty() {
            return Ok(ScanPage::empty());
        }
        self.failed = true;
        let mut page = match self.unchecked.take() {
            Some(page) => page,
            None => self.read_versions(reader, limits)?,
        };
        self.end_before_locks(reader, limits, &mut page)?;
        self.failed = false;
        if let Some(resume) = &page.resume {
            let bound = if self.rest.reverse { &mut self.rest.end } else { &mut self.rest.start };
            *bound = resume.clone();
        }
        Ok(page)
    }

    /// The first pass: the visible versions of the rest, whatever their locks, up to the limits.
    fn read_versions<R: Reader + ?Sized>(&mut self, reader: &R, limits: PageLimits) -> Result<ScanPage> {
        self.writes.steps = 0;
        let (mut pairs, mut bytes) = (Vec::new(), 0);
        let end = loop {
            if pairs.len() >= limits.pairs as usize || bytes >= limits.bytes as usize {
                break PageEnd::Limit;
            }
            if !self.load_current()? {
                break PageEnd::Range;
            }
            if self.writes.steps >= limits.steps {
                break PageEnd::Work;
            }
            if let Some((key, value)) = self.take_version(reader)? {
                bytes += key.as_bytes().len() + value.len();
                pairs.push((key, value));
            }
        };
        let resume = match end {
            PageEnd::Range => None,
            PageEnd::Limit => Some(self.resume_key(false)?),
            PageEnd::Lock | PageEnd::Work => Some(self.resume_key(true)?),
        };
        // Nothing is before the empty key, and as the end of a range it means "after every key".
        Ok(match resume {
            Some(resume) if resume.is_empty() => ScanPage { pairs, resume: None, end: PageEnd::Range },
            resume => ScanPage { pairs, resume, end },
        })
    }

    /// The second pass. Ends `page` before the first lock that blocks it, or where the steps end. Fails with the
    /// blocking locks if no pair is before them.
    fn end_before_locks<R: Reader + ?Sized>(
        &mut self,
        reader: &R,
        limits: PageLimits,
        page: &mut ScanPage,
    ) -> Result<(), ActionError> {
        let (reverse, start_ts) = (self.rest.reverse, self.rest.start_ts);
        let range = match &page.resume {
            None => (&self.rest.start, &self.rest.end),
            Some(resume) if reverse => (resume, &self.rest.end),
            Some(resume) => (&self.rest.start, resume),
        };
        let skips = SKIPS_MIN.max(limits.steps / SKIPS_PART_OF_STEPS) + SKIPS_PER_STEP * self.writes.steps;
        let (mut blocking, mut cut) = (BlockingLocks::default(), None);
        let walk_limits = WalkLimits { skips, steps: limits.steps };
        let unread = self.locks.walk(reader, range, walk_limits, |key, lock| {
            let Some(lock) = lock.filter(|lock| lock.blocks_read_at(start_ts, &self.rest.pass)) else {
                return ControlFlow::Continue(());
            };
            if blocking.is_empty() && page.has_pair_before(&key, reverse) {
                cut = Some(key);
                return ControlFlow::Break(());
            }
            blocking.push(lock.info(key));
            let is_enough = blocking.len() >= limits.pairs as usize || blocking.is_full();
            if is_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        if !blocking.is_empty() {
            return Err(KeyError::Locked(blocking.into_locks()).into());
        }
        self.unchecked = match (cut, unread) {
            (Some(key), _) => Some(page.cut(if reverse { key.successor() } else { key }, reverse, PageEnd::Lock)),
            (None, Some(unread)) => Some(page.cut(unread, reverse, PageEnd::Work)),
            (None, None) => None,
        };
        Ok(())
    }

    /// The resume key of a next page that includes the current key, or excludes it.
    fn resume_key(&self, include_current: bool) -> Result<Key> {
        let key = Key::from_storage(&self.current)?;
        // The bound is inclusive for a forward scan and exclusive for a reverse scan.
        Ok(if include_current == self.rest.reverse { key.successor() } else { key })
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

    /// The pair of the current key, if the key is visible. Moves past the key.
    fn take_version<R: Reader + ?Sized>(&mut self, reader: &R) -> Result<Option<(Key, Bytes)>> {
        let keys_only = self.rest.keys_only;
        let arena = (!keys_only).then_some(&mut self.arena);
        let Some(put) = self.writes.visible(&self.current, self.rest.start_ts, arena)? else { return Ok(None) };
        let value = match put.short_value {
            _ if keys_only => Bytes::new(),
            Some(short) => short,
            None => long_value(reader, &self.current, put.start_ts)?,
        };
        Ok(Some((self.arena.key(&self.current)?, value)))
    }
}

impl DirectedCursor {
    /// A cursor on the first record of the bounds, in the direction of the scan.
    fn open<R: Reader + ?Sized>(
        reader: &R,
        cf: Cf,
        (lower, upper): (&[u8], &[u8]),
        reverse: bool,
    ) -> Result<DirectedCursor> {
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
    fn visible(&mut self, storage: &[u8], ts: Timestamp, arena: Option<&mut Arena>) -> Result<Option<VisiblePut>> {
        let visible = if self.reverse {
            self.visible_from_oldest(storage, ts, arena)?
        } else {
            self.visible_from_newest(storage, ts, arena)?
        };
        self.skip_key(storage)?;
        Ok(visible)
    }

    /// Starts on the newest version: skips those above `ts`, then finds the first data record.
    fn visible_from_newest(
        &mut self,
        storage: &[u8],
        ts: Timestamp,
        arena: Option<&mut Arena>,
    ) -> Result<Option<VisiblePut>> {
        let mut passed = 0;
        while self.is_on(storage) && self.commit_ts()? > ts {
            if passed == STEPS_BEFORE_SEEK {
                self.seek_version(storage, ts)?;
                break;
            }
            passed += 1;
            self.step()?;
        }
        self.first_data(storage, arena)
    }

    /// Starts on the oldest version: finds the last data record at or below `ts`. If there are many versions, seeks to
    /// `ts` and searches from there instead.
    fn visible_from_oldest(
        &mut self,
        storage: &[u8],
        ts: Timestamp,
        mut arena: Option<&mut Arena>,
    ) -> Result<Option<VisiblePut>> {
        let mut visible = None;
        let mut passed = 0;
        while self.is_on(storage) && self.commit_ts()? <= ts {
            if passed == STEPS_BEFORE_SEEK {
                self.seek_version(storage, ts)?;
                let visible = self.first_data(storage, arena);
                // The search may have ended anywhere; the scan continues with the key before this one.
                self.steps += 1;
                self.valid = self.cursor.seek_for_prev(storage)?;
                return visible;
            }
            passed += 1;
            let write = WriteRecord::decode(self.cursor.value())?;
            if write.kind.is_data() {
                visible = visible_put(&write, arena.as_deref_mut());
            }
            self.step()?;
        }
        Ok(visible)
    }

    /// The first data record from the cursor on, towards older versions. See [`Versions::seek_data`].
    ///
    /// [`Versions::seek_data`]: super::versions::Versions::seek_data
    fn first_data(&mut self, storage: &[u8], arena: Option<&mut Arena>) -> Result<Option<VisiblePut>> {
        while self.is_on(storage) {
            let write = WriteRecord::decode(self.cursor.value())?;
            let WriteKind::Lock { last_data } = write.kind else { return Ok(visible_put(&write, arena)) };
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

/// The put of a data record, with its value if there is an arena for it; `None` for a delete.
fn visible_put(write: &WriteRecord<'_>, arena: Option<&mut Arena>) -> Option<VisiblePut> {
    let short_value = arena.zip(write.short_value).map(|(arena, value)| arena.copy(value));
    (write.kind == WriteKind::Put).then_some(VisiblePut { start_ts: write.start_ts, short_value })
}

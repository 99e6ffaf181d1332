//! The locks of a range, walked with bounded work.
//!
//! Every transaction leaves a deleted lock behind for each of its keys until compaction removes it, and a cursor passes
//! deleted records unseen. Millions of them may be between two keys, for example of inserts that were rolled back. So
//! each cursor here is limited: it gives up after a number of records. Where it was then is not known. The walk divides
//! the range and tries again, until a part is small enough, and goes on behind that part. The bounds that it has found
//! on the way are kept for the parts after it, also from page to page. So each part takes a few attempts, at most about
//! nine for each byte of its first key, and the work is proportional to the records in the range.

use std::ops::ControlFlow;

use engine::Cf;
use engine::store::{Cursor, Reader, StoreError};

use super::lock::LockRecord;
use crate::error::Result;
use crate::key::{Key, storage_range};

/// The limits of one walk.
#[derive(Clone, Copy, Debug)]
pub(super) struct WalkLimits {
    /// The most deleted records that one movement of a cursor passes.
    pub(super) skips: usize,
    /// The steps after which the walk ends. A lock counts as one, a part of the range as `skips`.
    pub(super) steps: usize,
}

/// Walks over the locks of a range, one after the other, in one direction.
///
/// Invariant: `bounds` are strictly ordered, the nearest last.
pub(super) struct LockWalk {
    reverse: bool,
    /// Keys at which parts of the range end, found by earlier attempts. They save attempts and decide nothing else.
    bounds: Vec<Key>,
}

/// How the walk over a part ended.
enum PartEnd {
    /// All its locks are visited.
    Done,
    /// The visitor stopped it.
    Stopped,
    /// The steps are used up. The locks before the key are visited.
    OutOfSteps(Key),
    /// The cursor gave up. The locks before the key are visited.
    GaveUp(Key),
}

impl LockWalk {
    /// A walk in this direction.
    pub(super) fn new(reverse: bool) -> LockWalk {
        LockWalk { reverse, bounds: Vec::new() }
    }

    /// Visits the locks of `[start, end)` in the direction of the walk; an empty `end` means "after every key". Returns
    /// `None` when all are visited or the visitor breaks. Otherwise the steps are used up: the locks before the
    /// returned key are visited, in reverse those at or above it. That may be none.
    ///
    /// # Errors
    ///
    /// [`MvccError`](crate::error::MvccError) if the store fails or its data is corrupt.
    pub(super) fn walk<R: Reader + ?Sized>(
        &mut self,
        reader: &R,
        (start, end): (&Key, &Key),
        limits: WalkLimits,
        mut visit: impl FnMut(Key, &LockRecord) -> ControlFlow<()>,
    ) -> Result<Option<Key>> {
        let (mut at, far) = if self.reverse { (end.clone(), start) } else { (start.clone(), end) };
        let mut steps = 0;
        loop {
            let to = self.next_bound(&at, far);
            let cursor = self.open(reader, &at, &to, limits.skips)?;
            match self.walk_part(cursor, &at, limits.steps, &mut steps, &mut visit)? {
                PartEnd::Done if to == *far => return Ok(None),
                PartEnd::Done => {
                    // How much of its limit the cursor used is not known.
                    steps += limits.skips;
                    at = to;
                }
                PartEnd::Stopped => return Ok(None),
                PartEnd::OutOfSteps(position) => return Ok(Some(position)),
                PartEnd::GaveUp(position) => {
                    steps += limits.skips;
                    self.bounds.extend(if self.reverse { middle(&to, &position) } else { middle(&position, &to) });
                    at = position;
                }
            }
            if steps >= limits.steps {
                return Ok(Some(at));
            }
        }
    }

    /// The end of the part at `at`: the nearest known bound, or `far` if that is nearer. Forgets the bounds before it.
    fn next_bound(&mut self, at: &Key, far: &Key) -> Key {
        let reverse = self.reverse;
        while self
            .bounds
            .pop_if(|bound| if reverse { !at.is_empty() && *bound >= *at } else { *bound <= *at })
            .is_some()
        {}
        let is_nearer = |bound: &&Key| if reverse { **bound > *far } else { far.is_empty() || **bound < *far };
        self.bounds.last().filter(is_nearer).unwrap_or(far).clone()
    }

    /// A cursor over the locks from `at` to `to`. One for a single key has no limit: that part cannot be divided, and
    /// RocksDB passes the records of one key by seeking.
    fn open<R: Reader + ?Sized>(&self, reader: &R, at: &Key, to: &Key, skips: usize) -> Result<Box<dyn Cursor>> {
        let (start, end) = if self.reverse { (to, at) } else { (at, to) };
        let (lower, upper) = storage_range(start, end);
        Ok(if start.successor() == *end {
            reader.cursor(Cf::Lock, &lower, &upper)?
        } else {
            reader.limited_cursor(Cf::Lock, &lower, &upper, skips)?
        })
    }

    /// Visits the locks of `cursor`, whose range begins at `at`.
    fn walk_part(
        &self,
        mut cursor: Box<dyn Cursor>,
        at: &Key,
        steps_max: usize,
        steps: &mut usize,
        visit: &mut impl FnMut(Key, &LockRecord) -> ControlFlow<()>,
    ) -> Result<PartEnd> {
        let mut position = at.clone();
        let mut moved = if self.reverse { cursor.seek_to_last() } else { cursor.seek_to_first() };
        loop {
            match moved {
                Ok(true) => {}
                Ok(false) => return Ok(PartEnd::Done),
                Err(StoreError::GaveUp) => return Ok(PartEnd::GaveUp(position)),
                Err(error) => return Err(error.into()),
            }
            if *steps >= steps_max {
                return Ok(PartEnd::OutOfSteps(position));
            }
            *steps += 1;
            let key = Key::from_storage(cursor.key())?;
            position = if self.reverse { key.clone() } else { key.successor() };
            if visit(key, &LockRecord::decode(cursor.value())?).is_break() {
                return Ok(PartEnd::Stopped);
            }
            moved = if self.reverse { cursor.prev() } else { cursor.next() };
        }
    }
}

/// A key strictly between `start` and `end`, as short as possible, in the middle of the first byte in which they
/// differ; `None` if there is none. An empty `end` means "after every key".
///
/// From a failed attempt to the next, the range of that byte halves or the byte is a later one. So about nine attempts
/// for each byte of `start` reduce the range to a single key.
fn middle(start: &Key, end: &Key) -> Option<Key> {
    const AFTER_ALL: u16 = 257;
    // The end of a key sorts before every byte.
    let digit = |bytes: &[u8], at: usize| bytes.get(at).map_or(0, |byte| u16::from(*byte) + 1);
    let (low, high) = (start.as_bytes(), end.as_bytes());
    let mut at = low.iter().zip(high).take_while(|(a, b)| a == b).count();
    let mut limit = if end.is_empty() { AFTER_ALL } else { digit(high, at) };
    let mut below_end = !end.is_empty();
    loop {
        let first = digit(low, at);
        if limit > first + 1 {
            let mut bytes = low[..at].to_vec();
            bytes.push(((first + limit) / 2 - 1) as u8);
            return Some(Key::new(bytes));
        }
        if below_end && high.len() > at + 1 {
            return Some(Key::new(high[..=at].to_vec()));
        }
        if first == 0 {
            return None;
        }
        // All keys of the range begin with these bytes of `start`.
        (at, limit, below_end) = (at + 1, AFTER_ALL, false);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use engine::store::Result as StoreResult;
    use proptest::prelude::*;
    use tso::Timestamp;

    use super::super::lock::LockKind;
    use super::*;

    /// A reader of locks that keeps deleted ones (`false`) and counts the records that its cursors pass.
    #[derive(Clone)]
    struct Graveyard {
        rows: Arc<BTreeMap<Vec<u8>, bool>>,
        lock: Vec<u8>,
    }

    struct GraveyardCursor {
        graveyard: Graveyard,
        /// What is not passed yet.
        rest: Vec<Vec<u8>>,
        skips: usize,
        key: Vec<u8>,
    }

    impl Graveyard {
        fn new(rows: impl IntoIterator<Item = (Key, bool)>) -> Graveyard {
            let lock = LockRecord {
                kind: LockKind::Delete,
                primary: Key::default(),
                start_ts: Timestamp::new(1, 0),
                ttl_ms: 1,
                min_commit_ts: Timestamp::new(2, 0),
                short_value: None,
            };
            let rows = rows.into_iter().map(|(key, is_alive)| (key.to_storage(), is_alive)).collect();
            Graveyard { rows: Arc::new(rows), lock: lock.encode() }
        }
    }

    impl Reader for Graveyard {
        fn get(&self, _: Cf, _: &[u8]) -> StoreResult<Option<Vec<u8>>> {
            unreachable!("a walk gets nothing")
        }

        fn cursor(&self, cf: Cf, lower: &[u8], upper: &[u8]) -> StoreResult<Box<dyn Cursor>> {
            self.limited_cursor(cf, lower, upper, usize::MAX)
        }

        fn limited_cursor(&self, _: Cf, lower: &[u8], upper: &[u8], skips: usize) -> StoreResult<Box<dyn Cursor>> {
            let keys = self.rows.range(lower.to_vec()..).map(|(key, _)| key.clone());
            let rest = keys.take_while(|key| upper.is_empty() || key.as_slice() < upper).collect();
            Ok(Box::new(GraveyardCursor { graveyard: self.clone(), rest, skips, key: Vec::new() }))
        }
    }

    impl GraveyardCursor {
        fn go(&mut self, take: impl Fn(&mut Vec<Vec<u8>>) -> Option<Vec<u8>>) -> StoreResult<bool> {
            let mut skipped = 0;
            while let Some(key) = take(&mut self.rest) {
                if self.graveyard.rows[&key] {
                    self.key = key;
                    return Ok(true);
                }
                skipped += 1;
                if skipped > self.skips {
                    return Err(StoreError::GaveUp);
                }
            }
            Ok(false)
        }
    }

    impl Cursor for GraveyardCursor {
        fn seek(&mut self, _: &[u8]) -> StoreResult<bool> {
            unreachable!("a walk steps")
        }

        fn seek_for_prev(&mut self, _: &[u8]) -> StoreResult<bool> {
            unreachable!("a walk steps")
        }

        fn seek_to_first(&mut self) -> StoreResult<bool> {
            self.next()
        }

        fn seek_to_last(&mut self) -> StoreResult<bool> {
            self.prev()
        }

        fn next(&mut self) -> StoreResult<bool> {
            self.go(|rest| (!rest.is_empty()).then(|| rest.remove(0)))
        }

        fn prev(&mut self) -> StoreResult<bool> {
            self.go(Vec::pop)
        }

        fn key(&self) -> &[u8] {
            &self.key
        }

        fn value(&self) -> &[u8] {
            &self.graveyard.lock
        }
    }

    /// Walks a range in calls of few steps. Returns the keys in the order of the visits, and the number of calls.
    fn walk_all(
        graveyard: &Graveyard,
        (start, end): (&Key, &Key),
        reverse: bool,
        limits: WalkLimits,
    ) -> (Vec<Key>, usize) {
        let (mut start, mut end, mut found) = (start.clone(), end.clone(), Vec::new());
        let mut walk = LockWalk::new(reverse);
        for calls in 1..100_000 {
            let resume = walk
                .walk(graveyard, (&start, &end), limits, |key, _| {
                    found.push(key);
                    ControlFlow::Continue(())
                })
                .unwrap();
            match resume {
                None => return (found, calls),
                Some(resume) if reverse => end = resume,
                Some(resume) => start = resume,
            }
        }
        panic!("the walk does not end");
    }

    fn keys() -> impl Strategy<Value = Key> {
        let text = prop_oneof!["[a-c]{0,4}", "row0000[0-9]{3}"].prop_map(String::into_bytes);
        let bytes = prop::collection::vec(prop_oneof![Just(0), Just(1), Just(0xff)], 0..4);
        prop_oneof![text, bytes].prop_map(Key::new)
    }

    proptest! {
        #[test]
        fn every_lock_is_visited_once_and_in_order(
            rows in prop::collection::btree_map(keys(), prop::bool::weighted(0.2), 0..60),
            (start, end) in (keys(), keys()),
            (skips, steps, reverse) in (1..4usize, 1..20usize, any::<bool>()),
        ) {
            let graveyard = Graveyard::new(rows.clone());
            let (found, _) = walk_all(&graveyard, (&start, &end), reverse, WalkLimits { skips, steps });
            let is_inside = |key: &Key| *key >= start && (end.is_empty() || *key < end);
            let mut expected: Vec<Key> =
                rows.into_iter().filter(|(key, is_alive)| *is_alive && is_inside(key)).map(|(key, _)| key).collect();
            if reverse {
                expected.reverse();
            }
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn the_middle_is_between((low, high) in (keys(), keys())) {
            let (low, high) = if low <= high || high.is_empty() { (low, high) } else { (high, low) };
            match middle(&low, &high) {
                Some(middle) => prop_assert!(middle > low && (high.is_empty() || middle < high), "{middle:?}"),
                None => prop_assert!(low == high || low.successor() == high),
            }
        }
    }

    /// The work of a walk grows with the number of deleted locks, not faster, also if all of them are in one place.
    #[test]
    fn a_walk_takes_work_in_proportion_to_the_deleted_locks() {
        let limits = WalkLimits { skips: 16, steps: 64 };
        for count in [500, 1_000, 2_000] {
            let rows = (0..count).map(|n| (Key::new(format!("table/row{n:08}")), false));
            let last = (Key::new("table/rows"), true);
            let graveyard = Graveyard::new(rows.chain([last.clone()]));
            for reverse in [false, true] {
                let all = Key::default();
                let (found, calls) = walk_all(&graveyard, (&all, &all), reverse, limits);
                assert_eq!(found, std::slice::from_ref(&last.0));
                // A call has four attempts. Some hundred look for the place, and about a quarter of the rest succeeds.
                assert!(calls <= 60 + count / 6, "{count} deleted locks: {calls} calls");
            }
        }
    }
}

//! The locks of a range, walked in slices.
//!
//! Every transaction leaves a deleted lock behind for each of its keys until compaction removes it, and a cursor passes
//! deleted records unseen. Millions of them may be between two locks, for example of inserts that were rolled back. So
//! each cursor here is limited: it gives up after a number of records. Where it was then is not known. The next attempt
//! begins at the same position with [`GROWTH`] times the limit, until it reaches a lock or the end of the range. The
//! attempts are a geometric series, so a gap costs less than `(2 * GROWTH - 1) / (GROWTH - 1)` times the deleted
//! records in it and a logarithmic number of attempts, whatever the keys are. A million deleted locks are two million
//! records: at most 4.7 million in eight attempts. The last attempt alone walks the whole gap, and nothing bounds it: a
//! gap that takes longer than a request may waits for compaction, which deletions trigger.
//!
//! A walk ends where its steps are used up, and only its first attempt may exceed them. The next walk goes on with the
//! limit that this one has reached. So a caller can yield between two attempts.

use std::ops::ControlFlow;

use engine::Cf;
use engine::store::{Cursor, Reader, StoreError};

use super::lock::LockRecord;
use super::shared::LockRow;
use crate::error::Result;
use crate::key::{Key, storage_range};

/// The limit of an attempt, relative to that of the failed one before it from the same position.
const GROWTH: usize = 4;

/// The limits of one walk.
#[derive(Clone, Copy, Debug)]
pub(super) struct WalkLimits {
    /// The most deleted records that one movement of a cursor passes, unless earlier attempts have raised it.
    pub(super) skips: usize,
    /// The steps after which the walk ends. A lock counts as one, an attempt that failed or had a raised limit as its
    /// limit.
    pub(super) steps: usize,
}

/// Walks over the locks of a range, one after the other, in one direction.
pub(super) struct LockWalk {
    reverse: bool,
    /// Whether keys are visited too that have shared locks alone. Only forward.
    with_shared: bool,
    /// The limit of the next attempt, which begins where the last walk ended. 0 if no attempt from there has failed.
    raised: usize,
}

/// How an attempt ended.
enum AttemptEnd {
    /// All locks are visited, or the visitor stopped it.
    Done,
    /// The steps are used up. The locks before the key are visited.
    OutOfSteps(Key),
    /// The raised limit has served: one lock is visited, the one before the key.
    Reached(Key),
    /// The cursor gave up. The locks before the key are visited.
    GaveUp(Key),
}

impl LockWalk {
    /// A walk in this direction.
    pub(super) fn new(reverse: bool) -> LockWalk {
        LockWalk { reverse, with_shared: false, raised: 0 }
    }

    /// A walk that also visits keys that have no lock of their own, but shared ones. The visitor looks them up.
    pub(super) fn with_shared() -> LockWalk {
        LockWalk { reverse: false, with_shared: true, raised: 0 }
    }

    /// Whether the next attempt may pass more records than the limits of its walk say.
    pub(super) fn is_raised(&self) -> bool {
        self.raised > 0
    }

    /// Visits the locks of `[start, end)` in the direction of the walk; an empty `end` means "after every key". A key
    /// is visited once, without a lock if it has shared ones alone ([`LockWalk::with_shared`]). Returns
    /// `None` when all are visited or the visitor breaks. Otherwise the steps are used up: the locks before the
    /// returned key are visited, in reverse those at or above it. That may be none. The next call must begin there.
    ///
    /// # Errors
    ///
    /// [`MvccError`](crate::error::MvccError) if the store fails or its data is corrupt.
    pub(super) fn walk<R: Reader + ?Sized>(
        &mut self,
        reader: &R,
        (start, end): (&Key, &Key),
        limits: WalkLimits,
        mut visit: impl FnMut(Key, Option<&LockRecord>) -> ControlFlow<()>,
    ) -> Result<Option<Key>> {
        let mut at = if self.reverse { end } else { start }.clone();
        let mut steps = 0;
        loop {
            let (lower, upper) = if self.reverse { storage_range(start, &at) } else { storage_range(&at, end) };
            let skips = limits.skips.max(self.raised);
            let cursor = reader.limited_cursor(Cf::Lock, &lower, &upper, skips)?;
            let end_of_attempt = self.attempt(cursor, &at, limits.steps, &mut steps, &mut visit)?;
            self.raised = 0;
            match end_of_attempt {
                AttemptEnd::Done => return Ok(None),
                AttemptEnd::OutOfSteps(position) => return Ok(Some(position)),
                AttemptEnd::Reached(position) => {
                    // Nothing is before the empty key, and as the end of a range it means "after every key".
                    if self.reverse && position.is_empty() {
                        return Ok(None);
                    }
                    // How much of its limit the cursor used is not known.
                    steps = steps.saturating_add(skips);
                    at = position;
                    if steps >= limits.steps {
                        return Ok(Some(at));
                    }
                }
                AttemptEnd::GaveUp(position) => {
                    steps = steps.saturating_add(skips);
                    self.raised = skips.saturating_mul(GROWTH);
                    at = position;
                    if steps.saturating_add(self.raised) > limits.steps {
                        return Ok(Some(at));
                    }
                }
            }
        }
    }

    /// Visits the locks of `cursor`, whose range begins at `at`; with a raised limit only the first one.
    fn attempt(
        &self,
        mut cursor: Box<dyn Cursor>,
        at: &Key,
        steps_max: usize,
        steps: &mut usize,
        visit: &mut impl FnMut(Key, Option<&LockRecord>) -> ControlFlow<()>,
    ) -> Result<AttemptEnd> {
        let mut position = at.clone();
        let mut moved = if self.reverse { cursor.seek_to_last() } else { cursor.seek_to_first() };
        loop {
            match moved {
                Ok(true) => {}
                Ok(false) => return Ok(AttemptEnd::Done),
                Err(StoreError::GaveUp) => return Ok(AttemptEnd::GaveUp(position)),
                Err(error) => return Err(error.into()),
            }
            if *steps >= steps_max {
                return Ok(AttemptEnd::OutOfSteps(position));
            }
            let visited = match LockRow::of(cursor.key())? {
                LockRow::Lock(storage) => {
                    Some((Key::from_storage(storage)?, Some(LockRecord::decode(cursor.value())?)))
                }
                // It follows the lock of its key. Whoever visits that sees the shared ones too.
                LockRow::Counter(storage) if self.with_shared => {
                    Some((Key::from_storage(storage)?, None)).filter(|(key, _)| *key >= position)
                }
                // Nobody who reads minds shared locks. They are few: those of transactions that are committing.
                LockRow::Counter(_) | LockRow::Shared(..) => None,
            };
            let Some((key, lock)) = visited else {
                moved = if self.reverse { cursor.prev() } else { cursor.next() };
                continue;
            };
            *steps += 1;
            position = if self.reverse { key.clone() } else { key.successor() };
            if visit(key, lock.as_ref()).is_break() {
                return Ok(AttemptEnd::Done);
            }
            if self.is_raised() {
                return Ok(AttemptEnd::Reached(position));
            }
            moved = if self.reverse { cursor.prev() } else { cursor.next() };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, VecDeque};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

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
        passed: Arc<AtomicUsize>,
    }

    struct GraveyardCursor {
        graveyard: Graveyard,
        /// What is not passed yet.
        rest: VecDeque<Vec<u8>>,
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
                async_secondaries: None,
            };
            let rows = rows.into_iter().map(|(key, is_alive)| (key.to_storage(), is_alive)).collect();
            Graveyard { rows: Arc::new(rows), lock: lock.encode(), passed: Arc::default() }
        }
    }

    impl Reader for Graveyard {
        fn get(&self, _: Cf, _: &[u8]) -> StoreResult<Option<Vec<u8>>> {
            unreachable!("a walk gets nothing")
        }

        fn cursor(&self, _: Cf, _: &[u8], _: &[u8]) -> StoreResult<Box<dyn Cursor>> {
            unreachable!("the cursors of a walk are limited")
        }

        fn limited_cursor(&self, _: Cf, lower: &[u8], upper: &[u8], skips: usize) -> StoreResult<Box<dyn Cursor>> {
            let keys = self.rows.range(lower.to_vec()..).map(|(key, _)| key.clone());
            let rest = keys.take_while(|key| upper.is_empty() || key.as_slice() < upper).collect();
            Ok(Box::new(GraveyardCursor { graveyard: self.clone(), rest, skips, key: Vec::new() }))
        }
    }

    impl GraveyardCursor {
        fn go(&mut self, take: impl Fn(&mut VecDeque<Vec<u8>>) -> Option<Vec<u8>>) -> StoreResult<bool> {
            let mut skipped = 0;
            while let Some(key) = take(&mut self.rest) {
                self.graveyard.passed.fetch_add(1, Ordering::Relaxed);
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
            self.go(VecDeque::pop_front)
        }

        fn prev(&mut self) -> StoreResult<bool> {
            self.go(VecDeque::pop_back)
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
    }

    /// A gap costs what is in it, however long the common prefix of its keys is.
    #[test]
    fn a_walk_takes_work_in_proportion_to_the_deleted_locks() {
        let limits = WalkLimits { skips: 16, steps: 64 };
        for (count, prefix_len) in [(500, 5), (10_000, 5), (10_000, 63), (10_000, 900), (10_000, 1_500)] {
            let prefix = "p".repeat(prefix_len);
            let rows = (0..count).map(|n| (Key::new(format!("{prefix}{n:08}")), false));
            let ends = [Key::new("a"), Key::new("z")];
            let graveyard = Graveyard::new(rows.chain(ends.clone().map(|key| (key, true))));
            for reverse in [false, true] {
                graveyard.passed.store(0, Ordering::Relaxed);
                let (mut found, calls) = walk_all(&graveyard, (&Key::default(), &Key::default()), reverse, limits);
                found.sort_unstable();
                assert_eq!(found, ends);
                let what = format!("{count} deleted locks behind {prefix_len} bytes, reverse {reverse}");
                let passed = graveyard.passed.load(Ordering::Relaxed);
                assert!(passed >= count && passed <= 7 * count / 3 + 16, "{what}: {passed} passed");
                // A call has one attempt here, and the last one finds nothing more.
                let attempts = (count / limits.skips).ilog(GROWTH) as usize + 3;
                assert!(calls <= attempts, "{what}: {calls} calls");
            }
        }
    }

    /// A raised limit serves for one gap. The next one begins with the ordinary limit, so that each slice is short.
    #[test]
    fn a_limit_is_raised_for_one_gap() {
        let limits = WalkLimits { skips: 16, steps: 64 };
        let gap = |at: char| (0..1_000).map(move |n| (Key::new(format!("{at}{n:08}")), false));
        let live = |at: &'static str| [(Key::new(at), true)];
        let graveyard = Graveyard::new(gap('b').chain(live("c")).chain(gap('d')).chain(live("e")));
        let mut walk = LockWalk::new(false);
        let (mut start, mut raised, mut found) = (Key::default(), Vec::new(), Vec::new());
        while let Some(resume) = walk
            .walk(&graveyard, (&start, &Key::default()), limits, |key, _| {
                found.push(key);
                ControlFlow::Continue(())
            })
            .unwrap()
        {
            raised.push(walk.raised);
            start = resume;
        }
        assert_eq!(found, [Key::new("c"), Key::new("e")]);
        assert_eq!(raised, [64, 256, 1_024, 0, 64, 256, 1_024, 0]);
    }
}

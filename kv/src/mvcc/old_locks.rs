//! The locks of old transactions in a range, shared ones too, collected in slices.

use std::ops::ControlFlow;

use engine::store::Reader;

use super::lock_walk::{LockWalk, WalkLimits};
use super::shared::shared_locks;
use crate::api::{LockInfo, OldLocksRequest};
use crate::error::Result;
use crate::key::Key;
use crate::size::BlockingLocks;

/// The deleted records that one movement passes at first.
const SKIPS: usize = 1_024;
/// The most shared locks of one key in a page. Whoever needs all resolves them and asks for the same page again.
const SHARED_MAX: usize = 256;

/// A page of locks under way.
pub struct OldLocks {
    request: OldLocksRequest,
    walk: LockWalk,
    found: BlockingLocks,
    /// Where the next slice begins. `None`: nothing is left.
    at: Option<Key>,
}

impl OldLocks {
    /// The page of `request`.
    pub fn new(request: OldLocksRequest) -> OldLocks {
        let at = Some(request.start.clone());
        OldLocks { request, walk: LockWalk::with_shared(), found: BlockingLocks::default(), at }
    }

    /// Takes about so many steps. Returns whether the page has ended: because it is full, or at the end of the range.
    ///
    /// # Errors
    ///
    /// [`MvccError`](crate::error::MvccError) if the store fails or its data is corrupt.
    pub fn advance<R: Reader + ?Sized>(&mut self, reader: &R, steps: usize) -> Result<bool> {
        let Some(at) = self.at.take() else { return Ok(true) };
        let limits = WalkLimits { skips: SKIPS.min(steps.max(1)), steps: steps.max(1) };
        let (found, max_ts, mut full_at, mut failed) = (&mut self.found, self.request.max_ts, None, Ok(()));
        let stopped = self.walk.walk(reader, (&at, &self.request.end), limits, |key, lock| {
            if found.is_full() {
                full_at = Some(key);
                return ControlFlow::Break(());
            }
            if let Some(lock) = lock.filter(|lock| lock.start_ts <= max_ts) {
                found.push(lock.info(key.clone()));
            }
            match shared_locks(reader, &key.to_storage(), SHARED_MAX, |lock| lock.start_ts <= max_ts) {
                Ok(shared) => shared.into_iter().for_each(|lock| found.push(lock.info(key.clone()))),
                Err(error) => {
                    failed = Err(error);
                    return ControlFlow::Break(());
                }
            }
            ControlFlow::Continue(())
        })?;
        failed?;
        let is_full = full_at.is_some();
        self.at = full_at.or(stopped);
        Ok(is_full || self.at.is_none())
    }

    /// The locks that were found, and where the next page begins.
    pub fn into_page(self) -> (Vec<LockInfo>, Option<Key>) {
        (self.found.into_locks(), self.at)
    }
}

#[cfg(test)]
mod tests {
    use engine::store::Store;
    use engine::store::memory::MemoryStore;
    use engine::{Cf, WriteBatch};
    use tso::Timestamp;

    use super::*;
    use crate::api::LockMode;
    use crate::mvcc::shared::put_shared;
    use crate::mvcc::{LockKind, LockRecord, SharedLock};

    fn lock(primary: Key, start_ts: Timestamp) -> LockRecord {
        LockRecord {
            kind: LockKind::Put,
            primary,
            start_ts,
            ttl_ms: 1,
            min_commit_ts: start_ts.next(),
            short_value: None,
            async_secondaries: None,
        }
    }

    #[test]
    fn shared_locks_are_old_locks_too() {
        let (store, key) = (MemoryStore::new(), |at: u64| Key::new(format!("k{at}")));
        for (at, ms) in [(0, 1), (0, 2), (0, 3), (2, 1), (3, 3)] {
            let (start_ts, mut batch) = (Timestamp::new(ms, 0), WriteBatch::new());
            let lock = SharedLock { mode: LockMode::Share, primary: key(9), start_ts, ttl_ms: 1 };
            put_shared(&store.snapshot(), &mut batch, &key(at).to_storage(), &lock).unwrap();
            store.write(&batch).unwrap();
        }
        for at in [1, 2] {
            let mut batch = WriteBatch::new();
            batch.put(Cf::Lock, &key(at).to_storage(), &lock(key(9), Timestamp::new(2, 0)).encode());
            store.write(&batch).unwrap();
        }
        for steps in [1, 2, 100] {
            let request = OldLocksRequest { start: key(0), end: key(9), max_ts: Timestamp::new(2, 0) };
            let mut page = OldLocks::new(request);
            while !page.advance(&store.snapshot(), steps).unwrap() {}
            let (locks, resume) = page.into_page();
            let found: Vec<_> = locks.into_iter().map(|lock| (lock.key, lock.start_ts.physical_ms())).collect();
            assert_eq!(found, [(key(0), 2), (key(0), 1), (key(1), 2), (key(2), 2), (key(2), 1)], "{steps} steps");
            assert_eq!(resume, None);
        }
    }

    #[test]
    fn old_locks_are_listed_in_pages_of_any_size() {
        let (store, mut batch) = (MemoryStore::new(), WriteBatch::new());
        let key = |at: u64| Key::new(format!("k{at:04}"));
        for at in 0..600 {
            let start_ts = Timestamp::new(1 + at % 3, 0);
            batch.put(Cf::Lock, &key(at).to_storage(), &lock(key(0), start_ts).encode());
        }
        store.write(&batch).unwrap();
        for steps in [1, 7, 10_000] {
            let (mut start, mut found, mut pages) = (Key::new(""), Vec::new(), 0);
            loop {
                let request = OldLocksRequest { start, end: key(599), max_ts: Timestamp::new(2, 0) };
                let mut page = OldLocks::new(request);
                while !page.advance(&store.snapshot(), steps).unwrap() {}
                let (locks, resume) = page.into_page();
                found.extend(locks.into_iter().map(|lock| lock.key));
                pages += 1;
                let Some(resume) = resume else { break };
                start = resume;
            }
            let expected: Vec<Key> = (0..599).filter(|at| at % 3 < 2).map(key).collect();
            assert_eq!(found, expected, "{steps} steps");
            assert!(pages > 1, "a page is bounded");
        }
    }
}

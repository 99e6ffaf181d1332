//! Scans between two pages of one statement.
//!
//! A statement reads a range in pages, one request each. After a page the server keeps the scan, that is its snapshot
//! and its cursor over the write records, and the request of the next page takes it out. So a statement opens one
//! cursor for each region, however many pages it reads. Nothing depends on it: a request that finds no scan opens one.
//!
//! A kept scan is as good as a new one. Every request passes the checks of the read path: leadership, epoch, lease.
//! They need no snapshot of their own: one that was proven for a read at `start_ts` once holds, for its whole region,
//! every transaction that can commit at or below `start_ts`, because what prewrites later takes a higher commit_ts. The
//! request must name the region under the same epoch, the same `start_ts` and exactly the rest of the range. The locks
//! of a page come from the snapshot of the cursor over the write records, never from a newer one: a lock that is gone
//! there may have left a record that the cursor does not show. A page that meets a lock is not continued, so that the
//! next one sees the lock resolved. (Locks in memory are not in the snapshot. A leader that has such locks must check
//! them for the whole rest of the range when it opens a scan.)
//!
//! A kept scan holds back the removal of old data. So the number of scans is bounded, and so is their age since they
//! were opened, in use or not: a slow reader continues on a new snapshot.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use raftstore::RegionContext;

use crate::api::ScanRequest;
use crate::error::{ActionError, Result};
use crate::mvcc::scanner::{PageLimits, ScanPage, Scanner};
use crate::region_store::RegionView;

/// The time between two ticks.
const TICK: Duration = Duration::from_secs(1);

/// Bounds of what a [`ScanCache`] keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepLimits {
    /// The most scans that are kept. Beyond it the oldest is dropped. Default 128; with 0 none is kept.
    pub scans: usize,
    /// Seconds from the opening of a scan after which it is not kept any more. Default 5.
    pub age_s: u64,
}

impl Default for KeepLimits {
    fn default() -> KeepLimits {
        KeepLimits { scans: 128, age_s: 5 }
    }
}

/// A scan of a region and the snapshot that it reads.
pub struct OpenScan<V> {
    context: RegionContext,
    view: V,
    scanner: Scanner,
    /// The tick of its opening.
    opened: u64,
}

impl<V: RegionView> OpenScan<V> {
    /// A planted bug: locks and values are read from another view from now on, but the write records are not.
    #[cfg(feature = "planted-bugs")]
    pub fn replace_view(&mut self, view: V) {
        self.view = view;
    }

    /// Reads the next page. See [`Scanner::next_page`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn next_page(&mut self, limits: PageLimits) -> Result<ScanPage, ActionError> {
        self.scanner.next_page(&self.view, limits)
    }

    /// Whether part of the range of `request` is read. The scan continued it.
    pub fn has_advanced_from(&self, request: &ScanRequest) -> bool {
        self.scanner.has_advanced_from(request)
    }

    /// Whether `request` asks for the rest of this scan.
    fn is_continued_by(&self, context: RegionContext, request: &ScanRequest) -> bool {
        let rest = self.scanner.rest();
        // Each page has limits of its own.
        let ScanRequest { start, end, start_ts, limit: _, max_bytes: _, reverse, keys_only } = request;
        self.context == context
            && (rest.start_ts, rest.reverse, rest.keys_only) == (*start_ts, *reverse, *keys_only)
            && rest.start == *start
            && rest.end == *end
    }
}

/// The scans that wait for the request of their next page. Clones share them.
pub struct ScanCache<V> {
    kept: Arc<Mutex<KeptScans<V>>>,
}

impl<V> Clone for ScanCache<V> {
    fn clone(&self) -> ScanCache<V> {
        ScanCache { kept: Arc::clone(&self.kept) }
    }
}

impl<V: RegionView> ScanCache<V> {
    /// A cache without scans.
    pub fn new(limits: KeepLimits) -> ScanCache<V> {
        let kept = KeptScans { limits, scans: VecDeque::new(), tick: 0, ticks: false };
        ScanCache { kept: Arc::new(Mutex::new(kept)) }
    }

    /// The kept scan that `request` continues, if there is one.
    pub fn take(&self, context: RegionContext, request: &ScanRequest) -> Option<OpenScan<V>> {
        self.kept.lock().take(context, request)
    }

    /// Opens a scan on `view`, which must be proven for a read at the request's `start_ts`.
    ///
    /// # Errors
    ///
    /// [`MvccError`](crate::error::MvccError) if the store fails.
    pub fn open(&self, context: RegionContext, view: V, request: &ScanRequest) -> Result<OpenScan<V>> {
        let scanner = Scanner::open(&view, request)?;
        Ok(OpenScan { context, view, scanner, opened: self.kept.lock().tick })
    }

    /// Keeps a scan whose last page ended at a limit. Must be called within a tokio runtime.
    pub fn keep(&self, scan: OpenScan<V>) {
        let mut kept = self.kept.lock();
        // Dropping a scan may take a while: do it without the lock.
        let dropped = kept.keep(scan);
        if !kept.scans.is_empty() && !std::mem::replace(&mut kept.ticks, true) {
            tokio::spawn(expire(Arc::downgrade(&self.kept)));
        }
        drop(kept);
        drop(dropped);
    }
}

/// Drops scans as they get too old, until none is left or the server is gone.
async fn expire<V: RegionView>(kept: Weak<Mutex<KeptScans<V>>>) {
    loop {
        tokio::time::sleep(TICK).await;
        let Some(kept) = kept.upgrade() else { return };
        let mut kept = kept.lock();
        let expired = kept.advance();
        kept.ticks = !kept.scans.is_empty();
        let done = !kept.ticks;
        drop(kept);
        drop(expired);
        if done {
            return;
        }
    }
}

/// Invariant: there are at most `limits.scans` scans, none older than `limits.age_s` ticks.
struct KeptScans<V> {
    limits: KeepLimits,
    /// In the order in which they were kept.
    scans: VecDeque<OpenScan<V>>,
    /// Ticks so far.
    tick: u64,
    /// Whether a task advances the ticks.
    ticks: bool,
}

impl<V: RegionView> KeptScans<V> {
    fn take(&mut self, context: RegionContext, request: &ScanRequest) -> Option<OpenScan<V>> {
        let at = self.scans.iter().position(|scan| scan.is_continued_by(context, request))?;
        self.scans.remove(at)
    }

    /// Keeps a scan unless it is too old. Returns a scan that is to be dropped.
    fn keep(&mut self, scan: OpenScan<V>) -> Option<OpenScan<V>> {
        if self.tick - scan.opened > self.limits.age_s {
            return Some(scan);
        }
        self.scans.push_back(scan);
        if self.scans.len() > self.limits.scans { self.scans.pop_front() } else { None }
    }

    /// Counts a tick. Returns the scans that are now too old.
    fn advance(&mut self) -> Vec<OpenScan<V>> {
        self.tick += 1;
        let (kept, expired) =
            std::mem::take(&mut self.scans).into_iter().partition(|scan| self.tick - scan.opened <= self.limits.age_s);
        self.scans = kept;
        expired.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use tso::Timestamp;

    use super::*;
    use crate::key::Key;
    use crate::region_store::RegionStore;
    use crate::region_store::fake::{FakeStore, FakeView};

    const LIMITS: KeepLimits = KeepLimits { scans: 7, age_s: 5 };

    fn request(start: u32) -> ScanRequest {
        let [start, end] = [Key::new(format!("c{start:04}")), Key::from_static(b"x")];
        let start_ts = Timestamp::new(10, 0);
        ScanRequest { start, end, start_ts, limit: 1, max_bytes: 1, reverse: false, keys_only: false }
    }

    fn open(store: &FakeStore, cache: &ScanCache<FakeView>, request: &ScanRequest) -> OpenScan<FakeView> {
        let view = store.evaluate(store.context()).unwrap();
        cache.open(store.context(), view, request).unwrap()
    }

    #[tokio::test]
    async fn a_scan_is_continued_once_and_only_by_its_own_rest() {
        let (store, cache) = (FakeStore::new(), ScanCache::new(LIMITS));
        let (context, kept) = (store.context(), request(1));
        cache.keep(open(&store, &cache, &kept));
        let mut other = context;
        other.epoch.version += 1;
        assert!(cache.take(other, &kept).is_none());
        for different in [
            request(2),
            ScanRequest { end: Key::from_static(b"w"), ..kept.clone() },
            ScanRequest { start_ts: Timestamp::new(11, 0), ..kept.clone() },
            ScanRequest { reverse: true, ..kept.clone() },
            ScanRequest { keys_only: true, ..kept.clone() },
        ] {
            assert!(cache.take(context, &different).is_none(), "{different:?}");
        }
        assert!(cache.take(context, &ScanRequest { limit: 7, max_bytes: 8, ..kept.clone() }).is_some());
        assert!(cache.take(context, &kept).is_none());
    }

    #[tokio::test]
    async fn kept_scans_are_bounded_in_number() {
        let (store, cache) = (FakeStore::new(), ScanCache::new(LIMITS));
        let count = LIMITS.scans as u32 + 3;
        (0..count).for_each(|n| cache.keep(open(&store, &cache, &request(n))));
        let kept: Vec<u32> = (0..count).filter(|n| cache.take(store.context(), &request(*n)).is_some()).collect();
        assert_eq!(kept, (3..count).collect::<Vec<_>>());
    }

    /// Neither a reader that pauses nor one that reads on and on holds a snapshot longer.
    #[tokio::test]
    async fn kept_scans_are_bounded_in_age() {
        let (store, cache) = (FakeStore::new(), ScanCache::new(LIMITS));
        let (idle, busy) = (request(1), request(2));
        cache.keep(open(&store, &cache, &idle));
        cache.keep(open(&store, &cache, &busy));
        for tick in 1..=LIMITS.age_s {
            assert!(cache.kept.lock().advance().is_empty(), "at tick {tick}");
            let scan = cache.take(store.context(), &busy).unwrap();
            cache.keep(scan);
        }
        let scan = cache.take(store.context(), &busy).unwrap();
        assert_eq!(cache.kept.lock().advance().len(), 1);
        cache.keep(scan);
        assert!(cache.kept.lock().scans.is_empty());
        // A scan that is opened now is young.
        cache.keep(open(&store, &cache, &busy));
        assert!(cache.kept.lock().advance().is_empty());
    }

    /// The task that advances the ticks ends when it is not needed, and the next kept scan starts another one.
    #[tokio::test(start_paused = true)]
    async fn the_ticks_come_while_scans_are_kept() {
        let (store, cache) = (FakeStore::new(), ScanCache::new(LIMITS));
        for _ in 0..2 {
            cache.keep(open(&store, &cache, &request(1)));
            tokio::time::sleep(TICK * (LIMITS.age_s as u32 - 1)).await;
            assert_eq!(cache.kept.lock().scans.len(), 1);
            tokio::time::sleep(TICK * 3).await;
            assert!(cache.kept.lock().scans.is_empty() && !cache.kept.lock().ticks);
        }
    }
}

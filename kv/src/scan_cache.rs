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
//! next one sees the lock resolved. Locks in memory are not in the snapshot. So they are checked for the whole rest of
//! the range before a scan takes its snapshot.
//!
//! A kept scan holds back the removal of old data. So the number of scans is bounded, and so is their age since they
//! were opened, which counts while they are in use too: a slow reader continues on a new snapshot. A page under way is
//! not interrupted, so a snapshot lives up to the age and one page longer.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use raftstore::RegionContext;
use tokio::time::Instant;

use crate::api::ScanRequest;
use crate::error::{ActionError, Result};
use crate::mvcc::scanner::{PageLimits, ScanPage, Scanner};
use crate::region_store::RegionView;

/// How often the kept scans are searched for those that are too old.
const EXPIRY_INTERVAL: Duration = Duration::from_secs(1);

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
    opened: Instant,
}

impl<V: RegionView> OpenScan<V> {
    /// A planted bug: locks and values are read from another view from now on, but the write records are not.
    #[cfg(feature = "planted-bugs")]
    pub fn replace_view(&mut self, view: V) {
        self.view = view;
    }

    /// Opens a scan on `view`, which must be proven for a read at the request's `start_ts`. `opened`: when it was
    /// taken.
    ///
    /// # Errors
    ///
    /// [`MvccError`](crate::error::MvccError) if the store fails.
    pub fn open(context: RegionContext, view: V, request: &ScanRequest, opened: Instant) -> Result<OpenScan<V>> {
        let scanner = Scanner::open(&view, request)?;
        Ok(OpenScan { context, view, scanner, opened })
    }

    /// The part of the range that is not read yet.
    pub fn rest(&self) -> &ScanRequest {
        self.scanner.rest()
    }

    /// Forgets what takes memory and is not returned yet. To be called before the scan is kept. May read a file.
    ///
    /// # Errors
    ///
    /// [`MvccError`](crate::error::MvccError) if the store fails.
    pub fn pause(&mut self) -> Result<()> {
        self.scanner.forget_unchecked()
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
        // Each page has limits of its own. What a read at a timestamp may pass, every read at it may pass.
        let ScanRequest { start, end, start_ts, limit: _, max_bytes: _, reverse, keys_only, pass: _ } = request;
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
        let kept = KeptScans { limits, scans: VecDeque::new(), expires: false };
        ScanCache { kept: Arc::new(Mutex::new(kept)) }
    }

    /// The kept scan that `request` continues, if there is one that is not too old.
    pub fn take(&self, context: RegionContext, request: &ScanRequest, now: Instant) -> Option<OpenScan<V>> {
        let (taken, expired) = {
            let mut kept = self.kept.lock();
            let expired = kept.expire(now);
            (kept.take(context, request), expired)
        };
        drop(expired);
        taken
    }

    /// Keeps a scan that pauses after a page which ended at a limit, unless it is too old. Must be called within a
    /// tokio runtime.
    pub fn keep(&self, scan: OpenScan<V>, now: Instant) {
        let mut kept = self.kept.lock();
        // Dropping a scan may take a while: do it without the lock.
        let dropped = kept.keep(scan, now);
        if !kept.scans.is_empty() && !std::mem::replace(&mut kept.expires, true) {
            tokio::spawn(expire(Arc::downgrade(&self.kept)));
        }
        drop(kept);
        drop(dropped);
    }
}

/// Drops scans as they get too old, until none is left or the server is gone.
async fn expire<V: RegionView>(kept: Weak<Mutex<KeptScans<V>>>) {
    loop {
        tokio::time::sleep(EXPIRY_INTERVAL).await;
        let Some(kept) = kept.upgrade() else { return };
        let mut kept = kept.lock();
        let expired = kept.expire(now());
        kept.expires = !kept.scans.is_empty();
        let done = !kept.expires;
        drop(kept);
        drop(expired);
        if done {
            return;
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the task that drops old scans is an edge")]
fn now() -> Instant {
    Instant::now()
}

/// Invariant: there are at most `limits.scans` scans. After `expire` none is older than `limits.age_s`.
struct KeptScans<V> {
    limits: KeepLimits,
    /// In the order in which they were kept.
    scans: VecDeque<OpenScan<V>>,
    /// Whether a task drops those that are too old.
    expires: bool,
}

impl<V: RegionView> KeptScans<V> {
    fn take(&mut self, context: RegionContext, request: &ScanRequest) -> Option<OpenScan<V>> {
        let at = self.scans.iter().position(|scan| scan.is_continued_by(context, request))?;
        self.scans.remove(at)
    }

    /// Keeps a scan unless it is too old. Returns a scan that is to be dropped.
    fn keep(&mut self, scan: OpenScan<V>, now: Instant) -> Option<OpenScan<V>> {
        if self.is_too_old(&scan, now) {
            return Some(scan);
        }
        self.scans.push_back(scan);
        if self.scans.len() > self.limits.scans { self.scans.pop_front() } else { None }
    }

    /// Removes the scans that are too old. Returns them, to be dropped.
    fn expire(&mut self, now: Instant) -> VecDeque<OpenScan<V>> {
        let (expired, kept) = std::mem::take(&mut self.scans).into_iter().partition(|scan| self.is_too_old(scan, now));
        self.scans = kept;
        expired
    }

    fn is_too_old(&self, scan: &OpenScan<V>, now: Instant) -> bool {
        now.duration_since(scan.opened) > Duration::from_secs(self.limits.age_s)
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
        ScanRequest { start, end, start_ts, limit: 1, max_bytes: 1, reverse: false, keys_only: false, pass: Vec::new() }
    }

    fn open(store: &FakeStore, request: &ScanRequest) -> OpenScan<FakeView> {
        let view = store.evaluate(store.context()).unwrap();
        OpenScan::open(store.context(), view, request, now()).unwrap()
    }

    #[tokio::test]
    async fn a_scan_is_continued_once_and_only_by_its_own_rest() {
        let (store, cache) = (FakeStore::new(), ScanCache::new(LIMITS));
        let (context, kept) = (store.context(), request(1));
        cache.keep(open(&store, &kept), now());
        let mut other = context;
        other.epoch.version += 1;
        assert!(cache.take(other, &kept, now()).is_none());
        for different in [
            request(2),
            ScanRequest { end: Key::from_static(b"w"), ..kept.clone() },
            ScanRequest { start_ts: Timestamp::new(11, 0), ..kept.clone() },
            ScanRequest { reverse: true, ..kept.clone() },
            ScanRequest { keys_only: true, ..kept.clone() },
        ] {
            assert!(cache.take(context, &different, now()).is_none(), "{different:?}");
        }
        assert!(cache.take(context, &ScanRequest { limit: 7, max_bytes: 8, ..kept.clone() }, now()).is_some());
        assert!(cache.take(context, &kept, now()).is_none());
    }

    #[tokio::test]
    async fn kept_scans_are_bounded_in_number() {
        let (store, cache) = (FakeStore::new(), ScanCache::new(LIMITS));
        let count = LIMITS.scans as u32 + 3;
        (0..count).for_each(|n| cache.keep(open(&store, &request(n)), now()));
        let is_kept = |n: &u32| cache.take(store.context(), &request(*n), now()).is_some();
        let kept: Vec<u32> = (0..count).filter(is_kept).collect();
        assert_eq!(kept, (3..count).collect::<Vec<_>>());
    }

    /// A reader that pauses gets no old scan, whether or not the task that drops it has run.
    #[tokio::test(start_paused = true)]
    async fn a_scan_that_is_too_old_is_neither_kept_nor_taken() {
        let (store, cache) = (FakeStore::new(), ScanCache::new(LIMITS));
        let opened = now();
        for (age_s, expected) in [(0, true), (LIMITS.age_s, true), (LIMITS.age_s + 1, false)] {
            let later = opened + Duration::from_secs(age_s);
            cache.keep(open(&store, &request(1)), opened);
            assert_eq!(cache.take(store.context(), &request(1), later).is_some(), expected, "taken after {age_s} s");
            cache.keep(open(&store, &request(1)), later);
            assert_eq!(!cache.kept.lock().scans.is_empty(), expected, "kept after {age_s} s");
            cache.take(store.context(), &request(1), later);
        }
    }

    /// The task that drops old scans ends when it is not needed, and the next kept scan starts another one.
    #[tokio::test(start_paused = true)]
    async fn old_scans_are_dropped_without_a_request() {
        let (store, cache) = (FakeStore::new(), ScanCache::new(LIMITS));
        for _ in 0..2 {
            cache.keep(open(&store, &request(1)), now());
            tokio::time::sleep(EXPIRY_INTERVAL * (LIMITS.age_s as u32 - 1)).await;
            assert_eq!(cache.kept.lock().scans.len(), 1);
            tokio::time::sleep(EXPIRY_INTERVAL * 3).await;
            assert!(cache.kept.lock().scans.is_empty() && !cache.kept.lock().expires);
        }
    }
}

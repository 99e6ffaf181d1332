//! The concurrency manager of a store: what makes a commit_ts that a leader computes safe against reads.
//!
//! One-phase and async commit take their commit_ts from the leader instead of the oracle: above every timestamp that
//! the region was read at (`max_ts`). Two orders prove that no read misses such a commit:
//!
//! - A **read** at R first raises `max_ts` to R, *then* looks at the locks in memory, *then* takes its snapshot (the
//!   lock family, then the data).
//! - A **write** publishes locks in memory on all its keys, *then* reads `max_ts`, *then* is evaluated and proposed.
//!   The locks stay until the write is applied or certainly lost.
//!
//! Either the read sees the lock, and it waits if the commit may come at or below R; or the write was published after
//! the read looked, and then it sees R in `max_ts` and commits above R. A lock that is gone was applied before the
//! snapshot. Publication is a counter that rises before the locks are in the map: a reader that sees it nonzero waits
//! for the mutex, under which the writer also reads `max_ts`. So no reader meets a lock whose min_commit_ts is unknown.
//!
//! **Terms.** Reads of earlier leaders raised their own `max_ts`. So a leader computes no commit_ts in a term until it
//! is *synced*: it has a timestamp that was requested from the oracle after it applied an entry of the term. Every read
//! that an earlier leader served had its timestamp before that. The first write that wants it starts the request, so an
//! idle region costs nothing. `max_ts` itself never falls, also not in a later term, which only makes commits later.
//!
//! **Unknown outcomes.** The locks of a proposal whose outcome is unknown stay, as its fence does (`scheduler`). A view
//! of a later term proves that it is applied or lost, and retires them.
//!
//! Only timestamps that the oracle issued raise `max_ts`. A read's timestamp comes from a client, so one that is beyond
//! what the oracle can have issued is checked with the oracle first. A read that arrives without a timestamp gets one
//! here, before the first step above, and is from then on a read like the others.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use parking_lot::{Mutex, RwLock};
use raftstore::{LogIndex, RegionContext, RegionError, RegionId, Term};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tso::oracle::{WINDOW_MS, advance_max};
use tso::{NewestTimestamp, Timestamp, TsoClient, TsoError};

use crate::api::{LockInfo, RequestBody, ServerError};
use crate::key::Key;
#[cfg(feature = "planted-bugs")]
use crate::planted::PlantedBug;
use crate::region_store::RegionReads;
use crate::size::BlockingLocks;

/// How long a request waits for the timestamp that its store takes for it. Shorter than the patience of its client,
/// which may reach an oracle that this store does not reach.
const TAKE_WAIT: Duration = Duration::from_millis(500);

/// No commit that is requested so long after its greatest commit_ts takes effect. A node that was suspended for longer
/// may have lost everything that it held under that bound.
pub const COMMIT_LATE_MAX: Duration = Duration::from_secs(300);

/// Where a store gets timestamps.
pub trait TimestampSource: Send + Sync + 'static {
    /// Fetches a timestamp that is issued after the first poll.
    fn timestamp(&self) -> BoxFuture<'_, Result<Timestamp, TsoError>>;
    /// Takes a timestamp within this call, if the oracle is on this node.
    fn try_timestamp(&self) -> Option<Timestamp> {
        None
    }
    /// The newest timestamp that this node has received.
    fn newest(&self) -> NewestTimestamp;
    /// Takes note of a timestamp of the oracle that another store has named. A source that issues them itself knows.
    fn note(&self, _timestamp: Timestamp) {}
}

impl TimestampSource for TsoClient {
    fn note(&self, timestamp: Timestamp) {
        TsoClient::note(self, timestamp);
    }

    fn timestamp(&self) -> BoxFuture<'_, Result<Timestamp, TsoError>> {
        Box::pin(TsoClient::timestamp(self))
    }

    fn try_timestamp(&self) -> Option<Timestamp> {
        TsoClient::try_timestamp(self)
    }

    fn newest(&self) -> NewestTimestamp {
        TsoClient::newest(self)
    }
}

/// A leadership over one range: a term, and the version of the region's epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leadership {
    /// The term.
    pub term: Term,
    /// The version of the epoch.
    pub version: u64,
}

/// The transaction and the primary of locks in memory.
#[derive(Clone, Debug)]
pub struct LockOwner {
    /// The primary of the transaction.
    pub primary: Key,
    /// The transaction.
    pub start_ts: Timestamp,
    /// Life of the lock, in milliseconds from the physical part of `start_ts`.
    pub ttl_ms: u64,
}

/// The state of all regions of a store. Clones share it.
#[derive(Clone)]
pub struct ConcurrencyManager {
    regions: Arc<RwLock<HashMap<RegionId, Arc<RegionConcurrency>>>>,
    source: Arc<dyn TimestampSource>,
    /// Timestamps up to this physical time, in milliseconds, need no further check.
    admitted_ms: Arc<AtomicU64>,
    /// A planted bug: the timestamp of the next read.
    #[cfg(feature = "planted-bugs")]
    taken_ahead: Arc<AtomicU64>,
    #[cfg(feature = "planted-bugs")]
    planted_bug: Option<PlantedBug>,
}

impl ConcurrencyManager {
    /// A manager without locks, of which no region is synced.
    pub fn new(source: Arc<dyn TimestampSource>) -> ConcurrencyManager {
        ConcurrencyManager {
            regions: Arc::default(),
            source,
            admitted_ms: Arc::default(),
            #[cfg(feature = "planted-bugs")]
            taken_ahead: Arc::default(),
            #[cfg(feature = "planted-bugs")]
            planted_bug: None,
        }
    }

    /// The manager with this deliberate bug.
    #[cfg(feature = "planted-bugs")]
    pub fn with_planted_bug(mut self, bug: Option<PlantedBug>) -> ConcurrencyManager {
        self.planted_bug = bug;
        self
    }

    /// The state of a region that this store has led; `None` if it has not been created.
    pub fn known_region(&self, region: RegionId) -> Option<Arc<RegionConcurrency>> {
        self.regions.read().get(&region).map(Arc::clone)
    }

    /// The state of a region, created at the first call. The caller has had a view of the region.
    pub fn region(&self, region: RegionId) -> Arc<RegionConcurrency> {
        self.known_region(region).unwrap_or_else(|| Arc::clone(self.regions.write().entry(region).or_default()))
    }

    /// Raises the region's `max_ts` to a timestamp that [`ConcurrencyManager::check_issued`] has accepted. A read calls
    /// it before it looks at the locks.
    pub fn raise_max_ts(&self, entry: &RegionConcurrency, ts: Timestamp) {
        #[cfg(feature = "planted-bugs")]
        if self.planted_bug == Some(PlantedBug::MaxTsNotRaised) {
            return;
        }
        entry.raise(ts);
    }

    /// Whether a timestamp that a client sent needs no further check: the oracle may have issued it.
    pub fn is_admitted(&self, ts: Timestamp) -> bool {
        ts < Timestamp::MAX && ts.physical_ms() <= self.admitted_ms.load(Ordering::Relaxed)
    }

    /// Checks a timestamp that a client sent. Asks the oracle only about one that is beyond what it can have issued, as
    /// far as this node knows.
    ///
    /// # Errors
    ///
    /// [`ServerError::Invalid`]: the oracle has not issued it. `NotReady`: the oracle did not answer.
    pub async fn check_issued(&self, region: RegionId, ts: Timestamp) -> Result<(), ServerError> {
        if self.is_admitted(ts) {
            return Ok(());
        }
        if ts == Timestamp::MAX {
            return Err(not_issued());
        }
        let newest = self.source.newest();
        let advance = u64::try_from(advance_max(newest.age).as_millis()).unwrap_or(u64::MAX);
        let bound = newest.timestamp.physical_ms().saturating_add(advance).saturating_add(WINDOW_MS);
        if newest.timestamp > Timestamp::ZERO && ts.physical_ms() <= bound {
            self.admitted_ms.fetch_max(bound, Ordering::Relaxed);
            return Ok(());
        }
        match self.source.timestamp().await {
            Ok(issued) if ts <= issued => {
                self.admitted_ms.fetch_max(issued.physical_ms(), Ordering::Relaxed);
                Ok(())
            }
            Ok(_) => Err(not_issued()),
            Err(error) => {
                let why = format!("a timestamp could not be checked: {error}");
                Err(RegionError::NotReady { region, why }.into())
            }
        }
    }

    /// Takes a timestamp for a request to `store` that has arrived without one: within this call if the oracle is on
    /// this node, else together with all others who wait for one. One that was received before the request arrived
    /// would not do: the request would miss what was acknowledged since. `None` if the oracle does not answer within
    /// [`TAKE_WAIT`].
    ///
    /// # Errors
    ///
    /// [`RegionError`] if the oracle is elsewhere and the store does not lead the region: it asks for none then.
    pub async fn take_timestamp(
        &self,
        store: &impl RegionReads,
        context: RegionContext,
    ) -> Result<Option<Timestamp>, RegionError> {
        if let Some(taken) = self.try_timestamp() {
            return Ok(Some(taken));
        }
        store.has_lease(context)?;
        Ok(self.timestamp().await)
    }

    /// Takes a timestamp from the oracle. `None` if it does not answer within [`TAKE_WAIT`].
    pub async fn timestamp(&self) -> Option<Timestamp> {
        if let Some(taken) = self.try_timestamp() {
            return Some(taken);
        }
        let taken = tokio::time::timeout(TAKE_WAIT, self.source.timestamp()).await;
        taken.ok().and_then(Result::ok).map(|taken| self.admit(taken))
    }

    /// As [`ConcurrencyManager::timestamp`], with how often another node was asked.
    pub async fn counted_timestamp(&self) -> (Option<Timestamp>, u32) {
        match self.try_timestamp() {
            Some(taken) => (Some(taken), 0),
            None => (self.timestamp().await, 1),
        }
    }

    /// Takes a timestamp within this call, if the oracle is on this node.
    pub fn try_timestamp(&self) -> Option<Timestamp> {
        self.source.try_timestamp().map(|taken| self.admit(taken))
    }

    /// Notes that the oracle has issued `taken`, and returns it.
    fn admit(&self, taken: Timestamp) -> Timestamp {
        self.admitted_ms.fetch_max(taken.physical_ms(), Ordering::Relaxed);
        #[cfg(feature = "planted-bugs")]
        if self.planted_bug == Some(PlantedBug::TimestampAhead) {
            let ahead = Timestamp::from_raw(self.taken_ahead.swap(taken.raw(), Ordering::Relaxed));
            return if ahead == Timestamp::ZERO { taken.prev() } else { ahead };
        }
        taken
    }

    /// Takes note of a timestamp of the oracle that another store has named, so that nobody here asks the oracle
    /// whether it has issued it.
    pub fn note(&self, timestamp: Timestamp) {
        self.source.note(timestamp);
    }

    /// The newest timestamp that this node has received.
    pub fn newest(&self) -> Timestamp {
        self.source.newest().timestamp
    }

    /// Whether the oracle's time is more than [`COMMIT_LATE_MAX`] beyond `ts`, as far as this node knows.
    pub fn is_long_past(&self, ts: Timestamp) -> bool {
        self.behind(ts).is_some_and(|behind| behind > COMMIT_LATE_MAX)
    }

    /// How far `ts` is behind the oracle's time, as far as this node knows. `None` if it has never had a timestamp.
    pub fn behind(&self, ts: Timestamp) -> Option<Duration> {
        let NewestTimestamp { timestamp, age } = self.source.newest();
        let age_ms = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
        let behind_ms = timestamp.physical_ms().saturating_add(age_ms).saturating_sub(ts.physical_ms());
        (timestamp > Timestamp::ZERO).then(|| Duration::from_millis(behind_ms))
    }

    /// Whether the region may compute commit_ts under `leadership`. If not, it starts the request for the timestamp
    /// that it needs. The caller has a view of that leadership, in which an entry of its term is applied.
    pub fn is_synced(&self, entry: &Arc<RegionConcurrency>, leadership: Leadership) -> bool {
        #[cfg(feature = "planted-bugs")]
        if self.planted_bug == Some(PlantedBug::UnsyncedOnePhase) {
            return true;
        }
        {
            let mut state = entry.state.lock();
            if state.synced == Some(leadership) {
                return true;
            }
            if state.syncing == Some(leadership) {
                return false;
            }
            state.syncing = Some(leadership);
        }
        let (source, entry) = (Arc::clone(&self.source), Arc::clone(entry));
        let sync = async move {
            let timestamp = source.timestamp().await;
            entry.finish_sync(leadership, timestamp.ok());
        };
        // Without a runtime there is nobody to wait: such a caller commits in two phases.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(sync);
        }
        false
    }
}

fn not_issued() -> ServerError {
    ServerError::Invalid("start_ts was not issued by the oracle".to_owned())
}

/// The state of one region.
///
/// Invariants:
/// 1. `max_ts` never falls, and every value is a timestamp of the oracle.
/// 2. `published` is at least the number of locks in the map, and rises before a lock is in it.
/// 3. `synced` names a leadership of which `max_ts` is at or above every read of earlier leaderships.
#[derive(Default)]
pub struct RegionConcurrency {
    max_ts: AtomicU64,
    published: AtomicUsize,
    state: Mutex<RegionState>,
    /// Locks were released, or will stay for long.
    changed: Notify,
    /// A write got its place in the log, or locks were released.
    placed: Notify,
}

#[derive(Default)]
struct RegionState {
    /// By key and publication. Latches keep two writes of a key apart, fences keep those of one term apart.
    locks: BTreeMap<(Key, u64), Arc<PublishedWrite>>,
    /// By publication: those that have locks.
    writes: BTreeMap<u64, Arc<PublishedWrite>>,
    next: u64,
    synced: Option<Leadership>,
    syncing: Option<Leadership>,
}

/// A write with locks in memory.
struct PublishedWrite {
    owner: LockOwner,
    /// A timestamp; fixed, unless a planted bug changes it.
    min_commit_ts: AtomicU64,
    term: Term,
    /// The index of its entry in the leader's log; 0 as long as it has none.
    index: AtomicU64,
    /// Whether its outcome is unknown.
    is_doubtful: AtomicBool,
}

impl PublishedWrite {
    fn min_commit_ts(&self) -> Timestamp {
        Timestamp::from_raw(self.min_commit_ts.load(Ordering::SeqCst))
    }

    fn is_doubtful(&self) -> bool {
        self.is_doubtful.load(Ordering::SeqCst)
    }

    fn index(&self) -> Option<LogIndex> {
        Some(LogIndex::new(self.index.load(Ordering::SeqCst))).filter(|index| index.get() > 0)
    }
}

/// The writes under way that may commit at or below a timestamp.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InFlight {
    /// The greatest index of their entries, of those that have one.
    pub index: LogIndex,
    /// The least commit_ts of those that have none yet.
    pub unplaced: Option<Timestamp>,
}

/// What a read finds among the locks in memory.
#[derive(Debug)]
pub enum Found {
    /// No lock blocks it.
    Nothing,
    /// Writes under way block it, whose outcome will be known soon.
    InFlight,
    /// Writes block it whose outcome is unknown in their term.
    Doubtful(Vec<LockInfo>),
}

impl RegionConcurrency {
    fn raise(&self, ts: Timestamp) {
        // A plain load is enough if it is high already: the writer that is published after we look at the locks reads
        // `max_ts` after this load.
        if self.max_ts.load(Ordering::SeqCst) < ts.raw() {
            self.max_ts.fetch_max(ts.raw(), Ordering::SeqCst);
        }
    }

    fn finish_sync(&self, leadership: Leadership, timestamp: Option<Timestamp>) {
        if let Some(timestamp) = timestamp {
            self.raise(timestamp);
        }
        let mut state = self.state.lock();
        if state.syncing == Some(leadership) {
            state.syncing = None;
            state.synced = timestamp.map(|_| leadership).or(state.synced);
        }
    }

    /// Looks for locks that block the read `body`. Its timestamp must be in `max_ts` already.
    pub fn look(&self, body: &RequestBody) -> Found {
        if self.published.load(Ordering::SeqCst) == 0 {
            return Found::Nothing;
        }
        let state = self.state.lock();
        let mut report = BlockingLocks::default();
        let mut add = |key: &Key, lock: &PublishedWrite| {
            if lock.is_doubtful() {
                let LockOwner { primary, start_ts, ttl_ms } = lock.owner.clone();
                report.push(LockInfo { key: key.clone(), primary, start_ts, ttl_ms });
            }
            lock.is_doubtful()
        };
        let mut all_doubtful = true;
        let mut visit = |(key, _): &(Key, u64), lock: &Arc<PublishedWrite>, ts: Timestamp, pass: &[Timestamp]| {
            if lock.min_commit_ts() <= ts && !pass.contains(&lock.owner.start_ts) {
                all_doubtful &= add(key, lock);
            }
        };
        let of_key = |key: &Key| (key.clone(), 0)..=(key.clone(), u64::MAX);
        match body {
            RequestBody::Get { key, start_ts, pass } => {
                state.locks.range(of_key(key)).for_each(|(at, lock)| visit(at, lock, *start_ts, pass));
            }
            RequestBody::BatchGet { keys, start_ts, pass } => {
                let found = keys.iter().flat_map(|key| state.locks.range(of_key(key)));
                found.for_each(|(at, lock)| visit(at, lock, *start_ts, pass));
            }
            RequestBody::Scan(scan) if !scan.is_empty() => {
                let end = if scan.end.is_empty() { Bound::Unbounded } else { Bound::Excluded((scan.end.clone(), 0)) };
                let range = state.locks.range((Bound::Included((scan.start.clone(), 0)), end));
                range.for_each(|(at, lock)| visit(at, lock, scan.start_ts, &scan.pass));
            }
            _ => {}
        }
        match (all_doubtful, report.is_empty()) {
            (false, _) => Found::InFlight,
            (true, false) => Found::Doubtful(report.into_locks()),
            (true, true) => Found::Nothing,
        }
    }

    /// Whether there is a lock on `key`, of whatever timestamp. A reader that has raised `max_ts` may read if there is
    /// none.
    pub fn may_block(&self, key: &Key) -> bool {
        if self.published.load(Ordering::SeqCst) == 0 {
            return false;
        }
        let of_key = (key.clone(), 0)..=(key.clone(), u64::MAX);
        self.state.lock().locks.range(of_key).next().is_some()
    }

    /// Completes once locks were released, or became doubtful, after the call of this function.
    pub fn changed(&self) -> tokio::sync::futures::Notified<'_> {
        self.changed.notified()
    }

    /// Removes the locks of terms before `term`. The caller has a view of `term`, so their writes are applied or lost.
    /// Returns whether there were any.
    pub fn retire_before(&self, term: Term) -> bool {
        if self.published.load(Ordering::SeqCst) == 0 {
            return false;
        }
        let mut state = self.state.lock();
        let before = state.locks.len();
        state.locks.retain(|_, lock| lock.term >= term);
        state.writes.retain(|_, write| write.term >= term);
        let retired = before - state.locks.len();
        self.published.fetch_sub(retired, Ordering::SeqCst);
        drop(state);
        if retired > 0 {
            self.changed.notify_waiters();
        }
        retired > 0
    }

    /// The writes under way that may commit at or below `ts`, which must be in `max_ts` already: whatever is published
    /// later commits above it. What was released before was applied before.
    pub fn in_flight(&self, ts: Timestamp) -> InFlight {
        let mut found = InFlight::default();
        if self.published.load(Ordering::SeqCst) == 0 {
            return found;
        }
        for write in self.state.lock().writes.values().filter(|write| write.min_commit_ts() <= ts) {
            match write.index() {
                Some(index) => found.index = found.index.max(index),
                None => found.unplaced = Some(found.unplaced.unwrap_or(Timestamp::MAX).min(write.min_commit_ts())),
            }
        }
        found
    }

    /// Completes once a write under way has got its place in the log, or was released, after the call of this function.
    pub fn placed(&self) -> tokio::sync::futures::Notified<'_> {
        self.placed.notified()
    }

    /// The least commit_ts that `max_ts` allows now.
    #[cfg(feature = "planted-bugs")]
    pub fn min_commit_ts_now(&self) -> Timestamp {
        Timestamp::from_raw(self.max_ts.load(Ordering::SeqCst)).next()
    }

    /// Publishes locks on `keys` for a write under `term`, and then computes its least commit_ts: above `max_ts` and at
    /// or above `least`.
    pub fn publish(self: &Arc<Self>, term: Term, keys: Vec<Key>, owner: LockOwner, least: Timestamp) -> MemoryLocks {
        self.retire_before(term);
        let mut state = self.state.lock();
        self.published.fetch_add(keys.len(), Ordering::SeqCst);
        let max_ts = Timestamp::from_raw(self.max_ts.load(Ordering::SeqCst));
        let min_commit_ts = if max_ts == Timestamp::MAX { max_ts } else { max_ts.next() }.max(least);
        let id = state.next;
        state.next += 1;
        let write = Arc::new(PublishedWrite {
            owner,
            min_commit_ts: AtomicU64::new(min_commit_ts.raw()),
            term,
            index: AtomicU64::new(0),
            is_doubtful: AtomicBool::new(false),
        });
        for key in &keys {
            state.locks.insert((key.clone(), id), Arc::clone(&write));
        }
        if !keys.is_empty() {
            state.writes.insert(id, Arc::clone(&write));
        }
        drop(state);
        MemoryLocks { entry: Arc::clone(self), keys, id, write, keeps: false }
    }
}

/// The locks in memory of one write. Dropping it releases them, unless the outcome of the write is unknown.
pub struct MemoryLocks {
    entry: Arc<RegionConcurrency>,
    keys: Vec<Key>,
    id: u64,
    write: Arc<PublishedWrite>,
    /// Whether the locks stay.
    keeps: bool,
}

impl MemoryLocks {
    /// The least commit_ts of the write.
    pub fn min_commit_ts(&self) -> Timestamp {
        self.write.min_commit_ts()
    }

    /// The write has an entry in the leader's log. A replica that has applied it has the write, or never will.
    pub fn appended(&self, index: LogIndex) {
        self.write.index.store(index.get(), Ordering::SeqCst);
        self.entry.placed.notify_waiters();
    }

    /// A planted bug: the least commit_ts was read before the locks were published.
    #[cfg(feature = "planted-bugs")]
    pub fn lower_min_commit_ts(&mut self, to: Timestamp) {
        self.write.min_commit_ts.store(to.raw(), Ordering::SeqCst);
    }

    /// A planted bug: locks in the map that are not counted.
    #[cfg(feature = "planted-bugs")]
    pub fn set_counted(&self, is_counted: bool) {
        let (published, locks) = (&self.entry.published, self.keys.len());
        if is_counted {
            published.fetch_add(locks, Ordering::SeqCst);
        } else {
            published.fetch_sub(locks, Ordering::SeqCst);
        }
    }

    /// The outcome of the write is unknown: the locks stay until a later term.
    pub fn keep_doubtful(mut self) {
        self.keeps = true;
    }
}

impl Drop for MemoryLocks {
    fn drop(&mut self) {
        if self.keys.is_empty() {
            return;
        }
        let mut state = self.entry.state.lock();
        if self.keeps {
            self.write.is_doubtful.store(true, Ordering::SeqCst);
        } else {
            let mut removed = 0;
            for key in std::mem::take(&mut self.keys) {
                // A later term may have retired it.
                removed += usize::from(state.locks.remove(&(key, self.id)).is_some());
            }
            state.writes.remove(&self.id);
            self.entry.published.fetch_sub(removed, Ordering::SeqCst);
        }
        drop(state);
        self.entry.changed.notify_waiters();
        self.entry.placed.notify_waiters();
    }
}

#[cfg(test)]
mod tests;

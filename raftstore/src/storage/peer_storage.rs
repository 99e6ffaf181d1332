//! A region's Raft log as raft-rs reads it.
//!
//! raft-rs considers entries stable once handed over, long before the log acknowledges them; until then the log cannot
//! read them. So the storage answers from memory for all unacknowledged entries, and for a bounded tail of acknowledged
//! ones, which serves followers that keep up. Old entries for followers that lag are read by another thread
//! (`fetches`), and terms are in memory, so the store thread does not wait for a cold disk. Only committed entries that
//! are to be applied are read here; they are old only after a restart. It never writes: changes leave the peer as
//! [`LogOp`](super::log_op::LogOp)s.

use std::cell::RefCell;
use std::collections::BTreeSet;

use engine::log::{LogEngine, LogError};
use raft::eraftpb::{ConfState, Entry, HardState, Snapshot, SnapshotMetadata};
use raft::{GetEntriesContext, RaftState, Storage, StorageError};

use super::cache::{self, EntryCache};
use super::fetches::{Fetch, Fetches};
use super::log_op::{decode_entry, group};
use super::recover::Recovered;
use super::terms::Terms;
use crate::records::{self, LogPosition};
use crate::region::{LogIndex, Region, RegionId, Term};
use crate::snapshot::SnapshotKey;

/// The snapshot for followers that are too far behind.
#[derive(Debug, Default)]
enum SnapshotSlot {
    #[default]
    None,
    /// Requested by raft-rs; not being built yet.
    Requested,
    Building,
    Ready(Box<Snapshot>),
}

/// See the module documentation.
///
/// Invariants:
/// 1. `start.index <= last`; entries `start.index + 1 ..= last` exist, in the cache or in the log.
/// 2. Every entry that the log has not acknowledged is in the cache.
pub(crate) struct PeerStorage {
    log: LogEngine,
    region: RegionId,
    conf_state: ConfState,
    /// The hard state last handed over by raft-rs.
    hard_state: HardState,
    /// The entry before the first one.
    start: LogPosition,
    last: u64,
    terms: Terms,
    pub(super) cache: EntryCache,
    fetches: RefCell<Fetches>,
    slot: RefCell<SnapshotSlot>,
    /// Replicas that get no snapshot for now.
    deferred: RefCell<BTreeSet<u64>>,
    /// The first read failure of the log. The peer stops at its next check.
    failure: RefCell<Option<String>>,
    appended: AppendedSizes,
}

/// Total size of the entries appended since start, for their mean.
#[derive(Clone, Copy, Debug, Default)]
struct AppendedSizes {
    bytes: u64,
    entries: u64,
}

impl PeerStorage {
    /// Reads a few entries to learn their terms. Fails with a description if the log cannot be read.
    pub(crate) fn new(
        log: LogEngine,
        region: &Region,
        recovered: &Recovered,
        cache_bytes: usize,
    ) -> Result<PeerStorage, String> {
        let term = |index| {
            let bytes = log.entry(group(region.id), index).map_err(|error| format!("entry {index}: {error}"))?;
            decode_entry(index, &bytes).map(|entry| entry.term).map_err(|error| format!("entry {index}: {error}"))
        };
        let terms = Terms::recover(recovered.start, recovered.last.get(), term)?;
        Ok(PeerStorage {
            terms,
            fetches: RefCell::default(),
            log,
            region: region.id,
            conf_state: records::conf_state(region),
            hard_state: recovered.hard_state.clone(),
            start: recovered.start,
            last: recovered.last.get(),
            cache: EntryCache::new(recovered.last.get(), cache_bytes),
            slot: RefCell::default(),
            deferred: RefCell::default(),
            failure: RefCell::default(),
            appended: AppendedSizes::default(),
        })
    }

    pub(crate) fn start(&self) -> LogPosition {
        self.start
    }

    pub(crate) fn last(&self) -> LogIndex {
        LogIndex::new(self.last)
    }

    pub(crate) fn hard_state(&self) -> &HardState {
        &self.hard_state
    }

    pub(crate) fn set_hard_state(&mut self, state: HardState) {
        self.hard_state = state;
    }

    /// Appends entries that go to the log under write number `write`.
    pub(crate) fn append(&mut self, entries: &[Entry], write: u64) {
        let (Some(first), Some(last)) = (entries.first(), entries.last()) else { return };
        if first.index <= self.last {
            self.clear_fetches();
        }
        self.terms.append(entries);
        self.last = last.index;
        self.appended.entries += entries.len() as u64;
        self.appended.bytes += entries.iter().map(|e| e.data.len() as u64 + 16).sum::<u64>();
        self.cache.append(entries, write);
    }

    /// All writes up to and including `write` are durable.
    pub(crate) fn on_durable(&mut self, write: u64) {
        self.cache.on_durable(write);
    }

    /// Restarts the log after a snapshot.
    pub(crate) fn restart(&mut self, start: LogPosition, conf_state: ConfState) {
        self.clear_fetches();
        self.terms = Terms::new(start);
        self.start = start;
        self.last = start.index.get();
        self.conf_state = conf_state;
        self.cache.restart(self.last);
        *self.slot.borrow_mut() = SnapshotSlot::None;
    }

    /// Drops entries up to and including `start`.
    pub(crate) fn truncate(&mut self, start: LogPosition) {
        assert!(self.start.index <= start.index && start.index.get() <= self.last, "truncation within the log");
        self.start = start;
        self.terms.truncate(start.index.get());
        self.cache.truncate(start.index.get());
    }

    /// Estimated bytes of `entries` entries.
    pub(crate) fn estimate_bytes(&self, entries: u64) -> u64 {
        let mean = self.appended.bytes / self.appended.entries.max(1);
        entries.saturating_mul(mean.max(16))
    }

    /// Whether raft-rs has requested a snapshot that is not being built. Marks it as being built.
    pub(crate) fn take_snapshot_request(&self) -> bool {
        let mut slot = self.slot.borrow_mut();
        let requested = matches!(*slot, SnapshotSlot::Requested);
        if requested {
            *slot = SnapshotSlot::Building;
        }
        requested
    }

    /// A snapshot was built, or building it failed.
    pub(crate) fn on_snapshot_built(&self, built: Option<(SnapshotKey, Region)>) {
        *self.slot.borrow_mut() = match built {
            None => SnapshotSlot::None,
            Some((key, region)) => SnapshotSlot::Ready(Box::new(snapshot_message(key, &region))),
        };
    }

    /// The key of the snapshot kept for followers.
    pub(crate) fn kept_snapshot(&self) -> Option<SnapshotKey> {
        match &*self.slot.borrow() {
            SnapshotSlot::Ready(snapshot) => {
                let meta = snapshot.get_metadata();
                let (term, index) = (Term::new(meta.term), LogIndex::new(meta.index));
                Some(SnapshotKey { region: self.region, term, index })
            }
            _ => None,
        }
    }

    /// Sets the replicas that get no snapshot for now, because deliveries to them failed.
    pub(crate) fn set_deferred(&self, replicas: BTreeSet<u64>) {
        *self.deferred.borrow_mut() = replicas;
    }

    /// Releases the snapshot.
    pub(crate) fn drop_snapshot(&self) {
        let mut slot = self.slot.borrow_mut();
        if matches!(*slot, SnapshotSlot::Ready(_)) {
            *slot = SnapshotSlot::None;
        }
    }

    /// Old entries to be read by another thread; each ends with `on_fetched` or `fetch_refused`.
    pub(crate) fn take_fetches(&self) -> Vec<Fetch> {
        self.fetches.borrow_mut().take_requests()
    }

    /// A read could not be started.
    pub(crate) fn fetch_refused(&self, fetch: Fetch) {
        self.fetches.borrow_mut().refused(fetch);
    }

    /// Entries were read. Returns the contexts with which raft-rs must be called.
    pub(crate) fn on_fetched(&self, fetch: Fetch, read: Result<Vec<Entry>, LogError>) -> Vec<raft::GetEntriesContext> {
        if !self.fetches.borrow().is_current(fetch) {
            // The log was overwritten: the entries may be gone, and an error says nothing about the log of now.
            return Vec::new();
        }
        let entries = match read {
            Ok(entries) => entries,
            // Truncated while they were read: raft-rs finds out when it is called.
            Err(LogError::Compacted { .. }) if fetch.low <= self.start.index.get() => Vec::new(),
            Err(error) => {
                let what = format!("cannot read entries {} to {}: {error}", fetch.low, fetch.high);
                self.failure.borrow_mut().get_or_insert(what);
                return Vec::new();
            }
        };
        self.fetches.borrow_mut().finish(fetch, entries)
    }

    /// Forgets the entries read for followers.
    pub(crate) fn clear_fetches(&self) {
        self.fetches.borrow_mut().clear();
    }

    /// A tick has passed.
    pub(crate) fn tick(&self) {
        self.fetches.borrow_mut().tick();
    }

    /// The first read failure of the log.
    pub(crate) fn failure(&self) -> Option<String> {
        self.failure.borrow().clone()
    }

    fn record_failure<T>(&self, what: String) -> raft::Result<T> {
        self.failure.borrow_mut().get_or_insert_with(|| what.clone());
        Err(StorageError::Other(what.into()).into())
    }

    /// Entries `low..high` from the log: at least one, about `max` bytes.
    fn read_log(&self, low: u64, high: u64, max: u64) -> raft::Result<Vec<Entry>> {
        let max = usize::try_from(max).unwrap_or(usize::MAX);
        let raw = match self.log.entries(group(self.region), low, high, max) {
            Ok(raw) => raw,
            Err(LogError::Compacted { .. }) => return Err(StorageError::Compacted.into()),
            Err(error) => {
                return self.record_failure(format!("cannot read entries {low} to {high}: {error}"));
            }
        };
        let mut entries = Vec::with_capacity(raw.len());
        for (index, bytes) in (low..).zip(&raw) {
            match decode_entry(index, bytes) {
                Ok(entry) => entries.push(entry),
                Err(error) => return self.record_failure(format!("entry {index}: {error}")),
            }
        }
        Ok(entries)
    }
}

/// The Raft snapshot message: position, members and the region's descriptor. The rows travel as a file.
pub(crate) fn snapshot_message(key: SnapshotKey, region: &Region) -> Snapshot {
    let metadata = SnapshotMetadata {
        conf_state: Some(records::conf_state(region)),
        index: key.index.get(),
        term: key.term.get(),
    };
    Snapshot { data: records::encode_region(region), metadata: Some(metadata) }
}

impl Storage for PeerStorage {
    fn initial_state(&self) -> raft::Result<RaftState> {
        Ok(RaftState::new(self.hard_state.clone(), self.conf_state.clone()))
    }

    fn entries(
        &self,
        low: u64,
        high: u64,
        max_size: impl Into<Option<u64>>,
        context: GetEntriesContext,
    ) -> raft::Result<Vec<Entry>> {
        if low <= self.start.index.get() {
            return Err(StorageError::Compacted.into());
        }
        let max = max_size.into().unwrap_or(u64::MAX);
        let cached_from = self.cache.first();
        if low >= cached_from {
            return Ok(self.cache.slice(low, high, max));
        }
        if context.can_async() {
            let fetched = self.fetches.borrow_mut().get(low, high.min(cached_from), max, context);
            return fetched.ok_or_else(|| StorageError::LogTemporarilyUnavailable.into());
        }
        let mut entries = self.read_log(low, high.min(cached_from), max)?;
        let next = low + entries.len() as u64;
        let used: u64 = entries.iter().map(cache::size).sum();
        if next == cached_from && next < high && used < max {
            let more = self.cache.slice(next, high, max - used);
            // `slice` returns at least one entry, even if it is too large.
            if more.iter().map(cache::size).sum::<u64>() <= max - used {
                entries.extend(more);
            }
        }
        Ok(entries)
    }

    fn term(&self, index: u64) -> raft::Result<u64> {
        if index == self.start.index.get() {
            return Ok(self.start.term.get());
        }
        if index < self.start.index.get() {
            return Err(StorageError::Compacted.into());
        }
        if index > self.last {
            return Err(StorageError::Unavailable.into());
        }
        Ok(self.terms.get(index))
    }

    fn first_index(&self) -> raft::Result<u64> {
        Ok(self.start.index.get() + 1)
    }

    fn last_index(&self) -> raft::Result<u64> {
        Ok(self.last)
    }

    fn snapshot(&self, request_index: u64, to: u64) -> raft::Result<Snapshot> {
        if self.deferred.borrow().contains(&to) {
            return Err(StorageError::SnapshotTemporarilyUnavailable.into());
        }
        let mut slot = self.slot.borrow_mut();
        match &*slot {
            SnapshotSlot::Ready(snapshot) => {
                let index = snapshot.get_metadata().index;
                // A snapshot from before the log's start would leave the follower with a gap again.
                if index >= request_index && index >= self.start.index.get() {
                    return Ok((**snapshot).clone());
                }
                *slot = SnapshotSlot::Requested;
            }
            SnapshotSlot::None => *slot = SnapshotSlot::Requested,
            SnapshotSlot::Requested | SnapshotSlot::Building => {}
        }
        Err(StorageError::SnapshotTemporarilyUnavailable.into())
    }
}

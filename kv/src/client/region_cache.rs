//! The region cache: which region holds a storage key, under which epoch, and which replica to ask.
//!
//! Pure. It learns from region descriptors (answers to `locate`, the descriptor inside `EpochNotMatch`) and from failed
//! calls, and classifies the retry that a failure deserves. It may be wrong at any time: the server checks the epoch of
//! every request, so a wrong entry costs a round trip and never gives a wrong answer.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use raftstore::{Epoch, PeerRole, Region, RegionContext, RegionError, RegionId, StoreId};

use super::backoff::RetryClass;
use super::endpoint::CallError;
use crate::api::ServerError;

/// Refusals of one replica in a row after which the next replica is asked.
const REFUSALS_MAX: usize = 2;

/// Where to send a request: a region as the cache knows it, and the replica to ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The region.
    pub region: Arc<Region>,
    /// The store of the replica that probably leads the region.
    pub store: StoreId,
    /// Whether a replica failed or refused since the region last served. After a success the caller then calls
    /// [`RegionCache::confirm`].
    pub unproven: bool,
    /// The attempt at this replica: how often in a row it had answered that it cannot serve yet.
    pub attempt: usize,
}

impl Route {
    /// The region and epoch for a request along this route.
    pub fn context(&self) -> RegionContext {
        RegionContext { region: self.region.id, epoch: self.region.epoch }
    }
}

#[derive(Debug)]
struct Entry {
    region: Arc<Region>,
    target: StoreId,
    /// Replicas that failed in a row. Once all voters have failed, the entry is dropped and the region located again.
    failures: usize,
    /// How often in a row the target answered that it cannot serve yet. All requests of one attempt count as one.
    refusals: usize,
    /// Whether the entry was looked up since the eviction hand last passed it.
    used: AtomicBool,
}

impl Entry {
    /// The route, counted as a use.
    fn route(&self) -> Route {
        self.used.store(true, Ordering::Relaxed);
        self.peek()
    }

    /// The route, not counted as a use.
    fn peek(&self) -> Route {
        let unproven = self.failures > 0 || self.refusals > 0;
        Route { region: Arc::clone(&self.region), store: self.target, unproven, attempt: self.refusals }
    }
}

/// The cache. Evicts by the clock algorithm.
///
/// Invariants:
/// 1. No two entries' ranges overlap.
/// 2. `starts` maps every cached region to the key of its only entry.
/// 3. The target of an entry is the store of one of its region's replicas.
/// 4. There are at most `capacity` entries.
#[derive(Debug)]
pub struct RegionCache {
    entries: BTreeMap<Vec<u8>, Entry>,
    starts: HashMap<RegionId, Vec<u8>>,
    capacity: usize,
    /// The clock hand: the start of the entry that was examined last for eviction.
    hand: Vec<u8>,
}

impl RegionCache {
    /// An empty cache for at most `capacity` regions; 0 counts as 1.
    pub fn new(capacity: usize) -> RegionCache {
        RegionCache { entries: BTreeMap::new(), starts: HashMap::new(), capacity: capacity.max(1), hand: Vec::new() }
    }

    /// The number of cached regions.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no region is cached.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The route to the region that holds a storage key.
    pub fn lookup(&self, key: &[u8]) -> Option<Route> {
        let (_, entry) = self.entries.range::<[u8], _>((Bound::Unbounded, Bound::Included(key))).next_back()?;
        entry.region.contains(key).then(|| entry.route())
    }

    /// The store and the context of [`RegionCache::lookup`], if the replica is known to serve.
    pub fn lookup_proven(&self, key: &[u8]) -> Option<(StoreId, RegionContext)> {
        let (_, entry) = self.entries.range::<[u8], _>((Bound::Unbounded, Bound::Included(key))).next_back()?;
        if entry.failures > 0 || entry.refusals > 0 || !entry.region.contains(key) {
            return None;
        }
        entry.used.store(true, Ordering::Relaxed);
        Some((entry.target, RegionContext { region: entry.region.id, epoch: entry.region.epoch }))
    }

    /// The route to the region that holds the last keys before `bound`. An empty bound means "after every key".
    pub fn lookup_before(&self, bound: &[u8]) -> Option<Route> {
        let upper = if bound.is_empty() { Bound::Unbounded } else { Bound::Excluded(bound) };
        let (_, entry) = self.entries.range::<[u8], _>((Bound::Unbounded, upper)).next_back()?;
        extends_to(&entry.region, bound).then(|| entry.route())
    }

    /// Adds a region, and its leader if known. Entries that overlap it are dropped. Returns false, and changes nothing,
    /// if the descriptor is malformed or older than a cached one. Without a known leader the entry keeps its target, or
    /// takes the first voter.
    pub fn insert(&mut self, region: Region, leader: Option<StoreId>) -> bool {
        let well_formed = region.end.is_empty() || region.start < region.end;
        let Some(fallback) = first_voter(&region) else { return false };
        if !well_formed {
            return false;
        }
        let old = self.starts.get(&region.id).and_then(|start| self.entries.get(start));
        if old.is_some_and(|old| is_newer(old.region.epoch, region.epoch)) {
            return false;
        }
        let kept = old.map(|old| old.target).filter(|store| region.peer_on(*store).is_some());
        let overlapping = self.overlapping(&region);
        if overlapping.iter().any(|other| other.id != region.id && other.epoch.version > region.epoch.version) {
            return false;
        }
        let stale: Vec<RegionId> = overlapping.iter().map(|other| other.id).chain([region.id]).collect();
        for id in stale {
            self.invalidate(id);
        }
        let target = leader.filter(|store| region.peer_on(*store).is_some()).or(kept).unwrap_or(fallback);
        self.evict_if_full();
        self.starts.insert(region.id, region.start.clone());
        let entry = Entry { region: Arc::new(region), target, failures: 0, refusals: 0, used: AtomicBool::new(true) };
        self.entries.insert(entry.region.start.clone(), entry);
        true
    }

    /// Learns the region that a replica beside the target named in place of the one of `route`. Returns false, and
    /// changes nothing, if it is not newer: the replica lags.
    pub fn learn_newer(&mut self, route: &Route, current: &Region) -> bool {
        if current.epoch.version <= route.region.epoch.version {
            return false;
        }
        self.insert(Region::clone(current), None);
        if current.id != route.region.id {
            self.invalidate(route.region.id);
        }
        true
    }

    /// Drops a region.
    pub fn invalidate(&mut self, id: RegionId) {
        if let Some(start) = self.starts.remove(&id) {
            self.entries.remove(&start);
        }
    }

    /// Records that a replica served: resets the counts of failed replicas and of refusals.
    pub fn confirm(&mut self, id: RegionId) {
        if let Some(entry) = self.entry_mut(id) {
            (entry.failures, entry.refusals) = (0, 0);
        }
    }

    /// Learns from a call along `route` that failed. Returns the class of the retry, or `None` if a retry cannot help.
    pub fn on_failure(&mut self, route: &Route, error: &CallError) -> Option<RetryClass> {
        match error {
            CallError::Unreachable { .. } => {
                self.rotate(route);
                Some(RetryClass::Unreachable)
            }
            CallError::Lost { .. } => {
                self.rotate(route);
                Some(RetryClass::Lost)
            }
            CallError::Server(ServerError::Region(error)) => Some(self.on_region_error(route, error)),
            CallError::Server(ServerError::Undetermined(_)) => Some(RetryClass::Lost),
            CallError::Server(ServerError::Failed(_)) => {
                self.rotate(route);
                Some(RetryClass::Failed)
            }
            // The replica served as a leader.
            CallError::Server(ServerError::Key(_) | ServerError::TooLarge { .. } | ServerError::Invalid(_)) => None,
        }
    }

    fn on_region_error(&mut self, route: &Route, error: &RegionError) -> RetryClass {
        match error {
            RegionError::NotLeader { leader: Some(leader), .. } => {
                self.set_leader(route, leader.store);
                RetryClass::Moved
            }
            RegionError::NotLeader { leader: None, .. } => {
                self.rotate(route);
                RetryClass::NoLeader
            }
            RegionError::RegionNotFound { .. } => {
                // The replica was removed or is not created yet. The others may still serve under this epoch.
                self.rotate(route);
                RetryClass::Stale
            }
            RegionError::EpochNotMatch { current } => {
                // The store that answered led the new region a moment ago, unless it is no longer a member.
                if !self.insert(Region::clone(current), Some(route.store)) {
                    self.rotate(route);
                } else if current.id != route.region.id {
                    self.invalidate(route.region.id);
                }
                RetryClass::Stale
            }
            RegionError::KeyNotInRegion { .. } => {
                self.invalidate(route.region.id);
                RetryClass::Stale
            }
            RegionError::ServerBusy { .. } => RetryClass::Busy,
            RegionError::StaleCommand { .. } | RegionError::NotReady { .. } => {
                self.on_refusal(route);
                RetryClass::NoLeader
            }
        }
    }

    /// Counts an answer of a target that cannot serve yet. A leader is usually ready at the next attempt. A store that
    /// cannot serve for long, or for good, refuses again; then the other replicas are asked. The requests that were in
    /// flight together are one attempt: only the first refusal of it counts.
    fn on_refusal(&mut self, route: &Route) {
        let current = |entry: &&mut Entry| entry.target == route.store && entry.refusals == route.attempt;
        let Some(entry) = self.entry_mut(route.region.id).filter(current) else { return };
        entry.refusals = entry.refusals.saturating_add(1);
        if entry.refusals >= REFUSALS_MAX {
            self.rotate(route);
        }
    }

    /// Points the entry at the leader that a replica named. A leader on an unknown store means that the membership
    /// changed, so the entry is dropped and the region located again.
    fn set_leader(&mut self, route: &Route, leader: StoreId) {
        let Some(entry) = self.entry_mut(route.region.id) else { return };
        if entry.region.peer_on(leader).is_some() {
            (entry.target, entry.refusals) = (leader, 0);
        } else if !is_newer(entry.region.epoch, route.region.epoch) {
            self.invalidate(route.region.id);
        }
    }

    /// Points the entry at the next voter after a replica failed. After one full round without a success the entry is
    /// dropped, so that other stores are asked for the region.
    fn rotate(&mut self, route: &Route) {
        let Some(entry) = self.entry_mut(route.region.id) else { return };
        if entry.target != route.store {
            return;
        }
        let voters: Vec<StoreId> =
            entry.region.peers.iter().filter(|p| p.role == PeerRole::Voter).map(|p| p.store).collect();
        entry.failures = entry.failures.saturating_add(1);
        if entry.failures >= voters.len() {
            self.invalidate(route.region.id);
            return;
        }
        let at = voters.iter().position(|store| *store == route.store).map_or(0, |at| at + 1);
        if let Some(next) = voters.get(at % voters.len()) {
            (entry.target, entry.refusals) = (*next, 0);
        }
    }

    fn entry_mut(&mut self, id: RegionId) -> Option<&mut Entry> {
        self.entries.get_mut(self.starts.get(&id)?)
    }

    /// The cached regions that overlap `region`.
    fn overlapping(&self, region: &Region) -> Vec<Arc<Region>> {
        let upper = if region.end.is_empty() { Bound::Unbounded } else { Bound::Excluded(region.end.as_slice()) };
        self.entries
            .range::<[u8], _>((Bound::Unbounded, upper))
            .rev()
            .map(|(_, entry)| &entry.region)
            .take_while(|other| other.end.is_empty() || other.end > region.start)
            .map(Arc::clone)
            .collect()
    }

    /// If the cache is full, evicts the next entry after the hand that was not used since the hand last passed it.
    fn evict_if_full(&mut self) {
        while self.entries.len() >= self.capacity {
            let next = self
                .entries
                .range::<[u8], _>((Bound::Excluded(self.hand.as_slice()), Bound::Unbounded))
                .next()
                .or_else(|| self.entries.iter().next())
                .map(|(start, entry)| (start.clone(), entry.region.id, entry.used.swap(false, Ordering::Relaxed)));
            let Some((start, id, used)) = next else { return };
            self.hand = start;
            if !used {
                self.invalidate(id);
            }
        }
    }

    /// The routes of all entries, in key order, not counted as uses. For the cache's own tests, which show its state.
    pub fn routes(&self) -> impl Iterator<Item = Route> + '_ {
        self.entries.values().map(Entry::peek)
    }

    /// Panics if an invariant does not hold. For the cache's own tests, which call it after every step.
    pub fn check(&self) {
        assert!(self.entries.len() <= self.capacity, "more regions than the capacity");
        assert_eq!(self.entries.len(), self.starts.len(), "one entry per region");
        let mut last_end: Option<&[u8]> = None;
        for (start, entry) in &self.entries {
            assert_eq!(start, &entry.region.start, "an entry is filed under its region's start");
            assert_eq!(self.starts.get(&entry.region.id), Some(start), "`starts` names the entry");
            assert!(entry.region.peer_on(entry.target).is_some(), "the target is a replica");
            assert!(last_end.is_none_or(|end| !end.is_empty() && end <= start.as_slice()), "ranges overlap");
            last_end = Some(&entry.region.end);
        }
    }
}

/// Whether the end of the region is at or after `bound`. An empty bound means "after every key".
pub(super) fn extends_to(region: &Region, bound: &[u8]) -> bool {
    region.end.is_empty() || (!bound.is_empty() && region.end.as_slice() >= bound)
}

/// Whether `a` is a newer epoch of a region than `b`.
pub(super) fn is_newer(a: Epoch, b: Epoch) -> bool {
    (a.version, a.conf_ver) > (b.version, b.conf_ver)
}

fn first_voter(region: &Region) -> Option<StoreId> {
    region.peers.iter().find(|p| p.role == PeerRole::Voter).map(|p| p.store)
}

//! The regions of a [`super::MemoryCluster`]: their ranges, epochs and leaders.

use std::collections::BTreeMap;
use std::ops::Bound;

use raftstore::{
    Epoch, Floors, LogIndex, PeerId, PeerMeta, PeerRole, Region, RegionContext, RegionError, RegionId, RegionStatus,
    StoreId, Term,
};

use crate::key::Key;

/// The regions, by their first storage key.
///
/// Invariants:
/// 1. Regions do not overlap and together cover every key.
/// 2. Every region has a voter on every store, and one of them leads.
pub(super) struct Topology {
    stores: u64,
    regions: BTreeMap<Vec<u8>, RegionState>,
    next_region: u64,
    next_peer: u64,
}

struct RegionState {
    region: Region,
    leader: StoreId,
    term: Term,
    floors: Floors,
}

impl Topology {
    /// Regions between `splits`, on stores numbered from 1. Leaders are assigned round-robin.
    pub(super) fn new(stores: u64, splits: &[Key]) -> Topology {
        let first = RegionId::FIRST_DATA.get();
        let mut topology = Topology { stores, regions: BTreeMap::new(), next_region: first, next_peer: 1 };
        let leader = StoreId::new(1);
        let region = topology.new_region(Vec::new(), Vec::new(), Epoch { conf_ver: 1, version: 1 });
        topology
            .regions
            .insert(Vec::new(), RegionState { region, leader, term: Term::new(1), floors: Floors::default() });
        for key in splits {
            topology.split(&key.to_storage());
        }
        for (state, store) in topology.regions.values_mut().zip((1..=stores).cycle()) {
            state.leader = StoreId::new(store);
        }
        topology
    }

    pub(super) fn stores(&self) -> Vec<StoreId> {
        (1..=self.stores).map(StoreId::new).collect()
    }

    pub(super) fn regions(&self) -> Vec<RegionStatus> {
        self.regions.values().map(|state| status(state, state.leader)).collect()
    }

    /// The regions as `store` sees them.
    pub(super) fn regions_on(&self, store: StoreId) -> Vec<RegionStatus> {
        self.regions.values().map(|state| status(state, store)).collect()
    }

    pub(super) fn locate(&self, store: StoreId, key: &[u8]) -> Option<RegionStatus> {
        self.stores().contains(&store).then(|| status(self.region_at(key), store))
    }

    /// The region and its term, if `store` may serve it now.
    pub(super) fn check(&self, store: StoreId, context: RegionContext) -> Result<(Region, Term), RegionError> {
        let region = context.region;
        let Some(state) =
            self.regions.values().find(|state| state.region.id == region && self.stores().contains(&store))
        else {
            return Err(RegionError::RegionNotFound { region, store });
        };
        if state.leader != store {
            return Err(RegionError::NotLeader { region, leader: state.region.peer_on(state.leader) });
        }
        if state.region.epoch != context.epoch {
            return Err(RegionError::EpochNotMatch { current: Box::new(state.region.clone()) });
        }
        Ok((state.region.clone(), state.term))
    }

    /// The leader of the region with this id.
    pub(super) fn leader(&self, id: RegionId) -> Option<StoreId> {
        self.regions.values().find(|state| state.region.id == id).map(|state| state.leader)
    }

    /// The region with this id.
    pub(super) fn region(&self, id: RegionId) -> Option<&Region> {
        self.regions.values().map(|state| &state.region).find(|region| region.id == id)
    }

    pub(super) fn floors(&self, id: RegionId) -> Floors {
        let found = self.regions.values().find(|state| state.region.id == id);
        found.map_or_else(Floors::default, |state| state.floors)
    }

    pub(super) fn raise_floors(&mut self, id: RegionId, floors: Floors) {
        for state in self.regions.values_mut().filter(|state| state.region.id == id) {
            state.floors = state.floors.raised_to(floors);
        }
    }

    /// Splits a region at `key`. The right part is a new region with the same leader.
    pub(super) fn split(&mut self, key: &[u8]) {
        let parent = self.region_at(key);
        if parent.region.start == key {
            return;
        }
        let (start, end) = (parent.region.start.clone(), parent.region.end.clone());
        let (leader, term, floors) = (parent.leader, parent.term, parent.floors);
        let epoch = Epoch { version: parent.region.epoch.version + 1, ..parent.region.epoch };
        let right = self.new_region(key.to_vec(), end, epoch);
        self.regions.insert(key.to_vec(), RegionState { region: right, leader, term, floors });
        if let Some(left) = self.regions.get_mut(&start) {
            left.region.end = key.to_vec();
            left.region.epoch = epoch;
        }
    }

    pub(super) fn move_leader(&mut self, key: &[u8], to: StoreId) {
        let id = self.region_at(key).region.id;
        self.move_leader_of(id, to);
    }

    pub(super) fn move_leader_of(&mut self, id: RegionId, to: StoreId) {
        let known = self.stores().contains(&to);
        for state in self.regions.values_mut().filter(|state| known && state.region.id == id && state.leader != to) {
            state.leader = to;
            state.term = Term::new(state.term.get() + 1);
        }
    }

    fn region_at(&self, key: &[u8]) -> &RegionState {
        let Some((_, state)) = self.regions.range::<[u8], _>((Bound::Unbounded, Bound::Included(key))).next_back()
        else {
            panic!("the first region starts before every key")
        };
        state
    }

    fn new_region(&mut self, start: Vec<u8>, end: Vec<u8>, epoch: Epoch) -> Region {
        let id = RegionId::new(self.next_region);
        self.next_region += 1;
        let first_peer = self.next_peer;
        self.next_peer += self.stores;
        let peers = (1..=self.stores).map(|store| PeerMeta {
            id: PeerId::new(first_peer + store - 1),
            store: StoreId::new(store),
            role: PeerRole::Voter,
        });
        Region { id, start, end, epoch, peers: peers.collect() }
    }
}

fn status(state: &RegionState, store: StoreId) -> RegionStatus {
    RegionStatus {
        region: state.region.clone(),
        leader: state.region.peer_on(state.leader),
        term: state.term,
        applied: LogIndex::new(1),
        is_leader: state.leader == store,
    }
}

//! Which regions there are, and who leads them.

use std::collections::BTreeMap;
use std::ops::Bound;

use raftstore::{
    Epoch, LogIndex, PeerId, PeerMeta, PeerRole, Region, RegionError, RegionId, RegionStatus, StoreId, Term,
};

use crate::api::Request;
use crate::key::Key;

/// The regions by their first storage key; together they cover every key.
///
/// Invariants: regions are adjacent and do not overlap; every region has a voter on every store, and its leader is one of them.
pub(super) struct Topology {
    stores: u64,
    regions: BTreeMap<Vec<u8>, Led>,
    next_region: u64,
    next_peer: u64,
}

struct Led {
    region: Region,
    leader: StoreId,
    term: Term,
}

impl Topology {
    /// Regions between `splits` on stores numbered from 1, led by one store after the other.
    pub(super) fn new(stores: u64, splits: &[Key]) -> Topology {
        let first = RegionId::FIRST_DATA.get();
        let mut topology = Topology { stores, regions: BTreeMap::new(), next_region: first, next_peer: 1 };
        let leader = StoreId::new(1);
        let region = topology.new_region(Vec::new(), Vec::new(), Epoch { conf_ver: 1, version: 1 });
        topology.regions.insert(Vec::new(), Led { region, leader, term: Term::new(1) });
        for key in splits {
            topology.split(&key.to_storage());
        }
        for (led, store) in topology.regions.values_mut().zip((1..=stores).cycle()) {
            led.leader = StoreId::new(store);
        }
        topology
    }

    pub(super) fn stores(&self) -> Vec<StoreId> {
        (1..=self.stores).map(StoreId::new).collect()
    }

    pub(super) fn regions(&self) -> Vec<RegionStatus> {
        self.regions.values().map(|led| status(led, led.leader)).collect()
    }

    pub(super) fn locate(&self, store: StoreId, key: &[u8]) -> Option<RegionStatus> {
        self.stores().contains(&store).then(|| status(self.holding(key), store))
    }

    /// Whether `store` may serve the request now; if so, the region.
    pub(super) fn check(&self, store: StoreId, request: &Request) -> Result<Region, RegionError> {
        let region = request.context.region;
        let Some(led) = self.regions.values().find(|led| led.region.id == region && self.stores().contains(&store))
        else {
            return Err(RegionError::RegionNotFound { region, store });
        };
        if led.leader != store {
            return Err(RegionError::NotLeader { region, leader: led.region.peer_on(led.leader) });
        }
        if led.region.epoch != request.context.epoch {
            return Err(RegionError::EpochNotMatch { current: Box::new(led.region.clone()) });
        }
        request.body.check_range(&led.region)?;
        Ok(led.region.clone())
    }

    /// The region of that id, if there is one.
    pub(super) fn region(&self, id: RegionId) -> Option<&Region> {
        self.regions.values().map(|led| &led.region).find(|region| region.id == id)
    }

    /// The right part becomes a new region, led by the same store.
    pub(super) fn split(&mut self, key: &[u8]) {
        let holding = self.holding(key);
        if holding.region.start == key {
            return;
        }
        let (start, end) = (holding.region.start.clone(), holding.region.end.clone());
        let (leader, term) = (holding.leader, holding.term);
        let epoch = Epoch { version: holding.region.epoch.version + 1, ..holding.region.epoch };
        let right = self.new_region(key.to_vec(), end, epoch);
        self.regions.insert(key.to_vec(), Led { region: right, leader, term });
        if let Some(left) = self.regions.get_mut(&start) {
            left.region.end = key.to_vec();
            left.region.epoch = epoch;
        }
    }

    pub(super) fn move_leader(&mut self, key: &[u8], to: StoreId) {
        let id = self.holding(key).region.id;
        self.move_leader_of(id, to);
    }

    pub(super) fn move_leader_of(&mut self, id: RegionId, to: StoreId) {
        let known = self.stores().contains(&to);
        for led in self.regions.values_mut().filter(|led| known && led.region.id == id && led.leader != to) {
            led.leader = to;
            led.term = Term::new(led.term.get() + 1);
        }
    }

    fn holding(&self, key: &[u8]) -> &Led {
        let Some((_, led)) = self.regions.range::<[u8], _>((Bound::Unbounded, Bound::Included(key))).next_back() else {
            panic!("the first region starts before every key")
        };
        led
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

fn status(led: &Led, store: StoreId) -> RegionStatus {
    RegionStatus {
        region: led.region.clone(),
        leader: led.region.peer_on(led.leader),
        term: led.term,
        applied: LogIndex::new(1),
        is_leader: led.leader == store,
    }
}

//! The cluster as heartbeats describe it.
//!
//! Each store reports itself and its replicas about once a second. Reports of one region may contradict each other for
//! a while (an old leader that does not know yet): the higher epoch wins, then the higher term.

use std::collections::BTreeMap;
use std::time::Duration;

use raftstore::{LogIndex, Region, RegionId, StoreId, Term};

/// Moments on the clock of the node that keeps the view; only differences matter.
pub type ViewTime = Duration;

/// A store's report about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heartbeat {
    /// The store.
    pub store: StoreId,
    /// Where other nodes reach it.
    pub address: String,
    /// Where PostgreSQL clients reach it.
    pub pg_address: String,
    /// Where it stands.
    pub locality: String,
    /// The program's version.
    pub version: String,
    /// Its replicas.
    pub regions: Vec<RegionReport>,
}

/// A store's report about one replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionReport {
    /// The descriptor as the replica knows it.
    pub region: Region,
    /// The replica's term.
    pub term: Term,
    /// Whether it leads.
    pub leads: bool,
    /// How far it has applied.
    pub applied: LogIndex,
}

/// Whether a store is heard from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Liveness {
    /// Reported within [`ClusterView::ALIVE_WITHIN`].
    Alive,
    /// Silent for longer; the time since its last report.
    Silent(Duration),
    /// Registered, but silent since this view began.
    Unknown,
}

/// What is known of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreEntry {
    /// Its last report, without the replicas; empty texts where only the registration is known.
    pub heartbeat: Heartbeat,
    /// When it came; `None` if never under this view.
    last_seen: Option<ViewTime>,
    /// How many replicas it holds.
    pub replicas: usize,
    /// How many of them lead.
    pub leaders: usize,
}

/// What is known of a region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionEntry {
    /// The newest descriptor seen.
    pub region: Region,
    /// The newest term in which somebody led, and who.
    pub leader: Option<(Term, StoreId)>,
    /// How far each store's replica has applied.
    pub applied: BTreeMap<StoreId, LogIndex>,
}

/// The view of one leader of the system region, from the moment it took over.
///
/// Invariants:
/// 1. a region's descriptor never goes back to an older epoch;
/// 2. a region's leader never goes back to an older term.
#[derive(Clone, Debug, Default)]
pub struct ClusterView {
    stores: BTreeMap<StoreId, StoreEntry>,
    regions: BTreeMap<RegionId, RegionEntry>,
}

impl ClusterView {
    /// A store that has not reported for this long counts as silent: five missed reports.
    pub const ALIVE_WITHIN: Duration = Duration::from_secs(5);

    /// A view that knows nothing yet.
    pub fn new() -> ClusterView {
        ClusterView::default()
    }

    /// Takes in a registered store, so that one that never reports is seen as missing.
    pub fn registered(&mut self, store: StoreId, address: &str, locality: &str) {
        self.stores.entry(store).or_insert_with(|| StoreEntry {
            heartbeat: Heartbeat {
                store,
                address: address.to_string(),
                pg_address: String::new(),
                locality: locality.to_string(),
                version: String::new(),
                regions: Vec::new(),
            },
            last_seen: None,
            replicas: 0,
            leaders: 0,
        });
    }

    /// Drops a store that was registered and will never report.
    pub fn forget(&mut self, store: StoreId) {
        self.stores.remove(&store);
    }

    /// Takes in a report that arrived at `now`.
    pub fn heartbeat(&mut self, mut heartbeat: Heartbeat, now: ViewTime) {
        let reports = std::mem::take(&mut heartbeat.regions);
        let store = heartbeat.store;
        let entry = StoreEntry {
            last_seen: Some(now),
            replicas: reports.len(),
            leaders: reports.iter().filter(|r| r.leads).count(),
            heartbeat,
        };
        self.stores.insert(store, entry);
        for report in reports {
            self.report(store, report);
        }
    }

    fn report(&mut self, store: StoreId, report: RegionReport) {
        let entry = self.regions.entry(report.region.id).or_insert_with(|| RegionEntry {
            region: report.region.clone(),
            leader: None,
            applied: BTreeMap::new(),
        });
        let (old, new) = (entry.region.epoch, report.region.epoch);
        if (new.version, new.conf_ver) > (old.version, old.conf_ver) {
            let members: Vec<StoreId> = report.region.peers.iter().map(|p| p.store).collect();
            entry.applied.retain(|store, _| members.contains(store));
            entry.region = report.region;
        }
        entry.applied.insert(store, report.applied);
        if report.leads && entry.leader.is_none_or(|(term, _)| report.term >= term) {
            entry.leader = Some((report.term, store));
        }
    }

    /// Whether a store is heard from at `now`.
    pub fn liveness(&self, store: StoreId, now: ViewTime) -> Liveness {
        match self.stores.get(&store).and_then(|entry| entry.last_seen) {
            None => Liveness::Unknown,
            Some(seen) => match now.saturating_sub(seen) {
                silent if silent <= Self::ALIVE_WITHIN => Liveness::Alive,
                silent => Liveness::Silent(silent),
            },
        }
    }

    /// All stores, by id.
    pub fn stores(&self) -> impl Iterator<Item = &StoreEntry> {
        self.stores.values()
    }

    /// All regions, by id.
    pub fn regions(&self) -> impl Iterator<Item = &RegionEntry> {
        self.regions.values()
    }
}

#[cfg(test)]
mod tests {
    use raftstore::{Epoch, PeerId, PeerMeta, PeerRole};

    use super::*;

    fn region(version: u64, stores: &[u64]) -> Region {
        let peers = stores.iter().map(|s| PeerMeta {
            id: PeerId::new(100 + s),
            store: StoreId::new(*s),
            role: PeerRole::Voter,
        });
        Region {
            id: RegionId::new(2),
            start: vec![],
            end: vec![],
            epoch: Epoch { conf_ver: 1, version },
            peers: peers.collect(),
        }
    }

    fn beat(store: u64, version: u64, term: u64, leads: bool) -> Heartbeat {
        Heartbeat {
            store: StoreId::new(store),
            address: format!("node-{store}"),
            pg_address: String::new(),
            locality: String::new(),
            version: String::new(),
            regions: vec![RegionReport {
                region: region(version, &[1, 2, 3]),
                term: Term::new(term),
                leads,
                applied: LogIndex::new(7),
            }],
        }
    }

    fn only_region(view: &ClusterView) -> &RegionEntry {
        view.regions().next().unwrap()
    }

    #[test]
    fn an_old_leader_does_not_take_the_region_back() {
        let mut view = ClusterView::new();
        view.heartbeat(beat(2, 1, 6, true), Duration::from_secs(1));
        view.heartbeat(beat(1, 1, 5, true), Duration::from_secs(2));
        assert_eq!(only_region(&view).leader, Some((Term::new(6), StoreId::new(2))));
    }

    #[test]
    fn an_old_descriptor_does_not_come_back() {
        let mut view = ClusterView::new();
        view.heartbeat(beat(1, 4, 5, true), Duration::ZERO);
        view.heartbeat(beat(2, 3, 5, false), Duration::ZERO);
        assert_eq!(only_region(&view).region.epoch.version, 4);
    }

    #[test]
    fn silence_is_noticed() {
        let mut view = ClusterView::new();
        let store = StoreId::new(1);
        view.registered(store, "node-1", "");
        assert_eq!(view.liveness(store, Duration::from_secs(9)), Liveness::Unknown);
        view.heartbeat(beat(1, 1, 1, false), Duration::from_secs(10));
        assert_eq!(view.liveness(store, Duration::from_secs(15)), Liveness::Alive);
        assert_eq!(view.liveness(store, Duration::from_secs(16)), Liveness::Silent(Duration::from_secs(6)));
        view.registered(store, "elsewhere", "");
        assert_eq!(view.liveness(store, Duration::from_secs(15)), Liveness::Alive, "a registration overwrites nothing");
        view.forget(store);
        assert_eq!(view.stores().count(), 0);
    }
}

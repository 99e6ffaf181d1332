//! The cluster view: stores and regions as their heartbeats describe them.
//!
//! Each store reports itself and its replicas about once a second. Reports about one region may contradict each other
//! for a while, for example those of a deposed leader: the higher epoch wins, then the higher term.

use std::collections::BTreeMap;
use std::time::Duration;

use raftstore::{LogIndex, Region, RegionId, StoreId, Term};
use tso::Timestamp;

/// A time on the monotonic clock of the node that keeps the view. Only differences matter.
pub type ViewTime = Duration;

/// How far the transactions of a node look back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Oldest {
    /// No transaction of the node, now or later, reads below it or has a smaller start_ts.
    pub bound: Timestamp,
    /// The session of the transaction that it is the bound of; `None` if there is none.
    pub session: Option<u32>,
}

/// A store's report about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heartbeat {
    /// The store.
    pub store: StoreId,
    /// The address for other nodes.
    pub address: String,
    /// The address for PostgreSQL clients.
    pub pg_address: String,
    /// The locality of the node, as configured.
    pub locality: String,
    /// The version of the program.
    pub version: String,
    /// How far its transactions look back. `None`: it does not know yet, or its version does not say.
    pub oldest: Option<Oldest>,
    /// The replicas on the store.
    pub regions: Vec<RegionReport>,
}

/// A store's report about one replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionReport {
    /// The descriptor as the replica knows it.
    pub region: Region,
    /// The replica's term.
    pub term: Term,
    /// Whether the replica leads the region.
    pub leads: bool,
    /// The replica's applied index.
    pub applied: LogIndex,
    /// How far its safe_ts is behind the oracle's time; `None` where the region is led, or if it has none.
    pub behind: Option<Duration>,
}

/// Whether a store sends heartbeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Liveness {
    /// The last heartbeat is at most [`ClusterView::ALIVE_WITHIN`] old.
    Alive,
    /// The last heartbeat is older; holds its age.
    Silent(Duration),
    /// Registered, but no heartbeat has arrived since this view began.
    Unknown,
}

/// A store in the view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreEntry {
    /// The last heartbeat, without the replicas. If only the registration is known, its other strings are empty.
    pub heartbeat: Heartbeat,
    /// When the last heartbeat arrived; `None` if none has under this view.
    last_seen: Option<ViewTime>,
    /// The number of replicas on the store.
    pub replicas: usize,
    /// The number of these replicas that lead.
    pub leaders: usize,
}

impl StoreEntry {
    /// When its last heartbeat arrived; `None` if none has under this view.
    pub fn last_seen(&self) -> Option<ViewTime> {
        self.last_seen
    }
}

/// A region in the view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionEntry {
    /// The descriptor with the highest epoch seen.
    pub region: Region,
    /// The highest term with a known leader, and the leader's store.
    pub leader: Option<(Term, StoreId)>,
    /// The applied index of each store's replica, and how far its safe_ts is behind.
    pub applied: BTreeMap<StoreId, (LogIndex, Option<Duration>)>,
}

/// The view of one leader of the system region, from the start of its leadership.
///
/// Invariants:
/// 1. A region's descriptor never returns to an older epoch.
/// 2. A region's leader never returns to an older term.
#[derive(Clone, Debug, Default)]
pub struct ClusterView {
    stores: BTreeMap<StoreId, StoreEntry>,
    regions: BTreeMap<RegionId, RegionEntry>,
}

impl ClusterView {
    /// A store whose last heartbeat is older is silent. Equals five missed heartbeats.
    pub const ALIVE_WITHIN: Duration = Duration::from_secs(5);

    /// An empty view.
    pub fn new() -> ClusterView {
        ClusterView::default()
    }

    /// Adds a registered store, so that a store that never reports shows as [`Liveness::Unknown`]. Does nothing if the
    /// store is in the view already.
    pub fn add_registered(&mut self, store: StoreId, address: &str, locality: &str) {
        self.stores.entry(store).or_insert_with(|| StoreEntry {
            heartbeat: Heartbeat {
                store,
                address: address.to_string(),
                pg_address: String::new(),
                locality: locality.to_string(),
                version: String::new(),
                oldest: None,
                regions: Vec::new(),
            },
            last_seen: None,
            replicas: 0,
            leaders: 0,
        });
    }

    /// Removes a registered store that will never report.
    pub fn remove(&mut self, store: StoreId) {
        self.stores.remove(&store);
    }

    /// Applies a heartbeat that arrived at `now`.
    pub fn apply_heartbeat(&mut self, mut heartbeat: Heartbeat, now: ViewTime) {
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
            self.apply_report(store, report);
        }
    }

    fn apply_report(&mut self, store: StoreId, report: RegionReport) {
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
        entry.applied.insert(store, (report.applied, report.behind));
        if report.leads && entry.leader.is_none_or(|(term, _)| report.term >= term) {
            entry.leader = Some((report.term, store));
        }
    }

    /// Whether a store is alive at `now`.
    pub fn liveness(&self, store: StoreId, now: ViewTime) -> Liveness {
        match self.stores.get(&store).and_then(|entry| entry.last_seen) {
            None => Liveness::Unknown,
            Some(seen) => match now.saturating_sub(seen) {
                silent if silent <= Self::ALIVE_WITHIN => Liveness::Alive,
                silent => Liveness::Silent(silent),
            },
        }
    }

    /// All stores, in the order of their ids.
    pub fn stores(&self) -> impl Iterator<Item = &StoreEntry> {
        self.stores.values()
    }

    /// All regions, in the order of their ids.
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

    fn heartbeat(store: u64, version: u64, term: u64, leads: bool) -> Heartbeat {
        Heartbeat {
            store: StoreId::new(store),
            address: format!("node-{store}"),
            pg_address: String::new(),
            locality: String::new(),
            version: String::new(),
            oldest: None,
            regions: vec![RegionReport {
                region: region(version, &[1, 2, 3]),
                term: Term::new(term),
                leads,
                applied: LogIndex::new(7),
                behind: None,
            }],
        }
    }

    fn only_region(view: &ClusterView) -> &RegionEntry {
        view.regions().next().unwrap()
    }

    #[test]
    fn a_leader_of_an_older_term_does_not_replace_a_newer_one() {
        let mut view = ClusterView::new();
        view.apply_heartbeat(heartbeat(2, 1, 6, true), Duration::from_secs(1));
        view.apply_heartbeat(heartbeat(1, 1, 5, true), Duration::from_secs(2));
        assert_eq!(only_region(&view).leader, Some((Term::new(6), StoreId::new(2))));
    }

    #[test]
    fn a_descriptor_of_an_older_epoch_does_not_replace_a_newer_one() {
        let mut view = ClusterView::new();
        view.apply_heartbeat(heartbeat(1, 4, 5, true), Duration::ZERO);
        view.apply_heartbeat(heartbeat(2, 3, 5, false), Duration::ZERO);
        assert_eq!(only_region(&view).region.epoch.version, 4);
    }

    #[test]
    fn liveness_follows_the_age_of_the_last_heartbeat() {
        let mut view = ClusterView::new();
        let store = StoreId::new(1);
        view.add_registered(store, "node-1", "");
        assert_eq!(view.liveness(store, Duration::from_secs(9)), Liveness::Unknown);
        view.apply_heartbeat(heartbeat(1, 1, 1, false), Duration::from_secs(10));
        assert_eq!(view.liveness(store, Duration::from_secs(15)), Liveness::Alive);
        assert_eq!(view.liveness(store, Duration::from_secs(16)), Liveness::Silent(Duration::from_secs(6)));
        view.add_registered(store, "elsewhere", "");
        assert_eq!(view.liveness(store, Duration::from_secs(15)), Liveness::Alive, "a registration overwrites nothing");
        view.remove(store);
        assert_eq!(view.stores().count(), 0);
    }
}

//! The initialisation plan of a cluster: its id, its initial stores and its initial regions, decided once. Pure.
//!
//! On `cortado init` one node makes a [`Plan`] from the nodes of `--join`, and every node stores it. An interrupted
//! initialisation therefore continues with the same plan, from any node on which it is repeated.

use std::collections::BTreeMap;

use kv::Key;
use raftstore::transport::ClusterId;
use raftstore::{Epoch, PeerId, PeerMeta, PeerRole, Region, RegionId, StoreId};
use serde::{Deserialize, Serialize};

/// Serde encoding of a cluster id: its printed form.
pub(crate) mod cluster_text {
    use raftstore::transport::ClusterId;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(id: &ClusterId, serializer: S) -> Result<S::Ok, S::Error> {
        id.to_string().serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ClusterId, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// An initial store of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PlannedStore {
    /// Its id, from 1.
    pub(crate) id: u64,
    /// The address at which other nodes reach it.
    pub(crate) address: String,
}

/// The initialisation plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Plan {
    /// The cluster.
    #[serde(with = "cluster_text")]
    pub(crate) cluster_id: ClusterId,
    /// Its initial stores, by id.
    pub(crate) stores: Vec<PlannedStore>,
}

/// The first key of the data region. Keys of tables begin with `t`; all system keys are below.
pub(crate) const DATA_START: &[u8] = b"t";

impl Plan {
    /// The most replicas of an initial region.
    const MAX_REPLICAS: usize = 3;

    /// A plan over the nodes at `addresses`.
    pub(crate) fn new(cluster_id: ClusterId, addresses: impl IntoIterator<Item = String>) -> Plan {
        let stores = (1..).zip(addresses).map(|(id, address)| PlannedStore { id, address }).collect();
        Plan { cluster_id, stores }
    }

    /// The id of the store at `address`.
    pub(crate) fn store_at(&self, address: &str) -> Option<StoreId> {
        self.stores.iter().find(|s| s.address == address).map(|s| StoreId::new(s.id))
    }

    /// Regions 1 (system) and 2 (everything else), with replicas on the first three stores. With fewer than three
    /// stores each region has one replica, because two replicas lose their quorum when either one fails.
    pub(crate) fn regions(&self) -> Vec<Region> {
        let replicas = if self.stores.len() < Self::MAX_REPLICAS { 1 } else { Self::MAX_REPLICAS };
        let peers = |region: u64| -> Vec<PeerMeta> {
            let peer = |store: &PlannedStore| PeerMeta {
                id: PeerId::new(region * 100 + store.id),
                store: StoreId::new(store.id),
                role: PeerRole::Voter,
            };
            self.stores.iter().take(replicas).map(peer).collect()
        };
        let region = |id: RegionId, start: &[u8], end: &[u8]| Region {
            id,
            start: start.to_vec(),
            end: end.to_vec(),
            epoch: Epoch { conf_ver: 1, version: 1 },
            peers: peers(id.get()),
        };
        let boundary = Key::from_static(DATA_START).to_storage();
        vec![region(RegionId::SYSTEM, b"", &boundary), region(RegionId::FIRST_DATA, &boundary, b"")]
    }
}

/// A node's answer about its identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    /// The address at which it was dialled.
    pub(crate) dialled: String,
    /// The address that it advertises.
    pub(crate) address: String,
    /// The cluster to which it belongs.
    pub(crate) cluster_id: Option<ClusterId>,
    /// The only cluster that it may join, if it was started with `--cluster-id`.
    pub(crate) wanted: Option<ClusterId>,
    /// Its store id; 0 if it belongs to no cluster.
    pub(crate) store_id: u64,
    /// The plan that it has stored.
    pub(crate) plan: Option<Plan>,
    /// Whether every node of that plan is known to have taken it.
    pub(crate) complete: bool,
    /// The stores that it knows, with their addresses.
    pub(crate) stores: Vec<(u64, String)>,
}

/// Why a cluster cannot be initialised.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InitError {
    /// The initialisation is complete.
    #[error("the cluster is already initialised, its id is {0}")]
    AlreadyInitialised(ClusterId),
    /// Some nodes belong to another cluster.
    #[error("node {address} already belongs to cluster {cluster}, which these nodes are not all part of")]
    OtherCluster { address: String, cluster: ClusterId },
    /// Two addresses lead to one node.
    #[error("{a} and {b} are the same node")]
    SameNode { a: String, b: String },
    /// A node was started with `--cluster-id`. The id of a new cluster is random, so it cannot match.
    #[error("node {address} was started with --cluster-id {wanted}, which is not this cluster's; start it without")]
    OtherClusterWanted { address: String, wanted: ClusterId },
}

/// The plan that `init` distributes, given the answers of all nodes: a new one, or that of an interrupted attempt.
/// `fresh` is the id of a new cluster.
pub(crate) fn decide(candidates: &[Candidate], fresh: ClusterId) -> Result<Plan, InitError> {
    let plan = choose_plan(candidates, fresh)?;
    for c in candidates {
        if let Some(wanted) = c.wanted.filter(|id| *id != plan.cluster_id) {
            return Err(InitError::OtherClusterWanted { address: c.address.clone(), wanted });
        }
    }
    Ok(plan)
}

fn choose_plan(candidates: &[Candidate], fresh: ClusterId) -> Result<Plan, InitError> {
    let mut by_address: BTreeMap<&str, &str> = BTreeMap::new();
    for c in candidates {
        if let Some(other) = by_address.insert(&c.address, &c.dialled) {
            return Err(InitError::SameNode { a: other.to_string(), b: c.dialled.clone() });
        }
    }
    let Some((first, cluster)) = candidates.iter().find_map(|c| c.cluster_id.map(|id| (c, id))) else {
        return Ok(Plan::new(fresh, candidates.iter().map(|c| c.address.clone())));
    };
    let elsewhere = |c: &Candidate, cluster| InitError::OtherCluster { address: c.address.clone(), cluster };
    let plan = first.plan.clone().ok_or_else(|| elsewhere(first, cluster))?;
    for c in candidates {
        match c.cluster_id {
            Some(other) if other != cluster => return Err(elsewhere(c, other)),
            None if plan.store_at(&c.address).is_none() => return Err(elsewhere(first, cluster)),
            _ => {}
        }
    }
    // A node of a complete cluster without an identity has lost its data. As a voter again, it would break the promises
    // of its earlier votes.
    if candidates.iter().any(|c| c.complete) {
        return Err(InitError::AlreadyInitialised(cluster));
    }
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(address: &str, plan: Option<&Plan>) -> Candidate {
        Candidate {
            dialled: address.to_string(),
            address: address.to_string(),
            cluster_id: plan.map(|p| p.cluster_id),
            wanted: None,
            store_id: 0,
            plan: plan.cloned(),
            complete: false,
            stores: Vec::new(),
        }
    }

    const FRESH: ClusterId = ClusterId::new(0xabc);

    #[test]
    fn a_new_cluster_has_two_adjacent_regions() {
        let plan = decide(&[node("a", None), node("b", None), node("c", None)], FRESH).unwrap();
        assert_eq!(plan.store_at("c"), Some(StoreId::new(3)));
        let regions = plan.regions();
        assert_eq!(regions.len(), 2);
        assert_eq!(regions[0].end, regions[1].start);
        assert!(regions[0].start.is_empty() && regions[1].end.is_empty());
        let mut ids: Vec<_> = regions.iter().flat_map(|r| r.peers.iter().map(|p| p.id)).collect();
        ids.dedup();
        assert_eq!(ids.len(), 6, "peer ids are unique");
    }

    #[test]
    fn the_number_of_nodes_decides_the_number_of_replicas() {
        for (nodes, replicas) in [(1, 1), (2, 1), (3, 3), (5, 3)] {
            let plan = Plan::new(FRESH, (0..nodes).map(|n| format!("node-{n}")));
            assert_eq!(plan.regions()[0].peers.len(), replicas, "{nodes} nodes");
        }
    }

    #[test]
    fn an_interrupted_initialisation_continues() {
        let plan = decide(&[node("a", None), node("b", None), node("c", None)], FRESH).unwrap();
        let again = decide(&[node("a", None), node("b", Some(&plan)), node("c", None)], ClusterId::new(9)).unwrap();
        assert_eq!(again, plan);
        // The second round, which marks the plan complete, may be repeated too.
        let all = [node("a", Some(&plan)), node("b", Some(&plan)), node("c", Some(&plan))];
        assert_eq!(decide(&all, ClusterId::new(9)), Ok(plan));
    }

    #[test]
    fn a_node_that_lost_its_data_is_not_made_a_voter_again() {
        let plan = Plan::new(FRESH, ["a".to_string(), "b".to_string(), "c".to_string()]);
        let complete = |address| Candidate { complete: true, ..node(address, Some(&plan)) };
        let wiped = [complete("a"), complete("b"), node("c", None)];
        assert_eq!(decide(&wiped, ClusterId::new(9)), Err(InitError::AlreadyInitialised(FRESH)));
    }

    #[test]
    fn a_node_with_another_cluster_id_is_not_initialised() {
        let unwilling = Candidate { wanted: Some(ClusterId::new(9)), ..node("b", None) };
        let refused = decide(&[node("a", None), unwilling.clone()], FRESH);
        assert_eq!(refused, Err(InitError::OtherClusterWanted { address: "b".to_string(), wanted: ClusterId::new(9) }));
        let plan = Plan::new(ClusterId::new(9), ["a".to_string(), "b".to_string()]);
        assert_eq!(decide(&[node("a", Some(&plan)), unwilling], FRESH), Ok(plan), "the wanted cluster");
    }

    #[test]
    fn nodes_of_other_clusters_are_rejected() {
        let ours = Plan::new(FRESH, ["a".to_string(), "b".to_string()]);
        let theirs = Plan::new(ClusterId::new(9), ["c".to_string()]);
        let mixed = decide(&[node("a", Some(&ours)), node("c", Some(&theirs))], ClusterId::new(1));
        assert!(matches!(mixed, Err(InitError::OtherCluster { .. })));
        let extra = decide(&[node("a", Some(&ours)), node("new", None)], ClusterId::new(1));
        assert!(matches!(extra, Err(InitError::OtherCluster { .. })));
        let mut twice = node("a", None);
        twice.dialled = "alias".to_string();
        assert!(matches!(decide(&[node("a", None), twice], FRESH), Err(InitError::SameNode { .. })));
    }
}

//! How a cluster begins: its id, its first stores and its first regions, decided once. Pure.
//!
//! `cortado init` makes one node draw up a [`Plan`] from the nodes it finds; every node stores the plan, so that an interrupted
//! initialisation goes on with the same plan from whichever node it is repeated.

use std::collections::BTreeMap;

use kv::Key;
use raftstore::transport::ClusterId;
use raftstore::{Epoch, PeerId, PeerMeta, PeerRole, Region, RegionId, StoreId};
use serde::{Deserialize, Serialize};

/// For serde: a cluster's id as it is printed.
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

/// A store that is there from the beginning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PlannedStore {
    /// Its number, from 1.
    pub(crate) id: u64,
    /// Where the other nodes reach it.
    pub(crate) address: String,
}

/// How the cluster begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Plan {
    /// The cluster.
    #[serde(with = "cluster_text")]
    pub(crate) cluster_id: ClusterId,
    /// Its first stores, by number.
    pub(crate) stores: Vec<PlannedStore>,
}

/// First key of the data region: keys of tables begin with `t`, all the system's are below.
pub(crate) const DATA_START: &[u8] = b"t";

impl Plan {
    /// Most replicas that the first regions get.
    const MAX_REPLICAS: usize = 3;

    /// A plan over the nodes at `addresses`.
    pub(crate) fn new(cluster_id: ClusterId, addresses: impl IntoIterator<Item = String>) -> Plan {
        let stores = (1..).zip(addresses).map(|(id, address)| PlannedStore { id, address }).collect();
        Plan { cluster_id, stores }
    }

    /// The number of the store at `address`.
    pub(crate) fn store_at(&self, address: &str) -> Option<StoreId> {
        self.stores.iter().find(|s| s.address == address).map(|s| StoreId::new(s.id))
    }

    /// Regions 1 (system) and 2 (everything else), replicated on the first stores: three, or one where there are fewer than
    /// three (two replicas would stop with either).
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

/// What a node that may take part says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    /// Where it was dialled.
    pub(crate) dialled: String,
    /// Where it wants to be dialled.
    pub(crate) address: String,
    /// The cluster it belongs to already.
    pub(crate) cluster_id: Option<ClusterId>,
    /// The only cluster that it is willing to be part of, if it was told one.
    pub(crate) wanted: Option<ClusterId>,
    /// Its number there; 0 if it belongs to none.
    pub(crate) store_id: u64,
    /// The plan it knows.
    pub(crate) plan: Option<Plan>,
    /// Whether every node of that plan is known to have carried it out.
    pub(crate) complete: bool,
    /// The stores it knows, with their addresses.
    pub(crate) stores: Vec<(u64, String)>,
}

/// Why a cluster is not initialised.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InitError {
    /// Nothing left to do.
    #[error("the cluster is already initialised, its id is {0}")]
    Already(ClusterId),
    /// Some nodes belong elsewhere.
    #[error("node {address} already belongs to cluster {cluster}, which these nodes are not all part of")]
    Elsewhere { address: String, cluster: ClusterId },
    /// Two names for one node.
    #[error("{a} and {b} are the same node")]
    SameNode { a: String, b: String },
    /// A new cluster gets an id that nobody can have asked for.
    #[error("node {address} was started with --cluster-id {wanted}, which is not this cluster's; start it without")]
    Unwilling { address: String, wanted: ClusterId },
}

/// What `init` does, given all nodes' answers: the plan to carry out, new or taken over from an interrupted attempt. `fresh` is the id of
/// a new cluster.
pub(crate) fn decide(candidates: &[Candidate], fresh: ClusterId) -> Result<Plan, InitError> {
    let plan = draw_up(candidates, fresh)?;
    for c in candidates {
        if let Some(wanted) = c.wanted.filter(|id| *id != plan.cluster_id) {
            return Err(InitError::Unwilling { address: c.address.clone(), wanted });
        }
    }
    Ok(plan)
}

fn draw_up(candidates: &[Candidate], fresh: ClusterId) -> Result<Plan, InitError> {
    let mut by_address: BTreeMap<&str, &str> = BTreeMap::new();
    for c in candidates {
        if let Some(other) = by_address.insert(&c.address, &c.dialled) {
            return Err(InitError::SameNode { a: other.to_string(), b: c.dialled.clone() });
        }
    }
    let Some((first, cluster)) = candidates.iter().find_map(|c| c.cluster_id.map(|id| (c, id))) else {
        return Ok(Plan::new(fresh, candidates.iter().map(|c| c.address.clone())));
    };
    let elsewhere = |c: &Candidate, cluster| InitError::Elsewhere { address: c.address.clone(), cluster };
    let plan = first.plan.clone().ok_or_else(|| elsewhere(first, cluster))?;
    for c in candidates {
        match c.cluster_id {
            Some(other) if other != cluster => return Err(elsewhere(c, other)),
            None if plan.store_at(&c.address).is_none() => return Err(elsewhere(first, cluster)),
            _ => {}
        }
    }
    // A node of a complete cluster that knows nothing has lost its data: made a voter again, it would forget its promises.
    if candidates.iter().any(|c| c.complete) {
        return Err(InitError::Already(cluster));
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
    fn a_new_cluster() {
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
    fn replicas_by_number_of_nodes() {
        for (nodes, replicas) in [(1, 1), (2, 1), (3, 3), (5, 3)] {
            let plan = Plan::new(FRESH, (0..nodes).map(|n| format!("node-{n}")));
            assert_eq!(plan.regions()[0].peers.len(), replicas, "{nodes} nodes");
        }
    }

    #[test]
    fn an_interrupted_initialisation_goes_on() {
        let plan = decide(&[node("a", None), node("b", None), node("c", None)], FRESH).unwrap();
        let again = decide(&[node("a", None), node("b", Some(&plan)), node("c", None)], ClusterId::new(9)).unwrap();
        assert_eq!(again, plan);
        // The last step, telling all that it is complete, may be repeated too.
        let all = [node("a", Some(&plan)), node("b", Some(&plan)), node("c", Some(&plan))];
        assert_eq!(decide(&all, ClusterId::new(9)), Ok(plan));
    }

    #[test]
    fn a_node_that_lost_its_data_is_not_made_a_voter_again() {
        let plan = Plan::new(FRESH, ["a".to_string(), "b".to_string(), "c".to_string()]);
        let complete = |address| Candidate { complete: true, ..node(address, Some(&plan)) };
        let wiped = [complete("a"), complete("b"), node("c", None)];
        assert_eq!(decide(&wiped, ClusterId::new(9)), Err(InitError::Already(FRESH)));
    }

    #[test]
    fn a_node_that_waits_for_another_cluster_is_not_initialised() {
        let unwilling = Candidate { wanted: Some(ClusterId::new(9)), ..node("b", None) };
        let refused = decide(&[node("a", None), unwilling.clone()], FRESH);
        assert_eq!(refused, Err(InitError::Unwilling { address: "b".to_string(), wanted: ClusterId::new(9) }));
        let plan = Plan::new(ClusterId::new(9), ["a".to_string(), "b".to_string()]);
        assert_eq!(decide(&[node("a", Some(&plan)), unwilling], FRESH), Ok(plan), "that very cluster");
    }

    #[test]
    fn strangers_are_not_mixed_in() {
        let ours = Plan::new(FRESH, ["a".to_string(), "b".to_string()]);
        let theirs = Plan::new(ClusterId::new(9), ["c".to_string()]);
        let mixed = decide(&[node("a", Some(&ours)), node("c", Some(&theirs))], ClusterId::new(1));
        assert!(matches!(mixed, Err(InitError::Elsewhere { .. })));
        let extra = decide(&[node("a", Some(&ours)), node("new", None)], ClusterId::new(1));
        assert!(matches!(extra, Err(InitError::Elsewhere { .. })));
        let mut twice = node("a", None);
        twice.dialled = "alias".to_string();
        assert!(matches!(decide(&[node("a", None), twice], FRESH), Err(InitError::SameNode { .. })));
    }
}

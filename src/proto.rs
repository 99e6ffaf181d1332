//! The generated types of `proto/node.proto`, and their conversions from and to the domain types. They are confined to
//! the node and to the commands that dial it.

#![allow(missing_docs, unreachable_pub, clippy::too_many_lines, reason = "generated code")]

use std::time::Duration;

use kv::placement::{Heartbeat, Oldest, RegionReport as DomainReport};
use raftstore::transport::ClusterId;
use raftstore::{Epoch, LogIndex, PeerId, PeerMeta, PeerRole, RegionId, StoreId, Term};
use tonic::Status;
use tso::Timestamp;

use crate::plan;

tonic::include_proto!("cortado.node.v1");

impl From<&plan::Plan> for Plan {
    fn from(plan: &plan::Plan) -> Plan {
        let store = |s: &plan::PlannedStore| PlannedStore { store_id: s.id, address: s.address.clone() };
        Plan { cluster_id: plan.cluster_id.get(), stores: plan.stores.iter().map(store).collect() }
    }
}

impl TryFrom<Plan> for plan::Plan {
    type Error = Status;

    fn try_from(plan: Plan) -> Result<plan::Plan, Status> {
        if plan.cluster_id == 0 || plan.stores.is_empty() || plan.stores.iter().any(|s| s.store_id == 0) {
            return Err(Status::invalid_argument("malformed plan"));
        }
        let store = |s: PlannedStore| plan::PlannedStore { id: s.store_id, address: s.address };
        let stores = plan.stores.into_iter().map(store).collect();
        Ok(plan::Plan { cluster_id: ClusterId::new(plan.cluster_id), stores })
    }
}

impl From<&raftstore::Region> for Region {
    fn from(region: &raftstore::Region) -> Region {
        let peer =
            |p: &PeerMeta| Peer { id: p.id.get(), store_id: p.store.get(), learner: p.role == PeerRole::Learner };
        Region {
            id: region.id.get(),
            start: region.start.clone(),
            end: region.end.clone(),
            conf_ver: region.epoch.conf_ver,
            version: region.epoch.version,
            peers: region.peers.iter().map(peer).collect(),
        }
    }
}

impl From<Region> for raftstore::Region {
    fn from(region: Region) -> raftstore::Region {
        let peer = |p: Peer| PeerMeta {
            id: PeerId::new(p.id),
            store: StoreId::new(p.store_id),
            role: if p.learner { PeerRole::Learner } else { PeerRole::Voter },
        };
        raftstore::Region {
            id: RegionId::new(region.id),
            start: region.start,
            end: region.end,
            epoch: Epoch { conf_ver: region.conf_ver, version: region.version },
            peers: region.peers.into_iter().map(peer).collect(),
        }
    }
}

impl HeartbeatRequest {
    /// Encodes a heartbeat.
    pub(crate) fn new(cluster: ClusterId, heartbeat: Heartbeat) -> HeartbeatRequest {
        let report = |r: DomainReport| RegionReport {
            region: Some(Region::from(&r.region)),
            term: r.term.get(),
            leads: r.leads,
            applied: r.applied.get(),
            behind_ms: r.behind.map(|behind| behind.as_millis() as u64),
        };
        HeartbeatRequest {
            cluster_id: cluster.get(),
            store_id: heartbeat.store.get(),
            address: heartbeat.address,
            pg_address: heartbeat.pg_address,
            locality: heartbeat.locality,
            version: heartbeat.version,
            oldest_ts: heartbeat.oldest.map_or(0, |oldest| oldest.bound.raw()),
            oldest_session: heartbeat.oldest.and_then(|oldest| oldest.session).unwrap_or(0),
            regions: heartbeat.regions.into_iter().map(report).collect(),
        }
    }
}

impl From<HeartbeatRequest> for Heartbeat {
    fn from(request: HeartbeatRequest) -> Heartbeat {
        // A report without a region is skipped; the rest of the heartbeat is valid.
        let report = |r: RegionReport| {
            r.region.map(|region| DomainReport {
                region: region.into(),
                term: Term::new(r.term),
                leads: r.leads,
                applied: LogIndex::new(r.applied),
                behind: r.behind_ms.map(Duration::from_millis),
            })
        };
        Heartbeat {
            store: StoreId::new(request.store_id),
            address: request.address,
            pg_address: request.pg_address,
            locality: request.locality,
            version: request.version,
            oldest: (request.oldest_ts > 0).then(|| Oldest {
                bound: Timestamp::from_raw(request.oldest_ts),
                session: (request.oldest_session > 0).then_some(request.oldest_session),
            }),
            regions: request.regions.into_iter().filter_map(report).collect(),
        }
    }
}

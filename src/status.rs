//! `cortado status`: the cluster as a table or as JSON.

use kv::Key;
use raftstore::transport::ClusterId;
use serde::Serialize;
use tso::Timestamp;

use crate::client::{self, ClientError};
use crate::config::HostPort;
use crate::console::Table;
use crate::proto::{GarbageCollection, RegionStatus, StatusRequest, StatusResponse, StoreStatus};

#[derive(Serialize)]
struct Page {
    cluster_id: String,
    nodes: Vec<Node>,
    regions: Vec<Region>,
    gc: Option<Gc>,
}

/// The safe point of garbage collection.
#[derive(Serialize)]
struct Gc {
    safe_point: String,
    age_ms: u64,
    ttl_ms: u64,
    /// `None`: the ttl holds it back.
    held_by: Option<Holder>,
}

/// What holds the safe point back.
#[derive(Serialize)]
struct Holder {
    node: u64,
    /// As `pg_backend_pid()` says. `None`: no session.
    pid: Option<u32>,
    /// The age of its snapshot. `None`: the node has not reported.
    age_ms: Option<u64>,
}

#[derive(Serialize)]
struct Node {
    id: u64,
    state: String,
    silent_ms: u64,
    address: String,
    pg_address: String,
    locality: String,
    version: String,
    replicas: u32,
    leaders: u32,
}

#[derive(Serialize)]
struct Region {
    id: u64,
    start: String,
    end: String,
    epoch: String,
    leader: Option<u64>,
    term: u64,
    replicas: Vec<Replica>,
}

#[derive(Serialize)]
struct Replica {
    node: u64,
    applied: Option<u64>,
    /// How far its safe_ts is behind; `None` where the region is led, or if it has none.
    behind_ms: Option<u64>,
}

/// Fetches the status from `host` and renders it.
pub(crate) async fn run(host: &HostPort, json: bool) -> Result<String, ClientError> {
    let mut node = client::connect(host, None).await?;
    let answer = node.status(StatusRequest::default()).await.map_err(|s| ClientError::refused(host, &s))?;
    let page = Page::from(answer.into_inner());
    if json {
        return serde_json::to_string_pretty(&page).map_err(|e| ClientError::Malformed(e.to_string()));
    }
    Ok(page.to_text())
}

impl From<StatusResponse> for Page {
    fn from(answer: StatusResponse) -> Page {
        Page {
            cluster_id: ClusterId::new(answer.cluster_id).to_string(),
            nodes: answer.stores.into_iter().map(Node::from).collect(),
            regions: answer.regions.into_iter().map(Region::from).collect(),
            gc: answer.gc.map(Gc::from),
        }
    }
}

impl From<GarbageCollection> for Gc {
    fn from(gc: GarbageCollection) -> Gc {
        let holder = Holder {
            node: gc.held_by_store,
            pid: (gc.held_by_session > 0).then_some(gc.held_by_session),
            age_ms: (gc.held_ms > 0).then_some(gc.held_ms),
        };
        Gc {
            safe_point: Timestamp::from_raw(gc.safe_point).to_string(),
            age_ms: gc.age_ms,
            ttl_ms: gc.ttl_ms,
            held_by: (gc.held_by_store > 0).then_some(holder),
        }
    }
}

impl Gc {
    fn to_text(&self) -> String {
        let seconds = |ms: u64| format!("{}.{} s", ms / 1_000, ms % 1_000 / 100);
        let held_by = match &self.held_by {
            None => format!("cortado.gc_ttl, {}", seconds(self.ttl_ms)),
            Some(Holder { node, age_ms: None, .. }) => format!("node {node}, which has not reported"),
            Some(Holder { node, pid: Some(pid), age_ms: Some(age_ms) }) => {
                format!("node {node}, pid {pid}, a transaction of {}", seconds(*age_ms))
            }
            Some(Holder { node, pid: None, age_ms: Some(age_ms) }) => {
                format!("node {node}, whose report is {} old", seconds(*age_ms))
            }
        };
        format!(
            "\ngarbage collection: safe point {}, age {}, held back by {held_by}\n",
            self.safe_point,
            seconds(self.age_ms)
        )
    }
}

impl From<StoreStatus> for Node {
    fn from(store: StoreStatus) -> Node {
        Node {
            id: store.store_id,
            state: store.state,
            silent_ms: store.silent_ms,
            address: store.address,
            pg_address: store.pg_address,
            locality: store.locality,
            version: store.version,
            replicas: store.replicas,
            leaders: store.leaders,
        }
    }
}

impl From<RegionStatus> for Region {
    fn from(status: RegionStatus) -> Region {
        let region = status.region.unwrap_or_default();
        let replica = |node: u64| {
            let known = status.applied.iter().find(|a| a.store_id == node);
            Replica { node, applied: known.map(|a| a.index), behind_ms: known.and_then(|a| a.behind_ms) }
        };
        Region {
            id: region.id,
            start: bound(&region.start, "-inf"),
            end: bound(&region.end, "+inf"),
            epoch: format!("{}.{}", region.version, region.conf_ver),
            leader: (status.leader_store != 0).then_some(status.leader_store),
            term: status.term,
            replicas: region.peers.iter().map(|peer| replica(peer.store_id)).collect(),
        }
    }
}

/// Renders a region boundary: as a key if it is the storage form of one, as all our boundaries are, else in hex.
fn bound(storage: &[u8], infinite: &str) -> String {
    if storage.is_empty() {
        return infinite.to_string();
    }
    match Key::from_storage(storage) {
        Ok(key) => key.as_bytes().escape_ascii().to_string(),
        Err(_) => format!("0x{}", storage.iter().map(|byte| format!("{byte:02x}")).collect::<String>()),
    }
}

impl Page {
    fn to_text(&self) -> String {
        let mut nodes =
            Table::new(&["node", "state", "address", "postgres", "locality", "replicas", "leads", "version"]);
        for n in &self.nodes {
            let state = match n.state.as_str() {
                "silent" => format!("silent {} s", n.silent_ms / 1000),
                state => state.to_string(),
            };
            nodes.row([
                n.id.to_string(),
                state,
                n.address.clone(),
                n.pg_address.clone(),
                n.locality.clone(),
                n.replicas.to_string(),
                n.leaders.to_string(),
                n.version.clone(),
            ]);
        }
        let mut regions = Table::new(&[
            "region",
            "from",
            "to",
            "epoch",
            "leader",
            "term",
            "replicas (node:applied)",
            "safe_ts behind (node:ms)",
        ]);
        for r in &self.regions {
            let replicas = r.replicas.iter().map(|replica| match replica.applied {
                Some(applied) => format!("{}:{applied}", replica.node),
                None => format!("{}:?", replica.node),
            });
            let followers = r.replicas.iter().filter(|replica| Some(replica.node) != r.leader);
            let behind = followers.map(|replica| match replica.behind_ms {
                Some(behind_ms) => format!("{}:{behind_ms}", replica.node),
                None => format!("{}:?", replica.node),
            });
            regions.row([
                r.id.to_string(),
                r.start.clone(),
                r.end.clone(),
                r.epoch.clone(),
                r.leader.map_or("none".to_string(), |node| node.to_string()),
                r.term.to_string(),
                replicas.collect::<Vec<_>>().join(" "),
                behind.collect::<Vec<_>>().join(" "),
            ]);
        }
        let gc = self.gc.as_ref().map(Gc::to_text).unwrap_or_default();
        format!("cluster {}\n\n{}\n{}{gc}", self.cluster_id, nodes.render(), regions.render())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto;

    #[test]
    fn the_tables_are_aligned() {
        let store = StoreStatus {
            store_id: 1,
            address: "127.0.0.1:26257".to_string(),
            pg_address: "127.0.0.1:5433".to_string(),
            locality: "region=eu".to_string(),
            version: "0.1.0".to_string(),
            state: "alive".to_string(),
            silent_ms: 0,
            replicas: 2,
            leaders: 1,
        };
        let silent = StoreStatus { store_id: 12, state: "silent".to_string(), silent_ms: 7300, ..store.clone() };
        let region = proto::Region {
            id: 1,
            start: vec![],
            end: Key::from_static(b"t").to_storage(),
            conf_ver: 1,
            version: 1,
            peers: vec![
                proto::Peer { id: 101, store_id: 1, learner: false },
                proto::Peer { id: 102, store_id: 2, learner: false },
            ],
        };
        let regions = vec![RegionStatus {
            region: Some(region),
            leader_store: 1,
            term: 6,
            applied: vec![
                proto::Applied { store_id: 1, index: 42, behind_ms: None },
                proto::Applied { store_id: 2, index: 41, behind_ms: Some(120) },
            ],
        }];
        let gc = GarbageCollection {
            safe_point: Timestamp::new(1_700_000_000_000, 3).raw(),
            age_ms: 65_432,
            ttl_ms: 1_000,
            held_by_store: 12,
            held_by_session: 71,
            held_ms: 65_400,
        };
        let own = |gc| Gc::from(gc).to_text();
        assert!(own(GarbageCollection { held_by_store: 0, ..gc }).ends_with("held back by cortado.gc_ttl, 1.0 s\n"));
        assert!(own(GarbageCollection { held_ms: 0, ..gc }).ends_with("node 12, which has not reported\n"));
        let page = Page::from(StatusResponse { cluster_id: 0xabc, stores: vec![store, silent], regions, gc: Some(gc) });
        assert_eq!(
            page.to_text(),
            "cluster 0000000000000abc\n\n\
             node  state       address          postgres        locality   replicas  leads  version\n\
             1     alive       127.0.0.1:26257  127.0.0.1:5433  region=eu  2         1      0.1.0\n\
             12    silent 7 s  127.0.0.1:26257  127.0.0.1:5433  region=eu  2         1      0.1.0\n\n\
             region  from  to  epoch  leader  term  replicas (node:applied)  safe_ts behind (node:ms)\n\
             1       -inf  t   1.1    1       6     1:42 2:41                2:120\n\n\
             garbage collection: safe point 1700000000000.3, age 65.4 s, held back by node 12, pid 71, a transaction \
             of 65.4 s\n"
        );
    }
}

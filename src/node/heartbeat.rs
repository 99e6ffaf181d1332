//! A store's report about itself, once a second, to whichever node leads the system region.

use std::sync::Arc;
use std::time::Duration;

use engine::store::rocks::RocksStore;
use kv::placement::{Heartbeat, RegionReport};
use raftstore::{RegionId, StoreHandle, StoreId};

use super::proto::HeartbeatRequest;
use super::state::NodeState;
use crate::client;
use crate::config::HostPort;
use crate::data_dir::Ident;

const INTERVAL: Duration = Duration::from_secs(1);
/// After a node that could not take the report, the next one is tried this soon.
const RETRY: Duration = Duration::from_millis(200);

/// Reports for ever. The answers keep the address book complete.
pub(crate) async fn report(state: Arc<NodeState>, ident: Ident, store: StoreHandle<RocksStore>) {
    let mut turn = 0;
    loop {
        let reported = match target(&state, &store, turn) {
            Some(address) => send(&state, &ident, &store, &address).await,
            None => Err("no address is known".to_string()),
        };
        match reported {
            Ok(()) => tokio::time::sleep(INTERVAL).await,
            Err(why) => {
                tracing::debug!(%why, "the report was not taken");
                turn += 1;
                tokio::time::sleep(RETRY).await;
            }
        }
    }
}

/// Whom to report to: the leader of the system region where it is known, after a failure each node in turn.
fn target(state: &NodeState, store: &StoreHandle<RocksStore>, turn: usize) -> Option<String> {
    let leader = store.region(RegionId::SYSTEM).and_then(|status| status.leader);
    let known = leader.and_then(|leader| state.members.get(leader.store));
    if turn.is_multiple_of(2) && known.is_some() {
        return known;
    }
    let all = state.members.all();
    all.get((turn / 2) % all.len().max(1)).map(|(_, address)| address.clone())
}

async fn send(state: &NodeState, ident: &Ident, store: &StoreHandle<RocksStore>, address: &str) -> Result<(), String> {
    let report = |status: raftstore::RegionStatus| RegionReport {
        region: status.region,
        term: status.term,
        leads: status.is_leader,
        applied: status.applied,
    };
    let heartbeat = Heartbeat {
        store: ident.store_id,
        address: state.config.advertise.to_string(),
        pg_address: state.config.pg.to_string(),
        locality: state.config.locality.to_string(),
        version: env!("CARGO_PKG_VERSION").to_string(),
        regions: store.regions().into_iter().map(report).collect(),
    };
    let host: HostPort = address.parse()?;
    let mut node = client::connect(&host).await.map_err(|e| e.to_string())?;
    let request = HeartbeatRequest::new(ident.cluster_id, heartbeat);
    let answer = node.heartbeat(request).await.map_err(|status| status.message().to_string())?;
    for known in answer.into_inner().stores {
        state.members.learn(StoreId::new(known.store_id), &known.address);
    }
    Ok(())
}

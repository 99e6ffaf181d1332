//! A store's report about itself, once a second, to whichever node leads the system region.

use std::sync::Arc;
use std::time::Duration;

use engine::store::rocks::RocksStore;
use kv::placement::{Heartbeat, RegionReport};
use raftstore::{StoreHandle, StoreId};
use tonic::transport::Channel;

use super::oracle::leader_address;
use super::proto::HeartbeatRequest;
use super::proto::node_client::NodeClient;
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
    // Kept while it is to the right node and works.
    let mut line: Option<Line> = None;
    loop {
        let address = target(&state, &store, turn);
        let kept = line.take().filter(|line| address.as_ref().is_none_or(|address| *address == line.address));
        let connected = match (kept, address) {
            (Some(line), _) => Ok(line),
            (None, Some(address)) => connect(address).await,
            (None, None) => Err("no address is known".to_string()),
        };
        let reported = match connected {
            Ok(mut connected) => send(&state, &ident, &store, &mut connected.node).await.map(|()| connected),
            Err(why) => Err(why),
        };
        match reported {
            Ok(works) => {
                line = Some(works);
                tokio::time::sleep(INTERVAL).await;
            }
            Err(why) => {
                tracing::debug!(%why, "the report was not taken");
                turn += 1;
                tokio::time::sleep(RETRY).await;
            }
        }
    }
}

/// A connection to whom reports go.
struct Line {
    address: String,
    node: NodeClient<Channel>,
}

async fn connect(address: String) -> Result<Line, String> {
    let host: HostPort = address.parse()?;
    let node = client::connect(&host).await.map_err(|e| e.to_string())?;
    Ok(Line { address, node })
}

/// Whom to report to: the leader of the system region where it is known, after a failure each node in turn.
fn target(state: &NodeState, store: &StoreHandle<RocksStore>, turn: usize) -> Option<String> {
    let known = leader_address(store, &state.members);
    if turn.is_multiple_of(2) && known.is_some() {
        return known;
    }
    let all = state.members.all();
    all.get((turn / 2) % all.len().max(1)).map(|(_, address)| address.clone())
}

async fn send(
    state: &NodeState,
    ident: &Ident,
    store: &StoreHandle<RocksStore>,
    node: &mut NodeClient<Channel>,
) -> Result<(), String> {
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
    let request = HeartbeatRequest::new(ident.cluster_id, heartbeat);
    let answer = node.heartbeat(request).await.map_err(|status| status.message().to_string())?;
    for known in answer.into_inner().stores {
        state.members.learn(StoreId::new(known.store_id), &known.address);
    }
    Ok(())
}

//! The background tasks of a serving node: heartbeats to placement, cleanup after dropped tables, and where the
//! key-value client finds the stores. None of them ends by itself; the node aborts them when it stops.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use engine::store::rocks::RocksStore;
use kv::client::{Locality, RemoteEndpoint};
use kv::grants::Grants;
use kv::placement::{Heartbeat, Oldest, RegionReport};
use raftstore::{RegionId, StoreHandle, StoreId};
use sql::catalog::reclaim::Reclaimer;
use tonic::transport::Channel;
use txn::{Database, OldestSnapshot};

use super::members::Member;
use super::oracle::leader_address;
use super::state::NodeState;
use crate::client;
use crate::config::HostPort;
use crate::data_dir::Ident;
use crate::proto::HeartbeatRequest;
use crate::proto::node_client::NodeClient;

/// The interval between two heartbeats.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(1);
/// The pause before the next node is tried, after one that could not take the heartbeat.
const HEARTBEAT_RETRY: Duration = Duration::from_millis(200);

/// The pause between two cleanup batches while more remains: foreground requests go first.
const RECLAIM_BUSY_INTERVAL: Duration = Duration::from_millis(100);
/// The interval between two cleanup attempts otherwise, and after a failure.
const RECLAIM_IDLE_INTERVAL: Duration = Duration::from_secs(60);

/// Sends the store's heartbeats to the leader of the system region. The answers complete the address book.
pub(crate) async fn send_heartbeats(
    state: Arc<NodeState>,
    ident: Ident,
    store: StoreHandle<RocksStore>,
    grants: Grants<StoreHandle<RocksStore>>,
) {
    let mut attempt = 0;
    // Reused while it leads to the right node and works.
    let mut connection: Option<Connection> = None;
    loop {
        let address = heartbeat_target(&state, &store, attempt);
        let leads_to_target = |known: &Connection| address.as_ref().is_none_or(|address| *address == known.address);
        let reusable = connection.take().filter(leads_to_target);
        let connected = match (reusable, address) {
            (Some(known), _) => Ok(known),
            (None, Some(address)) => connect(address, state.config.connect_from).await,
            (None, None) => Err("no address is known".to_string()),
        };
        let sent = match connected {
            Ok(mut connected) => {
                send_heartbeat(&state, &ident, &store, &grants, &mut connected.node).await.map(|()| connected)
            }
            Err(why) => Err(why),
        };
        match sent {
            Ok(working) => {
                connection = Some(working);
                tokio::time::sleep(HEARTBEAT_INTERVAL).await;
            }
            Err(why) => {
                tracing::debug!(%why, "the heartbeat was not accepted");
                attempt += 1;
                tokio::time::sleep(HEARTBEAT_RETRY).await;
            }
        }
    }
}

/// A connection to the receiver of the heartbeats.
struct Connection {
    address: String,
    node: NodeClient<Channel>,
}

async fn connect(address: String, from: Option<IpAddr>) -> Result<Connection, String> {
    let host: HostPort = address.parse()?;
    let node = client::connect(&host, from).await.map_err(|e| e.to_string())?;
    Ok(Connection { address, node })
}

/// The node that gets the heartbeat: the leader of the system region if it is known; on every other attempt the next
/// node in round-robin order.
fn heartbeat_target(state: &NodeState, store: &StoreHandle<RocksStore>, attempt: usize) -> Option<String> {
    let leader = leader_address(store, &state.members);
    if attempt.is_multiple_of(2) && leader.is_some() {
        return leader;
    }
    let all = state.members.all();
    all.get((attempt / 2) % all.len().max(1)).map(|(_, address)| address.clone())
}

async fn send_heartbeat(
    state: &NodeState,
    ident: &Ident,
    store: &StoreHandle<RocksStore>,
    grants: &Grants<StoreHandle<RocksStore>>,
    node: &mut NodeClient<Channel>,
) -> Result<(), String> {
    let report = |status: raftstore::RegionStatus| RegionReport {
        behind: grants.behind(status.region.id),
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
        oldest: state.database.get().and_then(Database::oldest_snapshot).map(oldest),
        regions: store.regions().into_iter().map(report).collect(),
    };
    let request = HeartbeatRequest::new(ident.cluster_id, heartbeat);
    let answer = node.heartbeat(request).await.map_err(|status| status.message().to_string())?;
    for known in answer.into_inner().stores {
        state.members.learn_all(StoreId::new(known.store_id), &known.address, &known.locality);
    }
    Ok(())
}

/// How far the transactions of this node look back.
fn oldest(OldestSnapshot { bound, session }: OldestSnapshot) -> Oldest {
    Oldest { bound, session }
}

/// Removes the rows of dropped and truncated tables while this node leads the system region. Any node could do it. One
/// is enough: two would conflict with each other.
pub(crate) async fn reclaim_dropped_rows(database: Database, store: StoreHandle<RocksStore>) {
    let mut reclaimer = Reclaimer::new();
    loop {
        let leads = store.region(RegionId::SYSTEM).is_some_and(|status| status.is_leader);
        let more = leads
            && match reclaimer.step(&database).await {
                Ok(progress) => progress.more,
                Err(error) => {
                    tracing::info!(%error, "removing the rows of dropped tables failed and is retried");
                    false
                }
            };
        tokio::time::sleep(if more { RECLAIM_BUSY_INTERVAL } else { RECLAIM_IDLE_INTERVAL }).await;
    }
}

/// Passes the addresses of the stores and where they are to the key-value client, now and after each change.
pub(crate) async fn update_client_addresses(state: Arc<NodeState>, remote: Arc<RemoteEndpoint>) {
    let update = |members: Vec<(StoreId, Member)>| {
        remote.set_localities(members.iter().map(|(store, member)| (*store, Locality::parse(&member.locality))));
        let addresses = members.into_iter().map(|(store, member)| (store, member.address));
        if let Err(error) = remote.set_stores(addresses.collect()) {
            tracing::error!(%error, "an address cannot be dialled");
        }
    };
    state.members.follow(update).await;
}

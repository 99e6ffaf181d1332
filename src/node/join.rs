//! How a node comes to know which store of which cluster it is, and where the others are.
//!
//! A node with an identity on disk keeps it, after checking that the nodes it can reach belong to the same cluster. One without waits until
//! `cortado init` reaches it, or joins a cluster that is already there. It never takes the number of a node that was there before:
//! a store that lost its data would break the promises its votes were.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use tonic::Code;

use super::proto::RegisterRequest;
use super::service::ask;
use super::state::NodeState;
use crate::client;
use crate::config::{HostPort, Membership};
use crate::data_dir::{DataDirError, Ident};
use crate::plan::{Candidate, ClusterId, Plan};
use raftstore::StoreId;

/// Between two looks at the other nodes while waiting.
const ASK_INTERVAL: Duration = Duration::from_millis(500);
/// Between two looks once all have answered: addresses may change.
const REFRESH_INTERVAL: Duration = Duration::from_secs(10);

/// Why a node cannot be part of the cluster; printed as one line.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JoinError {
    /// Its data, or --cluster-id, names another cluster.
    #[error("{who} belongs to cluster {theirs}, but this node {why} cluster {ours}")]
    OtherCluster { who: String, theirs: ClusterId, why: &'static str, ours: String },
    /// The cluster knows this address.
    #[error("{0}")]
    Refused(String),
    /// The identity cannot be stored.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
}

/// The identity of this node, found, given or made. Waits as long as it takes for a cluster to be initialised.
pub(crate) async fn identify(state: &Arc<NodeState>) -> Result<Ident, JoinError> {
    let wanted = state.config.cluster_id.as_deref();
    if let Some(ident) = state.ident() {
        same_cluster("the data directory", ident.cluster_id, wanted)?;
        for other in others(state).await {
            if let Some(theirs) = other.cluster_id.filter(|id| *id != ident.cluster_id) {
                let (why, ours) = ("has data of", ident.cluster_id.to_string());
                return Err(JoinError::OtherCluster { who: other.dialled, theirs, why, ours });
            }
        }
        return Ok(ident);
    }
    if state.config.membership == Membership::Alone {
        let plan = Plan::new(new_cluster_id(), [state.config.advertise.to_string()]);
        let ident = Ident { complete: true, ..Ident::new(plan.cluster_id, StoreId::new(1), Some(plan)) };
        state.update_ident(|_| Ok::<_, DataDirError>(Some(ident.clone())))?;
        return Ok(ident);
    }
    tracing::info!("waiting for `cortado init`, or for a cluster to join");
    tokio::select! {
        ident = state.wait_for_ident() => Ok(ident),
        joined = join_running_cluster(state) => joined,
    }
}

/// The id of a new cluster: a random number, never 0.
pub(super) fn new_cluster_id() -> ClusterId {
    ClusterId::new(rand::random_range(1..=u64::MAX))
}

fn same_cluster(who: &str, theirs: ClusterId, wanted: Option<&str>) -> Result<(), JoinError> {
    match wanted {
        Some(wanted) if wanted != theirs.to_string() => Err(JoinError::OtherCluster {
            who: who.to_string(),
            theirs,
            why: "was started with --cluster-id of",
            ours: wanted.to_string(),
        }),
        _ => Ok(()),
    }
}

/// The answers of the other nodes of `--join`, of those that answer.
async fn others(state: &NodeState) -> Vec<Candidate> {
    let Membership::Join(join) = &state.config.membership else {
        return Vec::new();
    };
    let hosts = join.iter().filter(|host| **host != state.config.advertise);
    join_all(hosts.map(ask)).await.into_iter().filter_map(Result::ok).collect()
}

/// Looks for an initialised cluster until it has taken us in.
async fn join_running_cluster(state: &NodeState) -> Result<Ident, JoinError> {
    let own = state.config.advertise.as_str();
    loop {
        for other in others(state).await {
            let Some(cluster) = other.cluster_id else { continue };
            same_cluster(&other.dialled, cluster, state.config.cluster_id.as_deref())?;
            match other.plan.as_ref().and_then(|plan| plan.store_at(own)) {
                // The initialisation is under way and will reach us, or was cut short and has to be repeated.
                Some(_) if !other.complete => continue,
                Some(store) => {
                    return Err(JoinError::Refused(format!(
                        "{own} is node {store} of cluster {cluster}, but its data is not in {}; start it with its own \
                         data directory, or take another address",
                        state.config.data.display()
                    )));
                }
                None => {}
            }
            if let Some(store) = register(state, &other, cluster).await? {
                let ident = Ident::joined(cluster, store);
                state.update_ident(|_| Ok::<_, DataDirError>(Some(ident.clone())))?;
                return Ok(ident);
            }
        }
        tokio::time::sleep(ASK_INTERVAL).await;
    }
}

/// Asks one node to have us taken in; `None` if that cannot be at the moment (nobody leads the system region).
async fn register(state: &NodeState, other: &Candidate, cluster: ClusterId) -> Result<Option<StoreId>, JoinError> {
    let Ok(host) = other.dialled.parse::<HostPort>() else {
        return Ok(None);
    };
    let Ok(mut node) = client::connect(&host).await else {
        return Ok(None);
    };
    let request = RegisterRequest {
        cluster_id: cluster.get(),
        address: state.config.advertise.to_string(),
        locality: state.config.locality.to_string(),
        forwarded: false,
    };
    match node.register(request).await {
        Ok(answer) => Ok(Some(StoreId::new(answer.into_inner().store_id))),
        Err(status) if status.code() == Code::AlreadyExists => Err(JoinError::Refused(status.message().to_string())),
        Err(status) => {
            tracing::info!(node = %host, why = status.message(), "not taken in yet");
            Ok(None)
        }
    }
}

/// Keeps the address book up to date from the addresses of `--join`, for ever.
pub(crate) async fn discover(state: Arc<NodeState>, ident: Ident) {
    for store in ident.plan.iter().flat_map(|plan| &plan.stores) {
        state.members.learn(StoreId::new(store.id), &store.address);
    }
    state.members.learn(ident.store_id, state.config.advertise.as_str());
    let expected = match &state.config.membership {
        Membership::Alone => return,
        Membership::Join(join) => join.iter().filter(|host| **host != state.config.advertise).count(),
    };
    loop {
        let others = others(&state).await;
        let mut found = 0;
        for other in &others {
            match other.cluster_id {
                Some(cluster) if cluster == ident.cluster_id => {
                    state.members.learn(StoreId::new(other.store_id), &other.address);
                    found += 1;
                    for (store, address) in &other.stores {
                        state.members.learn_new(StoreId::new(*store), address);
                    }
                }
                Some(cluster) => {
                    tracing::error!(node = other.dialled, %cluster, "a node of --join belongs to another cluster")
                }
                None => {}
            }
        }
        tokio::time::sleep(if found == expected { REFRESH_INTERVAL } else { ASK_INTERVAL }).await;
    }
}

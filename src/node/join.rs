//! Determines the identity of a node, the store of a cluster, and discovers the addresses of the other stores.
//!
//! A node with an identity on disk keeps it, unless all nodes of `--join` that answer belong to another cluster; it
//! keeps watching for that. A node without an identity waits for `cortado init`, or joins a running cluster. It never
//! gets the id of an earlier store: a store that lost its data would break the promises of its votes.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use raftstore::StoreId;
use raftstore::transport::ClusterId;
use tonic::Code;

use super::state::{NodeState, new_cluster_id, random_id};
use crate::client;
use crate::config::{HostPort, Membership};
use crate::data_dir::{DataDirError, Ident};
use crate::plan::{Candidate, Plan};
use crate::proto::RegisterRequest;

/// The interval at which the other nodes are asked while one of them has not answered.
const ASK_INTERVAL: Duration = Duration::from_millis(500);
/// The interval once all have answered: addresses may change.
const REFRESH_INTERVAL: Duration = Duration::from_secs(10);

/// Why a node cannot be a member of the cluster; printed as one line.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JoinError {
    /// The node's data or `--cluster-id` names another cluster.
    #[error("{who} belongs to cluster {theirs}, but this node {why} cluster {ours}")]
    OtherCluster { who: String, theirs: ClusterId, why: &'static str, ours: ClusterId },
    /// The nodes of `--join` belong to different clusters.
    #[error("--join names nodes of different clusters: {a} belongs to {a_cluster}, {b} to {b_cluster}")]
    TwoClusters { a: String, a_cluster: ClusterId, b: String, b_cluster: ClusterId },
    /// The address belongs to another store of the cluster.
    #[error("{0}")]
    Refused(String),
    /// The identity cannot be stored.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
}

/// Determines the identity of this node: from disk, from `cortado init`, by joining, or as a single node. Waits without
/// a limit for a cluster to be initialised.
pub(crate) async fn identify(state: &Arc<NodeState>) -> Result<Ident, JoinError> {
    if let Some(ident) = state.ident() {
        if let Some(wanted) = state.config.cluster_id.filter(|id| *id != ident.cluster_id) {
            return Err(wrong_cluster("the data directory", ident.cluster_id, wanted));
        }
        let others = JoinPeers::new(state).ask().await;
        return match find_foreign_cluster(&others, ident.cluster_id) {
            Some(error) => Err(error),
            None => Ok(ident),
        };
    }
    if state.config.membership == Membership::SingleNode {
        let plan = Plan::new(new_cluster_id(), [state.config.advertise.to_string()]);
        return adopt_ident(
            state,
            Ident { complete: true, ..Ident::new(plan.cluster_id, StoreId::new(1), Some(plan)) },
        );
    }
    tracing::info!("waiting for `cortado init`, or for a cluster to join");
    tokio::select! {
        ident = state.wait_for_ident() => Ok(ident),
        joined = join_running_cluster(state) => joined,
    }
}

/// Stores an identity, unless the node has received one meanwhile.
fn adopt_ident(state: &NodeState, ident: Ident) -> Result<Ident, JoinError> {
    state.update_ident(|present| Ok::<_, DataDirError>(present.is_none().then(|| ident.clone())))?;
    Ok(state.ident().unwrap_or(ident))
}

fn wrong_cluster(who: &str, theirs: ClusterId, wanted: ClusterId) -> JoinError {
    let why = "was started with --cluster-id of";
    JoinError::OtherCluster { who: who.to_string(), theirs, why, ours: wanted }
}

/// The error for data of another cluster: a node belongs to another cluster, and no node of ours answers. If nodes of
/// ours answer, only the foreign node is misconfigured.
fn find_foreign_cluster(others: &[Candidate], ours: ClusterId) -> Option<JoinError> {
    if others.iter().any(|other| other.cluster_id == Some(ours)) {
        return None;
    }
    let (who, theirs) = others.iter().find_map(|other| Some((other.dialled.clone(), other.cluster_id?)))?;
    Some(JoinError::OtherCluster { who, theirs, why: "has data of", ours })
}

/// The cluster that a node without data joins, if any of the others belongs to one.
fn cluster_to_join(others: &[Candidate], wanted: Option<ClusterId>) -> Result<Option<ClusterId>, JoinError> {
    let mut members = others.iter().filter_map(|other| Some((&other.dialled, other.cluster_id?)));
    let Some((first, cluster)) = members.next() else {
        return Ok(None);
    };
    if let Some(wanted) = wanted {
        return match cluster == wanted || members.any(|(_, id)| id == wanted) {
            true => Ok(Some(wanted)),
            false => Err(wrong_cluster(first, cluster, wanted)),
        };
    }
    match members.find(|(_, id)| *id != cluster) {
        None => Ok(Some(cluster)),
        Some((other, id)) => {
            let (a, b) = (first.clone(), other.clone());
            Err(JoinError::TwoClusters { a, a_cluster: cluster, b, b_cluster: id })
        }
    }
}

/// The other nodes of `--join`.
struct JoinPeers {
    own: HostPort,
    connect_from: Option<IpAddr>,
    hosts: Vec<HostPort>,
    /// The last logged error of each node, so that an error is logged only when it changes.
    logged_errors: BTreeMap<HostPort, String>,
}

impl JoinPeers {
    fn new(state: &NodeState) -> JoinPeers {
        let own = state.config.advertise.clone();
        let hosts = match &state.config.membership {
            Membership::SingleNode => Vec::new(),
            Membership::Join(join) => join.iter().filter(|host| **host != own).cloned().collect(),
        };
        JoinPeers { own, connect_from: state.config.connect_from, hosts, logged_errors: BTreeMap::new() }
    }

    /// Asks all of them and returns the answers that came.
    async fn ask(&mut self) -> Vec<Candidate> {
        let answers = join_all(self.hosts.iter().map(|host| client::info(host, self.connect_from))).await;
        let mut found = Vec::new();
        for (host, answer) in self.hosts.clone().into_iter().zip(answers) {
            match answer {
                // This node itself, under another name.
                Ok(other) if other.address == self.own.as_str() => self.hosts.retain(|known| *known != host),
                Ok(other) => {
                    self.logged_errors.remove(&host);
                    found.push(other);
                }
                Err(error) => {
                    let why = error.to_string();
                    if self.logged_errors.get(&host) != Some(&why) {
                        tracing::info!(%why, "a node of --join does not answer");
                        self.logged_errors.insert(host, why);
                    }
                }
            }
        }
        found
    }
}

/// Looks for an initialised cluster until one has registered this node.
async fn join_running_cluster(state: &NodeState) -> Result<Ident, JoinError> {
    let own = state.config.advertise.as_str();
    // The same instance for all attempts, so that a registration whose answer was lost is recognised.
    let instance = random_id();
    let mut others = JoinPeers::new(state);
    loop {
        let answers = others.ask().await;
        let cluster = cluster_to_join(&answers, state.config.cluster_id)?;
        let members =
            answers.iter().filter_map(|other| Some((other, other.cluster_id.filter(|id| Some(*id) == cluster)?)));
        for (other, cluster) in members {
            match other.plan.as_ref().and_then(|plan| plan.store_at(own)) {
                // The initialisation is in progress and will reach this node, or was interrupted and must be repeated.
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
            if let Some(store) = register(state, other, cluster, instance).await? {
                return adopt_ident(state, Ident::joined(cluster, store));
            }
        }
        tokio::time::sleep(ASK_INTERVAL).await;
    }
}

/// Registers this node through another one. `None` if that is not possible now, for instance without a leader of the
/// system region.
async fn register(
    state: &NodeState,
    other: &Candidate,
    cluster: ClusterId,
    instance: u64,
) -> Result<Option<StoreId>, JoinError> {
    let Ok(host) = other.dialled.parse::<HostPort>() else {
        return Ok(None);
    };
    let Ok(mut node) = client::connect(&host, state.config.connect_from).await else {
        return Ok(None);
    };
    let request = RegisterRequest {
        cluster_id: cluster.get(),
        address: state.config.advertise.to_string(),
        locality: state.config.locality.to_string(),
        forwarded: false,
        instance,
    };
    match node.register(request).await {
        Ok(answer) => Ok(Some(StoreId::new(answer.into_inner().store_id))),
        Err(status) if status.code() == Code::AlreadyExists => Err(JoinError::Refused(status.message().to_string())),
        Err(status) => {
            tracing::info!(node = %host, why = status.message(), "not registered yet");
            Ok(None)
        }
    }
}

/// Keeps the address book up to date from the nodes of `--join`. Completes only if those nodes turn out to belong to
/// another cluster, which they could not tell while this node started because they were down.
pub(crate) async fn discover(state: Arc<NodeState>, ident: Ident) -> JoinError {
    for store in ident.plan.iter().flat_map(|plan| &plan.stores) {
        state.members.learn(StoreId::new(store.id), &store.address);
    }
    state.members.learn(ident.store_id, state.config.advertise.as_str());
    let mut others = JoinPeers::new(&state);
    let mut foreign = BTreeMap::new();
    let mut found_ours = false;
    loop {
        let answers = others.ask().await;
        let ours: Vec<_> = answers.iter().filter(|other| other.cluster_id == Some(ident.cluster_id)).collect();
        for other in &ours {
            state.members.learn(StoreId::new(other.store_id), &other.address);
            for (store, address) in &other.stores {
                state.members.learn_if_unknown(StoreId::new(*store), address);
            }
        }
        found_ours |= !ours.is_empty();
        if let Some(error) = find_foreign_cluster(&answers, ident.cluster_id).filter(|_| !found_ours) {
            return error;
        }
        log_foreign_nodes(&answers, ident.cluster_id, &mut foreign);
        let found_all = ours.len() == others.hosts.len();
        tokio::time::sleep(if found_all { REFRESH_INTERVAL } else { ASK_INTERVAL }).await;
    }
}

/// Logs each node of `--join` that belongs to another cluster, once.
fn log_foreign_nodes(answers: &[Candidate], ours: ClusterId, logged: &mut BTreeMap<String, ClusterId>) {
    for other in answers {
        match other.cluster_id.filter(|cluster| *cluster != ours) {
            Some(cluster) => {
                if logged.insert(other.dialled.clone(), cluster) != Some(cluster) {
                    tracing::error!(node = other.dialled, %cluster, "a node of --join belongs to another cluster");
                }
            }
            None => drop(logged.remove(&other.dialled)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: ClusterId = ClusterId::new(1);
    const THEIRS: ClusterId = ClusterId::new(2);

    fn node(address: &str, cluster_id: Option<ClusterId>) -> Candidate {
        Candidate {
            dialled: address.to_string(),
            address: address.to_string(),
            cluster_id,
            wanted: None,
            store_id: 0,
            plan: None,
            complete: false,
            stores: Vec::new(),
        }
    }

    #[test]
    fn one_foreign_node_does_not_stop_a_node() {
        let (ours, new, foreign) = (node("a", Some(OURS)), node("b", None), node("c", Some(THEIRS)));
        assert!(find_foreign_cluster(&[], OURS).is_none());
        assert!(find_foreign_cluster(std::slice::from_ref(&new), OURS).is_none());
        assert!(find_foreign_cluster(&[foreign.clone(), ours, new.clone()], OURS).is_none());
        let error = find_foreign_cluster(&[new, foreign], OURS).unwrap().to_string();
        assert!(error.starts_with("c belongs to cluster 0000000000000002, but this node has data of"), "{error}");
    }

    #[test]
    fn the_cluster_to_join_is_unambiguous() {
        let (ours, new, foreign) = (node("a", Some(OURS)), node("b", None), node("c", Some(THEIRS)));
        let join = |others: &[&Candidate], wanted| {
            let others: Vec<_> = others.iter().map(|other| (*other).clone()).collect();
            cluster_to_join(&others, wanted).map_err(|error| error.to_string())
        };
        assert_eq!(join(&[&new], None), Ok(None));
        assert_eq!(join(&[&new, &ours], None), Ok(Some(OURS)));
        assert_eq!(join(&[&new], Some(OURS)), Ok(None));
        assert_eq!(join(&[&foreign, &new, &ours], Some(OURS)), Ok(Some(OURS)));
        assert!(join(&[&foreign], Some(OURS)).unwrap_err().contains("--cluster-id"));
        assert!(join(&[&ours, &foreign], None).unwrap_err().contains("different clusters"));
    }

    #[test]
    fn a_foreign_node_is_logged_once() {
        let mut logged = BTreeMap::new();
        log_foreign_nodes(&[node("a", Some(OURS)), node("c", Some(THEIRS))], OURS, &mut logged);
        assert_eq!(logged, BTreeMap::from([("c".to_string(), THEIRS)]));
        log_foreign_nodes(&[node("c", Some(OURS))], OURS, &mut logged);
        assert!(logged.is_empty(), "it belongs to our cluster now");
    }
}

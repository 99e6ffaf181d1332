//! How a node comes to know which store of which cluster it is, and where the others are.
//!
//! A node with an identity on disk keeps it, unless the nodes of `--join` that answer all belong elsewhere; it goes on watching for that. One
//! without waits until `cortado init` reaches it, or joins a cluster that is already there. It never takes the number of a node that was
//! there before: a store that lost its data would break the promises its votes were.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use raftstore::StoreId;
use raftstore::transport::ClusterId;
use tonic::Code;

use super::proto::RegisterRequest;
use super::service::ask;
use super::state::NodeState;
use crate::client;
use crate::config::{HostPort, Membership};
use crate::data_dir::{DataDirError, Ident};
use crate::plan::{Candidate, Plan};

/// Between two looks at the other nodes while waiting.
const ASK_INTERVAL: Duration = Duration::from_millis(500);
/// Between two looks once all have answered: addresses may change.
const REFRESH_INTERVAL: Duration = Duration::from_secs(10);

/// Why a node cannot be part of the cluster; printed as one line.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JoinError {
    /// Its data, or --cluster-id, names another cluster.
    #[error("{who} belongs to cluster {theirs}, but this node {why} cluster {ours}")]
    OtherCluster { who: String, theirs: ClusterId, why: &'static str, ours: ClusterId },
    /// It would not be known which to join.
    #[error("--join names nodes of different clusters: {a} belongs to {a_cluster}, {b} to {b_cluster}")]
    TwoClusters { a: String, a_cluster: ClusterId, b: String, b_cluster: ClusterId },
    /// The cluster knows this address.
    #[error("{0}")]
    Refused(String),
    /// The identity cannot be stored.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
}

/// The identity of this node, found, given or made. Waits as long as it takes for a cluster to be initialised.
pub(crate) async fn identify(state: &Arc<NodeState>) -> Result<Ident, JoinError> {
    if let Some(ident) = state.ident() {
        if let Some(wanted) = state.config.cluster_id.filter(|id| *id != ident.cluster_id) {
            return Err(unwanted("the data directory", ident.cluster_id, wanted));
        }
        let others = Others::new(state).ask().await;
        return match stranger(&others, ident.cluster_id) {
            Some(error) => Err(error),
            None => Ok(ident),
        };
    }
    if state.config.membership == Membership::Alone {
        let plan = Plan::new(new_cluster_id(), [state.config.advertise.to_string()]);
        return settle(state, Ident { complete: true, ..Ident::new(plan.cluster_id, StoreId::new(1), Some(plan)) });
    }
    tracing::info!("waiting for `cortado init`, or for a cluster to join");
    tokio::select! {
        ident = state.wait_for_ident() => Ok(ident),
        joined = join_running_cluster(state) => joined,
    }
}

/// Takes on an identity, unless there is one by now.
fn settle(state: &NodeState, ident: Ident) -> Result<Ident, JoinError> {
    state.update_ident(|present| Ok::<_, DataDirError>(present.is_none().then(|| ident.clone())))?;
    Ok(state.ident().unwrap_or(ident))
}

/// A number that nobody else has, never 0.
#[expect(clippy::disallowed_methods, reason = "the edge where a node draws its ids and the seeds of what it runs")]
pub(super) fn draw() -> u64 {
    rand::random_range(1..=u64::MAX)
}

/// The id of a new cluster.
pub(super) fn new_cluster_id() -> ClusterId {
    ClusterId::new(draw())
}

fn unwanted(who: &str, theirs: ClusterId, wanted: ClusterId) -> JoinError {
    let why = "was started with --cluster-id of";
    JoinError::OtherCluster { who: who.to_string(), theirs, why, ours: wanted }
}

/// What shows that this node's data is of another cluster: a node that belongs elsewhere, while none answers that belongs here. One stray
/// among ours is its own trouble.
fn stranger(others: &[Candidate], ours: ClusterId) -> Option<JoinError> {
    if others.iter().any(|other| other.cluster_id == Some(ours)) {
        return None;
    }
    let (who, theirs) = others.iter().find_map(|other| Some((other.dialled.clone(), other.cluster_id?)))?;
    Some(JoinError::OtherCluster { who, theirs, why: "has data of", ours })
}

/// The cluster that a node without data joins, if one of the others belongs to one.
fn cluster_to_join(others: &[Candidate], wanted: Option<ClusterId>) -> Result<Option<ClusterId>, JoinError> {
    let mut members = others.iter().filter_map(|other| Some((&other.dialled, other.cluster_id?)));
    let Some((first, cluster)) = members.next() else {
        return Ok(None);
    };
    if let Some(wanted) = wanted {
        return match cluster == wanted || members.any(|(_, id)| id == wanted) {
            true => Ok(Some(wanted)),
            false => Err(unwanted(first, cluster, wanted)),
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
struct Others {
    own: HostPort,
    hosts: Vec<HostPort>,
    /// Why each does not answer, as the log has it, so that nothing is told again and again.
    told: BTreeMap<HostPort, String>,
}

impl Others {
    fn new(state: &NodeState) -> Others {
        let own = state.config.advertise.clone();
        let hosts = match &state.config.membership {
            Membership::Alone => Vec::new(),
            Membership::Join(join) => join.iter().filter(|host| **host != own).cloned().collect(),
        };
        Others { own, hosts, told: BTreeMap::new() }
    }

    /// The answers of those that answer.
    async fn ask(&mut self) -> Vec<Candidate> {
        let answers = join_all(self.hosts.iter().map(ask)).await;
        let mut found = Vec::new();
        for (host, answer) in self.hosts.clone().into_iter().zip(answers) {
            match answer {
                // This node under another of its names.
                Ok(other) if other.address == self.own.as_str() => self.hosts.retain(|known| *known != host),
                Ok(other) => {
                    self.told.remove(&host);
                    found.push(other);
                }
                Err(error) => {
                    let why = error.to_string();
                    if self.told.get(&host) != Some(&why) {
                        tracing::info!(%why, "a node of --join does not answer");
                        self.told.insert(host, why);
                    }
                }
            }
        }
        found
    }
}

/// Looks for an initialised cluster until it has taken us in.
async fn join_running_cluster(state: &NodeState) -> Result<Ident, JoinError> {
    let own = state.config.advertise.as_str();
    // One number for all attempts: one that was carried out although its answer was lost is recognised.
    let instance = draw();
    let mut others = Others::new(state);
    loop {
        let answers = others.ask().await;
        let cluster = cluster_to_join(&answers, state.config.cluster_id)?;
        let members =
            answers.iter().filter_map(|other| Some((other, other.cluster_id.filter(|id| Some(*id) == cluster)?)));
        for (other, cluster) in members {
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
            if let Some(store) = register(state, other, cluster, instance).await? {
                return settle(state, Ident::joined(cluster, store));
            }
        }
        tokio::time::sleep(ASK_INTERVAL).await;
    }
}

/// Asks one node to have us taken in; `None` if that cannot be at the moment (nobody leads the system region).
async fn register(
    state: &NodeState,
    other: &Candidate,
    cluster: ClusterId,
    instance: u64,
) -> Result<Option<StoreId>, JoinError> {
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
        instance,
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

/// Keeps the address book up to date from the addresses of `--join`. Ends only if it turns out that this node is among strangers: the nodes
/// that could have told were not up when it started.
pub(crate) async fn discover(state: Arc<NodeState>, ident: Ident) -> JoinError {
    for store in ident.plan.iter().flat_map(|plan| &plan.stores) {
        state.members.learn(StoreId::new(store.id), &store.address);
    }
    state.members.learn(ident.store_id, state.config.advertise.as_str());
    let mut others = Others::new(&state);
    let mut strays = BTreeMap::new();
    let mut met_ours = false;
    loop {
        let answers = others.ask().await;
        let ours: Vec<_> = answers.iter().filter(|other| other.cluster_id == Some(ident.cluster_id)).collect();
        for other in &ours {
            state.members.learn(StoreId::new(other.store_id), &other.address);
            for (store, address) in &other.stores {
                state.members.learn_new(StoreId::new(*store), address);
            }
        }
        met_ours |= !ours.is_empty();
        if let Some(error) = stranger(&answers, ident.cluster_id).filter(|_| !met_ours) {
            return error;
        }
        tell_of_strays(&answers, ident.cluster_id, &mut strays);
        let found_all = ours.len() == others.hosts.len();
        tokio::time::sleep(if found_all { REFRESH_INTERVAL } else { ASK_INTERVAL }).await;
    }
}

/// Logs which nodes of `--join` belong elsewhere, each once.
fn tell_of_strays(answers: &[Candidate], ours: ClusterId, told: &mut BTreeMap<String, ClusterId>) {
    for other in answers {
        match other.cluster_id.filter(|cluster| *cluster != ours) {
            Some(cluster) => {
                if told.insert(other.dialled.clone(), cluster) != Some(cluster) {
                    tracing::error!(node = other.dialled, %cluster, "a node of --join belongs to another cluster");
                }
            }
            None => drop(told.remove(&other.dialled)),
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
    fn one_stray_does_not_stop_a_node() {
        let (ours, new, stray) = (node("a", Some(OURS)), node("b", None), node("c", Some(THEIRS)));
        assert!(stranger(&[], OURS).is_none());
        assert!(stranger(std::slice::from_ref(&new), OURS).is_none());
        assert!(stranger(&[stray.clone(), ours, new.clone()], OURS).is_none());
        let error = stranger(&[new, stray], OURS).unwrap().to_string();
        assert!(error.starts_with("c belongs to cluster 0000000000000002, but this node has data of"), "{error}");
    }

    #[test]
    fn which_cluster_to_join() {
        let (ours, new, stray) = (node("a", Some(OURS)), node("b", None), node("c", Some(THEIRS)));
        let join = |others: &[&Candidate], wanted| {
            let others: Vec<_> = others.iter().map(|other| (*other).clone()).collect();
            cluster_to_join(&others, wanted).map_err(|error| error.to_string())
        };
        assert_eq!(join(&[&new], None), Ok(None));
        assert_eq!(join(&[&new, &ours], None), Ok(Some(OURS)));
        assert_eq!(join(&[&new], Some(OURS)), Ok(None));
        assert_eq!(join(&[&stray, &new, &ours], Some(OURS)), Ok(Some(OURS)));
        assert!(join(&[&stray], Some(OURS)).unwrap_err().contains("--cluster-id"));
        assert!(join(&[&ours, &stray], None).unwrap_err().contains("different clusters"));
    }

    #[test]
    fn a_stray_is_told_of_once() {
        let mut told = BTreeMap::new();
        tell_of_strays(&[node("a", Some(OURS)), node("c", Some(THEIRS))], OURS, &mut told);
        assert_eq!(told, BTreeMap::from([("c".to_string(), THEIRS)]));
        tell_of_strays(&[node("c", Some(OURS))], OURS, &mut told);
        assert!(told.is_empty(), "it came home");
    }
}

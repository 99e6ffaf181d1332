//! The client of a node's service: for the commands `init`, `status` and `demo`, and between nodes.

use std::net::IpAddr;
use std::time::Duration;

use raftstore::transport::ClusterId;
use raftstore::{RegionId, StoreId};
use tonic::Code;
use tonic::transport::{Channel, Endpoint};

use crate::config::HostPort;
use crate::plan::{Candidate, Plan};
use crate::proto::node_client::NodeClient;
use crate::proto::{InfoRequest, InitRequest, TransferLeaderRequest};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// The timeout of a call. Long, because `init` may dial every node.
const CALL_TIMEOUT: Duration = Duration::from_secs(20);

/// Bytes of an answer. A listing of 10,000 row locks of each of some nodes is the largest.
const ANSWER_MAX: usize = 64 << 20;

/// Why a call to a node failed; printed as one line.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    /// No connection.
    #[error("cannot reach a node at {host}: {why}")]
    Unreachable { host: String, why: String },
    /// The node answered with an error.
    #[error("{host}: {why}")]
    Refused { host: String, why: String },
    /// The answer cannot be rendered.
    #[error("malformed answer: {0}")]
    Malformed(String),
}

impl ClientError {
    /// The error for the status that the node at `host` answered with.
    pub(crate) fn refused(host: &HostPort, status: &tonic::Status) -> ClientError {
        ClientError::Refused { host: host.to_string(), why: status.message().to_string() }
    }
}

/// Connects to the node at `host`, from the local address `from` if there is one.
pub(crate) async fn connect(host: &HostPort, from: Option<IpAddr>) -> Result<NodeClient<Channel>, ClientError> {
    let unreachable = |e: &dyn std::error::Error| {
        // tonic's own message is only "transport error"; the root cause is informative.
        let why = e.source().map_or_else(|| e.to_string(), |cause| root_cause(cause).to_string());
        ClientError::Unreachable { host: host.to_string(), why }
    };
    let endpoint = Endpoint::from_shared(format!("http://{host}")).map_err(|e| unreachable(&e))?;
    let endpoint =
        endpoint.connect_timeout(CONNECT_TIMEOUT).timeout(CALL_TIMEOUT).tcp_nodelay(true).local_address(from);
    let channel = endpoint.connect().await.map_err(|e| unreachable(&e))?;
    Ok(NodeClient::new(channel).max_decoding_message_size(ANSWER_MAX))
}

fn root_cause<'a>(mut error: &'a (dyn std::error::Error + 'static)) -> &'a (dyn std::error::Error + 'static) {
    while let Some(cause) = error.source() {
        error = cause;
    }
    error
}

/// Asks the node at `host` for its identity and its plan, as [`connect`] does.
pub(crate) async fn info(host: &HostPort, from: Option<IpAddr>) -> Result<Candidate, ClientError> {
    let mut node = connect(host, from).await?;
    let info = node.info(InfoRequest {}).await.map_err(|s| ClientError::refused(host, &s))?.into_inner();
    let plan = info.plan.map(Plan::try_from).transpose().map_err(|s| ClientError::refused(host, &s))?;
    Ok(Candidate {
        dialled: host.to_string(),
        address: info.address,
        cluster_id: decode_cluster_id(info.cluster_id),
        wanted: decode_cluster_id(info.wanted_cluster_id),
        store_id: info.store_id,
        plan,
        complete: info.complete,
        stores: info.stores.into_iter().map(|s| (s.store_id, s.address)).collect(),
    })
}

/// Decodes a cluster id; 0 is none.
fn decode_cluster_id(raw: u64) -> Option<ClusterId> {
    (raw != 0).then(|| ClusterId::new(raw))
}

/// Initialises the cluster through the node at `host`. Returns the cluster's id and its number of nodes.
pub(crate) async fn init(host: &HostPort) -> Result<(ClusterId, u32), ClientError> {
    let mut node = connect(host, None).await?;
    let answer = node.init(InitRequest {}).await.map_err(|s| ClientError::refused(host, &s))?.into_inner();
    Ok((ClusterId::new(answer.cluster_id), answer.nodes))
}

/// Asks the node at `host` to make a store the leader of a region. `false`: another node leads the region, or none.
pub(crate) async fn transfer_leader(
    host: &HostPort,
    cluster: ClusterId,
    region: RegionId,
    to: StoreId,
) -> Result<bool, ClientError> {
    let mut node = connect(host, None).await?;
    let (cluster_id, region_id, store_id) = (cluster.get(), region.get(), to.get());
    match node.transfer_leader(TransferLeaderRequest { cluster_id, region_id, store_id }).await {
        Ok(_) => Ok(true),
        Err(status) if [Code::FailedPrecondition, Code::Unavailable].contains(&status.code()) => Ok(false),
        Err(status) => Err(ClientError::refused(host, &status)),
    }
}

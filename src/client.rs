//! Dialling a node's service, for the commands `init`, `status` and `demo`, and between nodes.

use std::time::Duration;

use raftstore::transport::ClusterId;
use tonic::transport::{Channel, Endpoint};

use crate::config::HostPort;
use crate::node::proto::InitRequest;
use crate::node::proto::node_client::NodeClient;

/// A connection must be there within this time.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// An answer must be there within this time; `init` may dial every node.
const CALL_TIMEOUT: Duration = Duration::from_secs(20);

/// Why a command got no answer; printed as one line.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    /// Nobody listens there.
    #[error("cannot reach a node at {host}: {why}")]
    Unreachable { host: String, why: String },
    /// The node said no.
    #[error("{host}: {why}")]
    Refused { host: String, why: String },
    /// The answer makes no sense.
    #[error("malformed answer: {0}")]
    Malformed(String),
}

impl ClientError {
    /// From the status that a node answered with.
    pub(crate) fn refused(host: &HostPort, status: &tonic::Status) -> ClientError {
        ClientError::Refused { host: host.to_string(), why: status.message().to_string() }
    }
}

/// Connects to the node at `host`.
pub(crate) async fn connect(host: &HostPort) -> Result<NodeClient<Channel>, ClientError> {
    let unreachable = |e: &dyn std::error::Error| {
        // tonic's own message is only "transport error"; the cause says what happened.
        let why = e.source().map_or_else(|| e.to_string(), |cause| root_cause(cause).to_string());
        ClientError::Unreachable { host: host.to_string(), why }
    };
    let endpoint = Endpoint::from_shared(format!("http://{host}")).map_err(|e| unreachable(&e))?;
    let endpoint = endpoint.connect_timeout(CONNECT_TIMEOUT).timeout(CALL_TIMEOUT).tcp_nodelay(true);
    let channel = endpoint.connect().await.map_err(|e| unreachable(&e))?;
    Ok(NodeClient::new(channel))
}

fn root_cause<'a>(mut error: &'a (dyn std::error::Error + 'static)) -> &'a (dyn std::error::Error + 'static) {
    while let Some(cause) = error.source() {
        error = cause;
    }
    error
}

/// Initialises the cluster through the node at `host`; tells its id and how many nodes it has.
pub(crate) async fn init(host: &HostPort) -> Result<(ClusterId, u32), ClientError> {
    let mut node = connect(host).await?;
    let answer = node.init(InitRequest {}).await.map_err(|s| ClientError::refused(host, &s))?.into_inner();
    Ok((ClusterId::new(answer.cluster_id), answer.nodes))
}

//! The endpoint over gRPC: one HTTP/2 connection per store, opened on first use and reopened when it breaks.
//!
//! Callers need to know whether a failed request may have been executed. It was not if no connection could be opened,
//! or if the response says that the request was refused unread ([`CallError::Unreachable`]). Once bytes may have left
//! this process, the absence of a response proves nothing ([`CallError::Lost`]).

use std::collections::HashMap;
use std::error::Error;
use std::time::Duration;

use futures::future::BoxFuture;
use parking_lot::RwLock;
use prost::Message;
use raftstore::{RegionStatus, StoreId};
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;
use tonic::{Code, ConnectError, Status};
use tso::cluster::{AttachCluster, ClusterTag};

use super::endpoint::{CallError, Endpoint};
use crate::api::{Request, Response, ServerError};
use crate::proto::pb;
use crate::proto::pb::kv_client::KvClient;
use crate::size::MESSAGE_BYTES_MAX;

/// Settings of the remote endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteConfig {
    /// Timeout for opening a connection. Default 1 s.
    pub connect_timeout: Duration,
    /// Timeout for the response to a request; then the request counts as lost. Default 4 s.
    pub request_timeout: Duration,
    /// Timeout for the response to a region lookup. Default 1 s.
    pub locate_timeout: Duration,
    /// Interval of keep-alive probes on a connection. Default 1 s.
    pub keep_alive: Duration,
    /// Timeout for the response to a probe; then the connection is closed. Default 2 s.
    pub keep_alive_timeout: Duration,
    /// The cluster of the requests; a store of another cluster refuses them. Default `None`, for servers that do not
    /// check it.
    pub cluster: Option<ClusterTag>,
}

impl Default for RemoteConfig {
    fn default() -> RemoteConfig {
        RemoteConfig {
            connect_timeout: Duration::from_secs(1),
            request_timeout: Duration::from_secs(4),
            locate_timeout: Duration::from_secs(1),
            keep_alive: Duration::from_secs(1),
            keep_alive_timeout: Duration::from_secs(2),
            cluster: None,
        }
    }
}

/// A store's address that is not `host:port`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("store {store} has the malformed address {address:?}: {why}")]
pub struct BadAddress {
    /// The store.
    pub store: StoreId,
    /// The address given.
    pub address: String,
    /// What is wrong with it.
    pub why: String,
}

/// A gRPC client that attaches the cluster to every request.
type GrpcClient = KvClient<InterceptedService<Channel, AttachCluster>>;

struct RemoteStore {
    address: String,
    client: GrpcClient,
}

/// The known stores.
#[derive(Default)]
struct StoreTable {
    /// Nearest first.
    order: Vec<StoreId>,
    by_id: HashMap<StoreId, RemoteStore>,
}

/// Sends requests to stores over gRPC.
pub struct RemoteEndpoint {
    config: RemoteConfig,
    stores: RwLock<StoreTable>,
}

impl RemoteEndpoint {
    /// An endpoint that knows no store yet.
    pub fn new(config: RemoteConfig) -> RemoteEndpoint {
        RemoteEndpoint { config, stores: RwLock::new(StoreTable::default()) }
    }

    /// Replaces the known stores. Addresses are `host:port`, nearest store first. Connections to stores whose address
    /// did not change are kept. Does not connect: the first request does.
    ///
    /// # Errors
    ///
    /// [`BadAddress`] for the first malformed address; nothing is changed then.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn set_stores(&self, stores: Vec<(StoreId, String)>) -> Result<(), BadAddress> {
        let mut known = self.stores.write();
        let mut fresh = Vec::new();
        for (store, address) in &stores {
            if known.by_id.get(store).is_none_or(|remote| remote.address != *address) {
                fresh.push((*store, self.connect(*store, address)?));
            }
        }
        known.order = stores.iter().map(|(store, _)| *store).collect();
        known.by_id.retain(|store, _| stores.iter().any(|(kept, _)| kept == store));
        known.by_id.extend(fresh);
        Ok(())
    }

    /// Prepares a connection, which the first request opens.
    fn connect(&self, store: StoreId, address: &str) -> Result<RemoteStore, BadAddress> {
        let endpoint = Channel::from_shared(format!("http://{address}")).map_err(|error| BadAddress {
            store,
            address: address.to_owned(),
            why: error.to_string(),
        })?;
        let channel = endpoint
            .connect_timeout(self.config.connect_timeout)
            .tcp_nodelay(true)
            .http2_keep_alive_interval(self.config.keep_alive)
            .keep_alive_timeout(self.config.keep_alive_timeout)
            .keep_alive_while_idle(true)
            .http2_adaptive_window(true)
            .connect_lazy();
        let client = KvClient::with_interceptor(channel, AttachCluster(self.config.cluster.clone()))
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(MESSAGE_BYTES_MAX);
        Ok(RemoteStore { address: address.to_owned(), client })
    }

    fn client(&self, store: StoreId) -> Result<GrpcClient, CallError> {
        let stores = self.stores.read();
        let unknown = || CallError::Unreachable { store, why: "its address is not known".to_owned() };
        stores.by_id.get(&store).map(|remote| remote.client.clone()).ok_or_else(unknown)
    }

    async fn send(&self, store: StoreId, request: Request) -> Result<Response, CallError> {
        let mut client = self.client(store)?;
        let message = check_size(pb::Request::from(request))?;
        let answer = with_timeout(store, self.config.request_timeout, client.call(message)).await?;
        match Result::<Response, ServerError>::try_from(answer) {
            Ok(answer) => answer.map_err(CallError::from),
            // The store executed the request, but its response is malformed.
            Err(error) => Err(CallError::Lost { store, why: error.to_string() }),
        }
    }

    async fn locate_at(&self, store: StoreId, key: Vec<u8>) -> Result<Option<RegionStatus>, CallError> {
        let mut client = self.client(store)?;
        let request = pb::LocateRequest { key: key.into() };
        let answer = with_timeout(store, self.config.locate_timeout, client.locate(request)).await?;
        Option::<RegionStatus>::try_from(answer).map_err(|error| ServerError::Failed(error.to_string()).into())
    }
}

impl Endpoint for RemoteEndpoint {
    fn call(&self, store: StoreId, request: Request) -> BoxFuture<'_, Result<Response, CallError>> {
        Box::pin(self.send(store, request))
    }

    fn locate(&self, store: StoreId, key: Vec<u8>) -> BoxFuture<'_, Result<Option<RegionStatus>, CallError>> {
        Box::pin(self.locate_at(store, key))
    }

    fn stores(&self) -> Vec<StoreId> {
        self.stores.read().order.clone()
    }
}

/// Refuses a message that is too large to send. The encoder would refuse it too, but as a broken call.
fn check_size(message: pb::Request) -> Result<pb::Request, ServerError> {
    let (bytes, limit) = (message.encoded_len(), MESSAGE_BYTES_MAX);
    if bytes > limit { Err(ServerError::TooLarge { bytes, limit }) } else { Ok(message) }
}

/// Waits for a response, up to `timeout`.
async fn with_timeout<T>(
    store: StoreId,
    timeout: Duration,
    call: impl Future<Output = Result<tonic::Response<T>, Status>>,
) -> Result<T, CallError> {
    match tokio::time::timeout(timeout, call).await {
        Ok(Ok(response)) => Ok(response.into_inner()),
        Ok(Err(status)) => Err(classify(store, &status)),
        Err(_) => Err(CallError::Lost { store, why: format!("no answer within {timeout:?}") }),
    }
}

/// Classifies a failed call by whether its request may have been executed.
fn classify(store: StoreId, status: &Status) -> CallError {
    let why = format!("{:?}: {}", status.code(), status.message());
    if source_is_connect_error(status) {
        return CallError::Unreachable { store, why };
    }
    match status.code() {
        // Refused unread: the node belongs to another cluster, or does not serve yet.
        Code::FailedPrecondition | Code::Unimplemented | Code::PermissionDenied | Code::Unauthenticated => {
            CallError::Unreachable { store, why }
        }
        // The message is refused before it is executed, and every store would refuse it. (A response too large for us
        // would look the same, but stores never send one.)
        Code::InvalidArgument | Code::OutOfRange => ServerError::Invalid(format!("store {store}: {why}")).into(),
        _ => CallError::Lost { store, why },
    }
}

fn source_is_connect_error(status: &Status) -> bool {
    let mut source: Option<&(dyn Error + 'static)> = status.source();
    while let Some(error) = source {
        if error.is::<ConnectError>() {
            return true;
        }
        source = error.source();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_refused_unread_was_not_delivered() {
        let store = StoreId::new(1);
        for status in [Status::failed_precondition("another cluster"), Status::unimplemented("")] {
            assert!(matches!(classify(store, &status), CallError::Unreachable { .. }), "{status}");
        }
        for status in [Status::unavailable(""), Status::resource_exhausted("reset by a server under load")] {
            assert!(matches!(classify(store, &status), CallError::Lost { .. }), "{status}");
        }
    }

    #[test]
    fn a_message_that_every_store_refuses_is_final() {
        for status in [Status::invalid_argument("no context"), Status::out_of_range("message length too large")] {
            let error = classify(StoreId::new(1), &status);
            assert!(matches!(error, CallError::Server(ServerError::Invalid(_))), "{status}");
            assert!(error.is_final() && !error.maybe_delivered(), "{status}");
        }
    }
}

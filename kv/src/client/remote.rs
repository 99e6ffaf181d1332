//! The endpoint over gRPC: one HTTP/2 connection per store, made on first use and again whenever it breaks.
//!
//! What matters to the callers is whether a request that failed can have been carried out. It surely was not when no
//! connection could be made ([`CallError::Unreachable`]). Once bytes may have left this process, silence proves nothing
//! ([`CallError::Lost`]), unless an answer says that the request was refused unseen.

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
    /// How long to wait for a connection. Default 1 s.
    pub connect_timeout: Duration,
    /// How long to wait for the answer to a request, after which it counts as lost. Default 4 s.
    pub request_timeout: Duration,
    /// How long to wait for the answer to a lookup of a region. Default 1 s.
    pub locate_timeout: Duration,
    /// How often an idle connection is probed. Default 1 s.
    pub keep_alive: Duration,
    /// How long a probe may stay unanswered before the connection is given up. Default 2 s.
    pub keep_alive_timeout: Duration,
    /// The cluster that requests belong to, so that a store of another refuses them. Default none, for servers that do not ask.
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

/// An address that is no `host:port`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("store {store} has the malformed address {address:?}: {why}")]
pub struct BadAddress {
    /// The store.
    pub store: StoreId,
    /// What was given.
    pub address: String,
    /// What is wrong with it.
    pub why: String,
}

/// A client whose requests say which cluster they belong to.
type Stub = KvClient<InterceptedService<Channel, AttachCluster>>;

struct Remote {
    address: String,
    client: Stub,
}

/// The stores known, nearest first.
#[derive(Default)]
struct Stores {
    order: Vec<StoreId>,
    by_id: HashMap<StoreId, Remote>,
}

/// Sends requests to stores over the network.
pub struct RemoteEndpoint {
    config: RemoteConfig,
    stores: RwLock<Stores>,
}

impl RemoteEndpoint {
    /// An endpoint that knows no store yet.
    pub fn new(config: RemoteConfig) -> RemoteEndpoint {
        RemoteEndpoint { config, stores: RwLock::new(Stores::default()) }
    }

    /// Replaces the stores known, given as `host:port`, nearest first. Connections to stores whose address stays are
    /// kept. On an error nothing is changed. Must be called within a tokio runtime.
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

    /// Prepares a connection; it is made by the first request.
    fn connect(&self, store: StoreId, address: &str) -> Result<Remote, BadAddress> {
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
        Ok(Remote { address: address.to_owned(), client })
    }

    fn client(&self, store: StoreId) -> Result<Stub, CallError> {
        let stores = self.stores.read();
        let unknown = || CallError::Unreachable { store, why: "its address is not known".to_owned() };
        stores.by_id.get(&store).map(|remote| remote.client.clone()).ok_or_else(unknown)
    }

    async fn send(&self, store: StoreId, request: Request) -> Result<Response, CallError> {
        let mut client = self.client(store)?;
        let message = within_limit(pb::Request::from(request))?;
        let answer = within(store, self.config.request_timeout, client.call(message)).await?;
        match Result::<Response, ServerError>::try_from(answer) {
            Ok(answer) => answer.map_err(CallError::from),
            // It did something, and says what in a way we do not understand.
            Err(error) => Err(CallError::Lost { store, why: error.to_string() }),
        }
    }

    async fn ask(&self, store: StoreId, key: Vec<u8>) -> Result<Option<RegionStatus>, CallError> {
        let mut client = self.client(store)?;
        let request = pb::LocateRequest { key: key.into() };
        let answer = within(store, self.config.locate_timeout, client.locate(request)).await?;
        Option::<RegionStatus>::try_from(answer).map_err(|error| ServerError::Failed(error.to_string()).into())
    }
}

impl Endpoint for RemoteEndpoint {
    fn call(&self, store: StoreId, request: Request) -> BoxFuture<'_, Result<Response, CallError>> {
        Box::pin(self.send(store, request))
    }

    fn locate(&self, store: StoreId, key: Vec<u8>) -> BoxFuture<'_, Result<Option<RegionStatus>, CallError>> {
        Box::pin(self.ask(store, key))
    }

    fn stores(&self) -> Vec<StoreId> {
        self.stores.read().order.clone()
    }
}

/// The message, if it may be sent. The encoder would refuse it too, but as a call that broke in the middle.
fn within_limit(message: pb::Request) -> Result<pb::Request, ServerError> {
    let (bytes, limit) = (message.encoded_len(), MESSAGE_BYTES_MAX);
    if bytes > limit { Err(ServerError::TooLarge { bytes, limit }) } else { Ok(message) }
}

/// Waits for an answer, no longer than `limit`.
async fn within<T>(
    store: StoreId,
    limit: Duration,
    call: impl Future<Output = Result<tonic::Response<T>, Status>>,
) -> Result<T, CallError> {
    match tokio::time::timeout(limit, call).await {
        Ok(Ok(response)) => Ok(response.into_inner()),
        Ok(Err(status)) => Err(classify(store, &status)),
        Err(_) => Err(CallError::Lost { store, why: format!("no answer within {limit:?}") }),
    }
}

/// What a failed call means for the request it carried.
fn classify(store: StoreId, status: &Status) -> CallError {
    let why = format!("{:?}: {}", status.code(), status.message());
    if source_is_connect_error(status) {
        return CallError::Unreachable { store, why };
    }
    match status.code() {
        // Refused before anybody looked at it: the node belongs to another cluster, or does not serve yet.
        Code::FailedPrecondition | Code::Unimplemented | Code::PermissionDenied | Code::Unauthenticated => {
            CallError::Unreachable { store, why }
        }
        // The message itself is refused, before it is carried out, and so it would be anywhere. (An answer that is too large for us would look
        // the same, but stores send none.)
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
    fn what_was_refused_unseen_goes_elsewhere() {
        let store = StoreId::new(1);
        for status in [Status::failed_precondition("another cluster"), Status::unimplemented("")] {
            assert!(matches!(classify(store, &status), CallError::Unreachable { .. }), "{status}");
        }
        for status in [Status::unavailable(""), Status::resource_exhausted("reset by a server under load")] {
            assert!(matches!(classify(store, &status), CallError::Lost { .. }), "{status}");
        }
    }

    #[test]
    fn a_message_that_is_refused_as_such_is_given_up() {
        for status in [Status::invalid_argument("no context"), Status::out_of_range("message length too large")] {
            let error = classify(StoreId::new(1), &status);
            assert!(matches!(error, CallError::Server(ServerError::Invalid(_))), "{status}");
            assert!(error.is_final() && !error.maybe_delivered(), "{status}");
        }
    }
}

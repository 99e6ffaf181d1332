//! The endpoint over links to stores, opened on first use and reopened when they break.
//!
//! Callers need to know whether a failed request may have been executed. It was not if it did not leave this process
//! whole, or if the response says that the request was refused unread ([`CallError::Unreachable`]). Once it has left,
//! the absence of a response proves nothing ([`CallError::Lost`]). The link knows which.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use link::{Links, Peer};
use parking_lot::RwLock;
use prost::Message;
use raftstore::{RegionError, RegionStatus, StoreId};

use super::endpoint::{CallError, Endpoint};
use super::locality::Locality;
use crate::api::{Request, Response, ServerError};
use crate::proto::{LOCATE, REQUEST, pb};
use crate::size::MESSAGE_BYTES_MAX;

/// Settings of the remote endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteConfig {
    /// Timeout for the response to a request; then the request counts as lost. Default 4 s.
    pub request_timeout: Duration,
    /// Timeout for the response to a region lookup. Default 1 s.
    pub locate_timeout: Duration,
}

impl Default for RemoteConfig {
    fn default() -> RemoteConfig {
        RemoteConfig { request_timeout: Duration::from_secs(4), locate_timeout: Duration::from_secs(1) }
    }
}

/// A store's address that is not `host:port`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("store {store}: {why}")]
pub struct BadAddress {
    /// The store.
    pub store: StoreId,
    /// What is wrong with it.
    pub why: link::BadAddress,
}

/// The known stores.
#[derive(Default)]
struct StoreTable {
    /// Nearest first.
    order: Vec<StoreId>,
    by_id: HashMap<StoreId, Peer>,
    localities: HashMap<StoreId, Locality>,
}

/// Sends requests to stores over links.
pub struct RemoteEndpoint {
    config: RemoteConfig,
    links: Arc<Links>,
    stores: RwLock<StoreTable>,
}

impl RemoteEndpoint {
    /// An endpoint that knows no store yet. It shares `links` with whatever else talks to the same nodes.
    pub fn new(config: RemoteConfig, links: Arc<Links>) -> RemoteEndpoint {
        RemoteEndpoint { config, links, stores: RwLock::new(StoreTable::default()) }
    }

    /// Replaces the known stores. Addresses are `host:port`, nearest store first. The links to addresses that are no
    /// store's any more are closed. Does not connect: the first request does.
    ///
    /// # Errors
    ///
    /// [`BadAddress`] for the first malformed address; nothing is changed then.
    pub fn set_stores(&self, stores: Vec<(StoreId, String)>) -> Result<(), BadAddress> {
        let mut known = self.stores.write();
        let mut by_id = HashMap::with_capacity(stores.len());
        for (store, address) in &stores {
            let peer = match known.by_id.get(store) {
                Some(peer) if peer.address() == address => peer.clone(),
                _ => self.links.peer(address).map_err(|why| BadAddress { store: *store, why })?,
            };
            by_id.insert(*store, peer);
        }
        known.order = stores.iter().map(|(store, _)| *store).collect();
        let before = std::mem::replace(&mut known.by_id, by_id);
        drop(known);
        for peer in before.into_values() {
            if !stores.iter().any(|(_, address)| address == peer.address()) {
                self.links.close(peer.address());
            }
        }
        Ok(())
    }

    /// Replaces what is known of where stores are.
    pub fn set_localities(&self, localities: impl IntoIterator<Item = (StoreId, Locality)>) {
        self.stores.write().localities = localities.into_iter().collect();
    }

    fn peer(&self, store: StoreId) -> Result<Peer, CallError> {
        let stores = self.stores.read();
        let unknown = || CallError::Unreachable { store, why: "its address is not known".to_owned() };
        stores.by_id.get(&store).cloned().ok_or_else(unknown)
    }

    async fn send(&self, store: StoreId, request: Request) -> Result<Response, CallError> {
        let peer = self.peer(store)?;
        let payload = encode(&pb::Request::from(request))?;
        let answer = peer.call(REQUEST, payload, self.config.request_timeout).await;
        let answer = pb::Response::decode(answer.map_err(|error| classify(store, error))?);
        // The store executed the request, but its response is malformed.
        let malformed = |why: String| CallError::Lost { store, why };
        let answer = answer.map_err(|error| malformed(error.to_string()))?;
        let answer = Result::<Response, ServerError>::try_from(answer).map_err(|error| malformed(error.to_string()))?;
        answer.map_err(CallError::from)
    }

    async fn locate_at(&self, store: StoreId, key: Vec<u8>) -> Result<Option<RegionStatus>, CallError> {
        let peer = self.peer(store)?;
        let payload = encode(&pb::LocateRequest { key: key.into() })?;
        let answer = peer.call(LOCATE, payload, self.config.locate_timeout).await;
        let answer = answer.map_err(|error| classify(store, error))?;
        let answer = pb::LocateResponse::decode(answer).map_err(|error| ServerError::Failed(error.to_string()))?;
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

    fn locality(&self, store: StoreId) -> Locality {
        self.stores.read().localities.get(&store).cloned().unwrap_or_default()
    }
}

/// Encodes a message, or refuses it if it is too large to send.
fn encode(message: &impl Message) -> Result<Bytes, ServerError> {
    let (bytes, limit) = (message.encoded_len(), MESSAGE_BYTES_MAX);
    if bytes > limit { Err(ServerError::TooLarge { bytes, limit }) } else { Ok(message.encode_to_vec().into()) }
}

/// What the client reacts to when the link has no answer.
fn classify(store: StoreId, error: link::CallError) -> CallError {
    match error {
        link::CallError::Busy(what) => ServerError::from(RegionError::ServerBusy { store, what }).into(),
        link::CallError::Unreachable(why) => CallError::Unreachable { store, why },
        link::CallError::Invalid(why) => ServerError::Invalid(format!("store {store}: {why}")).into(),
        link::CallError::Lost(why) => CallError::Lost { store, why },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_whether_the_request_may_have_been_executed() {
        let classify = |error: link::CallError| classify(StoreId::new(1), error);
        for refused in [link::CallError::Busy(String::new()), link::CallError::Unreachable(String::new())] {
            let error = classify(refused);
            assert!(!error.is_final() && !error.maybe_delivered(), "{error:?}");
        }
        let invalid = classify(link::CallError::Invalid("no context".to_owned()));
        assert!(invalid.is_final() && !invalid.maybe_delivered());
        let lost = classify(link::CallError::Lost(String::new()));
        assert!(!lost.is_final() && lost.maybe_delivered());
    }
}

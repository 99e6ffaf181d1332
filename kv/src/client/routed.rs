//! The endpoint of a node: calls its own store directly and other stores over the network.
//!
//! The node passes in its store as a [`LocalStore`], so that the client and the server modules do not import each
//! other.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use raftstore::{RegionContext, RegionStatus, StoreId};
use tso::Timestamp;

use super::endpoint::{CallError, Endpoint};
use super::locality::Locality;
use crate::api::{Request, Response, Served, ServerError};
use crate::key::Key;

/// This node's own store.
pub trait LocalStore: Send + Sync + 'static {
    /// Executes a request. The future may be dropped at any time; a write under way then takes effect or does not.
    fn call(&self, request: Request) -> BoxFuture<'_, Result<Response, ServerError>>;
    /// Reads a key, given with its storage form, within this call, or returns `None`: see [`Endpoint::try_get`].
    fn try_get(&self, context: RegionContext, key: (&Key, &[u8]), start_ts: Timestamp) -> Option<Option<Bytes>>;
    /// Reads a key at this store's own replica within this call, or returns `None`: see [`Endpoint::try_replica_get`].
    fn try_replica_get(
        &self,
        _context: RegionContext,
        _key: (&Key, &[u8]),
        _start_ts: Timestamp,
        _floor: Option<Timestamp>,
    ) -> Option<(Option<Bytes>, Served)> {
        None
    }
    /// The region that has a replica on this store and holds the storage key. Must not block.
    fn locate(&self, key: &[u8]) -> Option<RegionStatus>;
}

/// Calls this node's store directly and sends all other requests to another endpoint.
pub struct RoutedEndpoint {
    local_id: StoreId,
    local: Arc<dyn LocalStore>,
    remote: Arc<dyn Endpoint>,
    timeout: Duration,
}

impl RoutedEndpoint {
    /// `local_id` is the id of the store behind `local`. A local call that takes longer than `timeout` (it waits for a
    /// quorum) counts as [`CallError::Lost`], so that the client asks another replica. `remote` handles all other
    /// stores.
    pub fn new(
        local_id: StoreId,
        local: Arc<dyn LocalStore>,
        remote: Arc<dyn Endpoint>,
        timeout: Duration,
    ) -> RoutedEndpoint {
        RoutedEndpoint { local_id, local, remote, timeout }
    }
}

impl Endpoint for RoutedEndpoint {
    fn call(&self, store: StoreId, request: Request) -> BoxFuture<'_, Result<Response, CallError>> {
        if store != self.local_id {
            return self.remote.call(store, request);
        }
        Box::pin(async move {
            match tokio::time::timeout(self.timeout, self.local.call(request)).await {
                Ok(answer) => answer.map_err(CallError::from),
                Err(_) => Err(CallError::Lost { store, why: format!("no answer within {:?}", self.timeout) }),
            }
        })
    }

    fn locate(&self, store: StoreId, key: Vec<u8>) -> BoxFuture<'_, Result<Option<RegionStatus>, CallError>> {
        if store != self.local_id {
            return self.remote.locate(store, key);
        }
        Box::pin(std::future::ready(Ok(self.local.locate(&key))))
    }

    fn try_get(
        &self,
        store: StoreId,
        context: RegionContext,
        key: (&Key, &[u8]),
        start_ts: Timestamp,
    ) -> Option<Option<Bytes>> {
        if store == self.local_id { self.local.try_get(context, key, start_ts) } else { None }
    }

    fn try_replica_get(
        &self,
        store: StoreId,
        context: RegionContext,
        key: (&Key, &[u8]),
        start_ts: Timestamp,
        floor: Option<Timestamp>,
    ) -> Option<(Option<Bytes>, Served)> {
        if store == self.local_id { self.local.try_replica_get(context, key, start_ts, floor) } else { None }
    }

    fn own_store(&self) -> Option<StoreId> {
        Some(self.local_id)
    }

    fn locality(&self, store: StoreId) -> Locality {
        self.remote.locality(store)
    }

    fn stores(&self) -> Vec<StoreId> {
        let others = self.remote.stores().into_iter().filter(|store| *store != self.local_id);
        std::iter::once(self.local_id).chain(others).collect()
    }
}

//! The endpoint of a node: its own store is called as a function, the others over the network.
//!
//! The node hands in its store behind [`LocalStore`], so that client and server modules need not know each other.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use raftstore::{RegionStatus, StoreId};

use super::endpoint::{CallError, Endpoint};
use crate::api::{Request, Response, ServerError};

/// This node's own store, as the client calls it.
pub trait LocalStore: Send + Sync + 'static {
    /// Carries out a request. The future may be dropped at any time: a write then takes effect or does not.
    fn call(&self, request: Request) -> BoxFuture<'_, Result<Response, ServerError>>;
    /// The region with a replica here that holds a storage key.
    fn locate(&self, key: &[u8]) -> Option<RegionStatus>;
}

/// Sends requests for this node's store to a function, all others to another endpoint.
pub struct RoutedEndpoint {
    own: StoreId,
    local: Arc<dyn LocalStore>,
    remote: Arc<dyn Endpoint>,
    timeout: Duration,
}

impl RoutedEndpoint {
    /// `own` is the id of the store behind `local`. A local call that takes longer than `timeout` (it waits for a
    /// quorum) counts as lost, so that another replica is asked.
    pub fn new(
        own: StoreId,
        local: Arc<dyn LocalStore>,
        remote: Arc<dyn Endpoint>,
        timeout: Duration,
    ) -> RoutedEndpoint {
        RoutedEndpoint { own, local, remote, timeout }
    }
}

impl Endpoint for RoutedEndpoint {
    fn call(&self, store: StoreId, request: Request) -> BoxFuture<'_, Result<Response, CallError>> {
        if store != self.own {
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
        if store != self.own {
            return self.remote.locate(store, key);
        }
        Box::pin(std::future::ready(Ok(self.local.locate(&key))))
    }

    fn stores(&self) -> Vec<StoreId> {
        let others = self.remote.stores().into_iter().filter(|store| *store != self.own);
        std::iter::once(self.own).chain(others).collect()
    }
}

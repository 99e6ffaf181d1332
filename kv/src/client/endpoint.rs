//! The seam below the client: how a request reaches one store.
//!
//! Implemented by [`super::remote::RemoteEndpoint`] (gRPC), [`super::routed::RoutedEndpoint`] (this node's own store
//! without the network, the others over it) and by test doubles.

use futures::future::BoxFuture;
use raftstore::{RegionStatus, StoreId};

use crate::api::{Request, Response, ServerError};

/// How requests reach stores: in this process, over gRPC, or into a test double. Every call ends in bounded time.
pub trait Endpoint: Send + Sync + 'static {
    /// Sends a request to a store.
    fn call(&self, store: StoreId, request: Request) -> BoxFuture<'_, Result<Response, CallError>>;
    /// Asks a store which region holds a storage key; `None` if it does not know.
    fn locate(&self, store: StoreId, key: Vec<u8>) -> BoxFuture<'_, Result<Option<RegionStatus>, CallError>>;
    /// The stores worth asking, nearest first (this node's own store first).
    fn stores(&self) -> Vec<StoreId>;
}

/// A call that brought back no `Response`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The server refused.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The store was not reached; the request was not delivered.
    #[error("store {store} is unreachable: {why}")]
    Unreachable {
        /// The store.
        store: StoreId,
        /// What failed.
        why: String,
    },
    /// The connection broke, or the deadline passed, after the request may have been delivered.
    #[error("no answer from store {store}: {why}")]
    Lost {
        /// The store.
        store: StoreId,
        /// What failed.
        why: String,
    },
}

impl CallError {
    /// Whether the same request would be refused again, wherever it is sent.
    pub fn is_final(&self) -> bool {
        let CallError::Server(error) = self else { return false };
        matches!(error, ServerError::Key(_) | ServerError::TooLarge { .. } | ServerError::Invalid(_))
    }

    /// Whether a write sent by the failed call may have taken effect, or may yet do so.
    pub fn maybe_delivered(&self) -> bool {
        match self {
            CallError::Lost { .. } => true,
            CallError::Server(ServerError::Undetermined(_)) => true,
            // Refused, or failed before anything was proposed.
            CallError::Server(
                ServerError::Region(_)
                | ServerError::Key(_)
                | ServerError::TooLarge { .. }
                | ServerError::Invalid(_)
                | ServerError::Failed(_),
            )
            | CallError::Unreachable { .. } => false,
        }
    }
}

//! The interface between the client and the transport: how one request reaches one store.
//!
//! Implemented by [`super::remote::RemoteEndpoint`] (a link), [`super::routed::RoutedEndpoint`] (this node's own store
//! without the network, other stores over it) and by test doubles.

use bytes::Bytes;
use futures::future::BoxFuture;
use raftstore::{RegionContext, RegionStatus, StoreId};
use tso::Timestamp;

use super::locality::Locality;
use crate::api::{Request, Response, Served, ServerError};
use crate::key::Key;

/// Delivers requests to stores. Every call must complete in bounded time.
///
/// Dropping the future of a call does not undo it: a write that was sent may still take effect.
pub trait Endpoint: Send + Sync + 'static {
    /// Sends a request to a store, once.
    fn call(&self, store: StoreId, request: Request) -> BoxFuture<'_, Result<Response, CallError>>;
    /// Asks a store which region holds a storage key. `None` if the store has no replica of it.
    fn locate(&self, store: StoreId, key: Vec<u8>) -> BoxFuture<'_, Result<Option<RegionStatus>, CallError>>;
    /// Reads a key, given with its storage form, at `start_ts` within this call, if that takes neither a message nor
    /// a wait. `None` if it does, and for every outcome but a value or its absence: [`Endpoint::call`] then finds out.
    fn try_get(
        &self,
        _store: StoreId,
        _context: RegionContext,
        _key: (&Key, &[u8]),
        _start_ts: Timestamp,
    ) -> Option<Option<Bytes>> {
        None
    }
    /// Reads a key at a store's replica, whoever leads, within this call: at `start_ts`, or, if that is
    /// [`Timestamp::ZERO`], at the newest snapshot that the replica can prove, not below `floor`. `None` if that takes
    /// a message or a wait, and for every outcome but a value or its absence.
    fn try_replica_get(
        &self,
        _store: StoreId,
        _context: RegionContext,
        _key: (&Key, &[u8]),
        _start_ts: Timestamp,
        _floor: Option<Timestamp>,
    ) -> Option<(Option<Bytes>, Served)> {
        None
    }
    /// The known stores, nearest first. This node's own store is first.
    fn stores(&self) -> Vec<StoreId>;
    /// This node's own store, to which a call sends no message. `None` if the node has none.
    fn own_store(&self) -> Option<StoreId> {
        None
    }
    /// Where a store is, as far as it is known.
    fn locality(&self, _store: StoreId) -> Locality {
        Locality::default()
    }
}

/// Why a call returned no [`Response`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The server answered with an error.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The store was not reached, or refused the request unread. The request was not executed.
    #[error("store {store} is unreachable: {why}")]
    Unreachable {
        /// The store.
        store: StoreId,
        /// What failed.
        why: String,
    },
    /// The connection broke, the timeout passed, or the response was malformed, after the request may have been
    /// delivered.
    #[error("no answer from store {store}: {why}")]
    Lost {
        /// The store.
        store: StoreId,
        /// What failed.
        why: String,
    },
}

impl CallError {
    /// Whether every store would refuse the same request again.
    pub fn is_final(&self) -> bool {
        let CallError::Server(error) = self else { return false };
        matches!(error, ServerError::Key(_) | ServerError::TooLarge { .. } | ServerError::Invalid(_))
    }

    /// Whether a write sent by the failed call may have taken effect or may still do so.
    pub fn maybe_delivered(&self) -> bool {
        match self {
            CallError::Lost { .. } => true,
            CallError::Server(ServerError::Undetermined(_)) => true,
            // Refused, or failed before the proposal.
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

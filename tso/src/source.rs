//! The interfaces between the client, the router and the oracles, and the errors that cross them.
//!
//! [`OracleNode`] is one node that may be the oracle: its error can redirect the caller to the leader. [`TsoSource`]
//! hides the choice of the node: its errors leave the client only to retry or to give up.

use std::sync::Arc;

use futures::future::BoxFuture;

use crate::timestamp::TsRange;

/// Why a client got no timestamp.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum TsoError {
    /// No oracle served before the deadline, or the client's queue is full. A later call may succeed.
    #[error("no timestamp oracle answered: {0}")]
    Unavailable(String),
    /// The client was closed, or its runtime is shutting down: the node is stopping.
    #[error("the timestamp client is closed")]
    Closed,
}

/// Why a node issued no timestamps.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AllocateError {
    /// Another node leads.
    #[error("not the leader of the timestamp oracle")]
    NotLeader {
        /// Address of the node believed to lead, if known.
        hint: Option<String>,
    },
    /// The node leads but cannot serve now, or could not be reached. The caller retries.
    #[error("timestamp oracle unavailable: {0}")]
    Unavailable(String),
    /// A count of 0 or above [`crate::timestamp::MAX_COUNT`].
    #[error("{0} timestamps asked for at once")]
    InvalidCount(u32),
}

impl From<AllocateError> for TsoError {
    fn from(error: AllocateError) -> TsoError {
        TsoError::Unavailable(error.to_string())
    }
}

/// A source of timestamps: the oracle of this node, the oracle of another node, a router over all of them, or a test
/// double.
pub trait TsoSource: Send + Sync + 'static {
    /// Issues `count` timestamps within this call, if that takes neither a message nor a wait: the oracle is in this
    /// process. Otherwise `None`, and [`TsoSource::allocate`] is the way.
    fn try_allocate(&self, _count: u32) -> Option<TsRange> {
        None
    }

    /// Issues `count` timestamps (1 to 2^17) after this call was made. One attempt, bounded in time; the client
    /// retries.
    fn allocate(&self, count: u32) -> BoxFuture<'_, Result<TsRange, TsoError>>;
}

/// A node that may be the oracle.
pub trait OracleNode: Send + Sync + 'static {
    /// Issues `count` timestamps (1 to 2^17) after this call was made, or redirects to the leader. One attempt, bounded
    /// in time.
    fn allocate(&self, count: u32) -> BoxFuture<'_, Result<TsRange, AllocateError>>;
}

/// The oracle at an address. Called for every request to another node; must not block, and need not connect yet.
pub type Connect = dyn Fn(&str) -> Result<Arc<dyn OracleNode>, AllocateError> + Send + Sync;

//! Errors of reads and actions on one region, below the wire.
//!
//! [`MvccError`] means that the store failed or its data is corrupt. [`ActionError`] adds what the request itself can
//! cause. The server converts both to [`ServerError`].

use engine::store::StoreError;
use tso::Timestamp;

use crate::api::{KeyError, ServerError};
use crate::key::MalformedKey;

/// Why MVCC data could not be read. No request causes any of these.
#[derive(Debug, thiserror::Error)]
pub enum MvccError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A key in the store is malformed.
    #[error(transparent)]
    Key(#[from] MalformedKey),
    /// A record in the store is malformed, or a newer version of the program wrote it.
    #[error("{record} record: {what}")]
    Record {
        /// The kind of record: `lock` or `write`.
        record: &'static str,
        /// What is wrong with it.
        what: &'static str,
    },
    /// What a read was about to read was collected as garbage. Its timestamp is below the safe point, which its caller
    /// checks.
    #[error("the value of {key} written by {start_ts} was collected")]
    Collected {
        /// The key, escaped.
        key: String,
        /// The transaction that wrote the value.
        start_ts: Timestamp,
    },
    /// Records contradict each other.
    #[error("inconsistent data: {0}")]
    Inconsistent(String),
}

/// Result of reading MVCC data.
pub type Result<T, E = MvccError> = std::result::Result<T, E>;

/// Why a read or an action produced no response. Grouped by what the caller does next.
#[derive(Debug, thiserror::Error)]
pub enum ActionError {
    /// The transaction resolves locks, waits or aborts.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The request contradicts itself or exceeds a limit. Sending it again fails again.
    #[error("invalid request: {0}")]
    Invalid(&'static str),
    /// The store failed, or its data is corrupt.
    #[error(transparent)]
    Mvcc(#[from] MvccError),
}

impl ActionError {
    /// Whether a read of memory alone met data that is only in a file.
    pub fn is_not_cached(&self) -> bool {
        matches!(self, ActionError::Mvcc(MvccError::Store(StoreError::NotCached)))
    }

    /// Whether the store's data is corrupt, so that the store must stop serving. An I/O error does not count: the disk
    /// may serve the next read.
    pub fn is_corruption(&self) -> bool {
        match self {
            ActionError::Key(_) | ActionError::Invalid(_) => false,
            ActionError::Mvcc(MvccError::Store(error)) => matches!(error, StoreError::Corrupt(_)),
            ActionError::Mvcc(MvccError::Collected { .. }) => false,
            ActionError::Mvcc(MvccError::Key(_) | MvccError::Record { .. } | MvccError::Inconsistent(_)) => true,
        }
    }
}

impl From<StoreError> for ActionError {
    fn from(error: StoreError) -> ActionError {
        ActionError::Mvcc(error.into())
    }
}

impl From<MalformedKey> for ActionError {
    fn from(error: MalformedKey) -> ActionError {
        ActionError::Mvcc(error.into())
    }
}

impl From<ActionError> for ServerError {
    fn from(error: ActionError) -> ServerError {
        match error {
            ActionError::Key(error) => ServerError::Key(error),
            ActionError::Invalid(why) => ServerError::Invalid(why.to_owned()),
            ActionError::Mvcc(error) => ServerError::Failed(error.to_string()),
        }
    }
}

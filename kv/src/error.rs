//! Why a read or an action on one region could not be carried out, grouped by what the caller does next.

use crate::api::{KeyError, ServerError};
use crate::key::MalformedKey;
use crate::mvcc::MvccError;

/// The outcome of a read or an action that brought no answer.
#[derive(Debug, thiserror::Error)]
pub enum ActionError {
    /// The transaction resolves, waits or aborts.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The request contradicts itself or a limit; sending it again is of no use.
    #[error("invalid request: {0}")]
    Invalid(&'static str),
    /// The store failed, or its data is damaged.
    #[error(transparent)]
    Mvcc(#[from] MvccError),
}

impl From<engine::store::StoreError> for ActionError {
    fn from(error: engine::store::StoreError) -> ActionError {
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
            other => ServerError::Failed(other.to_string()),
        }
    }
}

//! Why a read or an action on one region could not be carried out, grouped by what the caller does next.

use engine::store::StoreError;

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

impl ActionError {
    /// Whether the store's data is damaged: it must not serve any more. A disk that refuses a read may do so once only.
    pub fn is_damage(&self) -> bool {
        match self {
            ActionError::Key(_) | ActionError::Invalid(_) => false,
            ActionError::Mvcc(MvccError::Store(error)) => matches!(error, StoreError::Corrupt(_)),
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

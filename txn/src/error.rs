//! Errors of a transaction, by what the session tells its client.

use kv::Key;
use tso::TsoError;

/// Why a transaction failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TxnError {
    /// Somebody else committed first, or our locks expired: the whole transaction can be run again (SQLSTATE 40001).
    #[error("could not serialize access due to concurrent update: {0}")]
    Conflict(String),
    /// An insert met an existing key (SQLSTATE 23505, said by the layer that knows which constraint).
    #[error("key {key:?} already exists")]
    AlreadyExists {
        /// The key.
        key: Key,
    },
    /// COMMIT was sent and its outcome is not known (SQLSTATE 08007).
    #[error("the outcome of the commit is unknown")]
    Undetermined,
    /// The cluster could not serve in time; nothing was committed (SQLSTATE 57P03).
    #[error("the cluster cannot serve: {0}")]
    Unavailable(String),
    /// The transaction exceeds a limit of size (SQLSTATE 54000).
    #[error("transaction is too large: {0}")]
    TooLarge(String),
    /// A defect or damaged data (SQLSTATE XX000).
    #[error("internal error: {0}")]
    Internal(String),
}

impl From<TsoError> for TxnError {
    fn from(error: TsoError) -> TxnError {
        TxnError::Unavailable(error.to_string())
    }
}

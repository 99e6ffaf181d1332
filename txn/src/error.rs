//! Errors of a transaction, by what the session reports to its client.

use kv::Key;
use kv::api::WaitReport;
use tso::{Timestamp, TsoError};

/// Why a transaction failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TxnError {
    /// Another transaction committed first, our locks expired, or a lock was waited for too long. Nothing was
    /// committed. The caller may run the whole transaction again (SQLSTATE 40001).
    #[error("could not serialize access due to concurrent update: {0}")]
    Conflict(String),
    /// An insert met an existing key. Nothing was committed. The layer that knows the constraint reports SQLSTATE
    /// 23505.
    #[error("key {key:?} already exists")]
    AlreadyExists {
        /// The key.
        key: Key,
    },
    /// Another transaction has the lock of a row, and the caller does not wait (SQLSTATE 55P03).
    #[error("row {key:?} is locked by another transaction")]
    NotAvailable {
        /// The row.
        key: Key,
    },
    /// Another transaction had the lock of a row for as long as the caller waits (SQLSTATE 55P03).
    #[error("the lock of row {key:?} was not free in time")]
    LockTimeout {
        /// The row.
        key: Key,
    },
    /// The transaction waits for others that wait for it (SQLSTATE 40P01). It gives up, so that they go on.
    #[error("deadlock detected")]
    Deadlock {
        /// The waits, beginning with that of the transaction. Each one is for the next, and the last for the first.
        cycle: Vec<WaitReport>,
    },
    /// The commit may have been delivered, and its outcome is not known: the transaction may be committed now, later,
    /// or never (SQLSTATE 08007). The caller must not run it again blindly.
    #[error("the outcome of the commit is unknown")]
    Undetermined {
        /// The transaction. With its primary it says what to ask for later: [`crate::Database::outcome`].
        start_ts: Timestamp,
        /// The key whose record decides the outcome.
        primary: Key,
    },
    /// The cluster could not serve in time; nothing was committed (SQLSTATE 57P03).
    #[error("the cluster cannot serve: {0}")]
    Unavailable(String),
    /// A store had no room for a read in time, because it serves shorter reads and writes first; nothing was committed
    /// (SQLSTATE 53000).
    #[error("the cluster is overloaded: {0}")]
    Overloaded(String),
    /// The transaction exceeds a size limit; nothing was committed (SQLSTATE 54000).
    #[error("transaction is too large: {0}")]
    TooLarge(String),
    /// A key or a value exceeds its limit, whatever else the transaction writes; nothing was committed (SQLSTATE
    /// 54000).
    #[error("row is too large: {0}")]
    RowTooLarge(String),
    /// A snapshot that the oracle has not issued yet (SQLSTATE 22023).
    #[error("timestamp {0} is in the future")]
    InFuture(Timestamp),
    /// The snapshot is below the safe point of garbage collection: what it would show may be collected (SQLSTATE
    /// 72000).
    #[error("snapshot too old: {0}")]
    SnapshotTooOld(String),
    /// A defect, damaged data, or a request that every store refuses (SQLSTATE XX000). Nothing was committed. Also a
    /// setting out of range, when a database is created.
    #[error("internal error: {0}")]
    Internal(String),
}

impl From<TsoError> for TxnError {
    fn from(error: TsoError) -> TxnError {
        TxnError::Unavailable(error.to_string())
    }
}

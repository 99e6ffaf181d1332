//! Row locks and waits as people see them.

use std::time::Duration;

use raftstore::RegionId;
use tso::Timestamp;

use crate::api::LockMode;
use crate::key::Key;

/// A row lock in memory, or a place in the queue for one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowLockStatus {
    /// The region of the row.
    pub region: RegionId,
    /// The row.
    pub key: Key,
    /// The transaction.
    pub start_ts: Timestamp,
    /// The strength.
    pub mode: LockMode,
    /// The wait of a transaction that does not have the lock.
    pub wait: Option<RowWait>,
    /// Whether anybody waits for the row.
    pub is_awaited: bool,
}

/// A place in the queue of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowWait {
    /// How long the transaction has waited.
    pub time: Duration,
    /// The transactions that it waits for: holders, and waiters before it; not those that it waits for by way of
    /// another one.
    pub behind: Vec<Timestamp>,
}

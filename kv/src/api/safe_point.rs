//! Requests of garbage collection.

use tso::Timestamp;

use crate::key::Key;

/// Asks for the locks of transactions that began at or below a timestamp. An empty `end` means "after every key".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OldLocksRequest {
    /// First key of the range.
    pub start: Key,
    /// First key after the range.
    pub end: Key,
    /// The greatest start_ts.
    pub max_ts: Timestamp,
}

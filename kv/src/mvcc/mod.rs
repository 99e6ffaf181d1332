//! Versions of a key in the store: the records, and reads through them.
//!
//! Three column families make up one key. [`lock`] records say that a transaction is about to change it, [`write`](mod@write) records, one per
//! commit or rollback and newest first, say what each did, and long values lie in `Cf::Default` under the start_ts of the
//! transaction that wrote them. [`reader`] answers point reads, [`scanner`] range reads; both work on any `engine::store::Reader`, and
//! nothing here writes. The layout of keys and records is pinned in `docs/formats.md`.

pub mod lock;
pub mod reader;
pub mod scanner;
pub mod versions;
pub mod write;

use engine::store::StoreError;

use crate::key::MalformedKey;

pub use lock::{LockKind, LockRecord};
pub use write::{WriteKind, WriteRecord};

/// Values up to this many bytes lie inline in the lock and the write record; longer ones in `Cf::Default`.
pub const SHORT_VALUE_MAX: usize = 255;

/// Why MVCC data could not be read. None of these is the fault of a request.
#[derive(Debug, thiserror::Error)]
pub enum MvccError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A key in the store is not one.
    #[error(transparent)]
    Key(#[from] MalformedKey),
    /// A record in the store is not one, or was written by a newer version of the program.
    #[error("{record} record: {what}")]
    Record {
        /// Which kind of record.
        record: &'static str,
        /// What is wrong with it.
        what: &'static str,
    },
    /// Records contradict each other.
    #[error("inconsistent data: {0}")]
    Inconsistent(String),
}

/// Result of reading MVCC data.
pub type Result<T, E = MvccError> = std::result::Result<T, E>;

//! The key-value store of the replicated state: four column families, atomic batches, snapshots.
//!
//! Committed entries are applied here. There is no write-ahead log of its own: what survives a crash is a
//! consistent prefix of everything written (all column families flush together), and the Raft log
//! replays the rest. [`rocks::RocksStore`] is the real one, [`memory::MemoryStore`] an ordered map with the same
//! crash behaviour for simulation and tests.

pub mod memory;
pub mod rocks;
mod rows;

use std::path::PathBuf;

use crate::batch::WriteBatch;
use crate::cf::Cf;

/// What can go wrong in the store, by what the caller does next.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The disk or RocksDB refused. If it was a write or a flush, the store is poisoned from now on.
    #[error("key-value store: {0}")]
    Backend(String),
    /// An earlier write or flush failed: nothing is written or flushed again until the store is reopened.
    #[error("key-value store is poisoned by an earlier failure: {0}")]
    Poisoned(String),
    /// The store's files are damaged. It stops serving.
    #[error("key-value store is corrupt: {0}")]
    Corrupt(String),
    /// The files were written by a newer release. Nothing was changed on disk.
    #[error("key-value store in {dir} has format {found}, this release reads up to {supported}")]
    NewerFormat {
        /// The store's directory.
        dir: PathBuf,
        /// The version on disk.
        found: u32,
        /// The newest version this release knows.
        supported: u32,
    },
    /// Another process, or another handle of this one, has the directory open.
    #[error("key-value store in {dir} is in use by another process")]
    Locked {
        /// The store's directory.
        dir: PathBuf,
    },
    /// Rows given to [`Store::replace_range`] that break its rules. The store itself is unharmed.
    #[error("rows do not fit the range they replace: {0}")]
    InvalidRows(String),
    /// An I/O error outside RocksDB, such as on a snapshot file.
    #[error("key-value store: {0}")]
    Io(#[from] std::io::Error),
}

/// Result of a store operation.
pub type Result<T> = std::result::Result<T, StoreError>;

/// A consistent view of the store that never changes.
pub trait Reader {
    /// The value of `key`, or `None`.
    fn get(&self, cf: Cf, key: &[u8]) -> Result<Option<Vec<u8>>>;

    /// A cursor over the keys in `[lower, upper)`; an empty `upper` means no upper bound. It is not
    /// positioned until the first seek.
    fn cursor(&self, cf: Cf, lower: &[u8], upper: &[u8]) -> Result<Box<dyn Cursor + '_>>;
}

/// A position in one column family within fixed bounds.
///
/// Every seek and step returns whether the cursor now stands on a key. Errors are sticky.
pub trait Cursor {
    /// To the first key at or after `key`.
    fn seek(&mut self, key: &[u8]) -> Result<bool>;
    /// To the last key at or before `key`.
    fn seek_for_prev(&mut self, key: &[u8]) -> Result<bool>;
    /// To the first key within the bounds.
    fn seek_to_first(&mut self) -> Result<bool>;
    /// To the last key within the bounds.
    fn seek_to_last(&mut self) -> Result<bool>;
    /// To the next key. Only when standing on one.
    fn next(&mut self) -> Result<bool>;
    /// To the previous key. Only when standing on one.
    fn prev(&mut self) -> Result<bool>;
    /// The key stood on. Panics when not standing on one.
    fn key(&self) -> &[u8];
    /// The value stood on. Panics when not standing on one.
    fn value(&self) -> &[u8];
}

/// The store itself. Cloning gives another handle to the same store.
pub trait Store: Clone + Send + Sync + 'static {
    /// Its snapshots; cheap to clone, free to move to another thread.
    type Snapshot: Reader + Clone + Send + Sync + 'static;

    /// A snapshot of everything written before the call.
    fn snapshot(&self) -> Self::Snapshot;

    /// Writes a batch atomically: visible to snapshots taken after it returns, durable only after a flush.
    fn write(&self, batch: &WriteBatch) -> Result<()>;

    /// Makes everything written before the call durable, all column families at one point.
    fn flush(&self) -> Result<()>;

    /// The value of `key` as a crash at this moment would leave it: at least as new as the last completed flush, and
    /// newer if the store has flushed on its own since.
    fn get_flushed(&self, cf: Cf, key: &[u8]) -> Result<Option<Vec<u8>>>;

    /// Replaces all data of `[start, end)` in the [`Cf::DATA`] families by `rows`, which come sorted by
    /// (cf code, key), then writes `last` and flushes. An empty `end` means no upper bound. Not atomic: after a crash or
    /// an error in the middle the range holds anything, and the caller, who recorded its intent elsewhere, calls again.
    fn replace_range(
        &self,
        start: &[u8],
        end: &[u8],
        rows: &mut dyn Iterator<Item = Result<(Cf, Vec<u8>, Vec<u8>)>>,
        last: &WriteBatch,
    ) -> Result<()>;
}

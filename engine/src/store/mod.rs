//! The key-value store of the replicated state: four column families, atomic batches, snapshots.
//!
//! Apply writes committed entries here. The store has no write-ahead log: after a crash it holds a consistent prefix of
//! all writes, because all column families flush together, and the Raft log replays the rest. [`rocks::RocksStore`] is
//! the store of a node. [`memory::MemoryStore`] is an ordered map with the same crash behaviour, for simulations and
//! tests.
//!
//! # Layers
//!
//! 1. `hooks`: what the owner of a store adds to it
//! 2. `memory`, `rocks`: the two stores, independent of each other

pub mod hooks;
pub mod memory;
pub mod rocks;

use std::ops::ControlFlow;
use std::path::PathBuf;

use crate::batch::WriteBatch;
use crate::cf::Cf;

pub use self::hooks::Hooks;

/// Errors of the store, grouped by the reaction of the caller.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The disk or RocksDB failed. After a failed write or flush the store is poisoned.
    #[error("key-value store: {0}")]
    Backend(String),
    /// An earlier write or flush failed. The store refuses writes and flushes until it is reopened.
    #[error("key-value store is poisoned by an earlier failure: {0}")]
    Poisoned(String),
    /// The files of the store are damaged. The node stops serving from it.
    #[error("key-value store is corrupt: {0}")]
    Corrupt(String),
    /// A newer release wrote the files. Nothing was changed on disk.
    #[error("key-value store in {dir} has format {found}, this release reads format {supported}; use a newer release")]
    NewerFormat {
        /// The store's directory.
        dir: PathBuf,
        /// The version on disk.
        found: u32,
        /// The version that this release reads.
        supported: u32,
    },
    /// An older release wrote the files. Nothing was changed on disk.
    #[error(
        "key-value store in {dir} has format {found}, this release reads format {supported}; use the release that \
         wrote it, or start this node with an empty data directory and load its data again"
    )]
    OlderFormat {
        /// The store's directory.
        dir: PathBuf,
        /// The version on disk.
        found: u32,
        /// The version that this release reads.
        supported: u32,
    },
    /// Another process, or another store of this process, has the directory open.
    #[error("key-value store in {dir} is in use by another process")]
    Locked {
        /// The store's directory.
        dir: PathBuf,
    },
    /// The rows given to [`Store::replace_range`] violate its contract. The store is intact.
    #[error("rows do not fit the range they replace: {0}")]
    InvalidRows(String),
    /// An I/O error outside RocksDB, such as on a snapshot file.
    #[error("key-value store: {0}")]
    Io(#[from] std::io::Error),
    /// A cursor of [`Reader::limited_cursor`] gave up. The caller may try again with a higher limit.
    #[error("key-value store: a cursor passed too many deleted records")]
    GaveUp,
    /// A read of memory alone met data that is only in a file. The caller reads it where it may block.
    #[error("key-value store: the data is not in memory")]
    NotCached,
}

/// Result of a store operation.
pub type Result<T> = std::result::Result<T, StoreError>;

/// Reads of the store: of a consistent, immutable view ([`Store::snapshot`]), or of the newest state
/// ([`Store::cached`]).
pub trait Reader {
    /// The value of `key`, or `None`.
    fn get(&self, cf: Cf, key: &[u8]) -> Result<Option<Vec<u8>>>;

    /// A cursor over the keys in `[lower, upper)`. An empty `upper` means no upper bound. The cursor has no position
    /// before the first seek. It keeps the view alive, so it may outlive the reader.
    fn cursor(&self, cf: Cf, lower: &[u8], upper: &[u8]) -> Result<Box<dyn Cursor>>;

    /// A cursor of which each seek or step passes at most about `skips` records that are deleted or too new for the
    /// view, and fails with [`StoreError::GaveUp`] if it has found no key then. A store that does not keep such records
    /// ignores the limit.
    fn limited_cursor(&self, cf: Cf, lower: &[u8], upper: &[u8], skips: usize) -> Result<Box<dyn Cursor>>;

    /// A cursor over `[lower, upper)` of [`Cf::Write`] that looks at the versions of one key at a time: of the versions
    /// of other keys than the target's, a seek may find none. The caller compares what it finds. A movement backwards
    /// may fail with [`StoreError::NotCached`].
    fn version_cursor(&self, lower: &[u8], upper: &[u8]) -> Result<Box<dyn Cursor>> {
        self.cursor(Cf::Write, lower, upper)
    }
}

/// A consistent, immutable view of the store. Cheap to clone; may move to another thread.
pub trait Snapshot: Reader + Clone + Send + Sync + 'static {
    /// The same view, read from memory alone: calls that would have to read a file fail with [`StoreError::NotCached`].
    fn cached(&self) -> Self;
}

/// A position in one column family within fixed bounds.
///
/// Every seek and step returns whether the cursor is valid: positioned on a key. Errors are sticky. A cursor may move
/// to another thread.
pub trait Cursor: Send {
    /// To the first key at or after `key`.
    fn seek(&mut self, key: &[u8]) -> Result<bool>;
    /// To the last key at or before `key`.
    fn seek_for_prev(&mut self, key: &[u8]) -> Result<bool>;
    /// To the first key within the bounds.
    fn seek_to_first(&mut self) -> Result<bool>;
    /// To the last key within the bounds.
    fn seek_to_last(&mut self) -> Result<bool>;
    /// To the next key. The cursor must be valid.
    fn next(&mut self) -> Result<bool>;
    /// To the previous key. The cursor must be valid.
    fn prev(&mut self) -> Result<bool>;
    /// The current key. Panics if the cursor is not valid.
    fn key(&self) -> &[u8];
    /// The current value. Panics if the cursor is not valid.
    fn value(&self) -> &[u8];
}

/// Reads of the newest state, without a snapshot and from memory alone. Each call reads one state, which holds
/// everything written before the call. A later call may read a later state, never an earlier one. A caller that
/// combines calls argues with that order. Calls that would have to read a file fail with [`StoreError::NotCached`].
pub trait NewestReader {
    /// The value of `key`, or `None`.
    fn get_newest(&self, cf: Cf, key: &[u8]) -> Result<Option<Vec<u8>>>;

    /// Passes the records from `from` on whose keys are `prefix` and a version ([`VERSION_LEN`] bytes) to `visit`, in
    /// key order, until it breaks. `from` is such a key itself.
    fn visit_versions(&self, cf: Cf, prefix: &[u8], from: &[u8], visit: &mut Visit<'_>) -> Result<()>;
}

/// Receives a key and its value, and says whether it wants the next one.
pub type Visit<'a> = dyn FnMut(&[u8], &[u8]) -> ControlFlow<()> + 'a;

/// Bytes of the version at the end of a key of `Cf::Write` and `Cf::Default`.
pub const VERSION_LEN: usize = 8;

/// Whether `key` is `prefix` and a version.
pub fn is_version_of(key: &[u8], prefix: &[u8]) -> bool {
    key.len() == prefix.len() + VERSION_LEN && key.starts_with(prefix)
}

/// A handle to the store. Clones share the store.
pub trait Store: NewestReader + Clone + Send + Sync + 'static {
    /// The type of snapshots.
    type Snapshot: Snapshot;

    /// A snapshot of everything written before the call.
    fn snapshot(&self) -> Self::Snapshot;

    /// Reads of the newest state, from memory alone. Each get reads the state of its call, and each cursor that of the
    /// call that opened it. For a caller that keeps what it reads from changing, as the holder of latches does. Reads
    /// that would have to read a file fail with [`StoreError::NotCached`].
    fn cached(&self) -> impl Reader + '_;

    /// Writes a batch atomically. Snapshots taken after the call see it; it is durable only after a flush.
    fn write(&self, batch: &WriteBatch) -> Result<()>;

    /// Makes everything written before the call durable, in all column families at one point.
    fn flush(&self) -> Result<()>;

    /// The value of `key` that a crash at this moment would leave: that of the last completed flush, or a newer one if
    /// the store has flushed on its own since.
    fn get_flushed(&self, cf: Cf, key: &[u8]) -> Result<Option<Vec<u8>>>;

    /// Replaces all data of `[start, end)` in the [`Cf::DATA`] families by `rows`, sorted by (cf code, key); then
    /// writes `last` and flushes. An empty `end` means no upper bound. Not atomic: after a crash or an error the
    /// content of the range is undefined. The caller has recorded its intent elsewhere and calls again.
    fn replace_range(
        &self,
        start: &[u8],
        end: &[u8],
        rows: &mut dyn Iterator<Item = Result<(Cf, Vec<u8>, Vec<u8>)>>,
        last: &WriteBatch,
    ) -> Result<()>;

    /// Passes every flushed record of `[start, end)`, and perhaps some around it, through the filter of [`Hooks`], and
    /// reclaims the space of what goes and of what was deleted before. An empty `end` means no upper bound. Returns
    /// when it is done, which takes seconds or minutes. Reads, writes and flushes go on.
    fn compact_range(&self, cf: Cf, start: &[u8], end: &[u8]) -> Result<()>;

    /// Keys within `[start, end)` that divide it into ranges of about `bytes` bytes on disk, for callers that compact
    /// one after the other. An empty `end` means no upper bound.
    fn divide(&self, cf: Cf, start: &[u8], end: &[u8], bytes: u64) -> Result<Vec<Vec<u8>>>;

    /// A place in `[start, end)` with about this part of the range's bytes on disk before it; `part` is between 0 and
    /// 1. It need not be a key of the store. An empty `end` means no upper bound.
    fn key_at(&self, cf: Cf, start: &[u8], end: &[u8], part: f64) -> Result<Vec<u8>>;

    /// About the bytes on disk of `[start, end)`. An empty `end` means no upper bound.
    fn bytes_on_disk(&self, cf: Cf, start: &[u8], end: &[u8]) -> Result<u64>;

    /// Whether flushes or compactions lag behind so far that nobody should ask for more of them.
    fn is_strained(&self) -> bool;
}

/// Validates the rows of [`Store::replace_range`], for both stores: data families only, strictly ascending by (cf code,
/// key), within the range.
struct RowCheck<'a> {
    start: &'a [u8],
    end: &'a [u8],
    last: Option<(Cf, Vec<u8>)>,
}

impl<'a> RowCheck<'a> {
    /// A check for rows of `[start, end)`. An empty `end` means no upper bound.
    fn new(start: &'a [u8], end: &'a [u8]) -> RowCheck<'a> {
        RowCheck { start, end, last: None }
    }

    /// Accepts or refuses the next row.
    fn accept(&mut self, cf: Cf, key: &[u8]) -> Result<()> {
        if !Cf::DATA.contains(&cf) {
            return Err(refusal(cf, key, "not a data family"));
        }
        if key < self.start || (!self.end.is_empty() && key >= self.end) {
            return Err(refusal(cf, key, "outside of the range"));
        }
        match &mut self.last {
            Some((last_cf, last_key)) => {
                if (last_cf.code(), last_key.as_slice()) >= (cf.code(), key) {
                    return Err(refusal(cf, key, "not above the row before it"));
                }
                *last_cf = cf;
                last_key.clear();
                last_key.extend_from_slice(key);
            }
            None => self.last = Some((cf, key.to_vec())),
        }
        Ok(())
    }
}

fn refusal(cf: Cf, key: &[u8], what: &str) -> StoreError {
    StoreError::InvalidRows(format!("{} \"{}\": {what}", cf.name(), key.escape_ascii()))
}

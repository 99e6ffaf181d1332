//! The open RocksDB database: its handle, its options, its poisoned state, and the encoding of batches.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;

use rocksdb::{DB, Options, ReadOptions, WriteOptions};

use super::dir::DirLock;
use super::errors::on_read;
use super::options;
use super::version_cursors::VersionCursors;
use crate::batch::{Op, WriteBatch};
use crate::cf::Cf;
use crate::store::{Result, StoreError};

/// The open database, which handles and snapshots keep alive. Fields drop in declaration order: the idle cursors before
/// the database is closed, the lock on the directory after it.
pub(super) struct Database {
    /// Idle cursors over `db`. Declared first, and so dropped first.
    pub(super) cursors: VersionCursors,
    pub(super) db: DB,
    pub(super) _lock: DirLock,
    pub(super) dir: PathBuf,
    /// Options by column family code, also for building files to ingest.
    pub(super) family_options: [Options; Cf::ALL.len()],
    pub(super) write_options: WriteOptions,
    /// Read options that skip the memtables.
    pub(super) flushed_reads: ReadOptions,
    /// Read options of gets from memory alone.
    pub(super) cached_reads: ReadOptions,
    /// The number of the next ingestion subfolder.
    pub(super) next_ingest: AtomicU64,
    /// The cause of the first failed write or flush.
    pub(super) poisoned: OnceLock<String>,
}

impl Database {
    /// The handle of a column family.
    pub(super) fn family(&self, cf: Cf) -> Result<&rocksdb::ColumnFamily> {
        self.db.cf_handle(cf.name()).ok_or_else(|| StoreError::Corrupt(format!("no column family {}", cf.name())))
    }

    /// Fails if an earlier write or flush failed.
    pub(super) fn check_poisoned(&self) -> Result<()> {
        self.poisoned.get().map_or(Ok(()), |cause| Err(StoreError::Poisoned(cause.clone())))
    }

    /// Poisons the store with its first failure.
    pub(super) fn poison(&self, error: rocksdb::Error) -> StoreError {
        self.poison_with(error.to_string());
        on_read(error)
    }

    /// Poisons the store with its first failure, given as text.
    pub(super) fn poison_with(&self, cause: String) -> StoreError {
        let first = self.poisoned.get_or_init(|| cause.clone());
        tracing::error!(dir = %self.dir.display(), cause = %first, "key-value store is poisoned");
        StoreError::Backend(cause)
    }

    /// Adds one operation of `batch` to RocksDB's own batch.
    pub(super) fn encode(&self, op: Op<'_>, batch: &WriteBatch, out: &mut rocksdb::WriteBatch) -> Result<()> {
        match op {
            Op::Put { cf, key, value } => out.put_cf(self.family(cf)?, key, value),
            Op::Delete { cf, key } => out.delete_cf(self.family(cf)?, key),
            Op::DeleteRange { cf, start, end } => {
                if !end.is_empty() {
                    // RocksDB rejects a whole batch for a range that ends before it starts. Here such a range is empty.
                    if start < end {
                        out.delete_range_cf(self.family(cf)?, start, end);
                    }
                } else if let Some(end) = self.end_of_keys(cf, batch)?
                    && start < end.as_slice()
                {
                    out.delete_range_cf(self.family(cf)?, start, &end);
                }
            }
        }
        Ok(())
    }

    /// A key just above every key of the family, stored or put by `batch`. RocksDB has no range deletion without an
    /// end.
    fn end_of_keys(&self, cf: Cf, batch: &WriteBatch) -> Result<Option<Vec<u8>>> {
        let mut iter = self.db.raw_iterator_cf_opt(self.family(cf)?, options::ordered_reads());
        iter.seek_to_last();
        iter.status().map_err(on_read)?;
        let puts = batch.iter().filter_map(|op| match op {
            Op::Put { cf: put_cf, key, .. } if put_cf == cf => Some(key),
            _ => None,
        });
        Ok(iter.key().into_iter().chain(puts).max().map(|key| [key, &[0]].concat()))
    }
}

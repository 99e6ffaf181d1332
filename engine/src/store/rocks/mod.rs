//! The store over RocksDB: one instance, four column families, WAL off, atomic flush.
//!
//! The Raft log is the only write-ahead log: writes go to the memtables only. After a crash the store holds what was
//! flushed, which is a consistent prefix of all writes, because all column families always flush together. Dropping the
//! last handle has the effect of a crash; a clean stop calls `flush` first.
//!
//! A get or a cursor reads a RocksDB snapshot and takes no lock that a write holds for long. After a failed write or
//! flush the store is poisoned: it still serves reads, and refuses writes until it is reopened.
//!
//! # Layers
//!
//! Lowest first. All modules use the `Database` of this file. No module imports from its own or a later layer.
//!
//! 1. `dir`, `flush`, `metrics`, `options`, `snapshot`: parts of an open store
//! 2. `ingest`: files that replace a range

mod dir;
mod flush;
mod ingest;
mod metrics;
mod options;
mod snapshot;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

use rocksdb::{ColumnFamilyDescriptor, DB, IngestExternalFileOptions, Options, ReadOptions, ReadTier, WriteOptions};

pub use self::metrics::StoreMetrics;
pub use self::options::RocksOptions;
pub use self::snapshot::RocksSnapshot;
use super::{Result, Store, StoreError};
use crate::batch::{Op, WriteBatch};
use crate::cf::Cf;

/// See the module documentation. Clones share the store.
#[derive(Clone)]
pub struct RocksStore {
    database: Arc<Database>,
}

/// The open database, which handles and snapshots keep alive. Fields drop in declaration order: the lock on the
/// directory is released after the database is closed.
struct Database {
    db: DB,
    _lock: dir::DirLock,
    dir: PathBuf,
    /// Options by column family code, also for building files to ingest.
    family_options: [Options; Cf::ALL.len()],
    write_options: WriteOptions,
    /// Read options that skip the memtables.
    flushed_reads: ReadOptions,
    /// Flushes, and verifies that the data is on disk.
    flusher: flush::Flusher,
    /// The number of the next ingestion subfolder.
    next_ingest: AtomicU64,
    /// The cause of the first failed write or flush.
    poisoned: OnceLock<String>,
}

impl RocksStore {
    /// Opens or creates the store in `dir`.
    ///
    /// Refuses a directory of a newer format before changing anything in it, and a directory in use with
    /// [`StoreError::Locked`]. Blocks on disk I/O.
    pub fn open(dir: &Path, options: &RocksOptions) -> Result<RocksStore> {
        let lock = dir::prepare(dir)?;
        let (db_options, family_options) = options::build(options)?;
        let descriptors = Cf::ALL
            .iter()
            .zip(&family_options)
            .map(|(cf, options)| ColumnFamilyDescriptor::new(cf.name(), options.clone()))
            .chain([ColumnFamilyDescriptor::new(flush::FAMILY, Options::default())]);
        let db = DB::open_cf_descriptors(&db_options, dir.join(dir::DB), descriptors).map_err(on_open)?;
        let mut write_options = WriteOptions::default();
        write_options.disable_wal(true);
        let mut flushed_reads = ReadOptions::default();
        flushed_reads.set_read_tier(ReadTier::Persisted);
        let database = Database {
            db,
            _lock: lock,
            dir: dir.to_owned(),
            family_options,
            write_options,
            flushed_reads,
            flusher: flush::Flusher::default(),
            next_ingest: AtomicU64::new(0),
            poisoned: OnceLock::new(),
        };
        for cf in Cf::ALL {
            database.family(cf)?;
        }
        database.flusher.resume(&database)?;
        Ok(RocksStore { database: Arc::new(database) })
    }

    /// A numeric RocksDB property of one column family, such as `rocksdb.cur-size-all-mem-tables`; `None` if it does
    /// not exist.
    pub fn property(&self, cf: Cf, name: &str) -> Option<u64> {
        self.database.db.property_int_value_cf(self.database.family(cf).ok()?, name).ok().flatten()
    }

    /// The directory given to `open`.
    pub fn dir(&self) -> &Path {
        &self.database.dir
    }
}

impl Store for RocksStore {
    type Snapshot = RocksSnapshot;

    fn snapshot(&self) -> RocksSnapshot {
        RocksSnapshot::take(&self.database)
    }

    fn write(&self, batch: &WriteBatch) -> Result<()> {
        self.database.check_poisoned()?;
        let mut encoded = rocksdb::WriteBatch::default();
        for op in batch.iter() {
            self.database.encode(op, batch, &mut encoded)?;
        }
        let written = self.database.db.write_opt(encoded, &self.database.write_options);
        written.map_err(|error| self.database.poison(error))?;
        self.database.flusher.count_write();
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        self.database.check_poisoned()?;
        self.database.flusher.flush(&self.database)
    }

    fn get_flushed(&self, cf: Cf, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let family = self.database.family(cf)?;
        let found = self.database.db.get_pinned_cf_opt(family, key, &self.database.flushed_reads).map_err(on_read)?;
        Ok(found.map(|value| value.to_vec()))
    }

    fn replace_range(
        &self,
        start: &[u8],
        end: &[u8],
        rows: &mut dyn Iterator<Item = Result<(Cf, Vec<u8>, Vec<u8>)>>,
        last: &WriteBatch,
    ) -> Result<()> {
        self.database.check_poisoned()?;
        // The store is not changed until every row is in a file.
        let files = ingest::build(&self.database, start, end, rows)?;
        let mut clear = WriteBatch::new();
        let snapshot = self.snapshot();
        for cf in Cf::DATA {
            // A range tombstone slows every later read of the range: write none if there is nothing to remove.
            if snapshot.first_key(cf, start, end)?.is_some() {
                clear.delete_range(cf, start, end);
            }
        }
        drop(snapshot);
        self.write(&clear)?;
        // Ingestion flushes overlapping memtables itself, but does not verify that the flush reached the disk. A
        // memtable that is left would hide the ingested rows.
        self.flush()?;
        let mut options = IngestExternalFileOptions::default();
        options.set_move_files(true);
        for (cf, paths) in files.by_family() {
            let ingested = self.database.db.ingest_external_file_cf_opts(self.database.family(cf)?, &options, paths);
            ingested.map_err(|error| self.database.poison(error))?;
        }
        self.write(last)?;
        self.flush()
    }
}

impl Database {
    /// The handle of a column family.
    fn family(&self, cf: Cf) -> Result<&rocksdb::ColumnFamily> {
        self.db.cf_handle(cf.name()).ok_or_else(|| StoreError::Corrupt(format!("no column family {}", cf.name())))
    }

    /// Fails if an earlier write or flush failed.
    fn check_poisoned(&self) -> Result<()> {
        self.poisoned.get().map_or(Ok(()), |cause| Err(StoreError::Poisoned(cause.clone())))
    }

    /// Poisons the store with its first failure.
    fn poison(&self, error: rocksdb::Error) -> StoreError {
        self.poison_with(error.to_string());
        on_read(error)
    }

    fn poison_with(&self, cause: String) -> StoreError {
        let first = self.poisoned.get_or_init(|| cause.clone());
        tracing::error!(dir = %self.dir.display(), cause = %first, "key-value store is poisoned");
        StoreError::Backend(cause)
    }

    /// Adds one operation of `batch` to RocksDB's own batch.
    fn encode(&self, op: Op<'_>, batch: &WriteBatch, out: &mut rocksdb::WriteBatch) -> Result<()> {
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
        let mut iter = self.db.raw_iterator_cf(self.family(cf)?);
        iter.seek_to_last();
        iter.status().map_err(on_read)?;
        let puts = batch.iter().filter_map(|op| match op {
            Op::Put { cf: put_cf, key, .. } if put_cf == cf => Some(key),
            _ => None,
        });
        Ok(iter.key().into_iter().chain(puts).max().map(|key| [key, &[0]].concat()))
    }
}

/// The error of a failed open. RocksDB reports damage as an invalid argument; unlike other errors, a retry cannot cure
/// it.
fn on_open(error: rocksdb::Error) -> StoreError {
    match error.kind() {
        rocksdb::ErrorKind::InvalidArgument => StoreError::Corrupt(error.into_string()),
        _ => on_read(error),
    }
}

fn on_read(error: rocksdb::Error) -> StoreError {
    match error.kind() {
        rocksdb::ErrorKind::Corruption => StoreError::Corrupt(error.into_string()),
        _ => StoreError::Backend(error.into_string()),
    }
}

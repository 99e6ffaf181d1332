//! The store over RocksDB: one instance, four column families, WAL off, atomic flush.
//!
//! The Raft log is the only write-ahead log, so every write here goes to the memtables alone, and what a crash
//! leaves is what was flushed: a consistent prefix of all writes over all column families, because they always flush
//! together. Dropping the last handle is such a crash; a clean stop calls `flush` first.
//!
//! Reads take no lock that a write can hold for long: a get or a cursor works on a RocksDB snapshot. After a failed
//! write or flush the store is poisoned: it reads on, and refuses to write until it is reopened.

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

/// See the module documentation. Cloning gives another handle.
#[derive(Clone)]
pub struct RocksStore {
    shared: Arc<Shared>,
}

/// What the handles and the snapshots keep alive. The lock on the directory is given up after the database is closed:
/// fields drop in the order of their declaration.
struct Shared {
    db: DB,
    _lock: dir::DirLock,
    dir: PathBuf,
    /// Settings by column family, also for the files that are built for ingestion.
    family_options: [Options; Cf::ALL.len()],
    write_options: WriteOptions,
    /// Options that leave the memtables out.
    flushed_reads: ReadOptions,
    /// Proves that what was flushed is on disk.
    flusher: flush::Flusher,
    /// Numbers the subfolders of range replacements.
    next_ingest: AtomicU64,
    /// Set once, by the first failed write or flush.
    poisoned: OnceLock<String>,
}

impl RocksStore {
    /// Opens or creates the store in `dir`.
    ///
    /// A directory of a newer format is refused before anything in it is changed; one that is in use is
    /// [`StoreError::Locked`]. Blocks on the disk.
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
        let shared = Shared {
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
            shared.family(cf)?;
        }
        shared.flusher.start(&shared)?;
        Ok(RocksStore { shared: Arc::new(shared) })
    }

    /// Bytes that the keys of `[start, end)` in the data families take on disk; an empty `end` means no upper bound.
    /// An estimate: memtables are left out, deleted and overwritten data still counts until it is compacted away.
    pub fn approximate_size(&self, start: &[u8], end: &[u8]) -> u64 {
        // RocksDB wants an upper bound; a few keys above this one do not change an estimate.
        let end = if end.is_empty() { &[0xff; 64] } else { end };
        if start >= end {
            return 0;
        }
        let size = |cf| {
            let family = self.shared.family(cf).ok()?;
            self.shared.db.get_approximate_sizes_cf(family, &[rocksdb::Range::new(start, end)]).first().copied()
        };
        Cf::DATA.into_iter().filter_map(size).sum()
    }

    /// The number behind a RocksDB property (such as `rocksdb.cur-size-all-mem-tables`) of one column family; `None`
    /// if there is no such number.
    pub fn property(&self, cf: Cf, name: &str) -> Option<u64> {
        self.shared.db.property_int_value_cf(self.shared.family(cf).ok()?, name).ok().flatten()
    }

    /// The text behind a RocksDB property (such as `rocksdb.stats`), for people; `None` if there is no such property.
    pub fn property_text(&self, name: &str) -> Option<String> {
        self.shared.db.property_value(name).ok().flatten()
    }

    /// The directory given to `open`.
    pub fn dir(&self) -> &Path {
        &self.shared.dir
    }
}

impl Store for RocksStore {
    type Snapshot = RocksSnapshot;

    fn snapshot(&self) -> RocksSnapshot {
        RocksSnapshot::take(&self.shared)
    }

    fn write(&self, batch: &WriteBatch) -> Result<()> {
        self.shared.check()?;
        let mut encoded = rocksdb::WriteBatch::default();
        for op in batch.iter() {
            self.shared.encode(op, batch, &mut encoded)?;
        }
        let written = self.shared.db.write_opt(encoded, &self.shared.write_options);
        written.map_err(|error| self.shared.poison(error))?;
        self.shared.flusher.written();
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        self.shared.check()?;
        self.shared.flusher.flush(&self.shared)
    }

    fn get_flushed(&self, cf: Cf, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let family = self.shared.family(cf)?;
        let found = self.shared.db.get_pinned_cf_opt(family, key, &self.shared.flushed_reads).map_err(on_read)?;
        Ok(found.map(|value| value.to_vec()))
    }

    fn replace_range(
        &self,
        start: &[u8],
        end: &[u8],
        rows: &mut dyn Iterator<Item = Result<(Cf, Vec<u8>, Vec<u8>)>>,
        last: &WriteBatch,
    ) -> Result<()> {
        self.shared.check()?;
        // Nothing of the store is touched until every row is in a file.
        let files = ingest::build(&self.shared, start, end, rows)?;
        let mut clear = WriteBatch::new();
        let snapshot = self.snapshot();
        for cf in Cf::DATA {
            // A range tombstone costs every later read of the range: none where there is nothing to remove.
            if snapshot.first_key(cf, start, end)?.is_some() {
                clear.delete_range(cf, start, end);
            }
        }
        drop(snapshot);
        self.write(&clear)?;
        // Ingestion would itself flush what it finds in the way, but without the proof that our own flush gives, and a
        // memtable that is still there would hide what is ingested below it.
        self.flush()?;
        let mut options = IngestExternalFileOptions::default();
        options.set_move_files(true);
        for (cf, paths) in files.by_family() {
            let ingested = self.shared.db.ingest_external_file_cf_opts(self.shared.family(cf)?, &options, paths);
            ingested.map_err(|error| self.shared.poison(error))?;
        }
        self.write(last)?;
        self.flush()
    }
}

impl Shared {
    /// The handle of a column family.
    fn family(&self, cf: Cf) -> Result<&rocksdb::ColumnFamily> {
        self.db.cf_handle(cf.name()).ok_or_else(|| StoreError::Corrupt(format!("no column family {}", cf.name())))
    }

    /// Refuses if an earlier write or flush failed.
    fn check(&self) -> Result<()> {
        self.poisoned.get().map_or(Ok(()), |cause| Err(StoreError::Poisoned(cause.clone())))
    }

    /// Remembers the first failure for good.
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
                    // RocksDB refuses a whole batch for a range that ends before it starts; to us it is empty.
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

    /// A key just above every key of the family, be it stored or put by `batch`; RocksDB knows no open end.
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

/// A failed open. Damage is told from other refusals, because only damage cannot be cured by trying again.
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

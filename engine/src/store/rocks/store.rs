//! The handle of the store: open, write, flush, snapshots, and the replacement of a range.

use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

use rocksdb::{ColumnFamilyDescriptor, DB, IngestExternalFileOptions, Options, ReadOptions, ReadTier, WriteOptions};

use super::compaction::{self, Opened};
use super::database::Database;
use super::errors::{on_open, on_read};
use super::flush::{self, Flusher};
use super::newest::{self, CachedReader};
use super::options::{self, RocksOptions};
use super::snapshot::RocksSnapshot;
use super::version_cursors::VersionCursors;
use super::{dir, ingest};
use crate::batch::{Op, WriteBatch};
use crate::cf::Cf;
use crate::store::{Hooks, NewestReader, Reader, Result, Store, Visit};

/// After this many writes, idle cursors that no read has used meanwhile are dropped.
const CURSOR_WRITES: u64 = 256;

/// With so many files that were not compacted once, compactions lag behind. RocksDB slows writes down at 20.
const STRAINED_FILES: u64 = 12;

/// The store of a node. Clones share the store.
#[derive(Clone)]
pub struct RocksStore {
    database: Arc<Database>,
    /// Flushes, and verifies that the data is on disk.
    flusher: Arc<Flusher>,
    hooks: Hooks,
}

impl RocksStore {
    /// Opens or creates the store in `dir`.
    ///
    /// Refuses a directory of a newer format before changing anything in it, and a directory in use with
    /// [`StoreError::Locked`](crate::store::StoreError::Locked). Blocks on disk I/O.
    pub fn open(dir: &Path, options: &RocksOptions) -> Result<RocksStore> {
        RocksStore::open_with(dir, options, Hooks::default())
    }

    /// The same, with hooks. Compactions may run before this returns.
    ///
    /// # Errors
    ///
    /// Those of [`RocksStore::open`].
    pub fn open_with(dir: &Path, options: &RocksOptions, hooks: Hooks) -> Result<RocksStore> {
        let lock = dir::prepare(dir)?;
        let (db_options, mut family_options) = options::build(options)?;
        let opened = Opened::default();
        if let Some(new_filter) = &hooks.new_filter {
            for (cf, options) in Cf::ALL.into_iter().zip(&mut family_options) {
                compaction::install(options, cf, new_filter, &opened);
            }
        }
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
            cursors: VersionCursors::default(),
            db,
            _lock: lock,
            dir: dir.to_owned(),
            family_options,
            write_options,
            flushed_reads,
            cached_reads: options::cached_reads(),
            next_ingest: AtomicU64::new(0),
            poisoned: OnceLock::new(),
        };
        for cf in Cf::ALL {
            database.family(cf)?;
        }
        let flusher = Flusher::default();
        flusher.resume(&database)?;
        let database = Arc::new(database);
        // Nobody has set it before.
        let _ = opened.set(Arc::downgrade(&database));
        Ok(RocksStore { database, flusher: Arc::new(flusher), hooks })
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

impl NewestReader for RocksStore {
    fn get_newest(&self, cf: Cf, key: &[u8]) -> Result<Option<Vec<u8>>> {
        newest::get(&self.database, cf, key)
    }

    fn visit_versions(&self, cf: Cf, prefix: &[u8], from: &[u8], visit: &mut Visit<'_>) -> Result<()> {
        newest::visit_versions(&self.database, cf, (prefix, from), visit)
    }
}

impl Store for RocksStore {
    type Snapshot = RocksSnapshot;

    fn snapshot(&self) -> RocksSnapshot {
        RocksSnapshot::take(&self.database)
    }

    fn cached(&self) -> impl Reader + '_ {
        CachedReader::new(&self.database)
    }

    fn write(&self, batch: &WriteBatch) -> Result<()> {
        self.database.check_poisoned()?;
        let mut encoded = rocksdb::WriteBatch::default();
        for op in batch.iter() {
            self.database.encode(op, batch, &mut encoded)?;
        }
        let written = self.database.db.write_opt(encoded, &self.database.write_options);
        written.map_err(|error| self.database.poison(error))?;
        self.hooks.observe(&mut batch.iter());
        if self.flusher.count_write().is_multiple_of(CURSOR_WRITES) {
            self.database.cursors.drop_unused();
        }
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        self.database.check_poisoned()?;
        self.flusher.flush(&self.database)?;
        // They pin the memtables that were flushed.
        self.database.cursors.clear();
        Ok(())
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
        let mut rows = rows.inspect(|row| {
            if let Ok((cf, key, value)) = row {
                self.hooks.observe(&mut std::iter::once(Op::Put { cf: *cf, key, value }));
            }
        });
        let files = ingest::build(&self.database, start, end, &mut rows)?;
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

    fn compact_range(&self, cf: Cf, start: &[u8], end: &[u8]) -> Result<()> {
        compaction::compact_range(&self.database, cf, start, end)
    }

    fn divide(&self, cf: Cf, start: &[u8], end: &[u8], bytes: u64) -> Result<Vec<Vec<u8>>> {
        compaction::divide(&self.database, cf, (start, end), bytes)
    }

    fn key_at(&self, cf: Cf, start: &[u8], end: &[u8], part: f64) -> Result<Vec<u8>> {
        compaction::key_at(&self.database, cf, (start, end), part)
    }

    fn bytes_on_disk(&self, cf: Cf, start: &[u8], end: &[u8]) -> Result<u64> {
        compaction::bytes_on_disk(&self.database, cf, (start, end))
    }

    fn is_strained(&self) -> bool {
        let is_slowed =
            |cf| self.property(cf, "rocksdb.num-files-at-level0").is_some_and(|files| files >= STRAINED_FILES);
        Cf::ALL.into_iter().any(is_slowed) || self.property(Cf::Default, "rocksdb.is-write-stopped") == Some(1)
    }
}

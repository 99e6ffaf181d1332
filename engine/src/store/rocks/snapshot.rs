//! Snapshots of the RocksDB store and the cursors over them.
//!
//! A snapshot owns a handle to the database, and a cursor owns its snapshot: both can move to another thread and
//! outlive every [`super::RocksStore`]. The database is closed when the last store handle, the last snapshot and the
//! last cursor are dropped.
#![expect(unsafe_code, reason = "snapshots and cursors that own what they borrow from")]

use std::sync::Arc;

use rocksdb::{DB, DBRawIterator, ErrorKind, ReadOptions, ReadTier};

use super::database::Database;
use super::errors::{on_cached, on_read};
use super::options;
use crate::cf::Cf;
use crate::store::{Cursor, Reader, Result, Snapshot, StoreError};

/// A snapshot of a [`super::RocksStore`]. Clones share the snapshot.
#[derive(Clone)]
pub struct RocksSnapshot {
    /// For gets, if it reads from memory alone. They refer to the snapshot.
    cached: Option<Arc<ReadOptions>>,
    pinned: Arc<Pinned>,
}

/// The snapshot and the database it belongs to.
///
/// Invariant: `database` is declared last and therefore dropped last, so the database outlives the snapshot.
struct Pinned {
    /// For gets. They refer to the snapshot.
    read_options: ReadOptions,
    /// It lives as long as `database`, which the type system cannot express. Never handed out.
    snapshot: rocksdb::Snapshot<'static>,
    database: Arc<Database>,
}

impl RocksSnapshot {
    /// A snapshot of everything written so far.
    pub(super) fn take(database: &Arc<Database>) -> RocksSnapshot {
        let database = Arc::clone(database);
        let db: *const DB = &raw const database.db;
        // SAFETY: `db` points into the heap allocation of the `Arc`, which does not move and is never mutated. The
        // reference lives in `snapshot` alone, and `Pinned` drops `snapshot` before its own `Arc` of that allocation.
        let snapshot = unsafe { &*db }.snapshot();
        let mut read_options = ReadOptions::default();
        read_options.set_snapshot(&snapshot);
        RocksSnapshot { cached: None, pinned: Arc::new(Pinned { read_options, snapshot, database }) }
    }

    /// The first key of `[start, end)`; an empty `end` means no upper bound.
    pub(super) fn first_key(&self, cf: Cf, start: &[u8], end: &[u8]) -> Result<Option<Vec<u8>>> {
        let mut cursor = self.cursor(cf, start, end)?;
        Ok(if cursor.seek_to_first()? { Some(cursor.key().to_vec()) } else { None })
    }
}

impl Reader for RocksSnapshot {
    fn get(&self, cf: Cf, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let Pinned { database, read_options, .. } = &*self.pinned;
        let (read_options, on_error): (_, fn(rocksdb::Error) -> StoreError) = match &self.cached {
            Some(cached) => (&**cached, on_cached),
            None => (read_options, on_read),
        };
        let found = database.db.get_pinned_cf_opt(database.family(cf)?, key, read_options).map_err(on_error)?;
        Ok(found.map(|value| value.to_vec()))
    }

    fn cursor(&self, cf: Cf, lower: &[u8], upper: &[u8]) -> Result<Box<dyn Cursor>> {
        self.open_cursor(cf, (lower, upper), options::ordered_reads())
    }

    fn limited_cursor(&self, cf: Cf, lower: &[u8], upper: &[u8], skips: usize) -> Result<Box<dyn Cursor>> {
        let mut options = options::ordered_reads();
        // To RocksDB, 0 means no limit.
        options.set_max_skippable_internal_keys(skips.max(1) as u64);
        self.open_cursor(cf, (lower, upper), options)
    }
}

impl Snapshot for RocksSnapshot {
    fn cached(&self) -> RocksSnapshot {
        let mut cached = options::cached_reads();
        cached.set_snapshot(&self.pinned.snapshot);
        RocksSnapshot { cached: Some(Arc::new(cached)), pinned: Arc::clone(&self.pinned) }
    }
}

impl RocksSnapshot {
    fn open_cursor(&self, cf: Cf, (lower, upper): (&[u8], &[u8]), mut options: ReadOptions) -> Result<Box<dyn Cursor>> {
        options.set_snapshot(&self.pinned.snapshot);
        if self.cached.is_some() {
            options.set_read_tier(ReadTier::BlockCache);
        }
        if !lower.is_empty() {
            options.set_iterate_lower_bound(lower);
        }
        if !upper.is_empty() {
            // Reversed bounds hold nothing. RocksDB requires them in order.
            options.set_iterate_upper_bound(upper.max(lower));
        }
        let database: *const Database = Arc::as_ptr(&self.pinned.database);
        // SAFETY: `database` is the heap allocation of the `Arc` in `pinned`, which does not move and is never mutated.
        // The reference lives in `iter` alone, and the cursor drops `iter` before its own `pinned`. The snapshot, to
        // which the options of `iter` refer, is in `pinned` as well.
        let database = unsafe { &*database };
        let iter = database.db.raw_iterator_cf_opt(database.family(cf)?, options);
        let incomplete: fn() -> StoreError =
            if self.cached.is_some() { || StoreError::NotCached } else { || StoreError::GaveUp };
        Ok(Box::new(RocksCursor { iter, failed: None, incomplete, _pinned: Arc::clone(&self.pinned) }))
    }
}

/// A cursor over a RocksDB iterator. It copies neither keys nor values.
///
/// Invariant: `_pinned` is declared last and therefore dropped last, so snapshot and database outlive the iterator.
struct RocksCursor {
    /// It lives as long as `_pinned`, which the type system cannot express. Never handed out.
    iter: DBRawIterator<'static>,
    /// The first failure. Every later call returns it.
    failed: Option<rocksdb::Error>,
    /// What it means that RocksDB did not complete a call. From memory alone, a cursor that gave up counts as one that
    /// met a file: RocksDB does not tell them apart, and the caller continues where it may take longer.
    incomplete: fn() -> StoreError,
    _pinned: Arc<Pinned>,
}

impl RocksCursor {
    fn step(&mut self, go: impl FnOnce(&mut DBRawIterator<'static>)) -> Result<bool> {
        if self.failed.is_none() {
            go(&mut self.iter);
            if self.iter.valid() {
                return Ok(true);
            }
            self.failed = self.iter.status().err();
        }
        self.failed.clone().map_or(Ok(false), |error| match error.kind() {
            ErrorKind::Incomplete => Err((self.incomplete)()),
            _ => Err(on_read(error)),
        })
    }
}

impl Cursor for RocksCursor {
    fn seek(&mut self, key: &[u8]) -> Result<bool> {
        self.step(|iter| iter.seek(key))
    }

    fn seek_for_prev(&mut self, key: &[u8]) -> Result<bool> {
        self.step(|iter| iter.seek_for_prev(key))
    }

    fn seek_to_first(&mut self) -> Result<bool> {
        self.step(|iter| iter.seek_to_first())
    }

    fn seek_to_last(&mut self) -> Result<bool> {
        self.step(|iter| iter.seek_to_last())
    }

    fn next(&mut self) -> Result<bool> {
        self.step(|iter| iter.next())
    }

    fn prev(&mut self) -> Result<bool> {
        self.step(|iter| iter.prev())
    }

    #[expect(clippy::expect_used, reason = "documented: the cursor must be valid")]
    fn key(&self) -> &[u8] {
        self.iter.key().expect("the cursor is valid")
    }

    #[expect(clippy::expect_used, reason = "documented: the cursor must be valid")]
    fn value(&self) -> &[u8] {
        self.iter.value().expect("the cursor is valid")
    }
}

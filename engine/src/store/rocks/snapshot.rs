//! Snapshots of the RocksDB store and the cursors over them.
//!
//! A snapshot owns a handle to the database, so that it can be moved to another thread and outlive every
//! [`super::RocksStore`]; the database is closed when the last of both is gone.
#![expect(unsafe_code, reason = "a snapshot that owns the database it borrows from")]

use std::sync::Arc;

use rocksdb::{DB, DBRawIterator, ReadOptions, Snapshot};

use super::{Shared, on_read};
use crate::cf::Cf;
use crate::store::{Cursor, Reader, Result};

/// A snapshot of a [`super::RocksStore`]. Cloning gives another handle to the same snapshot.
#[derive(Clone)]
pub struct RocksSnapshot {
    pinned: Arc<Pinned>,
}

/// The snapshot and the database it belongs to.
///
/// Invariant: `shared` is declared last, so it is dropped last, and the database outlives the snapshot.
struct Pinned {
    /// For gets; names the snapshot.
    read_options: ReadOptions,
    /// Its lifetime is that of `shared`, which the type system cannot say. Never handed out.
    snapshot: Snapshot<'static>,
    shared: Arc<Shared>,
}

impl RocksSnapshot {
    /// A snapshot of everything written so far.
    pub(super) fn take(shared: &Arc<Shared>) -> RocksSnapshot {
        let shared = Arc::clone(shared);
        let db: *const DB = &raw const shared.db;
        // SAFETY: `db` points into the heap allocation of the `Arc`, which does not move and is never mutated. The
        // reference lives in `snapshot` alone, and `Pinned` drops `snapshot` before its own `Arc` of that allocation.
        let snapshot = unsafe { &*db }.snapshot();
        let mut read_options = ReadOptions::default();
        read_options.set_snapshot(&snapshot);
        RocksSnapshot { pinned: Arc::new(Pinned { read_options, snapshot, shared }) }
    }

    /// The first key of `[start, end)`; an empty `end` means no upper bound.
    pub(super) fn first_key(&self, cf: Cf, start: &[u8], end: &[u8]) -> Result<Option<Vec<u8>>> {
        let mut cursor = self.cursor(cf, start, end)?;
        Ok(if cursor.seek_to_first()? { Some(cursor.key().to_vec()) } else { None })
    }
}

impl Reader for RocksSnapshot {
    fn get(&self, cf: Cf, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let shared = &self.pinned.shared;
        let found = shared.db.get_pinned_cf_opt(shared.family(cf)?, key, &self.pinned.read_options).map_err(on_read)?;
        Ok(found.map(|value| value.to_vec()))
    }

    fn cursor(&self, cf: Cf, lower: &[u8], upper: &[u8]) -> Result<Box<dyn Cursor + '_>> {
        let mut options = ReadOptions::default();
        options.set_snapshot(&self.pinned.snapshot);
        if !lower.is_empty() {
            options.set_iterate_lower_bound(lower);
        }
        if !upper.is_empty() {
            // Bounds the wrong way round hold nothing; RocksDB wants them in order.
            options.set_iterate_upper_bound(upper.max(lower));
        }
        let shared = &self.pinned.shared;
        Ok(Box::new(RocksCursor { iter: shared.db.raw_iterator_cf_opt(shared.family(cf)?, options), failed: None }))
    }
}

/// A cursor over RocksDB's iterator, which copies neither keys nor values.
struct RocksCursor<'a> {
    iter: DBRawIterator<'a>,
    /// The first failure; every later call repeats it.
    failed: Option<rocksdb::Error>,
}

impl RocksCursor<'_> {
    fn step(&mut self, go: impl FnOnce(&mut DBRawIterator<'_>)) -> Result<bool> {
        if self.failed.is_none() {
            go(&mut self.iter);
            if self.iter.valid() {
                return Ok(true);
            }
            self.failed = self.iter.status().err();
        }
        self.failed.clone().map_or(Ok(false), |error| Err(on_read(error)))
    }
}

impl Cursor for RocksCursor<'_> {
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

    #[expect(clippy::expect_used, reason = "documented: only when standing on a key")]
    fn key(&self) -> &[u8] {
        self.iter.key().expect("the cursor stands on a key")
    }

    #[expect(clippy::expect_used, reason = "documented: only when standing on a key")]
    fn value(&self) -> &[u8] {
        self.iter.value().expect("the cursor stands on a key")
    }
}

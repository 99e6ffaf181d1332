//! Reads of the newest state, without a snapshot, from memtables and block cache alone.
#![expect(unsafe_code, reason = "idle cursors that the database owns")]

use std::ops::ControlFlow;
use std::sync::Arc;

use rocksdb::{DB, DBRawIterator};

use super::database::Database;
use super::errors::on_cached;
use super::options;
use crate::cf::Cf;
use crate::store::{Cursor, Reader, Result, StoreError, Visit, is_version_of};

/// See [`NewestReader::get_newest`](crate::store::NewestReader::get_newest).
pub(super) fn get(database: &Database, cf: Cf, key: &[u8]) -> Result<Option<Vec<u8>>> {
    let found = database.db.get_pinned_cf_opt(database.family(cf)?, key, &database.cached_reads).map_err(on_cached)?;
    Ok(found.map(|value| value.to_vec()))
}

/// See [`NewestReader::visit_versions`](crate::store::NewestReader::visit_versions).
pub(super) fn visit_versions(
    database: &Database,
    cf: Cf,
    (prefix, from): (&[u8], &[u8]),
    visit: &mut Visit<'_>,
) -> Result<()> {
    if cf != Cf::Write {
        return walk(&mut open(database, cf)?, prefix, from, visit);
    }
    let mut cursor = version_cursor(database)?;
    walk(&mut cursor, prefix, from, visit)?;
    database.cursors.keep(cursor);
    Ok(())
}

fn walk(cursor: &mut DBRawIterator<'static>, prefix: &[u8], from: &[u8], visit: &mut Visit<'_>) -> Result<()> {
    cursor.seek(from);
    while let Some((key, value)) = cursor.item() {
        if !key.starts_with(prefix) || (is_version_of(key, prefix) && visit(key, value) == ControlFlow::Break(())) {
            return Ok(());
        }
        cursor.next();
    }
    cursor.status().map_err(on_cached)
}

/// A cursor over the versions of one key of `Cf::Write` that sees everything written so far: an idle one, if there is
/// one.
fn version_cursor(database: &Database) -> Result<DBRawIterator<'static>> {
    if let Some(mut cursor) = database.cursors.take()
        && cursor.refresh().is_ok()
    {
        return Ok(cursor);
    }
    open(database, Cf::Write)
}

fn open(database: &Database, cf: Cf) -> Result<DBRawIterator<'static>> {
    let db: *const DB = &raw const database.db;
    // SAFETY: the cursor refers to RocksDB's own database, which `db` closes when it is dropped. A cursor that is in
    // use is dropped or kept before `visit_versions` returns or by its `KeptCursor`, and so before the last handle of
    // the database. A kept one is in `Database::cursors`, which is dropped before `Database::db`.
    let db = unsafe { &*db };
    Ok(db.raw_iterator_cf_opt(database.family(cf)?, options::version_reads()))
}

/// The newest state, in memory.
pub(super) struct CachedReader<'a> {
    database: &'a Arc<Database>,
}

impl CachedReader<'_> {
    pub(super) fn new(database: &Arc<Database>) -> CachedReader<'_> {
        CachedReader { database }
    }
}

impl Reader for CachedReader<'_> {
    fn get(&self, cf: Cf, key: &[u8]) -> Result<Option<Vec<u8>>> {
        get(self.database, cf, key)
    }

    /// Always [`StoreError::NotCached`]: nobody moves over many keys in memory alone.
    fn cursor(&self, _: Cf, _: &[u8], _: &[u8]) -> Result<Box<dyn Cursor>> {
        Err(StoreError::NotCached)
    }

    fn limited_cursor(&self, cf: Cf, lower: &[u8], upper: &[u8], _: usize) -> Result<Box<dyn Cursor>> {
        self.cursor(cf, lower, upper)
    }

    fn version_cursor(&self, lower: &[u8], upper: &[u8]) -> Result<Box<dyn Cursor>> {
        let cursor = Some(version_cursor(self.database)?);
        let database = Arc::clone(self.database);
        Ok(Box::new(KeptCursor { cursor, lower: lower.to_vec(), upper: upper.to_vec(), database }))
    }
}

/// A cursor over the versions of one key at a time, which moves forward only. It goes back to the idle ones when it is
/// dropped.
///
/// Invariant: `database` is declared last and therefore dropped last, so the database outlives the cursor.
struct KeptCursor {
    /// `None` once it has failed.
    cursor: Option<DBRawIterator<'static>>,
    lower: Vec<u8>,
    upper: Vec<u8>,
    database: Arc<Database>,
}

impl KeptCursor {
    fn step(&mut self, go: impl FnOnce(&mut DBRawIterator<'static>, &[u8])) -> Result<bool> {
        let Some(cursor) = &mut self.cursor else { return Err(StoreError::NotCached) };
        go(cursor, &self.lower);
        if let Some(key) = cursor.key() {
            return Ok(key >= self.lower.as_slice() && (self.upper.is_empty() || key < self.upper.as_slice()));
        }
        let status = cursor.status();
        if status.is_err() {
            self.cursor = None;
        }
        status.map(|()| false).map_err(on_cached)
    }

    #[expect(clippy::expect_used, reason = "documented: the cursor must be valid")]
    fn valid(&self) -> &DBRawIterator<'static> {
        self.cursor.as_ref().expect("the cursor is valid")
    }
}

impl Cursor for KeptCursor {
    fn seek(&mut self, key: &[u8]) -> Result<bool> {
        self.step(|cursor, lower| cursor.seek(key.max(lower)))
    }

    /// Always [`StoreError::NotCached`], as all movements backwards: they would leave the key and its filters.
    fn seek_for_prev(&mut self, _: &[u8]) -> Result<bool> {
        Err(StoreError::NotCached)
    }

    fn seek_to_first(&mut self) -> Result<bool> {
        self.step(|cursor, lower| cursor.seek(lower))
    }

    fn seek_to_last(&mut self) -> Result<bool> {
        Err(StoreError::NotCached)
    }

    fn next(&mut self) -> Result<bool> {
        self.step(|cursor, _| cursor.next())
    }

    fn prev(&mut self) -> Result<bool> {
        Err(StoreError::NotCached)
    }

    #[expect(clippy::expect_used, reason = "documented: the cursor must be valid")]
    fn key(&self) -> &[u8] {
        self.valid().key().expect("the cursor is valid")
    }

    #[expect(clippy::expect_used, reason = "documented: the cursor must be valid")]
    fn value(&self) -> &[u8] {
        self.valid().value().expect("the cursor is valid")
    }
}

impl Drop for KeptCursor {
    fn drop(&mut self) {
        if let Some(cursor) = self.cursor.take() {
            self.database.cursors.keep(cursor);
        }
    }
}

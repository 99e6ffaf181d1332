//! Reads of the newest state, without a snapshot.
#![expect(unsafe_code, reason = "idle cursors that the database owns")]

use std::ops::ControlFlow;

use rocksdb::{DB, DBRawIterator};

use super::database::Database;
use super::errors::on_read;
use super::options;
use super::store::RocksStore;
use crate::cf::Cf;
use crate::store::{NewestReader, Result, Visit, is_version_of};

impl NewestReader for RocksStore {
    fn get_newest(&self, cf: Cf, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let database = self.database();
        let found = database.db.get_pinned_cf(database.family(cf)?, key).map_err(on_read)?;
        Ok(found.map(|value| value.to_vec()))
    }

    fn visit_versions(&self, cf: Cf, prefix: &[u8], from: &[u8], visit: &mut Visit<'_>) -> Result<()> {
        let database = self.database();
        if cf != Cf::Write {
            return walk(&mut open(database, cf)?, prefix, from, visit);
        }
        let mut cursor = match refreshed(database) {
            Some(cursor) => cursor,
            None => open(database, cf)?,
        };
        walk(&mut cursor, prefix, from, visit)?;
        database.cursors.keep(cursor);
        Ok(())
    }
}

/// An idle cursor over `Cf::Write` that sees everything written so far.
fn refreshed(database: &Database) -> Option<DBRawIterator<'static>> {
    let mut cursor = database.cursors.take()?;
    cursor.refresh().is_ok().then_some(cursor)
}

fn open(database: &Database, cf: Cf) -> Result<DBRawIterator<'static>> {
    let db: *const DB = &raw const database.db;
    // SAFETY: the cursor refers to RocksDB's own database, which `db` closes when it is dropped. A cursor that is in
    // use is dropped or kept before `visit_versions` returns, and so before its store. A kept one is in
    // `Database::cursors`, which is dropped before `Database::db`.
    let db = unsafe { &*db };
    Ok(db.raw_iterator_cf_opt(database.family(cf)?, options::version_reads()))
}

fn walk(cursor: &mut DBRawIterator<'static>, prefix: &[u8], from: &[u8], visit: &mut Visit<'_>) -> Result<()> {
    cursor.seek(from);
    while let Some((key, value)) = cursor.item() {
        if !key.starts_with(prefix) || (is_version_of(key, prefix) && visit(key, value) == ControlFlow::Break(())) {
            return Ok(());
        }
        cursor.next();
    }
    cursor.status().map_err(on_read)
}

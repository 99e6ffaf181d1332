//! Compares a table with its indexes, at a snapshot.
//!
//! Each row must have the entry that follows from it in each index, or none where it does not satisfy the index's
//! predicate; and each entry must lead to a row that has it. Rows and entries are read in pages, so memory is bounded
//! whatever the table's size.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use kv::Key;
use pgtypes::TimeZone;
use txn::Transaction;

use super::cursor;
use super::ranges::Pages;
use super::writer::entry_of;
use crate::catalog::Catalog;
use crate::codec::index as entry_form;
use crate::error::{SqlError, SqlState, storage_error};
use crate::expr::eval::Env;
use crate::plan::{BoundIndex, TableWrite};
use crate::table::{Index, Table};

/// Rows or entries per page.
const PAGE_ROWS: u32 = 256;
/// Limit of differences that are described.
const DESCRIBED: usize = 100;

/// What a comparison has found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckedTable {
    /// The rows of the table.
    pub rows: u64,
    /// The entries of all its indexes.
    pub entries: u64,
    /// The number of differences.
    pub differences: u64,
    /// The first of them, for people.
    pub described: Vec<String>,
}

/// Compares the table `name` with its indexes at the snapshot of a transaction. `catalog` is that of the snapshot.
pub async fn check_table(txn: &Transaction, catalog: &Catalog, name: &str) -> Result<CheckedTable, SqlError> {
    let missing = || SqlError::new(SqlState::UNDEFINED_TABLE, format!("relation \"{name}\" does not exist"));
    let table = catalog.table(name).ok_or_else(missing)?.clone();
    check_with_progress(txn, catalog, table, &mut |_| ()).await
}

/// The same of a table. `progress` hears what was found so far, after each page.
pub(crate) async fn check_with_progress(
    txn: &Transaction,
    catalog: &Catalog,
    table: Arc<Table>,
    progress: &mut (dyn FnMut(&CheckedTable) + Send),
) -> Result<CheckedTable, SqlError> {
    let write = match TableWrite::bind(table, catalog) {
        Ok(write) => write,
        // Other tables can be compared all the same.
        Err(error) => {
            let described = vec![format!("an expression of the table has no meaning: {}", error.message)];
            return Ok(CheckedTable { differences: 1, described, ..CheckedTable::default() });
        }
    };
    let mut check = Check { write, zone: TimeZone::utc(), found: CheckedTable::default(), progress };
    check.rows(txn).await?;
    for at in 0..check.write.indexes.len() {
        check.index(at, txn).await?;
    }
    Ok(check.found)
}

struct Check<'p> {
    write: TableWrite,
    zone: TimeZone,
    found: CheckedTable,
    progress: &'p mut (dyn FnMut(&CheckedTable) + Send),
}

impl Check<'_> {
    fn differs(&mut self, what: String) {
        self.found.differences += 1;
        if self.found.described.len() < DESCRIBED {
            self.found.described.push(what);
        }
    }

    /// Looks for the entries of all rows.
    async fn rows(&mut self, txn: &Transaction) -> Result<(), SqlError> {
        let mut pages = Pages::of(self.write.table.storage, PAGE_ROWS);
        while let Some(page) = pages.next(txn).await? {
            let mut expected: Vec<(usize, entry_form::Entry)> = Vec::new();
            for (key, value) in &page {
                self.found.rows += 1;
                match self.entries_of(key, value) {
                    Ok(entries) => expected.extend(entries),
                    Err(error) => self.differs(format!("row {key:?}: {}", error.message)),
                }
            }
            for chunk in expected.chunks(PAGE_ROWS as usize) {
                let keys: Vec<Key> = chunk.iter().map(|(_, entry)| entry.key.clone()).collect();
                let stored: HashMap<Key, Bytes> =
                    txn.batch_get(&keys).await.map_err(storage_error)?.into_iter().collect();
                for (at, entry) in chunk {
                    let name = self.write.table.indexes.get(*at).map_or("", |index| &index.name).to_owned();
                    match stored.get(&entry.key) {
                        None => self.differs(format!("index {name}: no entry {:?}", entry.key)),
                        Some(value) if *value != entry.value => {
                            self.differs(format!("index {name}: another value of entry {:?}", entry.key));
                        }
                        Some(_) => {}
                    }
                }
            }
            (self.progress)(&self.found);
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    fn entries_of(&self, key: &Key, value: &[u8]) -> Result<Vec<(usize, entry_form::Entry)>, SqlError> {
        let mut entries = Vec::new();
        for at in 0..self.write.indexes.len() {
            entries.extend(self.entry(at, key, value)?.map(|entry| (at, entry)));
        }
        Ok(entries)
    }

    fn bound(&self, at: usize) -> Option<(&Index, &BoundIndex)> {
        Some((self.write.table.indexes.get(at)?, self.write.indexes.get(at)?))
    }

    /// The entry of a stored row in an index.
    fn entry(&self, at: usize, key: &Key, value: &[u8]) -> Result<Option<entry_form::Entry>, SqlError> {
        let table = &*self.write.table;
        let row = cursor::decode(table, key, value, &vec![true; table.columns.len()])?;
        let Some(index) = self.bound(at) else { return Ok(None) };
        entry_of(&self.write, index, (key, &row), &Env::of_params(&[], &self.zone))
    }

    /// Looks for the rows of all entries of an index.
    async fn index(&mut self, at: usize, txn: &Transaction) -> Result<(), SqlError> {
        let Some((index, _)) = self.bound(at) else { return Ok(()) };
        let (name, mut pages) = (index.name.clone(), Pages::of(index.storage, PAGE_ROWS));
        while let Some(page) = pages.next(txn).await? {
            let mut leads: Vec<(Key, Bytes, Key)> = Vec::with_capacity(page.len());
            for (key, value) in page {
                self.found.entries += 1;
                let row_key =
                    self.bound(at).map(|(index, _)| entry_form::row_key(&self.write.table, index, (&key, &value)));
                match row_key {
                    Some(Ok(row_key)) => leads.push((key, value, row_key)),
                    Some(Err(error)) => self.differs(format!("index {name}: entry {key:?}: {error}")),
                    None => {}
                }
            }
            let keys: Vec<Key> = leads.iter().map(|(_, _, row_key)| row_key.clone()).collect();
            let rows: HashMap<Key, Bytes> = txn.batch_get(&keys).await.map_err(storage_error)?.into_iter().collect();
            for (key, value, row_key) in leads {
                let Some(row) = rows.get(&row_key) else {
                    self.differs(format!("index {name}: entry {key:?} has no row {row_key:?}"));
                    continue;
                };
                // An error of the row is described already.
                let Ok(expected) = self.entry(at, &row_key, row) else { continue };
                if expected.is_none_or(|entry| entry.key != key || entry.value != value) {
                    self.differs(format!("index {name}: entry {key:?} is not that of row {row_key:?}"));
                }
            }
            (self.progress)(&self.found);
            tokio::task::yield_now().await;
        }
        Ok(())
    }
}

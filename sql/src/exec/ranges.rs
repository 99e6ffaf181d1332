//! The ranges of keys in which tables are stored, for what reads all of a table at once: builds and checks.

use kv::client::ScanRange;

use crate::codec::key;
use crate::table::{StorageId, Table};

/// Rows per page.
pub(super) const PAGE_ROWS: u32 = 512;

/// The rows and index entries of tables.
pub(super) fn ranges_of<'t>(tables: impl Iterator<Item = &'t Table>) -> Vec<ScanRange> {
    tables.flat_map(Table::storages).map(rows_of).collect()
}

/// The rows or index entries of one storage.
pub(super) fn rows_of(storage: StorageId) -> ScanRange {
    let (start, end) = key::storage_range(storage);
    ScanRange { start, end, reverse: false }
}

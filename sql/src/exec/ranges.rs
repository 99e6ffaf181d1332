//! The ranges of keys in which tables are stored, for what reads all of a table at once: builds and checks.

use bytes::Bytes;
use kv::Key;
use kv::client::ScanRange;
use txn::Transaction;

use crate::codec::{CodecError, key};
use crate::error::{SqlError, storage_error};
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

/// A storage in pages: its rows or entries, in the order of their keys.
pub(super) struct Pages {
    rest: Option<ScanRange>,
    limit: u32,
}

impl Pages {
    /// From the start of a storage. `limit`: the most of a page.
    pub(super) fn of(storage: StorageId, limit: u32) -> Pages {
        Pages { rest: Some(rows_of(storage)), limit }
    }

    /// The next page, possibly empty; `None` at the end.
    pub(super) async fn next(&mut self, txn: &Transaction) -> Result<Option<Vec<(Key, Bytes)>>, SqlError> {
        let Some(range) = &mut self.rest else { return Ok(None) };
        let page = txn.scan(range, self.limit).await.map_err(storage_error)?;
        match page.resume {
            Some(resume) if resume > range.start => range.start = resume,
            Some(_) => return Err(CodecError::new("page of a table", "does not advance").into()),
            None => self.rest = None,
        }
        Ok(Some(page.pairs))
    }
}

//! Scans an index: entries in pages, then the rows that they lead to, in the order of the index.
//!
//! The bounds of the scan are ranges of keys, one for each prefix, in key order and apart. So the entries of one range
//! after the other are in the order of the index, in either direction.
//!
//! The rows of a page of entries are read together. A store answers with as many as fit a page; if some are missing,
//! the first half of the entries is tried alone. So a page has about the bytes of one answer, unless one row is larger.
//!
//! Every entry leads to a row, and every row is met once: an index equals its table at any snapshot. Only a transaction
//! that has written a row and lost its lock may see otherwise: its own row beside another's newer entry. Its commit
//! would be a conflict, and so is the scan.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use kv::Key;
use kv::client::ScanRange;
use txn::{Transaction, TxnError};

use super::key_values::keys_of;
use super::rows::Row;
use crate::codec::{CodecError, index as entry_form, key};
use crate::coop::Turn;
use crate::error::{SqlError, SqlState, storage_error};
use crate::expr::eval::{Env, eval};
use crate::plan::IndexScan;
use crate::table::{Index, Table};
use pgtypes::Datum;
use pgtypes::codec::key::{KeyOrder, put_ordered};

/// The most rows that are read together.
const ROWS_AT_ONCE: usize = 256;

/// The first key of a range, and the first one behind it.
type KeyRange = (Vec<u8>, Vec<u8>);

/// A position in an index.
pub(super) struct IndexCursor {
    table: Arc<Table>,
    index: usize,
    /// Whether the entries have all columns in use.
    covers: bool,
    /// What is left to scan, in the order of the scan.
    ranges: VecDeque<ScanRange>,
    /// The keys of rows whose entries were read.
    pending: VecDeque<Key>,
    /// The most rows that fit an answer, as far as known.
    rows_at_once: usize,
}

impl IndexCursor {
    /// A cursor at the start of a scan.
    pub(super) async fn new(
        (table, scan): (&Arc<Table>, &IndexScan),
        reverse: bool,
        env: &Env<'_>,
        turn: &mut Turn,
    ) -> Result<IndexCursor, SqlError> {
        let index = table.indexes.get(scan.index).ok_or_else(|| SqlError::internal("an index is missing"))?;
        let mut ranges = Vec::with_capacity(scan.prefixes.len());
        for prefix in &scan.prefixes {
            let put = |value: &Datum, at: usize, out: &mut Vec<u8>| {
                let column = index.columns.get(at);
                column.map(|column| put_ordered(value, column.order, out)).is_some()
            };
            let keys = keys_of(prefix.iter().map(Option::as_ref), entry_form::prefix(index.storage), env, put)?;
            turn.spend(1 + prefix.len() + keys.len()).await;
            for key in keys {
                ranges.extend(range(index, (key, prefix.len()), scan, env)?);
            }
        }
        ranges.sort_unstable();
        ranges.dedup();
        let ranges =
            ranges.into_iter().map(|(start, end)| ScanRange { start: Key::new(start), end: Key::new(end), reverse });
        let ranges = if reverse { ranges.rev().collect() } else { ranges.collect() };
        let (index, covers) = (scan.index, scan.covers);
        let table = Arc::clone(table);
        Ok(IndexCursor { table, index, covers, ranges, pending: VecDeque::new(), rows_at_once: ROWS_AT_ONCE })
    }

    /// The next page, possibly empty; `None` at the end: stored rows, or entries if they have all columns in use.
    pub(super) async fn next(
        &mut self,
        txn: &Transaction,
        entries: u32,
    ) -> Result<Option<Vec<(Key, Bytes)>>, SqlError> {
        if self.pending.is_empty() {
            let Some(page) = self.entries(txn, entries).await? else { return Ok(None) };
            if self.covers {
                return Ok(Some(page));
            }
            let index = self.index()?;
            let keys = page.iter().map(|(key, value)| entry_form::row_key(&self.table, index, (key, value)));
            let keys = keys.collect::<Result<VecDeque<Key>, CodecError>>()?;
            self.pending = keys;
        }
        self.rows(txn).await.map(Some)
    }

    /// Decodes what an entry tells of its row. Returns the key of the row.
    pub(super) fn decode(&self, entry: (&Key, &[u8]), row: &mut Row) -> Result<Key, SqlError> {
        Ok(entry_form::decode(&self.table, self.index()?, entry, row)?)
    }

    fn index(&self) -> Result<&Index, SqlError> {
        self.table.indexes.get(self.index).ok_or_else(|| SqlError::internal("an index is missing"))
    }

    /// The next page of entries.
    async fn entries(&mut self, txn: &Transaction, limit: u32) -> Result<Option<Vec<(Key, Bytes)>>, SqlError> {
        let Some(range) = self.ranges.front_mut() else { return Ok(None) };
        let page = txn.scan(range, limit).await.map_err(storage_error)?;
        match page.resume {
            Some(resume) if range.reverse && resume < range.end => range.end = resume,
            Some(resume) if !range.reverse && resume > range.start => range.start = resume,
            Some(_) => return Err(CodecError::new("page of an index", "does not advance").into()),
            None => drop(self.ranges.pop_front()),
        }
        Ok(Some(page.pairs))
    }

    /// The next rows whose entries were read.
    async fn rows(&mut self, txn: &Transaction) -> Result<Vec<(Key, Bytes)>, SqlError> {
        let mut count = self.pending.len().min(self.rows_at_once);
        let mut found: HashMap<Key, Bytes> = HashMap::new();
        while count > 0 {
            let keys: Vec<Key> = self.pending.iter().take(count).cloned().collect();
            let page = txn.batch_get_page(&keys).await.map_err(storage_error)?;
            found = page.pairs.into_iter().collect();
            if page.resume.is_none() || count == 1 {
                break;
            }
            count /= 2;
            self.rows_at_once = count;
        }
        let mut rows = Vec::with_capacity(count);
        for key in self.pending.drain(..count) {
            match found.remove(&key) {
                Some(value) => rows.push((key, value)),
                None => return Err(missing((&self.table, self.index), txn, &key)),
            }
        }
        Ok(rows)
    }
}

/// The error of an entry of the table's index whose row is not there, or was met before.
fn missing((table, index): (&Table, usize), txn: &Transaction, key: &Key) -> SqlError {
    if txn.has_written(key) {
        return TxnError::Conflict("a row that it has written was written again meanwhile".to_owned()).into();
    }
    let name = table.indexes.get(index).map_or("", |index| &index.name);
    SqlError::new(SqlState::DATA_CORRUPTED, format!("index \"{name}\" has an entry without a row"))
}

/// The range of keys with the bytes of the first columns, and within the bounds of the next one; `None` if it is empty.
fn range(
    index: &Index,
    (bytes, columns): (Vec<u8>, usize),
    scan: &IndexScan,
    env: &Env<'_>,
) -> Result<Option<KeyRange>, SqlError> {
    let is_bounded = scan.skips_null || !scan.lower.is_empty() || !scan.upper.is_empty();
    let Some(column) = index.columns.get(columns).filter(|_| is_bounded) else {
        let end = key::successor(&bytes);
        return Ok(Some((bytes, end)));
    };
    // NULL is neither above nor below anything, so its mark is outside. Any value has the mark of this one.
    let mut marked = bytes.clone();
    put_ordered(&Datum::Bool(false), KeyOrder::default(), &mut marked);
    marked.truncate(bytes.len() + 1);
    let (mut start, mut end) = (marked.clone(), key::successor(&marked));
    let bounds = scan.lower.iter().map(|bound| (bound, true)).chain(scan.upper.iter().map(|bound| (bound, false)));
    for (bound, is_lower) in bounds {
        let value = eval(&bound.value, &[], env)?;
        if value.is_null() {
            return Ok(None);
        }
        let mut at = bytes.clone();
        put_ordered(&value, column.order, &mut at);
        // Keys with the bound's own value lie between its bytes and their successor.
        let is_start = is_lower != column.order.descends;
        let behind = is_start != bound.inclusive;
        let at = if behind { key::successor(&at) } else { at };
        if is_start {
            start = start.max(at);
        } else {
            end = end.min(at);
        }
    }
    Ok((start < end).then_some((start, end)))
}

//! Entries of secondary indexes.
//!
//! ```text
//! key    t | storage id of the index | i | columns in their order [ | row ]
//! value  as of a row: 1 row | 1 + i: column i | 1 + columns + j: key column j of the row | ... included columns
//! ```
//!
//! *row* is what follows the prefix in the row's key. It is in the key of an entry, unless the entry must be the only
//! one with its columns: in a unique index, if none of them is NULL, or with NULLS NOT DISTINCT. Then it is in the
//! value, and the key of the entry is what two transactions conflict on.
//!
//! The value has what the key does not tell exactly ([`loses`]) of the columns and of the row's key, and the included
//! columns. So an index tells each of its columns, each column of the primary key, and the included ones.

use bytes::Bytes;
use kv::Key;
use pgtypes::codec::key::{get_ordered, loses, put_ordered};
use pgtypes::codec::stored;
use pgtypes::{Datum, SqlType};

use super::key::{self, PREFIX_LEN};
use super::primitives::CodecError;
use super::row::{Reader, encode_values};
use crate::table::{Index, IndexedValue, StorageId, Table};

const WHAT: &str = "index entry";
/// The id of the row in an entry's value.
const ROW: u16 = 1;

/// An entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its key.
    pub key: Key,
    /// Its value.
    pub value: Bytes,
    /// Whether no other row may have an entry with this key.
    pub is_unique: bool,
}

/// The prefix of the keys of an index.
pub fn prefix(storage: StorageId) -> Vec<u8> {
    let mut out = Vec::with_capacity(PREFIX_LEN + 26);
    out.push(b't');
    out.extend_from_slice(&storage.0.to_be_bytes());
    out.push(b'i');
    out
}

/// The storage of an index, and the rest of the key of an entry; `None` for other keys.
pub fn split_entry_key(key: &[u8]) -> Option<(StorageId, &[u8])> {
    key::split(key, b'i')
}

/// The entry of a row. `values` are those of the index's columns.
pub fn entry(table: &Table, index: &Index, values: &[Datum], row_key: &Key, row: &[Datum]) -> Entry {
    let suffix = row_key.as_bytes().get(PREFIX_LEN..).unwrap_or_default();
    let mut bytes = prefix(index.storage);
    for (value, column) in values.iter().zip(&index.columns) {
        put_ordered(value, column.order, &mut bytes);
    }
    let is_unique = index.is_unique_entry(values.iter().any(Datum::is_null));
    let stored_row = is_unique.then(|| Datum::Bytes(suffix.into()));
    if !is_unique {
        bytes.extend_from_slice(suffix);
    }
    let layout = Layout::of(table, index);
    let lost = values.iter().enumerate().filter(|(_, value)| !value.is_null() && loses(value));
    let lost = lost.map(|(at, value)| (layout.column(at), value));
    let key_columns = table.primary_key.iter().enumerate().filter_map(|(at, column)| Some((at, row.get(*column)?)));
    let key_columns = key_columns.filter(|(_, value)| loses(value)).map(|(at, value)| (layout.key_column(at), value));
    let included = index.included.iter().enumerate().filter_map(|(at, column)| Some((at, row.get(*column)?)));
    let included = included.filter(|(_, value)| !value.is_null()).map(|(at, value)| (layout.included(at), value));
    let fields = stored_row.iter().map(|row| (ROW, row)).chain(lost).chain(key_columns).chain(included);
    Entry { key: Key::new(bytes), value: encode_values(layout.count(), row, fields), is_unique }
}

/// The ids of the values of an entry.
struct Layout {
    columns: usize,
    key_columns: usize,
    included: usize,
}

impl Layout {
    fn of(table: &Table, index: &Index) -> Layout {
        let (columns, included) = (index.columns.len(), index.included.len());
        Layout { columns, key_columns: table.primary_key.len(), included }
    }

    fn column(&self, at: usize) -> u16 {
        id(1 + at)
    }

    fn key_column(&self, at: usize) -> u16 {
        id(1 + self.columns + at)
    }

    fn included(&self, at: usize) -> u16 {
        id(1 + self.columns + self.key_columns + at)
    }

    fn count(&self) -> usize {
        1 + self.columns + self.key_columns + self.included
    }
}

/// The id of a value: they are counted from 1.
fn id(at: usize) -> u16 {
    u16::try_from(at + 1).unwrap_or(u16::MAX)
}

/// The mark of a column that is not NULL ([`pgtypes::codec::key::put_ordered`]).
const NOT_NULL: u8 = 1;

/// The key of an entry, read.
pub struct EntryKey<'k> {
    /// The values of the index's columns, as far as the key tells them.
    pub values: Vec<Datum>,
    /// Whether one of them is NULL. A value that the key does not tell at all reads as NULL too.
    pub has_null: bool,
    /// What follows the columns.
    rest: &'k [u8],
}

/// Reads the key of an entry.
pub fn read_key<'k>(table: &Table, index: &Index, key: &'k Key) -> Result<EntryKey<'k>, CodecError> {
    let mut rest = columns_of(index, key)?;
    let (mut values, mut has_null) = (Vec::with_capacity(index.columns.len()), false);
    for (at, column) in index.columns.iter().enumerate() {
        has_null |= rest.first() != Some(&NOT_NULL);
        values.push(get_ordered(type_of(table, index, at)?, column.order, &mut rest)?);
    }
    Ok(EntryKey { values, has_null, rest })
}

/// The values of an index's columns in an entry; without its value, as far as the key tells them.
pub fn values(table: &Table, index: &Index, (key, value): (&Key, Option<&[u8]>)) -> Result<Vec<Datum>, CodecError> {
    let mut values = read_key(table, index, key)?.values;
    let Some(value) = value else { return Ok(values) };
    let (reader, layout) = (Reader::new(value)?, Layout::of(table, index));
    for (at, place) in values.iter_mut().enumerate() {
        if let Some(bytes) = reader.get(layout.column(at))? {
            *place = stored::get_datum(type_of(table, index, at)?, bytes)?;
        }
    }
    Ok(values)
}

/// The key of an entry's row.
pub fn row_key(table: &Table, index: &Index, (key, value): (&Key, &[u8])) -> Result<Key, CodecError> {
    row_of(table, index, &read_key(table, index, key)?, value)
}

fn row_of(table: &Table, index: &Index, key: &EntryKey<'_>, value: &[u8]) -> Result<Key, CodecError> {
    let suffix = if index.is_unique_entry(key.has_null) {
        if !key.rest.is_empty() {
            return Err(CodecError::new(WHAT, "bytes left over"));
        }
        Reader::new(value)?.get(ROW)?.ok_or(CodecError::new(WHAT, "without its row"))?
    } else {
        key.rest
    };
    let mut bytes = key::row_prefix(table.storage);
    bytes.extend_from_slice(suffix);
    Ok(Key::new(bytes))
}

fn columns_of<'k>(index: &Index, key: &'k Key) -> Result<&'k [u8], CodecError> {
    match split_entry_key(key.as_bytes()) {
        Some((storage, rest)) if storage == index.storage => Ok(rest),
        Some(_) => Err(CodecError::new(WHAT, "of another index")),
        None => Err(CodecError::new(WHAT, "wrong prefix")),
    }
}

fn type_of(table: &Table, index: &Index, at: usize) -> Result<SqlType, CodecError> {
    index.type_of(table, at).ok_or(CodecError::new(WHAT, "no such column"))
}

/// Decodes what an entry tells of its row into `row`, which has a place for every column of the table: the columns of
/// the index that are columns of the table, the primary key, the included columns. Returns the key of the row.
pub fn decode(table: &Table, index: &Index, (key, value): (&Key, &[u8]), row: &mut [Datum]) -> Result<Key, CodecError> {
    let entry = read_key(table, index, key)?;
    let row_key = row_of(table, index, &entry, value)?;
    let (reader, layout) = (Reader::new(value)?, Layout::of(table, index));
    if !table.has_hidden_key() {
        key::get_row_key(table, &row_key, row)?;
    }
    let mut place = |column: usize, id: u16| match (reader.get(id)?, table.columns.get(column), row.get_mut(column)) {
        (Some(bytes), Some(column), Some(place)) => {
            *place = stored::get_datum(column.ty, bytes)?;
            Ok(())
        }
        _ => Ok::<(), CodecError>(()),
    };
    for (at, column) in table.primary_key.iter().enumerate() {
        place(*column, layout.key_column(at))?;
    }
    for (at, column) in index.included.iter().enumerate() {
        place(*column, layout.included(at))?;
    }
    for (at, (column, value)) in index.columns.iter().zip(entry.values).enumerate() {
        let IndexedValue::Column(column) = column.value else { continue };
        let exact = reader.get(layout.column(at))?;
        let ty = type_of(table, index, at)?;
        if let Some(place) = row.get_mut(column) {
            *place = exact.map_or(Ok(value), |bytes| stored::get_datum(ty, bytes).map_err(CodecError::from))?;
        }
    }
    Ok(row_key)
}

//! The tables of one catalog version, and the errors of violated constraints.

use std::collections::HashMap;
use std::sync::Arc;

use kv::Key;
use kv::client::ScanRange;
use tso::Timestamp;
use txn::{Transaction, TxnError};

use super::descriptor;
use super::keys::{self, OwnerRecord, PUBLIC, VersionRecord};
use crate::codec::{self, CodecError};
use crate::error::{ConstraintFields, SqlError, SqlState, storage_error};
use crate::table::{Index, StorageId, Table, TableId, quote_identifier};
use pgtypes::timestamp::Now;
use pgtypes::{Datum, IoEnv, TimeZone, wire};

/// Records per page when a catalog is loaded.
const PAGE_ROWS: u32 = 256;

/// The catalog of one version.
#[derive(Clone, Debug)]
pub struct Catalog {
    /// Grows with every step of a schema change. After a transaction's own schema change, a number that no other
    /// catalog has.
    pub version: u64,
    by_name: HashMap<String, Arc<Table>>,
    /// The tables of indexes, by the names of the indexes. Tables and indexes share their names.
    by_index: HashMap<String, Arc<Table>>,
    by_id: HashMap<TableId, Arc<Table>>,
    /// The closed tables, with the transactions that close them.
    closed: HashMap<TableId, Timestamp>,
}

/// Whether a statement may use a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// It may.
    Open,
    /// Another transaction is about to drop or truncate it.
    Closed,
    /// It has changed or is gone.
    Changed,
}

impl Catalog {
    /// A catalog of these tables.
    pub fn new(version: u64, tables: impl IntoIterator<Item = Table>) -> Catalog {
        Catalog::of(version, tables.into_iter().map(Arc::new).collect(), HashMap::new())
    }

    fn of(version: u64, tables: Vec<Arc<Table>>, closed: HashMap<TableId, Timestamp>) -> Catalog {
        let by_name = tables.iter().map(|table| (table.name.clone(), table.clone())).collect();
        let indexes = tables.iter().flat_map(|table| index_names(table).map(|name| (name.to_owned(), table.clone())));
        let by_index = indexes.collect();
        let by_id = tables.into_iter().map(|table| (table.id, table)).collect();
        Catalog { version, by_name, by_index, by_id, closed }
    }

    /// Loads the catalog at a transaction's snapshot. The transaction has no schema changes of its own.
    pub async fn load(txn: &Transaction) -> Result<Catalog, SqlError> {
        let record = txn.get(&keys::version()).await.map_err(storage_error)?;
        let record = record.ok_or_else(|| CodecError::new("catalog", "not initialised"))?;
        Catalog::load_version(txn, VersionRecord::decode(&record)?.version, None).await
    }

    /// Loads the catalog of a version, which the caller has read in the same transaction. A table that is the same as
    /// in `previous` is shared with it.
    pub(super) async fn load_version(
        txn: &Transaction,
        version: u64,
        previous: Option<&Catalog>,
    ) -> Result<Catalog, SqlError> {
        let mut tables = Vec::new();
        for (_, value) in read_range(txn, keys::tables()).await? {
            let table = descriptor::decode(&value)?;
            let shared = previous.and_then(|previous| previous.by_id.get(&table.id)).filter(|known| ***known == table);
            tables.push(shared.cloned().unwrap_or_else(|| Arc::new(table)));
        }
        let mut closed = HashMap::new();
        for (key, value) in read_range(txn, keys::all_closed()).await? {
            let table = keys::closed_table(&key).ok_or_else(|| CodecError::new("closed table", "malformed key"))?;
            closed.insert(table, OwnerRecord::decode(&value)?.owner);
        }
        Ok(Catalog::of(version, tables, closed))
    }

    /// A table of the schema `public` by its folded name.
    pub fn table(&self, name: &str) -> Option<&Arc<Table>> {
        self.by_name.get(name)
    }

    /// The table that has an index of this folded name.
    pub fn table_of_index(&self, name: &str) -> Option<&Arc<Table>> {
        self.by_index.get(name)
    }

    /// The table of this folded name, or the one that has an index of it.
    pub(crate) fn relation(&self, name: &str) -> Option<&Arc<Table>> {
        self.by_name.get(name).or_else(|| self.by_index.get(name))
    }

    /// Whether a table has a constraint of this name.
    pub(crate) fn has_constraint(&self, name: &str) -> bool {
        self.by_index.get(name).is_some_and(|table| table.index(name).is_none_or(|index| index.is_constraint))
    }

    /// All tables, by their ids.
    pub(crate) fn tables(&self) -> Vec<Arc<Table>> {
        let mut tables: Vec<Arc<Table>> = self.by_id.values().cloned().collect();
        tables.sort_unstable_by_key(|table| table.id);
        tables
    }

    /// All tables.
    pub(crate) fn all_tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.by_id.values()
    }

    /// The table of an id.
    pub(crate) fn by_id(&self, id: TableId) -> Option<&Arc<Table>> {
        self.by_id.get(&id)
    }

    /// The table of a storage.
    pub(super) fn by_storage(&self, storage: StorageId) -> Option<&Arc<Table>> {
        self.by_id.values().find(|table| table.storage == storage)
    }

    /// The index of a storage, and its table.
    fn index_of_storage(&self, storage: StorageId) -> Option<(&Arc<Table>, &Index)> {
        let found = |table: &'_ Arc<Table>| table.indexes.iter().position(|index| index.storage == storage);
        let (table, at) = self.by_id.values().find_map(|table| Some((table, found(table)?)))?;
        Some((table, table.indexes.get(at)?))
    }

    /// Whether no table is closed.
    pub(crate) fn is_open(&self) -> bool {
        self.closed.is_empty()
    }

    /// The transaction that closes a table, if it is closed.
    pub(super) fn closed_by(&self, table: TableId) -> Option<Timestamp> {
        self.closed.get(&table).copied()
    }

    /// Whether `owner` may use a table that was planned with this descriptor.
    pub(super) fn access(&self, table: &Arc<Table>, owner: Timestamp) -> Access {
        match self.by_id.get(&table.id) {
            Some(now) if Arc::ptr_eq(now, table) || **now == **table => match self.closed_by(table.id) {
                Some(closing) if closing != owner => Access::Closed,
                _ => Access::Open,
            },
            _ => Access::Changed,
        }
    }

    /// This catalog with one table added or replaced, under another version.
    pub(super) fn with(&self, version: u64, table: Table) -> Catalog {
        let mut changed = self.without(version, table.id);
        let table = Arc::new(table);
        changed.by_index.extend(index_names(&table).map(|name| (name.to_owned(), table.clone())));
        changed.by_name.insert(table.name.clone(), table.clone());
        changed.by_id.insert(table.id, table);
        changed
    }

    /// This catalog without a table, under another version.
    pub(super) fn without(&self, version: u64, table: TableId) -> Catalog {
        let mut changed = Catalog { version, ..self.clone() };
        changed.by_id.remove(&table);
        changed.by_name.retain(|_, known| known.id != table);
        changed.by_index.retain(|_, known| known.id != table);
        changed
    }
}

/// The names of a table's indexes, that of its primary key included.
pub(super) fn index_names(table: &Table) -> impl Iterator<Item = &str> {
    let names = std::iter::once(&table.key_name).chain(table.indexes.iter().map(|index| &index.name));
    names.map(String::as_str).filter(|name| !name.is_empty())
}

/// The records of a range at a transaction's snapshot.
pub(super) async fn read_range(
    txn: &Transaction,
    (start, end): (kv::Key, kv::Key),
) -> Result<Vec<(kv::Key, bytes::Bytes)>, SqlError> {
    let mut range = ScanRange { start, end, reverse: false };
    let mut records = Vec::new();
    loop {
        let page = txn.scan(&range, PAGE_ROWS).await.map_err(storage_error)?;
        records.extend(page.pairs);
        match page.resume {
            Some(resume) if resume > range.start => range.start = resume,
            Some(_) => return Err(CodecError::new("page of the catalog", "does not advance").into()),
            None => return Ok(records),
        }
    }
}

/// The SQL error of a violated uniqueness: 23505 with PostgreSQL's wording and fields for a row key, 42P07 for a table
/// name taken by a concurrent transaction. `None` for other errors.
pub(crate) fn constraint_error(catalog: &Catalog, error: &TxnError, zone: &TimeZone) -> Option<SqlError> {
    let TxnError::AlreadyExists { key } = error else { return None };
    if let Some(name) = keys::name_of(key) {
        return Some(SqlError::new(SqlState::DUPLICATE_TABLE, format!("relation \"{name}\" already exists")));
    }
    let env = IoEnv { names: catalog, ..IoEnv::new(zone, Now(0)) };
    if let Some((storage, _)) = codec::index::split_entry_key(key.as_bytes()) {
        let (table, index) = catalog.index_of_storage(storage)?;
        let entry = codec::index::read_key(table, index, key).ok()?;
        return Some(duplicate_entry(table, index, &entry.values, &env));
    }
    let (storage, _) = codec::key::split_row_key(key.as_bytes())?;
    let table = catalog.by_storage(storage)?;
    let mut row = vec![Datum::Null; table.columns.len()];
    codec::key::get_row_key(table, key, &mut row).ok()?;
    Some(duplicate_key(table, &row, &env))
}

/// The name of the table of a row, and its key in the words of PostgreSQL's messages, `(id)=(5)`. `None` if the key is
/// of no row of a table of this catalog. A row without a primary key has an empty text.
pub(crate) fn row_name(catalog: &Catalog, key: &Key, zone: &TimeZone) -> Option<(String, String)> {
    let env = IoEnv { names: catalog, ..IoEnv::new(zone, Now(0)) };
    if let Some((storage, _)) = codec::index::split_entry_key(key.as_bytes()) {
        let (table, index) = catalog.index_of_storage(storage)?;
        let entry = codec::index::read_key(table, index, key).ok()?;
        return Some((table.name.clone(), entry_text(table, index, &entry.values, &env)));
    }
    let (storage, _) = codec::key::split_row_key(key.as_bytes())?;
    let table = catalog.by_storage(storage)?;
    if table.has_hidden_key() {
        return Some((table.name.clone(), String::new()));
    }
    let mut row = vec![Datum::Null; table.columns.len()];
    codec::key::get_row_key(table, key, &mut row).ok()?;
    Some((table.name.clone(), key_text(table, &row, &env)))
}

/// The primary key of a row: `(a, b)=(1, 2)`.
fn key_text(table: &Table, row: &[Datum], env: &IoEnv<'_>) -> String {
    let names: Vec<String> = table.primary_key.iter().map(|at| quote_identifier(&table.columns[*at].name)).collect();
    let shown = |value: &Datum, ty| wire::show(value, ty, env);
    let values: Vec<String> = table.primary_key.iter().map(|at| shown(&row[*at], table.columns[*at].ty)).collect();
    format!("({})=({})", names.join(", "), values.join(", "))
}

/// The columns of an index entry: `(a, lower(b))=(1, x)`.
fn entry_text(table: &Table, index: &Index, values: &[Datum], env: &IoEnv<'_>) -> String {
    let shown = values.iter().enumerate().map(|(at, value)| match index.type_of(table, at) {
        Some(_) | None if value.is_null() => "null".to_owned(),
        Some(ty) => wire::show(value, ty, env),
        None => String::new(),
    });
    format!("({})=({})", index.column_names(table).join(", "), shown.collect::<Vec<_>>().join(", "))
}

/// 23505 for a duplicate primary key.
pub(crate) fn duplicate_key(table: &Table, row: &[Datum], env: &IoEnv<'_>) -> SqlError {
    duplicate(table, &table.key_name, &key_text(table, row, env))
}

/// 23505 for a duplicate entry of a unique index with these columns.
pub(crate) fn duplicate_entry(table: &Table, index: &Index, values: &[Datum], env: &IoEnv<'_>) -> SqlError {
    duplicate(table, &index.name, &entry_text(table, index, values, env))
}

fn duplicate(table: &Table, constraint: &str, key: &str) -> SqlError {
    let message = format!("duplicate key value violates unique constraint \"{constraint}\"");
    let detail = format!("Key {key} already exists.");
    unique_violation(table, constraint, message, detail)
}

/// 23505 for rows that have the same primary key, or the same entry in an index (`Some`), when it is built.
pub(crate) fn duplicate_rows(
    table: &Table,
    (name, index): (&str, Option<&Index>),
    values: &[Datum],
    env: &IoEnv<'_>,
) -> SqlError {
    let key = match index {
        Some(index) => entry_text(table, index, values, env),
        None => key_text(table, values, env),
    };
    let message = format!("could not create unique index \"{name}\"");
    unique_violation(table, name, message, format!("Key {key} is duplicated."))
}

fn unique_violation(table: &Table, constraint: &str, message: String, detail: String) -> SqlError {
    let mut error = SqlError::new(SqlState::UNIQUE_VIOLATION, message).detail(detail);
    error.constraint = Some(Box::new(ConstraintFields {
        schema: PUBLIC.to_owned(),
        table: table.name.clone(),
        column: None,
        constraint: Some(constraint.to_owned()),
    }));
    error
}

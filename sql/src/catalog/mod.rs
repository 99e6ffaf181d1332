//! The catalog: table descriptors stored in the system region, and the version that validates cached plans.
//!
//! Records live under the prefix `m` ([`keys`]). [`descriptor`] encodes a table's record. A schema change is an
//! ordinary transaction that also raises the version record ([`ddl`]): two changes conflict, and a version names one
//! state of the catalog. A transaction reads the version at its snapshot and takes the rest from the node's
//! [`CatalogCache`], or loads it at that snapshot ([`cache`]).
//!
//! A transaction may write to a table while another one drops or truncates it. Its rows then lie under a storage id
//! that is never used again, and are removed with that storage ([`reclaim`]). The session refuses such a commit with
//! 40001 if its node knows of the other transaction ([`CatalogCache::was_dropped_since`]). A commit at the same moment,
//! on a node that has not heard of it, succeeds. To rule that out, every write would have to leave a mark that the
//! schema change meets. A check that a fence key does not exist leaves none, and its exclusive latch would serialise
//! the writers of a table. Schema changes that wait for all nodes will close the gap. CREATE has none: the table does
//! not exist before the commit.
//!
//! # Layers
//!
//! 1. `keys`: keys and small records
//! 2. `descriptor`, `reclaim`: table records, removal of dropped rows
//! 3. `cache`: catalogs by version
//! 4. `ddl`: schema changes

pub mod cache;
pub mod ddl;
pub mod descriptor;
pub mod keys;
pub mod reclaim;

use std::collections::HashMap;
use std::sync::Arc;

use txn::TxnError;

pub use cache::CatalogCache;

use crate::codec;
use crate::error::{ConstraintFields, SqlError, SqlState};
use crate::table::{StorageId, Table};
use crate::types::{Datum, TimeZone, output};

/// The only schema.
pub const PUBLIC: &str = "public";

/// The catalog at one snapshot, cached per version. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Catalog {
    /// Grows with every committed schema change. Plans of another version are bound again. After a transaction's own
    /// schema change, a number that no other catalog has.
    pub version: u64,
    tables: Arc<HashMap<String, Arc<Table>>>,
}

impl Catalog {
    /// A catalog of these tables.
    pub fn new(version: u64, tables: impl IntoIterator<Item = Table>) -> Catalog {
        let tables = tables.into_iter().map(|table| (table.name.clone(), Arc::new(table))).collect();
        Catalog { version, tables: Arc::new(tables) }
    }

    /// A table of the schema `public` by its folded name.
    pub fn table(&self, name: &str) -> Option<&Arc<Table>> {
        self.tables.get(name)
    }

    /// All tables, unordered.
    pub fn tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.tables.values()
    }

    fn by_storage(&self, storage: StorageId) -> Option<&Arc<Table>> {
        self.tables.values().find(|table| table.storage == storage)
    }
}

/// The SQL error of a violated uniqueness: 23505 with PostgreSQL's wording and fields for a row key, 42P07 for a table
/// name taken by a concurrent transaction. `None` for other errors.
pub fn constraint_error(catalog: &Catalog, error: &TxnError, zone: &TimeZone) -> Option<SqlError> {
    let TxnError::AlreadyExists { key } = error else { return None };
    if let Some(name) = keys::name_of(key) {
        return Some(SqlError::new(SqlState::DUPLICATE_TABLE, format!("relation \"{name}\" already exists")));
    }
    let (storage, _) = codec::key::split_row_key(key.as_bytes())?;
    let table = catalog.by_storage(storage)?;
    let mut row = vec![Datum::Null; table.columns.len()];
    codec::key::get_row_key(table, key, &mut row).ok()?;
    Some(duplicate_key(table, &row, zone))
}

/// 23505 for a duplicate primary key.
pub fn duplicate_key(table: &Table, row: &[Datum], zone: &TimeZone) -> SqlError {
    let message = format!("duplicate key value violates unique constraint \"{}\"", table.key_name);
    let names: Vec<String> = table.primary_key.iter().map(|at| quote(&table.columns[*at].name)).collect();
    let values: Vec<String> = table.primary_key.iter().map(|at| output::to_text(&row[*at], zone)).collect();
    let detail = format!("Key ({})=({}) already exists.", names.join(", "), values.join(", "));
    let mut error = SqlError::new(SqlState::UNIQUE_VIOLATION, message).detail(detail);
    error.constraint = Some(Box::new(ConstraintFields {
        schema: PUBLIC.to_owned(),
        table: table.name.clone(),
        column: None,
        constraint: Some(table.key_name.clone()),
    }));
    error
}

/// An identifier as SQL text: quoted unless it is plain lower case.
pub fn quote(name: &str) -> String {
    let plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    if plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

/// The SQL error of a transaction error that no constraint explains.
pub fn storage_error(error: TxnError) -> SqlError {
    let code = match &error {
        TxnError::Conflict(_) => SqlState::SERIALIZATION_FAILURE,
        TxnError::AlreadyExists { .. } => SqlState::UNIQUE_VIOLATION,
        TxnError::Undetermined => SqlState::TRANSACTION_RESOLUTION_UNKNOWN,
        TxnError::Unavailable(_) => SqlState::CANNOT_CONNECT_NOW,
        TxnError::TooLarge(_) => SqlState::PROGRAM_LIMIT_EXCEEDED,
        TxnError::Internal(_) => SqlState::INTERNAL_ERROR,
    };
    SqlError::new(code, error.to_string())
}

#[cfg(test)]
mod tests;

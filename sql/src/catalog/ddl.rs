//! Schema changes: a transaction's writes to the catalog's records.
//!
//! Every change raises the version record. So the second of two concurrent changes fails at its commit, and a version
//! names one state.

use kv::Key;
use txn::Transaction;

use super::cache::CatalogCache;
use super::descriptor;
use super::keys::{self, VersionRecord};
use crate::codec::CodecError;
use crate::error::{SqlError, SqlState, storage_error};
use crate::table::{Column, StorageId, Table, TableId};

/// A table to create, checked by the binder.
#[derive(Clone, Debug, PartialEq)]
pub struct NewTable {
    /// The folded name.
    pub name: String,
    /// The columns, with ids from 1.
    pub columns: Vec<Column>,
    /// Positions of the primary key columns. Empty for a hidden row id.
    pub primary_key: Vec<usize>,
    /// The name of the primary key constraint. Empty without one.
    pub key_name: String,
}

/// Creates a table. The caller has checked the name in the transaction's snapshot. If another transaction takes it
/// meanwhile, the commit fails.
pub async fn create_table(cache: &CatalogCache, txn: &mut Transaction, new: &NewTable) -> Result<(), SqlError> {
    let id = raise_version(cache, txn, 1).await?;
    let table = Table {
        id: TableId(id),
        storage: StorageId(id),
        name: new.name.clone(),
        columns: new.columns.clone(),
        primary_key: new.primary_key.clone(),
        key_name: new.key_name.clone(),
    };
    table.check().map_err(|why| SqlError::new(SqlState::INTERNAL_ERROR, format!("bad table descriptor: {why}")))?;
    txn.insert(keys::name(&table.name), keys::encode_id(id)).map_err(storage_error)?;
    txn.put(keys::table(table.id), descriptor::encode(&table)).map_err(storage_error)
}

/// Drops a table. Its rows become unreachable and are reclaimed later.
pub async fn drop_table(cache: &CatalogCache, txn: &mut Transaction, table: &Table) -> Result<(), SqlError> {
    raise_version(cache, txn, 0).await?;
    txn.delete(keys::name(&table.name)).map_err(storage_error)?;
    txn.delete(keys::table(table.id)).map_err(storage_error)?;
    mark_dropped(txn, table.storage)
}

/// Truncates a table by giving it a new storage id.
pub async fn truncate(cache: &CatalogCache, txn: &mut Transaction, table: &Table) -> Result<(), SqlError> {
    let id = raise_version(cache, txn, 1).await?;
    mark_dropped(txn, table.storage)?;
    let emptied = Table { storage: StorageId(id), ..table.clone() };
    txn.put(keys::table(table.id), descriptor::encode(&emptied)).map_err(storage_error)
}

fn mark_dropped(txn: &mut Transaction, storage: StorageId) -> Result<(), SqlError> {
    let at = keys::encode_dropped(txn.start_ts());
    txn.put(keys::dropped(storage), at).map_err(storage_error)
}

/// Raises the catalog version and allocates `ids` consecutive ids. Returns the first.
async fn raise_version(cache: &CatalogCache, txn: &mut Transaction, ids: u32) -> Result<u32, SqlError> {
    let start_ts = txn.start_ts();
    cache.forget_version(start_ts);
    let record = VersionRecord::decode(&required(txn, &keys::version()).await?)?;
    let raised = VersionRecord { version: record.version + 1, writer: start_ts };
    txn.put(keys::version(), raised.encode()).map_err(storage_error)?;
    let first = keys::decode_id(&required(txn, &keys::next_id()).await?)?;
    if ids > 0 {
        let exhausted = || SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "table ids are used up");
        let next = first.checked_add(ids).ok_or_else(exhausted)?;
        txn.put(keys::next_id(), keys::encode_id(next)).map_err(storage_error)?;
    }
    Ok(first)
}

async fn required(txn: &Transaction, key: &Key) -> Result<bytes::Bytes, SqlError> {
    match txn.get(key).await.map_err(storage_error)? {
        Some(value) => Ok(value),
        None => Err(CodecError::new("catalog", "not initialised").into()),
    }
}

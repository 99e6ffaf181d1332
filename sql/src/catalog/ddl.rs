//! Schema changes: what the user's transaction writes. See [`super::steps`] for what happens around it.
//!
//! A transaction sees its own schema changes and nobody else does, until the change is published. So the change keeps a
//! catalog of its own ([`SchemaChange::catalog`]), derived in memory.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use kv::api::LockMode;
use tso::Timestamp;
use txn::{Database, Transaction, TxnError};

use super::descriptor;
use super::keys::{self, OwnerRecord};
use super::lease::NodeCatalog;
use super::object_record;
use super::snapshot::{Catalog, Sight, index_names};
use super::steps::doomed;
use super::temporary::{AtCommit, SessionSchemas};
use super::uses::{DoomWatch, LiveTransaction};
use crate::clock;
use crate::codec::CodecError;
use crate::error::{SqlError, SqlState, storage_error};
use crate::object::{FIRST_SCHEMA, Object, ObjectId, SchemaId, Sequence};
use crate::table::{
    Check, Column, ConstraintId, ForeignKey, Index, IndexId, StorageId, Table, TableId, drawing_default,
};
use pgtypes::SqlType;

/// A table to create, checked by the binder.
#[derive(Clone, Debug, PartialEq)]
pub struct NewTable {
    /// Its schema.
    pub schema: SchemaId,
    /// The folded name.
    pub name: String,
    /// The columns, with ids from 1.
    pub columns: Vec<Column>,
    /// Positions of the primary key columns. Empty for a hidden row id.
    pub primary_key: Vec<usize>,
    /// The name of the primary key constraint. Empty without one.
    pub key_name: String,
    /// The secondary indexes. Their ids and storages do not count.
    pub indexes: Vec<Index>,
    /// The CHECK constraints. Their ids do not count.
    pub checks: Vec<Check>,
    /// The foreign keys. Their ids do not count; one to the table itself has no parent.
    pub foreign_keys: Vec<ForeignKey>,
    /// The sequences of columns, with the positions of these. Their ids and owners do not count.
    pub sequences: Vec<(usize, Sequence)>,
    /// What a commit does to it, if it is temporary.
    pub at_commit: Option<AtCommit>,
}

/// The schema change of one transaction. If it is dropped before [`SchemaChange::publish`] has returned, a task
/// finishes it.
pub struct SchemaChange {
    pub(super) node: NodeCatalog,
    /// The schemas of the session that makes it.
    pub(super) session: Option<Arc<SessionSchemas>>,
    owner: Timestamp,
    watch: DoomWatch,
    /// The catalog with the changes of this transaction.
    catalog: Arc<Catalog>,
    /// Tables that no other transaction can use: it has closed or created them.
    own: HashSet<TableId>,
    /// Storages that no other transaction has ever used. One that was undone may be among them.
    fresh: HashSet<StorageId>,
    /// Whether it has written anything.
    changed: bool,
    /// Whether the store may hold marks of it, or its committed transaction.
    unfinished: bool,
}

/// The state of a schema change, at a savepoint of its transaction. What it has closed stays closed.
#[derive(Debug)]
pub(crate) struct SchemaSavepoint {
    catalog: Arc<Catalog>,
    own: HashSet<TableId>,
    changed: bool,
}

impl SchemaSavepoint {
    /// That of a transaction that had changed nothing.
    pub(crate) fn unchanged(catalog: &Arc<Catalog>) -> SchemaSavepoint {
        SchemaSavepoint { catalog: catalog.clone(), own: HashSet::new(), changed: false }
    }
}

impl SchemaChange {
    /// The schema change of a transaction that plans with `catalog`.
    pub(crate) fn new(
        node: NodeCatalog,
        txn: &Transaction,
        live: &LiveTransaction,
        catalog: Arc<Catalog>,
    ) -> SchemaChange {
        let owner = txn.start_ts();
        node.state.changes.lock().insert(owner);
        let (watch, own, fresh) = (live.watch(), HashSet::new(), HashSet::new());
        SchemaChange { node, session: None, owner, watch, catalog, own, fresh, changed: false, unfinished: false }
    }

    /// Of a session, which may have temporary relations, and sees the catalog from its database.
    pub(crate) fn of_session(mut self, schemas: Arc<SessionSchemas>, sight: &Sight) -> SchemaChange {
        self.session = Some(schemas);
        self.catalog = Arc::new(self.catalog.seen_from(sight));
        self
    }

    /// The catalog with the changes of this transaction.
    pub(crate) fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// The version of the catalog with the changes of this transaction.
    pub(super) fn version(&self) -> u64 {
        self.node.own_version()
    }

    /// Replaces the catalog with the changes of this transaction.
    pub(super) fn replace_catalog(&mut self, catalog: Arc<Catalog>) {
        self.catalog = catalog;
    }

    /// Whether it has changed anything.
    pub(crate) fn is_changed(&self) -> bool {
        self.changed
    }

    /// Whether no other transaction can use the table.
    pub(crate) fn owns(&self, table: &Table) -> bool {
        self.own.contains(&table.id)
    }

    /// The state, for a savepoint.
    pub(crate) fn savepoint(&self) -> SchemaSavepoint {
        SchemaSavepoint { catalog: self.catalog.clone(), own: self.own.clone(), changed: self.changed }
    }

    /// Goes back to a savepoint.
    pub(crate) fn rollback_to(&mut self, saved: &SchemaSavepoint) {
        (self.catalog, self.own, self.changed) = (saved.catalog.clone(), saved.own.clone(), saved.changed);
    }

    /// Called before the transaction commits. From here on its outcome decides.
    pub(crate) fn begin_commit(&mut self) {
        self.unfinished |= self.changed;
    }

    /// Publishes the change after the commit of its transaction. Returns when every node has adopted it.
    pub(crate) async fn publish(mut self) -> Result<(), SqlError> {
        // Also a change that was undone has closed its tables.
        if self.changed || self.unfinished {
            self.node.publish(self.owner).await?;
        }
        self.unfinished = false;
        Ok(())
    }

    /// Creates a table. The binder has checked the name. If another transaction takes it meanwhile, the commit fails.
    pub(crate) async fn create_table(&mut self, txn: &mut Transaction, new: &NewTable) -> Result<TableId, SqlError> {
        let id = self.node.allocate_id().await?;
        let key_id = if new.primary_key.is_empty() { 0 } else { self.node.allocate_id().await? };
        let mut table = Table {
            id: TableId(id),
            storage: StorageId(id),
            schema: new.schema,
            name: new.name.clone(),
            columns: new.columns.clone(),
            primary_key: new.primary_key.clone(),
            key_name: new.key_name.clone(),
            key_id: IndexId(key_id),
            indexes: Vec::with_capacity(new.indexes.len()),
            checks: new.checks.clone(),
            foreign_keys: new.foreign_keys.clone(),
            referenced_by: Vec::new(),
            last_column: Table::last_of(&new.columns),
        };
        for index in &new.indexes {
            table.indexes.push(self.new_index(index).await?);
        }
        self.number_constraints(&mut table).await?;
        let mut sequences = Vec::with_capacity(new.sequences.len());
        for (at, sequence) in &new.sequences {
            let sequence_id = ObjectId(self.node.allocate_id().await?);
            let Some(column) = table.columns.get_mut(*at) else { continue };
            column.default = Some(drawing_default(sequence_id));
            let owner = Some((ObjectId(id), column.id.0));
            sequences.push(Sequence { id: sequence_id, schema: new.schema, owner, ..sequence.clone() });
        }
        check(&table)?;
        keep_schema(txn, table.schema)?;
        txn.insert(keys::name(table.schema, &table.name), keys::encode_id(id)).map_err(storage_error)?;
        put_index_names(txn, None, &table)?;
        self.fresh.insert(table.storage);
        self.put_table(txn, table)?;
        for sequence in sequences {
            self.create_object(txn, Object::Sequence(sequence))?;
        }
        Ok(TableId(id))
    }

    /// Gives ids to the checks and foreign keys that have none.
    pub(crate) async fn number_constraints(&self, table: &mut Table) -> Result<(), SqlError> {
        for check in table.checks.iter_mut().filter(|check| check.id == ConstraintId(0)) {
            check.id = ConstraintId(self.node.allocate_id().await?);
        }
        table.checks.sort_by(|a, b| a.name.cmp(&b.name));
        for key in table.foreign_keys.iter_mut().filter(|key| key.id == ConstraintId(0)) {
            key.id = ConstraintId(self.node.allocate_id().await?);
            if key.parent == TableId(0) {
                key.parent = table.id;
            }
        }
        Ok(())
    }

    /// The index with an id and a storage of its own.
    pub(crate) async fn new_index(&self, index: &Index) -> Result<Index, SqlError> {
        let id = self.node.allocate_id().await?;
        Ok(Index { id: IndexId(id), storage: StorageId(id), ..index.clone() })
    }

    /// A storage that nothing uses, or the id of an index.
    pub(crate) async fn allocate_id(&self) -> Result<u32, SqlError> {
        self.node.allocate_id().await
    }

    /// Prepares a change of a table that others must not use meanwhile: returns when no other transaction can commit to
    /// it any more, and none reads it.
    pub(crate) async fn exclude(&mut self, txn: &Transaction, table: &Arc<Table>) -> Result<(), SqlError> {
        self.close(txn, std::slice::from_ref(table)).await
    }

    /// Whether no other transaction can have written to the table's storage.
    pub(crate) fn is_fresh(&self, table: &Table) -> bool {
        self.fresh.contains(&table.storage)
    }

    /// Begins to fill storages in transactions of their own, before this one commits. It has closed their table.
    /// If it does not commit, they are removed later ([`super::reclaim`]).
    pub(crate) async fn begin_build(&self, storages: &[StorageId]) -> Result<Database, SqlError> {
        let db = self.node.state.db.clone();
        let mut txn = db.begin().await?;
        for storage in storages {
            let owner = keys::encode_dropped(self.owner);
            txn.put(keys::building(*storage), owner).map_err(storage_error)?;
        }
        txn.commit().await?;
        Ok(db)
    }

    /// The database, for transactions that only read tables from which others are excluded.
    pub(crate) fn database(&self) -> Database {
        self.node.state.db.clone()
    }

    /// Replaces a table's descriptor. The caller has excluded others from the table. Storages that it does not use any
    /// more are removed later.
    pub(crate) fn alter_table(&mut self, txn: &mut Transaction, old: &Table, new: Table) -> Result<(), SqlError> {
        check(&new)?;
        if old.schema != new.schema {
            keep_schema(txn, new.schema)?;
        }
        if (old.schema, &old.name) != (new.schema, &new.name) {
            txn.delete(keys::name(old.schema, &old.name)).map_err(storage_error)?;
            take_name(txn, (new.schema, &new.name), new.id.0)?;
        }
        put_index_names(txn, Some(old), &new)?;
        for storage in old.storages().filter(|storage| new.storages().all(|kept| kept != *storage)) {
            mark_dropped(txn, storage)?;
        }
        if self.is_fresh(old) {
            self.fresh.insert(new.storage);
        }
        self.forget_parts(txn, old, Some(&new))?;
        self.put_table(txn, new)
    }

    /// Drops tables. Their rows become unreachable and are reclaimed later.
    pub(crate) async fn drop_tables(&mut self, txn: &mut Transaction, tables: &[Arc<Table>]) -> Result<(), SqlError> {
        self.close(txn, tables).await?;
        for table in tables {
            txn.delete(keys::name(table.schema, &table.name)).map_err(storage_error)?;
            for name in index_names(table) {
                txn.delete(keys::name(table.schema, name)).map_err(storage_error)?;
            }
            txn.delete(keys::table(table.id)).map_err(storage_error)?;
            txn.delete(keys::statistics(table.id)).map_err(storage_error)?;
            table.storages().try_for_each(|storage| mark_dropped(txn, storage))?;
            self.catalog = Arc::new(self.catalog.without(self.node.own_version(), table.id));
            self.forget_parts(txn, table, None)?;
        }
        if tables.is_empty() { Ok(()) } else { self.record(txn) }
    }

    /// Creates an object, which has an id of its own. The binder has checked the name. If another transaction takes it
    /// meanwhile, or drops its schema, the commit fails.
    pub(crate) fn create_object(&mut self, txn: &mut Transaction, object: Object) -> Result<(), SqlError> {
        let object = with_epoch(object);
        let id = object.id();
        if let Some(schema) = object.schema() {
            keep_schema(txn, schema)?;
        }
        self.keep_used(txn, &object)?;
        txn.insert(keys::object_name(&object), keys::encode_id(id.0)).map_err(storage_error)?;
        txn.insert(keys::object(id), object_bytes(&object)?).map_err(storage_error)?;
        self.catalog = Arc::new(self.catalog.with_object(self.node.own_version(), object));
        self.record(txn)
    }

    /// Replaces an object by another form of it.
    pub(crate) fn alter_object(&mut self, txn: &mut Transaction, old: &Object, new: Object) -> Result<(), SqlError> {
        let new = with_epoch(new);
        self.keep_used(txn, &new)?;
        if let Some(schema) = new.schema().filter(|schema| old.schema() != Some(*schema)) {
            keep_schema(txn, schema)?;
        }
        let (before, after) = (keys::object_name(old), keys::object_name(&new));
        if before != after {
            txn.delete(before).map_err(storage_error)?;
            txn.insert(after, keys::encode_id(new.id().0)).map_err(storage_error)?;
        }
        txn.put(keys::object(new.id()), object_bytes(&new)?).map_err(storage_error)?;
        self.forget_checks(txn, old, Some(&new))?;
        self.catalog = Arc::new(self.catalog.with_object(self.node.own_version(), new));
        self.record(txn)
    }

    /// Drops an object. The caller has dropped what depends on it.
    pub(crate) fn drop_object(&mut self, txn: &mut Transaction, object: &Object) -> Result<(), SqlError> {
        txn.delete(keys::object_name(object)).map_err(storage_error)?;
        txn.delete(keys::object(object.id())).map_err(storage_error)?;
        if let Object::Sequence(sequence) = object {
            // Sessions may draw meanwhile, and past epochs have left records.
            mark_dropped(txn, StorageId(sequence.id.0))?;
        }
        self.catalog = Arc::new(self.catalog.without_object(self.node.own_version(), object.id()));
        self.forget(txn, object.id())?;
        self.forget_checks(txn, object, None)?;
        self.record(txn)
    }

    /// Truncates tables by giving them new storage ids.
    pub(crate) async fn truncate(&mut self, txn: &mut Transaction, tables: &[Arc<Table>]) -> Result<(), SqlError> {
        self.close(txn, tables).await?;
        for table in tables {
            let storage = StorageId(self.node.allocate_id().await?);
            let mut emptied = Table { storage, ..(**table).clone() };
            for index in &mut emptied.indexes {
                index.storage = StorageId(self.node.allocate_id().await?);
            }
            table.storages().try_for_each(|storage| mark_dropped(txn, storage))?;
            self.fresh.insert(storage);
            self.put_table(txn, emptied)?;
        }
        Ok(())
    }

    /// Closes the tables that other transactions can use. Fails with a conflict if one has changed since the plan.
    async fn close(&mut self, txn: &Transaction, tables: &[Arc<Table>]) -> Result<(), SqlError> {
        let shared: Vec<Arc<Table>> = tables.iter().filter(|table| !self.owns(table)).cloned().collect();
        if shared.is_empty() {
            return Ok(());
        }
        self.unfinished = true;
        self.node.close(self.owner, &shared, &self.watch).await?;
        for table in &shared {
            self.node.count_read();
            // A change after start_ts makes the commit fail; this finds one from before that the plan has not seen.
            let stored = txn.get(&keys::table(table.id)).await.map_err(storage_error)?;
            if stored != Some(descriptor::encode(table)) {
                return Err(doomed());
            }
            self.own.insert(table.id);
        }
        Ok(())
    }

    fn put_table(&mut self, txn: &mut Transaction, table: Table) -> Result<(), SqlError> {
        keep_types(txn, &table)?;
        txn.put(keys::table(table.id), table_bytes(&table)?).map_err(storage_error)?;
        self.own.insert(table.id);
        self.catalog = Arc::new(self.catalog.with(self.node.own_version(), table));
        self.record(txn)
    }

    /// The transaction fails if another one drops or changes what a view reads, or drops what a domain is made of.
    fn keep_used(&self, txn: &mut Transaction, object: &Object) -> Result<(), SqlError> {
        if let Object::Domain(domain) = object {
            return keep_type(txn, domain.parent, domain.base);
        }
        let Object::View(view) = object else { return Ok(()) };
        for used in &view.uses {
            let key = match self.catalog.object(*used) {
                Some(_) => keys::object(*used),
                None => keys::table(TableId(used.0)),
            };
            txn.share(key, LockMode::KeyShare).map_err(storage_error)?;
        }
        Ok(())
    }

    /// Writes the publication record.
    pub(super) fn record(&mut self, txn: &mut Transaction) -> Result<(), SqlError> {
        let Some(lease) = self.node.current() else { return Err(doomed()) };
        let record = OwnerRecord { owner: self.owner, node: self.node.state.node, term: lease.term };
        txn.put(keys::publication(self.owner), record.encode()).map_err(storage_error)?;
        self.changed = true;
        Ok(())
    }
}

impl Drop for SchemaChange {
    fn drop(&mut self) {
        let (node, owner) = (self.node.clone(), self.owner);
        let runtime = tokio::runtime::Handle::try_current().ok().filter(|_| self.unfinished);
        let Some(runtime) = runtime else {
            // Outside of a runtime the sweep of a node finishes it.
            node.state.changes.lock().remove(&owner);
            return;
        };
        runtime.spawn(async move {
            if let Err(error) = node.publish(owner).await {
                tracing::warn!("a schema change is left to the sweep: {error}");
            }
            node.state.changes.lock().remove(&owner);
        });
    }
}

/// The record of an object. One that no node could read again is not written: it would make the whole catalog
/// unreadable.
fn object_bytes(object: &Object) -> Result<Bytes, SqlError> {
    let bytes = object_record::encode(object);
    object_record::decode(&bytes).map_err(unreadable)?;
    Ok(bytes)
}

/// The same of a table.
fn table_bytes(table: &Table) -> Result<Bytes, SqlError> {
    let bytes = descriptor::encode(table);
    descriptor::decode(&bytes).map_err(unreadable)?;
    Ok(bytes)
}

fn unreadable(error: CodecError) -> SqlError {
    SqlError::internal(&format!("a record of the catalog that cannot be read again: {error}"))
}

/// An object as it is stored: the epoch of a RESTART has a number.
fn with_epoch(mut object: Object) -> Object {
    if let Object::Sequence(sequence) = &mut object {
        sequence.number_epoch(clock::random_bytes);
    }
    object
}

fn check(table: &Table) -> Result<(), SqlError> {
    table.check().map_err(|why| SqlError::new(SqlState::INTERNAL_ERROR, format!("bad table descriptor: {why}")))
}

/// Takes the names of a table's new indexes, and gives up those of the ones that are gone.
fn put_index_names(txn: &mut Transaction, old: Option<&Table>, new: &Table) -> Result<(), SqlError> {
    let before: Vec<&str> = old.map_or_else(Vec::new, |old| index_names(old).collect());
    let schema = old.map_or(new.schema, |old| old.schema);
    let has_moved = schema != new.schema;
    for gone in before.iter().filter(|name| has_moved || index_names(new).all(|kept| kept != **name)) {
        txn.delete(keys::name(schema, gone)).map_err(storage_error)?;
    }
    let id_of = |table: &Table, name: &str| table.index(name).map_or(table.key_id, |index| index.id).0;
    for name in index_names(new) {
        let id = id_of(new, name);
        if has_moved || !before.contains(&name) {
            take_name(txn, (new.schema, name), id)?;
        } else if old.is_some_and(|old| id_of(old, name) != id) {
            // One has gone, and another one has got its name.
            txn.put(keys::name(new.schema, name), keys::encode_id(id)).map_err(storage_error)?;
        }
    }
    Ok(())
}

/// The transaction fails if another one drops the schema.
///
/// Not so for the first schema, because a shared lock rules out an asynchronous commit. A relation that is created
/// while another transaction drops that schema goes with it: nobody sees it any more, but its records stay.
fn keep_schema(txn: &mut Transaction, schema: SchemaId) -> Result<(), SqlError> {
    if schema == FIRST_SCHEMA {
        return Ok(());
    }
    txn.share(keys::object(ObjectId(schema.0)), LockMode::KeyShare).map_err(storage_error)
}

/// The transaction fails if another one drops a type of the table's columns.
fn keep_types(txn: &mut Transaction, table: &Table) -> Result<(), SqlError> {
    for column in &table.columns {
        keep_type(txn, column.domain, column.ty)?;
    }
    Ok(())
}

/// The transaction fails if another one drops the domain, or the enum.
fn keep_type(txn: &mut Transaction, domain: Option<ObjectId>, ty: SqlType) -> Result<(), SqlError> {
    let element = ty.scalar();
    match domain.or_else(|| element.is_enum().then_some(ObjectId(element.oid.0))) {
        Some(id) => txn.share(keys::object(id), LockMode::KeyShare).map_err(storage_error),
        None => Ok(()),
    }
}

/// Takes the name of a relation. 42P07 if this transaction has given it already.
fn take_name(txn: &mut Transaction, (schema, name): (SchemaId, &str), id: u32) -> Result<(), SqlError> {
    txn.insert(keys::name(schema, name), keys::encode_id(id)).map_err(|error| match error {
        TxnError::AlreadyExists { .. } => {
            SqlError::new(SqlState::DUPLICATE_TABLE, format!("relation \"{name}\" already exists"))
        }
        error => storage_error(error),
    })
}

fn mark_dropped(txn: &mut Transaction, storage: StorageId) -> Result<(), SqlError> {
    let at = keys::encode_dropped(txn.start_ts());
    txn.put(keys::dropped(storage), at).map_err(storage_error)
}

//! The life of a schema of temporary relations ([`super::temporary`]): it is created with the first of them, and
//! dropped by a sweep when its session has ended.

use std::sync::Arc;

use txn::Transaction;

use super::ddl::SchemaChange;
use super::keys;
use super::lease::NodeCatalog;
use super::temporary::AtCommit;
use crate::error::{SqlError, storage_error};
use crate::object::{Object, ObjectId, Schema, SchemaId};
use crate::table::{Table, TableId};

/// The prefix of the names of these schemas.
const PREFIX: &str = "pg_temp_";

impl SchemaChange {
    /// The schema of the session's temporary relations. It is created if there is none.
    pub(crate) async fn temporary_schema(&mut self, txn: &mut Transaction) -> Result<SchemaId, SqlError> {
        let schemas = self.session.clone().ok_or_else(|| SqlError::internal("temporary relations of no session"))?;
        if let Some(known) = schemas.current(self.catalog()) {
            return Ok(known);
        }
        let id = SchemaId(self.allocate_id().await?);
        // Before it can be committed, so that no sweep takes it for one of a session that has ended.
        schemas.begin(id);
        let database = self.catalog().sight().database;
        let (name, session_node) = (format!("{PREFIX}{}", id.0), Some(self.node.state.node.0));
        self.create_object(txn, Object::Schema(Schema { id, database, name, session_node }))?;
        Ok(id)
    }

    /// A commit is to empty or drop a new table.
    pub(crate) fn at_commit(&self, table: TableId, what: AtCommit) {
        if let Some(schemas) = &self.session {
            schemas.at_commit.lock().push((table, what));
        }
    }
}

impl NodeCatalog {
    /// Drops the temporary relations of sessions that have ended.
    pub(super) async fn sweep_temporary(&self) {
        let Some(lease) = self.current() else { return };
        for schema in lease.catalog.temporary_schemas() {
            let is_over = match schema.session_node {
                Some(node) if node == self.state.node.0 => Ok(!self.state.temporary.lock().contains(&schema.id)),
                Some(node) => self.is_gone(node).await,
                None => Ok(false),
            };
            let dropped = match is_over {
                Ok(true) => self.drop_temporary(schema.id).await,
                Ok(false) => Ok(()),
                Err(error) => Err(error),
            };
            if let Err(error) = dropped {
                tracing::debug!(schema = schema.name, "temporary relations of a session that has ended stay: {error}");
            }
        }
    }

    /// Whether a node has no lease record: it has given it back, or it was not heard of for long.
    async fn is_gone(&self, node: u64) -> Result<bool, SqlError> {
        let txn = self.state.db.begin().await?;
        let record = txn.get(&keys::lease(keys::NodeId(node))).await.map_err(storage_error)?;
        Ok(record.is_none())
    }

    async fn drop_temporary(&self, schema: SchemaId) -> Result<(), SqlError> {
        let (lease, mut txn) = self.begin().await?;
        let slot = self.register();
        let live = slot.begin(txn.start_ts());
        let catalog = lease.catalog.clone();
        let tables: Vec<Arc<Table>> = catalog.all_tables().filter(|table| table.schema == schema).cloned().collect();
        let objects: Vec<Arc<Object>> = catalog.objects_of(schema);
        let Some(own) = catalog.object(ObjectId(schema.0)).cloned() else { return Ok(()) };
        let mut change = SchemaChange::new(self.clone(), &txn, &live, catalog);
        change.drop_tables(&mut txn, &tables).await?;
        for object in objects.iter().chain([&own]) {
            change.drop_object(&mut txn, object)?;
        }
        change.begin_commit();
        let committed = txn.commit().await;
        drop(live);
        committed?;
        change.publish().await
    }
}

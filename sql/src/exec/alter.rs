//! CREATE TABLE, DROP TABLE, CREATE INDEX, DROP INDEX and ALTER TABLE: from the descriptor that a table has to the one
//! that it is to have.
//!
//! 1. Others are excluded from the table, and from those whose rows foreign keys are checked against: the change waits
//!    until no other transaction can write to them, and none begins to use them
//!    ([`crate::catalog::SchemaChange::exclude`]).
//! 2. What the new descriptor has and the old one has not is filled ([`super::build`]). Nothing refers to it yet. The
//!    rows are checked for new constraints, and for those over columns of other types.
//! 3. The descriptor is written with the transaction. Its commit makes all of it visible at once.
//!
//! A table lists the tables that refer to it. So a foreign key changes the descriptors of both, and a plan for one of
//! them is not valid any more when it comes or goes.

use std::sync::Arc;

use txn::Transaction;

use super::build;
use super::context::ExecContext;
use crate::catalog::SchemaChange;
use crate::catalog::ddl::NewTable;
use crate::error::SqlError;
use crate::object::{NEW_TEMPORARY, Object, ObjectId, Sequence};
use crate::plan::Alteration;
use crate::table::{ForeignKey, IndexId, StorageId, Table, TableId, drawing_default};

/// Creates a table.
pub(super) async fn create_table(
    new: &NewTable,
    schema: &mut SchemaChange,
    txn: &mut Transaction,
) -> Result<TableId, SqlError> {
    for parent in parents_of(&new.foreign_keys) {
        exclude(parent, schema, txn).await?;
    }
    let placed;
    let new = if new.schema == NEW_TEMPORARY {
        let schema = schema.temporary_schema(txn).await?;
        placed = NewTable { schema, ..new.clone() };
        &placed
    } else {
        new
    };
    let id = schema.create_table(txn, new).await?;
    if let Some(what) = new.at_commit {
        schema.at_commit(id, what);
    }
    relink((id, &[]), &new.foreign_keys, schema, txn).await?;
    Ok(id)
}

/// Drops tables.
pub(super) async fn drop_tables(
    tables: &[Arc<Table>],
    schema: &mut SchemaChange,
    txn: &mut Transaction,
) -> Result<(), SqlError> {
    schema.drop_tables(txn, tables).await?;
    for table in tables {
        relink((table.id, &table.foreign_keys), &[], schema, txn).await?;
    }
    Ok(())
}

/// Changes a table and the sequences of its columns.
pub(super) async fn run(
    change: &Alteration,
    schema: &mut SchemaChange,
    ctx: &mut ExecContext<'_>,
) -> Result<(), SqlError> {
    if !change.is_of_sequences() {
        change_table(change, schema, ctx).await?;
    }
    for (old, new) in &change.altered {
        check_sequence(old, new, ctx).await?;
        schema.alter_object(ctx.txn, &Object::Sequence(old.clone()), Object::Sequence(new.clone()))?;
    }
    Ok(())
}

async fn change_table(
    change: &Alteration,
    schema: &mut SchemaChange,
    ctx: &mut ExecContext<'_>,
) -> Result<(), SqlError> {
    schema.exclude(ctx.txn, &change.old).await?;
    let mut new = change.new.clone();
    let validates = &change.validates;
    let checked: Vec<ForeignKey> =
        new.foreign_keys.iter().filter(|key| validates.foreign_keys.contains(&key.name)).cloned().collect();
    for parent in parents_of(&checked) {
        exclude(parent, schema, ctx.txn).await?;
    }
    for (child, _) in &validates.referring {
        exclude(*child, schema, ctx.txn).await?;
    }
    if change.rewrites {
        new.storage = StorageId(schema.allocate_id().await?);
        if !new.has_hidden_key() && new.key_id == IndexId(0) {
            new.key_id = IndexId(schema.allocate_id().await?);
        }
    }
    for index in &mut new.indexes {
        if index.id == IndexId(0) {
            *index = schema.new_index(index).await?;
        } else if change.rewrites {
            // Entries lead to the keys of rows.
            index.storage = StorageId(schema.allocate_id().await?);
        }
    }
    schema.number_constraints(&mut new).await?;
    let mut sequences = Vec::with_capacity(change.sequences.len());
    for (column, sequence) in &change.sequences {
        let id = ObjectId(schema.allocate_id().await?);
        if let Some(column) = new.columns.iter_mut().find(|known| known.id == *column) {
            column.default = Some(drawing_default(id));
        }
        sequences.push(Sequence { id, owner: Some((ObjectId(new.id.0), column.0)), ..sequence.clone() });
    }
    let rows = build::fill(change, &new, schema, ctx).await?;
    let keys = new.foreign_keys.clone();
    schema.alter_table(ctx.txn, &change.old, new)?;
    relink((change.old.id, &change.old.foreign_keys), &keys, schema, ctx.txn).await?;
    for sequence in sequences {
        let is_new = change.old.columns.iter().all(|known| Some(known.id.0) != sequence.owner.map(|(_, id)| id));
        let restart = if is_new { build::drawn(&sequence, rows)? } else { sequence.restart };
        schema.create_object(ctx.txn, Object::Sequence(Sequence { restart, ..sequence }))?;
    }
    change.dropped.iter().try_for_each(|object| schema.drop_object(ctx.txn, object))
}

/// The tables that foreign keys refer to, each once.
fn parents_of(keys: &[ForeignKey]) -> Vec<TableId> {
    let mut parents: Vec<TableId> = keys.iter().map(|key| key.parent).filter(|id| *id != TableId(0)).collect();
    parents.sort_unstable();
    parents.dedup();
    parents
}

/// Excludes others from a table.
async fn exclude(table: TableId, schema: &mut SchemaChange, txn: &Transaction) -> Result<(), SqlError> {
    match schema.catalog().by_id(table).cloned() {
        Some(table) => schema.exclude(txn, &table).await,
        None => Ok(()),
    }
}

/// Says in other tables whether a table refers to them, after its foreign keys have changed.
async fn relink(
    (child, before): (TableId, &[ForeignKey]),
    after: &[ForeignKey],
    schema: &mut SchemaChange,
    txn: &mut Transaction,
) -> Result<(), SqlError> {
    let (before, after) = (parents_of(before), parents_of(after));
    let gone = before.iter().filter(|id| !after.contains(id)).map(|id| (*id, false));
    let come = after.iter().filter(|id| !before.contains(id)).map(|id| (*id, true));
    for (id, refers) in gone.chain(come).collect::<Vec<_>>() {
        let Some(parent) = schema.catalog().by_id(id).cloned().filter(|_| id != child) else { continue };
        schema.exclude(txn, &parent).await?;
        let mut new = (*parent).clone();
        new.referenced_by.retain(|known| *known != child);
        if refers {
            new.referenced_by.push(child);
            new.referenced_by.sort_unstable();
        }
        schema.alter_table(txn, &parent, new)?;
    }
    Ok(())
}

/// 22023 if a sequence without RESTART goes on from a value beyond its new limits.
pub(super) async fn check_sequence(old: &Sequence, new: &Sequence, ctx: &ExecContext<'_>) -> Result<(), SqlError> {
    if new.epoch != old.epoch || (new.min, new.max) == (old.min, old.max) {
        return Ok(());
    }
    let sequences = ctx.session.sequences();
    let sequences = sequences.ok_or_else(|| SqlError::internal("a sequence without a session"))?;
    new.check_value("RESTART", sequences.values(old).await?.last)
}

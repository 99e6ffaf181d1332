//! CREATE INDEX, DROP INDEX and ALTER TABLE: from the descriptor that a table has to the one that it is to have.
//!
//! 1. Others are excluded from the table: the change waits until no other transaction can write to it, and none begins
//!    to use it ([`crate::catalog::SchemaChange::exclude`]).
//! 2. What the new descriptor has and the old one has not is filled ([`super::build`]). Nothing refers to it yet.
//! 3. The descriptor is written with the transaction. Its commit makes all of it visible at once.

use pgtypes::IoEnv;
use txn::Transaction;

use super::build;
use crate::catalog::SchemaChange;
use crate::error::SqlError;
use crate::plan::Alteration;
use crate::table::{IndexId, StorageId};

/// Changes a table.
pub(super) async fn run(
    change: &Alteration,
    schema: &mut SchemaChange,
    txn: &mut Transaction,
    io: &IoEnv<'_>,
) -> Result<(), SqlError> {
    schema.exclude(txn, &change.old).await?;
    let mut new = change.new.clone();
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
    build::fill(&change.old, &new, schema, txn, io).await?;
    schema.alter_table(txn, &change.old, new)
}

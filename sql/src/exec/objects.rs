//! CREATE and ALTER of objects that are no tables.

use std::sync::Arc;

use txn::Transaction;

use super::alter::{check_sequence, run};
use super::context::ExecContext;
use crate::catalog::{Catalog, SchemaChange};
use crate::error::SqlError;
use crate::object::{
    Database, DatabaseId, Domain, EnumType, NEW_TEMPORARY, Object, ObjectId, PUBLIC, Schema, SchemaId,
};
use crate::plan::{Alteration, NewObject};
use crate::table::{ColumnId, ConstraintId, Table};

/// Creates an object, under an id of its own.
pub(super) async fn create(new: &NewObject, schema: &mut SchemaChange, txn: &mut Transaction) -> Result<(), SqlError> {
    let id = schema.allocate_id().await?;
    match new {
        NewObject::Schema(database, name) => {
            let object = Schema { id: SchemaId(id), database: *database, name: name.clone(), session_node: None };
            schema.create_object(txn, Object::Schema(object))
        }
        NewObject::Database(name) => {
            let database = DatabaseId(id);
            schema.create_object(txn, Object::Database(Database { id: database, name: name.clone() }))?;
            let id = SchemaId(schema.allocate_id().await?);
            schema.create_object(
                txn,
                Object::Schema(Schema { id, database, name: PUBLIC.to_owned(), session_node: None }),
            )
        }
        NewObject::Relation(object) => {
            let object = match object.schema() {
                Some(NEW_TEMPORARY) => {
                    let temporary = schema.temporary_schema(txn).await?;
                    object.in_schema(temporary)
                }
                _ => object.clone(),
            };
            // The odd OID after that of a type is that of its array type.
            let is_type_id = id.is_multiple_of(2) || !object.is_type();
            let id = ObjectId(if is_type_id { id } else { even_id(schema).await? });
            let object = match object {
                Object::Enum(ty) => {
                    let mut label_oids = Vec::with_capacity(ty.labels.len());
                    for _ in &ty.labels {
                        label_oids.push(schema.allocate_id().await?);
                    }
                    Object::Enum(EnumType { id, label_oids, ..ty })
                }
                Object::Domain(domain) => Object::Domain(numbered(Domain { id, ..domain }, schema).await?),
                other => other.with_id(id),
            };
            schema.create_object(txn, object)
        }
    }
}

/// A domain whose checks all have ids.
async fn numbered(mut domain: Domain, schema: &SchemaChange) -> Result<Domain, SqlError> {
    for check in domain.checks.iter_mut().filter(|check| check.id == ConstraintId(0)) {
        check.id = ConstraintId(schema.allocate_id().await?);
    }
    Ok(domain)
}

async fn even_id(schema: &SchemaChange) -> Result<u32, SqlError> {
    loop {
        let id = schema.allocate_id().await?;
        if id.is_multiple_of(2) {
            return Ok(id);
        }
    }
}

/// Replaces an object by another form of it.
///
/// A node that does not know a label yet could not show the rows of another one that does. So others are excluded from
/// the tables of an enum until all nodes have its new form.
pub(super) async fn alter(
    old: &Object,
    new: &Object,
    schema: &mut SchemaChange,
    ctx: &mut ExecContext<'_>,
) -> Result<(), SqlError> {
    if let (Object::Domain(old), Object::Domain(new)) = (old, new) {
        return alter_domain(old, new, schema, ctx).await;
    }
    if let (Object::Sequence(old), Object::Sequence(new)) = (old, new) {
        check_sequence(old, new, ctx).await?;
    }
    let Object::Enum(ty) = new else { return schema.alter_object(ctx.txn, old, new.clone()) };
    let mut ty = ty.clone();
    for oid in ty.label_oids.iter_mut().filter(|oid| **oid == 0) {
        *oid = schema.allocate_id().await?;
    }
    for table in schema.catalog().tables() {
        if table.columns.iter().any(|column| column.ty.scalar() == ty.ty()) {
            schema.exclude(ctx.txn, &table).await?;
        }
    }
    schema.alter_object(ctx.txn, old, Object::Enum(ty))
}

/// Replaces a domain. If it has got a constraint, others are excluded from the tables with columns of it, or of a
/// domain that is made of it, and their rows are checked.
async fn alter_domain(
    old: &Domain,
    new: &Domain,
    schema: &mut SchemaChange,
    ctx: &mut ExecContext<'_>,
) -> Result<(), SqlError> {
    let is_known = |id: ConstraintId| old.checks.iter().any(|check| check.id == id);
    let is_stricter = (new.not_null && !old.not_null) || !new.checks.iter().all(|check| is_known(check.id));
    let new = numbered(new.clone(), schema).await?;
    schema.alter_object(ctx.txn, &Object::Domain(old.clone()), Object::Domain(new))?;
    if !is_stricter {
        return Ok(());
    }
    let catalog = Arc::clone(schema.catalog());
    for table in catalog.tables() {
        let columns = columns_of(&table, old.id, &catalog);
        if !columns.is_empty() {
            let mut change = Alteration::of(table);
            change.validates.domains = columns;
            run(&change, schema, ctx).await?;
        }
    }
    Ok(())
}

/// The columns of a domain, and of those that are made of it.
fn columns_of(table: &Table, domain: ObjectId, catalog: &Catalog) -> Vec<ColumnId> {
    let is_of = |id: ObjectId| catalog.line_of_domains(id).iter().any(|found| found.id == domain);
    table.columns.iter().filter(|column| column.domain.is_some_and(is_of)).map(|column| column.id).collect()
}

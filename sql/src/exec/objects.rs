//! CREATE and ALTER of objects that are no tables.

use txn::Transaction;

use crate::catalog::SchemaChange;
use crate::error::SqlError;
use crate::object::{Database, DatabaseId, EnumType, NEW_TEMPORARY, Object, ObjectId, PUBLIC, Schema, SchemaId};
use crate::plan::NewObject;

/// Creates an object, under an id of its own.
pub(super) async fn create(new: &NewObject, schema: &mut SchemaChange, txn: &mut Transaction) -> Result<(), SqlError> {
    if let NewObject::Comment(object, part, text) = new {
        return schema.comment(txn, (*object, *part), text.as_deref());
    }
    let id = schema.allocate_id().await?;
    match new {
        NewObject::Comment(..) => Err(SqlError::internal("a comment has no id")),
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
        NewObject::Relation(Object::Enum(ty)) => {
            // The odd OID after it is that of its array type.
            let id = if id.is_multiple_of(2) { id } else { even_id(schema).await? };
            let mut label_oids = Vec::with_capacity(ty.labels.len());
            for _ in &ty.labels {
                label_oids.push(schema.allocate_id().await?);
            }
            schema.create_object(txn, Object::Enum(EnumType { id: ObjectId(id), label_oids, ..ty.clone() }))
        }
        NewObject::Relation(object) => {
            let object = match object.schema() {
                Some(NEW_TEMPORARY) => {
                    let temporary = schema.temporary_schema(txn, schema.catalog().sight().database).await?;
                    object.in_schema(temporary)
                }
                _ => object.clone(),
            };
            schema.create_object(txn, object.with_id(ObjectId(id)))
        }
    }
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
    txn: &mut Transaction,
) -> Result<(), SqlError> {
    let Object::Enum(ty) = new else { return schema.alter_object(txn, old, new.clone()) };
    let mut ty = ty.clone();
    for oid in ty.label_oids.iter_mut().filter(|oid| **oid == 0) {
        *oid = schema.allocate_id().await?;
    }
    for table in schema.catalog().tables() {
        if table.columns.iter().any(|column| column.ty.element().unwrap_or(column.ty) == ty.ty()) {
            schema.exclude(txn, &table).await?;
        }
    }
    schema.alter_object(txn, old, Object::Enum(ty))
}

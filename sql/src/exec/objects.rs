//! CREATE of objects that are no tables.

use txn::Transaction;

use crate::catalog::SchemaChange;
use crate::error::SqlError;
use crate::object::{Database, DatabaseId, NEW_TEMPORARY, Object, ObjectId, PUBLIC, Schema, SchemaId};
use crate::plan::NewObject;

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
                    let temporary = schema.temporary_schema(txn, schema.catalog().sight().database).await?;
                    object.in_schema(temporary)
                }
                _ => object.clone(),
            };
            schema.create_object(txn, object.with_id(ObjectId(id)))
        }
    }
}

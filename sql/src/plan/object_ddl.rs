//! CREATE and DROP of schemas and databases, and DROP of relations.

use sqlparser::ast::{AlterSchema, AlterSchemaOperation, ObjectName, SchemaName, Spanned};

use super::binder::Binder;
use super::drops::Dropped;
use super::index_ddl::hint_to_drop;
use super::names::fold_ident;
use super::node::{Body, Drops, NewObject, Notice};
use crate::catalog::Relation;
use crate::error::{SqlError, SqlState};
use crate::object::{Object, ObjectId, Schema};

/// The schemas of the system.
const SYSTEM: [&str; 3] = ["pg_catalog", "information_schema", "pg_toast"];

impl Binder<'_> {
    /// Binds CREATE SCHEMA. AUTHORIZATION names a role, of which there are none but the session's.
    pub(super) fn create_schema(&mut self, name: &SchemaName, if_not_exists: bool) -> Result<Body, SqlError> {
        const TAG: &str = "CREATE SCHEMA";
        let name = match name {
            SchemaName::Simple(name) | SchemaName::NamedAuthorization(name, _) => self.single_name(name)?,
            SchemaName::UnnamedAuthorization(role) => fold_ident(role),
        };
        self.check_schema_name(&name)?;
        if self.is_schema(&name) || SYSTEM.contains(&name.as_str()) {
            let message = format!("schema \"{name}\" already exists");
            if !if_not_exists {
                return Err(SqlError::new(SqlState::DUPLICATE_SCHEMA, message));
            }
            let message = format!("{message}, skipping");
            self.notices.push(Notice { code: SqlState::DUPLICATE_SCHEMA, message, is_warning: false });
            return Ok(Body::CreateObject(TAG, None));
        }
        let database = self.catalog.sight().database;
        Ok(Body::CreateObject(TAG, Some(NewObject::Schema(database, name))))
    }

    /// Binds ALTER SCHEMA ... RENAME TO. OWNER TO has no effect: there are no roles.
    pub(super) fn alter_schema(&mut self, alter: &AlterSchema) -> Result<Body, SqlError> {
        const TAG: &str = "ALTER SCHEMA";
        let name = self.single_name(&alter.name)?;
        let Some(schema) = self.catalog.schema(&name).cloned() else {
            let message = format!("schema \"{name}\" does not exist");
            return Err(SqlError::new(SqlState::INVALID_SCHEMA_NAME, message));
        };
        let new = match alter.operations.as_slice() {
            [AlterSchemaOperation::Rename { name }] => self.single_name(name)?,
            [AlterSchemaOperation::OwnerTo { .. }] => return Ok(Body::Nothing(TAG)),
            _ => return Err(self.unsupported("this form of ALTER SCHEMA is", alter.name.span().start)),
        };
        self.check_schema_name(&new)?;
        if self.is_schema(&new) || SYSTEM.contains(&new.as_str()) {
            return Err(SqlError::new(SqlState::DUPLICATE_SCHEMA, format!("schema \"{new}\" already exists")));
        }
        let new = Schema { name: new, ..schema.clone() };
        let mut objects = self.views_of_schema(&schema, &new)?;
        objects.insert(0, (Object::Schema(schema), Object::Schema(new)));
        Ok(Body::AlterObjects(TAG, objects, Vec::new()))
    }

    /// 42939 for a name of a system schema.
    fn check_schema_name(&self, name: &str) -> Result<(), SqlError> {
        if !name.starts_with("pg_") {
            return Ok(());
        }
        let error = SqlError::new(SqlState::RESERVED_NAME, format!("unacceptable schema name \"{name}\""));
        Err(error.detail("The prefix \"pg_\" is reserved for system schemas."))
    }

    /// Binds DROP SCHEMA.
    pub(super) fn drop_schemas(
        &mut self,
        names: &[ObjectName],
        if_exists: bool,
        cascade: bool,
    ) -> Result<Body, SqlError> {
        let mut roots = Vec::new();
        for name in names {
            let name = self.single_name(name)?;
            if SYSTEM.contains(&name.as_str()) {
                let message = format!("cannot drop schema {name} because it is required by the database system");
                return Err(SqlError::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, message));
            }
            let found = self.catalog.schema(&name).and_then(|schema| self.catalog.object(ObjectId(schema.id.0)));
            match found {
                Some(schema) => roots.push(Dropped::Object(schema.clone())),
                None => self.missing(SqlState::INVALID_SCHEMA_NAME, &format!("schema \"{name}\""), if_exists)?,
            }
        }
        Ok(Body::Drop("DROP SCHEMA", self.drops(roots, cascade)?))
    }

    /// Binds DROP TABLE, DROP VIEW or DROP SEQUENCE.
    pub(super) fn drop_relations(
        &mut self,
        kind: &'static str,
        names: &[ObjectName],
        (if_exists, cascade): (bool, bool),
    ) -> Result<Body, SqlError> {
        let mut roots = Vec::new();
        for name in names {
            let Some((found, last)) = self.find_relation(name)? else {
                let parts = self.name_parts(name)?;
                if let Some(system) = self.of_system(&parts) {
                    self.check_changeable(&system.table)?;
                }
                if let [schema, _] = parts.as_slice()
                    && !self.is_schema(schema)
                {
                    self.missing(SqlState::INVALID_SCHEMA_NAME, &format!("schema \"{schema}\""), if_exists)?;
                    continue;
                }
                self.missing(SqlState::UNDEFINED_TABLE, &format!("{kind} \"{}\"", parts.join(".")), if_exists)?;
                continue;
            };
            let root = match &found {
                Relation::Table(table) => ("table", Dropped::Table(table.clone())),
                Relation::Object(object) => (object.kind(), Dropped::Object(object.clone())),
                Relation::Index(table) => ("index", Dropped::Table(table.clone())),
            };
            if root.0 != kind {
                let message = format!("\"{last}\" is not a {kind}");
                return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message).hint(hint_to_drop(&found)));
            }
            roots.push(root.1);
        }
        let tag = match kind {
            "view" => "DROP VIEW",
            "sequence" => "DROP SEQUENCE",
            _ => "DROP TABLE",
        };
        Ok(Body::Drop(tag, self.drops(roots, cascade)?))
    }

    /// Binds CREATE DATABASE.
    pub(super) fn create_database(&mut self, name: &ObjectName) -> Result<Body, SqlError> {
        let name = self.single_name(name)?;
        if self.catalog.database(&name).is_some() {
            let message = format!("database \"{name}\" already exists");
            return Err(SqlError::new(SqlState::DUPLICATE_DATABASE, message));
        }
        Ok(Body::CreateObject("CREATE DATABASE", Some(NewObject::Database(name))))
    }

    /// Binds DROP DATABASE, with all that is in it.
    pub(super) fn drop_database(&mut self, names: &[ObjectName], if_exists: bool) -> Result<Body, SqlError> {
        let mut drops = Drops::default();
        for name in names {
            let name = self.single_name(name)?;
            let Some(database) = self.catalog.database(&name).map(|database| database.id) else {
                self.missing(SqlState::INVALID_CATALOG_NAME, &format!("database \"{name}\""), if_exists)?;
                continue;
            };
            if database == self.catalog.sight().database {
                return Err(SqlError::new(SqlState::OBJECT_IN_USE, "cannot drop the currently open database"));
            }
            let (tables, objects) = self.catalog.content_of(database);
            drops.tables.extend(tables);
            drops.objects.extend(objects);
        }
        Ok(Body::Drop("DROP DATABASE", drops))
    }

    /// What a DROP says of an object that does not exist: an error, or a notice with IF EXISTS.
    pub(super) fn missing(&mut self, code: SqlState, what: &str, if_exists: bool) -> Result<(), SqlError> {
        let message = format!("{what} does not exist");
        if !if_exists {
            return Err(SqlError::new(code, message));
        }
        let message = format!("{message}, skipping");
        self.notices.push(Notice { code: SqlState::SUCCESSFUL_COMPLETION, message, is_warning: false });
        Ok(())
    }

    /// The folded name of an object that belongs to no schema.
    fn single_name(&self, name: &ObjectName) -> Result<String, SqlError> {
        if let Some(ident) = name.0.last().and_then(|part| part.as_ident()) {
            self.check_new_name(ident)?;
        }
        let mut parts = self.name_parts(name)?;
        match (parts.pop(), parts.is_empty()) {
            (Some(name), true) => Ok(name),
            _ => {
                let at = name.span().start;
                let found = self.statement.text.source(name.span());
                Err(self.error(SqlState::SYNTAX_ERROR, format!("syntax error at or near \"{found}\""), at))
            }
        }
    }
}

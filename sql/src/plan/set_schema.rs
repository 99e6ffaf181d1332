//! ALTER ... SET SCHEMA: a table moves with its indexes and the sequences of its columns. ALTER ... OWNER TO, which
//! finds the object alike.
//!
//! Stored texts may name what moves. What they would not find any more is refused.

use std::sync::Arc;

use sqlparser::ast::{AlterTable, Ident, ObjectName};

use super::binder::Binder;
use super::names::fold_ident;
use super::node::{Alteration, Body};
use crate::catalog::{Catalog, OWN_NAME, Relation};
use crate::error::{SqlError, SqlState};
use crate::object::{Object, ObjectId, SchemaId, Sequence};
use crate::parse::NO_LOCATION;
use crate::table::Table;

const TABLE: &str = "ALTER TABLE";
const VIEW: &str = "ALTER VIEW";
const SEQUENCE: &str = "ALTER SEQUENCE";
const INDEX: &str = "ALTER INDEX";
const TYPE: &str = "ALTER TYPE";
const DOMAIN: &str = "ALTER DOMAIN";

impl Binder<'_> {
    /// Binds ALTER TABLE, VIEW, SEQUENCE, TYPE or DOMAIN with SET SCHEMA.
    pub(super) fn set_schema(&mut self, alter: &AlterTable, to: &Ident) -> Result<Body, SqlError> {
        self.check_name(to)?;
        match self.statement.command().as_str() {
            TYPE => self.move_type(TYPE, &alter.name, to),
            DOMAIN => self.move_type(DOMAIN, &alter.name, to),
            VIEW => self.move_relation(VIEW, alter, to),
            SEQUENCE => self.move_relation(SEQUENCE, alter, to),
            _ => self.move_relation(TABLE, alter, to),
        }
    }

    /// Binds ALTER TABLE, VIEW, SEQUENCE, INDEX or TYPE with OWNER TO. It has no effect: there are no roles.
    pub(super) fn set_owner(&mut self, alter: &AlterTable) -> Result<Body, SqlError> {
        let tag = match self.statement.command().as_str() {
            TYPE => {
                self.type_to_alter(&alter.name)?;
                return Ok(Body::Nothing(TYPE));
            }
            VIEW => VIEW,
            SEQUENCE => SEQUENCE,
            INDEX => INDEX,
            _ => TABLE,
        };
        self.relation_to_alter(tag, alter)?;
        Ok(Body::Nothing(tag))
    }

    /// The relation of ALTER, and its name; `None` if it is missing and may be. 42809 if it is of another kind.
    fn relation_to_alter(
        &mut self,
        tag: &'static str,
        alter: &AlterTable,
    ) -> Result<Option<(Relation, String)>, SqlError> {
        let parts = self.name_parts(&alter.name)?;
        if let Some(system) = self.of_system(&parts) {
            self.check_changeable(&system.table)?;
        }
        let Some((found, name)) = self.find_relation(&alter.name)? else {
            self.missing_relation(&parts, alter.if_exists)?;
            return Ok(None);
        };
        let wanted = match (tag, &found) {
            (VIEW, Relation::Object(object)) if matches!(**object, Object::View(_)) => None,
            (SEQUENCE, Relation::Object(object)) if matches!(**object, Object::Sequence(_)) => None,
            (INDEX, Relation::Index(_)) => None,
            (VIEW, _) => Some("a view"),
            (SEQUENCE, _) => Some("a sequence"),
            (INDEX, _) => Some("an index"),
            _ => None,
        };
        match wanted {
            Some(wanted) => Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, format!("\"{name}\" is not {wanted}"))),
            None => Ok(Some((found, name))),
        }
    }

    fn move_relation(&mut self, tag: &'static str, alter: &AlterTable, to: &Ident) -> Result<Body, SqlError> {
        let Some((found, name)) = self.relation_to_alter(tag, alter)? else {
            return Ok(Body::AlterTables(tag, Vec::new()));
        };
        match found {
            Relation::Table(table) => self.move_table(tag, &table, to),
            Relation::Object(object) => self.move_object(tag, &object, to),
            Relation::Index(_) => {
                let message = format!("cannot change schema of index \"{name}\"");
                let error = SqlError::new(SqlState::WRONG_OBJECT_TYPE, message);
                Err(error.hint("Change the schema of the table instead."))
            }
        }
    }

    /// 42P01 or 3F000, or a notice with IF EXISTS.
    fn missing_relation(&mut self, parts: &[String], if_exists: bool) -> Result<(), SqlError> {
        match parts {
            [schema, _] if !if_exists && !self.is_schema(schema) => {
                self.missing(SqlState::INVALID_SCHEMA_NAME, &format!("schema \"{schema}\""), false)
            }
            [_, name] if if_exists => self.missing(SqlState::UNDEFINED_TABLE, &format!("relation \"{name}\""), true),
            _ => self.missing(SqlState::UNDEFINED_TABLE, &format!("relation \"{}\"", parts.join(".")), if_exists),
        }
    }

    fn move_table(&self, tag: &'static str, table: &Arc<Table>, to: &Ident) -> Result<Body, SqlError> {
        let schema = self.new_home(table.schema, to)?;
        if schema == table.schema {
            return Ok(Body::AlterTables(tag, Vec::new()));
        }
        self.check_free_in(schema, &table.name)?;
        self.check_free_type_in(schema, &table.name)?;
        let indexes = std::iter::once(&table.key_name).chain(table.indexes.iter().map(|index| &index.name));
        indexes.filter(|name| !name.is_empty()).try_for_each(|name| self.check_free_in(schema, name))?;
        let mut change = Alteration::of(Arc::clone(table));
        change.new.schema = schema;
        let mut catalog = self.catalog.with_table(change.new.clone());
        for object in self.catalog.relations() {
            let Object::Sequence(sequence) = &*object else { continue };
            if sequence.owner.is_some_and(|(owner, _)| owner == ObjectId(table.id.0)) {
                self.check_free_in(schema, &sequence.name)?;
                self.refuse_read_home("sequence", sequence.id)?;
                let moved = Sequence { schema, ..sequence.clone() };
                catalog = catalog.with_renamed(Object::Sequence(moved.clone()));
                change.altered.push((sequence.clone(), moved));
            }
        }
        self.refuse_read_home("table", ObjectId(table.id.0))?;
        self.refuse_named(&catalog)?;
        Ok(Body::AlterTables(tag, vec![change]))
    }

    fn move_object(&self, tag: &'static str, old: &Object, to: &Ident) -> Result<Body, SqlError> {
        if let Object::Sequence(Sequence { name, owner: Some((owner, _)), .. }) = old {
            let error =
                SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, "cannot move an owned sequence into another schema");
            let table = self.catalog.name_of_relation(owner.0).map_or("", |(_, name)| name);
            return Err(error.detail(format!("Sequence \"{name}\" is linked to table \"{table}\".")));
        }
        let Some(from) = old.schema() else { return Err(SqlError::internal("what moves is in no schema")) };
        let schema = self.new_home(from, to)?;
        if schema == from {
            return Ok(Body::AlterTables(tag, Vec::new()));
        }
        if !old.is_type() {
            self.check_free_in(schema, old.name())?;
        }
        if !matches!(old, Object::Sequence(_)) {
            self.check_free_type_in(schema, old.name())?;
        }
        let new = old.in_schema(schema);
        self.refuse_read_home(old.kind(), old.id())?;
        self.refuse_named(&self.catalog.with_renamed(new.clone()))?;
        Ok(Body::AlterObject(tag, old.clone(), new))
    }

    fn move_type(&self, tag: &'static str, name: &ObjectName, to: &Ident) -> Result<Body, SqlError> {
        if tag == DOMAIN {
            let domain = self.domain_named(name, false)?;
            return self.move_object(tag, &Object::Domain(domain), to);
        }
        match self.type_to_alter(name)? {
            Some(found) => self.move_object(tag, &found, to),
            None => Err(self.unsupported("a new schema for a type of the system is", NO_LOCATION)),
        }
    }

    /// The type of a name; `None` for one of the system. 42704 if there is none, 42809 if it is the rows of a table.
    fn type_to_alter(&self, name: &ObjectName) -> Result<Option<Arc<Object>>, SqlError> {
        let parts = self.type_parts(name)?;
        if let Some(found) = self.find_user_type(&parts) {
            return Ok(Some(found));
        }
        if self.system_type(&parts).is_some() {
            return Ok(None);
        }
        if let Some((Relation::Table(table), _)) = self.find_relation(name)? {
            let message = format!("{} is a table's row type", self.catalog.relation_text(table.schema, &table.name));
            return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message).hint("Use ALTER TABLE instead."));
        }
        let message = format!("type \"{}\" does not exist", parts.join("."));
        Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message))
    }

    /// The schema that something moves to. 3F000 if there is none, 0A000 if nothing moves there.
    fn new_home(&self, from: SchemaId, to: &Ident) -> Result<SchemaId, SqlError> {
        let name = fold_ident(to);
        let refuse = |message: &str| Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        let temporary = "cannot move objects into or out of temporary schemas";
        match name.as_str() {
            OWN_NAME => return refuse(temporary),
            "pg_toast" => return refuse("cannot move objects into or out of TOAST schema"),
            "pg_catalog" | "information_schema" => {
                return Err(self.unsupported("a move to a schema of the system is", NO_LOCATION));
            }
            _ => {}
        }
        let schema = self.schema_named(&name, NO_LOCATION)?;
        if self.is_temporary(from) || self.is_temporary(schema) { refuse(temporary) } else { Ok(schema) }
    }

    /// 42P07 if a schema has a relation of this name.
    fn check_free_in(&self, schema: SchemaId, name: &str) -> Result<(), SqlError> {
        if self.look_up(Some(schema), name).is_none() {
            return Ok(());
        }
        let message = format!("relation \"{name}\" already exists in schema \"{}\"", self.name_of_schema(schema));
        Err(SqlError::new(SqlState::DUPLICATE_TABLE, message))
    }

    /// 42710 if a schema has a type of this name.
    fn check_free_type_in(&self, schema: SchemaId, name: &str) -> Result<(), SqlError> {
        self.check_free_type(schema, name).map_err(|error| {
            let message = format!("{} in schema \"{}\"", error.message, self.name_of_schema(schema));
            SqlError { message, ..error }
        })
    }

    fn name_of_schema(&self, schema: SchemaId) -> &str {
        self.catalog.schema_by_id(schema).map_or("", |schema| &schema.name)
    }

    /// 0A000 if a view names what moves: the text of a view does not change.
    fn refuse_read_home(&self, what: &str, id: ObjectId) -> Result<(), SqlError> {
        let Some(view) = self.views_of(id).into_iter().next() else { return Ok(()) };
        let message = format!("a new schema for a {what} that a view names is not supported yet");
        let error = SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message);
        Err(error.detail(format!("The {} names it.", self.object_text(&view))))
    }

    /// 0A000 if a text of a table or of a domain has no meaning in the catalog after the move.
    fn refuse_named(&self, after: &Catalog) -> Result<(), SqlError> {
        let Some(named_by) = self.unbound(after, &[]) else { return Ok(()) };
        let message = "a new schema for what a default or a constraint names is not supported yet";
        Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message).detail(format!("The {named_by} names it.")))
    }
}

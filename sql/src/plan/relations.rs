//! Names of relations and types: which table, index, view, sequence or type a name means, and where new ones are
//! created.
//!
//! A name without a schema is looked up in the schemas of the search path, in order. Every look-up is noted: the plan
//! is valid as long as all of them lead to the same relations.

use std::sync::Arc;

use sqlparser::ast::{ObjectName, Spanned};
use sqlparser::tokenizer::Location;

use super::binder::Binder;
use super::node::Lookup;
use crate::catalog::{FIXED_TYPE, NamedType, OWN_NAME, Relation, fixed_id};
use crate::error::{SqlError, SqlState};
use crate::object::{NEW_TEMPORARY, Object, ObjectId, SchemaId};
use crate::system;
use crate::table::{Table, TableId};
use pgtypes::{Names, SqlType};

impl Binder<'_> {
    /// The relation of a folded name: in the schema, or in the first one of the search path that has it.
    pub(super) fn look_up(&self, schema: Option<SchemaId>, name: &str) -> Option<Relation> {
        if let (None, Some(only)) = (schema, &self.only) {
            // The view has chosen the schema when it was created.
            let mut path = self.catalog.sight().searched();
            let is_used = |schema: &SchemaId| {
                let found = self.catalog.relation_in(*schema, name);
                found.is_some_and(|found| only.contains(&ObjectId(found.oid(name))))
            };
            return path.find(is_used).and_then(|schema| self.look_up(Some(schema), name));
        }
        let found = match schema {
            Some(schema) => self.catalog.relation_in(schema, name),
            None => self.catalog.relation(None, name),
        };
        if let Some(found) = found {
            let id = ObjectId(found.oid(name));
            let mut uses = self.uses.borrow_mut();
            if !uses.contains(&id) {
                uses.push(id);
            }
        }
        let mut lookups = self.lookups.borrow_mut();
        if !lookups.iter().any(|lookup| !lookup.is_type && lookup.name == name && lookup.schema == schema) {
            lookups.push(Lookup { schema, name: name.to_owned(), is_type: false, found: found.cloned() });
        }
        found.cloned()
    }

    /// The user's type of a folded name.
    pub(super) fn find_type(&self, schema: Option<&str>, name: &str) -> Option<NamedType> {
        let fixed = if schema.is_none() { self.fixed_type(name) } else { None };
        fixed.or_else(|| self.catalog.find_type_by(schema, name, |schema, name| self.look_up_type(schema, name)))
    }

    /// The user's type of a folded name: in the schema, or in the first one of the search path that has it. A stored
    /// text may have been written with another search path: there the name is that of the only such type.
    pub(super) fn look_up_type(&self, schema: Option<SchemaId>, name: &str) -> Option<Arc<Object>> {
        let (mut schema, mut found) = (schema, self.catalog.user_type(schema, name));
        if self.is_stored && schema.is_none() && found.is_none() {
            found = self.catalog.schemas().find_map(|schema| self.catalog.user_type(Some(schema.id), name));
            // The text means this type as long as it is there, whatever the search path finds.
            schema = found.and_then(|found| found.schema());
        }
        self.note_type(schema, name, found);
        found.cloned()
    }

    /// The view that is created depends on the relation that a constant of type `regclass` names.
    pub(super) fn note_constant(&self, name: &str) {
        if self.rewrites.is_none() {
            return;
        }
        let Ok(oid) = self.catalog.find(SqlType::REGCLASS, name) else { return };
        let is_known = self.catalog.object(ObjectId(oid.0)).is_some() || self.catalog.by_id(TableId(oid.0)).is_some();
        let mut uses = self.uses.borrow_mut();
        if is_known && !uses.contains(&ObjectId(oid.0)) {
            uses.push(ObjectId(oid.0));
        }
    }

    /// The statement depends on an enum, whose labels it has looked up.
    pub(super) fn note_enum(&self, ty: SqlType) {
        let element = ty.scalar();
        if let Some(found) = self.catalog.object(ObjectId(element.oid.0)).filter(|_| element.is_enum()) {
            self.note_type(found.schema(), found.name(), Some(found));
        }
    }

    /// The statement depends on a domain, whose constraints it checks.
    pub(super) fn note_domain(&self, id: ObjectId) {
        if let Some(found) = self.catalog.object(id) {
            self.note_type(found.schema(), found.name(), Some(found));
        }
    }

    /// The user's type that an id in a stored text stands for.
    fn fixed_type(&self, name: &str) -> Option<NamedType> {
        let found = self.catalog.object(fixed_id(name, FIXED_TYPE).filter(|_| self.is_stored)?)?;
        self.note_type(found.schema(), found.name(), Some(found));
        NamedType::of(found)
    }

    fn note_type(&self, schema: Option<SchemaId>, name: &str, found: Option<&Arc<Object>>) {
        if let Some(found) = found {
            let mut uses = self.uses.borrow_mut();
            if !uses.contains(&found.id()) {
                uses.push(found.id());
            }
        }
        let mut lookups = self.lookups.borrow_mut();
        if !lookups.iter().any(|lookup| lookup.is_type && lookup.name == name && lookup.schema == schema) {
            let found = found.cloned().map(Relation::Object);
            lookups.push(Lookup { schema, name: name.to_owned(), is_type: true, found });
        }
    }

    /// Whether a relation has a name in the schema of the relation that the statement creates or changes.
    pub(super) fn is_taken(&self, name: &str) -> bool {
        self.look_up(Some(self.target), name).is_some() && !self.freed.iter().any(|freed| freed == name)
    }

    /// What it has looked up.
    pub(super) fn take_lookups(&self) -> Vec<Lookup> {
        self.lookups.take()
    }

    /// Whether the session's database has a schema of this folded name.
    pub(super) fn is_schema(&self, name: &str) -> bool {
        self.catalog.schema(name).is_some()
    }

    /// The relation that a name means, and the folded name without its schema. 42P01 if there is none.
    pub(super) fn relation(&self, name: &ObjectName) -> Result<(Relation, String), SqlError> {
        let mut parts = self.name_parts(name)?;
        let found = self.relation_of_parts(&parts, name)?;
        Ok((found, parts.pop().unwrap_or_default()))
    }

    /// As [`Binder::relation`], of a name with these folded parts.
    fn relation_of_parts(&self, parts: &[String], name: &ObjectName) -> Result<Relation, SqlError> {
        self.check_database(parts, name)?;
        let found = self.find_by_parts(parts)?;
        found.ok_or_else(|| {
            let message = format!("relation \"{}\" does not exist", parts.join("."));
            self.error(SqlState::UNDEFINED_TABLE, message, name.span().start)
        })
    }

    /// The relation of the user's that a name means, if there is one.
    pub(super) fn find_relation(&self, name: &ObjectName) -> Result<Option<(Relation, String)>, SqlError> {
        let mut parts = self.name_parts(name)?;
        let found = self.find_by_parts(&parts)?;
        let last = parts.pop().unwrap_or_default();
        Ok(found.map(|found| (found, last)))
    }

    /// As [`Binder::find_relation`], of these folded parts.
    pub(super) fn find_by_parts(&self, parts: &[String]) -> Result<Option<Relation>, SqlError> {
        Ok(match parts {
            [relation] => self.look_up(None, relation),
            [schema, relation] => match self.catalog.schema(schema) {
                Some(schema) if schema.session_node.is_some() && Some(schema.id) != self.catalog.sight().temporary => {
                    let message = "cannot access temporary tables of other sessions";
                    return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
                }
                Some(schema) => self.look_up(Some(schema.id), relation),
                None => None,
            },
            _ => return Err(far_relation(parts)),
        })
    }

    /// 0A000 for a relation in another database. The other look-ups give the error without a position, as in
    /// PostgreSQL.
    pub(super) fn check_database(&self, parts: &[String], name: &ObjectName) -> Result<(), SqlError> {
        if parts.len() < 3 {
            return Ok(());
        }
        Err(far_relation(parts).at(self.position(name.span().start)))
    }

    /// The table of a name, to be changed. 42P01 if there is none, 42809 if it means something else, 42501 if it is one
    /// of the system.
    pub(super) fn table(&self, name: &ObjectName) -> Result<Arc<Table>, SqlError> {
        let table = self.readable_table(name)?;
        self.check_changeable(&table)?;
        Ok(table)
    }

    /// 42501 for a table of the system.
    pub(super) fn check_changeable(&self, table: &Table) -> Result<(), SqlError> {
        if system::of_table(table).is_none() {
            return Ok(());
        }
        let message = format!("permission denied: \"{}\" is a system catalog", table.name);
        Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message))
    }

    /// The table of a name, to be read. `pg_catalog` is searched first. Errors as of [`Binder::table`].
    pub(super) fn readable_table(&self, name: &ObjectName) -> Result<Arc<Table>, SqlError> {
        self.as_table(self.readable(name)?, name)
    }

    /// A relation as a table. 42809 if it is something else.
    pub(super) fn as_table(&self, found: Relation, name: &ObjectName) -> Result<Arc<Table>, SqlError> {
        let what = match found {
            Relation::Table(table) => return Ok(table),
            Relation::Index(_) => "an index".to_owned(),
            Relation::Object(object) => format!("a {}", object.kind()),
        };
        let last = self.name_parts(name)?.pop().unwrap_or_default();
        Err(self.error(SqlState::WRONG_OBJECT_TYPE, format!("\"{last}\" is {what}"), name.span().start))
    }

    /// The relation of the system that a name means.
    pub(super) fn of_system(&self, parts: &[String]) -> Option<&'static system::Relation> {
        match parts {
            [table] => system::find(None, table),
            [schema, table] if !self.is_schema(schema) => system::find(Some(schema), table),
            _ => None,
        }
    }

    /// The relation of a name, those of the system included. 42P01 if there is none.
    pub(super) fn readable(&self, name: &ObjectName) -> Result<Relation, SqlError> {
        let parts = self.name_parts(name)?;
        match self.of_system(&parts) {
            Some(found) => Ok(Relation::Table(found.table.clone())),
            None => self.relation_of_parts(&parts, name),
        }
    }

    /// The schema and the folded name of a new relation, which may be temporary. 42P16 if it names another schema.
    pub(super) fn new_relation(&self, name: &ObjectName, is_temporary: bool) -> Result<(SchemaId, String), SqlError> {
        if !is_temporary {
            return self.new_name(name);
        }
        // Behind a schema any word is a name.
        if let [only] = name.0.as_slice()
            && let Some(ident) = only.as_ident()
        {
            self.check_new_name(ident)?;
        }
        let mut parts = self.name_parts(name)?;
        if parts.len() > 2 {
            return Err(far_relation(&parts));
        }
        let last = parts.pop().unwrap_or_default();
        let own = self.catalog.sight().temporary;
        match parts.as_slice() {
            [] => {}
            [schema] if schema == OWN_NAME => {}
            [schema] if own.is_some() && self.catalog.schema(schema).map(|schema| schema.id) == own => {}
            _ => {
                let message = "cannot create temporary relation in non-temporary schema";
                return Err(self.error(SqlState::INVALID_TABLE_DEFINITION, message, name.span().start));
            }
        }
        Ok((own.unwrap_or(NEW_TEMPORARY), last))
    }

    /// Whether a schema is one of temporary relations.
    pub(super) fn is_temporary(&self, schema: SchemaId) -> bool {
        schema == NEW_TEMPORARY || self.catalog.is_temporary(schema)
    }

    /// The schema and the folded name of a new relation. 3F000 if there is no such schema.
    pub(super) fn new_name(&self, name: &ObjectName) -> Result<(SchemaId, String), SqlError> {
        let at = name.span().start;
        // Behind a schema any word is a name.
        if let [only] = name.0.as_slice()
            && let Some(ident) = only.as_ident()
        {
            self.check_new_name(ident)?;
        }
        let mut parts = self.name_parts(name)?;
        let last = parts.pop().unwrap_or_default();
        let schema = match parts.as_slice() {
            [] => {
                let message = "no schema has been selected to create in";
                let first = self.catalog.sight().path.first().copied();
                first.ok_or_else(|| self.error(SqlState::INVALID_SCHEMA_NAME, message, at))?
            }
            [schema] if schema == OWN_NAME => self.catalog.sight().temporary.unwrap_or(NEW_TEMPORARY),
            [schema] if schema == system::PG_CATALOG.1 => {
                let message = format!("permission denied to create \"{schema}.{last}\"");
                let error = SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message);
                return Err(error.detail("System catalog modifications are currently disallowed."));
            }
            [schema] => {
                let schema = self.schema_named(schema, at)?;
                if self.is_temporary(schema) && Some(schema) != self.catalog.sight().temporary {
                    let message = "cannot create relations in temporary schemas of other sessions";
                    return Err(self.error(SqlState::INVALID_TABLE_DEFINITION, message, at));
                }
                schema
            }
            _ => {
                parts.push(last);
                return Err(far_relation(&parts));
            }
        };
        Ok((schema, last))
    }

    /// The schema of a folded name. 3F000 if there is none.
    pub(super) fn schema_named(&self, schema: &str, at: Location) -> Result<SchemaId, SqlError> {
        let found = self.catalog.schema(schema).map(|schema| schema.id);
        let message = || format!("schema \"{schema}\" does not exist");
        found.ok_or_else(|| self.error(SqlState::INVALID_SCHEMA_NAME, message(), at))
    }
}

/// The error of a name that begins with more than a schema. Unlike others, those of relations are quoted.
fn far_relation(parts: &[String]) -> SqlError {
    let error = SqlError::far_name(parts, 3);
    match parts {
        [_, _, _] => {
            let message = format!("cross-database references are not implemented: \"{}\"", parts.join("."));
            SqlError { message, ..error }
        }
        _ => error,
    }
}

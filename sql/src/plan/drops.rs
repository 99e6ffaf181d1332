//! What a DROP takes along: the objects that depend on those it names.
//!
//! A view depends on the relations and types of its query, a column on its type, a relation on its schema. Without
//! CASCADE an object that others depend on stays (2BP01). A sequence that a column owns goes with its table, without a
//! word.

use std::sync::Arc;

use super::binder::Binder;
use super::dependents::{Dependents, check_dependents, of_tables};
use super::node::{Drops, Notice};
use crate::error::{SqlError, SqlState};
use crate::object::{Object, ObjectId, SchemaId};
use crate::table::{Column, Table, drawn_sequence, quote_identifier};

/// Something to drop.
#[derive(Clone, Debug)]
pub(super) enum Dropped {
    Table(Arc<Table>),
    Object(Arc<Object>),
}

impl Dropped {
    fn id(&self) -> ObjectId {
        match self {
            Dropped::Table(table) => ObjectId(table.id.0),
            Dropped::Object(object) => object.id(),
        }
    }
}

/// One that goes because another one does.
struct Dependent {
    found: Dropped,
    /// Whether it goes without CASCADE.
    is_owned: bool,
}

impl Binder<'_> {
    /// All that is dropped with these. 2BP01 if something depends on them that CASCADE would have to drop.
    pub(super) fn drops(&mut self, named: Vec<Dropped>, cascade: bool) -> Result<Drops, SqlError> {
        let roots = named.len();
        let mut all: Vec<Dropped> = Vec::new();
        for root in named {
            if !all.iter().any(|known| known.id() == root.id()) {
                all.push(root);
            }
        }
        let (mut at, mut details) = (0, Vec::new());
        let first = all.first().cloned();
        while let Some(parent) = all.get(at).cloned() {
            for dependent in self.dependents(&parent) {
                if all.iter().any(|known| known.id() == dependent.found.id()) {
                    continue;
                }
                if !dependent.is_owned {
                    let (child, parent) = (self.dropped_text(&dependent.found), self.dropped_text(&parent));
                    details.push((child, parent));
                }
                all.push(dependent.found);
            }
            at += 1;
        }
        let mut drops = Drops::default();
        for dropped in all {
            match dropped {
                Dropped::Table(table) => drops.tables.push(table),
                Dropped::Object(object) => drops.objects.push(object),
            }
        }
        let mut rest = of_tables(&drops.tables, self.catalog);
        let stay = |table: &Table, _: &Column| !drops.tables.iter().any(|dropped| dropped.id == table.id);
        self.add_defaults(&drops.objects, stay, &mut rest)?;
        details.extend_from_slice(rest.described());
        let what = match first.filter(|_| roots == 1) {
            Some(only) => self.dropped_text(&only),
            None => "desired object(s)".to_owned(),
        };
        let columns = self.columns_of_types(&drops, &mut details);
        if let Some(message) = check_dependents(&details, &what, cascade)? {
            self.notices.push(Notice { code: SqlState::SUCCESSFUL_COMPLETION, message, is_warning: false });
        }
        drops.changes = rest.alterations(self.catalog)?;
        for (table, names) in columns {
            for change in self.without_columns(table, &names)? {
                if drops.changes.iter().any(|known| known.old.id == change.old.id) {
                    let message = "this DROP changes a table in several ways: drop the columns first";
                    return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
                }
                drops.changes.push(change);
            }
        }
        Ok(drops)
    }

    /// The columns that have a dropped type, of tables that stay, with what they depend on.
    fn columns_of_types(&self, drops: &Drops, details: &mut Vec<(String, String)>) -> Vec<(Arc<Table>, Vec<String>)> {
        let types = drops.objects.iter().filter(|object| matches!(***object, Object::Enum(_)));
        let types: Vec<&Arc<Object>> = types.collect();
        let mut found = Vec::new();
        for table in self.catalog.tables() {
            if types.is_empty() || drops.tables.iter().any(|dropped| dropped.id == table.id) {
                continue;
            }
            let mut names = Vec::new();
            for column in &table.columns {
                let element = column.ty.element().unwrap_or(column.ty);
                let Some(ty) = types.iter().find(|ty| ty.id().0 == element.oid.0) else { continue };
                let table_text = self.dropped_text(&Dropped::Table(Arc::clone(&table)));
                let brackets = if element == column.ty { "" } else { "[]" };
                let on = format!("{}{brackets}", self.object_text(ty));
                details.push((format!("column {} of {table_text}", quote_identifier(&column.name)), on));
                names.push(column.name.clone());
            }
            if !names.is_empty() {
                found.push((table, names));
            }
        }
        found
    }

    /// Adds what depends on a column of a table: views that read it, with all that depends on these, and sequences that
    /// it owns.
    pub(super) fn add_objects(
        &self,
        (table, column): (&Table, &Column),
        found: &mut Dependents,
    ) -> Result<(), SqlError> {
        let on = format!("column {} of table {}", column.name, table.name);
        let views = self.views_of_column(table, column.id)?;
        let mut all: Vec<Dropped> = Vec::new();
        for view in views {
            found.add_object(Arc::clone(&view), Some((self.object_text(&view), on.clone())));
            all.push(Dropped::Object(view));
        }
        let mut at = 0;
        while let Some(parent) = all.get(at).cloned() {
            for Dependent { found: child, .. } in self.dependents(&parent) {
                let Dropped::Object(object) = &child else { continue };
                if !all.iter().any(|known| known.id() == child.id()) {
                    let described = (self.dropped_text(&child), self.dropped_text(&parent));
                    found.add_object(Arc::clone(object), Some(described));
                    all.push(child);
                }
            }
            at += 1;
        }
        let owner = Some((ObjectId(table.id.0), column.id.0));
        let is_owned =
            |object: &Arc<Object>| matches!(&**object, Object::Sequence(sequence) if sequence.owner == owner);
        let owned: Vec<Arc<Object>> = self.catalog.relations().into_iter().filter(is_owned).collect();
        let stays = |other: &Table, there: &Column| (other.id, there.id) != (table.id, column.id);
        self.add_defaults(&owned, stays, found)?;
        owned.into_iter().for_each(|sequence| found.add_object(sequence, None));
        Ok(())
    }

    /// Adds the defaults of columns that draw from a dropped sequence, of columns that stay. 2BP01 for an identity
    /// column: it cannot be without its sequence.
    fn add_defaults(
        &self,
        dropped: &[Arc<Object>],
        stays: impl Fn(&Table, &Column) -> bool,
        dependents: &mut Dependents,
    ) -> Result<(), SqlError> {
        for table in self.catalog.tables() {
            for column in table.columns.iter().filter(|column| stays(&table, column)) {
                let Some(drawn) = column.default.as_deref().and_then(drawn_sequence) else { continue };
                let Some(sequence) = dropped.iter().find(|object| object.id() == drawn) else { continue };
                let what = self.object_text(sequence);
                let table_text = self.dropped_text(&Dropped::Table(Arc::clone(&table)));
                let column_text = format!("column {} of {table_text}", quote_identifier(&column.name));
                if column.identity.is_some() {
                    let message = format!("cannot drop {what} because {column_text} requires it");
                    let error = SqlError::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, message);
                    return Err(error.hint(format!("You can drop {column_text} instead.")));
                }
                dependents.add_default(table.id, column.id, (format!("default value for {column_text}"), what));
            }
        }
        Ok(())
    }

    /// What depends on an object directly.
    fn dependents(&self, parent: &Dropped) -> Vec<Dependent> {
        let mut found = Vec::new();
        let id = parent.id();
        if let Dropped::Object(object) = parent
            && let Object::Schema(schema) = &**object
        {
            found.extend(self.members(schema.id));
        }
        for object in self.catalog.relations() {
            match &*object {
                Object::View(view) if view.uses.contains(&id) => {
                    found.push(Dependent { found: Dropped::Object(object), is_owned: false });
                }
                Object::Sequence(sequence) if sequence.owner.is_some_and(|(owner, _)| owner == id) => {
                    found.push(Dependent { found: Dropped::Object(object), is_owned: true });
                }
                _ => {}
            }
        }
        found
    }

    /// The relations of a schema.
    fn members(&self, schema: SchemaId) -> Vec<Dependent> {
        let tables = self.catalog.tables().into_iter().filter(|table| table.schema == schema).map(Dropped::Table);
        let others = self.catalog.relations().into_iter().filter(|object| object.schema() == Some(schema));
        let all = tables.chain(others.map(Dropped::Object));
        let mut all: Vec<Dependent> = all.map(|found| Dependent { found, is_owned: false }).collect();
        all.sort_unstable_by_key(|dependent| dependent.found.id());
        all
    }

    /// Kind and name of an object: `view s.v`.
    pub(super) fn object_text(&self, object: &Arc<Object>) -> String {
        self.dropped_text(&Dropped::Object(Arc::clone(object)))
    }

    /// Kind and name of what is dropped: `table s.t`.
    fn dropped_text(&self, dropped: &Dropped) -> String {
        if let Dropped::Object(object) = dropped
            && let Object::Enum(ty) = &**object
        {
            return format!("type {}", self.catalog.type_text(ty.ty()));
        }
        let (kind, schema, name) = match dropped {
            Dropped::Table(table) => ("table", Some(table.schema), table.name.as_str()),
            Dropped::Object(object) => (object.kind(), object.schema(), object.name()),
        };
        match schema {
            Some(schema) => format!("{kind} {}", self.catalog.relation_text(schema, name)),
            None => format!("{kind} {}", quote_identifier(name)),
        }
    }
}

//! What a DROP takes along: the objects that depend on those it names.
//!
//! A view depends on the relations and types of its query, a column on its type, a relation on its schema. Without
//! CASCADE an object that others depend on stays (2BP01). A sequence that a column owns goes with its table, without a
//! word.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use super::assign::bind_default;
use super::binder::Binder;
use super::bound_index::TableWrite;
use super::dependents::{Dependents, check_dependents, of_tables};
use super::domains::{default_text, domain_check};
use super::node::{Drops, Notice};
use crate::catalog::Catalog;
use crate::error::{SqlError, SqlState};
use crate::object::{Domain, Object, ObjectId, SchemaId};
use crate::table::{Column, ColumnId, Table, quote_identifier};
use pgtypes::Oid;

/// Something to drop.
#[derive(Clone, Debug)]
pub(super) enum Dropped {
    Table(Arc<Table>),
    Object(Arc<Object>),
    /// A column of a table, which loses its type.
    Column(Arc<Table>, ColumnId),
}

impl Dropped {
    /// The OID that a column has with its table, and the number of a column; 0 for anything else.
    fn id(&self) -> (ObjectId, u16) {
        match self {
            Dropped::Table(table) => (ObjectId(table.id.0), 0),
            Dropped::Object(object) => (object.id(), 0),
            Dropped::Column(table, column) => (ObjectId(table.id.0), column.0),
        }
    }
}

/// All that a DROP takes along.
#[derive(Default)]
struct Found {
    /// What is named first, then what depends on it.
    all: Vec<Dropped>,
    /// What CASCADE has to drop, each with what it depends on: as errors list them.
    details: Vec<(Dropped, (String, String))>,
}

impl Found {
    fn has(&self, id: (ObjectId, u16)) -> bool {
        self.all.iter().any(|known| known.id() == id)
    }

    /// The columns of tables that stay, by their tables.
    fn columns(&self) -> Vec<(Arc<Table>, Vec<String>)> {
        let mut found: Vec<(Arc<Table>, Vec<String>)> = Vec::new();
        for dropped in &self.all {
            let Dropped::Column(table, id) = dropped else { continue };
            let Some(column) = table.position_of(*id).and_then(|at| table.columns.get(at)) else { continue };
            if self.has((ObjectId(table.id.0), 0)) {
                continue;
            }
            match found.iter_mut().find(|(known, _)| known.id == table.id) {
                Some((_, names)) => names.push(column.name.clone()),
                None => found.push((Arc::clone(table), vec![column.name.clone()])),
            }
        }
        found
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
        let found = self.found_with(named);
        let first = found.all.first().cloned();
        let mut drops = Drops::default();
        for dropped in &found.all {
            match dropped {
                Dropped::Table(table) => drops.tables.push(Arc::clone(table)),
                Dropped::Object(object) => drops.objects.push(Arc::clone(object)),
                Dropped::Column(..) => {}
            }
        }
        // A column goes without a word if its table does.
        let goes_alone = |dropped: &Dropped| dropped.id().1 == 0 || !found.has((dropped.id().0, 0));
        let told = found.details.iter().filter(|(dropped, _)| goes_alone(dropped));
        let mut details: Vec<(String, String)> = told.map(|(_, told)| told.clone()).collect();
        let mut rest = of_tables(&drops.tables, self.catalog);
        let stay = |table: &Table, _: &Column| !drops.tables.iter().any(|dropped| dropped.id == table.id);
        self.add_defaults(&drops.objects, stay, &mut rest)?;
        self.add_typed_defaults(&drops.objects, &found, &mut rest);
        details.extend_from_slice(rest.described());
        let what = match first.filter(|_| roots == 1) {
            Some(only) => self.dropped_text(&only),
            None => "desired object(s)".to_owned(),
        };
        if let Some(message) = check_dependents(&details, &what, cascade)? {
            self.notices.push(Notice { code: SqlState::SUCCESSFUL_COMPLETION, message, is_warning: false });
        }
        drops.changes = rest.alterations(self.catalog)?;
        for (table, names) in found.columns() {
            for change in self.without_columns(table, &names)? {
                if drops.changes.iter().any(|known| known.old.id == change.old.id) {
                    let message = "this DROP changes a table in several ways: drop the columns first";
                    return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
                }
                drops.changes.push(change);
            }
        }
        self.check_texts(&drops, &what, cascade)?;
        Ok(drops)
    }

    /// 2BP01 if a default, a constraint or an index of a table that stays names a dropped type or relation; 0A000 with
    /// CASCADE.
    fn check_texts(&self, drops: &Drops, what: &str, cascade: bool) -> Result<(), SqlError> {
        let is_named = |object: &Object| object.is_type() || self.is_named_by_text(object.id());
        let objects: Vec<ObjectId> =
            drops.objects.iter().filter(|object| is_named(object)).map(|object| object.id()).collect();
        let tables = drops.tables.iter().map(|table| table.id);
        let tables: Vec<_> = tables.filter(|id| self.is_named_by_text(ObjectId(id.0))).collect();
        let gone: Vec<Table> = drops.tables.iter().map(|table| (**table).clone()).collect();
        let changed: Vec<Table> = drops.changes.iter().map(|change| change.new.clone()).collect();
        if objects.is_empty() && tables.is_empty() {
            return Ok(());
        }
        let mut catalog = objects.iter().fold(self.catalog.clone(), |catalog, id| catalog.without_dropped(*id));
        catalog = tables.iter().fold(catalog, |catalog, id| catalog.without_table(*id));
        for table in changed {
            catalog = catalog.with_table(table);
        }
        let Some(it) = self.unbound(&catalog, &gone) else { return Ok(()) };
        if cascade {
            let message = format!("an expression of {it} names what is dropped: drop it first");
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        let described = [(format!("an expression of {it}"), what.to_owned())];
        check_dependents(&described, what, false).map(drop)
    }

    /// The first table, but for some, or domain, whose stored texts have a meaning now and none in another catalog.
    pub(super) fn unbound(&self, catalog: &Catalog, but: &[Table]) -> Option<String> {
        let is_bound = |table: &Arc<Table>, catalog: &Catalog| {
            let default = |column: &Column| {
                default_text(column, catalog).is_none_or(|text| bind_default(text, column, catalog).is_ok())
            };
            TableWrite::bind(Arc::clone(table), catalog).is_ok() && table.columns.iter().all(default)
        };
        let tables = catalog.tables().into_iter().filter(|table| but.iter().all(|gone| gone.id != table.id));
        let mut unbound = tables.filter(|table| !is_bound(table, catalog));
        let was_bound =
            |table: &Arc<Table>| self.catalog.by_id(table.id).is_some_and(|now| is_bound(now, self.catalog));
        if let Some(table) = unbound.find(was_bound) {
            return Some(self.dropped_text(&Dropped::Table(table)));
        }
        let is_unbound = |object: &&Arc<Object>| {
            let is_domain = matches!(***object, Object::Domain(_));
            is_domain && domain_check(object.id(), catalog).is_err() && domain_check(object.id(), self.catalog).is_ok()
        };
        catalog.relations().iter().find(is_unbound).map(|object| self.object_text(object))
    }

    /// What is named, with all that depends on it: behind each what depends on that, as PostgreSQL lists them.
    fn found_with(&self, named: Vec<Dropped>) -> Found {
        let mut found = Found::default();
        for root in named {
            if !found.has(root.id()) {
                found.all.push(root);
            }
        }
        let mut waiting: Vec<(Dropped, Dependent)> = Vec::new();
        let add = |parent: &Dropped, waiting: &mut Vec<(Dropped, Dependent)>| {
            let mut dependents = self.dependents(parent);
            dependents.sort_by_key(|dependent| {
                let (id, column) = dependent.found.id();
                (Reverse(id), column)
            });
            waiting.extend(dependents.into_iter().map(|dependent| (parent.clone(), dependent)));
        };
        for root in found.all.clone().iter().rev() {
            add(root, &mut waiting);
        }
        while let Some((parent, dependent)) = waiting.pop() {
            if found.has(dependent.found.id()) {
                continue;
            }
            if !dependent.is_owned {
                let told = (self.dropped_text(&dependent.found), self.parent_text(&parent, &dependent.found));
                found.details.push((dependent.found.clone(), told));
            }
            add(&dependent.found, &mut waiting);
            found.all.push(dependent.found);
        }
        found
    }

    /// What a dependent depends on: of a column, its type as it has it.
    fn parent_text(&self, parent: &Dropped, child: &Dropped) -> String {
        let brackets = match child {
            Dropped::Column(table, id) => {
                let column = table.position_of(*id).and_then(|at| table.columns.get(at));
                if column.is_some_and(|column| column.domain.is_none() && column.ty.is_array()) { "[]" } else { "" }
            }
            _ => "",
        };
        format!("{}{brackets}", self.dropped_text(parent))
    }

    /// The columns that have a type.
    fn columns_of(&self, ty: ObjectId) -> Vec<Dependent> {
        let mut found = Vec::new();
        for table in self.catalog.tables() {
            for column in &table.columns {
                let element = column.ty.scalar();
                if column.domain.map_or(element.oid.0 == ty.0, |domain| domain == ty) {
                    let dropped = Dropped::Column(Arc::clone(&table), column.id);
                    found.push(Dependent { found: dropped, is_owned: false });
                }
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
        self.add_views(views, &on, found);
        let owner = Some((ObjectId(table.id.0), column.id.0));
        let is_owned =
            |object: &Arc<Object>| matches!(&**object, Object::Sequence(sequence) if sequence.owner == owner);
        let owned: Vec<Arc<Object>> = self.catalog.relations().into_iter().filter(is_owned).collect();
        self.add_sequences((table, column), owned, found)
    }

    /// Adds views that depend on something, with all that depends on them.
    pub(super) fn add_views(&self, views: Vec<Arc<Object>>, on: &str, found: &mut Dependents) {
        for view in &views {
            found.add_object(Arc::clone(view), Some((self.object_text(view), on.to_owned())));
        }
        self.add_readers(views, found);
    }

    /// Adds sequences of a column, and all that depends on them.
    pub(super) fn add_sequences(
        &self,
        (table, column): (&Table, &Column),
        owned: Vec<Arc<Object>>,
        found: &mut Dependents,
    ) -> Result<(), SqlError> {
        self.add_readers(owned.clone(), found);
        let stays = |other: &Table, there: &Column| (other.id, there.id) != (table.id, column.id);
        self.add_defaults(&owned, stays, found)?;
        owned.into_iter().for_each(|sequence| found.add_object(sequence, None));
        Ok(())
    }

    /// Adds what depends on objects.
    fn add_readers(&self, objects: Vec<Arc<Object>>, found: &mut Dependents) {
        let mut all: Vec<Dropped> = objects.into_iter().map(Dropped::Object).collect();
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
    }

    /// Adds the defaults of columns that draw from a dropped sequence, of columns that stay. 2BP01 for an identity
    /// column: it cannot be without its sequence.
    fn add_defaults(
        &self,
        dropped: &[Arc<Object>],
        stays: impl Fn(&Table, &Column) -> bool,
        dependents: &mut Dependents,
    ) -> Result<(), SqlError> {
        let sequences = dropped.iter().enumerate().filter(|(_, object)| matches!(&***object, Object::Sequence(_)));
        let places: HashMap<ObjectId, usize> = sequences.map(|(place, object)| (object.id(), place)).collect();
        if places.is_empty() {
            return Ok(());
        }
        for table in self.catalog.tables() {
            for column in table.columns.iter().filter(|column| stays(&table, column)) {
                let first = self.named_relations(column).iter().filter_map(|id| places.get(id)).min();
                let Some(sequence) = first.and_then(|place| dropped.get(*place)) else { continue };
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

    /// Adds the defaults of columns that name a dropped type, of columns that stay.
    fn add_typed_defaults(&self, dropped: &[Arc<Object>], found: &Found, dependents: &mut Dependents) {
        for ty in dropped.iter().filter(|object| object.is_type()) {
            let catalog = self.catalog.without_dropped(ty.id());
            for table in self.catalog.tables().into_iter().filter(|table| !found.has((ObjectId(table.id.0), 0))) {
                for column in table.columns.iter().filter(|column| !found.has((ObjectId(table.id.0), column.id.0))) {
                    let Some(text) = column.default.as_deref() else { continue };
                    let names_it = bind_default(text, column, &catalog).is_err();
                    if names_it && bind_default(text, column, self.catalog).is_ok() {
                        let table_text = self.dropped_text(&Dropped::Table(Arc::clone(&table)));
                        let it = format!("default value for column {} of {table_text}", quote_identifier(&column.name));
                        dependents.add_default(table.id, column.id, (it, self.object_text(ty)));
                    }
                }
            }
        }
    }

    /// What depends on an object directly.
    fn dependents(&self, parent: &Dropped) -> Vec<Dependent> {
        let mut found = Vec::new();
        let (id, 0) = parent.id() else { return found };
        if let Dropped::Object(object) = parent {
            match &**object {
                Object::Schema(schema) => found.extend(self.members(schema.id)),
                object if object.is_type() => found.extend(self.columns_of(id)),
                _ => {}
            }
        }
        for object in self.catalog.relations() {
            match &*object {
                Object::View(view) if view.uses.contains(&id) => {
                    found.push(Dependent { found: Dropped::Object(object), is_owned: false });
                }
                Object::Sequence(sequence) if sequence.owner.is_some_and(|(owner, _)| owner == id) => {
                    found.push(Dependent { found: Dropped::Object(object), is_owned: true });
                }
                Object::Domain(domain) if is_made_of(domain, id) => {
                    found.push(Dependent { found: Dropped::Object(object), is_owned: false });
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
        all.map(|found| Dependent { found, is_owned: false }).collect()
    }

    /// Kind and name of an object: `view s.v`.
    pub(super) fn object_text(&self, object: &Arc<Object>) -> String {
        self.dropped_text(&Dropped::Object(Arc::clone(object)))
    }

    /// Kind and name of what is dropped: `table s.t`.
    fn dropped_text(&self, dropped: &Dropped) -> String {
        if let Dropped::Object(object) = dropped
            && let Some(shown) = self.catalog.user_type_text(Oid(object.id().0))
        {
            return format!("type {shown}");
        }
        let (kind, schema, name) = match dropped {
            Dropped::Table(table) => ("table", Some(table.schema), table.name.as_str()),
            Dropped::Object(object) => (object.kind(), object.schema(), object.name()),
            Dropped::Column(table, id) => {
                let column = table.position_of(*id).and_then(|at| table.columns.get(at));
                let name = quote_identifier(column.map_or("", |column| &column.name));
                return format!("column {name} of {}", self.dropped_text(&Dropped::Table(Arc::clone(table))));
            }
        };
        match schema {
            Some(schema) => format!("{kind} {}", self.catalog.relation_text(schema, name)),
            None => format!("{kind} {}", quote_identifier(name)),
        }
    }
}

/// Whether a domain is made of another type, directly.
fn is_made_of(domain: &Domain, id: ObjectId) -> bool {
    let element = domain.base.scalar();
    domain.parent.map_or(element.oid.0 == id.0, |parent| parent == id)
}

//! What a DROP takes along: the objects that depend on those it names.
//!
//! A view depends on the relations of its query, a relation on its schema. Without CASCADE an object that others depend
//! on stays (2BP01). A sequence that a column owns goes with its table, without a word.

use std::sync::Arc;

use super::binder::Binder;
use super::node::{Drops, Notice};
use crate::error::{SqlError, SqlState};
use crate::object::{Object, ObjectId, SchemaId};
use crate::table::{Table, drawn_sequence, quote_identifier};

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
                    details.push((format!("{child} depends on {parent}"), format!("drop cascades to {child}")));
                }
                all.push(dependent.found);
            }
            at += 1;
        }
        if !cascade && !details.is_empty() {
            let what = match first.filter(|_| roots == 1) {
                Some(only) => self.dropped_text(&only),
                None => "desired object(s)".to_owned(),
            };
            let pronoun = if roots == 1 { "it" } else { "them" };
            let message = format!("cannot drop {what} because other objects depend on {pronoun}");
            let detail: Vec<String> = details.into_iter().map(|(why, _)| why).collect();
            let error = SqlError::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, message).detail(detail.join("\n"));
            return Err(error.hint("Use DROP ... CASCADE to drop the dependent objects too."));
        }
        let message = match details.as_slice() {
            [] => None,
            [(_, only)] => Some(only.clone()),
            many => Some(format!("drop cascades to {} other objects", many.len())),
        };
        if let Some(message) = message {
            self.notices.push(Notice { code: SqlState::SUCCESSFUL_COMPLETION, message, is_warning: false });
        }
        let only = all.first().filter(|_| roots == 1).map(|only| self.dropped_text(only));
        self.keep_used_sequences(&all, only.as_deref(), cascade)?;
        let mut drops = Drops::default();
        for dropped in all {
            match dropped {
                Dropped::Table(table) => drops.tables.push(table),
                Dropped::Object(object) => drops.objects.push(object),
            }
        }
        Ok(drops)
    }

    /// 2BP01 for a sequence from which a column draws whose table stays. To drop that default with it is not supported.
    fn keep_used_sequences(&self, all: &[Dropped], only: Option<&str>, cascade: bool) -> Result<(), SqlError> {
        let is_dropped = |id: ObjectId| all.iter().any(|dropped| dropped.id() == id);
        for table in self.catalog.tables().iter().filter(|table| !is_dropped(ObjectId(table.id.0))) {
            for column in &table.columns {
                let drawn = column.default.as_deref().and_then(drawn_sequence).filter(|id| is_dropped(*id));
                let Some(sequence) = drawn.and_then(|id| all.iter().find(|dropped| dropped.id() == id)) else {
                    continue;
                };
                let (what, table) = (self.dropped_text(sequence), self.dropped_text(&Dropped::Table(table.clone())));
                let column_text = format!("column {} of {table}", quote_identifier(&column.name));
                if column.identity.is_some() {
                    let message = format!("cannot drop {what} because {column_text} requires it");
                    let error = SqlError::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, message);
                    return Err(error.hint(format!("You can drop {column_text} instead.")));
                }
                if cascade {
                    let message = format!("{what} cannot be dropped with the default value of {column_text} yet");
                    return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
                }
                let message = match only {
                    Some(only) => format!("cannot drop {only} because other objects depend on it"),
                    None => "cannot drop desired object(s) because other objects depend on them".to_owned(),
                };
                let detail = format!("default value for {column_text} depends on {what}");
                let error = SqlError::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, message).detail(detail);
                return Err(error.hint("Use DROP ... CASCADE to drop the dependent objects too."));
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

    /// Kind and name of an object: `table s.t`.
    fn dropped_text(&self, dropped: &Dropped) -> String {
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

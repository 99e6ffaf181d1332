//! What views read, for changes of the tables below them.
//!
//! A view keeps text. So what it reads of a table is found by binding that text and noting the columns that names lead
//! to. A column that a view reads goes with the view or not at all; its type and its name stay, and so does the name of
//! the table.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::binder::Binder;
use crate::error::{SqlError, SqlState};
use crate::object::{Object, ObjectId};
use crate::table::{Column, ColumnId, Table, TableId};

impl Binder<'_> {
    /// Whether a relation is temporary.
    pub(super) fn is_temporary_relation(&self, id: ObjectId) -> bool {
        let schema = match self.catalog.object(id) {
            Some(object) => object.schema(),
            None => self.catalog.by_id(TableId(id.0)).map(|table| table.schema),
        };
        schema.is_some_and(|schema| self.is_temporary(schema))
    }

    /// Whether a view reads a relation.
    pub(super) fn is_used(&self, relation: ObjectId) -> bool {
        !self.views_of(relation).is_empty()
    }

    /// The views whose queries name a relation.
    pub(super) fn views_of(&self, relation: ObjectId) -> Vec<Arc<Object>> {
        let reads = |object: &Arc<Object>| matches!(&**object, Object::View(view) if view.uses.contains(&relation));
        self.catalog.relations().into_iter().filter(reads).collect()
    }

    /// The views whose queries name a column of a table.
    pub(super) fn views_of_column(&self, table: &Table, column: ColumnId) -> Result<Vec<Arc<Object>>, SqlError> {
        let wanted = (table.id.0, i16::try_from(column.0).unwrap_or(0));
        let mut found = Vec::new();
        for object in self.views_of(ObjectId(table.id.0)) {
            let Object::View(view) = &*object else { continue };
            let mut binder = Binder::new(self.statement, None, self.catalog);
            binder.columns_used = RefCell::new(Some(BTreeSet::new()));
            binder.view_query(view)?;
            if binder.columns_used.take().is_some_and(|used| used.contains(&wanted)) {
                found.push(object);
            }
        }
        Ok(found)
    }

    /// 0A000 if a view reads a column of a table whose type is to change.
    pub(super) fn refuse_read_column(&self, table: &Table, column: &Column) -> Result<(), SqlError> {
        let Some(view) = self.views_of_column(table, column.id)?.into_iter().next() else { return Ok(()) };
        let message = "cannot alter type of a column used by a view or rule";
        let (view, column) = (self.object_text(&view), &column.name);
        let detail = format!("rule _RETURN on {view} depends on column \"{column}\"");
        Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message).detail(detail))
    }

    /// 0A000 for a new name of what a view reads: the text of the view has the old one.
    pub(super) fn refuse_read_name(&self, what: &str, views: &[Arc<Object>]) -> Result<(), SqlError> {
        let Some(view) = views.first() else { return Ok(()) };
        let message = format!("a new name for a {what} that a view reads is not supported yet");
        Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
            .detail(format!("The {} reads it.", self.object_text(view)))
            .hint("Drop the view, and create it again over the new name."))
    }

    /// 2BP01 if a view that reads a table could not be read any more over its new descriptor.
    pub(super) fn check_views(&self, table: &Table, dropped: &[Arc<Object>]) -> Result<(), SqlError> {
        let catalog = self.catalog.with_table(table.clone());
        for object in self.views_of(ObjectId(table.id.0)) {
            let Object::View(view) = &*object else { continue };
            if dropped.iter().any(|gone| gone.id() == object.id()) {
                continue;
            }
            if let Err(error) = Binder::new(self.statement, None, &catalog).view_query(view) {
                let message = format!("cannot alter table {} because view {} depends on it", table.name, view.name);
                let error = SqlError::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, message).detail(error.message);
                return Err(error.hint("Drop the view first."));
            }
        }
        Ok(())
    }
}

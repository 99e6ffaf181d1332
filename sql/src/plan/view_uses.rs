//! What views read, for changes of the tables below them.
//!
//! A view keeps text. So what it reads of a table is found by binding that text and noting the columns that names lead
//! to. A column that a view reads goes with the view or not at all; its type and its name stay, and so does the name of
//! the table.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::binder::Binder;
use crate::catalog::Catalog;
use crate::error::{SqlError, SqlState};
use crate::object::{Object, ObjectId, View};
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
        self.views_of_number(ObjectId(table.id.0), column.0)
    }

    /// The views whose queries name a column of a relation.
    pub(super) fn views_of_number(&self, relation: ObjectId, number: u16) -> Result<Vec<Arc<Object>>, SqlError> {
        let wanted = (relation.0, i16::try_from(number).unwrap_or(0));
        let mut found = Vec::new();
        for object in self.views_of(relation) {
            let Object::View(view) = &*object else { continue };
            if self.columns_read(view, self.catalog)?.contains(&wanted) {
                found.push(object);
            }
        }
        Ok(found)
    }

    /// The columns that the query of a view reads in a catalog: relation, number of the column.
    fn columns_read(&self, view: &View, catalog: &Catalog) -> Result<BTreeSet<(u32, i16)>, SqlError> {
        let mut binder = Binder::new(self.statement, None, catalog);
        binder.columns_used = RefCell::new(Some(BTreeSet::new()));
        binder.view_query(view)?;
        Ok(binder.columns_used.take().unwrap_or_default())
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

    /// The views that can be read over one descriptor of a table, and not over another one.
    pub(super) fn unbound_views(&self, before: &Table, after: &Table) -> Vec<Arc<Object>> {
        let is_bound =
            |view: &View, table: &Table| self.columns_read(view, &self.catalog.with_table(table.clone())).is_ok();
        let mut views = self.views_of(ObjectId(after.id.0));
        views.retain(|object| match &**object {
            Object::View(view) => !is_bound(view, after) && is_bound(view, before),
            _ => false,
        });
        views
    }

    /// 2BP01 if a view that reads a table could not be read any more over its new descriptor, or read other columns.
    pub(super) fn check_views(&self, table: &Table, dropped: &[Arc<Object>]) -> Result<(), SqlError> {
        let catalog = self.catalog.with_table(table.clone());
        self.check_readers((ObjectId(table.id.0), &format!("table {}", table.name)), &catalog, dropped)
    }

    /// The same of views that read a relation, in another catalog. `what` is the relation.
    pub(super) fn check_readers(
        &self,
        (relation, what): (ObjectId, &str),
        catalog: &Catalog,
        dropped: &[Arc<Object>],
    ) -> Result<(), SqlError> {
        for object in self.views_of(relation) {
            let Object::View(view) = &*object else { continue };
            let is_gone = dropped.iter().any(|gone| gone.id() == object.id());
            let Ok(before) = self.columns_read(view, self.catalog) else { continue };
            if is_gone || view.id == relation {
                continue;
            }
            let refuse = |detail: &str, hint: &str| {
                let message = format!("cannot alter {what} because view {} depends on it", view.name);
                let error = SqlError::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, message);
                Err(error.detail(detail).hint(hint))
            };
            match self.columns_read(view, catalog) {
                // Views may read each other, and none of them can be read then.
                Err(error) if error.code == SqlState::INVALID_OBJECT_DEFINITION => {}
                Err(error) => return refuse(&error.message, "Drop the view first."),
                Ok(after) if before != after => {
                    let detail = "A name in the query of the view would mean another column.";
                    return refuse(detail, "Drop the view first, and create it again with qualified names.");
                }
                Ok(_) => {}
            }
        }
        Ok(())
    }
}

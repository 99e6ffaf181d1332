//! Foreign keys of a statement that changes rows: the tables that it may reach through them, and how the rows there are
//! found.
//!
//! A row that refers is looked up by the values of its columns, with the access path that an index of its table gives.
//! The plans have these values as parameters: `$1` and on for the old key, and behind them the new one.

use std::sync::Arc;

use sqlparser::ast::{Expr as Ast, Ident};

use super::access::{TableAccess, whole_rows};
use super::binder::{Binder, Typed};
use super::bound_index::TableWrite;
use super::conditions::conjunction;
use super::known::Known;
use super::node::{ChildAction, DeletePlan, References, Referring, UpdatePlan};
use crate::error::SqlError;
use crate::expr::{CompareOp, Expr};
use crate::parse::NO_LOCATION;
use crate::table::{ForeignKey, Index, ReferenceAction, Table, TableId};
use pgtypes::Datum;
use pgtypes::cast::CastContext;

impl Binder<'_> {
    /// Binds all that a writer of a table's rows needs, foreign keys included.
    pub(super) fn table_write(&mut self, table: Arc<Table>) -> Result<TableWrite, SqlError> {
        if table.has_references() {
            let found = self.references_of(&table)?;
            self.references.get_or_insert_default().add(found);
        }
        self.note_domains_of(&table);
        TableWrite::bind(table, self.catalog)
    }

    fn references_of(&mut self, table: &Arc<Table>) -> Result<References, SqlError> {
        let mut found = References::default();
        let mut waiting = vec![Arc::clone(table)];
        while let Some(table) = waiting.pop() {
            if found.children.contains_key(&table.id) {
                continue;
            }
            found.tables.insert(table.id, Arc::clone(&table));
            found.parents.insert(table.id, TableAccess::whole(Arc::clone(&table), Vec::new()));
            for key in &table.foreign_keys {
                if let Some(parent) = self.by_id(key.parent) {
                    found.parents.insert(parent.id, TableAccess::whole(parent, Vec::new()));
                }
            }
            let mut children = Vec::new();
            for id in children_of(&table) {
                let Some(child) = self.by_id(id) else { continue };
                for (position, key) in child.foreign_keys.iter().enumerate().filter(|(_, key)| key.parent == table.id) {
                    let referring = self.referring(&table, &child, (position, key))?;
                    if referring.writes() {
                        waiting.push(Arc::clone(&child));
                    }
                    children.push(referring);
                }
            }
            found.children.insert(table.id, children);
        }
        Ok(found)
    }

    /// The table of an id. The plan is valid as long as it is the same.
    fn by_id(&self, id: TableId) -> Option<Arc<Table>> {
        let table = self.catalog.by_id(id)?;
        self.look_up(Some(table.schema), &table.name)?.table().cloned()
    }

    fn referring(
        &mut self,
        parent: &Table,
        child: &Arc<Table>,
        (position, key): (usize, &ForeignKey),
    ) -> Result<Referring, SqlError> {
        self.note_domains_of(child);
        let write = TableWrite::bind(Arc::clone(child), self.catalog)?;
        let columns: Vec<usize> = key.parent_columns.iter().filter_map(|id| parent.position_of(*id)).collect();
        if columns.len() != key.columns.len() {
            return Err(SqlError::internal("a foreign key refers to a column that is gone"));
        }
        let nowhere = Ast::Identifier(Ident::new("key"));
        let mut conditions = Vec::with_capacity(columns.len());
        for (at, (own, there)) in key.columns.iter().zip(&columns).enumerate() {
            let column = Typed::new(Expr::Column(*own), child.columns[*own].ty, NO_LOCATION);
            let value = Typed::new(Expr::Param(at), parent.columns[*there].ty, NO_LOCATION);
            conditions.push(self.compare(CompareOp::Eq, column, value, (&nowhere, &nowhere))?.expr);
        }
        // By rule: statistics are none of the reasons to bind a change of one row again.
        let (access, filter) = whole_rows(&write, conjunction(conditions), &Known::default());
        let on_delete = self.child_action(key.on_delete, &write, key, (&access, &filter), None)?;
        let on_update = self.child_action(key.on_update, &write, key, (&access, &filter), Some((parent, &columns)))?;
        Ok(Referring { child: Arc::clone(child), position, columns, access, filter, on_delete, on_update })
    }

    /// What becomes of the rows that refer. `new`: the columns of the new key, of an update.
    fn child_action(
        &mut self,
        action: ReferenceAction,
        write: &TableWrite,
        key: &ForeignKey,
        (access, filter): (&TableAccess, &Option<Expr>),
        new: Option<(&Table, &[usize])>,
    ) -> Result<ChildAction, SqlError> {
        let child = &*write.table;
        let mut assignments = Vec::with_capacity(key.columns.len());
        for (at, own) in key.columns.iter().enumerate() {
            let column = &child.columns[*own];
            let value = match (action, new) {
                (ReferenceAction::NoAction, _) => return Ok(ChildAction::NoAction),
                (ReferenceAction::Restrict, _) => return Ok(ChildAction::Restrict),
                (ReferenceAction::Cascade, None) => {
                    let (access, filter, write) = (access.clone(), filter.clone(), write.clone());
                    let plan = DeletePlan { access, filter, write, returning: None, joined: None };
                    return Ok(ChildAction::Delete(Box::new(plan)));
                }
                (ReferenceAction::Cascade, Some((parent, columns))) => {
                    let ty = columns.get(at).and_then(|there| parent.columns.get(*there)).map_or(column.ty, |c| c.ty);
                    let value = Typed::new(Expr::Param(key.columns.len() + at), ty, NO_LOCATION);
                    let value = self.coerce(value, column.ty, CastContext::Explicit)?;
                    value.ok_or_else(|| self.unsupported("this foreign key is", NO_LOCATION))?.expr
                }
                (ReferenceAction::SetNull, _) => Expr::Const(Datum::Null),
                (ReferenceAction::SetDefault, _) => self.default_of(column)?,
            };
            assignments.push((*own, value));
        }
        let (changes_key, changes_unique) = changed_keys(child, &assignments);
        Ok(ChildAction::Update(Box::new(UpdatePlan {
            access: access.clone(),
            filter: filter.clone(),
            assignments,
            write: write.clone(),
            changes_key,
            changes_unique,
            returning: None,
            joined: None,
        })))
    }
}

/// Whether assignments change the primary key, and whether they change a unique key.
pub(super) fn changed_keys(table: &Table, assignments: &[(usize, Expr)]) -> (bool, bool) {
    let is_generated = |column: &usize| table.columns.get(*column).is_some_and(|column| column.generated.is_some());
    let assigns = |column: &usize| is_generated(column) || assignments.iter().any(|(assigned, _)| assigned == column);
    let changes_key = table.primary_key.iter().any(assigns);
    let unique = table.indexes.iter().filter(|index| index.unique).filter_map(Index::plain_columns);
    (changes_key, changes_key || unique.flatten().any(|column| assigns(&column)))
}

/// The tables with foreign keys to a table.
fn children_of(table: &Table) -> Vec<TableId> {
    let refers_to_itself = table.foreign_keys.iter().any(|key| key.parent == table.id);
    table.referenced_by.iter().copied().chain(refers_to_itself.then_some(table.id)).collect()
}

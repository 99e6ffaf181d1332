//! Binding of UPDATE and DELETE.

use std::sync::Arc;

use sqlparser::ast::{Delete, Expr as Ast, Spanned, TableFactor, TableWithJoins, Update};
use sqlparser::tokenizer::Location;

use super::access::whole_rows;
use super::binder::{Binder, Scope};
use super::bound_index::TableWrite;
use super::from::From;
use super::node::{DeletePlan, ResultColumn, UpdatePlan};
use crate::error::SqlError;
use crate::expr::Expr;
use crate::table::{Index, Table};

impl Binder<'_> {
    /// Binds UPDATE.
    pub(super) fn update(&mut self, update: &Update) -> Result<(UpdatePlan, Option<Vec<ResultColumn>>), SqlError> {
        let at = update.table.span().start;
        if update.from.is_some() {
            return Err(self.unsupported("UPDATE ... FROM is", at));
        }
        if update.or.is_some() || update.output.is_some() || update.limit.is_some() || !update.order_by.is_empty() {
            return Err(self.unsupported("this form of UPDATE is", at));
        }
        let (table, scope) = self.changed_table(std::slice::from_ref(&update.table), at)?;
        self.clause = "UPDATE";
        let mut assignments = Vec::new();
        for assignment in &update.assignments {
            self.assignment(assignment, &table, &scope, &mut assignments)?;
        }
        let filter = self.where_clause(update.selection.as_ref(), &scope)?;
        let (returning, columns) = self.returning(update.returning.as_deref(), &scope)?;
        let assigns = |column: &usize| assignments.iter().any(|(assigned, _)| assigned == column);
        let changes_key = table.primary_key.iter().any(assigns);
        let unique = table.indexes.iter().filter(|index| index.unique).filter_map(Index::plain_columns);
        let changes_unique = changes_key || unique.flatten().any(|column| assigns(&column));
        let write = TableWrite::bind(table.clone(), self.catalog)?;
        let (access, filter) = whole_rows(&write, filter);
        Ok((UpdatePlan { access, filter, assignments, write, changes_key, changes_unique, returning }, columns))
    }

    fn changed_table(&mut self, from: &[TableWithJoins], at: Location) -> Result<(Arc<Table>, Scope), SqlError> {
        if let [TableWithJoins { relation: TableFactor::Table { name, .. }, .. }] = from
            && self.find_view(name)?.is_some()
        {
            return Err(self.unsupported("UPDATE and DELETE of a view are", at));
        }
        match self.from(from)? {
            (From::Table(table), scope) => {
                self.check_changeable(&table)?;
                Ok((table, scope))
            }
            _ => Err(self.unsupported("this target is", at)),
        }
    }

    fn where_clause(&mut self, selection: Option<&Ast>, scope: &Scope) -> Result<Option<Expr>, SqlError> {
        self.clause = "WHERE";
        selection.map(|ast| self.condition(ast, scope, "WHERE")).transpose()
    }

    /// Binds DELETE.
    pub(super) fn delete(
        &mut self,
        delete: &Delete,
        from: &[TableWithJoins],
    ) -> Result<(DeletePlan, Option<Vec<ResultColumn>>), SqlError> {
        let at = delete.delete_token.0.span.start;
        if delete.using.is_some() || !delete.tables.is_empty() {
            return Err(self.unsupported("DELETE ... USING is", at));
        }
        if delete.output.is_some() || delete.limit.is_some() || !delete.order_by.is_empty() {
            return Err(self.unsupported("this form of DELETE is", at));
        }
        let (table, scope) = self.changed_table(from, at)?;
        let filter = self.where_clause(delete.selection.as_ref(), &scope)?;
        let (returning, columns) = self.returning(delete.returning.as_deref(), &scope)?;
        let write = TableWrite::bind(table, self.catalog)?;
        let (access, filter) = whole_rows(&write, filter);
        Ok((DeletePlan { access, filter, write, returning }, columns))
    }
}

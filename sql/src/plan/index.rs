//! Indexes as expressions over a table's rows: what a writer of a table evaluates to know a row's entries, and what a
//! reader compares with its conditions.
//!
//! The catalog stores the expressions and the predicate of an index as SQL. They are immutable: neither the session nor
//! the time has a part in their values.

use std::sync::Arc;

use sqlparser::ast::Expr as Ast;

use super::binder::{Binder, Scope};
use super::bound_index::{BoundIndex, TableWrite};
use super::domains::column_checks;
use super::stored::bind_stored;
use crate::catalog::Catalog;
use crate::error::{SqlError, SqlState};
use crate::expr::Expr;
use crate::expr::fold::needs_session;
use crate::table::{Check, Column, IndexedValue, Table};
use pgtypes::SqlType;

impl TableWrite {
    /// Binds the indexes, the generated columns and the checks of a table.
    pub(crate) fn bind(table: Arc<Table>, catalog: &Catalog) -> Result<TableWrite, SqlError> {
        let indexes = bind_indexes(&table, catalog)?;
        let mut generated = Vec::new();
        for (at, column) in table.columns.iter().enumerate() {
            if let Some(text) = &column.generated {
                generated.push((at, stored_generated(text, &table, column, catalog)?));
            }
        }
        let check = |check: &Check| stored_condition(&check.text, &table, catalog);
        let checks = table.checks.iter().map(check).collect::<Result<Vec<_>, SqlError>>()?;
        let domains = column_checks(&table, catalog)?;
        let referenced = referenced_columns(&table, catalog);
        Ok(TableWrite { table, indexes, generated, domains, checks, referenced })
    }
}

/// The positions of the columns that foreign keys refer to.
fn referenced_columns(table: &Table, catalog: &Catalog) -> Vec<usize> {
    let children = table.referenced_by.iter().filter_map(|id| catalog.by_id(*id)).map(|child| &**child);
    let keys = children.chain([table]).flat_map(|child| &child.foreign_keys).filter(|key| key.parent == table.id);
    let mut columns: Vec<usize> =
        keys.flat_map(|key| &key.parent_columns).filter_map(|id| table.position_of(*id)).collect();
    columns.sort_unstable();
    columns.dedup();
    columns
}

/// The indexes of a table as expressions over its rows.
pub(crate) fn bind_indexes(table: &Table, catalog: &Catalog) -> Result<Vec<BoundIndex>, SqlError> {
    let bind = |index: &crate::table::Index| {
        let columns = index.columns.iter().map(|column| match &column.value {
            IndexedValue::Column(at) => Ok(Expr::Column(*at)),
            IndexedValue::Expression { text, .. } => stored_expression(text, table, catalog).map(|(expr, _)| expr),
        });
        let columns = columns.collect::<Result<Vec<_>, SqlError>>()?;
        let predicate = index.predicate.as_deref().map(|text| stored_condition(text, table, catalog)).transpose()?;
        Ok(BoundIndex { columns, predicate })
    };
    table.indexes.iter().map(bind).collect()
}

/// Binds the stored text of an expression over a table's columns.
pub(super) fn stored_expression(text: &str, table: &Table, catalog: &Catalog) -> Result<(Expr, SqlType), SqlError> {
    bind_stored(text, catalog, |binder, ast| {
        let value = binder.expr(ast, &Scope::of_columns(table))?;
        let value = binder.resolve_unknown(value)?;
        Ok((value.expr, value.ty))
    })
}

/// Binds the stored text of a condition over a table's columns.
pub(super) fn stored_condition(text: &str, table: &Table, catalog: &Catalog) -> Result<Expr, SqlError> {
    bind_stored(text, catalog, |binder, ast| binder.condition(ast, &Scope::of_columns(table), "WHERE"))
}

/// Binds the stored text of a generated column.
pub(super) fn stored_generated(
    text: &str,
    table: &Table,
    column: &Column,
    catalog: &Catalog,
) -> Result<Expr, SqlError> {
    bind_stored(text, catalog, |binder, ast| {
        let value = binder.expr(ast, &Scope::of_columns(table))?;
        binder.assign_default(value, column)
    })
}

/// A stored condition as PostgreSQL writes it over the columns of a table; `None` if that is not known.
pub(super) fn normal_condition(text: &str, table: &Table, catalog: &Catalog) -> Option<String> {
    let bind = |binder: &mut Binder<'_>, ast: &Ast| Ok(binder.normal_text(ast, &Scope::of_columns(table)));
    let normal = bind_stored(text, catalog, bind).ok()??.text;
    let is_same = stored_condition(&normal, table, catalog).ok()? == stored_condition(text, table, catalog).ok()?;
    is_same.then_some(normal)
}

/// Whether the value follows from the row alone.
pub(super) fn is_immutable(expr: &Expr) -> bool {
    let is_mutable = |node: &Expr| match node {
        Expr::Domain { check, .. } => !check.conditions.iter().all(|(_, condition)| is_immutable(condition)),
        node => needs_session(node) || matches!(node, Expr::Context(_) | Expr::Input { .. }),
    };
    !expr.is_volatile() && !expr.any(&is_mutable)
}

/// 42P17 if a part of an index depends on more than the row.
pub(super) fn check_immutable(expr: &Expr, part: &str) -> Result<(), SqlError> {
    if is_immutable(expr) {
        return Ok(());
    }
    let message = format!("functions in index {part} must be marked IMMUTABLE");
    Err(SqlError::new(SqlState::INVALID_OBJECT_DEFINITION, message))
}

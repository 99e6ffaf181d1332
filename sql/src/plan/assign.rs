//! Binding of values for columns: conversion to the column's type, DEFAULT, and assignments.

use sqlparser::ast::{Assignment, AssignmentTarget, Expr as Ast, ObjectName, Query, Spanned};

use super::binder::{Binder, Scope, Typed};
use super::domains::default_text;
use super::names::is_default;
use super::subscripted::Target;
use crate::catalog::Catalog;
use crate::error::{SqlError, SqlState};
use crate::expr::Expr;
use crate::parse::{self, query_start, start_of};
use crate::table::{Column, Identity, Table};
use pgtypes::cast::CastContext;
use pgtypes::{Datum, SqlType};

impl Binder<'_> {
    /// The position of a column by its name in a target list.
    pub(super) fn named_column(&self, table: &Table, name: &ObjectName) -> Result<usize, SqlError> {
        let parts = self.name_parts(name)?;
        let first = parts.first().map_or("", String::as_str);
        let place = if parts.len() == 1 { table.column(first) } else { None };
        place.ok_or_else(|| {
            let message = format!("column \"{first}\" of relation \"{}\" does not exist", table.name);
            self.error(SqlState::UNDEFINED_COLUMN, message, name.span().start)
        })
    }

    /// Converts a value to a column's type.
    pub(super) fn assign(&mut self, value: Typed, column: &Column) -> Result<Expr, SqlError> {
        let (from, at) = (self.type_text(value.ty), value.at);
        match self.coerce(value, column.ty, CastContext::Assignment)? {
            Some(value) => Ok(value.expr),
            None => {
                let message = format!(
                    "column \"{}\" is of type {} but expression is of type {from}",
                    column.name,
                    self.column_type_text(column)
                );
                let hint = "You will need to rewrite or cast the expression.";
                Err(self.error(SqlState::DATATYPE_MISMATCH, message, at).hint(hint))
            }
        }
    }

    /// The DEFAULT of a column, or of its domain; NULL without one.
    pub(super) fn default_of(&self, column: &Column) -> Result<Expr, SqlError> {
        column.domain.iter().for_each(|domain| self.note_domains(*domain));
        match default_text(column, self.catalog) {
            Some(text) => bind_default(text, column, self.catalog),
            None => Ok(Expr::Const(Datum::Null)),
        }
    }

    /// Converts a default value, or that of a generated column, to the column's type.
    pub(super) fn assign_default(&mut self, value: Typed, column: &Column) -> Result<Expr, SqlError> {
        let from = self.type_text(value.ty);
        match self.coerce(value, column.ty, CastContext::Assignment)? {
            Some(value) => Ok(self.of_domain(value, column.domain)?.expr),
            None => {
                let message = format!(
                    "column \"{}\" is of type {} but default expression is of type {from}",
                    column.name,
                    self.column_type_text(column)
                );
                let hint = "You will need to rewrite or cast the expression.";
                Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message).hint(hint))
            }
        }
    }

    /// 428C9 for a value given to a generated column.
    pub(super) fn refuse_generated(&self, column: &Column, message: &str) -> Result<(), SqlError> {
        if column.generated.is_none() {
            return Ok(());
        }
        let detail = format!("Column \"{}\" is a generated column.", column.name);
        Err(SqlError::new(SqlState::GENERATED_ALWAYS, message).detail(detail))
    }

    /// The default values of a table's columns.
    pub(super) fn defaults(&self, table: &Table) -> Result<Vec<Expr>, SqlError> {
        table.columns.iter().map(|column| self.default_of(column)).collect()
    }

    /// Binds `column = value` or `(a, b) = (x, y)` and adds it to `out`.
    pub(super) fn assignment(
        &mut self,
        assignment: &Assignment,
        table: &Table,
        scope: &Scope,
        out: &mut Vec<(usize, Expr)>,
    ) -> Result<(), SqlError> {
        let pairs: Vec<(&ObjectName, &Ast)> = match (&assignment.target, &assignment.value) {
            (AssignmentTarget::ColumnName(name), value) => vec![(name, value)],
            (AssignmentTarget::Tuple(names), Ast::Tuple(values)) => {
                self.check_count(names.len(), values.len(), &assignment.value)?;
                names.iter().zip(values).collect()
            }
            (AssignmentTarget::Tuple(names), Ast::Subquery(query)) => {
                return self.row_assignment((names, query, &assignment.value), table, scope, out);
            }
            (AssignmentTarget::Tuple(names), value) if names.len() == 1 => vec![(&names[0], value)],
            (AssignmentTarget::Tuple(_), value) => {
                let message = "source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression";
                return Err(self.error(SqlState::FEATURE_NOT_SUPPORTED, message, start_of(value)));
            }
        };
        for (name, ast) in pairs {
            let target = self.assigned_target(table, name, scope, out)?;
            let column = &table.columns[target.place];
            let value = if is_default(ast) {
                self.refuse_default(&target)?;
                self.default_of(column)?
            } else if column.identity == Some(Identity::Always) {
                let message = format!("column \"{}\" can only be updated to DEFAULT", column.name);
                let detail = always_detail(&column.name);
                return Err(SqlError::new(SqlState::GENERATED_ALWAYS, message).detail(detail));
            } else {
                self.refuse_generated(column, &only_default(column))?;
                let value = self.expr(ast, scope)?;
                self.assign_to(value, column, &target)?
            };
            put(&target, value, column, out);
        }
        Ok(())
    }

    /// A column that is assigned once, or whose parts are.
    fn assigned_target(
        &mut self,
        table: &Table,
        name: &ObjectName,
        scope: &Scope,
        out: &[(usize, Expr)],
    ) -> Result<Target, SqlError> {
        let target = self.assigned(table, name, scope)?;
        let clashes = |(earlier, value): &(usize, Expr)| {
            *earlier == target.place && !(target.is_part() && matches!(value, Expr::Assigned { .. }))
        };
        if out.iter().any(clashes) {
            let message = format!("multiple assignments to same column \"{}\"", table.columns[target.place].name);
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
        }
        Ok(target)
    }

    /// Converts a value to the type of a column, or of a part of it.
    pub(super) fn assign_to(&mut self, value: Typed, column: &Column, target: &Target) -> Result<Expr, SqlError> {
        if target.is_part() { self.assign_part(value, column, target) } else { self.assign(value, column) }
    }

    fn check_count(&self, names: usize, values: usize, ast: &Ast) -> Result<(), SqlError> {
        if names == values {
            return Ok(());
        }
        let message = "number of columns does not match number of values";
        let position = self.position_before(start_of(ast), "(");
        Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(position))
    }

    /// `(a, b) = (SELECT x, y ...)`: the sub-query runs once for a row.
    fn row_assignment(
        &mut self,
        (names, query, ast): (&[ObjectName], &Query, &Ast),
        table: &Table,
        scope: &Scope,
        out: &mut Vec<(usize, Expr)>,
    ) -> Result<(), SqlError> {
        let at = query_start(query);
        let (columns, fields) = self.fields_of(query, scope)?;
        self.check_count(names.len(), columns.len(), ast)?;
        for (name, (ty, expr)) in names.iter().zip(columns.into_iter().zip(fields)) {
            let target = self.assigned_target(table, name, scope, out)?;
            let column = &table.columns[target.place];
            self.refuse_generated(column, &only_default(column))?;
            let value = self.assign_to(Typed::new(expr, ty, at), column, &target)?;
            put(&target, value, column, out);
        }
        Ok(())
    }
}

/// Adds the value of a target to those of the row. Parts of a column are assigned one after the other.
fn put(target: &Target, value: Expr, column: &Column, out: &mut Vec<(usize, Expr)>) {
    if let Some((_, earlier)) = out.iter_mut().find(|(place, _)| *place == target.place) {
        let before = std::mem::replace(earlier, Expr::Const(Datum::Null));
        *earlier = target.over(before, value, column);
        return;
    }
    out.push((target.place, target.over(Expr::Column(target.place), value, column)));
}

fn only_default(column: &Column) -> String {
    format!("column \"{}\" can only be updated to DEFAULT", column.name)
}

/// What errors say of a column GENERATED ALWAYS.
pub(super) fn always_detail(column: &str) -> String {
    format!("Column \"{column}\" is an identity column defined as GENERATED ALWAYS.")
}

/// Binds the stored text of a column's DEFAULT.
pub(super) fn bind_default(text: &str, column: &Column, catalog: &Catalog) -> Result<Expr, SqlError> {
    with_default(text, column, catalog, |mut binder, ast| bind_default_tree(&mut binder, ast, column))
}

/// The type of a stored DEFAULT before its implicit cast to that of the column. A literal has that of the column.
pub(super) fn type_of_default(text: &str, column: &Column, catalog: &Catalog) -> Result<SqlType, SqlError> {
    let ty = with_default(text, column, catalog, |mut binder, ast| Ok(binder.expr(ast, &Scope::default())?.ty))?;
    Ok(if ty == SqlType::UNKNOWN { column.ty } else { ty })
}

/// Hands out the tree of a stored DEFAULT.
fn with_default<T>(
    text: &str,
    column: &Column,
    catalog: &Catalog,
    take: impl FnOnce(Binder<'_>, &Ast) -> Result<T, SqlError>,
) -> Result<T, SqlError> {
    let damaged = || {
        let message = format!("default of column \"{}\" cannot be read", column.name);
        SqlError::new(SqlState::DATA_CORRUPTED, message)
    };
    let statement = parse::parse(&format!("SELECT {text}"))?.pop().ok_or_else(damaged)?;
    let ast = statement.only_expression().ok_or_else(damaged)?;
    let mut binder = Binder::new(&statement, None, catalog);
    binder.is_stored = true;
    take(binder, ast)
}

/// Binds the tree of a column's DEFAULT.
pub(super) fn bind_default_tree(binder: &mut Binder<'_>, ast: &Ast, column: &Column) -> Result<Expr, SqlError> {
    binder.clause = "DEFAULT expressions";
    binder.refuses_queries = Some("DEFAULT expression");
    let value = binder.expr(ast, &Scope::default())?;
    if !binder.params.is_empty() {
        return Err(binder.error(SqlState::UNDEFINED_PARAMETER, "there is no parameter $1", start_of(ast)));
    }
    binder.assign_default(value, column)
}

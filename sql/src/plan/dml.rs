//! Binding of INSERT, UPDATE and DELETE.

use std::sync::Arc;

use sqlparser::ast::{
    Assignment, AssignmentTarget, ConflictTarget, Delete, Expr as Ast, Insert, ObjectName, OnConflict,
    OnConflictAction, OnInsert, Query, SelectItem, SetExpr, Spanned, TableObject, TableWithJoins, Update, Values,
};
use sqlparser::tokenizer::Location;

use super::binder::{Binder, Scope, ScopeTable, Typed};
use super::names::fold_ident;
use super::select::{is_default, query_start, whole_rows};
use super::{Conflict, DeletePlan, InsertPlan, ResultColumn, SelectPlan, Source, UpdatePlan};
use crate::catalog::Catalog;
use crate::error::{SqlError, SqlState};
use crate::expr::Expr;
use crate::parse::{self, NO_LOCATION, start_of};
use crate::table::{Column, Table};
use crate::types::Datum;
use crate::types::cast::CastContext;

/// RETURNING: expressions and result columns.
type Returning = (Option<Vec<Expr>>, Option<Vec<ResultColumn>>);

/// The source of INSERT, and the table's columns over its rows; `None` if they are the same.
type InsertSource = (SelectPlan, Option<Vec<Expr>>);

/// Limit of rows of one VALUES. A transaction cannot write more keys.
const MAX_ROWS: usize = 300_000;

impl Binder<'_> {
    /// Binds INSERT.
    pub(super) fn insert(&mut self, insert: &Insert) -> Result<(InsertPlan, Option<Vec<ResultColumn>>), SqlError> {
        let TableObject::TableName(name) = &insert.table else {
            return Err(self.unsupported("this target of INSERT is", insert.span().start));
        };
        let at = name.span().start;
        let odd = insert.or.is_some()
            || insert.overwrite
            || insert.partitioned.is_some()
            || !insert.assignments.is_empty()
            || insert.output.is_some()
            || insert.insert_alias.is_some();
        if odd {
            return Err(self.unsupported("this form of INSERT is", at));
        }
        let table = self.table(name)?;
        let alias = insert.table_alias.as_ref().map(|alias| self.alias(&alias.alias)).transpose()?;
        let targets = self.target_columns(&table, &insert.columns)?;
        let (source, columns) = match &insert.source {
            None => (self.default_row(&table)?, None),
            Some(query) => match plain_values(query) {
                Some(values) => self.insert_values(&table, &targets, values, insert)?,
                None => self.insert_query(&table, &targets, query, insert)?,
            },
        };
        let conflict = match &insert.on {
            None => Conflict::Fail,
            Some(OnInsert::OnConflict(on)) => self.on_conflict(&table, alias.as_deref(), on, at)?,
            Some(_) => return Err(self.unsupported("this form of INSERT is", at)),
        };
        let scope = Scope::of(&table, alias.as_deref());
        let (returning, result) = self.returning(insert.returning.as_deref(), &scope)?;
        let reads_itself = matches!(&source.source, Source::Table(access) if access.table.id == table.id);
        Ok((InsertPlan { table, source, columns, reads_itself, conflict, returning }, result))
    }

    /// Positions of the target columns, in the order of the values.
    fn target_columns(&self, table: &Table, names: &[ObjectName]) -> Result<Vec<usize>, SqlError> {
        if names.is_empty() {
            return Ok((0..table.columns.len()).collect());
        }
        let mut targets = Vec::with_capacity(names.len());
        for name in names {
            let at = name.span().start;
            let place = self.named_column(table, name)?;
            if targets.contains(&place) {
                let message = format!("column \"{}\" specified more than once", table.columns[place].name);
                return Err(self.error(SqlState::DUPLICATE_COLUMN, message, at));
            }
            targets.push(place);
        }
        Ok(targets)
    }

    fn named_column(&self, table: &Table, name: &ObjectName) -> Result<usize, SqlError> {
        let parts = self.name_parts(name)?;
        let first = parts.first().map_or("", String::as_str);
        let place = if parts.len() == 1 { table.column(first) } else { None };
        place.ok_or_else(|| {
            let message = format!("column \"{first}\" of relation \"{}\" does not exist", table.name);
            self.error(SqlState::UNDEFINED_COLUMN, message, name.span().start)
        })
    }

    fn default_row(&mut self, table: &Table) -> Result<SelectPlan, SqlError> {
        Ok(values_plan(vec![self.defaults(table)?]))
    }

    fn insert_values(
        &mut self,
        table: &Table,
        targets: &[usize],
        values: &Values,
        insert: &Insert,
    ) -> Result<InsertSource, SqlError> {
        self.clause = "VALUES";
        if values.rows.len() > MAX_ROWS {
            let message = format!("INSERT has {} rows, of at most {MAX_ROWS}", values.rows.len());
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
        }
        let scope = Scope::default();
        let mut rows = Vec::with_capacity(values.rows.len());
        let width = self.values_width(values)?;
        for row in &values.rows {
            if row.content.len() != width {
                let at = row.content.first().map_or(NO_LOCATION, start_of);
                return Err(self.error(SqlState::SYNTAX_ERROR, "VALUES lists must all be the same length", at));
            }
            let surplus = row.content.get(targets.len()).map(start_of);
            self.check_width(width, targets.len(), surplus, insert)?;
            let mut out = Vec::with_capacity(width);
            for (ast, target) in row.content.iter().zip(targets) {
                let column = &table.columns[*target];
                out.push(if is_default(ast) {
                    self.default_of(column)?
                } else {
                    let value = self.expr(ast, &scope)?;
                    self.assign(value, column)?
                });
            }
            rows.push(out);
        }
        // The rows have only the given columns, however wide the table is.
        let given = &targets[..width.min(targets.len())];
        let columns = if given.iter().copied().eq(0..table.columns.len()) {
            None
        } else {
            let mut out = self.defaults(table)?;
            given.iter().enumerate().for_each(|(at, target)| out[*target] = Expr::Column(at));
            Some(out)
        };
        Ok((values_plan(rows), columns))
    }

    /// The default values of a table's columns.
    fn defaults(&self, table: &Table) -> Result<Vec<Expr>, SqlError> {
        table.columns.iter().map(|column| self.default_of(column)).collect()
    }

    /// Checks the number of values. Fewer than columns are allowed only without a column list.
    fn check_width(
        &self,
        values: usize,
        targets: usize,
        surplus: Option<Location>,
        insert: &Insert,
    ) -> Result<(), SqlError> {
        if values > targets {
            let message = "INSERT has more expressions than target columns";
            return Err(self.error(SqlState::SYNTAX_ERROR, message, surplus.unwrap_or(NO_LOCATION)));
        }
        match insert.columns.get(values) {
            Some(column) => {
                let message = "INSERT has more target columns than expressions";
                Err(self.error(SqlState::SYNTAX_ERROR, message, column.span().start))
            }
            None => Ok(()),
        }
    }

    fn insert_query(
        &mut self,
        table: &Table,
        targets: &[usize],
        query: &Query,
        insert: &Insert,
    ) -> Result<InsertSource, SqlError> {
        self.targets = targets.iter().map(|at| table.columns[*at].ty).collect();
        let bound = self.query(query);
        self.targets = Vec::new();
        let (source, columns) = bound?;
        self.check_width(columns.len(), targets.len(), Some(query_start(query)), insert)?;
        let mut out = self.defaults(table)?;
        for (at, (column, target)) in columns.iter().zip(targets).enumerate() {
            let value = Typed::new(Expr::Column(at), column.ty, query_start(query));
            out[*target] = self.assign(value, &table.columns[*target])?;
        }
        Ok((source, Some(out)))
    }

    /// Converts a value to a column's type.
    fn assign(&mut self, value: Typed, column: &Column) -> Result<Expr, SqlError> {
        let (from, at) = (value.ty, value.at);
        match self.coerce(value, column.ty, CastContext::Assignment)? {
            Some(value) => Ok(value.expr),
            None => {
                let message = format!(
                    "column \"{}\" is of type {} but expression is of type {}",
                    column.name,
                    column.ty.base_name(),
                    from.base_name()
                );
                let hint = "You will need to rewrite or cast the expression.";
                Err(self.error(SqlState::DATATYPE_MISMATCH, message, at).hint(hint))
            }
        }
    }

    /// The DEFAULT of a column; NULL without one.
    pub(super) fn default_of(&self, column: &Column) -> Result<Expr, SqlError> {
        match &column.default {
            Some(text) => bind_default(text, column, self.catalog),
            None => Ok(Expr::Const(Datum::Null)),
        }
    }

    fn on_conflict(
        &mut self,
        table: &Table,
        alias: Option<&str>,
        on: &OnConflict,
        at: Location,
    ) -> Result<Conflict, SqlError> {
        match &on.conflict_target {
            Some(ConflictTarget::Columns(idents)) => self.check_conflict_columns(table, idents)?,
            Some(ConflictTarget::OnConstraint(name)) => {
                let constraint = self.name_parts(name)?.pop().unwrap_or_default();
                if table.has_hidden_key() || constraint != table.key_name {
                    let message = format!("constraint \"{constraint}\" for table \"{}\" does not exist", table.name);
                    return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message));
                }
            }
            None if matches!(on.action, OnConflictAction::DoUpdate(_)) => {
                let message = "ON CONFLICT DO UPDATE requires inference specification or constraint name";
                return Err(self
                    .error(SqlState::SYNTAX_ERROR, message, at)
                    .hint("For example, ON CONFLICT (column_name)."));
            }
            None => {}
        }
        let OnConflictAction::DoUpdate(update) = &on.action else { return Ok(Conflict::DoNothing) };
        let mut scope = Scope::of(table, alias);
        scope.tables.push(ScopeTable::new(table, Some("excluded"), table.columns.len()));
        let mut assignments = Vec::new();
        for assignment in &update.assignments {
            self.assignment(assignment, table, &scope, &mut assignments)?;
        }
        if assignments.iter().any(|(column, _)| table.primary_key.contains(column)) {
            return Err(self.unsupported("changing the primary key in ON CONFLICT DO UPDATE is", at));
        }
        let filter = match &update.selection {
            Some(ast) => Some(self.condition(ast, &scope, "WHERE")?),
            None => None,
        };
        Ok(Conflict::DoUpdate { assignments, filter })
    }

    /// The columns after ON CONFLICT must be the primary key's, the only unique constraint.
    fn check_conflict_columns(&self, table: &Table, idents: &[sqlparser::ast::Ident]) -> Result<(), SqlError> {
        let mut columns = Vec::new();
        for ident in idents {
            let name = fold_ident(ident);
            match table.column(&name) {
                Some(column) => columns.push(column),
                None => {
                    let message = format!("column \"{name}\" does not exist");
                    let position = self.position_before(ident.span.start, "(");
                    return Err(SqlError::new(SqlState::UNDEFINED_COLUMN, message).at(position));
                }
            }
        }
        let mut key = table.primary_key.clone();
        key.sort_unstable();
        columns.sort_unstable();
        columns.dedup();
        if key.is_empty() || key != columns {
            let message = "there is no unique or exclusion constraint matching the ON CONFLICT specification";
            return Err(SqlError::new(SqlState::INVALID_COLUMN_REFERENCE, message));
        }
        Ok(())
    }

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
        let changes_key = assignments.iter().any(|(column, _)| table.primary_key.contains(column));
        let (access, filter) = whole_rows(table, filter);
        Ok((UpdatePlan { access, filter, assignments, changes_key, returning }, columns))
    }

    fn changed_table(&mut self, from: &[TableWithJoins], at: Location) -> Result<(Arc<Table>, Scope), SqlError> {
        match self.from(from)? {
            (Some(table), scope) => Ok((table, scope)),
            _ => Err(self.unsupported("this target is", at)),
        }
    }

    fn where_clause(&mut self, selection: Option<&Ast>, scope: &Scope) -> Result<Option<Expr>, SqlError> {
        self.clause = "WHERE";
        selection.map(|ast| self.condition(ast, scope, "WHERE")).transpose()
    }

    /// Binds `column = value` or `(a, b) = (x, y)` and adds it to `out`.
    fn assignment(
        &mut self,
        assignment: &Assignment,
        table: &Table,
        scope: &Scope,
        out: &mut Vec<(usize, Expr)>,
    ) -> Result<(), SqlError> {
        let pairs: Vec<(&ObjectName, &Ast)> = match (&assignment.target, &assignment.value) {
            (AssignmentTarget::ColumnName(name), value) => vec![(name, value)],
            (AssignmentTarget::Tuple(names), Ast::Tuple(values)) => {
                if names.len() != values.len() {
                    let message = "number of columns does not match number of values";
                    let position = self.position_before(start_of(&assignment.value), "(");
                    return Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(position));
                }
                names.iter().zip(values).collect()
            }
            (AssignmentTarget::Tuple(names), value) if names.len() == 1 => vec![(&names[0], value)],
            _ => return Err(self.unsupported("this form of assignment is", start_of(&assignment.value))),
        };
        for (name, ast) in pairs {
            let place = self.named_column(table, name)?;
            let column = &table.columns[place];
            if out.iter().any(|(earlier, _)| *earlier == place) {
                let message = format!("multiple assignments to same column \"{}\"", column.name);
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
            }
            let value = if is_default(ast) {
                self.default_of(column)?
            } else {
                let value = self.expr(ast, scope)?;
                self.assign(value, column)?
            };
            out.push((place, value));
        }
        Ok(())
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
        let (access, filter) = whole_rows(table, filter);
        Ok((DeletePlan { access, filter, returning }, columns))
    }

    fn returning(&mut self, items: Option<&[SelectItem]>, scope: &Scope) -> Result<Returning, SqlError> {
        let Some(items) = items else { return Ok((None, None)) };
        self.clause = "RETURNING";
        let output = self.projection(items, scope)?;
        Ok((Some(output.exprs), Some(output.columns)))
    }
}

/// Binds the stored text of a column's DEFAULT.
pub(super) fn bind_default(text: &str, column: &Column, catalog: &Catalog) -> Result<Expr, SqlError> {
    let damaged = || {
        let message = format!("default of column \"{}\" cannot be read", column.name);
        SqlError::new(SqlState::DATA_CORRUPTED, message)
    };
    let statement = parse::parse(&format!("SELECT {text}"))?.pop().ok_or_else(damaged)?;
    let sqlparser::ast::Statement::Query(query) = &statement.tree else { return Err(damaged()) };
    let SetExpr::Select(select) = &*query.body else { return Err(damaged()) };
    let [SelectItem::UnnamedExpr(ast)] = &select.projection[..] else { return Err(damaged()) };
    let mut binder = Binder::new(&statement, &[], catalog);
    binder.is_stored = true;
    bind_default_tree(binder, ast, column)
}

/// Binds the tree of a column's DEFAULT.
pub(super) fn bind_default_tree(mut binder: Binder<'_>, ast: &Ast, column: &Column) -> Result<Expr, SqlError> {
    binder.clause = "DEFAULT expressions";
    let value = binder.expr(ast, &Scope::default())?;
    if !binder.params.is_empty() {
        return Err(binder.error(SqlState::UNDEFINED_PARAMETER, "there is no parameter $1", start_of(ast)));
    }
    let from = value.ty;
    match binder.coerce(value, column.ty, CastContext::Assignment)? {
        Some(value) => Ok(value.expr),
        None => {
            let message = format!(
                "column \"{}\" is of type {} but default expression is of type {}",
                column.name,
                column.ty.base_name(),
                from.base_name()
            );
            let hint = "You will need to rewrite or cast the expression.";
            Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message).hint(hint))
        }
    }
}

/// The rows of a query that is only VALUES.
fn plain_values(query: &Query) -> Option<&Values> {
    let plain = query.with.is_none()
        && query.order_by.is_none()
        && query.limit_clause.is_none()
        && query.fetch.is_none()
        && query.locks.is_empty();
    match &*query.body {
        SetExpr::Values(values) if plain => Some(values),
        _ => None,
    }
}

/// A plan that returns these rows unchanged.
fn values_plan(rows: Vec<Vec<Expr>>) -> SelectPlan {
    let width = rows.first().map_or(0, Vec::len);
    SelectPlan {
        source: Source::Values(rows),
        filter: None,
        aggregation: None,
        output: (0..width).map(Expr::Column).collect(),
        visible: width,
        distinct: false,
        sort: Vec::new(),
        limit: None,
        offset: None,
        lock: false,
        names: Vec::new(),
    }
}

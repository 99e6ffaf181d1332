//! Binding of INSERT.

use std::sync::Arc;

use sqlparser::ast::{
    ConflictTarget, Expr as Ast, Ident, Insert, ObjectName, OnConflict, OnConflictAction, OnInsert, Query, SetExpr,
    Spanned, TableObject, Values,
};
use sqlparser::tokenizer::Location;

use super::assign::always_detail;
use super::binder::{Binder, Scope, Typed};
use super::names::{fold_ident, is_default};
use super::node::{Arbiters, Conflict, InsertPlan, ResultColumn};
use super::rel::{SelectPlan, Source};
use super::subscripted::Target;
use crate::error::{SqlError, SqlState};
use crate::expr::Expr;
use crate::parse::{
    CONFLICT_TARGET, NO_ALIAS, NO_LOCATION, OVERRIDING_SYSTEM, OVERRIDING_USER, SOURCE, query_start, start_of,
};
use crate::table::{Column, Identity, Index, Table};
use pgtypes::Datum;

/// The source of INSERT, and the table's columns over its rows; `None` if they are the same.
type InsertSource = (SelectPlan, Option<Vec<Expr>>);

/// Limit of rows of one VALUES. COPY is for more.
const MAX_ROWS: usize = 300_000;

impl Binder<'_> {
    /// Binds INSERT.
    pub(super) fn insert(&mut self, insert: &Insert) -> Result<(InsertPlan, Option<Vec<ResultColumn>>), SqlError> {
        let TableObject::TableName(name) = &insert.table else {
            return Err(self.unsupported("this target of INSERT is", insert.span().start));
        };
        let at = name.span().start;
        let has_unsupported_clause = insert.or.is_some()
            || insert.overwrite
            || !insert.assignments.is_empty()
            || insert.output.is_some()
            || insert.insert_alias.is_some();
        if has_unsupported_clause {
            return Err(self.unsupported("this form of INSERT is", at));
        }
        if self.find_view(name)?.is_some() {
            return Err(self.unsupported("INSERT into a view is", at));
        }
        let overriding = overriding(insert);
        if insert.partitioned.is_some() && overriding.is_none() && !has_marked_source(insert) {
            return Err(self.unsupported("this form of INSERT is", at));
        }
        let table = self.table(name)?;
        let alias = insert.table_alias.as_ref().filter(|alias| alias.alias.value != NO_ALIAS);
        let alias = alias.map(|alias| self.alias(&alias.alias)).transpose()?;
        let targets = self.target_columns(&table, &insert.columns)?;
        let (source, columns) = match &insert.source {
            None => (self.default_row(&table)?, None),
            Some(query) => match plain_values(query) {
                Some(values) => self.insert_values((&table, overriding), &targets, values, insert)?,
                None => self.insert_query((&table, overriding), &targets, query, insert)?,
            },
        };
        let conflict = Box::new(match &insert.on {
            None => Conflict::Fail,
            Some(OnInsert::OnConflict(on)) => self.on_conflict(&table, alias.as_deref(), on, at)?,
            Some(_) => return Err(self.unsupported("this form of INSERT is", at)),
        });
        let scope = Scope::of(&table, alias.as_deref());
        let (returning, result) = self.returning(insert.returning.as_deref(), &scope)?;
        let reads_itself = source.reads(table.id) || self.subplans.iter().any(|subplan| subplan.plan.reads(table.id));
        let write = self.table_write(table)?;
        Ok((InsertPlan { write, source, columns, reads_itself, conflict, returning }, result))
    }

    /// Positions of the target columns, in the order of the values.
    fn target_columns(&mut self, table: &Table, names: &[ObjectName]) -> Result<Vec<Target>, SqlError> {
        if names.is_empty() {
            return Ok((0..table.columns.len()).map(|place| Target::whole(place, NO_LOCATION)).collect());
        }
        let mut targets: Vec<Target> = Vec::with_capacity(names.len());
        for name in names {
            let target = self.assigned(table, name, &Scope::default())?;
            let clashes = |other: &Target| other.place == target.place && !(other.is_part() && target.is_part());
            if targets.iter().any(clashes) {
                let message = format!("column \"{}\" specified more than once", table.columns[target.place].name);
                return Err(self.error(SqlState::DUPLICATE_COLUMN, message, target.at));
            }
            targets.push(target);
        }
        Ok(targets)
    }

    fn default_row(&mut self, table: &Table) -> Result<SelectPlan, SqlError> {
        Ok(values_plan(vec![self.defaults(table)?]))
    }

    fn insert_values(
        &mut self,
        (table, overriding): (&Table, Option<Overriding>),
        targets: &[Target],
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
                let column = &table.columns[target.place];
                let takes_default = is_default(ast) || drops_value(column, overriding)?;
                out.push(if takes_default {
                    self.refuse_default(target)?;
                    self.default_of(column)?
                } else {
                    self.refuse_generated(column, &non_default(column))?;
                    let value = self.expr(ast, &scope)?;
                    self.assign_to(value, column, target)?
                });
            }
            rows.push(out);
        }
        let given = &targets[..width.min(targets.len())];
        let is_whole = !given.iter().any(Target::is_part);
        if is_whole && given.iter().map(|target| target.place).eq(0..table.columns.len()) {
            return Ok((values_plan(rows), None));
        }
        let mut out = self.defaults(table)?;
        if let [row] = rows.as_mut_slice() {
            // As in PostgreSQL, a single row is evaluated in the order of the table's columns.
            for (target, value) in given.iter().zip(row.drain(..)) {
                put(target, value, table, &mut out);
            }
            return Ok((values_plan(vec![out]), None));
        }
        // The rows have only the given columns, however wide the table is.
        for (at, target) in given.iter().enumerate() {
            put(target, Expr::Column(at), table, &mut out);
        }
        Ok((values_plan(rows), Some(out)))
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
        (table, overriding): (&Table, Option<Overriding>),
        targets: &[Target],
        query: &Query,
        insert: &Insert,
    ) -> Result<InsertSource, SqlError> {
        self.targets = targets.iter().map(|target| target.type_in(table.columns[target.place].ty)).collect();
        let bound = self.query(query);
        self.targets = Vec::new();
        let (source, columns) = bound?;
        self.check_width(columns.len(), targets.len(), Some(query_start(query)), insert)?;
        for target in targets.iter().take(columns.len()) {
            let column = &table.columns[target.place];
            self.refuse_generated(column, &non_default(column))?;
        }
        let mut out = self.defaults(table)?;
        for (at, (column, target)) in columns.iter().zip(targets).enumerate() {
            let assigned = &table.columns[target.place];
            if drops_value(assigned, overriding)? {
                continue;
            }
            let value = Typed::new(Expr::Column(at), column.ty, query_start(query));
            let value = self.assign_to(value, assigned, target)?;
            put(target, value, table, &mut out);
        }
        Ok((source, Some(out)))
    }

    fn on_conflict(
        &mut self,
        table: &Arc<Table>,
        alias: Option<&str>,
        on: &OnConflict,
        at: Location,
    ) -> Result<Conflict, SqlError> {
        let arbiters = match &on.conflict_target {
            Some(ConflictTarget::Columns(idents)) => match idents.as_slice() {
                [only] if only.value == CONFLICT_TARGET => self.arbiters_of_target((table, alias), only)?,
                _ => self.inferred_arbiters(table, idents)?,
            },
            Some(ConflictTarget::OnConstraint(name)) => {
                let constraint = self.name_parts(name)?.pop().unwrap_or_default();
                let is_named = |index: &Index| index.is_constraint && index.name == constraint;
                let arbiters = Arbiters {
                    primary_key: !table.has_hidden_key() && constraint == table.key_name,
                    indexes: table.indexes.iter().map(is_named).collect(),
                };
                if arbiters.is_empty() {
                    let message = format!("constraint \"{constraint}\" for table \"{}\" does not exist", table.name);
                    return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message));
                }
                arbiters
            }
            None if matches!(on.action, OnConflictAction::DoUpdate(_)) => {
                let message = "ON CONFLICT DO UPDATE requires inference specification or constraint name";
                return Err(self
                    .error(SqlState::SYNTAX_ERROR, message, at)
                    .hint("For example, ON CONFLICT (column_name)."));
            }
            None => Arbiters {
                primary_key: !table.has_hidden_key(),
                indexes: table.indexes.iter().map(|index| index.unique).collect(),
            },
        };
        let OnConflictAction::DoUpdate(update) = &on.action else {
            return Ok(Conflict::DoNothing(arbiters));
        };
        let mut scope = Scope::of(table, alias);
        scope.extend(Scope::of(table, Some("excluded")));
        let mut assignments = Vec::new();
        for assignment in &update.assignments {
            self.assignment(assignment, table, &scope, &mut assignments)?;
        }
        let filter = match &update.selection {
            Some(ast) => Some(self.condition(ast, &scope, "WHERE")?),
            None => None,
        };
        Ok(Conflict::DoUpdate { arbiters, assignments, filter })
    }

    /// The unique keys with the columns after ON CONFLICT. A partial index is none: its predicate would have to be
    /// named.
    fn inferred_arbiters(&self, table: &Table, idents: &[Ident]) -> Result<Arbiters, SqlError> {
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
        columns.sort_unstable();
        columns.dedup();
        let is_key = |mut key: Vec<usize>| {
            key.sort_unstable();
            key.dedup();
            key == columns
        };
        let arbiters = Arbiters {
            primary_key: !table.has_hidden_key() && is_key(table.primary_key.clone()),
            indexes: table
                .indexes
                .iter()
                .map(|index| index.unique && index.plain_columns().is_some_and(is_key))
                .collect(),
        };
        if arbiters.is_empty() {
            let message = "there is no unique or exclusion constraint matching the ON CONFLICT specification";
            return Err(SqlError::new(SqlState::INVALID_COLUMN_REFERENCE, message));
        }
        Ok(arbiters)
    }
}

/// Puts the value of a target into a row of defaults. Of a column only some parts are given: it was NULL before.
fn put(target: &Target, value: Expr, table: &Table, out: &mut [Expr]) {
    let (Some(place), Some(column)) = (out.get_mut(target.place), table.columns.get(target.place)) else { return };
    let before = match std::mem::replace(place, Expr::Const(Datum::Null)) {
        assigned @ Expr::Assigned { .. } => assigned,
        _ => Expr::Const(Datum::Null),
    };
    *place = target.over(before, value, column);
}

fn non_default(column: &Column) -> String {
    format!("cannot insert a non-DEFAULT value into column \"{}\"", column.name)
}

/// The clause OVERRIDING of INSERT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Overriding {
    /// Given values count.
    System,
    /// Values of identity columns are drawn.
    User,
}

/// The parser has it as a partition with a name that no text of a client contains.
fn overriding(insert: &Insert) -> Option<Overriding> {
    match insert.partitioned.as_deref()? {
        [Ast::Identifier(ident)] if ident.value == OVERRIDING_SYSTEM => Some(Overriding::System),
        [Ast::Identifier(ident)] if ident.value == OVERRIDING_USER => Some(Overriding::User),
        _ => None,
    }
}

/// Whether the partition only tells the parser that a query follows.
fn has_marked_source(insert: &Insert) -> bool {
    matches!(insert.partitioned.as_deref(), Some([Ast::Identifier(ident)]) if ident.value == SOURCE)
}

/// Whether a value that is given for a column does not count. 428C9 if none may be given.
fn drops_value(column: &Column, overriding: Option<Overriding>) -> Result<bool, SqlError> {
    match (column.identity, overriding) {
        (None, _) | (Some(Identity::ByDefault), None) | (Some(_), Some(Overriding::System)) => Ok(false),
        (Some(_), Some(Overriding::User)) => Ok(true),
        (Some(Identity::Always), None) => {
            let message = format!("cannot insert a non-DEFAULT value into column \"{}\"", column.name);
            let error = SqlError::new(SqlState::GENERATED_ALWAYS, message).detail(always_detail(&column.name));
            Err(error.hint("Use OVERRIDING SYSTEM VALUE to override."))
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
pub(super) fn values_plan(rows: Vec<Vec<Expr>>) -> SelectPlan {
    let width = rows.first().map_or(0, Vec::len);
    SelectPlan::of(Source::Values(rows), width, Vec::new())
}

//! Binding of queries: SELECT and VALUES.

use std::sync::Arc;

use sqlparser::ast::{Distinct, Query, Select, SelectItem, SetExpr, Spanned, Values};

use super::aggregation::AggregateCall;
use super::binder::{Binder, Scope, Typed};
use super::coerce::Unified;
use super::conditions::{conjunction, conjuncts};
use super::found::AggregateState;
use super::from::From;
use super::grouping::{OverGroups, has_groups};
use super::index::bind_indexes;
use super::joins::{push, source};
use super::names::is_default;
use super::node::ResultColumn;
use super::projection::Output;
use super::rel::{Aggregation, Rel, RowLock, SelectPlan, SortKey, Source};
use super::row_locks::{lock_mode, lock_name, locking};
use super::set_values::SetSteps;
use crate::error::{SqlError, SqlState};
use crate::expr::{Expr, fold};
use crate::parse::{NO_LOCATION, query_start, start_of};
use crate::system;
use crate::table::Table;

impl Binder<'_> {
    /// Binds a query. Its access paths are chosen later, when all conditions are where they go.
    pub(super) fn query(&mut self, query: &Query) -> Result<(SelectPlan, Vec<ResultColumn>), SqlError> {
        let at = query_start(query);
        let has_unsupported_clause = query.for_clause.is_some()
            || query.settings.is_some()
            || query.format_clause.is_some()
            || !query.pipe_operators.is_empty();
        if has_unsupported_clause {
            return Err(self.unsupported("this clause of a query is", at));
        }
        let is_top = std::mem::take(&mut self.is_top);
        // FOR UPDATE is not of the queries in FROM.
        let locking = self.locking.take();
        self.descend()?;
        let names = self.with_names.len();
        let bound = match &query.with {
            Some(with) => self.with_clause(with, is_top).and_then(|()| self.query_body(query)),
            None => self.query_body(query),
        };
        self.with_names.truncate(names);
        self.locking = locking;
        self.depth -= 1;
        bound
    }

    fn query_body(&mut self, query: &Query) -> Result<(SelectPlan, Vec<ResultColumn>), SqlError> {
        let at = query_start(query);
        match &*query.body {
            SetExpr::Select(select) => self.select(select, query),
            SetExpr::Values(values) => self.values(values, query),
            SetExpr::Query(inner) if query.order_by.is_none() && query.limit_clause.is_none() => self.query(inner),
            SetExpr::Query(inner) => {
                let (plan, columns) = self.query(inner)?;
                self.ordered(SelectPlan::over(plan), columns, query, false)
            }
            SetExpr::SetOperation { op, set_quantifier, left, right } => {
                let (plan, columns) = self.set_operation((*op, *set_quantifier), left, right, at)?;
                self.ordered(plan, columns, query, true)
            }
            SetExpr::Table(_) => Err(self.unsupported("TABLE is", at)),
            _ => Err(self.unsupported("a statement that changes rows here is", at)),
        }
    }

    /// ORDER BY and LIMIT over the columns of a plan that has neither. `is_set`: it is a set operation, which no
    /// expressions order.
    fn ordered(
        &mut self,
        mut plan: SelectPlan,
        columns: Vec<ResultColumn>,
        query: &Query,
        is_set: bool,
    ) -> Result<(SelectPlan, Vec<ResultColumn>), SqlError> {
        let scope = Scope::of_result(&columns);
        let mut output = Output { exprs: std::mem::take(&mut plan.output), columns, ..Output::default() };
        let visible = output.exprs.len();
        self.aggregates.sets.allowed = is_set;
        let mut order_limit = self.order_by(query.order_by.as_ref(), &scope, &mut output, false)?;
        self.aggregates.sets.allowed = false;
        if is_set && output.exprs.len() > visible {
            return Err(self.unordered_set(query.order_by.as_ref(), (&scope, &output, visible)));
        }
        self.limit(query, &scope, &mut order_limit)?;
        if let Some(clause) = query.locks.first() {
            let name = lock_name(lock_mode(clause.lock_type, false));
            let message = format!("{name} is not allowed with UNION/INTERSECT/EXCEPT");
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        plan.output = output.exprs;
        (plan.sort, plan.limit, plan.offset) = (order_limit.sort, order_limit.limit, order_limit.offset);
        Ok((plan, output.columns))
    }

    fn select(&mut self, select: &Select, query: &Query) -> Result<(SelectPlan, Vec<ResultColumn>), SqlError> {
        // The clauses are bound in PostgreSQL's order: parameters get their types, and errors come, in it.
        self.refuse_clauses(select)?;
        let keeps_unknown = std::mem::take(&mut self.keeps_unknown);
        self.locking = locking(query);
        let (from, scope) = self.from(&select.from)?;
        let locking = self.locking.take();
        self.aggregates = AggregateState::of_query();
        self.clause = "SELECT";
        self.named_windows(&select.named_window, &scope)?;
        self.aggregates.windows.allowed = true;
        let mut output = self.projection(&select.projection, &scope)?;
        self.aggregates.windows.allowed = false;
        let filter = self.filter(select.selection.as_ref(), &scope)?;
        let before_having = self.aggregates.references.len();
        let mut having = self.having(select.having.as_ref(), &scope)?;
        let visible = output.exprs.len();
        let distinct = matches!(select.distinct, Some(Distinct::Distinct));
        self.aggregates.windows.allowed = true;
        let mut order_limit = self.order_by(query.order_by.as_ref(), &scope, &mut output, distinct)?;
        self.aggregates.windows.allowed = false;
        let keys = self.group_by(&select.group_by, &scope, &mut output)?;
        if distinct {
            self.check_distinct(&select.projection, &mut output)?;
        }
        let distinct_on = self.distinct_on(select, &scope, &mut output, &order_limit.sort)?;
        let mut windows = std::mem::take(&mut self.aggregates.windows);
        let mut sets = SetSteps::of(&keys, std::mem::take(&mut self.aggregates.sets));
        let is_grouped = has_groups(&select.group_by) || !self.aggregates.calls.is_empty() || having.is_some();
        let mut above = OverGroups {
            output: &mut output,
            having: having.as_mut().map(|having| (having, before_having)),
            windows: &mut windows,
            sets: &mut sets.above,
        };
        let groups = if is_grouped { Some(self.groups(keys, &mut above, (&from, &scope))?) } else { None };
        let aggregation = groups.map(|(keys, calls)| Aggregation { keys, calls, having });
        self.aggregates = AggregateState::default();
        self.limit(query, &scope, &mut order_limit)?;
        if !keeps_unknown {
            self.settle_all(&mut output)?;
        }
        let stages = (aggregation.is_some() || distinct, !windows.calls.is_empty(), !sets.above.is_empty());
        let lock = self.locks(query, stages, &scope)?;
        let Output { exprs, columns, .. } = output;
        let mut plan = SelectPlan {
            source: Source::Single,
            filter: None,
            aggregation,
            output: exprs,
            visible,
            distinct,
            distinct_on,
            sort: order_limit.sort,
            limit: order_limit.limit,
            offset: order_limit.offset,
            lock: None,
            locked_join: None,
            names: if matches!(from, From::Table(_)) && scope.has_own_names() { Vec::new() } else { scope.names() },
            has_subqueries: true,
        };
        if let (Some(locking), From::Rel(_)) = (locking, &from) {
            plan.locked_join = self.locked_join((locking, &scope), filter.as_ref())?.map(Box::new);
        }
        self.set_source(&mut plan, (from, scope.alias()), filter, lock, query)?;
        sets.run(&mut plan, windows, scope.width());
        Ok((plan, columns))
    }

    /// Binds WHERE. The aggregates of the query are not those of a condition over its rows.
    fn filter(&mut self, ast: Option<&sqlparser::ast::Expr>, scope: &Scope) -> Result<Option<Expr>, SqlError> {
        let Some(ast) = ast else { return Ok(None) };
        self.clause = "WHERE";
        let aggregates = std::mem::take(&mut self.aggregates);
        let bound = self.condition(ast, scope, "WHERE");
        self.aggregates = aggregates;
        bound.map(|condition| Some(fold::filter(condition)))
    }

    /// Binds HAVING.
    fn having(&mut self, ast: Option<&sqlparser::ast::Expr>, scope: &Scope) -> Result<Option<Expr>, SqlError> {
        let Some(ast) = ast else { return Ok(None) };
        self.clause = "HAVING";
        self.aggregates.sets.allowed = false;
        let bound = self.condition(ast, scope, "HAVING");
        self.aggregates.sets.allowed = true;
        bound.map(Some)
    }

    /// The keys and the aggregates of a query with groups. What is above them is over its groups then.
    fn groups(
        &mut self,
        mut keys: Vec<Expr>,
        above: &mut OverGroups<'_>,
        (from, scope): (&From, &Scope),
    ) -> Result<(Vec<Expr>, Vec<AggregateCall>), SqlError> {
        let mut calls = std::mem::take(&mut self.aggregates.calls);
        self.over_groups(&mut keys, (above, &mut calls), (&from.tables(), scope))?;
        if from.reads_recursion() {
            self.refuse_recursive_aggregate(self.aggregates.first)?;
        }
        Ok((keys, calls))
    }

    /// Gives a plan its source and the condition over it.
    fn set_source(
        &self,
        plan: &mut SelectPlan,
        (from, alias): (From, Option<Box<str>>),
        filter: Option<Expr>,
        lock: Option<RowLock>,
        query: &Query,
    ) -> Result<(), SqlError> {
        plan.filter = filter;
        match from {
            From::Nothing => {}
            From::Table(table) => {
                if lock.is_some() && system::of_table(&table).is_some() {
                    return Err(self.unsupported("a lock of rows of a system catalog is", query_start(query)));
                }
                let indexes = bind_indexes(&table, self.catalog)?;
                plan.source = source((table, indexes, alias));
                plan.lock = lock;
            }
            From::Rel(mut rel) => {
                plan.lock = lock.filter(|_| plan.locked_join.is_some());
                let mut parts = Vec::new();
                plan.filter.take().into_iter().for_each(|filter| conjuncts(filter, &mut parts));
                plan.filter = conjunction(push(&mut rel, parts));
                plan.source = Source::Rel(Box::new(rel));
            }
        }
        Ok(())
    }

    /// DISTINCT ON: the output columns that tell the rows apart, which ORDER BY begins with.
    fn distinct_on(
        &mut self,
        select: &Select,
        scope: &Scope,
        output: &mut Output,
        sort: &[SortKey],
    ) -> Result<Vec<usize>, SqlError> {
        let Some(Distinct::On(asts)) = &select.distinct else { return Ok(Vec::new()) };
        self.aggregates.windows.allowed = true;
        self.clause = "DISTINCT ON";
        let mut columns = Vec::with_capacity(asts.len());
        for ast in asts {
            if let Some(column) = self.order_target(ast, output, output.columns.len(), "DISTINCT ON")? {
                self.settle(output, column)?;
                self.check_groupable(output.columns[column].ty, start_of(ast))?;
                columns.push(column);
                continue;
            }
            let before = self.aggregates.references.len();
            let value = self.expr(ast, scope)?;
            let value = self.resolve_unknown(value)?;
            self.check_groupable(value.ty, start_of(ast))?;
            let column = match output.exprs.iter().position(|expr| *expr == value.expr) {
                Some(column) => column,
                None => {
                    output.exprs.push(value.expr);
                    output.reads.push(before..self.aggregates.references.len());
                    output.exprs.len() - 1
                }
            };
            columns.push(column);
        }
        self.aggregates.windows.allowed = false;
        let leading = sort.iter().take(columns.len());
        if leading.clone().any(|key| !columns.contains(&key.column)) {
            let message = "SELECT DISTINCT ON expressions must match initial ORDER BY expressions";
            let at = asts.first().map_or(NO_LOCATION, start_of);
            return Err(self.error(SqlState::INVALID_COLUMN_REFERENCE, message, at));
        }
        Ok(columns)
    }

    /// 42883 if the rows cannot be told apart. Literals are text, also where INSERT has another type for them.
    fn check_distinct(&mut self, items: &[SelectItem], output: &mut Output) -> Result<(), SqlError> {
        for column in 0..output.columns.len() {
            self.settle(output, column)?;
        }
        for (at, column) in output.columns.iter().enumerate() {
            let item = items.get(at.min(items.len().saturating_sub(1)));
            self.check_groupable(column.ty, item.map_or(NO_LOCATION, |item| item.span().start))?;
        }
        Ok(())
    }

    fn refuse_clauses(&mut self, select: &Select) -> Result<(), SqlError> {
        let at = select.select_token.0.span.start;
        let allows_into = std::mem::take(&mut self.allows_into);
        if let Some(into) = select.into.as_ref().filter(|_| !allows_into) {
            let message = "SELECT ... INTO is not allowed here";
            return Err(self.error(SqlState::SYNTAX_ERROR, message, into.name.span().start));
        }
        let has_unsupported_clause = select.top.is_some()
            || select.qualify.is_some()
            || select.exclude.is_some()
            || !select.lateral_views.is_empty()
            || select.prewhere.is_some()
            || !select.connect_by.is_empty()
            || !select.cluster_by.is_empty()
            || !select.distribute_by.is_empty()
            || !select.sort_by.is_empty()
            || select.value_table_mode.is_some();
        if has_unsupported_clause { Err(self.unsupported("this clause of SELECT is", at)) } else { Ok(()) }
    }

    /// The number of values in the first row. No values are a syntax error.
    pub(super) fn values_width(&self, values: &Values) -> Result<usize, SqlError> {
        match values.rows.first().map(|row| row.content.len()) {
            None | Some(0) => {
                let at = values.rows.first().map_or(NO_LOCATION, |row| row.closing_token.0.span.start);
                Err(self.error(SqlState::SYNTAX_ERROR, "syntax error at or near \")\"", at))
            }
            Some(width) => Ok(width),
        }
    }

    fn values(&mut self, values: &Values, query: &Query) -> Result<(SelectPlan, Vec<ResultColumn>), SqlError> {
        self.clause = "VALUES";
        let scope = Scope::default();
        let width = self.values_width(values)?;
        let mut columns: Vec<Vec<Typed>> = vec![Vec::new(); width];
        for row in &values.rows {
            if row.content.len() != width {
                let at = row.content.first().map_or(NO_LOCATION, start_of);
                return Err(self.error(SqlState::SYNTAX_ERROR, "VALUES lists must all be the same length", at));
            }
            for (column, ast) in columns.iter_mut().zip(&row.content) {
                if is_default(ast) {
                    let message = "DEFAULT is not allowed in this context";
                    return Err(self.error(SqlState::SYNTAX_ERROR, message, start_of(ast)));
                }
                column.push(self.expr(ast, &scope)?);
            }
        }
        let mut rows: Vec<Vec<Expr>> = vec![Vec::with_capacity(width); values.rows.len()];
        let mut output = Output::default();
        let mut names = Vec::new();
        for (at, column) in columns.into_iter().enumerate() {
            let Unified { exprs, ty } = self.unify(column, "VALUES")?;
            rows.iter_mut().zip(exprs).for_each(|(row, expr)| row.push(expr));
            output.exprs.push(Expr::Column(at));
            names.push(format!("column{}", at + 1));
            output.columns.push(ResultColumn { name: format!("column{}", at + 1), ty, origin: (0, 0) });
        }
        // ORDER BY uses the generated column names.
        let scope = Scope::of_result(&output.columns);
        let mut order_limit = self.order_by(query.order_by.as_ref(), &scope, &mut output, false)?;
        self.limit(query, &scope, &mut order_limit)?;
        let Output { exprs, columns, .. } = output;
        let plan = SelectPlan {
            source: Source::Values(rows),
            filter: None,
            aggregation: None,
            output: exprs,
            visible: width,
            distinct: false,
            distinct_on: Vec::new(),
            sort: order_limit.sort,
            limit: order_limit.limit,
            offset: order_limit.offset,
            lock: None,
            locked_join: None,
            names,
            has_subqueries: true,
        };
        Ok((plan, columns))
    }
}

impl From {
    fn reads_recursion(&self) -> bool {
        matches!(self, From::Rel(rel) if has_recursion(rel))
    }

    /// The tables, with the places of their first columns.
    fn tables(&self) -> Vec<(usize, Arc<Table>)> {
        match self {
            From::Nothing => Vec::new(),
            From::Table(table) => vec![(0, Arc::clone(table))],
            From::Rel(rel) => {
                let mut found = Vec::new();
                tables_of(rel, 0, &mut found);
                found
            }
        }
    }
}

/// Whether a node has the rows that a recursion added last, other than in a query of its own.
fn has_recursion(rel: &Rel) -> bool {
    match rel {
        Rel::Join(join) => has_recursion(&join.left) || has_recursion(&join.right),
        Rel::With(scan) => scan.is_recursion,
        _ => false,
    }
}

/// The tables whose columns are columns of a node.
fn tables_of(rel: &Rel, offset: usize, out: &mut Vec<(usize, Arc<Table>)>) {
    match rel {
        Rel::Join(join) => {
            tables_of(&join.left, offset, out);
            tables_of(&join.right, offset + join.left_width, out);
        }
        Rel::Query(plan) => {
            let is_whole = plan.output.iter().enumerate().all(|(at, expr)| *expr == Expr::Column(at));
            if let (Source::Table(access), true, true) = (&plan.source, is_whole, plan.is_simple()) {
                out.push((offset, Arc::clone(&access.table)));
            }
        }
        _ => {}
    }
}

//! Binding of queries: SELECT over at most one table, and VALUES.

use std::sync::Arc;

use kv::api::LockMode;
use sqlparser::ast::{
    Distinct, GroupByExpr, LockClause, LockType, NonBlock, Query, Select, SetExpr, Spanned, TableFactor,
    TableWithJoins, Values,
};

use super::access::{self, TableAccess};
use super::aggregation::AggregateState;
use super::binder::{Binder, Scope, Typed};
use super::coerce::Unified;
use super::names::{fold_ident, is_default};
use super::node::{Aggregation, ResultColumn, RowLock, RowWait, SelectPlan, Source};
use super::projection::Output;
use crate::error::{SqlError, SqlState};
use crate::expr::Expr;
use crate::parse::{KEY_LOCK, NO_LOCATION, query_start, start_of};
use crate::system;
use crate::table::Table;

impl Binder<'_> {
    /// Binds a query.
    pub(super) fn query(&mut self, query: &Query) -> Result<(SelectPlan, Vec<ResultColumn>), SqlError> {
        let at = query_start(query);
        if let Some(with) = &query.with {
            return Err(self.unsupported("WITH is", with.with_token.0.span.start));
        }
        let has_unsupported_clause = query.for_clause.is_some()
            || query.settings.is_some()
            || query.format_clause.is_some()
            || !query.pipe_operators.is_empty();
        if has_unsupported_clause {
            return Err(self.unsupported("this clause of a query is", at));
        }
        self.descend()?;
        let bound = match &*query.body {
            SetExpr::Select(select) => self.select(select, query),
            SetExpr::Values(values) => self.values(values, query),
            SetExpr::Query(inner) if query.order_by.is_none() && query.limit_clause.is_none() => self.query(inner),
            SetExpr::SetOperation { op, .. } => Err(self.unsupported(&format!("{op} is"), at)),
            SetExpr::Table(_) => Err(self.unsupported("TABLE is", at)),
            _ => Err(self.unsupported("a subquery here is", at)),
        };
        self.depth -= 1;
        bound
    }

    fn select(&mut self, select: &Select, query: &Query) -> Result<(SelectPlan, Vec<ResultColumn>), SqlError> {
        self.refuse_clauses(select)?;
        let (table, scope) = self.from(&select.from)?;
        self.clause = "WHERE";
        let filter = match &select.selection {
            Some(ast) => Some(self.condition(ast, &scope, "WHERE")?),
            None => None,
        };
        self.aggregates = AggregateState { allowed: true, ..Default::default() };
        self.clause = "SELECT";
        let mut output = self.projection(&select.projection, &scope)?;
        let having = match &select.having {
            Some(ast) => Some(self.condition(ast, &scope, "HAVING")?),
            None => None,
        };
        let visible = output.exprs.len();
        let distinct = match &select.distinct {
            None | Some(Distinct::All) => false,
            Some(Distinct::Distinct) => true,
            Some(Distinct::On(_)) => return Err(self.unsupported("DISTINCT ON is", select.select_token.0.span.start)),
        };
        let mut order_limit = self.order_by(query.order_by.as_ref(), &scope, &mut output, distinct)?;
        let aggregates = std::mem::take(&mut self.aggregates);
        let aggregation = if aggregates.calls.is_empty() && having.is_none() {
            None
        } else if let Some((column, at)) = aggregates.ungrouped {
            let message =
                format!("column \"{column}\" must appear in the GROUP BY clause or be used in an aggregate function");
            return Err(self.error(SqlState::GROUPING_ERROR, message, at));
        } else {
            Some(Aggregation { calls: aggregates.calls, having })
        };
        self.limit(query, &scope, &mut order_limit)?;
        let lock = self.locks(query, aggregation.is_some() || distinct, &scope)?;
        if lock.is_some() && table.as_ref().is_some_and(|table| system::of_table(table).is_some()) {
            return Err(self.unsupported("a lock of rows of a system catalog is", query_start(query)));
        }
        let Output { exprs, columns } = output;
        let mut plan = SelectPlan {
            source: Source::Single,
            filter,
            aggregation,
            output: exprs,
            visible,
            distinct,
            sort: order_limit.sort,
            limit: order_limit.limit,
            offset: order_limit.offset,
            lock: lock.filter(|_| table.is_some()),
            names: scope.names(),
        };
        if let Some(table) = table {
            attach(&mut plan, table);
        }
        Ok((plan, columns))
    }

    fn refuse_clauses(&self, select: &Select) -> Result<(), SqlError> {
        let at = select.select_token.0.span.start;
        let grouped = match &select.group_by {
            GroupByExpr::Expressions(exprs, modifiers) => !exprs.is_empty() || !modifiers.is_empty(),
            GroupByExpr::All(_) => true,
        };
        if grouped {
            return Err(self.unsupported("GROUP BY is", select.group_by.span().start));
        }
        if !select.named_window.is_empty() || select.qualify.is_some() {
            return Err(self.unsupported("window functions are", at));
        }
        if select.into.is_some() {
            return Err(self.unsupported("SELECT INTO is", at));
        }
        let has_unsupported_clause = select.top.is_some()
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

    /// The table of FROM, if any, and its scope.
    pub(super) fn from(&mut self, from: &[TableWithJoins]) -> Result<(Option<Arc<Table>>, Scope), SqlError> {
        let single = match from {
            [] => return Ok((None, Scope::default())),
            [single] if single.joins.is_empty() => single,
            [first, ..] => return Err(self.unsupported("joins are", first.span().start)),
        };
        let (name, alias) = match &single.relation {
            TableFactor::Table {
                name,
                alias,
                args: None,
                version: None,
                with_ordinality: false,
                partitions,
                sample: None,
                ..
            } if partitions.is_empty() => (name, alias),
            TableFactor::Derived { .. } => return Err(self.unsupported("subqueries are", single.span().start)),
            TableFactor::Table { args: Some(_), .. } | TableFactor::Function { .. } | TableFactor::UNNEST { .. } => {
                return Err(self.unsupported("functions in FROM are", single.span().start));
            }
            TableFactor::NestedJoin { .. } => return Err(self.unsupported("joins are", single.span().start)),
            _ => return Err(self.unsupported("this kind of table reference is", single.span().start)),
        };
        let table = self.readable_table(name)?;
        let alias_name = alias.as_ref().map(|alias| self.alias(&alias.name)).transpose()?;
        let mut scope = Scope::of(&table, alias_name.as_deref());
        if let Some(alias) = alias {
            let columns = &mut scope.tables[0].columns;
            if alias.columns.len() > columns.len() {
                let message = format!(
                    "table \"{}\" has {} columns available but {} columns specified",
                    self.alias(&alias.name)?,
                    columns.len(),
                    alias.columns.len()
                );
                return Err(SqlError::new(SqlState::INVALID_COLUMN_REFERENCE, message));
            }
            for (column, renamed) in columns.iter_mut().zip(&alias.columns) {
                column.name = self.alias(&renamed.name)?;
            }
        }
        Ok((Some(table), scope))
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
        let mut order_limit = self.order_by(query.order_by.as_ref(), &scope, &mut output, false)?;
        self.limit(query, &scope, &mut order_limit)?;
        let Output { exprs, columns } = output;
        let plan = SelectPlan {
            source: Source::Values(rows),
            filter: None,
            aggregation: None,
            output: exprs,
            visible: width,
            distinct: false,
            sort: order_limit.sort,
            limit: order_limit.limit,
            offset: order_limit.offset,
            lock: None,
            names,
        };
        Ok((plan, columns))
    }

    /// How to lock the rows. Of several clauses the strongest lock counts, and NOWAIT before SKIP LOCKED.
    fn locks(&self, query: &Query, collapsed: bool, scope: &Scope) -> Result<Option<RowLock>, SqlError> {
        let mut locks: Option<RowLock> = None;
        let mut is_of_key = false;
        for clause in &query.locks {
            if is_key_lock(clause) {
                is_of_key = true;
                continue;
            }
            let of = clause.of.as_ref().and_then(|name| name.0.last()?.as_ident());
            let mode = lock_mode(clause.lock_type, std::mem::take(&mut is_of_key));
            if collapsed {
                let message = format!("{} is not allowed with DISTINCT or aggregate functions", lock_name(mode));
                return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
            }
            if let Some(of) = of.filter(|of| !scope.tables.iter().any(|table| table.name == fold_ident(of))) {
                let (of, name) = (fold_ident(of), lock_name(mode));
                let message = format!("relation \"{of}\" in {name} clause not found in FROM clause");
                return Err(SqlError::new(SqlState::UNDEFINED_TABLE, message));
            }
            let wait = match clause.nonblock {
                None => RowWait::Queue,
                Some(NonBlock::SkipLocked) => RowWait::Skip,
                Some(NonBlock::Nowait) => RowWait::NoWait,
            };
            let before = locks.unwrap_or(RowLock { mode, wait });
            locks = Some(RowLock { mode: before.mode.max(mode), wait: before.wait.max(wait) });
        }
        Ok(locks)
    }
}

/// Whether a clause only says that the next one is FOR NO KEY UPDATE or FOR KEY SHARE.
pub(super) fn is_key_lock(clause: &LockClause) -> bool {
    clause.of.as_ref().and_then(|name| name.0.last()?.as_ident()).is_some_and(|of| of.value == KEY_LOCK)
}

fn lock_mode(clause: LockType, is_of_key: bool) -> LockMode {
    match (clause, is_of_key) {
        (LockType::Update, false) => LockMode::Update,
        (LockType::Update, true) => LockMode::NoKeyUpdate,
        (LockType::Share, false) => LockMode::Share,
        (LockType::Share, true) => LockMode::KeyShare,
    }
}

/// The name of a clause that locks rows.
const fn lock_name(mode: LockMode) -> &'static str {
    match mode {
        LockMode::KeyShare => "FOR KEY SHARE",
        LockMode::Share => "FOR SHARE",
        LockMode::NoKeyUpdate => "FOR NO KEY UPDATE",
        LockMode::Update => "FOR UPDATE",
    }
}

/// Makes a table the source of a plan: chooses the access path, drops a redundant sort, marks the columns in use.
pub(super) fn attach(plan: &mut SelectPlan, table: Arc<Table>) {
    if let Some(relation) = system::of_table(&table) {
        plan.source = Source::System(relation);
        return;
    }
    let (path, filter) = access::choose(&table, plan.filter.take());
    plan.filter = filter;
    let mut reverse = false;
    if plan.aggregation.is_none() {
        let order: Option<Vec<(usize, bool)>> = plan
            .sort
            .iter()
            .map(|key| match plan.output[key.column] {
                // Key columns are never NULL, so the place of NULLs does not matter.
                Expr::Column(column) => Some((column, key.descending)),
                _ => None,
            })
            .collect();
        if let Some(direction) = order.and_then(|order| access::gives_order(&table, &path, &order)) {
            plan.sort.clear();
            reverse = direction;
        }
    }
    let mut needed = vec![false; table.columns.len()];
    plan.filter.iter().for_each(|filter| filter.mark_columns(&mut needed));
    match &plan.aggregation {
        Some(aggregation) => {
            for call in &aggregation.calls {
                call.inputs().for_each(|expr| expr.mark_columns(&mut needed));
            }
        }
        None => plan.output.iter().for_each(|expr| expr.mark_columns(&mut needed)),
    }
    plan.source = Source::Table(TableAccess { table, path, reverse, needed });
}

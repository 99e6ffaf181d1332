//! Binding of queries: SELECT over at most one table, and VALUES.

use std::sync::Arc;

use sqlparser::ast::{
    Distinct, Expr as Ast, GroupByExpr, Ident, LimitClause, OrderBy, OrderByKind, Query, Select, SelectItem,
    SelectItemQualifiedWildcardKind, SetExpr, Spanned, TableFactor, TableWithJoins, Value, ValueWithSpan, Values,
};
use sqlparser::tokenizer::Location;

use super::access::{self, TableAccess};
use super::bind_expr::literal;
use super::binder::{Binder, Scope, Typed};
use super::names::fold_ident;
use super::{Aggregation, ResultColumn, SelectPlan, SortKey, Source};
use crate::error::{SqlError, SqlState};
use crate::expr::Expr;
use crate::parse::{NO_LOCATION, start_of};
use crate::table::Table;
use crate::types::SqlType;
use crate::types::cast::CastContext;

/// The output of a query: expressions with names, types and origins.
#[derive(Default)]
pub(super) struct Output {
    pub(super) exprs: Vec<Expr>,
    pub(super) columns: Vec<ResultColumn>,
}

/// ORDER BY, LIMIT and OFFSET of a query.
#[derive(Default)]
struct Tail {
    sort: Vec<SortKey>,
    limit: Option<Expr>,
    offset: Option<Expr>,
}

impl Binder<'_> {
    /// Binds a query.
    pub(super) fn query(&mut self, query: &Query) -> Result<(SelectPlan, Vec<ResultColumn>), SqlError> {
        let at = query_start(query);
        if let Some(with) = &query.with {
            return Err(self.unsupported("WITH is", with.with_token.0.span.start));
        }
        let odd = query.for_clause.is_some()
            || query.settings.is_some()
            || query.format_clause.is_some()
            || !query.pipe_operators.is_empty();
        if odd {
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
        self.aggregates = super::aggregate::AggregateState { allowed: true, ..Default::default() };
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
        let mut tail = self.order_by(query.order_by.as_ref(), &scope, &mut output, distinct)?;
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
        self.limit(query, &scope, &mut tail)?;
        let lock = self.locks(query, aggregation.is_some() || distinct)?;
        let Output { exprs, columns } = output;
        let mut plan = SelectPlan {
            source: Source::Single,
            filter,
            aggregation,
            output: exprs,
            visible,
            distinct,
            sort: tail.sort,
            limit: tail.limit,
            offset: tail.offset,
            lock: lock && table.is_some(),
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
        let odd = select.top.is_some()
            || select.exclude.is_some()
            || !select.lateral_views.is_empty()
            || select.prewhere.is_some()
            || !select.connect_by.is_empty()
            || !select.cluster_by.is_empty()
            || !select.distribute_by.is_empty()
            || !select.sort_by.is_empty()
            || select.value_table_mode.is_some();
        if odd { Err(self.unsupported("this clause of SELECT is", at)) } else { Ok(()) }
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
        let table = self.table(name)?;
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

    /// Binds a select list or RETURNING.
    pub(super) fn projection(&mut self, items: &[SelectItem], scope: &Scope) -> Result<Output, SqlError> {
        let mut output = Output::default();
        for item in items {
            match item {
                SelectItem::UnnamedExpr(ast) => {
                    let value = self.expr(ast, scope)?;
                    self.push(&mut output, value, column_name(ast), scope)?;
                }
                SelectItem::ExprWithAlias { expr, alias } => {
                    let value = self.expr(expr, scope)?;
                    self.push(&mut output, value, self.alias(alias)?, scope)?;
                }
                SelectItem::Wildcard(_) => self.wildcard(None, item.span().start, scope, &mut output)?,
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
                    let table = self.name_parts(name)?.pop().unwrap_or_default();
                    self.wildcard(Some(&table), name.span().start, scope, &mut output)?;
                }
                other => return Err(self.unsupported("this form of output column is", other.span().start)),
            }
        }
        Ok(output)
    }

    fn push(&mut self, output: &mut Output, value: Typed, name: String, scope: &Scope) -> Result<(), SqlError> {
        let value = match self.targets.get(output.exprs.len()) {
            // INSERT ... SELECT: an untyped value takes the type of its target column.
            Some(target) if value.ty == SqlType::Unknown => {
                let at = value.at;
                let value = self.coerce(value, target.base(), CastContext::Assignment)?;
                value.ok_or_else(|| self.unsupported("this expression is", at))?
            }
            _ => self.resolve_unknown(value)?,
        };
        let aggregate_result = !self.aggregates.calls.is_empty();
        let origin = match &value.expr {
            Expr::Column(place) if !aggregate_result => scope
                .columns()
                .find(|(at, _, _)| at == place)
                .map_or((0, 0), |(_, table, column)| (table.oid, column.number)),
            _ => (0, 0),
        };
        output.exprs.push(value.expr);
        output.columns.push(ResultColumn { name, ty: value.ty, origin });
        Ok(())
    }

    /// `*` and `t.*`.
    fn wildcard(
        &mut self,
        table: Option<&str>,
        at: Location,
        scope: &Scope,
        output: &mut Output,
    ) -> Result<(), SqlError> {
        match table {
            None if scope.tables.is_empty() => {
                return Err(self.error(SqlState::SYNTAX_ERROR, "SELECT * with no tables specified is not valid", at));
            }
            Some(table) if !scope.tables.iter().any(|t| t.name == table) => {
                let message = format!("missing FROM-clause entry for table \"{table}\"");
                return Err(self.error(SqlState::UNDEFINED_TABLE, message, at));
            }
            _ => {}
        }
        for (place, owner, column) in scope.columns().filter(|(_, owner, _)| table.is_none_or(|t| t == owner.name)) {
            if self.aggregates.ungrouped.is_none() {
                self.aggregates.ungrouped = Some((format!("{}.{}", owner.name, column.name), at));
            }
            output.exprs.push(Expr::Column(place));
            output.columns.push(ResultColumn {
                name: column.name.clone(),
                ty: column.ty,
                origin: (owner.oid, column.number),
            });
        }
        Ok(())
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
            let (exprs, ty) = self.unify(column, "VALUES")?;
            rows.iter_mut().zip(exprs).for_each(|(row, expr)| row.push(expr));
            output.exprs.push(Expr::Column(at));
            names.push(format!("column{}", at + 1));
            output.columns.push(ResultColumn { name: format!("column{}", at + 1), ty, origin: (0, 0) });
        }
        // ORDER BY uses the generated column names.
        let mut tail = self.order_by(query.order_by.as_ref(), &scope, &mut output, false)?;
        self.limit(query, &scope, &mut tail)?;
        let Output { exprs, columns } = output;
        let plan = SelectPlan {
            source: Source::Values(rows),
            filter: None,
            aggregation: None,
            output: exprs,
            visible: width,
            distinct: false,
            sort: tail.sort,
            limit: tail.limit,
            offset: tail.offset,
            lock: false,
            names,
        };
        Ok((plan, columns))
    }

    fn order_by(
        &mut self,
        order_by: Option<&OrderBy>,
        scope: &Scope,
        output: &mut Output,
        distinct: bool,
    ) -> Result<Tail, SqlError> {
        let mut tail = Tail::default();
        let Some(order_by) = order_by else { return Ok(tail) };
        let OrderByKind::Expressions(keys) = &order_by.kind else {
            return Err(self.unsupported("ORDER BY ALL is", order_by.span().start));
        };
        self.clause = "ORDER BY";
        let visible = output.columns.len();
        for key in keys {
            let column = match self.order_target(&key.expr, output, visible)? {
                Some(column) => column,
                None => {
                    let value = self.expr(&key.expr, scope)?;
                    let value = self.resolve_unknown(value)?;
                    match output.exprs.iter().position(|expr| *expr == value.expr) {
                        Some(column) => column,
                        None if distinct => {
                            let message = "for SELECT DISTINCT, ORDER BY expressions must appear in select list";
                            let at = start_of(&key.expr);
                            return Err(self.error(SqlState::INVALID_COLUMN_REFERENCE, message, at));
                        }
                        None => {
                            output.exprs.push(value.expr);
                            output.exprs.len() - 1
                        }
                    }
                }
            };
            let descending = key.options.asc == Some(false);
            let nulls_first = key.options.nulls_first.unwrap_or(descending);
            if !tail.sort.iter().any(|earlier| earlier.column == column) {
                tail.sort.push(SortKey { column, descending, nulls_first });
            }
        }
        Ok(tail)
    }

    /// The output column of a name or number in ORDER BY; `None` for an expression.
    fn order_target(&self, ast: &Ast, output: &Output, visible: usize) -> Result<Option<usize>, SqlError> {
        match ast {
            Ast::Identifier(ident) => {
                let name = fold_ident(ident);
                let mut found = (0..visible).filter(|at| output.columns[*at].name == name);
                let Some(first) = found.next() else { return Ok(None) };
                if found.any(|other| output.exprs[other] != output.exprs[first]) {
                    let message = format!("ORDER BY \"{name}\" is ambiguous");
                    return Err(self.error(SqlState::AMBIGUOUS_COLUMN, message, ident.span.start));
                }
                Ok(Some(first))
            }
            Ast::Value(value) if !matches!(value.value, Value::Number(..) | Value::Placeholder(_)) => {
                Err(self.error(SqlState::SYNTAX_ERROR, "non-integer constant in ORDER BY", value.span.start))
            }
            ast => match literal(ast) {
                Some((value, negative)) => self.order_number(value, negative, visible).map(Some),
                None => Ok(None),
            },
        }
    }

    /// The output column of a number in ORDER BY.
    fn order_number(&self, value: &ValueWithSpan, negative: bool, visible: usize) -> Result<usize, SqlError> {
        let at = value.span.start;
        let Value::Number(digits, _) = &value.value else {
            return Err(self.error(SqlState::SYNTAX_ERROR, "non-integer constant in ORDER BY", at));
        };
        let position = || if negative { self.position_before(at, "-") } else { self.position(at) };
        match digits.parse::<usize>() {
            Ok(number) if !negative && (1..=visible).contains(&number) => Ok(number - 1),
            Ok(number) => {
                let sign = if negative && number > 0 { "-" } else { "" };
                let message = format!("ORDER BY position {sign}{number} is not in select list");
                Err(SqlError::new(SqlState::INVALID_COLUMN_REFERENCE, message).at(position()))
            }
            Err(_) => Err(SqlError::new(SqlState::SYNTAX_ERROR, "non-integer constant in ORDER BY").at(position())),
        }
    }

    fn limit(&mut self, query: &Query, scope: &Scope, tail: &mut Tail) -> Result<(), SqlError> {
        let (limit, offset) = match &query.limit_clause {
            None => (None, None),
            Some(LimitClause::LimitOffset { limit, offset, limit_by }) if limit_by.is_empty() => {
                (limit.as_ref(), offset.as_ref().map(|offset| &offset.value))
            }
            Some(other) => return Err(self.unsupported("this form of LIMIT is", other.span().start)),
        };
        if let Some(ast) = limit {
            tail.limit = Some(self.row_count(ast, scope, "LIMIT")?);
        }
        if let Some(ast) = offset {
            tail.offset = Some(self.row_count(ast, scope, "OFFSET")?);
        }
        if let Some(fetch) = &query.fetch {
            if fetch.with_ties || fetch.percent {
                return Err(self.unsupported("this form of FETCH is", query_start(query)));
            }
            tail.limit = Some(match &fetch.quantity {
                Some(ast) => self.row_count(ast, scope, "LIMIT")?,
                None => Expr::Const(crate::types::Datum::Int(1)),
            });
        }
        Ok(())
    }

    fn row_count(&mut self, ast: &Ast, scope: &Scope, clause: &'static str) -> Result<Expr, SqlError> {
        self.clause = clause;
        let value = self.expr(ast, scope)?;
        let (ty, at) = (value.ty, value.at);
        if !value.expr.is_row_independent() {
            let message = format!("argument of {clause} must not contain variables");
            return Err(self.error(SqlState::INVALID_COLUMN_REFERENCE, message, at));
        }
        match self.coerce(value, SqlType::Int8, CastContext::Assignment)? {
            Some(value) => Ok(value.expr),
            None => {
                let message = format!("argument of {clause} must be type bigint, not type {}", ty.base_name());
                Err(self.error(SqlState::DATATYPE_MISMATCH, message, at))
            }
        }
    }

    /// Whether to lock the rows.
    fn locks(&self, query: &Query, collapsed: bool) -> Result<bool, SqlError> {
        let Some(lock) = query.locks.first() else { return Ok(false) };
        let at = query_start(query);
        if lock.nonblock.is_some() {
            return Err(self.unsupported("NOWAIT and SKIP LOCKED are", at));
        }
        if collapsed {
            let message = format!("{} is not allowed with DISTINCT or aggregate functions", lock_name(lock));
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        Ok(true)
    }
}

fn lock_name(lock: &sqlparser::ast::LockClause) -> String {
    format!("FOR {}", lock.lock_type)
}

/// Makes a table the source of a plan: chooses the access path, drops a redundant sort, marks the columns in use.
pub(super) fn attach(plan: &mut SelectPlan, table: Arc<Table>) {
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
                call.arg.iter().chain(&call.filter).for_each(|expr| expr.mark_columns(&mut needed));
            }
        }
        None => plan.output.iter().for_each(|expr| expr.mark_columns(&mut needed)),
    }
    plan.source = Source::Table(TableAccess { table, path, reverse, needed });
}

/// Access to all columns of a table, for statements that change rows.
pub(super) fn whole_rows(table: Arc<Table>, filter: Option<Expr>) -> (TableAccess, Option<Expr>) {
    let (path, filter) = access::choose(&table, filter);
    let needed = vec![true; table.columns.len()];
    (TableAccess { table, path, reverse: false, needed }, filter)
}

/// The location of a query's first token.
pub(super) fn query_start(query: &Query) -> Location {
    match &*query.body {
        SetExpr::Select(select) => select.select_token.0.span.start,
        SetExpr::Values(values) => values.rows.first().map_or(NO_LOCATION, |row| row.opening_token.0.span.start),
        SetExpr::Query(inner) => query_start(inner),
        SetExpr::SetOperation { left, .. } => match &**left {
            SetExpr::Select(select) => select.select_token.0.span.start,
            _ => NO_LOCATION,
        },
        _ => NO_LOCATION,
    }
}

/// Whether an expression is the keyword DEFAULT.
pub(super) fn is_default(ast: &Ast) -> bool {
    matches!(ast, Ast::Identifier(Ident { value, quote_style: None, .. }) if value.eq_ignore_ascii_case("default"))
}

/// The name that PostgreSQL gives an output column without an alias.
fn column_name(ast: &Ast) -> String {
    name_of(ast).map_or_else(|| "?column?".to_owned(), |(name, _)| name)
}

/// A name for an expression. The flag is false for a fallback (the name of a type or construct).
fn name_of(ast: &Ast) -> Option<(String, bool)> {
    let strong = |name: &str| Some((name.to_owned(), true));
    match ast {
        Ast::Identifier(ident) => Some((fold_ident(ident), true)),
        Ast::CompoundIdentifier(parts) => parts.last().map(|ident| (fold_ident(ident), true)),
        Ast::Nested(inner) => name_of(inner),
        Ast::Collate { expr, .. } => name_of(expr),
        Ast::Function(call) => match call.name.0.last() {
            Some(sqlparser::ast::ObjectNamePart::Identifier(ident)) => Some((fold_ident(ident), true)),
            _ => None,
        },
        Ast::Cast { expr, data_type, .. } => match name_of(expr) {
            Some((name, true)) => Some((name, true)),
            _ => super::type_name::resolve(data_type).ok().map(|ty| (ty.catalog_name().to_owned(), false)),
        },
        Ast::TypedString(typed) => {
            super::type_name::resolve(&typed.data_type).ok().map(|ty| (ty.catalog_name().to_owned(), false))
        }
        Ast::Case { else_result, .. } => match else_result.as_deref().and_then(name_of) {
            Some((name, true)) => Some((name, true)),
            _ => Some(("case".to_owned(), false)),
        },
        Ast::Ceil { .. } => strong("ceil"),
        Ast::Floor { .. } => strong("floor"),
        Ast::Position { .. } => strong("position"),
        Ast::Substring { shorthand, .. } => strong(if *shorthand { "substr" } else { "substring" }),
        Ast::Trim { trim_where, .. } => strong(match trim_where {
            Some(sqlparser::ast::TrimWhereField::Leading) => "ltrim",
            Some(sqlparser::ast::TrimWhereField::Trailing) => "rtrim",
            _ => "btrim",
        }),
        Ast::Tuple(_) => strong("row"),
        _ => None,
    }
}

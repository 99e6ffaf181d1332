//! Binding of ORDER BY, LIMIT, OFFSET and FETCH.

use sqlparser::ast::{Expr as Ast, LimitClause, OrderBy, OrderByKind, Query, Spanned, Value, ValueWithSpan};
use sqlparser::tokenizer::Location;

use super::bind_expr::literal;
use super::binder::{Binder, Scope};
use super::names::{fold_ident, sort_options};
use super::projection::Output;
use super::rel::SortKey;
use crate::error::{SqlError, SqlState};
use crate::expr::Expr;
use crate::parse::{NO_LOCATION, query_start, start_of};
use pgtypes::cast::CastContext;
use pgtypes::functions::{has_equality, has_order};
use pgtypes::{Datum, SqlType};

/// ORDER BY, LIMIT and OFFSET of a query.
#[derive(Default)]
pub(super) struct OrderLimit {
    pub(super) sort: Vec<SortKey>,
    pub(super) limit: Option<Expr>,
    pub(super) offset: Option<Expr>,
}

impl Binder<'_> {
    /// Binds ORDER BY. Expressions that are no output column are added to `output`, behind the visible ones.
    pub(super) fn order_by(
        &mut self,
        order_by: Option<&OrderBy>,
        scope: &Scope,
        output: &mut Output,
        distinct: bool,
    ) -> Result<OrderLimit, SqlError> {
        let mut order_limit = OrderLimit::default();
        let Some(order_by) = order_by else { return Ok(order_limit) };
        let OrderByKind::Expressions(keys) = &order_by.kind else {
            return Err(self.unsupported("ORDER BY ALL is", order_by.span().start));
        };
        self.clause = "ORDER BY";
        let visible = output.columns.len();
        for key in keys {
            let column = match self.order_target(&key.expr, output, visible, "ORDER BY")? {
                Some(column) => {
                    self.settle(output, column)?;
                    self.check_sortable(output.columns[column].ty, start_of(&key.expr))?;
                    column
                }
                None => {
                    let before = self.aggregates.references.len();
                    let value = self.expr(&key.expr, scope)?;
                    let value = self.resolve_unknown(value)?;
                    self.check_sortable(value.ty, start_of(&key.expr))?;
                    match output.exprs.iter().position(|expr| *expr == value.expr) {
                        Some(column) => column,
                        None if distinct => {
                            let message = "for SELECT DISTINCT, ORDER BY expressions must appear in select list";
                            let at = start_of(&key.expr);
                            return Err(self.error(SqlState::INVALID_COLUMN_REFERENCE, message, at));
                        }
                        None => {
                            output.exprs.push(value.expr);
                            output.reads.push(before..self.aggregates.references.len());
                            output.exprs.len() - 1
                        }
                    }
                }
            };
            let (descending, nulls_first) = sort_options(&key.options);
            if !order_limit.sort.iter().any(|earlier| earlier.column == column) {
                order_limit.sort.push(SortKey { column, descending, nulls_first });
            }
        }
        Ok(order_limit)
    }

    /// The error of a set operation that an expression orders: at the first one that is no column of the result.
    pub(super) fn unordered_set(
        &mut self,
        order_by: Option<&OrderBy>,
        (scope, output, visible): (&Scope, &Output, usize),
    ) -> SqlError {
        let keys = match order_by.map(|order_by| &order_by.kind) {
            Some(OrderByKind::Expressions(keys)) => keys.as_slice(),
            _ => &[],
        };
        let mut is_column = |ast: &Ast| {
            matches!(self.order_target(ast, output, visible, "ORDER BY"), Ok(Some(_)))
                || self.expr(ast, scope).is_ok_and(|value| output.exprs.iter().take(visible).any(|o| *o == value.expr))
        };
        let at = keys.iter().find(|key| !is_column(&key.expr)).map_or(NO_LOCATION, |key| start_of(&key.expr));
        let message = "invalid UNION/INTERSECT/EXCEPT ORDER BY clause";
        self.error(SqlState::FEATURE_NOT_SUPPORTED, message, at)
            .detail("Only result column names can be used, not expressions or functions.")
            .hint("Add the expression/function to every SELECT, or move the UNION into a FROM clause.")
    }

    /// 42883 if values of a type cannot be sorted.
    pub(super) fn check_sortable(&self, ty: SqlType, at: Location) -> Result<(), SqlError> {
        if has_order(ty) {
            return Ok(());
        }
        let message = format!("could not identify an ordering operator for type {}", self.type_text(ty));
        let error = self.error(SqlState::UNDEFINED_FUNCTION, message, at);
        Err(error.hint("Use an explicit ordering operator or modify the query."))
    }

    /// 42883 if values of a type cannot be equal.
    pub(super) fn check_groupable(&self, ty: SqlType, at: Location) -> Result<(), SqlError> {
        if has_equality(ty) {
            return Ok(());
        }
        let message = format!("could not identify an equality operator for type {}", self.type_text(ty));
        Err(self.error(SqlState::UNDEFINED_FUNCTION, message, at))
    }

    /// The output column of a name or number in ORDER BY or DISTINCT ON; `None` for an expression.
    pub(super) fn order_target(
        &self,
        ast: &Ast,
        output: &Output,
        visible: usize,
        clause: &str,
    ) -> Result<Option<usize>, SqlError> {
        match ast {
            Ast::Nested(inner) => self.order_target(inner, output, visible, clause),
            Ast::Identifier(ident) => {
                let name = fold_ident(ident);
                let mut found = (0..visible).filter(|at| output.columns[*at].name == name);
                let Some(first) = found.next() else { return Ok(None) };
                if found.any(|other| output.exprs[other] != output.exprs[first]) {
                    let message = format!("{clause} \"{name}\" is ambiguous");
                    return Err(self.error(SqlState::AMBIGUOUS_COLUMN, message, ident.span.start));
                }
                Ok(Some(first))
            }
            Ast::Value(value) if !matches!(value.value, Value::Number(..) | Value::Placeholder(_)) => {
                let message = format!("non-integer constant in {clause}");
                Err(self.error(SqlState::SYNTAX_ERROR, message, value.span.start))
            }
            ast => match literal(ast) {
                Some((value, negative)) => self.order_number(value, negative, visible, clause).map(Some),
                None => Ok(None),
            },
        }
    }

    /// The output column of a number in ORDER BY.
    fn order_number(
        &self,
        value: &ValueWithSpan,
        negative: bool,
        visible: usize,
        clause: &str,
    ) -> Result<usize, SqlError> {
        let at = value.span.start;
        let Value::Number(digits, _) = &value.value else {
            let message = format!("non-integer constant in {clause}");
            return Err(self.error(SqlState::SYNTAX_ERROR, message, at));
        };
        let position = || if negative { self.position_before(at, "-") } else { self.position(at) };
        match digits.parse::<usize>() {
            Ok(number) if !negative && (1..=visible).contains(&number) => Ok(number - 1),
            Ok(number) => {
                let sign = if negative && number > 0 { "-" } else { "" };
                let message = format!("{clause} position {sign}{number} is not in select list");
                Err(SqlError::new(SqlState::INVALID_COLUMN_REFERENCE, message).at(position()))
            }
            Err(_) => {
                let message = format!("non-integer constant in {clause}");
                Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(position()))
            }
        }
    }

    /// Binds LIMIT, OFFSET and FETCH.
    pub(super) fn limit(&mut self, query: &Query, scope: &Scope, order_limit: &mut OrderLimit) -> Result<(), SqlError> {
        let (limit, offset) = match &query.limit_clause {
            None => (None, None),
            Some(LimitClause::LimitOffset { limit, offset, limit_by }) if limit_by.is_empty() => {
                (limit.as_ref(), offset.as_ref().map(|offset| &offset.value))
            }
            Some(other) => return Err(self.unsupported("this form of LIMIT is", other.span().start)),
        };
        if let Some(ast) = limit {
            order_limit.limit = Some(self.row_count(ast, scope, "LIMIT")?);
        }
        if let Some(ast) = offset {
            order_limit.offset = Some(self.row_count(ast, scope, "OFFSET")?);
        }
        if let Some(fetch) = &query.fetch {
            if fetch.with_ties && query.order_by.is_none() {
                let message = "WITH TIES cannot be specified without ORDER BY clause";
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
            }
            if fetch.with_ties || fetch.percent {
                return Err(self.unsupported("this form of FETCH is", query_start(query)));
            }
            order_limit.limit = Some(match &fetch.quantity {
                Some(ast) => self.row_count(ast, scope, "LIMIT")?,
                None => Expr::Const(Datum::Int(1)),
            });
        }
        Ok(())
    }

    /// A number of rows that no row tells.
    pub(super) fn row_count(&mut self, ast: &Ast, scope: &Scope, clause: &'static str) -> Result<Expr, SqlError> {
        self.clause = clause;
        let value = self.expr(ast, scope)?;
        let (ty, at) = (self.type_text(value.ty), value.at);
        if !value.expr.is_row_independent() {
            let message = format!("argument of {clause} must not contain variables");
            return Err(self.error(SqlState::INVALID_COLUMN_REFERENCE, message, at));
        }
        match self.coerce(value, SqlType::INT8, CastContext::Assignment)? {
            Some(value) => Ok(value.expr),
            None => {
                let message = format!("argument of {clause} must be type bigint, not type {ty}");
                Err(self.error(SqlState::DATATYPE_MISMATCH, message, at))
            }
        }
    }
}

//! Sub-queries in expressions: scalar, EXISTS, IN, ANY and ALL, ARRAY(...).
//!
//! A sub-query sees the columns of the queries around it. Each that it uses becomes an argument: an expression over the
//! row around it, and [`Expr::Outer`] in it. Columns of a query further out pass through those between.

use sqlparser::ast::{Expr as Ast, Query, Spanned};

use super::binder::{Binder, Frame, Scope, Typed};
use super::calls::{Named, failure};
use super::comparison::{Level, Written, WrittenOperator, check_query_width, row_fields};
use super::join_method::limit_of;
use super::node::ResultColumn;
use super::rel::{SelectPlan, Subplan};
use super::visit::is_same_query;
use crate::error::{SqlError, SqlState};
use crate::expr::{Elementwise, Expr, Subquery, SubqueryKind, compares_alike};
use crate::parse::{query_start, start_of};
use pgtypes::SqlType;
use pgtypes::cast::CastContext;
use pgtypes::functions::resolve;

/// Enough rows to tell that a scalar sub-query has too many.
const SCALAR_ROWS: usize = 2;
/// The rows up to which IN of a sub-query is ANY of an array: the elements may be looked up by a key, and without one
/// they are compared one by one.
const FEW_ROWS: f64 = 100.0;

/// Each sub-query is compared with so many before it.
const COMPARED: usize = 200;

impl Binder<'_> {
    /// Binds a query with the columns of `scope` in reach. Returns the values of these that it uses.
    pub(super) fn inner_query(
        &mut self,
        query: &Query,
        scope: &Scope,
    ) -> Result<(SelectPlan, Vec<ResultColumn>, Vec<Expr>), SqlError> {
        if let Some(what) = self.refuses_queries {
            let position = self.position_before(query_start(query), "(");
            let message = format!("cannot use subquery in {what}");
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message).at(position));
        }
        let aggregates = std::mem::take(&mut self.aggregates);
        let targets = std::mem::take(&mut self.targets);
        self.frames.push(Frame::of(scope.clone(), aggregates, self.clause));
        let bound = self.query(query);
        let frame = self.frames.pop();
        let frame = frame.ok_or_else(|| SqlError::internal("a sub-query has no frame"))?;
        let Frame { args, references, aggregates, clause, .. } = frame;
        (self.clause, self.aggregates, self.targets) = (clause, aggregates, targets);
        if self.aggregates.notes_references() {
            self.aggregates.references.extend(references.into_iter().map(|read| (read, true)));
        }
        let (plan, columns) = bound?;
        Ok((plan, columns, args))
    }

    /// The place of a sub-query. One that was there before has its place: what equals GROUP BY may have sub-queries.
    fn subquery(&mut self, plan: SelectPlan, most: usize, is_set: bool) -> usize {
        self.bound_subqueries += 1;
        let is_same =
            |known: &Subplan| known.most == most && known.is_set == is_set && is_same_query(&known.plan, &plan);
        let mut last = self.subplans.iter().enumerate().rev().take(COMPARED);
        if let Some((place, _)) = last.find(|(_, known)| is_same(known)) {
            return place;
        }
        self.subplans.push(Subplan { plan, most, is_set, kept: None });
        self.subplans.len() - 1
    }

    /// The type of the only column. `word`: what the sub-query begins with in the text.
    fn one_column(&self, columns: &[ResultColumn], query: &Query, word: &str) -> Result<SqlType, SqlError> {
        match columns {
            [column] => Ok(column.ty),
            _ => {
                let message = "subquery must return only one column";
                let position = self.position_before(query_start(query), word);
                Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(position))
            }
        }
    }

    /// `(SELECT ...)`
    pub(super) fn scalar_subquery(&mut self, query: &Query, scope: &Scope) -> Result<Typed, SqlError> {
        let at = query_start(query);
        let (plan, columns, args) = self.inner_query(query, scope)?;
        let ty = self.one_column(&columns, query, "(")?;
        let plan = self.subquery(plan, SCALAR_ROWS, false);
        Ok(Typed::new(Expr::Subquery(Subquery { plan, args, kind: SubqueryKind::Scalar }), ty, at))
    }

    /// The columns of the only row of a sub-query: their types and expressions.
    pub(super) fn fields_of(&mut self, query: &Query, scope: &Scope) -> Result<(Vec<SqlType>, Vec<Expr>), SqlError> {
        let (plan, columns, args) = self.inner_query(query, scope)?;
        let plan = self.subquery(plan, SCALAR_ROWS, false);
        let field = |at| Expr::Subquery(Subquery { plan, args: args.clone(), kind: SubqueryKind::Field(at) });
        let fields = (0..columns.len()).map(field).collect();
        Ok((columns.iter().map(|column| column.ty).collect(), fields))
    }

    /// `[NOT] EXISTS (SELECT ...)`
    pub(super) fn exists(&mut self, query: &Query, negated: bool, scope: &Scope) -> Result<Typed, SqlError> {
        let at = query_start(query);
        let (plan, _, args) = self.inner_query(query, scope)?;
        let plan = self.subquery(plan, 1, false);
        let expr = Expr::Subquery(Subquery { plan, args, kind: SubqueryKind::Exists });
        let expr = if negated { Expr::Not(Box::new(expr)) } else { expr };
        Ok(Typed::new(expr, SqlType::BOOL, at))
    }

    /// `ARRAY(SELECT ...)`
    pub(super) fn array_subquery(&mut self, query: &Query, scope: &Scope) -> Result<Typed, SqlError> {
        let at = query_start(query);
        let (plan, columns, args) = self.inner_query(query, scope)?;
        let ty = self.one_column(&columns, query, "array")?.base();
        let is_nested = ty.is_array();
        let Some(array) = (if is_nested { Some(ty) } else { ty.array() }) else {
            let message = format!("could not find array type for data type {}", self.type_text(ty));
            return Err(self.error(SqlState::UNDEFINED_OBJECT, message, at));
        };
        let plan = self.subquery(plan, usize::MAX, false);
        let kind = SubqueryKind::Array { element: array.element().unwrap_or(ty), is_nested };
        Ok(Typed::new(Expr::Subquery(Subquery { plan, args, kind }), array, at))
    }

    /// `value [NOT] IN (SELECT ...)`
    pub(super) fn in_subquery(
        &mut self,
        value: &Ast,
        query: &Query,
        negated: bool,
        scope: &Scope,
    ) -> Result<Typed, SqlError> {
        let word = if negated { "not" } else { "in" };
        self.refuse_nonassociative(Level::Between, value, None, word)?;
        let found = match row_fields(value) {
            Some(items) => {
                let position = self.position_between(value.span(), word, query.span());
                self.row_in_subquery(items, (query, position), scope)?
            }
            None => {
                let operator = WrittenOperator { symbol: "=", written: Written::Word(word) };
                self.elements_of_query((value, operator, query), false, scope)?
            }
        };
        let expr = if negated { Expr::Not(Box::new(found.expr)) } else { found.expr };
        Ok(Typed::new(expr, SqlType::BOOL, found.at))
    }

    /// `(a, b) = ANY (SELECT ...)`, and `<> ALL`, which are IN and NOT IN.
    pub(super) fn row_elements(
        &mut self,
        (left, fields, operator, query): (&Ast, &[&Ast], WrittenOperator<'_>, &Query),
        all: bool,
        scope: &Scope,
    ) -> Result<Typed, SqlError> {
        let is_in = match (operator.symbol, all) {
            ("=", false) => true,
            ("<>", true) => false,
            _ => return Err(self.unsupported("this comparison of a row with a sub-query is", start_of(left))),
        };
        let position = self.written_place(left, operator, query.span());
        let mut found = self.row_in_subquery(fields.iter().copied(), (query, position), scope)?;
        if !is_in {
            found.expr = Expr::Not(Box::new(found.expr));
        }
        Ok(found)
    }

    fn row_in_subquery<'e>(
        &mut self,
        items: impl IntoIterator<Item = &'e Ast>,
        (query, position): (&Query, u32),
        scope: &Scope,
    ) -> Result<Typed, SqlError> {
        let values = self.row_items(items, scope)?;
        let at = values.first().map_or_else(|| query_start(query), |value| value.at);
        let (mut plan, columns, args) = self.inner_query(query, scope)?;
        check_query_width(values.len(), columns.len()).map_err(|error| error.at(position))?;
        let mut left = Vec::with_capacity(values.len());
        for (place, (value, column)) in values.into_iter().zip(&columns).enumerate() {
            let (l, r) = self.equal_types(&value, column.ty, position)?;
            let value = self.coerce(value, l, CastContext::Implicit)?;
            left.push(value.ok_or_else(|| self.unsupported("this comparison is", at))?.expr);
            self.convert_output(&mut plan, place, column.ty, r)?;
        }
        let plan = self.subquery(plan, usize::MAX, false);
        let kind = SubqueryKind::Rows { left };
        Ok(Typed::new(Expr::Subquery(Subquery { plan, args, kind }), SqlType::BOOL, at))
    }

    /// The types in which a value and a column are equal.
    fn equal_types(&self, value: &Typed, column: SqlType, position: u32) -> Result<(SqlType, SqlType), SqlError> {
        let (_, choice) = resolve::binary("=", value.ty, column).map_err(|failed| {
            let shown = format!("{} = {}", self.type_text(value.ty), self.type_text(column));
            failure(&failed, Named::Operator(&shown, 2)).at(position)
        })?;
        match choice.args.as_slice() {
            [(_, l), (_, r)] if compares_alike(*l, *r) => Ok((*l, *r)),
            _ => Err(self.unsupported("this comparison with a sub-query is", value.at)),
        }
    }

    /// Converts an output column of a sub-query.
    fn convert_output(
        &mut self,
        plan: &mut SelectPlan,
        place: usize,
        from: SqlType,
        to: SqlType,
    ) -> Result<(), SqlError> {
        if from.oid == to.oid {
            return Ok(());
        }
        let at = crate::parse::NO_LOCATION;
        let input = std::mem::replace(plan, SelectPlan::single());
        *plan = SelectPlan::over(input);
        let column = Typed::new(Expr::Column(place), from, at);
        let value = self.coerce(column, to, CastContext::Implicit)?;
        let value = value.ok_or_else(|| self.unsupported("this comparison with a sub-query is", at))?;
        if let Some(slot) = plan.output.get_mut(place) {
            *slot = value.expr;
        }
        Ok(())
    }

    /// `value op ANY (SELECT ...)`, or ALL.
    pub(super) fn elements_of_query(
        &mut self,
        (value, operator, query): (&Ast, WrittenOperator<'_>, &Query),
        all: bool,
        scope: &Scope,
    ) -> Result<Typed, SqlError> {
        let at = start_of(value);
        let symbol = operator.symbol;
        let left = self.expr(value, scope)?;
        let (mut plan, columns, args) = self.inner_query(query, scope)?;
        let position = self.written_place(value, operator, query.span());
        check_query_width(1, columns.len()).map_err(|error| error.at(position))?;
        let ty = columns.first().map_or(SqlType::UNKNOWN, |column| column.ty);
        let (row, choice) = resolve::binary(symbol, left.ty, ty).map_err(|failed| {
            let shown = format!("{} {symbol} {}", self.type_text(left.ty), self.type_text(ty));
            failure(&failed, Named::Operator(&shown, 2)).at(position)
        })?;
        if row.result != SqlType::BOOL {
            let shown = self.type_text(row.result);
            let message = format!("row comparison operator must yield type boolean, not type {shown}");
            let error = SqlError::new(SqlState::DATATYPE_MISMATCH, message);
            return Err(error.at(position));
        }
        if left.expr.returns_set() {
            let message = "row comparison operator must not return a set";
            return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message).at(position));
        }
        let (l, r) = match choice.args.as_slice() {
            [(_, l), (_, r)] => (*l, *r),
            _ => (left.ty, ty),
        };
        let left = self.coerce(left, l, CastContext::Implicit)?;
        let left = Box::new(left.ok_or_else(|| self.unsupported("this comparison is", at))?.expr);
        self.convert_output(&mut plan, 0, ty, r)?;
        let is_set = !all && row.name == "=" && compares_alike(l, r);
        let function = Elementwise { function: choice.function, operator: row.name, types: [l, r], all };
        if is_set && args.is_empty() && limit_of(&plan).is_some_and(|limit| limit <= FEW_ROWS) && r.array().is_some() {
            let plan = self.subquery(plan, usize::MAX, false);
            let kind = SubqueryKind::Array { element: r, is_nested: false };
            let array = Box::new(Expr::Subquery(Subquery { plan, args, kind }));
            return Ok(Typed::new(Expr::Elements { function, left, array }, SqlType::BOOL, at));
        }
        let plan = self.subquery(plan, usize::MAX, is_set);
        let kind = SubqueryKind::Elements { function, left };
        Ok(Typed::new(Expr::Subquery(Subquery { plan, args, kind }), SqlType::BOOL, at))
    }
}

//! Comparisons and constructs built from them: row values, BETWEEN, IN, ANY and ALL, IS DISTINCT FROM.
//!
//! Some constructs use an operand several times. It is bound once, and evaluated once unless that is free
//! ([`SharedOperands`]). Copies would make nested constructs exponentially large.

use std::cmp::Ordering;

use sqlparser::ast::{BinaryOperator, Expr as Ast, FunctionArg, FunctionArgExpr, FunctionArguments, Query, Spanned};
use sqlparser::tokenizer::{Location, Span};

use super::binder::{Binder, Scope, Typed};
use super::calls::{Named, failure};
use super::operators::{Operands, no_row_operator, symbol_of};
use crate::error::{SqlError, SqlState};
use crate::expr::fold::fold;
use crate::expr::{CompareOp, Elementwise, Expr, compares_alike};
use crate::parse::{NO_LOCATION, is_distinct, quantified_operator, query_start, start_of, symmetric_bound};
use pgtypes::cast::{CastContext, cast_context};
use pgtypes::datum::compare;
use pgtypes::functions::{common_type, resolve};
use pgtypes::{Datum, SqlType};

/// The shortest list of constants that is sorted for binary search.
const MIN_SORTED_LIST: usize = 32;

/// An operator, and how it is written.
#[derive(Clone, Copy)]
pub(super) struct WrittenOperator<'t> {
    pub(super) symbol: &'t str,
    pub(super) written: Written<'t>,
}

/// How an operator is written.
#[derive(Clone, Copy)]
pub(super) enum Written<'t> {
    /// As its symbol.
    Symbol,
    /// As a word.
    Word(&'t str),
    /// In a way of its own, here.
    At(Location),
}

/// Operands that a construct uses more than once.
#[derive(Default)]
pub(super) struct SharedOperands(Vec<Expr>);

impl SharedOperands {
    /// Wraps the expression that uses them in a `Let`.
    pub(super) fn wrap(self, body: Expr) -> Expr {
        if self.0.is_empty() { fold(body) } else { Expr::Let { values: self.0, body: Box::new(body) } }
    }
}

/// Whether copying an expression and evaluating it again is cheap.
fn is_cheap(expr: &Expr) -> bool {
    const SMALL: usize = 64;
    match expr {
        Expr::Const(value) => value.memory() <= SMALL,
        Expr::Column(_) | Expr::Param(_) | Expr::Context(_) => true,
        Expr::Cast { expr, .. } => matches!(**expr, Expr::Column(_) | Expr::Param(_)),
        _ => false,
    }
}

impl Binder<'_> {
    /// An operand that can be used several times.
    pub(super) fn share(&mut self, value: Typed, shared: &mut SharedOperands) -> Result<Typed, SqlError> {
        // What has no type takes one from each use: a literal.
        if is_cheap(&value.expr) || value.ty == SqlType::UNKNOWN {
            return Ok(value);
        }
        shared.0.push(value.expr);
        Ok(Typed { expr: Expr::Local(shared.0.len() - 1), ..value })
    }

    /// Binds a comparison.
    pub(super) fn compare(
        &mut self,
        op: CompareOp,
        left: Typed,
        right: Typed,
        ast: Operands<'_>,
    ) -> Result<Typed, SqlError> {
        self.operator(op.symbol(), op.symbol(), left, right, ast)
    }

    /// Converts two operands to types whose values compare alike. `position` is that of the operator.
    fn comparable(
        &mut self,
        op: CompareOp,
        left: Typed,
        right: Typed,
        position: u32,
    ) -> Result<(Expr, Expr, SqlType), SqlError> {
        let types = (left.ty, right.ty);
        let (_, choice) = resolve::binary(op.symbol(), left.ty, right.ty).map_err(|failed| {
            let shown = format!("{} {} {}", self.type_text(types.0), op.symbol(), self.type_text(types.1));
            failure(&failed, Named::Operator(&shown, 2)).at(position)
        })?;
        let (mut l, mut r) = match choice.args.as_slice() {
            [(_, l), (_, r)] => (*l, *r),
            _ => (left.ty, right.ty),
        };
        if !compares_alike(l, r) {
            // Dates and times of several types: as the wider one.
            let common = common_type(&[l, r]).unwrap_or(l);
            (l, r) = (common, common);
        }
        let at = left.at;
        let (left, right) =
            (self.coerce(left, l, CastContext::Implicit)?, self.coerce(right, r, CastContext::Implicit)?);
        match (left, right) {
            (Some(left), Some(right)) => Ok((left.expr, right.expr, l)),
            _ => Err(self.unsupported("this comparison is", at)),
        }
    }

    /// `IS [NOT] DISTINCT FROM`.
    pub(super) fn distinct(
        &mut self,
        left: Typed,
        right: Typed,
        negated: bool,
        ast: Operands<'_>,
    ) -> Result<Typed, SqlError> {
        let at = left.at;
        let is_null = |value: &Typed| value.ty == SqlType::UNKNOWN && value.expr == Expr::Const(Datum::Null);
        let of_row = [left.ty, right.ty].contains(&SqlType::RECORD);
        if !of_row && (is_null(&left) || is_null(&right)) {
            // A test for NULL. A parameter gets no type by it.
            let value = if is_null(&right) { left } else { right };
            self.note_untyped(&value);
            let expr = Expr::IsNull { expr: Box::new(value.expr), negated: !negated };
            return Ok(Typed::new(fold(expr), SqlType::BOOL, at));
        }
        let position = self.position_between(ast.0.span(), "is", ast.1.span());
        let (left, right, ty) = self.comparable(CompareOp::Eq, left, right, position)?;
        let expr = Expr::Distinct { left: Box::new(left), right: Box::new(right), negated, ty };
        Ok(Typed::new(fold(expr), SqlType::BOOL, at))
    }

    /// `(a, b) = (c, d)` and the other comparisons, also with `(SELECT c, d)`. Errors of operators are at the one
    /// between the rows.
    pub(super) fn compare_rows(&mut self, rows: &RowOperands<'_>, scope: &Scope) -> Result<Typed, SqlError> {
        let RowOperands { op, left, right } = rows;
        let at = left.first().map_or(NO_LOCATION, |ast| start_of(ast));
        let after = match right {
            RightRow::Fields(fields) => fields.first().map(|field| field.span()),
            RightRow::Query(query) => Some(query.span()),
        };
        let position = match (left.last(), after) {
            (Some(left), Some(right)) => self.position_between(left.span(), op.symbol(), right),
            _ => 0,
        };
        let left = self.row_items(left.iter().copied(), scope)?;
        let right = match right {
            RightRow::Fields(fields) => self.row_items(fields.iter().copied(), scope)?,
            RightRow::Query(query) => {
                let (types, fields) = self.fields_of(query, scope)?;
                check_query_width(left.len(), types.len()).map_err(|error| error.at(position))?;
                let typed = fields.into_iter().zip(types).map(|(field, ty)| Typed::new(field, ty, query_start(query)));
                typed.collect()
            }
        };
        if left.len() != right.len() {
            return Err(unequal_rows().at(position));
        }
        let pairs: Vec<_> = left.into_iter().zip(right).collect();
        let expr = match op {
            CompareOp::Eq | CompareOp::NotEq => {
                let mut items = Vec::with_capacity(pairs.len());
                for (left, right) in pairs {
                    items.push(self.compared(*op, left, right, position)?);
                }
                fold(if *op == CompareOp::Eq { Expr::And(items) } else { Expr::Or(items) })
            }
            op => self.rows_ordered(*op, pairs, position)?,
        };
        Ok(Typed::new(fold(expr), SqlType::BOOL, at))
    }

    /// A comparison of fields of two rows.
    fn compared(&mut self, op: CompareOp, left: Typed, right: Typed, position: u32) -> Result<Expr, SqlError> {
        let nowhere = Ast::Tuple(Vec::new());
        let compared = self.compare(op, left, right, (&nowhere, &nowhere));
        compared.map(|compared| compared.expr).map_err(|error| self.operator_at(error, position))
    }

    fn check_row_width(&self, left: &[Ast], right: &[Ast]) -> Result<(), SqlError> {
        if left.len() == right.len() {
            return Ok(());
        }
        let position = self.position_before(right.first().map_or(NO_LOCATION, start_of), "=");
        Err(unequal_rows().at(position))
    }

    /// The equality of two rows of the same width. `operands` are the bound columns of the left one.
    fn rows_equal(
        &mut self,
        operands: Vec<Typed>,
        left: &[Ast],
        right: &[Ast],
        scope: &Scope,
    ) -> Result<Expr, SqlError> {
        let mut items = Vec::with_capacity(left.len());
        for ((operand, l), r) in operands.into_iter().zip(left).zip(right) {
            let other = self.expr(r, scope)?;
            items.push(self.compare(CompareOp::Eq, operand, other, (l, r))?.expr);
        }
        Ok(fold(Expr::And(items)))
    }

    /// `(a, b) < (c, d)`: `a < c OR a = c AND b < d`.
    fn rows_ordered(&mut self, op: CompareOp, fields: Vec<(Typed, Typed)>, position: u32) -> Result<Expr, SqlError> {
        let strict = match op {
            CompareOp::Less | CompareOp::LessEq => CompareOp::Less,
            CompareOp::Greater | CompareOp::GreaterEq => CompareOp::Greater,
            _ => return Err(no_row_operator(op.symbol())),
        };
        let mut shared = SharedOperands::default();
        let mut pairs = Vec::with_capacity(fields.len());
        for (left, right) in fields {
            let places = (left.at, right.at);
            let (a, b, ty) = self.comparable(op, left, right, position)?;
            let a = self.share(Typed::new(a, SqlType::BOOL, places.0), &mut shared)?.expr;
            let b = self.share(Typed::new(b, SqlType::BOOL, places.1), &mut shared)?.expr;
            pairs.push((a, b, ty));
        }
        let compare = |op: CompareOp, (a, b, ty): &(Expr, Expr, SqlType)| {
            fold(Expr::Compare { op, left: Box::new(a.clone()), right: Box::new(b.clone()), ty: *ty })
        };
        let Some((last, first)) = pairs.split_last() else { return Err(no_row_operator(op.symbol())) };
        let mut expr = compare(op, last);
        for pair in first.iter().rev() {
            let tied = fold(Expr::And(vec![compare(CompareOp::Eq, pair), expr]));
            expr = fold(Expr::Or(vec![compare(strict, pair), tied]));
        }
        Ok(shared.wrap(expr))
    }

    /// BETWEEN SYMMETRIC: the bounds in either order.
    fn between_symmetric(
        &mut self,
        value: &Ast,
        negated: bool,
        bounds: (&Ast, &Ast),
        scope: &Scope,
    ) -> Result<Typed, SqlError> {
        let at = start_of(value);
        let mut shared = SharedOperands::default();
        let mut operands = Vec::with_capacity(3);
        for ast in [value, bounds.0, bounds.1] {
            let operand = self.expr(ast, scope)?;
            operands.push(self.share(operand, &mut shared)?);
        }
        let mut compare = |op, left: usize, right: usize, ast: Operands<'_>| {
            let (left, right) = (self.typed_again(operands[left].clone()), self.typed_again(operands[right].clone()));
            let compared = self.compare(op, left, right, ast);
            compared.map(|compared| compared.expr).map_err(|e| self.keyword_position(e, value, "between", bounds.0))
        };
        let mut within = |low, high| -> Result<Expr, SqlError> {
            let first = compare(CompareOp::GreaterEq, 0, low, (value, bounds.0))?;
            Ok(Expr::And(vec![first, compare(CompareOp::LessEq, 0, high, (value, bounds.1))?]))
        };
        let expr = Expr::Or(vec![within(1, 2)?, within(2, 1)?]);
        let expr = if negated { Expr::Not(Box::new(expr)) } else { expr };
        Ok(Typed::new(shared.wrap(expr), SqlType::BOOL, at))
    }

    /// `value [NOT] BETWEEN low AND high`.
    pub(super) fn between_values(
        &mut self,
        value: &Ast,
        negated: bool,
        bounds: (&Ast, &Ast),
        scope: &Scope,
    ) -> Result<Typed, SqlError> {
        let first = symmetric_bound(bounds.0);
        let (low, word) = (first.unwrap_or(bounds.0), if negated { "not" } else { "between" });
        self.refuse_nonassociative(Level::Between, value, Some(low), word)?;
        if let Some(first) = first {
            return self.between_symmetric(value, negated, (first, bounds.1), scope);
        }
        let at = start_of(value);
        let (low_op, high_op) = match negated {
            false => (CompareOp::GreaterEq, CompareOp::LessEq),
            true => (CompareOp::Less, CompareOp::Greater),
        };
        let mut shared = SharedOperands::default();
        let operand = self.expr(value, scope)?;
        let operand = self.share(operand, &mut shared)?;
        let low = self.expr(bounds.0, scope)?;
        let first = self.compare(low_op, operand.clone(), low, (value, bounds.0));
        let first = first.map_err(|e| self.keyword_position(e, value, "between", bounds.0))?.expr;
        let high = self.expr(bounds.1, scope)?;
        let operand = self.typed_again(operand);
        let second = self.compare(high_op, operand, high, (value, bounds.1));
        let second = second.map_err(|e| self.keyword_position(e, value, "between", bounds.0))?.expr;
        let expr = if negated { Expr::Or(vec![first, second]) } else { Expr::And(vec![first, second]) };
        let expr = shared.wrap(expr);
        self.refuse_set(&expr, if negated { "OR" } else { "AND" }, at)?;
        Ok(Typed::new(expr, SqlType::BOOL, at))
    }

    /// An operand that is used once more. A parameter has the type that its first use gave it.
    pub(super) fn typed_again(&self, value: Typed) -> Typed {
        match value.expr {
            Expr::Param(number) if value.ty == SqlType::UNKNOWN => Typed { ty: self.params[number], ..value },
            _ => value,
        }
    }

    /// Sets the position of an operator error.
    pub(super) fn operator_at(&self, mut error: SqlError, position: u32) -> SqlError {
        if matches!(error.code, SqlState::UNDEFINED_FUNCTION | SqlState::AMBIGUOUS_FUNCTION) {
            error.position = Some(position);
        }
        error
    }

    /// Sets the position of an operator error to the keyword of the construct.
    pub(super) fn keyword_position(&self, error: SqlError, left: &Ast, word: &str, right: &Ast) -> SqlError {
        self.operator_at(error, self.position_between(left.span(), word, right.span()))
    }

    /// `value [NOT] IN (list)`.
    pub(super) fn in_list(
        &mut self,
        value: &Ast,
        list: &[Ast],
        negated: bool,
        scope: &Scope,
    ) -> Result<Typed, SqlError> {
        let at = start_of(value);
        let word = if negated { "not" } else { "in" };
        self.refuse_nonassociative(Level::Between, value, list.first(), word)?;
        if let Ast::Tuple(left) = value {
            let found = self.row_in_list(left, list, scope)?;
            let expr = if negated { fold(Expr::Not(Box::new(found))) } else { found };
            return Ok(Typed::new(expr, SqlType::BOOL, at));
        }
        let operand = self.expr(value, scope)?;
        let mut items = Vec::with_capacity(list.len());
        for ast in list {
            items.push((self.expr(ast, scope)?, ast));
        }
        // Those with columns are compared one by one, the others in their common type.
        let (fixed, others): (Vec<_>, Vec<_>) = items.into_iter().partition(|(item, _)| item.expr.is_row_independent());
        let types: Vec<SqlType> = std::iter::once(operand.ty).chain(fixed.iter().map(|(item, _)| item.ty)).collect();
        let common = if fixed.len() > 1 { common_type(&types).ok() } else { None };
        // PostgreSQL makes an array of them, if there is one.
        let common = common.filter(|ty| ty.array().is_some() && ty.base() != SqlType::RECORD);
        let converts = |from: &SqlType, to: SqlType| {
            from.oid == SqlType::UNKNOWN.oid
                || from.oid == to.oid
                || cast_context(*from, to) == Some(CastContext::Implicit)
        };
        let common = common.filter(|common| types.iter().all(|ty| converts(ty, *common)));
        let Some(common) = common else {
            let all = fixed.into_iter().chain(others).collect();
            return self.in_comparisons(operand, all, value, (negated, word));
        };
        let mut shared = SharedOperands::default();
        let mut operand = self.share(operand, &mut shared)?;
        let mut parts = vec![self.in_common_type(operand.clone(), fixed, common, value, (negated, word))?];
        // A parameter has its type now.
        if let Expr::Param(number) = operand.expr {
            operand.ty = self.params[number];
        }
        for (item, ast) in others {
            parts.push(self.in_comparison(operand.clone(), item, (value, ast), (negated, word))?);
        }
        let expr = match (parts.len(), negated) {
            (1, _) => parts.remove(0),
            (_, false) => Expr::Or(parts),
            (_, true) => Expr::And(parts),
        };
        Ok(Typed::new(shared.wrap(expr), SqlType::BOOL, at))
    }

    /// IN a list whose items have a common type.
    fn in_common_type(
        &mut self,
        operand: Typed,
        items: Vec<(Typed, &Ast)>,
        common: SqlType,
        value: &Ast,
        (negated, word): (bool, &str),
    ) -> Result<Expr, SqlError> {
        let symbol = if negated { "<>" } else { "=" };
        let first = items.first().map_or(value, |(_, ast)| *ast);
        let (_, choice) = resolve::binary(symbol, operand.ty, common).map_err(|failed| {
            let shown = format!("{} {symbol} {}", self.type_text(operand.ty), self.type_text(common));
            let error = failure(&failed, Named::Operator(&shown, 2));
            self.keyword_position(error, value, word, first)
        })?;
        let (l, r) = match choice.args.as_slice() {
            [(_, l), (_, r)] if compares_alike(*l, *r) => (*l, *r),
            _ => return self.in_comparisons(operand, items, value, (negated, word)).map(|found| found.expr),
        };
        let at = operand.at;
        let operand = self.coerce(operand, l, CastContext::Implicit)?;
        let operand = operand.ok_or_else(|| self.unsupported("this list is", at))?;
        let mut list = Vec::with_capacity(items.len());
        for (item, _) in items {
            let at = item.at;
            let item = self.coerce(item, common, CastContext::Implicit)?;
            let item = item.map(|item| self.coerce(item, r, CastContext::Implicit)).transpose()?.flatten();
            list.push(item.ok_or_else(|| self.unsupported("this list is", at))?.expr);
        }
        Ok(fold(in_list_expr((operand.expr, l), list, negated)))
    }

    fn in_comparison(
        &mut self,
        operand: Typed,
        item: Typed,
        ast: Operands<'_>,
        (negated, word): (bool, &str),
    ) -> Result<Expr, SqlError> {
        let op = if negated { CompareOp::NotEq } else { CompareOp::Eq };
        let found = self.compare(op, operand, item, ast);
        Ok(found.map_err(|error| self.keyword_position(error, ast.0, word, ast.1))?.expr)
    }

    /// Binds IN as a chain of comparisons, each with its own type.
    fn in_comparisons(
        &mut self,
        operand: Typed,
        items: Vec<(Typed, &Ast)>,
        value: &Ast,
        how: (bool, &str),
    ) -> Result<Typed, SqlError> {
        let at = operand.at;
        let mut shared = SharedOperands::default();
        let operand = if items.len() > 1 { self.share(operand, &mut shared)? } else { operand };
        let mut found = Vec::with_capacity(items.len());
        // The operand is bound once: a parameter has to get the same type from all comparisons.
        for (item, ast) in items {
            found.push(self.in_comparison(operand.clone(), item, (value, ast), how)?);
        }
        let expr = match (found.len(), how.0) {
            (1, _) => found.remove(0),
            (_, false) => fold(Expr::Or(found)),
            (_, true) => fold(Expr::And(found)),
        };
        Ok(Typed::new(shared.wrap(expr), SqlType::BOOL, at))
    }

    fn row_in_list(&mut self, left: &[Ast], list: &[Ast], scope: &Scope) -> Result<Expr, SqlError> {
        let mut shared = SharedOperands::default();
        let mut operands = Vec::with_capacity(left.len());
        for ast in left {
            let operand = self.expr(ast, scope)?;
            operands.push(self.share(operand, &mut shared)?);
        }
        let mut rows = Vec::with_capacity(list.len());
        for item in list {
            let Ast::Tuple(right) = item else { return Err(self.unsupported_expr(item)) };
            self.check_row_width(left, right)?;
            let operands = operands.iter().map(|operand| self.typed_again(operand.clone())).collect();
            rows.push(self.rows_equal(operands, left, right, scope)?);
        }
        Ok(shared.wrap(Expr::Or(rows)))
    }

    /// `left op ANY (array)`, or ALL.
    pub(super) fn elements(
        &mut self,
        (left, op, right): (&Ast, &BinaryOperator, &Ast),
        all: bool,
        scope: &Scope,
    ) -> Result<Typed, SqlError> {
        let at = start_of(left);
        let (operator, right) = self.quantified(at, op, right)?;
        if let (Some(fields), Ast::Subquery(query)) = (row_fields(left), right) {
            return self.row_elements((left, &fields, operator, query), all, scope);
        }
        if let Ast::Subquery(query) = right {
            return self.elements_of_query((left, operator, query), all, scope);
        }
        let symbol = operator.symbol;
        let value = self.expr(left, scope)?;
        let array = self.expr(right, scope)?;
        let wrong = |this: &Self, message: &str| {
            let position = this.written_place(left, operator, right.span());
            SqlError::new(SqlState::WRONG_OBJECT_TYPE, message).at(position)
        };
        let element = match array.ty {
            SqlType::UNKNOWN => SqlType::UNKNOWN,
            ty => ty.element().ok_or_else(|| wrong(self, "op ANY/ALL (array) requires array on right side"))?,
        };
        let (row, choice) = resolve::binary(symbol, value.ty, element).map_err(|failed| {
            let shown = format!("{} {symbol} {}", self.type_text(value.ty), self.type_text(element));
            failure(&failed, Named::Operator(&shown, 2)).at(self.written_place(left, operator, right.span()))
        })?;
        if row.result != SqlType::BOOL {
            return Err(wrong(self, "op ANY/ALL (array) requires operator to yield boolean"));
        }
        let (l, r) = match choice.args.as_slice() {
            [(_, l), (_, r)] => (*l, *r),
            _ => (value.ty, element),
        };
        let wanted = r.array().ok_or_else(|| {
            let message = format!("could not find array type for data type {}", self.type_text(r));
            SqlError::new(SqlState::UNDEFINED_OBJECT, message).at(self.written_place(left, operator, right.span()))
        })?;
        let value = self.coerce(value, l, CastContext::Implicit)?;
        let array = self.coerce(array, wanted, CastContext::Implicit)?;
        let (Some(value), Some(array)) = (value, array) else {
            return Err(self.unsupported("this comparison with an array is", at));
        };
        let is_list = !all && row.name == "=" && compares_alike(l, r);
        if let (true, Expr::Const(Datum::Array(array))) = (is_list, &array.expr) {
            let list = array.elements().iter().cloned().map(Expr::Const).collect::<Vec<_>>();
            if !list.is_empty() {
                return Ok(Typed::new(fold(in_list_expr((value.expr, l), list, false)), SqlType::BOOL, at));
            }
        }
        let function = Elementwise { function: choice.function, operator: row.name, types: [l, r], all };
        let expr = Expr::Elements { function, left: Box::new(value.expr), array: Box::new(array.expr) };
        Ok(Typed::new(fold(expr), SqlType::BOOL, at))
    }

    /// The operator before ANY or ALL, and what the parentheses hold.
    fn quantified<'t>(
        &self,
        at: Location,
        op: &'t BinaryOperator,
        right: &'t Ast,
    ) -> Result<(WrittenOperator<'t>, &'t Ast), SqlError> {
        let (symbol, written, right) = match quantified_operator(right) {
            Some(found) => (found.symbol, Written::At(found.at), found.operand),
            None => (symbol_of(op), Written::Symbol, right),
        };
        match symbol {
            Some(symbol) => Ok((WrittenOperator { symbol, written }, right)),
            None => Err(self.unsupported("an operator of this schema is", at)),
        }
    }

    /// Where an operator stands. `right`: where its right operand does.
    pub(super) fn written_place(&self, left: &Ast, operator: WrittenOperator<'_>, right: Span) -> u32 {
        match operator.written {
            Written::At(at) => self.position(at),
            Written::Symbol => self.position_between(left.span(), operator.symbol, right),
            Written::Word(word) => self.position_between(left.span(), word, right),
        }
    }

    /// 42601 for non-associative operators without parentheses: `a < b = c`, `a LIKE b LIKE c`, `a IS DISTINCT FROM b
    /// IS NULL`. `symbol` is the operator before `right`.
    pub(super) fn refuse_nonassociative(
        &self,
        level: Level,
        left: &Ast,
        right: Option<&Ast>,
        symbol: &str,
    ) -> Result<(), SqlError> {
        if trailing_level(left) != Some(level) {
            return Ok(());
        }
        let message = format!("syntax error at or near \"{symbol}\"");
        let position = self.position_between(left.span(), symbol, right.map_or_else(Span::empty, Spanned::span));
        Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(position))
    }
}

/// Levels of non-associative operators.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    /// BETWEEN, IN, LIKE
    Between,
    /// `=` and the other comparisons
    Comparison,
    /// IS
    Is,
}

/// The level of an unparenthesised expression of such an operator.
fn trailing_level(expr: &Ast) -> Option<Level> {
    match expr {
        Ast::BinaryOp { op: BinaryOperator::Custom(op), .. } => is_distinct(op).map(|_| Level::Is),
        Ast::BinaryOp { op, .. } if is_comparison(op) => Some(Level::Comparison),
        Ast::Like { .. } | Ast::ILike { .. } | Ast::SimilarTo { .. } | Ast::Between { .. } => Some(Level::Between),
        _ => None,
    }
}

/// Whether an operator is a comparison.
pub(super) fn is_comparison(op: &BinaryOperator) -> bool {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq)
}

/// An IN list. A long list of constants is sorted.
fn in_list_expr((expr, ty): (Expr, SqlType), list: Vec<Expr>, negated: bool) -> Expr {
    let expr = Box::new(expr);
    if list.len() <= MIN_SORTED_LIST || !list.iter().all(|item| matches!(item, Expr::Const(_))) {
        return Expr::InList { expr, list, negated, ty };
    }
    let mut values: Vec<Datum> = list
        .into_iter()
        .filter_map(|item| match item {
            Expr::Const(value) => Some(value),
            _ => None,
        })
        .collect();
    let all = values.len();
    values.retain(|value| !value.is_null());
    let with_null = values.len() < all;
    values.sort_unstable_by(compare);
    values.dedup_by(|a, b| compare(a, b).is_eq());
    Expr::InSet { expr, values, with_null, negated, ty }
}

/// 42601 for rows of different widths.
fn unequal_rows() -> SqlError {
    SqlError::new(SqlState::SYNTAX_ERROR, "unequal number of entries in row expressions")
}

/// 42601 for a sub-query that has not the columns of the row that it is compared with.
pub(super) fn check_query_width(row: usize, query: usize) -> Result<(), SqlError> {
    let message = match query.cmp(&row) {
        Ordering::Equal => return Ok(()),
        Ordering::Less => "subquery has too few columns",
        Ordering::Greater => "subquery has too many columns",
    };
    Err(SqlError::new(SqlState::SYNTAX_ERROR, message))
}

/// A comparison of rows.
pub(super) struct RowOperands<'a> {
    op: CompareOp,
    left: Vec<&'a Ast>,
    right: RightRow<'a>,
}

/// What a row is compared with.
enum RightRow<'a> {
    Fields(Vec<&'a Ast>),
    Query(&'a Query),
}

/// Two row values under a comparison.
pub(super) fn row_operands<'a>(op: &BinaryOperator, left: &'a Ast, right: &'a Ast) -> Option<RowOperands<'a>> {
    let op = CompareOp::named(symbol_of(op)?)?;
    let right = match right {
        Ast::Subquery(query) => RightRow::Query(query),
        right => RightRow::Fields(row_fields(right)?),
    };
    Some(RowOperands { op, left: row_fields(left)?, right })
}

/// The fields of `(a, b)` and of `ROW(a, b)`.
pub(super) fn row_fields(ast: &Ast) -> Option<Vec<&Ast>> {
    match ast {
        Ast::Tuple(fields) => Some(fields.iter().collect()),
        Ast::Function(call) if call.name.to_string().eq_ignore_ascii_case("row") => match &call.args {
            FunctionArguments::List(list) => list
                .args
                .iter()
                .map(|arg| match arg {
                    FunctionArg::Unnamed(FunctionArgExpr::Expr(field)) => Some(field),
                    _ => None,
                })
                .collect(),
            _ => None,
        },
        _ => None,
    }
}

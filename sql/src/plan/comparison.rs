//! Comparisons and constructs built from them: row values, BETWEEN, IN, IS DISTINCT FROM.
//!
//! Some constructs use an operand several times. It is bound once, and evaluated once unless that is free
//! ([`SharedOperands`]). Copies would make nested constructs exponentially large.

use sqlparser::ast::{BinaryOperator, Expr as Ast, Spanned};
use sqlparser::tokenizer::Span;

use super::binder::{Binder, Scope, Typed};
use super::decimal::{ALWAYS_FALSE, Decimal};
use super::operators::Operands;
use crate::error::{SqlError, SqlState};
use crate::expr::eval::fold;
use crate::expr::{CompareOp, Expr};
use crate::parse::{NO_LOCATION, is_distinct, start_of};
use pgtypes::cast::CastContext;
use pgtypes::datum::compare;
use pgtypes::{Datum, SqlType};

/// The shortest list of constants that is sorted for binary search.
const MIN_SORTED_LIST: usize = 32;

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

/// The type in which values of two types are compared; `None` if they cannot be.
fn common(a: SqlType, b: SqlType) -> Option<SqlType> {
    Some(match (a.base(), b.base()) {
        (SqlType::UNKNOWN, SqlType::UNKNOWN) => SqlType::TEXT,
        (SqlType::UNKNOWN, ty) | (ty, SqlType::UNKNOWN) if ty.is_text() => SqlType::TEXT,
        (SqlType::UNKNOWN, ty) | (ty, SqlType::UNKNOWN) => ty,
        (a, b) if a == b || (a.is_text() && b.is_text()) => a,
        (a, b) if a.is_integer() && b.is_integer() => SqlType::INT8,
        (a, b) if a.is_number() && b.is_number() => SqlType::FLOAT8,
        _ => return None,
    })
}

/// The decimal literal of a comparison with an integer, and whether the literal is on the left.
fn integer_and_decimal(left: &Typed, right: &Typed) -> Option<(Decimal, bool)> {
    match (left.decimal, right.decimal) {
        (None, Some(decimal)) if left.ty.is_integer() => Some((decimal, false)),
        (Some(decimal), None) if right.ty.is_integer() => Some((decimal, true)),
        _ => None,
    }
}

/// A comparison that is false for every integer and NULL for NULL.
fn always_false(value: Expr) -> Expr {
    let (op, least) = ALWAYS_FALSE;
    Expr::Compare { op, left: Box::new(value), right: Box::new(Expr::Const(Datum::Int(least))) }
}

impl Binder<'_> {
    /// An operand that can be used several times.
    pub(super) fn share(&mut self, value: Typed, shared: &mut SharedOperands) -> Result<Typed, SqlError> {
        if is_cheap(&value.expr) {
            return Ok(value);
        }
        // A literal takes its type from its use, so it needs one before it is shared.
        let value = self.resolve_unknown(value)?;
        shared.0.push(value.expr);
        Ok(Typed { expr: Expr::Local(shared.0.len() - 1), ..value })
    }

    /// Refuses two operands that PostgreSQL compares as `numeric`, unless floats compare alike: if they keep the digits
    /// of both.
    fn check_numeric(&self, left: &Typed, right: &Typed) -> Result<(), SqlError> {
        let is_kept = |side: &Typed| !side.loses_digits() && side.ty != SqlType::INT8;
        let as_numeric =
            |a: &Typed, b: &Typed| a.is_decimal() && (b.ty.is_number() || b.ty == SqlType::UNKNOWN) && !b.is_float();
        if (as_numeric(left, right) || as_numeric(right, left)) && !(is_kept(left) && is_kept(right)) {
            return Err(self.needs_numeric("a comparison of values", left.at));
        }
        Ok(())
    }

    /// Casts two operands to their comparison type; `None` if there is none.
    fn comparable(&mut self, left: Typed, right: Typed) -> Result<Option<(Expr, Expr)>, SqlError> {
        let (left, right) = (self.refresh_type(left), self.refresh_type(right));
        let right = if left.is_decimal() { self.numeric_text(right)? } else { right };
        let left = if right.is_decimal() { self.numeric_text(left)? } else { left };
        self.check_numeric(&left, &right)?;
        let Some(ty) = common(left.ty, right.ty) else { return Ok(None) };
        let left = self.coerce(left, ty, CastContext::Implicit)?;
        let right = self.coerce(right, ty, CastContext::Implicit)?;
        Ok(left.zip(right).map(|(left, right)| (left.expr, right.expr)))
    }

    /// Binds a comparison.
    pub(super) fn compare(
        &mut self,
        op: CompareOp,
        left: Typed,
        right: Typed,
        ast: Operands<'_>,
    ) -> Result<Typed, SqlError> {
        let (left, right) = (self.refresh_type(left), self.refresh_type(right));
        let (types, at) = ((left.type_name(), right.type_name()), left.at);
        let (op, left, right) = match integer_and_decimal(&left, &right) {
            Some((decimal, swapped)) => {
                let (op, value) = decimal.compared(if swapped { op.flip() } else { op });
                (op, if swapped { right.expr } else { left.expr }, Expr::Const(Datum::Int(value)))
            }
            None => match self.comparable(left, right)? {
                Some((left, right)) => (op, left, right),
                None => return Err(self.no_operator(op.symbol(), types, ast)),
            },
        };
        let expr = Expr::Compare { op, left: Box::new(left), right: Box::new(right) };
        Ok(Typed::new(fold(expr), SqlType::BOOL, at))
    }

    /// `IS [NOT] DISTINCT FROM`.
    pub(super) fn distinct(
        &mut self,
        left: Typed,
        right: Typed,
        negated: bool,
        ast: Operands<'_>,
    ) -> Result<Typed, SqlError> {
        let (left, right) = (self.refresh_type(left), self.refresh_type(right));
        let (types, at) = ((left.type_name(), right.type_name()), left.at);
        let expr = match integer_and_decimal(&left, &right) {
            Some((decimal, swapped)) => {
                let integer = Box::new(if swapped { right.expr } else { left.expr });
                match decimal.integer() {
                    Some(value) => {
                        Expr::Distinct { left: integer, right: Box::new(Expr::Const(Datum::Int(value))), negated }
                    }
                    // No integer equals the fraction, and NULL does not either: always distinct.
                    None => {
                        let known = Expr::IsNull { expr: integer, negated: false };
                        Expr::IsNull { expr: Box::new(known), negated: !negated }
                    }
                }
            }
            None => match self.comparable(left, right)? {
                Some((a, b)) => Expr::Distinct { left: Box::new(a), right: Box::new(b), negated },
                None => {
                    let error = self.no_operator("=", types, ast);
                    return Err(self.keyword_position(error, ast.0, "is", ast.1));
                }
            },
        };
        Ok(Typed::new(fold(expr), SqlType::BOOL, at))
    }

    /// `(a, b) = (c, d)` and `<>`.
    pub(super) fn compare_rows(&mut self, rows: RowOperands<'_>, scope: &Scope) -> Result<Typed, SqlError> {
        let (negated, left, right) = rows;
        let at = left.first().map_or(NO_LOCATION, start_of);
        self.check_row_width(left, right)?;
        let mut operands = Vec::with_capacity(left.len());
        for ast in left {
            operands.push(self.expr(ast, scope)?);
        }
        let equal = self.rows_equal(operands, left, right, scope)?;
        let expr = if negated { Expr::Not(Box::new(equal)) } else { equal };
        Ok(Typed::new(fold(expr), SqlType::BOOL, at))
    }

    fn check_row_width(&self, left: &[Ast], right: &[Ast]) -> Result<(), SqlError> {
        if left.len() == right.len() {
            return Ok(());
        }
        let position = self.position_before(right.first().map_or(NO_LOCATION, start_of), "=");
        Err(SqlError::new(SqlState::SYNTAX_ERROR, "unequal number of entries in row expressions").at(position))
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

    /// `value [NOT] BETWEEN low AND high`.
    pub(super) fn between_values(
        &mut self,
        value: &Ast,
        negated: bool,
        bounds: (&Ast, &Ast),
        scope: &Scope,
    ) -> Result<Typed, SqlError> {
        self.refuse_nonassociative(Level::Between, value, Some(bounds.0), if negated { "not" } else { "between" })?;
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
        let second = self.compare(high_op, operand, high, (value, bounds.1));
        let second = second.map_err(|e| self.keyword_position(e, value, "between", bounds.0))?.expr;
        let expr = if negated { Expr::Or(vec![first, second]) } else { Expr::And(vec![first, second]) };
        Ok(Typed::new(shared.wrap(expr), SqlType::BOOL, at))
    }

    /// Sets the position of an operator error to the keyword of the construct.
    pub(super) fn keyword_position(&self, mut error: SqlError, left: &Ast, word: &str, right: &Ast) -> SqlError {
        if error.code == SqlState::UNDEFINED_FUNCTION {
            error.position = Some(self.position_between(left.span(), word, right.span()));
        }
        error
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
        let operand = self.refresh_type(operand);
        let mut items: Vec<(Typed, &Ast)> =
            items.into_iter().map(|(item, ast)| (self.refresh_type(item), ast)).collect();
        let operand =
            if items.iter().any(|(item, _)| item.is_decimal()) { self.numeric_text(operand)? } else { operand };
        for (item, _) in &mut items {
            if operand.is_decimal() {
                *item = self.numeric_text(item.clone())?;
            }
            if integer_and_decimal(&operand, item).is_none() {
                self.check_numeric(&operand, item)?;
            }
        }
        if operand.decimal.is_some() && items.iter().any(|(item, _)| item.ty.is_integer()) {
            return self.in_comparisons(operand, items, value, negated);
        }
        let operand = self.operand_of_list(operand, &items)?;
        let mut bound = Vec::with_capacity(items.len());
        for (item, ast) in items {
            if let Some(decimal) = item.decimal.filter(|_| operand.ty.is_integer()) {
                // An integer can equal only a decimal without fraction.
                bound.extend(decimal.integer().map(|value| Expr::Const(Datum::Int(value))));
                continue;
            }
            let types = (operand.type_name(), item.type_name());
            let item = match common(operand.ty, item.ty) {
                Some(ty) => self.coerce(item, ty, CastContext::Implicit)?,
                None => None,
            };
            let Some(item) = item else {
                let error = self.no_operator(if negated { "<>" } else { "=" }, types, (value, ast));
                return Err(self.keyword_position(error, value, word, list.first().unwrap_or(ast)));
            };
            bound.push(item.expr);
        }
        let expr = if bound.is_empty() {
            let nowhere = always_false(operand.expr);
            if negated { Expr::Not(Box::new(nowhere)) } else { nowhere }
        } else {
            in_list_expr(operand.expr, bound, negated)
        };
        Ok(Typed::new(fold(expr), SqlType::BOOL, at))
    }

    /// Casts the operand of IN to its common type with the list. A float in the list makes it a float.
    fn operand_of_list(&mut self, operand: Typed, items: &[(Typed, &Ast)]) -> Result<Typed, SqlError> {
        let at = operand.at;
        let numbers = |ty: SqlType| ty.is_number() || ty == SqlType::UNKNOWN;
        let float = |item: &Typed| item.ty == SqlType::FLOAT8 && item.decimal.is_none();
        let ty = if operand.ty == SqlType::UNKNOWN {
            self.common_type(items.iter().map(|(item, _)| item), "IN")?
        } else if numbers(operand.ty)
            && items.iter().all(|(item, _)| numbers(item.ty))
            && items.iter().any(|(item, _)| float(item))
        {
            SqlType::FLOAT8
        } else {
            operand.ty
        };
        let operand = self.coerce(operand, ty, CastContext::Implicit)?;
        operand.ok_or_else(|| self.unsupported("this list is", at))
    }

    /// Binds IN as a chain of comparisons, each with its own type.
    fn in_comparisons(
        &mut self,
        operand: Typed,
        items: Vec<(Typed, &Ast)>,
        value: &Ast,
        negated: bool,
    ) -> Result<Typed, SqlError> {
        let at = operand.at;
        let mut shared = SharedOperands::default();
        let operand = self.share(operand, &mut shared)?;
        let mut found = Vec::with_capacity(items.len());
        for (item, ast) in items {
            found.push(self.compare(CompareOp::Eq, operand.clone(), item, (value, ast))?.expr);
        }
        let found = fold(Expr::Or(found));
        let expr = if negated { Expr::Not(Box::new(found)) } else { found };
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
            rows.push(self.rows_equal(operands.clone(), left, right, scope)?);
        }
        Ok(shared.wrap(Expr::Or(rows)))
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
fn in_list_expr(expr: Expr, list: Vec<Expr>, negated: bool) -> Expr {
    let expr = Box::new(expr);
    if list.len() <= MIN_SORTED_LIST || !list.iter().all(|item| matches!(item, Expr::Const(_))) {
        return Expr::InList { expr, list, negated };
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
    Expr::InSet { expr, values, with_null, negated }
}

/// Whether the comparison is `<>`, and the columns of both rows.
pub(super) type RowOperands<'a> = (bool, &'a [Ast], &'a [Ast]);

/// Two row values under `=` or `<>`.
pub(super) fn row_operands<'a>(op: &BinaryOperator, left: &'a Ast, right: &'a Ast) -> Option<RowOperands<'a>> {
    let negated = match op {
        BinaryOperator::Eq => false,
        BinaryOperator::NotEq => true,
        _ => return None,
    };
    match (left, right) {
        (Ast::Tuple(left), Ast::Tuple(right)) => Some((negated, left, right)),
        _ => None,
    }
}

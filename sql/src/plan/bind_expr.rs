//! Binding of expressions: from the parser's tree to a typed [`Expr`].

use sqlparser::ast::{BinaryOperator, CastKind, DataType, Expr as Ast, Spanned, UnaryOperator, Value, ValueWithSpan};
use sqlparser::tokenizer::Location;

use super::binder::{Binder, Scope, Typed};
use super::coerce::Unified;
use super::comparison::{Level, SharedOperands, is_comparison, row_operands};
use super::type_name;
use crate::error::{SqlError, SqlState};
use crate::expr::eval::fold;
use crate::expr::{ArithOp, CompareOp, Expr};
use crate::parse::{NO_LOCATION, is_distinct, start_of};
use pgtypes::cast::CastContext;
use pgtypes::{Datum, SqlType};

impl Binder<'_> {
    /// Binds an expression over the columns of a scope.
    pub(super) fn expr(&mut self, ast: &Ast, scope: &Scope) -> Result<Typed, SqlError> {
        self.descend()?;
        let bound = self.expr_inner(ast, scope);
        self.depth -= 1;
        bound
    }

    /// Binds a condition. `construct` names it in errors.
    pub(super) fn condition(&mut self, ast: &Ast, scope: &Scope, construct: &str) -> Result<Expr, SqlError> {
        let value = self.expr(ast, scope)?;
        self.boolean(value, construct)
    }

    fn expr_inner(&mut self, ast: &Ast, scope: &Scope) -> Result<Typed, SqlError> {
        match ast {
            Ast::Identifier(ident) => self.column(std::slice::from_ref(ident), scope),
            Ast::CompoundIdentifier(parts) => self.column(parts, scope),
            Ast::Nested(inner) => self.expr(inner, scope),
            Ast::Value(value) => self.value(value, false),
            Ast::BinaryOp { op: BinaryOperator::And | BinaryOperator::Or, .. } => self.logical(ast, scope),
            Ast::BinaryOp { .. } => self.chain(ast, scope),
            Ast::UnaryOp { op, expr } => self.unary(op, expr, scope),
            Ast::Cast { kind, expr, data_type, array: false, format: None } => self.cast(kind, expr, data_type, scope),
            Ast::TypedString(typed) => self.typed_string(&typed.data_type, &typed.value),
            Ast::Between { expr, negated, low, high } => self.between_values(expr, *negated, (low, high), scope),
            Ast::InList { expr, list, negated } => self.in_list(expr, list, *negated, scope),
            Ast::Like { .. } | Ast::ILike { .. } => self.like_node(ast, scope),
            Ast::Case { operand, conditions, else_result, .. } => {
                self.case(operand.as_deref(), conditions, else_result.as_deref(), scope)
            }
            Ast::Function(function) => self.function(function, scope),
            Ast::Ceil { .. } | Ast::Floor { .. } | Ast::Position { .. } | Ast::Substring { .. } | Ast::Trim { .. } => {
                self.special_function(ast, scope)
            }
            Ast::Collate { expr, collation } => self.collate(expr, collation, scope),
            _ => self.is_test(ast, scope),
        }
    }

    /// Binds `IS ...` tests. Other expressions are unsupported.
    fn is_test(&mut self, ast: &Ast, scope: &Scope) -> Result<Typed, SqlError> {
        let (expr, value, negated, name) = match ast {
            Ast::IsNull(expr) => return self.is_null(expr, false, scope),
            Ast::IsNotNull(expr) => return self.is_null(expr, true, scope),
            Ast::IsTrue(expr) => (expr, Some(true), false, "IS TRUE"),
            Ast::IsNotTrue(expr) => (expr, Some(true), true, "IS NOT TRUE"),
            Ast::IsFalse(expr) => (expr, Some(false), false, "IS FALSE"),
            Ast::IsNotFalse(expr) => (expr, Some(false), true, "IS NOT FALSE"),
            Ast::IsUnknown(expr) => (expr, None, false, "IS UNKNOWN"),
            Ast::IsNotUnknown(expr) => (expr, None, true, "IS NOT UNKNOWN"),
            other => return Err(self.unsupported_expr(other)),
        };
        self.refuse_nonassociative(Level::Is, expr, None, "is")?;
        let at = start_of(expr);
        let expr = Box::new(self.condition(expr, scope, name)?);
        let expr = match value {
            Some(value) => Expr::IsBool { expr, value, negated },
            None => Expr::IsNull { expr, negated },
        };
        Ok(Typed::new(fold(expr), SqlType::BOOL, at))
    }

    pub(super) fn unsupported_expr(&self, ast: &Ast) -> SqlError {
        let what = match ast {
            Ast::Subquery(_) | Ast::Exists { .. } | Ast::InSubquery { .. } => "subqueries are",
            Ast::AnyOp { .. } | Ast::AllOp { .. } | Ast::Array(_) | Ast::CompoundFieldAccess { .. } => "arrays are",
            Ast::Interval(_) => "intervals are",
            Ast::Tuple(_) => "row values are, other than in comparisons,",
            Ast::AtTimeZone { .. } => "AT TIME ZONE is",
            Ast::Extract { .. } => "EXTRACT is",
            Ast::SimilarTo { .. } => "SIMILAR TO is",
            Ast::Overlay { .. } => "OVERLAY is",
            Ast::JsonAccess { .. } => "JSON is",
            _ => "this expression is",
        };
        self.unsupported(what, start_of(ast))
    }

    /// Binds a literal. `negative`: after a minus sign, which belongs to the number as in PostgreSQL.
    fn value(&mut self, value: &ValueWithSpan, negative: bool) -> Result<Typed, SqlError> {
        let at = value.span.start;
        let text = match &value.value {
            Value::Number(digits, _) => return self.number(digits, negative, at),
            Value::Boolean(value) => return Ok(Typed::new(Expr::Const(Datum::Bool(*value)), SqlType::BOOL, at)),
            Value::Null => return Ok(Typed::new(Expr::Const(Datum::Null), SqlType::UNKNOWN, at)),
            Value::Placeholder(name) => return self.param(name, at),
            Value::SingleQuotedString(text)
            | Value::EscapedStringLiteral(text)
            | Value::UnicodeStringLiteral(text)
            | Value::NationalStringLiteral(text) => text,
            Value::DollarQuotedString(quoted) => &quoted.value,
            _ => return Err(self.unsupported("this kind of literal is", at)),
        };
        if text.contains('\0') {
            let message = "invalid byte sequence for encoding \"UTF8\": 0x00";
            return Err(self.error(SqlState::CHARACTER_NOT_IN_REPERTOIRE, message, at));
        }
        Ok(Typed::new(Expr::Const(Datum::Text(text.as_str().into())), SqlType::UNKNOWN, at))
    }

    /// A number as the smallest of integer, bigint and double precision that holds it.
    fn number(&self, digits: &str, negative: bool, at: Location) -> Result<Typed, SqlError> {
        let text = if negative { format!("-{digits}") } else { digits.to_owned() };
        if let Ok(value) = text.parse::<i64>() {
            let ty = if i32::try_from(value).is_ok() { SqlType::INT4 } else { SqlType::INT8 };
            return Ok(Typed::new(Expr::Const(Datum::Int(value)), ty, at));
        }
        self.decimal_literal(&text, at)
    }

    /// Binds a chain of ANDs or of ORs. Chains may be long: loops over the left spine.
    fn logical(&mut self, ast: &Ast, scope: &Scope) -> Result<Typed, SqlError> {
        let Ast::BinaryOp { op: chain_op, .. } = ast else { return Err(self.unsupported_expr(ast)) };
        let name = if *chain_op == BinaryOperator::And { "AND" } else { "OR" };
        let mut operands = Vec::new();
        let mut rest = ast;
        while let Ast::BinaryOp { left, op, right } = rest
            && op == chain_op
        {
            operands.push(&**right);
            rest = left;
        }
        operands.push(rest);
        let mut items = Vec::with_capacity(operands.len());
        for operand in operands.into_iter().rev() {
            items.push(self.condition(operand, scope, name)?);
        }
        let expr = if name == "AND" { Expr::And(items) } else { Expr::Or(items) };
        Ok(Typed::new(fold(expr), SqlType::BOOL, start_of(rest)))
    }

    /// Binds a chain of other binary operators, with a loop over the left spine too.
    fn chain(&mut self, ast: &Ast, scope: &Scope) -> Result<Typed, SqlError> {
        let mut links = Vec::new();
        let mut rest = ast;
        while let Ast::BinaryOp { left, op, right } = rest
            && !matches!(op, BinaryOperator::And | BinaryOperator::Or)
        {
            links.push((op, &**left, &**right));
            rest = left;
        }
        for (op, left, right) in &links {
            match op {
                op if is_comparison(op) => {
                    self.refuse_nonassociative(Level::Comparison, left, Some(right), &op.to_string())?;
                }
                BinaryOperator::Custom(custom) if is_distinct(custom).is_some() => {
                    self.refuse_nonassociative(Level::Is, left, Some(right), "is")?;
                }
                // The parser accepts only one literal after ESCAPE, PostgreSQL an expression.
                _ if matches!(
                    left,
                    Ast::Like { escape_char: Some(_), .. } | Ast::ILike { escape_char: Some(_), .. }
                ) =>
                {
                    return Err(self.unsupported("ESCAPE with more than a literal is", start_of(right)));
                }
                _ => {}
            }
        }
        if let Some(compared) = links.last().and_then(|(op, left, right)| row_operands(op, left, right)) {
            if links.len() > 1 {
                return Err(self.unsupported_expr(ast));
            }
            return self.compare_rows(compared, scope);
        }
        let mut value = self.expr(rest, scope)?;
        for (op, left, right) in links.into_iter().rev() {
            let operand = self.expr(right, scope)?;
            value = self.binary(op, value, operand, (left, right))?;
        }
        Ok(value)
    }

    fn unary(&mut self, op: &UnaryOperator, operand: &Ast, scope: &Scope) -> Result<Typed, SqlError> {
        let at = start_of(operand);
        match op {
            UnaryOperator::Not => {
                let expr = Expr::Not(Box::new(self.condition(operand, scope, "NOT")?));
                Ok(Typed::new(fold(expr), SqlType::BOOL, at))
            }
            UnaryOperator::Minus => {
                if let Some((value, negative)) = literal(operand) {
                    return self.value(value, !negative);
                }
                let value = self.number_operand("-", operand, scope)?;
                self.keeps_digits(&value, "negation")?;
                let expr = if value.numeric && value.ty == SqlType::FLOAT8 {
                    // There is no negative zero in `numeric`.
                    let zero = Box::new(Expr::Const(Datum::Float(0.0)));
                    Expr::Arith { op: ArithOp::Subtract, ty: value.ty, left: zero, right: Box::new(value.expr) }
                } else {
                    Expr::Negate { ty: value.ty, expr: Box::new(value.expr) }
                };
                Ok(Typed { expr: fold(expr), decimal: None, ..value })
            }
            UnaryOperator::Plus => self.number_operand("+", operand, scope),
            UnaryOperator::BitwiseNot => {
                let value = self.number_operand("~", operand, scope)?;
                let ones = Box::new(Expr::Const(Datum::Int(-1)));
                let expr = Expr::Arith { op: ArithOp::BitXor, ty: value.ty, left: Box::new(value.expr), right: ones };
                Ok(Typed { expr: fold(expr), ..value })
            }
            other => Err(self.unsupported(&format!("operator {other} is"), at)),
        }
    }

    /// The operand of a unary operator over numbers.
    fn number_operand(&mut self, symbol: &str, operand: &Ast, scope: &Scope) -> Result<Typed, SqlError> {
        let value = self.expr(operand, scope)?;
        let fits = if symbol == "~" { value.ty.is_integer() } else { value.ty.is_number() };
        if fits {
            return Ok(value);
        }
        let position = self.position_before(start_of(operand), symbol);
        let (code, what, hint) = if value.ty == SqlType::UNKNOWN {
            (SqlState::AMBIGUOUS_FUNCTION, "operator is not unique", super::operators::NOT_UNIQUE_HINT)
        } else {
            (SqlState::UNDEFINED_FUNCTION, "operator does not exist", NO_UNARY_HINT)
        };
        let message = format!("{what}: {symbol} {}", value.type_name());
        Err(SqlError::new(code, message).at(position).hint(hint))
    }

    fn cast(&mut self, kind: &CastKind, inner: &Ast, data_type: &DataType, scope: &Scope) -> Result<Typed, SqlError> {
        let at = start_of(inner);
        if !matches!(kind, CastKind::Cast | CastKind::DoubleColon) {
            return Err(self.unsupported("this form of CAST is", at));
        }
        let ty = self.type_named(data_type, at).map_err(|mut error| {
            // The parser has the location of few types. The name follows the operator.
            if type_name::location(data_type).is_none() && *kind == CastKind::DoubleColon {
                error.position = Some(self.cast_position(inner) + 2);
            }
            error
        })?;
        let value = self.expr(inner, scope)?;
        let from = value.type_name();
        match self.coerce(value, ty, CastContext::Explicit)? {
            // After a cast it is no literal any more.
            Some(value) => Ok(Typed { decimal: None, numeric: false, ..value }),
            None => {
                let message = format!("cannot cast type {from} to {}", ty.base_name());
                let position = match kind {
                    CastKind::DoubleColon => self.cast_position(inner),
                    _ => self.position_before(at, "cast"),
                };
                Err(SqlError::new(SqlState::CANNOT_COERCE, message).at(position))
            }
        }
    }

    /// The position of the `::` after an operand.
    fn cast_position(&self, operand: &Ast) -> u32 {
        let mut casts = 0;
        let mut innermost = operand;
        while let Ast::Cast { kind: CastKind::DoubleColon, expr, .. } = innermost {
            innermost = expr;
            casts += 1;
        }
        let text = &self.statement.text;
        let start = text.offset(innermost.span().end).unwrap_or(text.as_str().len());
        match text.as_str()[start..].match_indices("::").nth(casts) {
            Some((at, _)) => text.position_of_byte(start + at),
            None => self.position(start_of(operand)),
        }
    }

    /// The type of a name. Errors have the name's position, or `near` if the parser lacks it.
    pub(super) fn type_named(&self, name: &DataType, near: Location) -> Result<SqlType, SqlError> {
        let at = type_name::location(name).unwrap_or(near);
        type_name::resolve(name).map_err(|error| error.at(self.position(at)))
    }

    /// `type 'literal'`.
    fn typed_string(&mut self, data_type: &DataType, literal: &ValueWithSpan) -> Result<Typed, SqlError> {
        let ty = self.type_named(data_type, literal.span.start)?;
        let value = self.value(literal, false)?;
        let at = value.at;
        let value = self.coerce(value, ty, CastContext::Explicit)?;
        value.ok_or_else(|| self.unsupported("this kind of literal is", at))
    }

    fn like_node(&mut self, ast: &Ast, scope: &Scope) -> Result<Typed, SqlError> {
        let (negated, any, expr, pattern, escape, fold_case) = match ast {
            Ast::Like { negated, any, expr, pattern, escape_char } => {
                (*negated, *any, expr, pattern, escape_char, false)
            }
            Ast::ILike { negated, any, expr, pattern, escape_char } => {
                (*negated, *any, expr, pattern, escape_char, true)
            }
            other => return Err(self.unsupported_expr(other)),
        };
        if any {
            return Err(self.unsupported("LIKE ANY is", start_of(expr)));
        }
        let word = match (negated, fold_case) {
            (true, _) => "not",
            (false, true) => "ilike",
            (false, false) => "like",
        };
        self.refuse_nonassociative(Level::Between, expr, Some(pattern), word)?;
        let left = self.expr(expr, scope)?;
        let right = self.expr(pattern, scope)?;
        let escape = match escape {
            Some(value) => {
                let value = self.value(value, false)?;
                Some(self.resolve_unknown(value)?.expr)
            }
            None => None,
        };
        self.like(left, right, escape, (fold_case, negated), (expr, pattern))
    }

    fn is_null(&mut self, operand: &Ast, negated: bool, scope: &Scope) -> Result<Typed, SqlError> {
        self.refuse_nonassociative(Level::Is, operand, None, "is")?;
        let value = self.expr(operand, scope)?;
        let at = value.at;
        let expr = Expr::IsNull { expr: Box::new(value.expr), negated };
        Ok(Typed::new(fold(expr), SqlType::BOOL, at))
    }

    fn case(
        &mut self,
        operand: Option<&Ast>,
        conditions: &[sqlparser::ast::CaseWhen],
        otherwise: Option<&Ast>,
        scope: &Scope,
    ) -> Result<Typed, SqlError> {
        let at = conditions.first().map_or(NO_LOCATION, |when| start_of(&when.condition));
        let mut shared = SharedOperands::default();
        let subject = match operand {
            Some(ast) => {
                let subject = self.expr(ast, scope)?;
                Some(self.share(subject, &mut shared)?)
            }
            None => None,
        };
        let mut tests = Vec::with_capacity(conditions.len());
        let mut results = Vec::with_capacity(conditions.len() + 1);
        for when in conditions {
            tests.push(match (&subject, operand) {
                (Some(subject), Some(ast)) => {
                    let value = self.expr(&when.condition, scope)?;
                    self.compare(CompareOp::Eq, subject.clone(), value, (ast, &when.condition))?.expr
                }
                _ => self.condition(&when.condition, scope, "CASE/WHEN")?,
            });
            results.push(self.expr(&when.result, scope)?);
        }
        // PostgreSQL considers ELSE first when it chooses the type.
        let last = match otherwise {
            Some(ast) => self.expr(ast, scope)?,
            None => Typed::new(Expr::Const(Datum::Null), SqlType::UNKNOWN, at),
        };
        results.insert(0, last);
        let Unified { exprs: mut results, ty, numeric } = self.unify(results, "CASE")?;
        let otherwise = Box::new(results.remove(0));
        let expr = Expr::Case { branches: tests.into_iter().zip(results).collect(), otherwise };
        Ok(Typed::new(shared.wrap(expr), ty, at).numeric(numeric))
    }

    /// Accepts only collations that equal the order of all text here.
    fn collate(
        &mut self,
        operand: &Ast,
        collation: &sqlparser::ast::ObjectName,
        scope: &Scope,
    ) -> Result<Typed, SqlError> {
        let name = self.name_parts(collation)?.pop().unwrap_or_default();
        let at = start_of(operand);
        if !["c", "posix", "default", "ucs_basic"].contains(&name.to_ascii_lowercase().as_str()) {
            let message = format!("collation \"{name}\" for encoding \"UTF8\" does not exist");
            let position = self.position_before(collation.span().start, "collate");
            return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message).at(position));
        }
        let value = self.expr(operand, scope)?;
        if !value.ty.is_text() && value.ty != SqlType::UNKNOWN {
            let message = format!("collations are not supported by type {}", value.type_name());
            return Err(self.error(SqlState::DATATYPE_MISMATCH, message, at));
        }
        self.resolve_unknown(value)
    }
}

const NO_UNARY_HINT: &str =
    "No operator matches the given name and argument type. You might need to add an explicit type cast.";

/// A number literal, possibly in parentheses and after minus signs. Returns whether it is negative.
pub(super) fn literal(ast: &Ast) -> Option<(&ValueWithSpan, bool)> {
    match ast {
        Ast::Value(value @ ValueWithSpan { value: Value::Number(..), .. }) => Some((value, false)),
        Ast::Nested(inner) => literal(inner),
        Ast::UnaryOp { op: UnaryOperator::Minus, expr } => literal(expr).map(|(value, negative)| (value, !negative)),
        _ => None,
    }
}

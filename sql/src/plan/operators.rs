//! Operators: operand types and the expressions they become.

use sqlparser::ast::{BinaryOperator, Expr as Ast, Spanned};

use super::binder::{Binder, Typed};
use crate::error::{SqlError, SqlState};
use crate::expr::eval::fold;
use crate::expr::{ArithOp, CompareOp, Expr, Function};
use crate::parse::is_distinct;
use pgtypes::SqlType;
use pgtypes::cast::CastContext;

/// The syntax trees of the operands, for error positions.
pub(super) type Operands<'a> = (&'a Ast, &'a Ast);

impl Binder<'_> {
    /// Applies a binary operator other than AND and OR.
    pub(super) fn binary(
        &mut self,
        op: &BinaryOperator,
        left: Typed,
        right: Typed,
        ast: Operands<'_>,
    ) -> Result<Typed, SqlError> {
        let arith = match op {
            BinaryOperator::Eq => return self.compare(CompareOp::Eq, left, right, ast),
            BinaryOperator::NotEq => return self.compare(CompareOp::NotEq, left, right, ast),
            BinaryOperator::Lt => return self.compare(CompareOp::Less, left, right, ast),
            BinaryOperator::LtEq => return self.compare(CompareOp::LessEq, left, right, ast),
            BinaryOperator::Gt => return self.compare(CompareOp::Greater, left, right, ast),
            BinaryOperator::GtEq => return self.compare(CompareOp::GreaterEq, left, right, ast),
            BinaryOperator::StringConcat => return self.concat(left, right, ast),
            BinaryOperator::PGLikeMatch => return self.like(left, right, None, (false, false), ast),
            BinaryOperator::PGNotLikeMatch => return self.like(left, right, None, (false, true), ast),
            BinaryOperator::PGILikeMatch => return self.like(left, right, None, (true, false), ast),
            BinaryOperator::PGNotILikeMatch => return self.like(left, right, None, (true, true), ast),
            BinaryOperator::Plus => ArithOp::Add,
            BinaryOperator::Minus => ArithOp::Subtract,
            BinaryOperator::Multiply => ArithOp::Multiply,
            BinaryOperator::Divide => ArithOp::Divide,
            BinaryOperator::Modulo => ArithOp::Modulo,
            BinaryOperator::PGExp | BinaryOperator::BitwiseXor => ArithOp::Power,
            BinaryOperator::BitwiseAnd => ArithOp::BitAnd,
            BinaryOperator::BitwiseOr => ArithOp::BitOr,
            BinaryOperator::PGBitwiseXor => ArithOp::BitXor,
            BinaryOperator::PGBitwiseShiftLeft => ArithOp::ShiftLeft,
            BinaryOperator::PGBitwiseShiftRight => ArithOp::ShiftRight,
            BinaryOperator::Custom(symbol) => match is_distinct(symbol) {
                Some(negated) => return self.distinct(left, right, negated, ast),
                None => return Err(self.no_operator(symbol, (left.type_name(), right.type_name()), ast)),
            },
            other => {
                let position = self.position_between(ast.0.span(), &other.to_string(), ast.1.span());
                let message = format!("operator {other} is not supported yet");
                return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message).at(position));
            }
        };
        self.arithmetic(arith, left, right, ast)
    }

    /// 42883 for an operator that does not exist for the operand types.
    pub(super) fn no_operator(&self, symbol: &str, types: (&str, &str), ast: Operands<'_>) -> SqlError {
        let message = format!("operator does not exist: {} {symbol} {}", types.0, types.1);
        let position = self.position_between(ast.0.span(), symbol, ast.1.span());
        SqlError::new(SqlState::UNDEFINED_FUNCTION, message).at(position).hint(NO_OPERATOR_HINT)
    }

    fn arithmetic(&mut self, op: ArithOp, left: Typed, right: Typed, ast: Operands<'_>) -> Result<Typed, SqlError> {
        let (left, right) = (self.refresh_type(left), self.refresh_type(right));
        let (types, at) = ((left.ty, right.ty), left.at);
        let names = (left.type_name(), right.type_name());
        let none = |this: &Self| this.no_operator(op.symbol(), names, ast);
        let integers_only = matches!(
            op,
            ArithOp::Modulo
                | ArithOp::BitAnd
                | ArithOp::BitOr
                | ArithOp::BitXor
                | ArithOp::ShiftLeft
                | ArithOp::ShiftRight
        );
        let number = |ty: SqlType| ty.is_number() || ty == SqlType::UNKNOWN;
        let has_numeric = !integers_only || matches!(op, ArithOp::Modulo);
        if (left.numeric || right.numeric) && has_numeric && number(left.ty) && number(right.ty) {
            // A sum of bigints is numeric in PostgreSQL, and exact here as long as nothing is divided.
            let exact = !matches!(types, (SqlType::FLOAT8, _) | (_, SqlType::FLOAT8)) && op != ArithOp::Divide;
            if !exact && !left.is_float() && !right.is_float() {
                let mut error = self.needs_numeric("arithmetic", at);
                error.position = Some(self.position_between(ast.0.span(), op.symbol(), ast.1.span()));
                return Err(error);
            }
        }
        let numeric = left.numeric || right.numeric;
        let ty = match types {
            (SqlType::UNKNOWN, SqlType::UNKNOWN) => {
                let message = format!("operator is not unique: unknown {} unknown", op.symbol());
                let position = self.position_between(ast.0.span(), op.symbol(), ast.1.span());
                return Err(SqlError::new(SqlState::AMBIGUOUS_FUNCTION, message).at(position).hint(NOT_UNIQUE_HINT));
            }
            (a, b) if !(a.is_number() || a == SqlType::UNKNOWN) || !(b.is_number() || b == SqlType::UNKNOWN) => {
                return Err(none(self));
            }
            _ if op == ArithOp::Power => SqlType::FLOAT8,
            // The shift count is an integer whatever the type of the value.
            (a, b) if matches!(op, ArithOp::ShiftLeft | ArithOp::ShiftRight) && b != SqlType::INT8 => a,
            (SqlType::UNKNOWN, ty) | (ty, SqlType::UNKNOWN) => ty,
            (a, b) => wider(a, b),
        };
        if (integers_only && !ty.is_integer()) || ty == SqlType::UNKNOWN {
            return Err(none(self));
        }
        let left = self.coerce(left, ty, CastContext::Implicit)?;
        let right_type = match op {
            ArithOp::ShiftLeft | ArithOp::ShiftRight => SqlType::INT4,
            _ => ty,
        };
        let right = self.coerce(right, right_type, CastContext::Implicit)?;
        let (Some(left), Some(right)) = (left, right) else { return Err(none(self)) };
        let expr = Expr::Arith { op, ty, left: Box::new(left.expr), right: Box::new(right.expr) };
        Ok(Typed::new(fold(expr), ty, at).numeric(numeric && ty.is_integer()))
    }

    /// `||` of two byteas, or of texts, where one operand may have any type.
    fn concat(&mut self, left: Typed, right: Typed, ast: Operands<'_>) -> Result<Typed, SqlError> {
        let (left, right) = (self.refresh_type(left), self.refresh_type(right));
        let (types, at) = ((left.ty.base(), right.ty.base()), left.at);
        let names = (left.type_name(), right.type_name());
        let (ty, function) = match types {
            (SqlType::BYTEA, SqlType::BYTEA | SqlType::UNKNOWN) | (SqlType::UNKNOWN, SqlType::BYTEA) => {
                (SqlType::BYTEA, Function::ConcatBytes)
            }
            (a, b) if [a, b].iter().any(|ty| ty.is_text() || *ty == SqlType::UNKNOWN) => {
                (SqlType::TEXT, Function::ConcatText)
            }
            _ => return Err(self.no_operator("||", names, ast)),
        };
        let left = self.coerce(left, ty, CastContext::Assignment)?;
        let right = self.coerce(right, ty, CastContext::Assignment)?;
        let (Some(left), Some(right)) = (left, right) else { return Err(self.no_operator("||", names, ast)) };
        let expr = Expr::Call { function, args: vec![left.expr, right.expr] };
        Ok(Typed::new(fold(expr), ty, at))
    }

    /// `LIKE` and relatives. `flags`: case-insensitive, negated.
    pub(super) fn like(
        &mut self,
        left: Typed,
        right: Typed,
        escape: Option<Expr>,
        flags: (bool, bool),
        ast: Operands<'_>,
    ) -> Result<Typed, SqlError> {
        let (types, at) = ((left.type_name(), right.type_name()), left.at);
        let (fold_case, negated) = flags;
        let left = self.coerce(left, SqlType::TEXT, CastContext::Implicit)?;
        let right = self.coerce(right, SqlType::TEXT, CastContext::Implicit)?;
        let (Some(left), Some(right)) = (left, right) else {
            let symbol = match flags {
                (false, false) => "~~",
                (false, true) => "!~~",
                (true, false) => "~~*",
                (true, true) => "!~~*",
            };
            let word = if fold_case { "ilike" } else { "like" };
            let mut error = self.no_operator(symbol, types, ast);
            error.position =
                Some(self.position_between(ast.0.span(), if negated { "not" } else { word }, ast.1.span()));
            return Err(error);
        };
        let expr = Expr::Like {
            expr: Box::new(left.expr),
            pattern: Box::new(right.expr),
            escape: escape.map(Box::new),
            fold: fold_case,
            negated,
        };
        Ok(Typed::new(fold(expr), SqlType::BOOL, at))
    }
}

/// PostgreSQL's hint when no operator fits.
pub(super) const NO_OPERATOR_HINT: &str =
    "No operator matches the given name and argument types. You might need to add explicit type casts.";
/// PostgreSQL's hint when several operators fit.
pub(super) const NOT_UNIQUE_HINT: &str =
    "Could not choose a best candidate operator. You might need to add explicit type casts.";

/// The wider of two number types.
fn wider(a: SqlType, b: SqlType) -> SqlType {
    let rank = |ty: SqlType| match ty {
        SqlType::INT2 => 0,
        SqlType::INT4 => 1,
        SqlType::INT8 => 2,
        _ => 3,
    };
    if rank(a) >= rank(b) { a } else { b }
}

//! Operators: which one is meant, and the expression that it becomes.

use sqlparser::ast::{BinaryOperator, Expr as Ast, Spanned};

use super::binder::{Binder, Typed};
use super::calls::{Named, failure};
use crate::error::{SqlError, SqlState};
use crate::expr::fold::fold;
use crate::expr::{Call, CompareOp, Expr, compares_alike};
use crate::parse::is_distinct;
use pgtypes::cast::CastContext;
use pgtypes::functions::OperatorRow;
use pgtypes::functions::resolve::{self, Choice};

/// The syntax trees of the operands, for error positions.
pub(super) type Operands<'a> = (&'a Ast, &'a Ast);

/// Whether the schema of an operator, as it is written, is the only one of operators.
fn is_of_system(schema: &[String]) -> bool {
    match schema {
        [] => true,
        [name] => name == "\"pg_catalog\"" || name.eq_ignore_ascii_case("pg_catalog"),
        _ => false,
    }
}

impl Binder<'_> {
    /// Applies a binary operator other than AND and OR.
    pub(super) fn binary(
        &mut self,
        op: &BinaryOperator,
        left: Typed,
        right: Typed,
        ast: Operands<'_>,
    ) -> Result<Typed, SqlError> {
        let symbol = match op {
            BinaryOperator::Custom(symbol) => match is_distinct(symbol) {
                Some(negated) => return self.distinct(left, right, negated, ast),
                None => symbol.as_str(),
            },
            BinaryOperator::PGCustomBinaryOperator(parts) => match parts.split_last() {
                Some((symbol, schema)) if is_of_system(schema) => symbol.as_str(),
                _ => return Err(self.unsupported("an operator of this schema is", ast.0.span().start)),
            },
            op => match symbol_of(op) {
                Some(symbol) => symbol,
                None => return Err(self.unsupported(&format!("operator {op} is"), ast.0.span().start)),
            },
        };
        self.operator(symbol, symbol, left, right, ast)
    }

    /// Applies the operator of a name. `written` is what stands between the operands.
    pub(super) fn operator(
        &mut self,
        name: &str,
        written: &str,
        left: Typed,
        right: Typed,
        ast: Operands<'_>,
    ) -> Result<Typed, SqlError> {
        let at = left.at;
        let types = (left.ty, right.ty);
        match resolve::binary(name, left.ty, right.ty) {
            Ok((row, choice)) => self.apply(row, &choice, vec![left, right], at),
            Err(failed) => {
                let shown = format!("{} {name} {}", self.type_text(types.0), self.type_text(types.1));
                let mut error = failure(&failed, Named::Operator(&shown, 2));
                error.position = Some(self.position_between(ast.0.span(), written, ast.1.span()));
                Err(error)
            }
        }
    }

    /// Applies a prefix operator.
    pub(super) fn prefix(&mut self, name: &str, operand: Typed) -> Result<Typed, SqlError> {
        let at = operand.at;
        match resolve::prefix(name, operand.ty) {
            Ok((row, choice)) => self.apply(row, &choice, vec![operand], at),
            Err(failed) => {
                let shown = format!("{name} {}", self.type_text(operand.ty));
                let mut error = failure(&failed, Named::Operator(&shown, 1));
                error.position = Some(self.position_before(at, name));
                Err(error)
            }
        }
    }

    fn apply(
        &mut self,
        row: &'static OperatorRow,
        choice: &Choice,
        operands: Vec<Typed>,
        at: sqlparser::tokenizer::Location,
    ) -> Result<Typed, SqlError> {
        let args = self.convert(operands, choice)?;
        let expr = operator_expr(row, choice, args);
        Ok(Typed::new(fold(expr), choice.result, at))
    }

    /// Converts the operands of an operator to the types that it takes.
    pub(super) fn convert(&mut self, operands: Vec<Typed>, choice: &Choice) -> Result<Vec<Expr>, SqlError> {
        let mut args = Vec::with_capacity(operands.len());
        for (operand, (_, ty)) in operands.into_iter().zip(&choice.args) {
            let at = operand.at;
            let value = self.coerce(operand, *ty, CastContext::Implicit)?;
            args.push(value.ok_or_else(|| self.unsupported("this operand is", at))?.expr);
        }
        Ok(args)
    }
}

/// The expression of an operator over converted operands.
pub(super) fn operator_expr(row: &'static OperatorRow, choice: &Choice, mut args: Vec<Expr>) -> Expr {
    if let (Some(op), [(_, ty), (_, right)]) = (CompareOp::named(row.name), choice.args.as_slice())
        && compares_alike(*ty, *right)
        && let (Some(right), Some(left)) = (args.pop(), args.pop())
    {
        return Expr::Compare { op, left: Box::new(left), right: Box::new(right), ty: *ty };
    }
    let types = choice.args.iter().map(|(_, ty)| *ty).collect();
    Expr::Call(Call { function: choice.function, operator: Some(row.name), args, types, result: choice.result })
}

/// The name of an operator that the parser knows.
pub(super) fn symbol_of(op: &BinaryOperator) -> Option<&'static str> {
    Some(match op {
        BinaryOperator::Eq => "=",
        BinaryOperator::NotEq => "<>",
        BinaryOperator::Lt => "<",
        BinaryOperator::LtEq => "<=",
        BinaryOperator::Gt => ">",
        BinaryOperator::GtEq => ">=",
        BinaryOperator::StringConcat => "||",
        BinaryOperator::PGLikeMatch => "~~",
        BinaryOperator::PGNotLikeMatch => "!~~",
        BinaryOperator::PGILikeMatch => "~~*",
        BinaryOperator::PGNotILikeMatch => "!~~*",
        BinaryOperator::PGRegexMatch => "~",
        BinaryOperator::PGRegexIMatch => "~*",
        BinaryOperator::PGRegexNotMatch => "!~",
        BinaryOperator::PGRegexNotIMatch => "!~*",
        BinaryOperator::PGStartsWith => "^@",
        BinaryOperator::Plus => "+",
        BinaryOperator::Minus => "-",
        BinaryOperator::Multiply => "*",
        BinaryOperator::Divide => "/",
        BinaryOperator::Modulo => "%",
        BinaryOperator::PGExp | BinaryOperator::BitwiseXor => "^",
        BinaryOperator::BitwiseAnd => "&",
        BinaryOperator::BitwiseOr => "|",
        BinaryOperator::PGBitwiseXor => "#",
        BinaryOperator::PGBitwiseShiftLeft => "<<",
        BinaryOperator::PGBitwiseShiftRight => ">>",
        BinaryOperator::PGOverlap => "&&",
        BinaryOperator::Arrow => "->",
        BinaryOperator::LongArrow => "->>",
        BinaryOperator::HashArrow => "#>",
        BinaryOperator::HashLongArrow => "#>>",
        BinaryOperator::AtAt => "@@",
        BinaryOperator::AtArrow => "@>",
        BinaryOperator::ArrowAt => "<@",
        BinaryOperator::HashMinus => "#-",
        BinaryOperator::AtQuestion => "@?",
        BinaryOperator::Question => "?",
        BinaryOperator::QuestionAnd => "?&",
        BinaryOperator::QuestionPipe => "?|",
        _ => return None,
    })
}

/// 42883 for rows that cannot be compared so.
pub(super) fn no_row_operator(symbol: &str) -> SqlError {
    let message = format!("operator {symbol} is not supported for row expressions");
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
}

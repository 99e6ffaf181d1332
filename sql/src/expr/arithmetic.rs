//! Arithmetic of integers and floats, with PostgreSQL's errors.

use super::tree::ArithOp;
use crate::error::{SqlError, SqlState};
use pgtypes::integer::int_range;
use pgtypes::{Datum, SqlType};

fn out_of_range(ty: SqlType) -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, format!("{} out of range", ty.base_name()))
}

/// 22012.
pub(super) fn division_by_zero() -> SqlError {
    SqlError::new(SqlState::DIVISION_BY_ZERO, "division by zero")
}

pub(super) fn negate(ty: SqlType, value: &Datum) -> Result<Datum, SqlError> {
    match value {
        Datum::Null => Ok(Datum::Null),
        Datum::Int(value) => bounded(value.checked_neg(), ty),
        Datum::Float(value) => Ok(Datum::Float(-value)),
        _ => Err(SqlError::internal("minus is over no number")),
    }
}

/// An integer result. 22003 if out of the type's range.
pub(crate) fn bounded(value: Option<i64>, ty: SqlType) -> Result<Datum, SqlError> {
    let (low, high) = int_range(ty);
    match value {
        Some(value) if (low..=high).contains(&value) => Ok(Datum::Int(value)),
        _ => Err(out_of_range(ty)),
    }
}

pub(super) fn arithmetic(op: ArithOp, ty: SqlType, left: &Datum, right: &Datum) -> Result<Datum, SqlError> {
    match (left, right) {
        (Datum::Null, _) | (_, Datum::Null) => Ok(Datum::Null),
        (Datum::Int(a), Datum::Int(b)) => integers(op, ty, *a, *b),
        (Datum::Float(a), Datum::Float(b)) => floats(op, *a, *b).map(Datum::Float),
        _ => Err(SqlError::internal("arithmetic is over no numbers")),
    }
}

fn integers(op: ArithOp, ty: SqlType, a: i64, b: i64) -> Result<Datum, SqlError> {
    let value = match op {
        ArithOp::Add => a.checked_add(b),
        ArithOp::Subtract => a.checked_sub(b),
        ArithOp::Multiply => a.checked_mul(b),
        ArithOp::Divide | ArithOp::Modulo if b == 0 => return Err(division_by_zero()),
        ArithOp::Divide => a.checked_div(b),
        // The remainder by -1 is 0 even if the quotient overflows.
        ArithOp::Modulo => Some(a.wrapping_rem(b)),
        ArithOp::BitAnd => Some(a & b),
        ArithOp::BitOr => Some(a | b),
        ArithOp::BitXor => Some(a ^ b),
        ArithOp::ShiftLeft | ArithOp::ShiftRight => return Ok(Datum::Int(shift(op, ty, a, b))),
        ArithOp::Power => return Err(SqlError::internal("power is over no floats")),
    };
    bounded(value, ty)
}

/// Shifts like C on PostgreSQL's platforms: the count is taken modulo the width, bits are lost, the sign is extended.
fn shift(op: ArithOp, ty: SqlType, a: i64, count: i64) -> i64 {
    let left = op == ArithOp::ShiftLeft;
    match ty {
        SqlType::INT8 => {
            let count = (count & 63) as u32;
            if left { a << count } else { a >> count }
        }
        SqlType::INT2 => {
            let count = (count & 31) as u32;
            let wide = a as i32;
            i64::from(if left { (wide << count) as i16 } else { (wide >> count) as i16 })
        }
        _ => {
            let count = (count & 31) as u32;
            let a = a as i32;
            i64::from(if left { a << count } else { a >> count })
        }
    }
}

fn floats(op: ArithOp, a: f64, b: f64) -> Result<f64, SqlError> {
    let finite = a.is_finite() && b.is_finite();
    let (value, zero_is_exact) = match op {
        ArithOp::Add => (a + b, true),
        ArithOp::Subtract => (a - b, true),
        ArithOp::Multiply => (a * b, a == 0.0 || b == 0.0),
        ArithOp::Divide if b == 0.0 && !a.is_nan() => return Err(division_by_zero()),
        ArithOp::Divide => (a / b, a == 0.0 || b.is_infinite()),
        ArithOp::Power => return power(a, b),
        _ => return Err(SqlError::internal("the operator is not for floats")),
    };
    if value.is_infinite() && finite {
        return Err(SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: overflow"));
    }
    if value == 0.0 && !zero_is_exact {
        return Err(SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: underflow"));
    }
    Ok(value)
}

/// Checks a result for overflow and underflow of finite operands.
pub(super) fn check_range(value: f64, finite: bool, zero_is_exact: bool) -> Result<f64, SqlError> {
    if value.is_infinite() && finite {
        return Err(SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: overflow"));
    }
    if value == 0.0 && finite && !zero_is_exact {
        return Err(SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: underflow"));
    }
    Ok(value)
}

/// `a` to the power `b`. PostgreSQL's errors where there is no real result.
pub(super) fn power(a: f64, b: f64) -> Result<f64, SqlError> {
    if a == 0.0 && b < 0.0 {
        return Err(SqlError::new(SqlState::INVALID_POWER, "zero raised to a negative power is undefined"));
    }
    if a < 0.0 && b.is_finite() && b.fract() != 0.0 {
        let message = "a negative number raised to a non-integer power yields a complex result";
        return Err(SqlError::new(SqlState::INVALID_POWER, message));
    }
    check_range(a.powf(b), a.is_finite() && b.is_finite(), a == 0.0)
}

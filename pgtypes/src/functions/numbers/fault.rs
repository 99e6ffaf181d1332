//! The errors of functions of numbers.

use crate::error::ValueError;
use crate::sql_type::SqlType;
use crate::sqlstate::SqlState;

/// 22003 for a result that its integer type cannot hold.
pub(super) fn out_of_range(ty: SqlType) -> ValueError {
    ValueError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, format!("{} out of range", ty.base_name()))
}

/// 22003 for a float that would be infinite.
pub(in crate::functions) fn overflow() -> ValueError {
    ValueError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: overflow")
}

/// 22003 for a float that would be zero.
pub(super) fn underflow() -> ValueError {
    ValueError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: underflow")
}

/// 22003 for an argument outside of the domain of a function.
pub(super) fn input_range() -> ValueError {
    ValueError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "input is out of range")
}

/// 22012
pub(super) fn division_by_zero() -> ValueError {
    ValueError::new(SqlState::DIVISION_BY_ZERO, "division by zero")
}

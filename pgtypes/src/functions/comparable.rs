//! The types whose values PostgreSQL compares: what functions of any type ask before they do.

use crate::error::ValueError;
use crate::sql_type::SqlType;
use crate::sqlstate::SqlState;

/// The type whose operators compare values of a type: of arrays, that of the elements.
fn compared(ty: SqlType) -> SqlType {
    ty.element().unwrap_or(ty).base()
}

fn has_equality(ty: SqlType) -> bool {
    !matches!(compared(ty), SqlType::JSON | SqlType::REFCURSOR | SqlType::PG_NODE_TREE)
}

/// Whether the values of a type have an order.
pub fn has_order(ty: SqlType) -> bool {
    has_equality(ty) && !matches!(compared(ty), SqlType::XID | SqlType::CID | SqlType::ACLITEM)
}

fn missing(what: &str, ty: SqlType) -> ValueError {
    let message = format!("could not identify {what} for type {}", ty.base_name());
    ValueError::new(SqlState::UNDEFINED_FUNCTION, message)
}

/// 42883 for a type without an operator `=`.
pub(super) fn check_equality(ty: SqlType) -> Result<(), ValueError> {
    if has_equality(ty) { Ok(()) } else { Err(missing("an equality operator", ty)) }
}

/// 42883 for a type whose values have no order.
pub(super) fn check_order(ty: SqlType) -> Result<(), ValueError> {
    if has_order(ty) { Ok(()) } else { Err(missing("a comparison function", ty)) }
}

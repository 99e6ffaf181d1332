//! The check of a value against the constraints of a domain: of a cast to it, and of a write to a column of it.

use super::tree::{DomainCheck, Expr};
use crate::error::{ConstraintFields, SqlError, SqlState};
use pgtypes::Datum;

/// Whether a value is one of the domain. 23502 or 23514 if not. `is_false` evaluates a condition.
pub(super) fn check(
    check: &DomainCheck,
    value: &Datum,
    is_false: impl Fn(&Expr) -> Result<bool, SqlError>,
) -> Result<(), SqlError> {
    if check.not_null && value.is_null() {
        let message = format!("domain {} does not allow null values", check.shown);
        return Err(violation(check, SqlState::NOT_NULL_VIOLATION, message, None));
    }
    for (name, condition) in &check.conditions {
        if is_false(condition)? {
            let message = format!("value for domain {} violates check constraint \"{name}\"", check.shown);
            return Err(violation(check, SqlState::CHECK_VIOLATION, message, Some(name)));
        }
    }
    Ok(())
}

fn violation(check: &DomainCheck, code: SqlState, message: String, constraint: Option<&str>) -> SqlError {
    let (schema, name) = &check.name;
    let mut error = SqlError::new(code, message);
    error.constraint = Some(Box::new(ConstraintFields {
        schema: schema.clone(),
        data_type: Some(name.clone()),
        constraint: constraint.map(str::to_owned),
        ..ConstraintFields::default()
    }));
    error
}

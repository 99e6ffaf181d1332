//! What a table demands of a row by itself: values of generated columns, NOT NULL, CHECK.

use super::rows::{Row, check_not_null, describe};
use crate::catalog::schema_name;
use crate::error::{ConstraintFields, SqlError, SqlState};
use crate::expr::eval::{Env, check_domain, eval};
use crate::plan::TableWrite;
use crate::table::{Check, Table};
use pgtypes::{Datum, IoEnv};

/// Computes the generated columns of a row.
pub(super) fn complete(write: &TableWrite, row: &mut Row, env: &Env<'_>) -> Result<(), SqlError> {
    for (at, expr) in &write.generated {
        let value = eval(expr, row, env)?.into_owned();
        if let Some(slot) = row.get_mut(*at) {
            *slot = value;
        }
    }
    Ok(())
}

/// 23502 or 23514 for a row that the table does not take. The domains of its columns come first, as in PostgreSQL,
/// where a value becomes one of the domain before the row is made.
pub(super) fn check_row(write: &TableWrite, row: &Row, env: &Env<'_>) -> Result<(), SqlError> {
    for (at, check) in &write.domains {
        if let Some(value) = row.get(*at) {
            check_domain(check, value, env)?;
        }
    }
    check_not_null(&write.table, row, &env.io)?;
    match violated(write, row, env)? {
        None => Ok(()),
        Some(check) => {
            let table = &*write.table;
            let message =
                format!("new row for relation \"{}\" violates check constraint \"{}\"", table.name, check.name);
            let detail = format!("Failing row contains {}.", describe(table, row, &env.io));
            let error = SqlError::new(SqlState::CHECK_VIOLATION, message).detail(detail);
            Err(of_constraint(error, (table, &check.name), &env.io))
        }
    }
}

/// The first CHECK that is false for a row. NULL passes.
pub(super) fn violated<'w>(write: &'w TableWrite, row: &Row, env: &Env<'_>) -> Result<Option<&'w Check>, SqlError> {
    for (check, condition) in write.table.checks.iter().zip(&write.checks) {
        if *eval(condition, row, env)? == Datum::Bool(false) {
            return Ok(Some(check));
        }
    }
    Ok(None)
}

/// Names a constraint of a table in an error.
pub(super) fn of_constraint(mut error: SqlError, (table, constraint): (&Table, &str), io: &IoEnv<'_>) -> SqlError {
    error.constraint = Some(Box::new(ConstraintFields {
        schema: schema_name(table, io),
        table: Some(table.name.clone()),
        data_type: None,
        column: None,
        constraint: Some(constraint.to_owned()),
    }));
    error
}

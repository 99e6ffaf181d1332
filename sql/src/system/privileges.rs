//! `has_table_privilege` and its kin: everybody may do everything with what exists. What does not exist is an error, or
//! NULL if it was named by an OID.

use super::env::{SystemEnv, number, words};
use super::names::find_relation;
use super::objects::{all_roles, described, is_role, schema_name, schema_oid};
use crate::error::{SqlError, SqlState};
use pgtypes::functions::{self, ProcRow};
use pgtypes::{Datum, Names, Oid, SqlType};

/// The answer of a call. Its arguments are a role (or none), an object, a column (for columns only) and privileges.
pub(super) fn check(function: &ProcRow, args: &[&Datum], env: &SystemEnv<'_>) -> Result<Datum, SqlError> {
    let kind = match function.name {
        "pg_has_role" => "role",
        name => name.trim_start_matches("has_").trim_end_matches("_privilege"),
    };
    let parts = if kind == "column" { 3 } else { 2 };
    let first = args.len().saturating_sub(parts);
    if first > 0 && !role(args, 0, env)? {
        return Ok(Datum::Bool(false));
    }
    let object = args.get(first..).unwrap_or_default();
    let exists = match kind {
        "table" | "any_column" | "sequence" => relation(object, env)?.is_some(),
        "column" => match relation(object, env)? {
            Some(relation) => column(relation, object, env)?,
            None => false,
        },
        "role" => role(object, 0, env)?,
        kind => named(kind, object, env)?,
    };
    privileges(kind, words(object, parts - 1))?;
    Ok(if exists { Datum::Bool(true) } else { Datum::Null })
}

/// Whether a role exists. One without a name may not: nothing is said about it.
fn role(args: &[&Datum], at: usize, env: &SystemEnv<'_>) -> Result<bool, SqlError> {
    match args.get(at) {
        Some(Datum::Text(name)) => {
            let is_known =
                **name == *"public" || all_roles(env.session.user()).iter().any(|(_, known)| *known == &**name);
            if is_known { Ok(true) } else { Err(missing(SqlState::UNDEFINED_OBJECT, "role", name)) }
        }
        _ => Ok(is_role(number(args, at), env)),
    }
}

fn missing(code: SqlState, what: &str, name: &str) -> SqlError {
    SqlError::new(code, format!("{what} \"{name}\" does not exist"))
}

/// The relation at the first place; `None` for an OID of none.
fn relation(object: &[&Datum], env: &SystemEnv<'_>) -> Result<Option<Oid>, SqlError> {
    match object.first() {
        Some(Datum::Text(name)) => Ok(Some(find_relation(env.catalog(), name)?)),
        _ => Ok(Some(number(object, 0)).filter(|oid| env.catalog().show(SqlType::REGCLASS, *oid).is_some())),
    }
}

fn column(relation: Oid, object: &[&Datum], env: &SystemEnv<'_>) -> Result<bool, SqlError> {
    let Some(table) = described(relation, env) else { return Ok(false) };
    match object.get(1) {
        Some(Datum::Text(name)) if table.column(name).is_none() => {
            let message = format!("column \"{name}\" of relation \"{}\" does not exist", table.name);
            Err(SqlError::new(SqlState::UNDEFINED_COLUMN, message))
        }
        Some(Datum::Int(wanted)) => Ok(table.columns.iter().any(|column| i64::from(column.id.0) == *wanted)),
        _ => Ok(true),
    }
}

/// Whether an object of another kind exists.
fn named(kind: &str, object: &[&Datum], env: &SystemEnv<'_>) -> Result<bool, SqlError> {
    if !matches!(object.first(), Some(Datum::Text(_))) {
        let wanted = number(object, 0);
        return Ok(match kind {
            "schema" => schema_name(env.catalog(), wanted).is_some(),
            "database" => env.catalog().databases().any(|database| database.id.0 == wanted.0),
            "function" => functions::find(wanted).is_some(),
            "type" => env.catalog().show(SqlType::REGTYPE, wanted).is_some(),
            "language" => wanted == Oid(12),
            "tablespace" => wanted == Oid(1663),
            _ => false,
        });
    }
    let name = words(object, 0);
    let (exists, code, what) = match kind {
        "schema" => (schema_oid(env.catalog(), name).is_some(), SqlState::INVALID_SCHEMA_NAME, "schema"),
        "database" => (env.catalog().database(name).is_some(), SqlState::INVALID_CATALOG_NAME, "database"),
        "function" => return Ok(env.catalog().find(SqlType::REGPROCEDURE, name).map(|_| true)?),
        "type" => return Ok(env.catalog().find(SqlType::REGTYPE, name).map(|_| true)?),
        "language" => (name == "internal", SqlState::UNDEFINED_OBJECT, "language"),
        "tablespace" => (name == "pg_default", SqlState::UNDEFINED_OBJECT, "tablespace"),
        "server" => (false, SqlState::UNDEFINED_OBJECT, "server"),
        _ => (false, SqlState::UNDEFINED_OBJECT, "foreign-data wrapper"),
    };
    if exists { Ok(true) } else { Err(missing(code, what, name)) }
}

/// 22023 for a privilege that objects of this kind do not have.
fn privileges(kind: &str, list: &str) -> Result<(), SqlError> {
    let known: &[&str] = match kind {
        "table" => &["select", "insert", "update", "delete", "truncate", "references", "trigger"],
        "column" | "any_column" => &["select", "insert", "update", "references"],
        "sequence" => &["usage", "select", "update"],
        "schema" => &["create", "usage"],
        "database" => &["create", "temporary", "temp", "connect"],
        "function" => &["execute"],
        "tablespace" => &["create"],
        "role" => &["usage", "member"],
        _ => &["usage"],
    };
    for word in list.split(',').map(str::trim) {
        let lower = word.to_ascii_lowercase();
        let option = if kind == "role" { " with admin option" } else { " with grant option" };
        let base = lower.strip_suffix(option).unwrap_or(&lower);
        if !known.contains(&base) {
            let message = format!("unrecognized privilege type: \"{word}\"");
            return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
        }
    }
    Ok(())
}

//! Names of objects for the text forms of `regclass`, `regtype` and the like.

use sqlparser::ast::{Expr as Ast, SelectItem, SetExpr, Statement};

use super::type_name;
use crate::catalog::Catalog;
use crate::error::SqlState;
use crate::object::SchemaId;
use crate::parse;
use crate::table::quote_identifier;
use pgtypes::{Label, Names, Oid, SqlType, ValueError, functions};

/// The schema of built-in objects.
const PG_CATALOG_OID: Oid = Oid(11);

impl Names for Catalog {
    fn labels(&self, _: Oid) -> Option<&[Label]> {
        None
    }

    fn find(&self, class: SqlType, name: &str) -> Result<Oid, ValueError> {
        match class {
            SqlType::REGTYPE => find_type(name),
            SqlType::REGPROC => find_function(name),
            SqlType::REGNAMESPACE => match unqualified(name)?.as_str() {
                "pg_catalog" => Ok(PG_CATALOG_OID),
                schema => self.schema(schema).map(|schema| Oid(schema.id.0)).ok_or_else(|| {
                    ValueError::new(SqlState::INVALID_SCHEMA_NAME, format!("schema \"{name}\" does not exist"))
                }),
            },
            SqlType::REGCLASS => {
                let parts = parts(name)?;
                let (found, name) = match parts.as_slice() {
                    [name] => (self.relation(None, name), name.as_str()),
                    [schema, name] => (self.relation(Some(schema), name), name.as_str()),
                    _ => (None, ""),
                };
                found.map(|found| Oid(found.oid(name))).ok_or_else(|| {
                    let message = format!("relation \"{}\" does not exist", parts.join("."));
                    ValueError::new(SqlState::UNDEFINED_TABLE, message)
                })
            }
            other => {
                let message = format!("names of type {} are not supported yet", other.base_name());
                Err(ValueError::new(SqlState::FEATURE_NOT_SUPPORTED, message))
            }
        }
    }

    fn show(&self, class: SqlType, oid: Oid) -> Option<String> {
        match class {
            SqlType::REGTYPE => pgtypes::find(oid).map(|row| row.ty().name()),
            SqlType::REGPROC => functions::find(oid).map(|row| row.name.to_owned()),
            SqlType::REGPROCEDURE => functions::find(oid).map(|row| {
                let args: Vec<&str> = row.args.iter().map(|ty| ty.base_name()).collect();
                format!("{}({})", row.name, args.join(","))
            }),
            SqlType::REGNAMESPACE => match oid {
                PG_CATALOG_OID => Some("pg_catalog".to_owned()),
                _ => self.schema_by_id(SchemaId(oid.0)).map(|schema| quote_identifier(&schema.name)),
            },
            SqlType::REGCLASS => self.name_of_relation(oid.0).map(|(schema, name)| self.relation_text(schema, name)),
            _ => None,
        }
    }
}

/// The folded parts of a name as a user writes it: `public."My Table"`.
fn parts(name: &str) -> Result<Vec<String>, ValueError> {
    let invalid = || ValueError::new(SqlState::INVALID_NAME, format!("invalid name syntax: \"{name}\""));
    let mut parts = Vec::new();
    let mut rest = name.trim();
    loop {
        let (part, after) = match rest.strip_prefix('"') {
            Some(quoted) => {
                let end = quoted.find('"').ok_or_else(invalid)?;
                (quoted[..end].to_owned(), &quoted[end + 1..])
            }
            None => {
                let end = rest.find('.').unwrap_or(rest.len());
                (rest[..end].trim().to_lowercase(), &rest[end..])
            }
        };
        if part.is_empty() {
            return Err(invalid());
        }
        parts.push(part);
        match after.trim_start().strip_prefix('.') {
            Some(next) => rest = next.trim_start(),
            None if after.trim().is_empty() => return Ok(parts),
            None => return Err(invalid()),
        }
    }
}

fn unqualified(name: &str) -> Result<String, ValueError> {
    Ok(parts(name)?.pop().unwrap_or_default())
}

fn find_function(name: &str) -> Result<Oid, ValueError> {
    let word = unqualified(name)?;
    match functions::named(&word) {
        [] => Err(ValueError::new(SqlState::UNDEFINED_FUNCTION, format!("function \"{name}\" does not exist"))),
        [only] => Ok(only.oid),
        _ => Err(ValueError::new(SqlState::AMBIGUOUS_FUNCTION, format!("more than one function named \"{name}\""))),
    }
}

/// A type by any of its names.
fn find_type(name: &str) -> Result<Oid, ValueError> {
    let missing = || ValueError::new(SqlState::UNDEFINED_OBJECT, format!("type \"{name}\" does not exist"));
    let parsed = parse::parse(&format!("SELECT NULL::{name}"))
        .map_err(|_| ValueError::new(SqlState::SYNTAX_ERROR, format!("invalid type name \"{name}\"")))?;
    let [statement] = parsed.as_slice() else { return Err(missing()) };
    let Statement::Query(query) = &statement.tree else { return Err(missing()) };
    let SetExpr::Select(select) = &*query.body else { return Err(missing()) };
    match select.projection.as_slice() {
        [SelectItem::UnnamedExpr(Ast::Cast { data_type, .. })] => {
            type_name::resolve(data_type).map(|ty| ty.oid).map_err(|_| missing())
        }
        _ => Err(missing()),
    }
}

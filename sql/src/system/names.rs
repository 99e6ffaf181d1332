//! Names of objects: what the text forms of `regclass`, `regtype` and the like read and write.
//!
//! `pg_catalog` comes first in each search path. A name is written with its schema if it would not be
//! found without.

use super::describe::type_name;
use super::facts;
use super::objects::{DATABASE_OWNER, OWNER, of_row_type, schema_name, schema_oid};
use super::relations::{self, PG_CATALOG};
use crate::catalog::Catalog;
use crate::error::SqlState;
use crate::lexer::{Lexer, Token};
use crate::table::{Column, drawn_sequence, quote_identifier, unquote_identifier};
use pgtypes::functions::{OperatorRow, ProcRow, operators};
use pgtypes::{Names, Oid, SqlType, ValueError, functions};

/// The object of a name, but for types.
///
/// # Errors
/// 42P01, 42704, 42883, 3F000: there is none. 42602: it is no name.
pub(crate) fn find_object(catalog: &Catalog, class: SqlType, name: &str) -> Result<Oid, ValueError> {
    match class {
        SqlType::REGCLASS => find_relation(catalog, name),
        SqlType::REGPROC => find_function(name),
        SqlType::REGPROCEDURE => find_procedure(catalog, name),
        SqlType::REGOPER => find_operator(name),
        SqlType::REGOPERATOR => find_operator_of(catalog, name),
        SqlType::REGNAMESPACE => {
            let schema = alone(name)?;
            schema_oid(catalog, &schema).ok_or_else(|| missing(SqlState::INVALID_SCHEMA_NAME, "schema", &schema))
        }
        SqlType::REGROLE => {
            let role = alone(name)?;
            let found = [OWNER, DATABASE_OWNER].into_iter().find(|(_, known)| *known == role);
            found.map(|(oid, _)| oid).ok_or_else(|| missing(SqlState::UNDEFINED_OBJECT, "role", &role))
        }
        SqlType::REGCOLLATION => find_collation(name),
        other => {
            let message = format!("names of type {} are not supported yet", other.base_name());
            Err(ValueError::new(SqlState::FEATURE_NOT_SUPPORTED, message))
        }
    }
}

/// The name of an object; `None` if it does not exist.
pub(crate) fn show_object(catalog: &Catalog, class: SqlType, oid: Oid) -> Option<String> {
    match class {
        SqlType::REGCLASS => relation_name(catalog, oid),
        SqlType::REGTYPE => Some(type_name(catalog, oid, None)).filter(|name| name != "???"),
        SqlType::REGPROC => functions::find(oid).map(|row| match functions::named(row.name) {
            [_] => quote_identifier(row.name),
            _ => format!("{}.{}", PG_CATALOG.1, quote_identifier(row.name)),
        }),
        SqlType::REGPROCEDURE => functions::find(oid).map(signature),
        SqlType::REGOPER => operator(oid).map(|row| match operators::named(row.name) {
            [_] => row.name.to_owned(),
            _ => format!("{}.{}", PG_CATALOG.1, row.name),
        }),
        SqlType::REGOPERATOR => operator(oid).map(|row| {
            let left = row.left.map_or_else(|| "NONE".to_owned(), SqlType::name);
            format!("{}({left},{})", row.name, row.right.name())
        }),
        SqlType::REGNAMESPACE => schema_name(catalog, oid).map(quote_identifier),
        SqlType::REGROLE => {
            [OWNER, DATABASE_OWNER].into_iter().find(|(known, _)| *known == oid).map(|(_, name)| name.to_owned())
        }
        SqlType::REGCOLLATION => collations().find(|(known, _)| *known == oid).map(|(_, name)| match name {
            // A reserved word.
            "default" => "\"default\"".to_owned(),
            name => quote_identifier(name),
        }),
        _ => None,
    }
}

fn missing(code: SqlState, what: &str, name: &str) -> ValueError {
    ValueError::new(code, format!("{what} \"{name}\" does not exist"))
}

/// The folded parts of a name as a user writes it: `public."My Table"`.
pub(super) fn parts(name: &str) -> Result<Vec<String>, ValueError> {
    let invalid = || ValueError::new(SqlState::INVALID_NAME, "invalid name syntax");
    let mut parts = Vec::new();
    let mut rest = name.trim();
    loop {
        let (part, after) = match rest.strip_prefix('"') {
            Some(quoted) => unquote_identifier(quoted).ok_or_else(invalid)?,
            None => {
                let end = rest.find(|c: char| c == '.' || c.is_whitespace()).unwrap_or(rest.len());
                (rest[..end].to_lowercase(), &rest[end..])
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

/// A name without a schema.
fn alone(name: &str) -> Result<String, ValueError> {
    match <[String; 1]>::try_from(parts(name)?) {
        Ok([only]) => Ok(only),
        Err(_) => Err(ValueError::new(SqlState::INVALID_NAME, "invalid name syntax")),
    }
}

/// A name of a built-in object without its schema; `None` if it is another schema's.
fn built_in(name: &str) -> Result<Option<String>, ValueError> {
    let mut parts = parts(name)?;
    let last = parts.pop().unwrap_or_default();
    Ok(match parts.as_slice() {
        [] => Some(last),
        [schema] if schema == PG_CATALOG.1 => Some(last),
        _ => None,
    })
}

/// The relation of a name's parts: a table, an index, or a relation of the system.
pub(super) fn relation(catalog: &Catalog, parts: &[String]) -> Option<Oid> {
    let (schema, name) = match parts {
        [name] => (None, name),
        [schema, name] => (Some(schema.as_str()), name),
        _ => return None,
    };
    if let Some(relation) = relations::find(schema, name) {
        return Some(relation.oid());
    }
    catalog.relation(schema, name).map(|found| Oid(found.oid(name)))
}

pub(super) fn find_relation(catalog: &Catalog, name: &str) -> Result<Oid, ValueError> {
    let mut parts = parts(name)?;
    if let [database, _, _] = parts.as_slice()
        && catalog.is_own_database(database)
    {
        parts.remove(0);
    }
    let shown = parts.join(".");
    if parts.len() > 3 {
        let message = format!("improper relation name (too many dotted names): {shown}");
        return Err(ValueError::new(SqlState::SYNTAX_ERROR, message));
    }
    if parts.len() > 2 {
        let message = format!("cross-database references are not implemented: \"{shown}\"");
        return Err(ValueError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    }
    relation(catalog, &parts).ok_or_else(|| missing(SqlState::UNDEFINED_TABLE, "relation", &shown))
}

/// The schema and the name of a relation, and whether it is found without the schema: a relation of `pg_catalog` hides
/// others of its name.
fn locate(catalog: &Catalog, oid: Oid) -> Option<(&str, String, bool)> {
    if let Some(relation) = relations::by_oid(oid) {
        return Some((relation.schema.1, relation.table.name.clone(), relation.schema.0 == PG_CATALOG.0));
    }
    let (schema, name) = catalog.name_of_relation(oid.0)?;
    let is_visible = relations::find(None, name).is_none() && catalog.is_visible(schema, name);
    Some((&catalog.schema_by_id(schema)?.name, name.to_owned(), is_visible))
}

fn relation_name(catalog: &Catalog, oid: Oid) -> Option<String> {
    let (schema, name, is_visible) = locate(catalog, oid)?;
    let name = quote_identifier(&name);
    Some(if is_visible { name } else { format!("{}.{name}", quote_identifier(schema)) })
}

/// The default of a column, as the catalog shows it. One of identity is none.
pub(super) fn shown_default(column: &Column, catalog: &Catalog) -> Option<String> {
    let default = column.default.as_ref().filter(|_| column.identity.is_none())?;
    let name = drawn_sequence(default).and_then(|id| relation_name(catalog, Oid(id.0)));
    Some(match name {
        Some(name) => format!("nextval('{}'::regclass)", name.replace('\'', "''")),
        None if column.ty.scalar().is_enum() && column.domain.is_none() && is_literal(default) => {
            format!("{default}::{}", catalog.type_text(column.ty))
        }
        None => catalog.shown_text(default).into_owned(),
    })
}

/// Whether a text is one literal.
fn is_literal(text: &str) -> bool {
    let mut lexer = Lexer::new(text);
    lexer.next().is_some_and(|first| matches!(first.token, Token::Text(_))) && lexer.next().is_none()
}

/// The name of a function with the types of its arguments.
fn signature(row: &ProcRow) -> String {
    let args: Vec<String> = row.args.iter().map(|ty| ty.name()).collect();
    format!("{}({})", quote_identifier(row.name), args.join(","))
}

fn operator(oid: Oid) -> Option<&'static OperatorRow> {
    operators::all().find(|row| row.oid == oid)
}

fn find_function(name: &str) -> Result<Oid, ValueError> {
    let shown = parts(name)?.join(".");
    let found = built_in(name)?.map_or(&[][..], |word| functions::named(&word));
    match found {
        [] => Err(missing(SqlState::UNDEFINED_FUNCTION, "function", &shown)),
        [only] => Ok(only.oid),
        _ => Err(ValueError::new(SqlState::AMBIGUOUS_FUNCTION, format!("more than one function named \"{shown}\""))),
    }
}

/// A name and the texts of its arguments: `lower(text)`.
fn split_arguments(name: &str) -> Result<(&str, Vec<&str>), ValueError> {
    let expected = |what: &str| ValueError::new(SqlState::INVALID_TEXT_REPRESENTATION, what.to_owned());
    let (word, rest) = name.split_once('(').ok_or_else(|| expected("expected a left parenthesis"))?;
    let args = rest.trim_end().strip_suffix(')').ok_or_else(|| expected("expected a right parenthesis"))?;
    let args = if args.trim().is_empty() { Vec::new() } else { args.split(',').map(str::trim).collect() };
    Ok((word, args))
}

fn find_procedure(catalog: &Catalog, name: &str) -> Result<Oid, ValueError> {
    let (word, args) = split_arguments(name)?;
    let args =
        args.into_iter().map(|arg| catalog.find(SqlType::REGTYPE, arg)).collect::<Result<Vec<Oid>, ValueError>>()?;
    let named = built_in(word)?.map_or(&[][..], |word| functions::named(&word));
    let fits = |row: &&&ProcRow| row.args.iter().map(|ty| ty.oid).eq(args.iter().copied());
    let found = named.iter().find(fits).map(|row| row.oid);
    found.ok_or_else(|| missing(SqlState::UNDEFINED_FUNCTION, "function", name))
}

/// An operator without its schema.
fn operator_word(name: &str) -> &str {
    name.trim().strip_prefix("pg_catalog.").unwrap_or(name.trim())
}

fn find_operator(name: &str) -> Result<Oid, ValueError> {
    match operators::named(operator_word(name)).iter().filter(|row| operator(row.oid).is_some()).collect::<Vec<_>>()[..]
    {
        [] => Err(ValueError::new(SqlState::UNDEFINED_FUNCTION, format!("operator does not exist: {name}"))),
        [only] => Ok(only.oid),
        _ => Err(ValueError::new(SqlState::AMBIGUOUS_FUNCTION, format!("more than one operator named {name}"))),
    }
}

fn find_operator_of(catalog: &Catalog, name: &str) -> Result<Oid, ValueError> {
    let (word, args) = split_arguments(name)?;
    let [left, right] = args.as_slice() else {
        let (what, hint) = match args.len() {
            0 | 1 => ("missing argument", "Use NONE to denote the missing argument of a unary operator."),
            _ => ("too many arguments", "Provide two argument types for operator."),
        };
        return Err(ValueError::new(SqlState::UNDEFINED_PARAMETER, what).with_hint(hint));
    };
    let left = if left.eq_ignore_ascii_case("none") { None } else { Some(catalog.find(SqlType::REGTYPE, left)?) };
    let right = catalog.find(SqlType::REGTYPE, right)?;
    let named = operators::named(operator_word(word)).iter();
    let found = named.copied().find(|row| row.left.map(|ty| ty.oid) == left && row.right.oid == right);
    let found = found.map(|row| row.oid);
    found.ok_or_else(|| ValueError::new(SqlState::UNDEFINED_FUNCTION, format!("operator does not exist: {name}")))
}

/// The collations: OID and name.
fn collations() -> impl Iterator<Item = (Oid, &'static str)> {
    let section = facts::sections().iter().find(|section| section.relation == "pg_collation");
    let rows = section.into_iter().flat_map(|section| &section.rows);
    rows.filter_map(|row| Some((facts::number(row.first()?), *row.get(1)?)))
}

fn find_collation(name: &str) -> Result<Oid, ValueError> {
    let shown = parts(name)?.join(".");
    let word = built_in(name)?;
    let found = collations().find(|(_, known)| word.as_deref() == Some(*known)).map(|(oid, _)| oid);
    found.ok_or_else(|| {
        let message = format!("collation \"{shown}\" for encoding \"UTF8\" does not exist");
        ValueError::new(SqlState::UNDEFINED_OBJECT, message)
    })
}

/// The domain of a name with its schema.
pub(crate) fn find_domain(name: &str) -> Option<Oid> {
    let name = name.trim().strip_prefix("information_schema.")?;
    facts::domains().iter().find(|domain| domain.name == name).map(|domain| domain.oid)
}

/// Whether an object with this OID is found without its schema.
pub(super) fn is_visible(catalog: &Catalog, class: SqlType, oid: Oid) -> Option<bool> {
    match class {
        SqlType::REGCLASS => locate(catalog, oid).map(|(_, _, is_visible)| is_visible),
        SqlType::REGTYPE => {
            let is_domain = facts::domains().iter().any(|domain| domain.oid == oid || domain.array == oid);
            let built_in = if is_domain { Some(false) } else { pgtypes::find(oid).map(|_| true) };
            let of_rows = || is_visible(catalog, SqlType::REGCLASS, of_row_type(catalog, oid)?);
            built_in.or_else(|| catalog.is_visible_type(oid)).or_else(of_rows)
        }
        SqlType::REGPROC => functions::find(oid).map(|_| true),
        SqlType::REGOPER => operator(oid).map(|_| true),
        SqlType::REGCOLLATION => collations().any(|(known, _)| known == oid).then_some(true),
        _ => None,
    }
}

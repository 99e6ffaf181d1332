//! The comparison of tables with their indexes, for `cortado check table`.

use std::sync::Arc;

use txn::Database;

use crate::catalog::{Catalog, Sight};
use crate::error::{SqlError, SqlState};
use crate::exec::{CheckedTable, check_with_progress};
use crate::object::PUBLIC;
use crate::table::quote_identifier;

/// What hears the name of a table, what was found so far, and whether that is all.
pub(super) type Report<'r> = dyn FnMut(&str, &CheckedTable, bool) + Send + 'r;

/// Compares tables of a database with their indexes, all at one snapshot. `names`: as in SQL; none for all tables.
pub(super) async fn tables(
    db: &Database,
    database: &str,
    names: &[String],
    report: &mut Report<'_>,
) -> Result<(), SqlError> {
    let txn = db.begin().await?;
    let catalog = Catalog::load(&txn).await?;
    let Some(found) = catalog.database(database) else {
        let message = format!("database \"{database}\" does not exist");
        return Err(SqlError::new(SqlState::INVALID_CATALOG_NAME, message));
    };
    let sight = Sight { database: found.id, path: Arc::new([]), temporary: None };
    let catalog = catalog.seen_from(&sight);
    let path = catalog.schema(PUBLIC).map(|schema| schema.id).into_iter().collect();
    let catalog = catalog.seen_from(&Sight { path, ..sight });
    let mut tables = Vec::new();
    for name in names {
        let (schema, relation) = split_name(name);
        let found = catalog.relation(schema.as_deref(), &relation).and_then(|found| found.table());
        let missing = || SqlError::new(SqlState::UNDEFINED_TABLE, format!("relation \"{name}\" does not exist"));
        tables.push(Arc::clone(found.ok_or_else(missing)?));
    }
    if names.is_empty() {
        tables = catalog.tables();
    }
    for table in tables {
        let schema = catalog.schema_by_id(table.schema).map_or("", |schema| &schema.name);
        let name = format!("{}.{}", quote_identifier(schema), quote_identifier(&table.name));
        let mut progress = |found: &CheckedTable| report(&name, found, false);
        let found = check_with_progress(&txn, &catalog, table, &mut progress).await?;
        report(&name, &found, true);
    }
    Ok(())
}

/// The schema and the relation of a name, each folded unless it is quoted.
fn split_name(name: &str) -> (Option<String>, String) {
    let (mut parts, mut part, mut is_quoted) = (Vec::new(), String::new(), false);
    let mut rest = name.chars().peekable();
    while let Some(at) = rest.next() {
        match at {
            '"' if is_quoted && rest.peek() == Some(&'"') => {
                rest.next();
                part.push('"');
            }
            '"' => is_quoted = !is_quoted,
            '.' if !is_quoted => parts.push(std::mem::take(&mut part)),
            at if is_quoted => part.push(at),
            at => part.extend(at.to_lowercase()),
        }
    }
    (parts.pop(), part)
}

#[cfg(test)]
mod tests {
    use super::split_name;

    #[test]
    fn names_are_folded_unless_they_are_quoted() {
        let split = |name| {
            let (schema, relation) = split_name(name);
            format!("{}|{relation}", schema.unwrap_or_default())
        };
        assert_eq!(split("T"), "|t");
        assert_eq!(split("S.\"T.x\""), "s|T.x");
        assert_eq!(split("\"a\"\"b\".c"), "a\"b|c");
    }
}

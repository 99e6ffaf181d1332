//! The comparison of tables with their indexes, for `cortado check table`.

use std::collections::VecDeque;
use std::sync::Arc;

use txn::{Database, Transaction};

use crate::catalog::{Catalog, Sight};
use crate::error::{SqlError, SqlState};
use crate::exec::{CheckedTable, check_with_progress};
use crate::object::PUBLIC;
use crate::table::{Table, quote_identifier};

/// A comparison of tables of a database with their indexes, all at one snapshot.
pub struct TableChecks {
    txn: Transaction,
    catalog: Catalog,
    tables: VecDeque<Arc<Table>>,
}

impl TableChecks {
    /// `names`: as in SQL, in `public` without a schema; none for all tables.
    pub(super) async fn begin(db: &Database, database: &str, names: &[String]) -> Result<TableChecks, SqlError> {
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
        if names.is_empty() {
            let tables = catalog.tables().into();
            return Ok(TableChecks { txn, catalog, tables });
        }
        let mut tables = VecDeque::new();
        for name in names {
            let (schema, relation) = split_name(name);
            let found = catalog.relation(schema.as_deref(), &relation).and_then(|found| found.table());
            let missing = || SqlError::new(SqlState::UNDEFINED_TABLE, format!("relation \"{name}\" does not exist"));
            tables.push_back(Arc::clone(found.ok_or_else(missing)?));
        }
        Ok(TableChecks { txn, catalog, tables })
    }

    /// Compares the next table. Returns its name and what was found; `None` after the last one. `progress` hears what
    /// was found so far, after each page.
    ///
    /// # Errors
    /// 57P03 if the stores do not answer.
    pub async fn next(
        &mut self,
        progress: &mut (dyn FnMut(&str, &CheckedTable) + Send),
    ) -> Result<Option<(String, CheckedTable)>, SqlError> {
        let Some(table) = self.tables.pop_front() else { return Ok(None) };
        let schema = self.catalog.schema_by_id(table.schema).map_or("", |schema| &schema.name);
        let name = format!("{}.{}", quote_identifier(schema), quote_identifier(&table.name));
        let mut progress = |found: &CheckedTable| progress(&name, found);
        let found = check_with_progress(&self.txn, &self.catalog, table, &mut progress).await?;
        Ok(Some((name, found)))
    }
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

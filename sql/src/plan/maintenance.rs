//! VACUUM and ANALYZE.
//!
//! VACUUM has nothing to do: old versions of rows go by themselves. ANALYZE counts the rows of tables
//! ([`crate::exec`]); its statistics are hints for later plans.

use std::sync::Arc;

use sqlparser::ast::{Ident, ObjectName};

use super::binder::Binder;
use super::names::fold_ident;
use super::node::{AnalyzeTarget, Body, Notice};
use crate::catalog::Relation;
use crate::error::{SqlError, SqlState};
use crate::parse::Maintenance;
use crate::table::Table;

/// The tag of VACUUM, which cannot run in a transaction block.
pub(super) const VACUUM: &str = "VACUUM";

impl Binder<'_> {
    /// VACUUM or ANALYZE. 42P01 for a table that does not exist, 42703 and 42701 for columns; relations that are no
    /// tables are left out with a warning.
    pub(super) fn maintenance(&mut self, statement: &Maintenance) -> Result<Body, SqlError> {
        let tag = if statement.is_vacuum { VACUUM } else { "ANALYZE" };
        let has_columns = statement.tables.iter().any(|(_, columns)| !columns.is_empty());
        if has_columns && !statement.analyzes {
            let message = "ANALYZE option must be specified when a column list is provided";
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        let mut targets = Vec::new();
        for (name, columns) in &statement.tables {
            if let Some(table) = self.maintained(name, statement.is_vacuum)? {
                targets.push(AnalyzeTarget { columns: analyzed_columns(&table, columns)?, table });
            }
        }
        if !statement.analyzes {
            return Ok(Body::Nothing(tag));
        }
        Ok(Body::Analyze(tag, (!statement.tables.is_empty()).then_some(targets)))
    }

    /// The table of a name; `None` for another relation, and for those of the system.
    fn maintained(&mut self, name: &ObjectName, is_vacuum: bool) -> Result<Option<Arc<Table>>, SqlError> {
        let parts = self.name_parts(name)?;
        if self.of_system(&parts).is_some() {
            return Ok(None);
        }
        if let [schema, _] = parts.as_slice()
            && self.catalog.schema(schema).is_none()
        {
            return Err(SqlError::new(SqlState::INVALID_SCHEMA_NAME, format!("schema \"{schema}\" does not exist")));
        }
        // As in PostgreSQL without a position.
        let found = self.relation(name).map_err(|error| SqlError { position: None, ..error })?;
        match found {
            (Relation::Table(table), _) => Ok(Some(table)),
            (_, name) => {
                let verb = if is_vacuum { "vacuum" } else { "analyze" };
                let message = format!("skipping \"{name}\" --- cannot {verb} non-tables or special system tables");
                self.notices.push(Notice { code: SqlState::WARNING, message, is_warning: true });
                Ok(None)
            }
        }
    }
}

/// The positions of the columns to analyze.
fn analyzed_columns(table: &Table, names: &[Ident]) -> Result<Vec<usize>, SqlError> {
    if names.is_empty() {
        return Ok((0..table.columns.len()).collect());
    }
    let mut columns = Vec::with_capacity(names.len());
    for name in names {
        let name = fold_ident(name);
        let Some(at) = table.column(&name) else {
            let message = format!("column \"{name}\" of relation \"{}\" does not exist", table.name);
            return Err(SqlError::new(SqlState::UNDEFINED_COLUMN, message));
        };
        if columns.contains(&at) {
            let message = format!("column \"{name}\" of relation \"{}\" appears more than once", table.name);
            return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message));
        }
        columns.push(at);
    }
    Ok(columns)
}

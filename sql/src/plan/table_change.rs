//! A change of a table under construction, and what goes with what it drops.

use std::sync::Arc;

use super::binder::Binder;
use super::dependents::{Dependents, without_column};
use super::node::{Alteration, Notice};
use crate::error::{SqlError, SqlState};
use crate::expr::Expr;
use crate::table::Table;

/// A change under construction.
pub(super) struct Change {
    pub(super) alteration: Alteration,
    /// The columns of the new rows, over the old ones.
    pub(super) row: Vec<Expr>,
    /// What the change drops of other tables.
    pub(super) dropped: Dependents,
}

impl Change {
    /// No change yet.
    pub(super) fn of(table: Arc<Table>) -> Change {
        let row = (0..table.columns.len()).map(Expr::Column).collect();
        Change { alteration: Alteration::of(table), row, dropped: Dependents::default() }
    }
}

impl Binder<'_> {
    /// Drops what depends on something that is dropped, or refuses to.
    pub(super) fn drop_dependents(
        &mut self,
        what: &str,
        found: Dependents,
        cascade: bool,
        change: &mut Change,
    ) -> Result<(), SqlError> {
        if let Some(message) = found.check(what, cascade)? {
            self.notices.push(Notice { code: SqlState::SUCCESSFUL_COMPLETION, message, is_warning: false });
        }
        let own = found.columns.clone();
        change.dropped.add(found, &mut change.alteration.new);
        for column in own {
            if let Some(at) = change.alteration.new.position_of(column) {
                self.remove_column(at, change)?;
            }
        }
        Ok(())
    }

    /// Removes a column with the indexes and constraints over it.
    pub(super) fn remove_column(&mut self, at: usize, change: &mut Change) -> Result<(), SqlError> {
        let had_key = !change.alteration.new.has_hidden_key();
        let id = change.alteration.new.columns.get(at).map(|column| column.id);
        change.alteration.sequences.retain(|(owner, _)| Some(*owner) != id);
        without_column(&mut change.alteration.new, at, self.catalog)?;
        change.row.remove(at);
        let alteration = &mut change.alteration;
        alteration.rewrites |= had_key && alteration.new.has_hidden_key();
        Ok(())
    }
}

impl Alteration {
    /// Marks a column as NOT NULL, which the rows are checked for.
    pub(super) fn set_not_null(&mut self, at: usize) {
        if let Some(column) = self.new.columns.get_mut(at)
            && !column.not_null
        {
            column.not_null = true;
            self.validates.not_null.push(column.id);
        }
    }
}

/// The place of a column that is changed. 42703 if there is none.
pub(super) fn place_of(name: &str, table: &Table) -> Result<usize, SqlError> {
    table.column(name).ok_or_else(|| {
        let message = format!("column \"{name}\" of relation \"{}\" does not exist", table.name);
        SqlError::new(SqlState::UNDEFINED_COLUMN, message)
    })
}

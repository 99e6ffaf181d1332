//! ALTER TABLE of columns that draw from sequences: identity for a column that is there, and its changes.

use std::sync::Arc;

use sqlparser::ast::{GeneratedAs, SequenceOptions};

use super::binder::Binder;
use super::ddl::identity;
use super::dependents::Dependents;
use super::node::Alteration;
use super::sequence_ddl::redundant;
use crate::error::{SqlError, SqlState};
use crate::object::{Object, Sequence};
use crate::parse::{refused_option, set_generated};
use crate::table::{Column, ColumnId, Table, drawn_sequence};

/// 55000 for a column that is not what an action wants it to be.
fn refused(column: &Column, table: &Table, what: &str) -> SqlError {
    let message = format!("column \"{}\" of relation \"{}\" {what}", column.name, table.name);
    SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
}

impl Binder<'_> {
    /// ALTER COLUMN ... ADD GENERATED ... AS IDENTITY. The stored rows keep their values.
    pub(super) fn add_identity(
        &self,
        place: usize,
        generated_as: Option<GeneratedAs>,
        options: &[SequenceOptions],
        alteration: &mut Alteration,
    ) -> Result<(), SqlError> {
        let table = &alteration.new;
        let Some(column) = table.columns.get(place) else { return Ok(()) };
        // PostgreSQL makes the sequence first.
        let kind = identity(generated_as.unwrap_or(GeneratedAs::ByDefault), column)?;
        let named = (table.name.as_str(), column.name.as_str(), column.ty);
        let sequence = self.column_sequence(named, options, &alteration.sequence_names())?;
        if !column.not_null {
            return Err(refused(column, table, "must be declared NOT NULL before identity can be added"));
        }
        if column.identity.is_some() {
            return Err(refused(column, table, "is already an identity column"));
        }
        let is_serial = alteration.sequences.iter().any(|(owner, _)| *owner == column.id);
        if column.default.is_some() || column.generated.is_some() || is_serial {
            return Err(refused(column, table, "already has a default value"));
        }
        let id = column.id;
        alteration.sequences.push((id, sequence));
        alteration.new.columns[place].identity = Some(kind);
        Ok(())
    }

    /// ALTER COLUMN ... SET and RESTART. PostgreSQL changes the sequence first.
    pub(super) fn set_identity(
        &self,
        place: usize,
        options: &[SequenceOptions],
        alteration: &mut Alteration,
    ) -> Result<(), SqlError> {
        let (mut kinds, mut of_sequence) = (Vec::new(), Vec::with_capacity(options.len()));
        for option in options {
            if let Some((name, span)) = refused_option(option) {
                let message = format!("sequence option \"{name}\" not supported here");
                return Err(self.error(SqlState::SYNTAX_ERROR, message, span.start));
            }
            match set_generated(option) {
                Some(kind) => kinds.push(kind),
                None => of_sequence.push(option),
            }
        }
        let Some(column) = alteration.new.columns.get(place).cloned() else { return Ok(()) };
        if column.identity.is_some() && !of_sequence.is_empty() {
            let sequence = self.sequence_of_identity(&column, alteration)?;
            let new = self.with_options(&sequence, of_sequence)?;
            alteration.set_sequence(column.id, sequence, new);
        }
        if kinds.len() > 1 {
            return Err(redundant());
        }
        if column.identity.is_none() {
            return Err(refused(&column, &alteration.new, "is not an identity column"));
        }
        if let Some(kind) = kinds.first() {
            alteration.new.columns[place].identity = Some(identity(*kind, &column)?);
        }
        Ok(())
    }

    /// What depends on the sequence of a column that loses its identity, the sequence included, and its description.
    /// `None` if the column has no identity, and need not have one.
    pub(super) fn identity_dependents(
        &mut self,
        place: usize,
        if_exists: bool,
        table: &Table,
    ) -> Result<Option<(Dependents, String)>, SqlError> {
        let Some(column) = table.columns.get(place) else { return Ok(None) };
        if column.identity.is_none() {
            let error = refused(column, table, "is not an identity column");
            if !if_exists {
                return Err(error);
            }
            self.skip(SqlState::SUCCESSFUL_COMPLETION, &error.message);
            return Ok(None);
        }
        let drawn = column.default.as_deref().and_then(drawn_sequence);
        let sequence = drawn.and_then(|id| self.catalog.object(id)).ok_or_else(no_sequence)?;
        let mut found = Dependents::default();
        self.add_sequences((table, column), vec![Arc::clone(sequence)], &mut found)?;
        Ok(Some((found, self.object_text(sequence))))
    }

    /// ALTER COLUMN ... DROP EXPRESSION. The stored values stay.
    pub(super) fn drop_expression(&mut self, place: usize, if_exists: bool, table: &mut Table) -> Result<(), SqlError> {
        let Some(column) = table.columns.get(place) else { return Ok(()) };
        if column.generated.is_none() {
            let error = refused(column, table, "is not a stored generated column");
            if !if_exists {
                return Err(error);
            }
            self.skip(SqlState::SUCCESSFUL_COMPLETION, &error.message);
            return Ok(());
        }
        table.columns[place].generated = None;
        Ok(())
    }

    /// The sequence of an identity column, as the actions so far leave it.
    fn sequence_of_identity(&self, column: &Column, alteration: &Alteration) -> Result<Sequence, SqlError> {
        if let Some((_, new)) = alteration.sequences.iter().find(|(owner, _)| *owner == column.id) {
            return Ok(new.clone());
        }
        let id = column.default.as_deref().and_then(drawn_sequence).ok_or_else(no_sequence)?;
        if let Some((_, new)) = alteration.altered.iter().find(|(old, _)| old.id == id) {
            return Ok(new.clone());
        }
        match self.catalog.object(id).map(|object| &**object) {
            Some(Object::Sequence(sequence)) => Ok(sequence.clone()),
            _ => Err(no_sequence()),
        }
    }
}

fn no_sequence() -> SqlError {
    SqlError::internal("an identity column has no sequence")
}

impl Alteration {
    /// The names of its new sequences.
    pub(super) fn sequence_names(&self) -> Vec<String> {
        self.sequences.iter().map(|(_, sequence)| sequence.name.clone()).collect()
    }

    /// Changes the sequence of a column.
    fn set_sequence(&mut self, owner: ColumnId, old: Sequence, new: Sequence) {
        if let Some((_, known)) = self.sequences.iter_mut().find(|(id, _)| *id == owner) {
            *known = new;
        } else if let Some((_, known)) = self.altered.iter_mut().find(|(known, _)| known.id == old.id) {
            *known = new;
        } else {
            self.altered.push((old, new));
        }
    }
}

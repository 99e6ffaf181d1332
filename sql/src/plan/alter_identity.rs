//! ALTER TABLE of columns that draw from sequences: identity for a column that is there.

use sqlparser::ast::{GeneratedAs, SequenceOptions};

use super::binder::Binder;
use super::ddl::identity;
use super::node::Alteration;
use crate::error::{SqlError, SqlState};

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
        let refused = |what: &str| {
            let message = format!("column \"{}\" of relation \"{}\" {what}", column.name, table.name);
            SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
        };
        if !column.not_null {
            return Err(refused("must be declared NOT NULL before identity can be added"));
        }
        if column.identity.is_some() {
            return Err(refused("is already an identity column"));
        }
        if column.default.is_some() {
            return Err(refused("already has a default value"));
        }
        let kind = identity(generated_as.unwrap_or(GeneratedAs::ByDefault), column)?;
        let named = (table.name.as_str(), column.name.as_str(), column.ty);
        let sequence = self.column_sequence(named, options, &alteration.sequence_names())?;
        let id = column.id;
        alteration.sequences.push((id, sequence));
        alteration.new.columns[place].identity = Some(kind);
        Ok(())
    }
}

impl Alteration {
    /// The names of its new sequences.
    pub(super) fn sequence_names(&self) -> Vec<String> {
        self.sequences.iter().map(|(_, sequence)| sequence.name.clone()).collect()
    }
}

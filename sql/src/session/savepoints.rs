//! SAVEPOINT, RELEASE, ROLLBACK TO: positions in a transaction block to which the session can go back.
//!
//! A statement that fails in a block with a savepoint undoes the work since the newest one at once: its writes, and the
//! rows that were locked since. The block stays failed until ROLLBACK TO. A name may be used again: the newest
//! savepoint of that name counts, and the older one again once that is released.

use super::state::{Session, SessionSavepoint};
use crate::catalog::SchemaSavepoint;
use crate::error::{SqlError, SqlState};

/// The most savepoints of a transaction.
const SAVEPOINTS_MAX: usize = 100_000;

impl Session {
    /// SAVEPOINT.
    pub(crate) fn save(&mut self, name: &str) -> Result<(), SqlError> {
        if self.savepoints.len() >= SAVEPOINTS_MAX {
            let message = format!("a transaction has at most {SAVEPOINTS_MAX} savepoints");
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
        }
        let active = self.active.as_ref();
        self.savepoints.push(SessionSavepoint {
            name: name.to_owned(),
            state: self.state.clone(),
            settings: self.settings.savepoint(),
            txn: active.map(|active| active.txn.savepoint()),
            schema: active.and_then(|active| active.schema.as_ref()).map(|schema| schema.savepoint()),
            advisory: self.advisory.savepoint(),
        });
        Ok(())
    }

    /// RELEASE: forgets a savepoint and those after it. 3B001 if there is none of that name.
    pub(crate) fn release(&mut self, name: &str) -> Result<(), SqlError> {
        let at = self.savepoint(name)?;
        if let Some(saved) = self.savepoints.get(at) {
            self.state.release(&saved.state);
        }
        self.savepoints.truncate(at);
        // They belong to what is around the savepoint now.
        self.portals.values_mut().for_each(|portal| portal.level = portal.level.min(at));
        self.advisory.release(self.savepoints.last().map_or(0, |saved| saved.advisory));
        Ok(())
    }

    /// ROLLBACK TO: undoes all that follows a savepoint, which stays. 3B001 if there is none of that name.
    pub(crate) fn rollback_to(&mut self, name: &str) -> Result<(), SqlError> {
        let at = self.savepoint(name)?;
        self.savepoints.truncate(at + 1);
        self.undo_to_last_savepoint();
        if let Some(saved) = self.savepoints.last() {
            self.state.rollback_to(&saved.state);
            self.settings.rollback_to(&saved.settings);
        }
        Ok(())
    }

    /// Undoes the writes since the newest savepoint, gives up the rows and advisory locks taken since, and closes the
    /// portals opened since.
    pub(crate) fn undo_to_last_savepoint(&mut self) {
        let level = self.savepoints.len();
        self.portals.retain(|portal| portal.level < level);
        self.advisory.rollback_to(self.savepoints.last().map_or(0, |saved| saved.advisory));
        let (Some(saved), Some(active)) = (self.savepoints.last(), &mut self.active) else { return };
        // A statement that was interrupted has left its view behind.
        active.txn.set_view(None);
        active.txn.rollback_to(saved.txn.unwrap_or_default());
        if let Some(schema) = &mut active.schema {
            match &saved.schema {
                Some(saved) => schema.rollback_to(saved),
                None => schema.rollback_to(&SchemaSavepoint::unchanged(&active.lease.catalog)),
            }
        }
    }

    fn savepoint(&self, name: &str) -> Result<usize, SqlError> {
        self.savepoints.iter().rposition(|saved| saved.name == name).ok_or_else(|| {
            let message = format!("savepoint \"{name}\" does not exist");
            SqlError::new(SqlState::INVALID_SAVEPOINT, message)
        })
    }
}

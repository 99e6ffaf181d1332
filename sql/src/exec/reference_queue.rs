//! What a statement has to do for foreign keys when its own changes are done.

use std::collections::{HashSet, VecDeque};

use super::budget::Budget;
use super::rows::{Row, distinct_key, row_bytes};
use crate::error::SqlError;
use crate::table::TableId;
use pgtypes::Datum;

/// A foreign key: its table, and its place there.
pub(super) type KeyPlace = (TableId, usize);

/// A row that others may refer to, which is gone or has changed.
#[derive(Debug)]
pub(super) struct Changed {
    pub(super) table: TableId,
    pub(super) old: Row,
    /// `None`: it is deleted.
    pub(super) new: Option<Row>,
}

/// The work that waits.
#[derive(Debug)]
pub struct ReferenceQueue {
    /// Values of foreign keys that must exist, in the order of their rows.
    checks: Vec<(KeyPlace, Vec<Datum>)>,
    /// Those that are among `checks`.
    known: HashSet<(KeyPlace, Vec<u8>)>,
    changed: VecDeque<Changed>,
    budget: Budget,
}

impl Default for ReferenceQueue {
    fn default() -> ReferenceQueue {
        ReferenceQueue {
            checks: Vec::new(),
            known: HashSet::new(),
            changed: VecDeque::new(),
            budget: Budget::of_statement(),
        }
    }
}

impl ReferenceQueue {
    /// Values of a foreign key that must exist.
    pub(super) fn check(&mut self, key: KeyPlace, values: Vec<Datum>) -> Result<(), SqlError> {
        if self.known.insert((key, distinct_key(&values))) {
            self.budget.charge(2 * row_bytes(&values))?;
            self.checks.push((key, values));
        }
        Ok(())
    }

    /// A row that others may refer to has changed.
    pub(super) fn change(&mut self, changed: Changed) -> Result<(), SqlError> {
        self.budget.charge(row_bytes(&changed.old) + changed.new.as_ref().map_or(0, row_bytes))?;
        self.changed.push_back(changed);
        Ok(())
    }

    /// The next row that has changed.
    pub(super) fn next_change(&mut self) -> Option<Changed> {
        let changed = self.changed.pop_front()?;
        self.budget.release(row_bytes(&changed.old) + changed.new.as_ref().map_or(0, row_bytes));
        Some(changed)
    }

    /// Takes all values that must exist.
    pub(super) fn take_checks(&mut self) -> Vec<(KeyPlace, Vec<Datum>)> {
        self.known.clear();
        let checks = std::mem::take(&mut self.checks);
        checks.iter().for_each(|(_, values)| self.budget.release(2 * row_bytes(values)));
        checks
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.checks.is_empty() && self.changed.is_empty()
    }
}

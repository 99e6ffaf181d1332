//! What a statement has to do for foreign keys when its own changes are done.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use super::budget::Budget;
use super::rows::{Row, equality_key, row_bytes};
use crate::error::SqlError;
use crate::plan::Plan;
use crate::table::TableId;
use pgtypes::Datum;

/// Values that wait before some are looked up.
const MANY_CHECKS: usize = 4096;

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
    /// The plan of the statement, if it may meet foreign keys.
    plan: Option<Arc<Plan>>,
    /// Whether a row that was read was gone when it was locked.
    met_gone: bool,
    budget: Budget,
}

impl Default for ReferenceQueue {
    fn default() -> ReferenceQueue {
        ReferenceQueue {
            checks: Vec::new(),
            known: HashSet::new(),
            changed: VecDeque::new(),
            plan: None,
            met_gone: false,
            budget: Budget::of_statement(),
        }
    }
}

impl ReferenceQueue {
    /// Says which statement it is for.
    pub(super) fn begin(&mut self, plan: &Arc<Plan>) {
        self.plan = Some(Arc::clone(plan)).filter(|plan| plan.references.is_some());
    }

    /// The plan with the foreign keys, if so many values wait that some are to be looked up.
    pub(super) fn overfull(&self) -> Option<Arc<Plan>> {
        self.plan.clone().filter(|_| self.checks.len() >= MANY_CHECKS)
    }

    /// Values of a foreign key that must exist.
    pub(super) fn check(&mut self, key: KeyPlace, values: Vec<Datum>) -> Result<(), SqlError> {
        if self.known.insert((key, equality_key(&values)?)) {
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

    /// A row that was read is gone now that it is locked. It may have moved: a row is its primary key.
    pub(super) fn note_gone(&mut self) {
        self.met_gone = true;
    }

    /// Whether a row was gone since the last call.
    pub(super) fn take_gone(&mut self) -> bool {
        std::mem::take(&mut self.met_gone)
    }

    /// The next row that has changed.
    pub(super) fn next_change(&mut self) -> Option<Changed> {
        let changed = self.changed.pop_front()?;
        self.budget.release(row_bytes(&changed.old) + changed.new.as_ref().map_or(0, row_bytes));
        Some(changed)
    }

    /// Takes the values that must exist of some foreign keys.
    pub(super) fn take_checks(&mut self, of: impl Fn(KeyPlace) -> bool) -> Vec<(KeyPlace, Vec<Datum>)> {
        self.known.retain(|(key, _)| !of(*key));
        let (checks, rest) = std::mem::take(&mut self.checks).into_iter().partition(|(key, _)| of(*key));
        self.checks = rest;
        let checks: Vec<(KeyPlace, Vec<Datum>)> = checks;
        checks.iter().for_each(|(_, values)| self.budget.release(2 * row_bytes(values)));
        checks
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.checks.is_empty() && self.changed.is_empty()
    }
}

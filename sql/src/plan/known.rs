//! The statistics that a plan is made with. A plan that has looked at them is made again when they change.

use std::cell::Cell;
use std::sync::Arc;

use crate::catalog::{NodeStatistics, TableStatistics};
use crate::table::Table;

/// What a binder knows of the tables' rows.
#[derive(Debug, Default)]
pub(super) struct Known {
    statistics: NodeStatistics,
    /// The version of the statistics at the first look.
    version: Cell<Option<u64>>,
}

impl Known {
    /// The statistics of a node.
    pub(super) fn new(statistics: NodeStatistics) -> Known {
        Known { statistics, version: Cell::new(None) }
    }

    /// What is known of a table.
    pub(super) fn of(&self, table: &Table) -> Option<Arc<TableStatistics>> {
        if self.version.get().is_none() {
            // Before the statistics: what changes meanwhile counts as a change.
            self.version.set(Some(self.statistics.version()));
        }
        self.statistics.get(table.id)
    }

    /// The version of the statistics, if the plan depends on them.
    pub(super) fn version(&self) -> Option<u64> {
        self.version.get()
    }
}

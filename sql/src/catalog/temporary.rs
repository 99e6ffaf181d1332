//! Temporary relations: each session has a schema of its own for them, in the catalog like any other.
//!
//! The schema is created with the session's first temporary relation, in the same transaction. It names its node. The
//! node knows the schemas of its live sessions. What it finds of its own beside these belongs to sessions that have
//! ended, or to an earlier life of the node, and its sweep drops it. The schemas of a node whose lease record is gone
//! are dropped by any other node.

use std::sync::Arc;

use parking_lot::Mutex;

use super::lease::NodeCatalog;
use super::snapshot::Catalog;
use crate::object::SchemaId;
use crate::table::{Table, TableId};

/// The schemas of one session. Those of transactions that were rolled back are among them. Its drop ends them.
pub(crate) struct SessionSchemas {
    node: NodeCatalog,
    ids: Mutex<Vec<SchemaId>>,
    /// The tables that a commit empties or drops. Those of transactions that were rolled back are among them.
    pub(super) at_commit: Mutex<Vec<(TableId, AtCommit)>>,
}

/// What becomes of a temporary table when a transaction commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtCommit {
    /// ON COMMIT DELETE ROWS.
    Empty,
    /// ON COMMIT DROP.
    Drop,
}

impl SessionSchemas {
    /// Of a session of the node, which has none yet.
    pub(crate) fn new(node: NodeCatalog) -> Arc<SessionSchemas> {
        Arc::new(SessionSchemas { node, ids: Mutex::default(), at_commit: Mutex::default() })
    }

    /// The one that a catalog has.
    pub(crate) fn current(&self, catalog: &Catalog) -> Option<SchemaId> {
        self.ids.lock().iter().rev().copied().find(|id| catalog.schema_by_id(*id).is_some())
    }

    /// The tables of the newest catalog that a commit empties or drops. Those that are gone are forgotten.
    pub(crate) fn at_commit(&self, catalog: &Catalog) -> Vec<(Arc<Table>, AtCommit)> {
        let mut found = self.at_commit.lock();
        found.retain(|(id, _)| catalog.by_id(*id).is_some());
        found.iter().filter_map(|(id, what)| Some((catalog.by_id(*id)?.clone(), *what))).collect()
    }

    /// Whether there may be such tables.
    pub(crate) fn has_at_commit(&self) -> bool {
        !self.at_commit.lock().is_empty()
    }

    /// One is about to be created, because the catalog has none of the others.
    pub(super) fn begin(&self, id: SchemaId) {
        let (mut live, mut ids) = (self.node.state.temporary.lock(), self.ids.lock());
        ids.drain(..).for_each(|gone| {
            live.remove(&gone);
        });
        live.insert(id);
        ids.push(id);
    }
}

impl Drop for SessionSchemas {
    fn drop(&mut self) {
        let mut live = self.node.state.temporary.lock();
        live.retain(|id| !self.ids.get_mut().contains(id));
    }
}

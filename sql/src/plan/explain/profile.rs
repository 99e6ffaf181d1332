//! What a run of EXPLAIN ANALYZE counts of each node.
//!
//! A node is known by its place in memory: a plan does not move while it runs. So plans that are not analyzed carry
//! nothing for it.

use std::collections::HashMap;
use std::time::Duration;

use kv::client::{ReadReport, RegionSet};
use parking_lot::Mutex;

use crate::plan::access::TableAccess;
use crate::plan::node::RowCounts;
use crate::plan::rel::{Rel, SelectPlan, Source};

/// A node of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum NodeKey {
    /// A query.
    Query(usize),
    /// What a query or a change reads rows from.
    Source(usize),
    /// Any other node.
    Rel(usize),
}

impl NodeKey {
    /// That of a query.
    pub(crate) fn query(plan: &SelectPlan) -> NodeKey {
        NodeKey::Query(std::ptr::from_ref(plan).addr())
    }

    /// That of the source of a query.
    pub(crate) fn source(source: &Source) -> NodeKey {
        NodeKey::Source(std::ptr::from_ref(source).addr())
    }

    /// That of the table of UPDATE or DELETE.
    pub(crate) fn table(access: &TableAccess) -> NodeKey {
        NodeKey::Source(std::ptr::from_ref(access).addr())
    }

    /// That of a node.
    pub(crate) fn rel(rel: &Rel) -> NodeKey {
        NodeKey::Rel(std::ptr::from_ref(rel).addr())
    }
}

/// What was counted of a node.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeRun {
    /// How often it has begun.
    pub(crate) loops: u64,
    /// The rows of the stages of a query. Of any other node `returned` counts.
    pub(crate) rows: RowCounts,
    /// The time until the first rows of all loops.
    pub(crate) first: Duration,
    /// The time of all loops.
    pub(crate) total: Duration,
    /// How its reads were served.
    pub(crate) read: Option<ReadReport>,
    /// The regions that served them.
    pub(crate) regions: RegionSet,
}

/// What was counted of the nodes of a statement.
#[derive(Debug, Default)]
pub(crate) struct Profile(Mutex<HashMap<NodeKey, NodeRun>>);

impl Profile {
    /// What was counted of a node; `None` if it has not run.
    pub(crate) fn get(&self, key: NodeKey) -> Option<NodeRun> {
        self.0.lock().get(&key).cloned()
    }

    /// Adds a call of a node. `is_first`: the node begins with it.
    pub(crate) fn add_call(&self, key: NodeKey, is_first: bool, elapsed: Duration, rows: RowCounts) {
        let mut nodes = self.0.lock();
        let node = nodes.entry(key).or_default();
        if is_first {
            node.loops += 1;
            node.first += elapsed;
        }
        node.total += elapsed;
        node.rows.add(rows);
    }

    /// Adds the reads of a node.
    pub(crate) fn add_read(&self, key: NodeKey, read: ReadReport, regions: RegionSet) {
        let mut nodes = self.0.lock();
        let node = nodes.entry(key).or_default();
        let before = node.read.map_or((0, 0), |read| (read.requests, read.round_trips));
        node.read = Some(ReadReport {
            requests: read.requests.saturating_add(before.0),
            round_trips: read.round_trips.saturating_add(before.1),
            ..read
        });
        node.regions.add(regions);
    }
}

/// A run of a statement.
#[derive(Debug)]
pub(crate) struct StatementRun<'r> {
    pub(crate) profile: &'r Profile,
    /// The rows of RETURNING.
    pub(crate) returning: u64,
    /// The time of all of it.
    pub(crate) elapsed: Duration,
}

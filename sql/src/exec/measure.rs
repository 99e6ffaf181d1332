//! Measures nodes for EXPLAIN ANALYZE. Other statements pay one comparison for a batch of rows.

use kv::client::ReadReport;
use tokio::time::Instant;
use txn::Transaction;

use super::context::ExecContext;
use crate::clock;
use crate::plan::{NodeKey, Profile, RowCounts};

/// A call of a node under way.
pub(super) struct Measure<'a> {
    profile: &'a Profile,
    begin: Instant,
    /// What the statement had read before.
    before: Option<ReadReport>,
}

impl<'a> Measure<'a> {
    /// Begins one; `None` if the statement is not analyzed.
    pub(super) fn begin(ctx: &ExecContext<'a>) -> Option<Measure<'a>> {
        let profile = ctx.profile()?;
        let before = ctx.txn.reads().and_then(|reads| {
            reads.trace.take_regions();
            reads.trace.last()
        });
        Some(Measure { profile, begin: clock::instant(), before })
    }

    /// Counts a call. `rows`: those that it has added.
    pub(super) fn call(&self, node: NodeKey, is_first: bool, rows: RowCounts) {
        self.profile.add_call(node, is_first, clock::instant().duration_since(self.begin), rows);
    }

    /// Counts a call of a node that reads by itself.
    pub(super) fn end(&self, node: NodeKey, is_first: bool, rows: RowCounts, txn: &Transaction) {
        self.call(node, is_first, rows);
        let Some(reads) = txn.reads() else { return };
        let Some(report) = reads.trace.last() else { return };
        let (requests, round_trips) = self.before.map_or((0, 0), |before| (before.requests, before.round_trips));
        let read = ReadReport {
            requests: report.requests.saturating_sub(requests),
            round_trips: report.round_trips.saturating_sub(round_trips),
            ..report
        };
        if read.requests > 0 {
            self.profile.add_read(node, read, reads.trace.take_regions());
        }
    }
}

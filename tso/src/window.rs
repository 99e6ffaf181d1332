//! What the oracle's service needs from the node: the durable mark, the lease, the time of other nodes, the address of
//! the leader.
//!
//! The node implements [`Window`] with the system region. The mark is a record of that region. Raising it is a
//! proposal, which is dropped unless it is applied in the term in which it was made. The lease is the region's leader
//! lease.

use std::fmt;
use std::time::Duration;

use futures::future::BoxFuture;

use crate::leap::TimeReport;
use crate::timestamp::Timestamp;

/// A leadership of the system region, by its Raft term. No two leaderships share a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaderTerm(pub u64);

impl fmt::Display for LeaderTerm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Why the mark could not be read or raised.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WindowError {
    /// The leadership has ended, or seems to have. The service retries until the node calls `on_step_down`.
    #[error("no longer the leader")]
    NotLeader,
    /// The attempt failed, or its outcome is unknown. The service retries with a higher mark.
    #[error("the timestamp window could not be raised: {0}")]
    Failed(String),
}

/// The questions of a new leader to the other nodes of the cluster ([`crate::leap`]), one for each. A question is
/// repeated until its node answers; one that is dropped is no longer asked.
#[derive(Default)]
pub struct Inquiry<'a> {
    /// To the other voters of the system region.
    pub of_voters: Vec<BoxFuture<'a, TimeReport>>,
    /// To all other nodes.
    pub of_others: Vec<BoxFuture<'a, TimeReport>>,
}

/// The durable mark of the cluster and the lease of this node's leadership.
pub trait Window: Send + Sync + 'static {
    /// Reads the mark after an entry of `term` was applied, so that it includes every raise of an earlier leader.
    /// [`Timestamp::ZERO`] if no mark was ever written. One attempt, bounded in time.
    fn load(&self, term: LeaderTerm) -> BoxFuture<'_, Result<Timestamp, WindowError>>;

    /// Makes `mark` durable on a majority, provided that this node still leads in `term` when that happens. Never
    /// lowers the mark. One attempt, bounded in time.
    fn raise(&self, term: LeaderTerm, mark: Timestamp) -> BoxFuture<'_, Result<(), WindowError>>;

    /// Whether the lease of `term` holds at this moment, so that no other node can have taken over. Must not block.
    fn lease_holds(&self, term: LeaderTerm) -> bool;

    /// How long ago this node received its newest timestamp, from whichever oracle; [`Duration::MAX`] if it received
    /// none since it started. Must not block.
    fn quiet(&self) -> Duration;

    /// The questions to the other nodes of the cluster for their time. Must not block.
    fn inquire(&self, term: LeaderTerm) -> Result<Inquiry<'_>, WindowError>;

    /// The address of the leader of the system region, as far as this node knows: the hint for callers of a node that
    /// does not lead. Must not block.
    fn leader_address(&self) -> Option<String>;
}

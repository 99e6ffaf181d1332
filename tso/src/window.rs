//! What the oracle's service needs of the node: the durable mark, the lease, and who leads.
//!
//! The node implements this by the system region: the mark is one of its records, raised by a proposal that is
//! dropped unless it is applied in the term it was made in, and the lease is that region's leader lease.

use std::fmt;

use futures::future::BoxFuture;

use crate::timestamp::Timestamp;

/// A leadership of the system region, by its Raft term. No two leaderships share one.
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
    /// The leadership has ended, or seems to have. The caller goes on trying until the node tells it to stop.
    #[error("no longer the leader")]
    NotLeader,
    /// It failed, or it is not known whether it did. The caller tries again with a higher mark.
    #[error("the timestamp window could not be raised: {0}")]
    Failed(String),
}

/// The durable mark of the cluster and the lease of this node's leadership.
pub trait Window: Send + Sync + 'static {
    /// The mark, read after an entry of `term` was applied, so that it includes whatever an earlier leader raised;
    /// [`Timestamp::ZERO`] if there never was one. One attempt, bounded in time.
    fn load(&self, term: LeaderTerm) -> BoxFuture<'_, Result<Timestamp, WindowError>>;

    /// Makes `mark` durable on a majority, if this node still leads in `term` when that happens; a higher mark that is
    /// there already stays. One attempt, bounded in time.
    fn raise(&self, term: LeaderTerm, mark: Timestamp) -> BoxFuture<'_, Result<(), WindowError>>;

    /// Whether the lease of `term` holds at this moment: no other node can have taken over. Must not block.
    fn lease_holds(&self, term: LeaderTerm) -> bool;

    /// Where the leader of the system region answers, as far as this node knows: a hint for those who ask while it does
    /// not lead. Must not block.
    fn leader_address(&self) -> Option<String>;
}

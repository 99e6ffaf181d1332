//! Which replica serves a read: the replicas in order of preference, and the one for a hedge.
//!
//! Pure. [`order`] takes what the client knows of each replica. It never drops one: the caller tries them in this order
//! and ends at the leader, which can always serve.

use std::time::Duration;

use raftstore::StoreId;

use super::locality::Nearness;
use super::options::ReplicaPolicy;

/// How many requests in flight do not count as load: a store works on that many at a time.
const IDLE_LOAD: u32 = 4;

/// What a replica is, as the region cache knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// It probably leads.
    Leader,
    /// A voter that does not lead.
    Follower,
    /// A replica without a vote.
    Learner,
}

impl Role {
    pub(super) const ALL: [Role; 3] = [Role::Leader, Role::Follower, Role::Learner];

    pub(super) fn index(self) -> usize {
        match self {
            Role::Leader => 0,
            Role::Follower => 1,
            Role::Learner => 2,
        }
    }

    pub(super) fn name(self) -> &'static str {
        ["leader", "follower", "learner"][self.index()]
    }
}

/// A replica, and what is known of it and of its store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    /// The store.
    pub(super) store: StoreId,
    /// What it is.
    pub(super) role: Role,
    /// How near its store is.
    pub(super) near: Nearness,
    /// The time that its store takes to answer. Zero for this node's own, and as long as it is unknown: so each store
    /// is tried once.
    pub(super) rtt: Duration,
    /// Requests in flight at its store.
    pub(super) load: u32,
    /// Whether its store failed lately, or it refused lately or is far behind.
    pub(super) avoid: bool,
    /// Whether its store is the reason: it failed lately, is busy or slow.
    pub(super) store_fails: bool,
    /// Whether it can answer at once.
    pub(super) covers: Covers,
}

/// Whether a replica can answer at a snapshot without waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Covers {
    /// It leads, or it has named a safe_ts at or above the snapshot.
    Yes,
    /// Perhaps, by now. It refuses if not.
    Maybe,
    /// It refused such a read lately.
    No,
}

/// Why a hedge was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Suppressed {
    /// The budget is used up.
    Budget,
    /// No other replica can answer.
    NoReplica,
    /// The replicas that can answer are busier.
    Busier,
    /// Too few reads of the class were measured.
    Unmeasured,
}

impl Suppressed {
    pub(super) const ALL: [Suppressed; 4] =
        [Suppressed::Budget, Suppressed::NoReplica, Suppressed::Busier, Suppressed::Unmeasured];

    pub(super) fn index(self) -> usize {
        match self {
            Suppressed::Budget => 0,
            Suppressed::NoReplica => 1,
            Suppressed::Busier => 2,
            Suppressed::Unmeasured => 3,
        }
    }

    pub(super) fn name(self) -> &'static str {
        ["budget", "no_replica", "busier", "unmeasured"][self.index()]
    }
}

/// Sorts the replicas of a region by preference. Those to avoid come last, in the same order among themselves. `turn`
/// counts the reads; only [`ReplicaPolicy::Any`] uses it.
pub(super) fn order(policy: ReplicaPolicy, turn: usize, candidates: &mut [Candidate]) {
    let later = |candidate: &Candidate| match policy {
        ReplicaPolicy::Leader => candidate.role != Role::Leader,
        ReplicaPolicy::Follower => candidate.role == Role::Leader,
        ReplicaPolicy::Learner => candidate.role != Role::Learner,
        ReplicaPolicy::Closest | ReplicaPolicy::Any => false,
    };
    if policy != ReplicaPolicy::Any {
        // Whoever asks for the leader gets no other first, also while it fails.
        let avoid = |c: &Candidate| c.avoid && policy != ReplicaPolicy::Leader;
        candidates.sort_by_key(|c| (avoid(c), later(c), c.near, c.rtt, c.store));
        return;
    }
    candidates.sort_by_key(|c| (c.avoid, c.store));
    let healthy = candidates.iter().filter(|c| !c.avoid).count();
    let open = if healthy == 0 { candidates.len() } else { healthy };
    let first = pick_of_two(turn, candidates.get(..open).unwrap_or_default());
    candidates.sort_by_key(|c| (c.avoid, Some(c.store) != first, c.load, c.store));
}

/// The less loaded of two replicas. All replicas are first by turns; the second changes from round to round.
fn pick_of_two(turn: usize, open: &[Candidate]) -> Option<StoreId> {
    let count = open.len();
    let first = open.get(turn.checked_rem(count)?)?;
    let others = count - 1;
    let Some(distance) = (turn / count).checked_rem(others) else { return Some(first.store) };
    let second = open.get((turn % count + 1 + distance) % count)?;
    Some(if second.load < first.load { second.store } else { first.store })
}

/// The replica for a hedge of a read that `primary` has not answered: one that can answer at once and is not busier.
/// `any_covers`: whether every replica can answer, because the read asks for no proof.
pub(super) fn hedge_target(
    primary: StoreId,
    any_covers: bool,
    candidates: &[Candidate],
) -> Result<Candidate, Suppressed> {
    let load = candidates.iter().find(|c| c.store == primary).map_or(0, |c| c.load);
    let able = candidates.iter().filter(|c| c.store != primary && !c.avoid && (c.covers != Covers::No || any_covers));
    let mut able = able.peekable();
    if able.peek().is_none() {
        return Err(Suppressed::NoReplica);
    }
    let idle = able.filter(|c| c.load <= load.max(IDLE_LOAD));
    idle.min_by_key(|c| (c.covers, c.near, c.rtt, c.load, c.store)).copied().ok_or(Suppressed::Busier)
}

#[cfg(test)]
mod tests;

//! A replica: its state, its invariants, and queries on both.
//!
//! The other modules of this folder change the state: `leadership` by elections and the lease, `step` by inputs,
//! `propose` and `ready` on the way to the effects.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use raft::{RawNode, StateRole};
use rand::rngs::StdRng;

use super::effects::{Effects, PeerView, WriteNumber};
use super::lease::Lease;
use super::outgoing::Outgoing;
use super::proposal::{Proposal, Proposals};
use super::read::ReadQueue;
use crate::config::StoreConfig;
use crate::error::RegionError;
use crate::ports::RaftMessage;
use crate::records::{LogPosition, SnapshotIntent};
use crate::region::{Epoch, PeerMeta, PeerRole, Region, RegionId, Term};
use crate::storage::PeerStorage;
use crate::time::MonoTime;

/// A fault that ends this replica. The store stops serving.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PeerFault {
    /// The log cannot be read.
    #[error("log of region {0} failed: {1}")]
    Log(RegionId, String),
    /// The leader knows that this replica acknowledged entries that it does not have: its disk has lost them.
    #[error("replica of region {0} has lost entries that it acknowledged: {1}")]
    LostEntries(RegionId, String),
    /// raft-rs rejected the recovered state.
    #[error("replica of region {0} cannot start: {1}")]
    Start(RegionId, String),
}

/// Checked proposals that are not appended yet. Invariant: `bytes` is the sum of their data lengths.
#[derive(Debug, Default)]
pub(super) struct Unappended {
    pub(super) proposals: Vec<Proposal>,
    pub(super) bytes: usize,
}

/// A ready that raft-rs does not know to be persisted.
#[derive(Debug)]
pub(super) struct PendingReady {
    /// The write that holds it.
    pub(super) write: WriteNumber,
    /// Its number in raft-rs.
    pub(super) number: u64,
    /// Messages to send once it is persisted.
    pub(super) messages: Vec<RaftMessage>,
    /// Whether it also waits for a snapshot installation.
    pub(super) snapshot: bool,
}

/// A snapshot being installed.
#[derive(Debug)]
pub(super) struct Installing {
    pub(super) intent: SnapshotIntent,
    pub(super) stage: InstallStage,
}

/// The stages of an installation; see `ready`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InstallStage {
    /// Stage 1: the intent is being written.
    Intended,
    /// Stage 2: a worker is replacing the data.
    Replacing,
    /// Stage 3: the new log start is being written.
    Finishing(WriteNumber),
}

/// A position of the log that this replica has acknowledged to the leader of a term.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Acknowledged {
    pub(super) term: u64,
    pub(super) index: u64,
}

/// A replica.
///
/// Invariants:
/// 1. `applied <= commit`, and `applied` is never above the last entry that the log has acknowledged.
/// 2. `inflight` holds, in order, every ready that raft-rs does not know to be persisted.
/// 3. While the lease is valid, `leader_term` is the current term.
/// 4. While a worker replaces the region's data, everything emitted to apply is applied, and nothing is emitted.
/// 5. A message that depends on a durable write leaves only after `on_durable` of that write.
pub(crate) struct Peer {
    pub(super) node: RawNode<PeerStorage>,
    pub(super) region: Arc<Region>,
    pub(super) me: PeerMeta,
    pub(super) config: Arc<StoreConfig>,
    pub(super) rng: StdRng,
    /// The current randomized election timeout, in ticks.
    pub(super) randomized_timeout: usize,
    /// Role and term after the last call into raft-rs.
    pub(super) observed: (StateRole, u64),
    /// The term in which this replica leads.
    pub(super) leader_term: Option<u64>,
    /// The term announced to the listener.
    pub(super) announced: Option<Term>,
    /// The newest commit index for which this replica sent a notice (see `commit_notice`).
    pub(super) noticed_commit: u64,
    /// The newest acknowledgement, sent or waiting for its write.
    pub(super) acknowledged: Acknowledged,
    /// The newest term for which this replica was a candidate because the leader handed over to it.
    pub(super) handed_over: Option<Term>,
    /// What it inherits if it wins that term.
    pub(super) inherited: Option<Vec<u8>>,
    /// Whether a `MsgTimeoutNow` has left, after which this replica has not proven that it still leads.
    pub(super) hands_over: bool,
    pub(super) lease: Lease,
    /// Own-term entries not known to be committed: (last index, time of proposing), ascending.
    pub(super) proposed: VecDeque<(u64, MonoTime)>,
    /// The last entry that this replica appended as a leader and that may change the region's range; 0 for none. Those
    /// of earlier leaders are applied before this one serves.
    pub(super) last_change: u64,
    pub(super) unappended: Unappended,
    pub(super) proposals: Proposals,
    pub(super) reads: ReadQueue,
    pub(super) applied: LogPosition,
    /// Last entry emitted to apply.
    pub(super) emitted: u64,
    /// End of the newest promise to a leader (see `gate`).
    pub(super) promised_until: MonoTime,
    /// Time of the last message of each other replica.
    pub(super) last_heard: BTreeMap<u64, MonoTime>,
    pub(super) inflight: VecDeque<PendingReady>,
    pub(super) next_write: WriteNumber,
    pub(super) durable: WriteNumber,
    /// The write of the current term and vote.
    pub(super) vote_write: WriteNumber,
    /// The hard state last written to the log.
    pub(super) written_hard_state: raft::eraftpb::HardState,
    pub(super) installing: Option<Installing>,
    /// Snapshots for followers, while this replica leads.
    pub(super) outgoing: Outgoing,
    /// When this leader last offered its leadership to each replica.
    pub(super) offers: BTreeMap<u64, MonoTime>,
    /// Highest index emitted by the `ApplyAboveCommit` bug.
    #[cfg(feature = "planted-bugs")]
    pub(super) leaked: u64,
    pub(super) out: Effects,
    pub(super) fault: Option<PeerFault>,
}

impl Peer {
    pub(crate) fn region(&self) -> &Arc<Region> {
        &self.region
    }

    /// The range has changed.
    #[cfg(feature = "epoch-changes")]
    pub(crate) fn set_region(&mut self, region: Arc<Region>) {
        if region.epoch.version > self.region.epoch.version {
            self.region = region;
        }
    }

    /// The id of this peer's region.
    pub(crate) fn region_id(&self) -> RegionId {
        self.region.id
    }

    pub(crate) fn is_leader(&self) -> bool {
        self.node.raft.state == StateRole::Leader
    }

    pub(crate) fn term(&self) -> Term {
        Term::new(self.node.raft.term)
    }

    pub(crate) fn applied(&self) -> LogPosition {
        self.applied
    }

    pub(crate) fn pending_proposals(&self) -> usize {
        self.unappended.proposals.len() + self.proposals.len()
    }

    /// Bytes of entries taken in and not emitted to the log.
    pub(crate) fn unwritten_bytes(&self) -> usize {
        self.unappended.bytes + self.node.raft.raft_log.unstable().entries_size
    }

    /// The fault that ended this replica, if any.
    pub(crate) fn fault(&self) -> Option<PeerFault> {
        let log = || self.node.store().failure().map(|what| PeerFault::Log(self.region.id, what));
        self.fault.clone().or_else(log)
    }

    /// Whether a request or the announcement of leadership waits for apply.
    pub(crate) fn waits_for_apply(&self) -> bool {
        self.reads.waits_for_apply() || (self.is_leader() && self.announced != Some(self.term()))
    }

    /// The state to publish to readers on other threads.
    pub(crate) fn view(&self) -> PeerView {
        let leader = self.node.raft.leader_id;
        PeerView {
            term: self.term(),
            leader: self.region.peers.iter().copied().find(|p| p.id.get() == leader),
            is_leader: self.is_leader(),
            lease: self.lease.bound(),
            serving: self.installing.is_none(),
            changes_range: self.last_change > self.applied.index.get(),
        }
    }

    /// Whether another replica was heard within two election timeouts. raft-rs' own `recent_active` is reset by every
    /// quorum check, so it says nothing right after one.
    pub(super) fn is_live(&self, peer: u64, now: MonoTime) -> bool {
        self.last_heard.get(&peer).is_some_and(|at| now.since(*at) < self.config.election_timeout() * 2)
    }

    pub(super) fn is_installing(&self) -> bool {
        self.installing.is_some() || self.node.snap().is_some()
    }

    pub(super) fn is_only_voter(&self) -> bool {
        let mut voters = self.region.peers.iter().filter(|p| p.role == PeerRole::Voter);
        voters.next().is_some_and(|p| p.id == self.me.id) && voters.next().is_none()
    }

    pub(super) fn check_epoch(&self, epoch: Epoch) -> Result<(), RegionError> {
        if epoch == self.region.epoch {
            return Ok(());
        }
        Err(RegionError::EpochNotMatch { current: Box::new((*self.region).clone()) })
    }

    pub(super) fn not_leader(&self) -> RegionError {
        RegionError::NotLeader { region: self.region.id, leader: self.view().leader.filter(|p| p.id != self.me.id) }
    }

    pub(super) fn not_ready(&self, why: &str) -> RegionError {
        RegionError::NotReady { region: self.region.id, why: why.to_string() }
    }

    pub(super) fn busy(&self, what: &str) -> RegionError {
        RegionError::ServerBusy { store: self.me.store, what: what.to_string() }
    }

    pub(super) fn max_lease(&self) -> Duration {
        #[cfg(feature = "planted-bugs")]
        if self.config.planted(crate::config::PlantedBug::LeaseReadAfterNewerLeader) {
            return Duration::from_secs(1 << 20);
        }
        self.config.max_lease
    }
}

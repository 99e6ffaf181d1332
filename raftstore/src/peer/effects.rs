//! The effects of a peer, as plain data.

use std::sync::Arc;

use raft::eraftpb::Entry;

use crate::peer::proposal::CommittedReplies;
use crate::ports::RaftMessage;
use crate::records::{LogPosition, SnapshotIntent};
use crate::region::{LogIndex, PeerMeta, Region, Term};
use crate::storage::{Fetch, LogOp};
use crate::time::MonoTime;

/// Number of a peer's log write; ascends by one.
pub(crate) type WriteNumber = u64;

/// The effects of a peer, to be carried out in the order of the fields.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    /// Changes to the region's log group, in this order and in one batch.
    pub(crate) log: Vec<LogOp>,
    /// The number to pass to `Peer::on_durable` once the changes are durable.
    pub(crate) write: Option<WriteNumber>,
    /// Whether the batch must be synced.
    pub(crate) must_sync: bool,
    /// Messages to send now. A leader's appends precede its own fsync; replies that depend on an fsync appear here
    /// after it.
    pub(crate) messages: Vec<RaftMessage>,
    /// A snapshot was installed: descriptor and position with which apply continues.
    pub(crate) installed: Option<(Arc<Region>, LogPosition)>,
    /// Committed entries for apply.
    pub(crate) committed: Option<Committed>,
    /// A snapshot to install. Its intent is durable, and everything emitted to apply is applied.
    pub(crate) install: Option<SnapshotIntent>,
    /// An installed snapshot whose file can be removed.
    pub(crate) obsolete_snapshot: Option<SnapshotIntent>,
    /// Whether to build a snapshot for a follower.
    pub(crate) build_snapshot: bool,
    /// Old entries to read for followers.
    pub(crate) fetches: Vec<Fetch>,
    /// Leadership changes to announce.
    pub(crate) events: Vec<RoleEvent>,
}

/// The effects of a peer that depend on no write under way.
#[derive(Debug, Default)]
pub(crate) struct UrgentEffects {
    /// Messages to send now.
    pub(crate) messages: Vec<RaftMessage>,
    /// Leadership changes to announce.
    pub(crate) events: Vec<RoleEvent>,
}

/// Consecutive committed entries, and the replies for some of them.
#[derive(Debug, Default)]
pub(crate) struct Committed {
    pub(crate) entries: Vec<Entry>,
    pub(crate) replies: CommittedReplies,
    /// The commit index when they were emitted; no entry is above it.
    pub(crate) commit: LogIndex,
}

/// A change of leadership on this store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RoleEvent {
    /// Leads in the term and has applied an entry of it.
    Leader(Term),
    /// No longer leads.
    SteppedDown(Term),
    /// Leads in the term, and has inherited what the leader before had packed. Does not serve yet.
    Inherited(Term, Vec<u8>),
    /// Leads in the term, and still does so although it was about to hand over.
    Kept(Term),
}

/// The state of a peer that readers on other threads may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PeerView {
    pub(crate) term: Term,
    pub(crate) leader: Option<PeerMeta>,
    pub(crate) is_leader: bool,
    /// End of the leader's lease, exclusive.
    pub(crate) lease: Option<MonoTime>,
    /// Whether the region's data is complete; false while a snapshot is being installed.
    pub(crate) serving: bool,
    /// Whether this leader has an entry in its log that may change the region's range, and that is not applied.
    pub(crate) changes_range: bool,
}

impl Effects {
    pub(crate) fn add_committed(&mut self, mut more: Committed) {
        if more.entries.is_empty() {
            return;
        }
        let all = self.committed.get_or_insert_default();
        all.entries.append(&mut more.entries);
        all.replies.append(&mut more.replies);
        all.commit = more.commit;
    }
}

/// Builds a log position from raft-rs' numbers.
pub(crate) fn position(index: u64, term: u64) -> LogPosition {
    LogPosition { index: LogIndex::new(index), term: Term::new(term) }
}

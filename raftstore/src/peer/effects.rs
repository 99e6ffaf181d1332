//! What a peer wants done, as plain data.

use raft::eraftpb::Entry;

use crate::peer::proposal::CommittedReplies;
use crate::ports::RaftMessage;
use crate::records::{LogPosition, SnapshotIntent};
use crate::region::{LogIndex, PeerMeta, Term};
use crate::storage::LogOp;
use crate::time::MonoTime;

/// Number of a peer's write to the log; grows by one with each.
pub(crate) type WriteNumber = u64;

/// What a peer wants done, in the order of the fields.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    /// Changes to the region's log group, to be written in this order in one batch.
    pub(crate) log: Vec<LogOp>,
    /// Number to report to `Peer::on_durable` once the changes are durable.
    pub(crate) write: Option<WriteNumber>,
    /// Whether the changes must survive power loss before that.
    pub(crate) must_sync: bool,
    /// Send now: a leader's appends go out before its own fsync, and replies that waited for one that is done.
    pub(crate) messages: Vec<RaftMessage>,
    /// Committed entries for apply.
    pub(crate) committed: Option<Committed>,
    /// Ask the apply side to install this snapshot, whose intent is durable.
    pub(crate) install: Option<SnapshotIntent>,
    /// An installed snapshot whose file is not needed any more.
    pub(crate) obsolete_snapshot: Option<SnapshotIntent>,
    /// Build a snapshot for a follower.
    pub(crate) build_snapshot: bool,
    /// Leadership changes to announce.
    pub(crate) events: Vec<RoleEvent>,
}

/// Committed entries, consecutive, and the replies that go with some of them.
#[derive(Debug, Default)]
pub(crate) struct Committed {
    pub(crate) entries: Vec<Entry>,
    pub(crate) replies: CommittedReplies,
    /// The commit index when they were handed over: none of them is above it.
    pub(crate) commit: LogIndex,
}

/// A change of leadership on this store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RoleEvent {
    /// Leads, and has applied an entry of the term.
    Leader(Term),
    /// Does not lead any more.
    SteppedDown(Term),
}

/// What readers on other threads may know of a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PeerView {
    pub(crate) term: Term,
    pub(crate) leader: Option<PeerMeta>,
    pub(crate) is_leader: bool,
    /// End of the leader's lease, exclusive.
    pub(crate) lease: Option<MonoTime>,
    /// Whether the region's data is whole: not while a snapshot is installed.
    pub(crate) serving: bool,
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

/// A log position from raft-rs' numbers.
pub(crate) fn position(index: u64, term: u64) -> LogPosition {
    LogPosition { index: LogIndex::new(index), term: Term::new(term) }
}

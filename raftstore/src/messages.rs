//! The messages between the parts of a store: store loop, apply loop and background worker.
//!
//! Each part imports these types and none of the other parts. Requests travel in bounded [`Mailbox`]es and may be
//! refused. Completions must never be refused: [`CompletionInbox`] merges them, one slot per operation that can be in
//! flight, so its size is bounded by the number of operations in flight.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::mailbox::Mailbox;
use crate::peer::effects::Committed;
use crate::peer::proposal::Proposal;
use crate::peer::read::ReadReply;
use crate::ports::RaftMessage;
use crate::records::{LogPosition, SnapshotIntent};
use crate::region::{Epoch, LogIndex, PeerId, Region, RegionId, StoreId};
use crate::snapshot::SnapshotKey;

/// A request to the store loop.
#[derive(Debug)]
pub(crate) enum StoreMsg {
    Raft(Box<RaftMessage>),
    Propose(RegionId, Box<Proposal>),
    Read(RegionId, Epoch, ReadReply),
    Transfer(RegionId, StoreId),
}

/// Work for apply, in the order in which the store loop hands it over.
#[derive(Debug)]
pub(crate) enum ApplyTask {
    /// Committed entries of a region.
    Entries(RegionId, Committed),
    /// Replace a region's data by a snapshot whose intent is durable.
    Install(SnapshotIntent),
}

impl ApplyTask {
    /// What it adds to the backlog.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            ApplyTask::Entries(_, committed) => committed.entries.iter().map(|e| e.data.len() + 64).sum(),
            ApplyTask::Install(_) => 64,
        }
    }
}

/// What apply shares with the store loop.
pub(crate) struct ApplyQueue {
    pub(crate) mailbox: Mailbox<ApplyTask>,
    /// Bytes of entries handed over and not applied.
    pub(crate) backlog: AtomicUsize,
}

/// Jobs that may be queued: one per region and kind is the most there can be in flight, with room for clean-up.
pub(crate) const MAX_JOBS: usize = 1024;

/// One piece of background work.
#[derive(Debug)]
pub(crate) enum Job {
    /// Build a snapshot file of a region from the present state.
    BuildSnapshot(RegionId),
    /// Find out what a crash would not lose, flushing first if told so.
    ReadFlushed { regions: Vec<RegionId>, flush: bool },
    /// Free log files that hold little that is live: one step. If asked for, find out which regions stand in the way.
    Purge { laggards: bool },
    /// Read about so many bytes of the log, for damage.
    Scrub { bytes: u64 },
    /// Remove snapshot files that are not in `keep` and that the region (its applied index is given) is past.
    Sweep { keep: Vec<SnapshotKey>, applied: Vec<(RegionId, LogIndex)> },
    /// Remove the file of an installed snapshot.
    RemoveSnapshot(SnapshotKey),
}

/// The outcome of a job that somebody waits for.
#[derive(Debug)]
pub(crate) enum JobOutcome {
    /// Of `BuildSnapshot`; `None` if it failed.
    SnapshotBuilt(RegionId, Option<(SnapshotKey, Region)>),
    /// Of `Checkpoint`: the applied index of each region that is flushed, and whether everything was flushed.
    Flushed { flushed: Vec<(RegionId, LogIndex)>, all: bool },
    /// Of `Purge`.
    Purged(PurgeStep),
    /// What a step of purge handed to the log is written, or, where `written` is not set, is not and never will be.
    PurgeSettled { written: bool },
    /// `Purge` failed.
    PurgeFailed,
    /// Of `Scrub`: how many bytes were read.
    Scrubbed { bytes: u64 },
}

/// What a step of purge came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PurgeStep {
    /// The last entry of each region that is in the way, where it was looked for.
    pub(crate) pinning: Option<Vec<(RegionId, LogIndex)>>,
    /// Whether the log is to write something for it, and tells when it has.
    pub(crate) queued: bool,
    /// Whether it did anything.
    pub(crate) progressed: bool,
    /// Whether there is more to do.
    pub(crate) more: bool,
    /// Whether the log takes far more than it should.
    pub(crate) pressed: bool,
}

/// What was completed for the store loop since it looked last.
#[derive(Debug, Default)]
pub(crate) struct Completions {
    /// Highest number of a log batch that is durable.
    pub(crate) durable: u64,
    pub(crate) log_failure: Option<String>,
    pub(crate) applied: BTreeMap<RegionId, LogPosition>,
    pub(crate) installed: Vec<SnapshotKey>,
    pub(crate) jobs: Vec<JobOutcome>,
    pub(crate) snapshots_sent: BTreeMap<(RegionId, PeerId), bool>,
}

/// Completions for the store loop.
#[derive(Default)]
pub(crate) struct CompletionInbox {
    state: Mutex<Completions>,
    /// Whether the store loop wants to be woken when entries were applied; otherwise it learns of it at its next turn.
    wants_applied: AtomicBool,
}

impl CompletionInbox {
    pub(crate) fn update(&self, change: impl FnOnce(&mut Completions)) {
        change(&mut self.state.lock());
    }

    pub(crate) fn take(&self) -> Completions {
        let mut state = self.state.lock();
        let durable = state.durable;
        std::mem::replace(&mut *state, Completions { durable, ..Completions::default() })
    }

    /// Whether entries were applied since the last `take`.
    pub(crate) fn has_applied(&self) -> bool {
        !self.state.lock().applied.is_empty()
    }

    pub(crate) fn want_applied(&self, wanted: bool) {
        self.wants_applied.store(wanted, Ordering::SeqCst);
    }

    pub(crate) fn wants_applied(&self) -> bool {
        self.wants_applied.load(Ordering::SeqCst)
    }
}

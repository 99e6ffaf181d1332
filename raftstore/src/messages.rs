//! What the parts of a store share: the messages between store loop, apply loop and background worker, and [`Health`].
//!
//! Each part imports these types and none of the other parts. Requests travel in bounded [`Mailbox`]es and may be
//! refused. Completions must never be refused: [`CompletionInbox`] merges them, one slot per operation that can be in
//! flight, so its size is bounded by the number of operations in flight.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use engine::log::{LogError, PurgeOutcome};
use parking_lot::Mutex;
use raft::eraftpb::Entry;

use crate::delegate::Delegate;
use crate::mailbox::Mailbox;
use crate::peer::effects::Committed;
use crate::peer::proposal::Proposal;
use crate::peer::read::ReadReply;
use crate::ports::{Delivery, RaftMessage};
use crate::records::{LogPosition, SnapshotIntent};
use crate::region::{Epoch, LogIndex, PeerId, Region, RegionId, StoreId};
use crate::snapshot::SnapshotKey;
use crate::storage::Fetch;

/// A request or message to the store loop.
#[derive(Debug)]
pub(crate) enum StoreMsg {
    Raft(Box<RaftMessage>),
    Propose(RegionId, Box<Proposal>),
    Read(RegionId, Epoch, ReadReply),
    Transfer(RegionId, StoreId),
}

/// A task of the apply loop, in the order of submission.
#[derive(Debug)]
pub(crate) enum ApplyTask {
    /// Applies committed entries of a region.
    Entries(RegionId, Committed),
    /// A snapshot was installed: the region continues with this descriptor from this position.
    Installed(Arc<Region>, LogPosition),
}

impl ApplyTask {
    /// Bytes this task adds to the backlog.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            ApplyTask::Entries(_, committed) => committed.entries.iter().map(|e| e.data.len() + 64).sum(),
            ApplyTask::Installed(..) => 64,
        }
    }
}

/// The queue of the apply loop.
pub(crate) struct ApplyQueue {
    pub(crate) mailbox: Mailbox<ApplyTask>,
    /// Bytes of queued entries that are not applied yet.
    pub(crate) backlog: AtomicUsize,
}

/// Most snapshots that wait to be built, and most that wait to be installed.
pub(crate) const MAX_SNAPSHOT_TASKS: usize = 16;

/// A snapshot to install, and the read delegate of its region, which learns of the new position.
pub(crate) struct InstallTask {
    pub(crate) intent: SnapshotIntent,
    pub(crate) delegate: Arc<Delegate>,
}

/// The queues of the snapshot workers.
#[derive(Clone)]
pub(crate) struct SnapshotQueues {
    /// Regions whose snapshot file is to be built.
    pub(crate) builds: Arc<Mailbox<RegionId>>,
    pub(crate) installs: Arc<Mailbox<InstallTask>>,
}

impl Default for SnapshotQueues {
    fn default() -> SnapshotQueues {
        SnapshotQueues {
            builds: Arc::new(Mailbox::new(MAX_SNAPSHOT_TASKS)),
            installs: Arc::new(Mailbox::new(MAX_SNAPSHOT_TASKS)),
        }
    }
}

/// Most reads of old entries that wait for the log reader.
pub(crate) const MAX_FETCHES: usize = 256;

/// Old entries of a region, read for a follower.
#[derive(Debug)]
pub(crate) struct Fetched {
    pub(crate) region: RegionId,
    pub(crate) fetch: Fetch,
    pub(crate) read: Result<Vec<Entry>, LogError>,
}

/// Capacity of the job queue. At most one job per region and kind is in flight; the remaining slots are for cleanup
/// jobs.
pub(crate) const MAX_JOBS: usize = 1024;

/// A background job.
#[derive(Debug)]
pub(crate) enum Job {
    /// Reads the flushed applied index of each region, after a flush if `flush` is set.
    ReadFlushed { regions: Vec<RegionId>, flush: bool },
    /// Runs one purge step: frees log files with little live data. With `find_pinning`, also reports the regions that
    /// pin files.
    Purge { find_pinning: bool },
    /// Verifies about `bytes` bytes of the log.
    Scrub { bytes: u64 },
    /// Removes snapshot files of these regions that are not in `keep` and lie below the applied index. (A file at that
    /// index may be newer than this job.)
    Sweep { keep: Vec<SnapshotKey>, applied: Vec<(RegionId, LogIndex)> },
    /// Removes the file of an installed snapshot.
    RemoveSnapshot(SnapshotKey),
}

/// The outcome of a job.
#[derive(Debug)]
pub(crate) enum JobOutcome {
    /// Outcome of `ReadFlushed`: the flushed applied index of each region, whether a flush was done first, and the free
    /// bytes on the log's disk.
    Flushed { flushed: Vec<(RegionId, LogIndex)>, after_flush: bool, free_bytes: u64 },
    /// Outcome of `Purge`.
    Purged(PurgeStep),
    /// A purge step is over in the log; `written` is false if the log could not write it. Follows every `Purge`, and
    /// may precede its `Purged`.
    PurgeSettled { written: bool },
    /// `Purge` failed.
    PurgeFailed,
    /// Outcome of `Scrub`: bytes read.
    Scrubbed { bytes: u64 },
}

/// Outcome of a purge step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PurgeStep {
    /// The last entry of each region that pins old files, if requested.
    pub(crate) pinning: Option<Vec<(RegionId, LogIndex)>>,
    /// When the next step is due.
    pub(crate) outcome: PurgeOutcome,
}

/// Completions since the last intake of the store loop.
#[derive(Debug, Default)]
pub(crate) struct Completions {
    /// Highest number of a durable log batch.
    pub(crate) durable: u64,
    pub(crate) log_failure: Option<String>,
    pub(crate) applied: BTreeMap<RegionId, LogPosition>,
    /// Descriptors of regions whose range has changed.
    #[cfg(feature = "epoch-changes")]
    pub(crate) changed: Vec<std::sync::Arc<Region>>,
    /// Snapshot files built; `None` if a build failed. One per region at most.
    pub(crate) built: Vec<(RegionId, Option<(SnapshotKey, Region)>)>,
    pub(crate) installed: Vec<SnapshotKey>,
    /// Ends of reads of the log reader.
    pub(crate) fetched: Vec<Fetched>,
    pub(crate) jobs: Vec<JobOutcome>,
    /// What became of the snapshots sent, by receiver and index.
    pub(crate) snapshots_sent: BTreeMap<(RegionId, PeerId, LogIndex), Delivery>,
}

/// Collects completions for the store loop.
#[derive(Default)]
pub(crate) struct CompletionInbox {
    state: Mutex<Completions>,
    /// Whether apply wakes the store loop after a write. Otherwise the loop sees it at its next turn.
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

/// Whether a store still serves requests. Shared by its parts. Poisoning and stopping are final.
#[derive(Debug, Default)]
pub(crate) struct Health {
    poison: OnceLock<String>,
    stopping: AtomicBool,
}

impl Health {
    /// Poisons the store: nothing is acknowledged any more. The first reason is kept.
    pub(crate) fn poison(&self, why: &str) {
        if self.poison.set(why.to_string()).is_ok() {
            tracing::error!(reason = why, "store stops serving");
        }
    }

    pub(crate) fn poisoned(&self) -> Option<&str> {
        self.poison.get().map(String::as_str)
    }

    /// Refuses new requests from now on.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
    }

    /// Whether new requests are refused because the store stops.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    /// Whether new requests are refused: the store stops or is poisoned.
    pub(crate) fn refuses_requests(&self) -> bool {
        self.poisoned().is_some() || self.is_stopping()
    }
}

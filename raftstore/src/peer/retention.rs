//! Retention: which log entries and snapshot files a replica keeps for its followers.

use raft::{ProgressState, Storage};

use super::effects::position;
use super::replica::{Peer, PeerFault};
use super::truncate::{Retention, TruncationInput, truncation_bound};
use crate::records::LogPosition;
use crate::region::{LogIndex, Region};
use crate::snapshot::SnapshotKey;
use crate::time::MonoTime;

impl Peer {
    /// Truncates the log and returns its new start, which the caller must write. Entries above `flushed` are kept,
    /// because a restart replays them. Entries up to `pinning` keep the log engine from freeing old files. No effect of
    /// the peer depends on this write, and it depends on no effect.
    #[must_use]
    pub(crate) fn truncate_log(&mut self, flushed: LogIndex, pinning: LogIndex, now: MonoTime) -> Option<LogPosition> {
        if self.is_installing() {
            return None;
        }
        let storage = self.node.store();
        let per_entry = storage.estimate_bytes(1).max(1);
        let lag = self.config.log_lag_entries.min(self.config.log_lag_bytes / per_entry);
        let mut followers = Vec::new();
        if self.is_leader() {
            let others = self.node.raft.prs().iter().filter(|(id, _)| self.is_live(**id, now));
            // A follower that is being sent a snapshot continues from it. So does one that has received it and is
            // installing it: raft-rs considers the snapshot done once delivered, but the follower will ask for the
            // entries after it.
            let kept = storage.kept_snapshot().map_or(0, |key| key.index.get());
            let start = storage.start().index.get();
            let installing_from = |pr: &raft::Progress| if pr.matched < start { kept } else { 0 };
            let continues_from = |pr: &raft::Progress| pr.matched.max(pr.pending_snapshot).max(installing_from(pr));
            followers.extend(others.map(|(_, pr)| LogIndex::new(continues_from(pr))));
        }
        let flushed = flushed.min(self.applied.index);
        #[cfg(feature = "planted-bugs")]
        let flushed = match self.config.planted(crate::config::PlantedBug::TruncationAboveFlushed) {
            true => self.applied.index,
            false => flushed,
        };
        let log = TruncationInput { start: storage.start().index, last: storage.last(), flushed, pinning, followers };
        let keep = Retention { tail: self.config.log_tail_entries, lag };
        let bound = truncation_bound(&log, keep)?;
        match storage.term(bound.get()) {
            Ok(term) => {
                // Applied entries are acknowledged by the log, so no write in flight precedes them.
                assert!(bound <= self.applied.index, "only applied entries are truncated");
                let start = position(bound.get(), term);
                self.node.mut_store().truncate(start);
                Some(start)
            }
            Err(error) => {
                self.fault = Some(PeerFault::Log(self.region.id, error.to_string()));
                None
            }
        }
    }

    /// The snapshot requested by `Effects::build_snapshot` was built, or building failed (`None`).
    pub(crate) fn on_snapshot_built(&mut self, built: Option<(SnapshotKey, Region)>) {
        self.node.store().on_snapshot_built(built);
    }

    /// Snapshot files in use: the one kept for followers, and the one being installed. The first is released if no
    /// follower needs it. The second is needed after a crash until the new log start is durable, which is long after
    /// its index counts as applied.
    pub(crate) fn snapshots_in_use(&mut self, now: MonoTime) -> Vec<SnapshotKey> {
        let start = self.node.store().start().index.get();
        let needs = |(id, pr): (&u64, &raft::Progress)| {
            pr.state == ProgressState::Snapshot || (self.is_live(*id, now) && pr.matched < start)
        };
        if !self.is_leader() || !self.node.raft.prs().iter().any(needs) {
            self.node.store().drop_snapshot();
        }
        let installing = self.installing.as_ref().map(|installing| installing.intent.key);
        self.node.store().kept_snapshot().into_iter().chain(installing).collect()
    }
}

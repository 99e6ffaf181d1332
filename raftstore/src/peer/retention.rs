//! Retention: which log entries and snapshot files a replica keeps for its followers.

use raft::{ProgressState, SnapshotStatus, Storage};

use super::effects::position;
use super::outgoing::{HoldEnd, SILENCE};
use super::replica::{Peer, PeerFault};
use super::truncate::{Retention, TruncationInput, truncation_bound};
use crate::ports::Delivery;
use crate::records::LogPosition;
use crate::region::{LogIndex, Region};
use crate::snapshot::SnapshotKey;
use crate::time::MonoTime;

/// What the log's disk and files demand of a truncation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogPressure {
    /// Entries up to this index keep the log engine from freeing old files.
    pub(crate) pinning: LogIndex,
    /// The disk has too little free space to hold the log for snapshots.
    pub(crate) space_is_short: bool,
}

impl Peer {
    /// Truncates the log and returns its new start, which the caller must write. Entries above `flushed` are kept,
    /// because a restart replays them. No effect of the peer depends on this write, and it depends on no effect.
    #[must_use]
    pub(crate) fn truncate_log(
        &mut self,
        flushed: LogIndex,
        pressure: LogPressure,
        now: MonoTime,
    ) -> Option<LogPosition> {
        if self.is_installing() {
            return None;
        }
        let storage = self.node.store();
        let per_entry = storage.estimate_bytes(1).max(1);
        let lag = self.config.log_lag_entries.min(self.config.log_lag_bytes / per_entry);
        let mut followers = Vec::new();
        if self.is_leader() {
            let others = self.node.raft.prs().iter().filter(|(id, _)| self.is_live(**id, now));
            // A follower that is sent a snapshot, or installs it, continues from there.
            let continues_from = |(id, pr): (&u64, &raft::Progress)| pr.matched.max(self.outgoing.index(*id));
            followers.extend(others.map(continues_from).map(LogIndex::new));
        }
        let (start, last) = (storage.start().index, storage.last());
        self.release_holds(last, lag, now);
        let held = self.held().filter(|_| !pressure.space_is_short);
        let flushed = flushed.min(self.applied.index);
        #[cfg(feature = "planted-bugs")]
        let flushed = match self.config.planted(crate::config::PlantedBug::TruncationAboveFlushed) {
            true => self.applied.index,
            false => flushed,
        };
        let log = TruncationInput { start, last, flushed, pinning: pressure.pinning, followers, held };
        let keep = Retention { tail: self.config.log_tail_entries, lag };
        let bound = truncation_bound(&log, keep)?;
        if self.held().is_some_and(|held| held < bound) {
            self.give_up_snapshots(bound, now);
        }
        match self.node.store().term(bound.get()) {
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

    /// The index that snapshots hold: of the one being built, the one kept for followers, and those that followers
    /// install or continue from.
    fn held(&self) -> Option<LogIndex> {
        let storage = self.node.store();
        let kept = storage.kept_snapshot().map(|key| key.index.get());
        self.outgoing.held(kept, storage.start().index.get()).map(LogIndex::new)
    }

    /// Whether a snapshot holds an entry.
    pub(crate) fn is_held(&self, index: LogIndex) -> bool {
        self.held().is_some_and(|held| held < index)
    }

    /// Ends the holds of followers that have caught up, or were silent for too long.
    fn release_holds(&mut self, last: LogIndex, lag: u64, now: MonoTime) {
        let silence = self.config.election_timeout() * SILENCE;
        let (prs, heard) = (self.node.raft.prs(), &self.last_heard);
        let start = self.node.store().start().index.get();
        self.outgoing.release(|follower, index| {
            let matched = prs.get(follower).map_or(0, |pr| pr.matched);
            if matched >= index.max(start) && last.get() - matched <= lag {
                HoldEnd::CaughtUp
            } else if heard.get(&follower).is_none_or(|at| now.since(*at) > silence) {
                HoldEnd::Silent
            } else {
                HoldEnd::None
            }
        });
    }

    /// The space for the entries behind the snapshots ran out: the log is about to start at `start`. A build in
    /// progress goes on; its snapshot may be newer.
    fn give_up_snapshots(&mut self, start: LogIndex, now: MonoTime) {
        tracing::warn!(region = %self.region.id, "too little disk space to hold the log for snapshots");
        let kept = self.node.store().kept_snapshot().map(|key| key.index);
        if kept.is_some_and(|index| index < start) {
            self.node.store().drop_snapshot();
        }
        self.outgoing.give_up(kept.map(LogIndex::get), start.get(), now, self.config.election_timeout());
    }

    /// Requests the snapshot that raft-rs asks for, unless an earlier build failed a short while ago.
    pub(super) fn request_build(&mut self, now: MonoTime) {
        if self.is_leader() && self.outgoing.may_build(now) && self.node.store().take_snapshot_request() {
            self.outgoing.build_started(self.applied.index.get());
            self.out.build_snapshot = true;
        }
    }

    /// The snapshot requested by `Effects::build_snapshot` was built, or building failed (`None`). One from before the
    /// start of the log is of no use: its receiver would need another one.
    pub(crate) fn on_snapshot_built(&mut self, built: Option<(SnapshotKey, Region)>, now: MonoTime) {
        let start = self.node.store().start().index;
        let usable = built.filter(|(key, _)| key.index >= start);
        self.outgoing.build_ended(usable.is_some(), now, self.config.election_timeout());
        self.node.store().on_snapshot_built(usable);
    }

    /// The delivery of the snapshot of this index to `peer` has ended. The file stays until no follower needs it,
    /// unless it is the file that is at fault.
    pub(crate) fn on_snapshot_sent(&mut self, peer: u64, index: LogIndex, delivery: Delivery, now: MonoTime) {
        if !self.is_leader() {
            return;
        }
        let unit = self.config.election_timeout();
        let gives_up = self.outgoing.delivery_ended((peer, index.get()), delivery, now, unit);
        if gives_up && self.node.store().kept_snapshot().is_some_and(|key| key.index == index) {
            self.node.store().drop_snapshot();
        }
        self.defer_snapshots(now);
        // A late report of an earlier snapshot says nothing about the one on its way.
        let awaited = |pr: &raft::Progress| pr.state == ProgressState::Snapshot && pr.pending_snapshot == index.get();
        if self.node.raft.prs().get(peer).is_some_and(awaited) {
            let status = if delivery == Delivery::Delivered { SnapshotStatus::Finish } else { SnapshotStatus::Failure };
            self.node.report_snapshot(peer, status);
            self.after_raft(now);
        }
    }

    /// Tells the storage which followers get no snapshot for now.
    pub(super) fn defer_snapshots(&mut self, now: MonoTime) {
        self.node.store().set_deferred(self.outgoing.deferred(now).collect());
    }

    /// Whether a follower could lead as soon as it is elected. One that needs a snapshot, is sent one or installs one
    /// could not.
    pub(super) fn could_lead(&self, follower: u64) -> bool {
        let start = self.node.store().start().index.get();
        let is_current = |pr: &raft::Progress| {
            pr.state != ProgressState::Snapshot && pr.matched >= start && !self.outgoing.is_behind(follower, pr.matched)
        };
        !self.outgoing.is_installing(follower) && self.node.raft.prs().get(follower).is_some_and(is_current)
    }

    /// Snapshot files in use: the one kept for followers, and the one being installed. The first is released if no
    /// follower needs it. The second is needed after a crash until the new log start is durable, which is long after
    /// its index counts as applied.
    pub(crate) fn snapshots_in_use(&mut self, now: MonoTime) -> Vec<SnapshotKey> {
        let start = self.node.store().start().index.get();
        let needs = |(id, pr): (&u64, &raft::Progress)| {
            pr.state == ProgressState::Snapshot
                || self.outgoing.is_behind(*id, pr.matched)
                || (self.is_live(*id, now) && pr.matched < start)
        };
        if !self.is_leader() || !self.node.raft.prs().iter().any(needs) {
            self.node.store().drop_snapshot();
        }
        let installing = self.installing.as_ref().map(|installing| installing.intent.key);
        self.node.store().kept_snapshot().into_iter().chain(installing).collect()
    }
}

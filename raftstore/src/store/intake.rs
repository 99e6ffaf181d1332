//! Handles the completions and the messages of a turn, and refuses input under overload.
//!
//! Queued data is bounded in bytes, both entries that wait for the log (in the peers or in flight to the disk) and
//! entries that wait for apply. Above either bound proposals fail as busy and appends are dropped; the leader sends
//! appends again. While the log's disk is full, both are refused at once.

use raft::eraftpb::MessageType;

use super::state::StoreLoop;
use crate::error::RegionError;
use crate::messages::{Completions, Fetched, JobOutcome, StoreMsg};
use crate::peer::proposal::Proposal;
use crate::ports::RaftMessage;
use crate::region::RegionId;
use crate::time::MonoTime;

/// Why the store refuses more input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Overload {
    /// Too many committed entries wait for apply.
    Apply,
    /// Too many entries wait for the log.
    Log,
    /// The log's disk is full.
    DiskFull,
}

impl Overload {
    /// The metric label, and the reason in the error.
    fn label_and_reason(self) -> (&'static str, &'static str) {
        match self {
            Overload::Apply => ("apply", "apply backlog"),
            Overload::Log => ("log", "log backlog"),
            Overload::DiskFull => ("disk", "disk full"),
        }
    }
}

impl StoreLoop {
    /// Feeds the completions of a turn to the peers. Returns whether there were any.
    pub(super) fn take_completions(&mut self, completions: Completions, now: MonoTime) -> bool {
        // Before the position that they belong to: until then, grants are held back.
        #[cfg(feature = "epoch-changes")]
        let completions = self.take_changed(completions);
        let Completions { durable, log_failure, applied, built, installed, fetched, jobs, snapshots_sent, .. } =
            completions;
        let mut busy = !(applied.is_empty() && fetched.is_empty() && jobs.is_empty());
        busy |= !(built.is_empty() && installed.is_empty() && snapshots_sent.is_empty());
        if let Some(why) = log_failure {
            self.parts.health.poison(&format!("log: {why}"));
            return true;
        }
        while self.batches.front().is_some_and(|b| b.number <= durable) {
            let Some(batch) = self.batches.pop_front() else { break };
            busy = true;
            self.inflight_bytes -= batch.bytes;
            for (region, write) in batch.writes {
                self.with_peer(region, |peer| peer.on_durable(write, now));
            }
        }
        for (region, built) in built {
            self.building_snapshots.remove(&region);
            self.with_peer(region, |peer| peer.on_snapshot_built(built, now));
        }
        for key in installed {
            self.with_peer(key.region, |peer| peer.on_installed(key, now));
            self.publish(key.region);
            self.refresh_router();
        }
        for (region, position) in applied {
            self.with_peer(region, |peer| peer.on_applied(position, now));
        }
        for Fetched { region, fetch, read } in fetched {
            self.with_peer(region, |peer| peer.on_fetched(fetch, read, now));
        }
        for ((region, to, index), delivery) in snapshots_sent {
            self.with_peer(region, |peer| peer.on_snapshot_sent(to.get(), index, delivery, now));
        }
        for job in jobs {
            self.on_job_done(job, now);
        }
        busy
    }

    /// Gives the peers whose range has changed their new descriptors.
    #[cfg(feature = "epoch-changes")]
    fn take_changed(&mut self, mut completions: Completions) -> Completions {
        for region in std::mem::take(&mut completions.changed) {
            let id = region.id;
            self.with_peer(id, |peer| peer.set_region(region));
            self.publish(id);
            self.refresh_router();
        }
        completions
    }

    fn on_job_done(&mut self, job: JobOutcome, now: MonoTime) {
        match job {
            JobOutcome::Flushed { flushed, after_flush, free_bytes } => {
                let before = self.reading_flushed.take().unwrap_or(0);
                if after_flush {
                    self.unflushed_bytes = self.unflushed_bytes.saturating_sub(before);
                }
                self.truncate_logs(&flushed, free_bytes, now);
                self.log_space.request_pinning_check();
                self.purge();
            }
            JobOutcome::Purged(step) => {
                self.log_space.on_purged(step);
                self.continue_purge();
            }
            JobOutcome::Scrubbed { bytes } => self.scrub_pace.on_read(bytes),
            JobOutcome::PurgeFailed => self.log_space.on_failed(),
            JobOutcome::PurgeSettled { written } => {
                self.log_space.on_settled(written);
                self.continue_purge();
            }
        }
    }

    /// Handles the messages of a turn. Returns whether there were any.
    pub(super) fn take_messages(&mut self, now: MonoTime) -> bool {
        let mut messages = std::mem::take(&mut self.messages);
        let busy = !messages.is_empty();
        for message in messages.drain(..) {
            self.take_message(message, now);
        }
        self.messages = messages;
        busy
    }

    fn take_message(&mut self, message: StoreMsg, now: MonoTime) {
        match message {
            StoreMsg::Raft(message) => self.step(*message, now),
            StoreMsg::Propose(region, proposal) => self.propose(region, *proposal),
            StoreMsg::Read(region, epoch, reply) => match self.peers.get_mut(&region) {
                None => reply.send(Err(self.not_found(region))),
                Some(slot) => {
                    slot.peer.read_index(epoch, reply, now);
                    self.dirty.insert(region);
                }
            },
            StoreMsg::Transfer(region, to) => {
                self.with_peer(region, |peer| peer.transfer_leader(to, now));
            }
        }
    }

    /// Steps a Raft message, unless overload or a missing snapshot file refuses it.
    fn step(&mut self, message: RaftMessage, now: MonoTime) {
        let dropped = |why: &str| self.parts.metrics.dropped_messages.with_label_values(&[why]).inc();
        // `get_msg_type` panics on an unknown kind.
        let Some(kind) = MessageType::from_i32(message.message.msg_type) else { return dropped("unknown kind") };
        if kind == MessageType::MsgAppend
            && let Some(overload) = self.overload()
        {
            return dropped(overload.label_and_reason().1);
        }
        if kind == MessageType::MsgSnapshot && !self.has_snapshot_file(&message) {
            return dropped("no snapshot file");
        }
        let Some(slot) = self.peers.get_mut(&message.region) else { return dropped("no such region") };
        let region = message.region;
        if let Err(refusal) = slot.peer.step(message, now) {
            return dropped(&format!("{refusal:?}"));
        }
        self.dirty.insert(region);
        self.update_unwritten(region);
    }

    fn has_snapshot_file(&self, message: &RaftMessage) -> bool {
        message.snapshot_key().is_some_and(|key| self.parts.snapshots.contains(key))
    }

    fn propose(&mut self, region: RegionId, proposal: Proposal) {
        if let Some(overload) = self.overload() {
            let (label, what) = overload.label_and_reason();
            self.parts.metrics.busy.with_label_values(&[label]).inc();
            let busy = RegionError::ServerBusy { store: self.parts.id, what: what.to_string() };
            return proposal.reply.send(Err(busy.into()));
        }
        let not_found = self.not_found(region);
        match self.peers.get_mut(&region) {
            None => proposal.reply.send(Err(not_found.into())),
            Some(slot) => {
                slot.peer.propose(proposal);
                self.parts.metrics.proposals.inc();
                self.dirty.insert(region);
                self.update_unwritten(region);
            }
        }
    }

    fn overload(&self) -> Option<Overload> {
        let config = &self.parts.config;
        if self.log.is_full() {
            Some(Overload::DiskFull)
        } else if self.is_apply_backlogged() {
            Some(Overload::Apply)
        } else {
            (self.log_backlog() > config.log_backlog_bytes).then_some(Overload::Log)
        }
    }
}

//! Handles the messages of a turn and refuses input under overload.
//!
//! Queued data is bounded in bytes, both entries that wait for the log (in the peers or in flight to the disk) and
//! entries that wait for apply. Above either bound proposals fail as busy and appends are dropped; the leader sends
//! appends again. While the log's disk is full, both are refused at once.

use std::sync::atomic::Ordering;

use raft::eraftpb::MessageType;

use super::{StoreLoop, snapshot_key};
use crate::error::RegionError;
use crate::messages::StoreMsg;
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

    fn step(&mut self, message: RaftMessage, now: MonoTime) {
        let dropped = |why: &str| self.parts.metrics.dropped_messages.with_label_values(&[why]).inc();
        // `get_msg_type` panics on an unknown kind.
        let Some(kind) = MessageType::from_i32(message.message.msg_type) else { return dropped("unknown kind") };
        if kind == MessageType::MsgAppend
            && let Some(overload) = self.overload()
        {
            return dropped(overload.label_and_reason().1);
        }
        if kind == MessageType::MsgSnapshot && !self.has_file(&message) {
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

    fn has_file(&self, message: &RaftMessage) -> bool {
        snapshot_key(message).is_some_and(|key| self.parts.snapshots.contains(key))
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

    /// Updates `unwritten_bytes` for one peer.
    pub(super) fn update_unwritten(&mut self, region: RegionId) {
        let Some(slot) = self.peers.get_mut(&region) else { return };
        let bytes = slot.peer.unwritten_bytes();
        self.unwritten_bytes = self.unwritten_bytes - slot.unwritten_bytes + bytes;
        slot.unwritten_bytes = bytes;
    }

    /// Bytes of log that are not durable yet.
    pub(super) fn log_backlog(&self) -> usize {
        self.inflight_bytes + self.unwritten_bytes
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

    pub(super) fn is_apply_backlogged(&self) -> bool {
        self.parts.apply.backlog.load(Ordering::SeqCst) > self.parts.config.apply_backlog_bytes
    }
}

//! Handles raft-rs' readies: what to write, send and apply, and the stages of a snapshot installation.
//!
//! raft-rs runs with asynchronous readies: entries count as stable once handed over, and as persisted once their write
//! is durable. Writes are numbered. A ready waits in `inflight` for its write, and so do its messages, unless this
//! replica leads or they are `urgent`. A ready without anything to write waits for the newest write before it, because
//! its messages may depend on that one.
//!
//! The commit index alone is not written. It is written along with entries after it has moved far enough, and
//! recovery derives the rest (see `storage::recover`).
//!
//! A snapshot is installed in three stages. Each is durable before the next, so after a crash between any two the next
//! life continues with stage 2, from the file:
//!
//! 1. The intent is written to the log group. Log, term and vote stay unchanged.
//! 2. Once apply has nothing of the region left, a worker replaces the region's data, with descriptor and applied
//!    position in the last write, and flushes. The peer emits no entries meanwhile.
//! 3. The log restarts behind the snapshot, and the intent is removed.
//!
//! Only then is the snapshot acknowledged to the leader. Until then the answers to heartbeats say which snapshot is
//! being installed, in the field `index` that raft-rs leaves 0 there (see `outgoing`).

use std::sync::Arc;

use raft::Ready;
#[cfg(feature = "planted-bugs")]
use raft::Storage;
use raft::eraftpb::{Entry, Message, MessageType};

use super::coalesce::coalesce;
use super::effects::{Committed, Effects, WriteNumber, position};
use super::replica::{InstallStage, Installing, Peer, PeerFault, PendingReady};
use crate::ports::RaftMessage;
use crate::records::{self, LogPosition, SnapshotIntent};
use crate::region::{LogIndex, PeerId, Term};
use crate::snapshot::SnapshotKey;
use crate::storage::LogOp;
use crate::time::MonoTime;

/// Most readies handled in one call; the rest waits for the next turn.
const MAX_READIES: usize = 16;

/// The commit index is written with entries once it has moved this far.
const COMMIT_STEP: u64 = 256;

impl Peer {
    /// All effects since the last call. Called once a turn, after the previous effects were carried out.
    pub(crate) fn effects(&mut self, now: MonoTime) -> Effects {
        self.append_proposals(now);
        self.open_round(now, false);
        for _ in 0..MAX_READIES {
            self.broadcast_commit();
            if !self.node.has_ready() || self.fault().is_some() {
                break;
            }
            self.handle_ready(now);
        }
        self.request_build(now);
        self.out.fetches.append(&mut self.node.store().take_fetches());
        std::mem::take(&mut self.out)
    }

    /// Whether a further call of `effects` would return something.
    pub(crate) fn has_effects(&self) -> bool {
        self.node.has_ready()
            || self.out.write.is_some()
            || !self.out.messages.is_empty()
            || !self.out.events.is_empty()
            || self.out.installed.is_some()
            || self.out.install.is_some()
            || self.out.obsolete_snapshot.is_some()
    }

    /// All writes up to and including `write` are durable.
    pub(crate) fn on_durable(&mut self, write: WriteNumber, now: MonoTime) {
        assert!(write < self.next_write, "only a submitted write becomes durable");
        self.durable = self.durable.max(write);
        self.node.mut_store().on_durable(write);
        self.release_durable(now);
    }

    /// A worker has replaced and flushed the region's data.
    pub(crate) fn on_installed(&mut self, key: SnapshotKey, now: MonoTime) {
        let Some(installing) = self.installing.as_mut().filter(|i| i.intent.key == key) else { return };
        assert_eq!(installing.stage, InstallStage::Replacing, "the data is replaced once its intent is durable");
        installing.stage = InstallStage::Finishing(self.next_write);
        let start = LogPosition { index: key.index, term: key.term };
        let region = installing.intent.region.clone();
        assert!(self.emitted <= self.applied.index.get(), "nothing was emitted during the installation");
        (self.applied, self.emitted) = (start, start.index.get());
        self.region = Arc::new(region);
        self.out.installed = Some((Arc::clone(&self.region), start));
        let hard_state = self.node.store().hard_state().clone();
        self.written_hard_state = hard_state.clone();
        self.write(LogOp::Restart { start, hard_state });
        self.release_durable(now);
    }

    /// Adds a change to the next write, which must be synced.
    fn write(&mut self, op: LogOp) -> WriteNumber {
        let number = *self.out.write.get_or_insert(self.next_write);
        self.next_write = number + 1;
        self.out.log.push(op);
        self.out.must_sync = true;
        number
    }

    fn handle_ready(&mut self, now: MonoTime) {
        self.take_urgent_messages();
        let mut ready = self.node.ready();
        let number = ready.number();
        self.confirm_reads(ready.take_read_states());
        let snapshot = !ready.snapshot().is_empty();
        if snapshot {
            self.begin_install(&ready);
        }
        let entries = ready.take_entries();
        self.write_ready(&ready, entries, snapshot);
        let committed = ready.take_committed_entries();
        let mut waiting = ready.take_persisted_messages();
        let at_once = ready.take_messages();
        if self.is_vote_durable() {
            self.send(at_once);
        } else {
            // A sole voter leads as soon as it campaigns.
            waiting.extend(at_once);
        }
        self.node.advance_append_async(ready);
        let messages = waiting.drain(..).filter_map(|m| self.envelope(m)).collect();
        let write = self.out.write.unwrap_or(self.next_write - 1);
        self.inflight.push_back(PendingReady { write, number, messages, snapshot });
        self.emit_committed(committed);
        #[cfg(feature = "planted-bugs")]
        self.leak_uncommitted();
        self.release_durable(now);
    }

    fn write_ready(&mut self, ready: &Ready, entries: Vec<Entry>, snapshot: bool) {
        if let Some(state) = ready.hs() {
            self.node.mut_store().set_hard_state(state.clone());
        }
        let state = self.node.store().hard_state();
        let voted = (state.term, state.vote) != (self.written_hard_state.term, self.written_hard_state.vote);
        let far = !entries.is_empty() && state.commit >= self.written_hard_state.commit + COMMIT_STEP;
        if voted || far || snapshot {
            let state = state.clone();
            self.written_hard_state = state.clone();
            let write = self.write(LogOp::HardState(state));
            if voted {
                self.vote_write = write;
            }
        }
        if !entries.is_empty() {
            let number = *self.out.write.get_or_insert(self.next_write);
            self.node.mut_store().append(&entries, number);
            self.write(LogOp::Append(entries));
        }
    }

    /// Emits committed entries to apply. They are durable: raft-rs emits nothing above its persisted index.
    fn emit_committed(&mut self, entries: Vec<Entry>) {
        #[cfg(feature = "planted-bugs")]
        let entries: Vec<Entry> = entries.into_iter().filter(|e| e.index > self.leaked).collect();
        if entries.is_empty() {
            return;
        }
        let commit = self.node.raft.raft_log.committed;
        assert!(entries.last().is_some_and(|e| e.index <= commit), "no entry above the commit index is applied");
        self.emit(entries, commit);
    }

    fn emit(&mut self, entries: Vec<Entry>, commit: u64) {
        assert!(self.installing.is_none(), "no entry is applied while the data is replaced");
        self.emitted = entries.last().map_or(self.emitted, |last| last.index);
        let replies = self.proposals.take_committed(&entries);
        self.out.add_committed(Committed { entries, replies, commit: LogIndex::new(commit) });
    }

    /// Releases readies whose writes are durable, and advances a snapshot installation.
    pub(super) fn release_durable(&mut self, now: MonoTime) {
        #[cfg(feature = "planted-bugs")]
        if self.config.planted(crate::config::PlantedBug::AckBeforeFsync) {
            self.durable = self.next_write - 1;
        }
        while self.inflight.front().is_some_and(|r| r.write <= self.durable) {
            if self.inflight.front().is_some_and(|r| r.snapshot) && !self.advance_install() {
                break;
            }
            let Some(record) = self.inflight.pop_front() else { break };
            self.node.on_persist_ready(record.number);
            self.out.messages.extend(record.messages);
            if record.snapshot {
                self.finish_install();
            }
            self.after_raft(now);
        }
        // Readies behind a snapshot may send their messages, except acknowledgements of log positions.
        let durable = self.durable;
        for record in self.inflight.iter_mut().filter(|r| r.write <= durable) {
            let acknowledges = |m: &mut RaftMessage| m.message.get_msg_type() != MessageType::MsgAppendResponse;
            self.out.messages.extend(record.messages.extract_if(.., acknowledges));
        }
    }

    /// Stage 1. From here on raft-rs considers the log replaced.
    fn begin_install(&mut self, ready: &Ready) {
        let snapshot = ready.snapshot();
        let metadata = snapshot.get_metadata();
        let region = match records::decode_region(&snapshot.data) {
            Ok(region) => region,
            Err(error) => {
                // The gate has already decoded the descriptor, so this is a defect.
                self.fault = Some(PeerFault::Log(self.region.id, error.to_string()));
                return;
            }
        };
        let key = SnapshotKey {
            region: self.region.id,
            term: Term::new(metadata.term),
            index: LogIndex::new(metadata.index),
        };
        let intent = SnapshotIntent { key, region };
        self.proposals.abandon();
        self.proposed.clear();
        let conf_state = metadata.get_conf_state().clone();
        self.node.mut_store().restart(position(metadata.index, metadata.term), conf_state);
        self.write(LogOp::Intent(intent.clone()));
        self.installing = Some(Installing { intent, stage: InstallStage::Intended });
    }

    /// Continues an interrupted installation whose stage 1 is durable. For raft-rs the log simply begins behind the
    /// snapshot.
    pub(super) fn continue_install(&mut self, intent: SnapshotIntent, now: MonoTime) {
        assert!(self.inflight.is_empty(), "a replica continues its installation before anything else");
        self.installing = Some(Installing { intent, stage: InstallStage::Intended });
        self.inflight.push_back(PendingReady { write: 0, number: 0, messages: Vec::new(), snapshot: true });
        self.release_durable(now);
    }

    /// Whether the installation is complete. Called once stage 1 is durable; requests stage 2 once apply has nothing of
    /// this region left.
    fn advance_install(&mut self) -> bool {
        let Some(installing) = self.installing.as_mut() else { return true };
        match installing.stage {
            InstallStage::Intended => {
                if self.applied.index.get() < self.emitted {
                    return false;
                }
                installing.stage = InstallStage::Replacing;
                self.out.install = Some(installing.intent.clone());
                false
            }
            InstallStage::Replacing => false,
            InstallStage::Finishing(write) => write <= self.durable,
        }
    }

    fn finish_install(&mut self) {
        let Some(Installing { intent, .. }) = self.installing.take() else { return };
        self.node.advance_apply_to(intent.key.index.get());
        self.out.obsolete_snapshot = Some(intent);
    }

    pub(super) fn send(&mut self, messages: Vec<Message>) {
        for message in coalesce(messages) {
            let kind = message.get_msg_type();
            if kind == MessageType::MsgAppend && self.outgoing.is_installing(message.to) {
                // It would be refused. raft-rs tries again with the next heartbeat.
                continue;
            }
            if kind == MessageType::MsgSnapshot {
                self.outgoing.sent(message.to, message.get_snapshot().get_metadata().index);
            }
            if let Some(message) = self.envelope(message) {
                self.out.messages.push(message);
            }
        }
    }

    fn envelope(&self, mut message: Message) -> Option<RaftMessage> {
        // A replica that has left the region gets no messages.
        let to = self.region.peer(PeerId::new(message.to))?;
        if let Some(installing) = &self.installing
            && message.get_msg_type() == MessageType::MsgHeartbeatResponse
        {
            message.index = installing.intent.key.index.get();
        }
        Some(RaftMessage { region: self.region.id, epoch: self.region.epoch, from: self.me, to, message })
    }

    /// The `ApplyAboveCommit` bug: a leader emits its entries as soon as it has appended them.
    #[cfg(feature = "planted-bugs")]
    fn leak_uncommitted(&mut self) {
        if !self.config.planted(crate::config::PlantedBug::ApplyAboveCommit) || !self.is_leader() {
            return;
        }
        let log = &self.node.raft.raft_log;
        self.leaked = self.leaked.max(log.committed);
        let last = log.last_index();
        let context = raft::GetEntriesContext::empty(false);
        let Ok(entries) = self.node.store().entries(self.leaked + 1, last + 1, None, context) else { return };
        let Some(entries) = Some(entries).filter(|e| !e.is_empty()) else { return };
        self.leaked = last;
        self.emit(entries, last);
    }
}

//! Carries out the effects of the peers: one log batch, messages, apply tasks, jobs, announcements.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use engine::log::Durability;
use raft::eraftpb::MessageType;

use super::state::{InFlightBatch, NextBatch, StoreLoop};
use crate::mailbox::Refused;
use crate::messages::{ApplyTask, InstallTask, Job};
use crate::peer::effects::{Effects, RoleEvent};
use crate::ports::RaftMessage;
use crate::region::{RegionId, Term};
use crate::time::MonoTime;

/// A batch of this size in bytes is submitted even if many others are in flight, so that what waits for a slow log
/// does not become one huge batch, which a disk with little space would refuse.
const BATCH_BYTES: usize = 1 << 20;

/// What peers send and announce in one turn.
#[derive(Default)]
struct TurnOutput {
    messages: Vec<RaftMessage>,
    events: Vec<(RegionId, RoleEvent)>,
}

impl StoreLoop {
    /// Takes the effects of all dirty peers and carries them out. Returns whether it wrote or sent anything, or left
    /// effects for the next turn.
    pub(super) fn execute(&mut self, now: MonoTime) -> bool {
        self.push_apply();
        self.push_installs();
        self.submit_truncations();
        let mut output = TurnOutput::default();
        let mut busy = false;
        let mut room = true;
        for region in self.serving_order() {
            if room && !self.has_room() {
                (room, self.first_served) = (false, region);
            }
            let Some(slot) = self.peers.get_mut(&region) else { continue };
            if room {
                let effects = slot.peer.effects(now);
                busy |= slot.peer.has_effects() || effects.write.is_some();
                if !slot.peer.has_effects() {
                    self.dirty.remove(&region);
                }
                self.collect_effects(region, effects, &mut output, now);
                // At once, so that one region's apply task does not take the room of the next region.
                self.push_apply();
            } else {
                let urgent = slot.peer.urgent_effects(now);
                output.messages.extend(urgent.messages);
                output.events.extend(urgent.events.into_iter().map(|event| (region, event)));
            }
            self.publish(region);
        }
        let sends = !output.messages.is_empty();
        busy |= sends;
        self.submit(now);
        for message in output.messages {
            self.send(message, now);
        }
        if sends {
            self.parts.transport.flush();
        }
        for (region, event) in output.events {
            self.announce(region, event);
        }
        busy
    }

    /// The dirty regions. Those that met no room in an earlier turn come first, so that none starves.
    fn serving_order(&self) -> Vec<RegionId> {
        let first = self.first_served;
        self.dirty.range(first..).chain(self.dirty.range(..first)).copied().collect()
    }

    /// Whether the effects of a peer can be carried out. The bound is in bytes: a leader whose own log is slow goes on
    /// replicating to its followers.
    fn has_room(&self) -> bool {
        #[cfg(feature = "planted-bugs")]
        if self.parts.config.planted(crate::config::PlantedBug::LivenessWaitsForDisk)
            && self.batches.len() >= self.parts.config.inflight_log_batches
        {
            return false;
        }
        let undurable = self.inflight_bytes + self.next_batch.log.bytes();
        self.pending_apply.is_empty() && undurable < self.parts.config.log_backlog_bytes / 2
    }

    /// Adds the effects of one peer to the output of the turn, and queues its apply tasks and jobs.
    fn collect_effects(&mut self, region: RegionId, effects: Effects, into: &mut TurnOutput, now: MonoTime) {
        let Effects { log, write, must_sync, messages, installed, committed, install, .. } = effects;
        let Effects { obsolete_snapshot, build_snapshot, fetches, events, .. } = effects;
        for op in log {
            self.unflushed_bytes += op.bytes();
            op.add_to(region, &mut self.next_batch.log);
        }
        self.next_batch.writes.extend(write.map(|number| (region, number)));
        self.next_batch.must_sync |= must_sync;
        into.messages.extend(messages);
        into.events.extend(events.into_iter().map(|event| (region, event)));
        let installed = installed.map(|(region, position)| ApplyTask::Installed(region, position));
        for task in installed.into_iter().chain(committed.map(|c| ApplyTask::Entries(region, c))) {
            self.parts.apply.backlog.fetch_add(task.bytes(), Ordering::SeqCst);
            self.pending_apply.push_back(task);
        }
        if let (Some(intent), Some(slot)) = (install, self.peers.get(&region)) {
            self.pending_installs.push_back(InstallTask { intent, delegate: Arc::clone(&slot.delegate) });
            self.push_installs();
        }
        for fetch in fetches {
            if self.parts.fetches.push((region, fetch)).is_err() {
                self.with_peer(region, |peer| peer.on_fetch_refused(fetch));
            }
        }
        if let Some(intent) = obsolete_snapshot {
            self.queue_job(Job::RemoveSnapshot(intent.key));
        }
        self.update_unwritten(region);
        if build_snapshot && self.parts.snapshot_queues.builds.push(region).is_ok() {
            self.building_snapshots.insert(region);
        } else if build_snapshot {
            self.with_peer(region, |peer| peer.on_snapshot_built(None, now));
        }
    }

    /// Submits the log batch, unless too many others are in flight: then it goes on growing. What is in it is as little
    /// durable as what was submitted, so no message cares.
    fn submit(&mut self, now: MonoTime) {
        let bytes = self.next_batch.log.bytes();
        let may = self.batches.len() < self.parts.config.inflight_log_batches || bytes >= BATCH_BYTES;
        if self.next_batch.log.is_empty() || !may || self.parts.health.poisoned().is_some() {
            return;
        }
        let NextBatch { log, writes, must_sync } = std::mem::take(&mut self.next_batch);
        self.submitted += 1;
        let number = self.submitted;
        self.inflight_bytes += bytes;
        self.batches.push_back(InFlightBatch { number, writes, bytes, submitted: now });
        self.parts.metrics.log_batches.inc();
        let durability = if must_sync { Durability::Synced } else { Durability::Buffered };
        self.log.submit(number, log, durability);
    }

    fn send(&mut self, mut message: RaftMessage, now: MonoTime) {
        if self.parts.health.poisoned().is_some() {
            return;
        }
        let (region, to) = (message.region, message.to.id);
        if message.message.get_msg_type() == MessageType::MsgTimeoutNow {
            if self.peers.get(&region).is_none_or(|slot| !slot.peer.still_offers(&message.message)) {
                return;
            }
            let term = Term::new(message.message.term);
            let packed = self.parts.memory.read().as_ref().and_then(|memory| memory.pack(region, term));
            message.message.context = packed.unwrap_or_default();
        }
        if message.message.get_msg_type() == MessageType::MsgSnapshot {
            let Some(key) = message.snapshot_key() else { return };
            let (inbox, mailbox) = (Arc::clone(&self.parts.inbox), Arc::clone(&self.parts.mailbox));
            let done = Box::new(move |delivery| {
                inbox.update(|c| {
                    c.snapshots_sent.insert((region, to, key.index), delivery);
                });
                mailbox.wake();
            });
            self.parts.transport.send_snapshot(message, key, done);
        } else if self.parts.transport.send(message).is_err() {
            self.parts.metrics.unsent_messages.inc();
            self.with_peer(region, |peer| peer.on_unreachable(to.get(), now));
        }
    }

    /// Moves pending tasks to apply, as far as its mailbox has room.
    fn push_apply(&mut self) {
        while let Some(task) = self.pending_apply.pop_front() {
            if let Err(Refused(task)) = self.parts.apply.mailbox.push(task) {
                self.pending_apply.push_front(task);
                return;
            }
        }
    }

    /// Moves pending installations to the workers, as far as their queue has room.
    fn push_installs(&mut self) {
        while let Some(task) = self.pending_installs.pop_front() {
            if let Err(Refused(task)) = self.parts.snapshot_queues.installs.push(task) {
                self.pending_installs.push_front(task);
                return;
            }
        }
    }

    /// Tells apply whether to wake this loop. Returns whether apply has made progress since the last intake.
    pub(super) fn request_apply_wakeup(&mut self) -> bool {
        let wanted = !self.awaiting_apply.is_empty() || !self.pending_apply.is_empty() || self.is_apply_backlogged();
        self.parts.inbox.want_applied(wanted);
        wanted && self.parts.inbox.has_applied()
    }
}

//! The store loop: one thread steps all peers of a store.
//!
//! A turn has three stages:
//!
//! 1. *Intake* takes completions and messages from their queues. `intake` lists what it refuses.
//! 2. *Decide* reads the clock, then feeds the peers: completions first, then messages, then a tick if one is due.
//! 3. *Carry out* executes the effects of the peers. It publishes the read state, submits *one* log batch for all peers
//!    (`log_queue`), submits truncations apart from it (`upkeep`), sends messages, and queues committed entries for
//!    apply.
//!
//! Three orderings matter:
//!
//! - The clock is read *after* the intake. A promise to a leader counts from that reading, so the reading must not
//!   precede the moment the leader sent its message. So no message is evaluated with a time before its arrival. A
//!   late carry-out is safe: messages then leave later than their recorded send time.
//! - A suspect lease is published before the message that made it suspect is sent.
//! - A message that depends on a log write is released only by the completion of that write.
//!
//! A turn never blocks. A simulator can run the stages one by one and let time pass between them.

mod intake;
mod log_queue;
mod log_space;
mod scrub;
mod stop;
mod upkeep;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use engine::log::{Durability, LogBatch, LogEngine};
use raft::eraftpb::MessageType;

use crate::config::StoreConfig;
use crate::delegate::{Delegate, Router};
use crate::error::RegionError;
use crate::health::Health;
use crate::mailbox::{Mailbox, Refused};
use crate::messages::{ApplyQueue, ApplyTask, CompletionInbox, Completions, Job, JobOutcome, StoreMsg};
use crate::metrics::Metrics;
use crate::peer::Peer;
use crate::peer::effects::{Effects, RoleEvent, WriteNumber};
use crate::ports::{RaftMessage, RoleListener, Transport};
use crate::region::{LogIndex, RegionId, StoreId, Term};
use crate::snapshot::{SnapshotFiles, SnapshotKey};
use crate::time::{Clock, MonoTime};
use log_queue::{LogQueue, Truncations};
use log_space::LogSpace;
use scrub::ScrubPace;

/// A log batch that was submitted and is not durable yet.
#[derive(Debug)]
struct InFlightBatch {
    number: u64,
    writes: Vec<(RegionId, WriteNumber)>,
    bytes: usize,
}

struct PeerSlot {
    peer: Peer,
    delegate: Arc<Delegate>,
    /// This peer's share of `StoreLoop::unwritten_bytes`.
    unwritten_bytes: usize,
}

/// The next stage of the turn.
enum Stage {
    Intake,
    Decide(Box<Completions>),
    CarryOut { now: MonoTime, busy: bool },
}

/// The parts of a [`StoreLoop`].
pub(crate) struct LoopParts {
    pub(crate) id: StoreId,
    pub(crate) config: Arc<StoreConfig>,
    pub(crate) log: LogEngine,
    pub(crate) snapshots: SnapshotFiles,
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) listener: Arc<dyn RoleListener>,
    pub(crate) router: Arc<Router>,
    pub(crate) mailbox: Arc<Mailbox<StoreMsg>>,
    pub(crate) inbox: Arc<CompletionInbox>,
    pub(crate) apply: Arc<ApplyQueue>,
    pub(crate) background: Arc<Mailbox<Job>>,
    pub(crate) health: Arc<Health>,
    pub(crate) metrics: Metrics,
}

/// See the module documentation.
///
/// Invariants:
/// 1. `batches` ascend by number; a batch leaves when the log has acknowledged it. `inflight_bytes` is the sum of their
///    bytes.
/// 2. `unwritten_bytes` is the sum over all peers of entry bytes taken in and not yet submitted to the log.
/// 3. Effects are taken from a peer only when there is room to carry them out.
pub(crate) struct StoreLoop {
    parts: LoopParts,
    log: Arc<LogQueue>,
    peers: BTreeMap<RegionId, PeerSlot>,
    /// Peers that may have effects.
    dirty: BTreeSet<RegionId>,
    /// Peers with requests that wait for apply.
    awaiting_apply: BTreeSet<RegionId>,
    last_tick: MonoTime,
    stage: Stage,
    batches: VecDeque<InFlightBatch>,
    next_batch: u64,
    inflight_bytes: usize,
    unwritten_bytes: usize,
    /// Whether the log's disk was full at the last tick.
    was_full: bool,
    /// Whether the log's disk was full at the last truncation.
    was_full_at_truncation: bool,
    /// New log starts of regions, to be submitted.
    truncations: Truncations,
    /// Tasks that did not fit into apply's mailbox.
    pending_apply: VecDeque<ApplyTask>,
    /// Regions whose snapshot file is queued or being built.
    building_snapshots: BTreeSet<RegionId>,
    /// While a `ReadFlushed` job is queued or runs: `unflushed_bytes` when it was queued.
    reading_flushed: Option<u64>,
    ticks_to_log_gc: u32,
    log_space: LogSpace,
    scrub_pace: ScrubPace,
    /// Estimated bytes of log written since the last complete flush of the key-value store.
    unflushed_bytes: u64,
    /// Messages taken from the mailbox for this turn.
    messages: Vec<StoreMsg>,
    halted: bool,
    /// The clock reading of the previous turn.
    #[cfg(feature = "planted-bugs")]
    old_clock: MonoTime,
}

/// The effects of all peers in one turn.
#[derive(Default)]
struct TurnOutput {
    log: LogBatch,
    writes: Vec<(RegionId, WriteNumber)>,
    must_sync: bool,
    messages: Vec<RaftMessage>,
    events: Vec<(RegionId, RoleEvent)>,
}

impl StoreLoop {
    pub(crate) fn new(parts: LoopParts, now: MonoTime) -> StoreLoop {
        let (inbox, mailbox) = (Arc::clone(&parts.inbox), Arc::clone(&parts.mailbox));
        StoreLoop {
            log: LogQueue::new(parts.log.clone(), inbox, mailbox, parts.metrics.clone()),
            ticks_to_log_gc: parts.config.log_gc_ticks,
            parts,
            peers: BTreeMap::new(),
            dirty: BTreeSet::new(),
            awaiting_apply: BTreeSet::new(),
            last_tick: now,
            stage: Stage::Intake,
            batches: VecDeque::new(),
            next_batch: 1,
            inflight_bytes: 0,
            unwritten_bytes: 0,
            was_full: false,
            was_full_at_truncation: false,
            truncations: Truncations::new(),
            pending_apply: VecDeque::new(),
            building_snapshots: BTreeSet::new(),
            reading_flushed: None,
            log_space: LogSpace::default(),
            scrub_pace: ScrubPace::default(),
            unflushed_bytes: 0,
            messages: Vec::new(),
            halted: false,
            #[cfg(feature = "planted-bugs")]
            old_clock: now,
        }
    }

    /// Adds a recovered peer.
    pub(crate) fn add_peer(&mut self, peer: Peer, delegate: Arc<Delegate>) {
        let id = peer.region_id();
        self.peers.insert(id, PeerSlot { peer, delegate, unwritten_bytes: 0 });
        self.dirty.insert(id);
        self.publish(id);
        self.refresh_router();
    }

    /// Runs one turn. Returns whether it did anything; if so, another turn may have work.
    pub(crate) fn turn(&mut self, clock: &dyn Clock) -> bool {
        loop {
            if let Some(busy) = self.stage(clock) {
                return busy;
            }
        }
    }

    /// Runs one stage of a turn. After the last stage, returns whether the turn did anything.
    pub(crate) fn stage(&mut self, clock: &dyn Clock) -> Option<bool> {
        let stage = std::mem::replace(&mut self.stage, Stage::Intake);
        if let Some(why) = self.parts.health.poisoned().map(str::to_string) {
            return Some(self.halt(&why));
        }
        match stage {
            Stage::Intake => {
                let completions = Box::new(self.parts.inbox.take());
                self.parts.mailbox.take(self.parts.config.turn_messages, &mut self.messages);
                self.stage = Stage::Decide(completions);
                None
            }
            Stage::Decide(completions) => {
                let now = self.read_clock(clock);
                let mut busy = self.take_completions(*completions, now);
                busy |= self.take_messages(now);
                busy |= self.tick(now);
                self.stage = Stage::CarryOut { now, busy };
                None
            }
            Stage::CarryOut { now, busy } => {
                let busy = self.carry_out(now) || busy;
                Some(self.request_apply_wakeup() || busy)
            }
        }
    }

    /// The time by which this turn judges its input.
    fn read_clock(&mut self, clock: &dyn Clock) -> MonoTime {
        let now = clock.now();
        #[cfg(feature = "planted-bugs")]
        {
            let old = std::mem::replace(&mut self.old_clock, now);
            if self.parts.config.planted(crate::config::PlantedBug::ReadIndexUnderOldClock) {
                return old;
            }
        }
        now
    }

    fn take_completions(&mut self, completions: Completions, now: MonoTime) -> bool {
        let Completions { durable, log_failure, applied, installed, jobs, snapshots_sent } = completions;
        let mut busy = !(applied.is_empty() && installed.is_empty() && jobs.is_empty() && snapshots_sent.is_empty());
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
        for key in installed {
            self.with_peer(key.region, |peer| peer.on_installed(key, now));
            self.refresh_descriptor(key.region);
        }
        for (region, position) in applied {
            self.with_peer(region, |peer| peer.on_applied(position, now));
        }
        for ((region, to), delivered) in snapshots_sent {
            self.with_peer(region, |peer| peer.on_snapshot_sent(to.get(), delivered, now));
        }
        for job in jobs {
            self.job_done(job, now);
        }
        busy
    }

    fn with_peer(&mut self, region: RegionId, act: impl FnOnce(&mut Peer)) -> bool {
        let Some(slot) = self.peers.get_mut(&region) else { return false };
        act(&mut slot.peer);
        self.dirty.insert(region);
        true
    }

    fn job_done(&mut self, job: JobOutcome, now: MonoTime) {
        match job {
            JobOutcome::SnapshotBuilt(region, built) => {
                self.building_snapshots.remove(&region);
                self.with_peer(region, |peer| peer.on_snapshot_built(built));
            }
            JobOutcome::Flushed { flushed, after_flush } => {
                let before = self.reading_flushed.take().unwrap_or(0);
                if after_flush {
                    self.unflushed_bytes = self.unflushed_bytes.saturating_sub(before);
                }
                self.truncate_logs(&flushed, now);
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

    /// At most one tick a turn, and never a tick for missed time: a follower counts its promise not to vote in ticks of
    /// full length.
    fn tick(&mut self, now: MonoTime) -> bool {
        if now.since(self.last_tick) < self.parts.config.tick_interval {
            return false;
        }
        self.last_tick = now;
        for (region, slot) in &mut self.peers {
            slot.peer.tick(now);
            self.dirty.insert(*region);
        }
        let backlog = self.parts.apply.backlog.load(Ordering::SeqCst);
        self.parts.metrics.apply_backlog.set(i64::try_from(backlog).unwrap_or(i64::MAX));
        self.parts.metrics.log_backlog.set(i64::try_from(self.log_backlog()).unwrap_or(i64::MAX));
        self.retry_full_log(now);
        if self.log_space.is_due() {
            self.purge();
        }
        self.scrub(now);
        self.ticks_to_log_gc = self.ticks_to_log_gc.saturating_sub(1);
        if self.ticks_to_log_gc == 0 {
            self.ticks_to_log_gc = self.parts.config.log_gc_ticks;
            self.start_log_gc(now);
        }
        true
    }

    fn queue_job(&self, job: Job) -> bool {
        let queued = self.parts.background.push(job);
        if let Err(Refused(job)) = &queued {
            tracing::warn!(?job, "background queue is full");
        }
        queued.is_ok()
    }

    fn carry_out(&mut self, now: MonoTime) -> bool {
        self.push_apply();
        self.submit_truncations();
        let mut output = TurnOutput::default();
        let mut busy = false;
        let regions: Vec<RegionId> = self.dirty.iter().copied().collect();
        for region in regions {
            let room = self.has_room();
            let Some(slot) = self.peers.get_mut(&region) else { continue };
            if room {
                let effects = slot.peer.effects(now);
                busy |= slot.peer.has_effects();
                if !slot.peer.has_effects() {
                    self.dirty.remove(&region);
                }
                self.gather(region, effects, &mut output);
                // At once, so that one region's apply task does not take the room of the next region.
                self.push_apply();
            }
            self.publish(region);
        }
        busy |= !output.messages.is_empty() || !output.writes.is_empty();
        self.submit(std::mem::take(&mut output.log), output.writes, output.must_sync);
        for message in output.messages {
            self.send(message, now);
        }
        for (region, event) in output.events {
            self.announce(region, event);
        }
        busy
    }

    /// Whether the effects of a peer can be carried out. While the disk is full the number of batches is unbounded:
    /// they are small, because intake refuses almost everything.
    fn has_room(&self) -> bool {
        let config = &self.parts.config;
        let batches = self.log.is_full() || self.batches.len() < config.inflight_log_batches;
        self.pending_apply.is_empty() && batches && self.inflight_bytes < config.log_backlog_bytes / 2
    }

    fn gather(&mut self, region: RegionId, effects: Effects, into: &mut TurnOutput) {
        let Effects { log, write, must_sync, messages, committed, install, obsolete_snapshot, build_snapshot, events } =
            effects;
        for op in log {
            self.unflushed_bytes += op.bytes();
            op.add_to(region, &mut into.log);
        }
        into.writes.extend(write.map(|number| (region, number)));
        into.must_sync |= must_sync;
        into.messages.extend(messages);
        into.events.extend(events.into_iter().map(|event| (region, event)));
        let tasks = committed.map(|c| ApplyTask::Entries(region, c)).into_iter().chain(install.map(ApplyTask::Install));
        for task in tasks {
            self.parts.apply.backlog.fetch_add(task.bytes(), Ordering::SeqCst);
            self.pending_apply.push_back(task);
        }
        if let Some(intent) = obsolete_snapshot {
            self.queue_job(Job::RemoveSnapshot(intent.key));
        }
        self.update_unwritten(region);
        if build_snapshot && self.queue_job(Job::BuildSnapshot(region)) {
            self.building_snapshots.insert(region);
        } else if build_snapshot {
            self.with_peer(region, |peer| peer.on_snapshot_built(None));
        }
    }

    /// Publishes the peer's state to readers on other threads. Poisons the store if the peer has a fault.
    fn publish(&mut self, region: RegionId) {
        let Some(slot) = self.peers.get(&region) else { return };
        if let Some(fault) = slot.peer.fault() {
            self.parts.health.poison(&fault.to_string());
        }
        if slot.peer.waits_for_apply() {
            self.awaiting_apply.insert(region);
        } else {
            self.awaiting_apply.remove(&region);
        }
        slot.delegate.publish(slot.peer.region(), &slot.peer.view());
    }

    fn submit(&mut self, log: LogBatch, writes: Vec<(RegionId, WriteNumber)>, must_sync: bool) {
        if log.is_empty() || self.parts.health.poisoned().is_some() {
            return;
        }
        let (number, bytes) = (self.next_batch, log.bytes());
        self.next_batch += 1;
        self.inflight_bytes += bytes;
        self.batches.push_back(InFlightBatch { number, writes, bytes });
        self.parts.metrics.log_batches.inc();
        let durability = if must_sync { Durability::Synced } else { Durability::Buffered };
        self.log.submit(number, log, durability);
    }

    fn send(&mut self, message: RaftMessage, now: MonoTime) {
        if self.parts.health.poisoned().is_some() {
            return;
        }
        let (region, to) = (message.region, message.to.id);
        if message.message.get_msg_type() == MessageType::MsgSnapshot {
            let Some(key) = snapshot_key(&message) else { return };
            let (inbox, mailbox) = (Arc::clone(&self.parts.inbox), Arc::clone(&self.parts.mailbox));
            let done = Box::new(move |delivered| {
                inbox.update(|c| {
                    c.snapshots_sent.insert((region, to), delivered);
                });
                mailbox.wake();
            });
            self.parts.transport.send_snapshot(message, key, done);
        } else if self.parts.transport.send(message).is_err() {
            self.parts.metrics.unsent_messages.inc();
            self.with_peer(region, |peer| peer.on_unreachable(to.get(), now));
        }
    }

    fn announce(&self, region: RegionId, event: RoleEvent) {
        match event {
            RoleEvent::Leader(term) => {
                self.parts.metrics.leaders.inc();
                self.parts.listener.on_leader(region, term);
            }
            RoleEvent::SteppedDown(term) => {
                self.parts.metrics.leaders.dec();
                self.parts.listener.on_step_down(region, term);
            }
        }
    }

    fn push_apply(&mut self) {
        while let Some(task) = self.pending_apply.pop_front() {
            if let Err(Refused(task)) = self.parts.apply.mailbox.push(task) {
                self.pending_apply.push_front(task);
                return;
            }
        }
    }

    /// Tells apply whether to wake this loop. Returns whether apply has made progress since the last intake.
    fn request_apply_wakeup(&mut self) -> bool {
        let wanted = !self.awaiting_apply.is_empty() || !self.pending_apply.is_empty() || self.is_apply_backlogged();
        self.parts.inbox.want_applied(wanted);
        wanted && self.parts.inbox.has_applied()
    }

    fn refresh_descriptor(&mut self, region: RegionId) {
        self.publish(region);
        self.refresh_router();
    }

    fn refresh_router(&self) {
        self.parts.router.replace(self.peers.iter().map(|(id, slot)| (*id, Arc::clone(&slot.delegate))));
    }

    fn not_found(&self, region: RegionId) -> RegionError {
        RegionError::RegionNotFound { region, store: self.parts.id }
    }

    /// How long until the next tick is due.
    pub(crate) fn until_tick(&self, now: MonoTime) -> std::time::Duration {
        self.parts.config.tick_interval.saturating_sub(now.since(self.last_tick))
    }
}

/// The snapshot file that a `MsgSnapshot` refers to.
pub(crate) fn snapshot_key(message: &RaftMessage) -> Option<SnapshotKey> {
    let metadata = message.message.snapshot.as_ref()?.metadata.as_ref()?;
    Some(SnapshotKey { region: message.region, term: Term::new(metadata.term), index: LogIndex::new(metadata.index) })
}

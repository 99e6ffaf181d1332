//! The store loop: all peers of a store, stepped by one owner.
//!
//! A turn takes what was completed, then the mailbox, then a tick if one is due, and then carries out what the peers want: it publishes what
//! readers may know, submits *one* log batch for all peers, sends, and hands committed entries to apply. The order within a turn matters in two
//! places: a lease that became suspect is published before the message that made it so leaves, and messages that wait for a write are
//! released only by its completion. `turn` never waits.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use engine::log::{Durability, LogBatch, LogEngine};
use raft::eraftpb::MessageType;

use crate::apply::{ApplyShared, ApplyTask};
use crate::background::{Job, JobDone};
use crate::config::StoreConfig;
use crate::delegate::Delegate;
use crate::error::{ProposeError, RegionError};
use crate::health::Health;
use crate::mailbox::{Completions, Inbox, Mailbox, Refused};
use crate::metrics::Metrics;
use crate::peer::Peer;
use crate::peer::effects::{Effects, RoleEvent, WriteNumber};
use crate::peer::proposal::Proposal;
use crate::peer::read::ReadReply;
use crate::ports::{RaftMessage, RoleListener, Transport};
use crate::region::{Epoch, LogIndex, RegionId, StoreId, Term};
use crate::router::Router;
use crate::snapshot::{SnapshotFiles, SnapshotKey};
use crate::time::MonoTime;

/// A request to the store loop.
#[derive(Debug)]
pub(crate) enum StoreMsg {
    Raft(Box<RaftMessage>),
    Propose(RegionId, Box<Proposal>),
    Read(RegionId, Epoch, ReadReply),
    Transfer(RegionId, StoreId),
}

/// A log batch on its way.
#[derive(Debug)]
struct Batch {
    number: u64,
    writes: Vec<(RegionId, WriteNumber)>,
}

struct Slot {
    peer: Peer,
    delegate: Arc<Delegate>,
}

/// What the store loop is built from.
pub(crate) struct LoopParts {
    pub(crate) id: StoreId,
    pub(crate) config: Arc<StoreConfig>,
    pub(crate) log: LogEngine,
    pub(crate) snapshots: SnapshotFiles,
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) listener: Arc<dyn RoleListener>,
    pub(crate) router: Arc<Router>,
    pub(crate) mailbox: Arc<Mailbox<StoreMsg>>,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) apply: Arc<ApplyShared>,
    pub(crate) background: Arc<Mailbox<Job>>,
    pub(crate) health: Arc<Health>,
    pub(crate) metrics: Metrics,
}

/// See the module documentation.
///
/// Invariants:
/// 1. `batches` ascend by number; a batch leaves when the log has acknowledged it.
/// 2. Effects are taken from a peer only when there is room to carry them out.
pub(crate) struct StoreLoop {
    parts: LoopParts,
    peers: BTreeMap<RegionId, Slot>,
    /// Peers that may want something.
    dirty: BTreeSet<RegionId>,
    /// Peers of which somebody waits for apply.
    waiters: BTreeSet<RegionId>,
    last_tick: MonoTime,
    batches: VecDeque<Batch>,
    next_batch: u64,
    pending_apply: VecDeque<ApplyTask>,
    building: BTreeSet<RegionId>,
    checkpoint: Option<u64>,
    ticks_to_checkpoint: u32,
    /// Estimated bytes of log written since the last complete flush.
    unflushed: u64,
    messages: Vec<StoreMsg>,
    halted: bool,
}

/// What a turn gathers from its peers.
#[derive(Default)]
struct Gathered {
    log: LogBatch,
    writes: Vec<(RegionId, WriteNumber)>,
    must_sync: bool,
    messages: Vec<RaftMessage>,
    events: Vec<(RegionId, RoleEvent)>,
}

impl StoreLoop {
    pub(crate) fn new(parts: LoopParts, now: MonoTime) -> StoreLoop {
        StoreLoop {
            ticks_to_checkpoint: parts.config.log_gc_ticks,
            parts,
            peers: BTreeMap::new(),
            dirty: BTreeSet::new(),
            waiters: BTreeSet::new(),
            last_tick: now,
            batches: VecDeque::new(),
            next_batch: 1,
            pending_apply: VecDeque::new(),
            building: BTreeSet::new(),
            checkpoint: None,
            unflushed: 0,
            messages: Vec::new(),
            halted: false,
        }
    }

    /// Adds a peer as it was recovered.
    pub(crate) fn add_peer(&mut self, peer: Peer, delegate: Arc<Delegate>) {
        let id = peer.region_id();
        self.peers.insert(id, Slot { peer, delegate });
        self.dirty.insert(id);
        self.publish(id);
        self.refresh_router();
    }

    /// One turn; returns whether it did anything, so that another may be worth while.
    pub(crate) fn turn(&mut self, now: MonoTime) -> bool {
        if let Some(why) = self.parts.health.poisoned().map(str::to_string) {
            return self.halt(&why);
        }
        let mut busy = self.take_completions(now);
        busy |= self.take_messages(now);
        busy |= self.tick(now);
        busy |= self.carry_out(now);
        self.watch_apply() || busy
    }

    fn take_completions(&mut self, now: MonoTime) -> bool {
        let Completions { durable, log_failure, applied, installed, jobs, snapshots_sent } = self.parts.inbox.take();
        let mut busy = !(applied.is_empty() && installed.is_empty() && jobs.is_empty() && snapshots_sent.is_empty());
        if let Some(why) = log_failure {
            self.parts.health.poison(&format!("log: {why}"));
            return true;
        }
        while self.batches.front().is_some_and(|b| b.number <= durable) {
            let Some(batch) = self.batches.pop_front() else { break };
            busy = true;
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

    fn job_done(&mut self, job: JobDone, now: MonoTime) {
        match job {
            JobDone::SnapshotBuilt(region, built) => {
                self.building.remove(&region);
                self.with_peer(region, |peer| peer.on_snapshot_built(built));
            }
            JobDone::Checkpoint { flushed, all } => {
                let before = self.checkpoint.take().unwrap_or(0);
                if all {
                    self.unflushed = self.unflushed.saturating_sub(before);
                }
                for (region, index) in flushed {
                    self.with_peer(region, |peer| peer.truncate_log(index, now));
                }
            }
        }
    }

    fn take_messages(&mut self, now: MonoTime) -> bool {
        let mut messages = std::mem::take(&mut self.messages);
        let busy = self.parts.mailbox.take(self.parts.config.turn_messages, &mut messages);
        for message in messages.drain(..) {
            self.take_message(message, now);
        }
        self.messages = messages;
        busy
    }

    fn take_message(&mut self, message: StoreMsg, now: MonoTime) {
        match message {
            StoreMsg::Raft(message) => self.step(*message, now),
            StoreMsg::Propose(region, proposal) => self.propose(region, *proposal, now),
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
        let kind = message.message.get_msg_type();
        if kind == MessageType::MsgAppend && self.is_backlogged() {
            return dropped("backlog");
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
    }

    fn has_file(&self, message: &RaftMessage) -> bool {
        snapshot_key(message).is_some_and(|key| self.parts.snapshots.contains(key))
    }

    fn propose(&mut self, region: RegionId, proposal: Proposal, now: MonoTime) {
        if self.is_backlogged() {
            self.parts.metrics.busy.with_label_values(&["apply"]).inc();
            let busy = RegionError::ServerBusy { store: self.parts.id, what: "apply backlog".to_string() };
            return proposal.reply.send(Err(busy.into()));
        }
        let not_found = self.not_found(region);
        match self.peers.get_mut(&region) {
            None => proposal.reply.send(Err(not_found.into())),
            Some(slot) => {
                slot.peer.propose(proposal, now);
                self.parts.metrics.proposals.inc();
                self.dirty.insert(region);
            }
        }
    }

    fn is_backlogged(&self) -> bool {
        self.parts.apply.backlog.load(Ordering::SeqCst) > self.parts.config.apply_backlog_bytes
    }

    /// At most one tick a turn, and never one for the past: a follower's promise not to vote is counted in ticks that took their time.
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
        self.ticks_to_checkpoint = self.ticks_to_checkpoint.saturating_sub(1);
        if self.ticks_to_checkpoint == 0 {
            self.ticks_to_checkpoint = self.parts.config.log_gc_ticks;
            self.start_checkpoint(now);
        }
        true
    }

    fn start_checkpoint(&mut self, now: MonoTime) {
        if self.checkpoint.is_some() {
            return;
        }
        let flush = self.unflushed >= self.parts.config.flush_log_bytes;
        let regions = self.peers.keys().copied().collect();
        if self.parts.background.push(Job::Checkpoint { regions, flush }).is_ok() {
            self.checkpoint = Some(self.unflushed);
        }
        // A file that is being built is not among those kept yet, so it must not be swept.
        if self.building.is_empty() {
            let keep = self.peers.values_mut().flat_map(|slot| slot.peer.snapshots_in_use(now)).collect();
            let applied = self.peers.iter().map(|(id, slot)| (*id, slot.peer.applied().index)).collect();
            self.queue_job(Job::Sweep { keep, applied });
        }
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
        let mut gathered = Gathered::default();
        let mut busy = false;
        let regions: Vec<RegionId> = self.dirty.iter().copied().collect();
        for region in regions {
            let room = self.pending_apply.is_empty() && self.batches.len() < self.parts.config.inflight_log_batches;
            let Some(slot) = self.peers.get_mut(&region) else { continue };
            if room {
                let effects = slot.peer.effects(now);
                busy |= slot.peer.has_effects();
                if !slot.peer.has_effects() {
                    self.dirty.remove(&region);
                }
                self.gather(region, effects, &mut gathered);
            }
            self.publish(region);
        }
        busy |= !gathered.messages.is_empty() || !gathered.writes.is_empty();
        self.submit(std::mem::take(&mut gathered.log), gathered.writes, gathered.must_sync);
        for message in gathered.messages {
            self.send(message, now);
        }
        for (region, event) in gathered.events {
            self.tell(region, event);
        }
        self.push_apply();
        busy
    }

    fn gather(&mut self, region: RegionId, effects: Effects, into: &mut Gathered) {
        let Effects { log, write, must_sync, messages, committed, install, installed, build_snapshot, events } =
            effects;
        for op in log {
            self.unflushed += op.bytes();
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
        if let Some(intent) = installed {
            self.queue_job(Job::RemoveSnapshot(intent.key));
        }
        if build_snapshot && self.queue_job(Job::BuildSnapshot(region)) {
            self.building.insert(region);
        } else if build_snapshot {
            self.with_peer(region, |peer| peer.on_snapshot_built(None));
        }
    }

    /// Tells readers on other threads what the peer became, and stops the store if it cannot go on.
    fn publish(&mut self, region: RegionId) {
        let Some(slot) = self.peers.get(&region) else { return };
        if let Some(fault) = slot.peer.fault() {
            self.parts.health.poison(&fault.to_string());
        }
        if slot.peer.waits_for_apply() {
            self.waiters.insert(region);
        } else {
            self.waiters.remove(&region);
        }
        slot.delegate.publish(slot.peer.region(), &slot.peer.view());
    }

    fn submit(&mut self, log: LogBatch, writes: Vec<(RegionId, WriteNumber)>, must_sync: bool) {
        if log.is_empty() || self.parts.health.poisoned().is_some() {
            return;
        }
        let number = self.next_batch;
        self.next_batch += 1;
        self.batches.push_back(Batch { number, writes });
        let durability = if must_sync { Durability::Synced } else { Durability::Buffered };
        let (inbox, mailbox) = (Arc::clone(&self.parts.inbox), Arc::clone(&self.parts.mailbox));
        let done = Box::new(move |result: engine::log::Result<engine::log::Lsn>| {
            inbox.update(|c| match result {
                // A failed batch leaves a hole: what comes after it must not count.
                Ok(_) if c.log_failure.is_none() => c.durable = c.durable.max(number),
                Ok(_) => {}
                Err(error) => {
                    c.log_failure.get_or_insert(error.to_string());
                }
            });
            mailbox.wake();
        });
        self.parts.metrics.log_batches.inc();
        // The number of batches in flight is bounded below the log's own queue, so `Busy` is as fatal as the rest: the batch is lost.
        if let Err(error) = self.parts.log.submit(log, durability, done) {
            self.parts.health.poison(&format!("log: {error}"));
        }
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

    fn tell(&self, region: RegionId, event: RoleEvent) {
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

    /// Says whether apply shall wake this loop; returns whether it has applied something in the meantime.
    fn watch_apply(&mut self) -> bool {
        let wanted = !self.waiters.is_empty() || !self.pending_apply.is_empty() || self.is_backlogged();
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

    /// The store is poisoned: nothing is acknowledged, everything that waits or still comes in is refused.
    fn halt(&mut self, why: &str) -> bool {
        let first = !self.halted;
        self.halted = true;
        if first {
            self.close_peers(|peer| peer.poison(why));
            for task in std::mem::take(&mut self.pending_apply) {
                if let ApplyTask::Entries(_, committed) = task {
                    for (_, reply) in committed.replies {
                        reply.send(Err(ProposeError::Poisoned(why.to_string())));
                    }
                }
            }
        }
        let mut messages = std::mem::take(&mut self.messages);
        let busy = self.parts.mailbox.take(usize::MAX, &mut messages);
        for message in messages.drain(..) {
            match message {
                StoreMsg::Propose(_, proposal) => proposal.reply.send(Err(ProposeError::Poisoned(why.to_string()))),
                StoreMsg::Read(region, _, reply) => {
                    reply.send(Err(RegionError::NotReady { region, why: format!("store is poisoned: {why}") }));
                }
                StoreMsg::Raft(_) | StoreMsg::Transfer(..) => {}
            }
        }
        self.messages = messages;
        busy || first
    }

    /// Closes the delegates, ends what waits at the peers, and tells the listener.
    fn close_peers(&mut self, end: impl Fn(&mut Peer)) {
        let mut told = Vec::new();
        for (region, slot) in &mut self.peers {
            slot.delegate.close();
            end(&mut slot.peer);
            told.extend(slot.peer.end_leadership().map(|term| (*region, term)));
        }
        for (region, term) in told {
            self.tell(region, RoleEvent::SteppedDown(term));
        }
    }

    /// How long until the next tick is due.
    pub(crate) fn until_tick(&self, now: MonoTime) -> std::time::Duration {
        self.parts.config.tick_interval.saturating_sub(now.since(self.last_tick))
    }

    /// Starts a graceful stop: offers leadership of every region to its best follower.
    pub(crate) fn begin_stop(&mut self, now: MonoTime) {
        let regions: Vec<RegionId> = self.peers.keys().copied().collect();
        for region in regions {
            self.with_peer(region, |peer| {
                if let Some(to) = peer.best_successor(now).filter(|_| peer.is_leader()) {
                    peer.transfer_leader(to, now);
                }
            });
        }
    }

    /// Whether nothing is left that a graceful stop waits for.
    pub(crate) fn is_drained(&self, now: MonoTime) -> bool {
        let waits = |slot: &Slot| {
            slot.peer.pending_proposals() > 0 || (slot.peer.is_leader() && slot.peer.best_successor(now).is_some())
        };
        self.pending_apply.is_empty() && self.batches.is_empty() && !self.peers.values().any(waits)
    }

    /// Ends a graceful stop: what still waits is told that its fate is unknown.
    pub(crate) fn finish_stop(&mut self) {
        self.halted = true;
        self.close_peers(Peer::stop);
        let region_of = |m: &StoreMsg| match m {
            StoreMsg::Propose(region, _) | StoreMsg::Read(region, ..) | StoreMsg::Transfer(region, _) => *region,
            StoreMsg::Raft(message) => message.region,
        };
        for message in self.parts.mailbox.close() {
            let region = region_of(&message);
            let refused = RegionError::NotReady { region, why: "the store stops".to_string() };
            match message {
                StoreMsg::Propose(_, proposal) => proposal.reply.send(Err(refused.into())),
                StoreMsg::Read(_, _, reply) => reply.send(Err(refused)),
                StoreMsg::Raft(_) | StoreMsg::Transfer(..) => {}
            }
        }
    }
}

/// The file that a `MsgSnapshot` names.
pub(crate) fn snapshot_key(message: &RaftMessage) -> Option<SnapshotKey> {
    let metadata = message.message.snapshot.as_ref()?.metadata.as_ref()?;
    Some(SnapshotKey { region: message.region, term: Term::new(metadata.term), index: LogIndex::new(metadata.index) })
}

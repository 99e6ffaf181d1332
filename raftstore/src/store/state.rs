//! The store loop with its parts and peers, and the operations that several stages of a turn share.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use engine::log::{LogBatch, LogEngine};

use super::log_queue::{LogQueue, Truncations};
use super::log_space::LogSpace;
use super::scrub::ScrubPace;
use crate::config::StoreConfig;
use crate::delegate::{Delegate, Router};
use crate::error::RegionError;
use crate::mailbox::{Mailbox, Refused};
use crate::messages::{
    ApplyQueue, ApplyTask, CompletionInbox, Completions, Health, InstallTask, Job, SnapshotQueues, StoreMsg,
};
use crate::metrics::{BY_ELECTION, BY_HANDOVER, Metrics};
use crate::peer::Peer;
use crate::peer::effects::{RoleEvent, WriteNumber};
use crate::ports::{MemorySlot, RoleListener, Transport};
use crate::region::{RegionId, StoreId};
use crate::snapshot::SnapshotFiles;
use crate::storage::Fetch;
use crate::time::MonoTime;

/// A log batch that was submitted and is not durable yet.
#[derive(Debug)]
pub(super) struct InFlightBatch {
    pub(super) number: u64,
    pub(super) writes: Vec<(RegionId, WriteNumber)>,
    pub(super) bytes: usize,
    pub(super) submitted: MonoTime,
}

/// The batch being collected for the log, with the writes of the peers in it.
#[derive(Default)]
pub(super) struct NextBatch {
    pub(super) log: LogBatch,
    pub(super) writes: Vec<(RegionId, WriteNumber)>,
    pub(super) must_sync: bool,
}

pub(super) struct PeerSlot {
    pub(super) peer: Peer,
    pub(super) delegate: Arc<Delegate>,
    /// This peer's share of `StoreLoop::unwritten_bytes`.
    pub(super) unwritten_bytes: usize,
}

/// The next stage of the turn.
pub(super) enum Stage {
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
    pub(crate) memory: MemorySlot,
    pub(crate) router: Arc<Router>,
    pub(crate) mailbox: Arc<Mailbox<StoreMsg>>,
    pub(crate) inbox: Arc<CompletionInbox>,
    pub(crate) apply: Arc<ApplyQueue>,
    pub(crate) background: Arc<Mailbox<Job>>,
    pub(crate) snapshot_queues: SnapshotQueues,
    pub(crate) fetches: Arc<Mailbox<(RegionId, Fetch)>>,
    pub(crate) health: Arc<Health>,
    pub(crate) metrics: Metrics,
}

/// The store loop; `store` describes its turns.
///
/// Invariants:
/// 1. `batches` ascend by number; a batch leaves when the log has acknowledged it. `inflight_bytes` is the sum of their
///    bytes.
/// 2. `unwritten_bytes` is the sum over all peers of entry bytes taken in and not yet in a batch.
/// 3. Effects are taken from a peer only when there is room to carry them out, except urgent ones.
/// 4. Every write in `next_batch` follows those in `batches`.
pub(crate) struct StoreLoop {
    pub(super) parts: LoopParts,
    pub(super) log: Arc<LogQueue>,
    pub(super) peers: BTreeMap<RegionId, PeerSlot>,
    /// Peers that may have effects.
    pub(super) dirty: BTreeSet<RegionId>,
    /// Effects are taken from this region on in the next turn: the first one that met no room in the last turn.
    pub(super) first_served: RegionId,
    /// Peers with requests that wait for apply.
    pub(super) awaiting_apply: BTreeSet<RegionId>,
    pub(super) last_tick: MonoTime,
    pub(super) stage: Stage,
    pub(super) batches: VecDeque<InFlightBatch>,
    pub(super) next_batch: NextBatch,
    /// The number of the last batch submitted.
    pub(super) submitted: u64,
    pub(super) inflight_bytes: usize,
    pub(super) unwritten_bytes: usize,
    /// Whether the log's disk was full at the last truncation.
    pub(super) was_full_at_truncation: bool,
    /// New log starts of regions, to be submitted.
    pub(super) truncations: Truncations,
    /// Tasks that did not fit into apply's mailbox.
    pub(super) pending_apply: VecDeque<ApplyTask>,
    /// Snapshots to install that did not fit into the queue of the workers.
    pub(super) pending_installs: VecDeque<InstallTask>,
    /// Regions whose snapshot file is queued or being built.
    pub(super) building_snapshots: BTreeSet<RegionId>,
    /// While a `ReadFlushed` job is queued or runs: `unflushed_bytes` when it was queued.
    pub(super) reading_flushed: Option<u64>,
    pub(super) ticks_to_log_gc: u32,
    pub(super) log_space: LogSpace,
    pub(super) scrub_pace: ScrubPace,
    /// Estimated bytes of log written since the last complete flush of the key-value store.
    pub(super) unflushed_bytes: u64,
    /// Messages taken from the mailbox for this turn.
    pub(super) messages: Vec<StoreMsg>,
    pub(super) halted: bool,
    /// A graceful stop transfers leaderships and the store still serves.
    pub(super) handing_over: bool,
    /// The clock reading of the previous turn.
    #[cfg(feature = "planted-bugs")]
    pub(super) old_clock: MonoTime,
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
            first_served: RegionId::default(),
            awaiting_apply: BTreeSet::new(),
            last_tick: now,
            stage: Stage::Intake,
            batches: VecDeque::new(),
            next_batch: NextBatch::default(),
            submitted: 0,
            inflight_bytes: 0,
            unwritten_bytes: 0,
            was_full_at_truncation: false,
            truncations: Truncations::new(),
            pending_apply: VecDeque::new(),
            pending_installs: VecDeque::new(),
            building_snapshots: BTreeSet::new(),
            reading_flushed: None,
            log_space: LogSpace::default(),
            scrub_pace: ScrubPace::default(),
            unflushed_bytes: 0,
            messages: Vec::new(),
            halted: false,
            handing_over: false,
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

    /// How long until the next tick is due.
    pub(crate) fn until_tick(&self, now: MonoTime) -> Duration {
        self.parts.config.tick_interval.saturating_sub(now.since(self.last_tick))
    }

    /// Calls `act` on the peer of a region and marks it dirty. Returns whether the region has a peer.
    pub(super) fn with_peer(&mut self, region: RegionId, act: impl FnOnce(&mut Peer)) -> bool {
        let Some(slot) = self.peers.get_mut(&region) else { return false };
        act(&mut slot.peer);
        self.dirty.insert(region);
        true
    }

    /// Queues a background job. Returns whether there was room.
    pub(super) fn queue_job(&self, job: Job) -> bool {
        let queued = self.parts.background.push(job);
        if let Err(Refused(job)) = &queued {
            tracing::warn!(?job, "background queue is full");
        }
        queued.is_ok()
    }

    /// Publishes the peer's state to readers on other threads. Poisons the store if the peer has a fault.
    pub(super) fn publish(&mut self, region: RegionId) {
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

    /// Publishes the delegates of all regions to the handles.
    pub(super) fn refresh_router(&self) {
        self.parts.router.replace(self.peers.iter().map(|(id, slot)| (*id, Arc::clone(&slot.delegate))));
    }

    /// Reports a change of leadership to the listener.
    pub(super) fn announce(&self, region: RegionId, event: RoleEvent) {
        match event {
            RoleEvent::Leader(term) => {
                let is_handed_over = self.peers.get(&region).is_some_and(|slot| slot.peer.is_handed_over(term));
                let by = if is_handed_over { BY_HANDOVER } else { BY_ELECTION };
                self.parts.metrics.leaderships.with_label_values(&[by]).inc();
                self.parts.metrics.leaders.inc();
                self.parts.listener.on_leader(region, term);
            }
            RoleEvent::SteppedDown(term) => {
                self.parts.metrics.leaders.dec();
                self.parts.listener.on_step_down(region, term);
            }
            RoleEvent::Inherited(term, packed) => {
                if let Some(memory) = &*self.parts.memory.read() {
                    memory.inherit(region, term, &packed);
                }
            }
            RoleEvent::Kept(term) => {
                if let Some(memory) = &*self.parts.memory.read() {
                    memory.keep(region, term);
                }
            }
        }
    }

    /// The error for a region without a peer on this store.
    pub(super) fn not_found(&self, region: RegionId) -> RegionError {
        RegionError::RegionNotFound { region, store: self.parts.id }
    }

    /// Offers the leadership of every region to its best follower. May be called often (`Peer::offer_leadership`).
    pub(super) fn transfer_leaderships(&mut self, now: MonoTime) {
        let regions: Vec<RegionId> = self.peers.keys().copied().collect();
        for region in regions {
            self.with_peer(region, |peer| peer.offer_leadership(now));
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
        self.inflight_bytes + self.next_batch.log.bytes() + self.unwritten_bytes
    }

    /// Whether too many bytes of committed entries wait for apply.
    pub(super) fn is_apply_backlogged(&self) -> bool {
        self.parts.apply.backlog.load(Ordering::SeqCst) > self.parts.config.apply_backlog_bytes
    }
}

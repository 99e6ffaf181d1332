//! A store without threads: store loop, apply loop and workers, each advanced by plain calls.
//!
//! [`crate::runtime`] runs each part on its own thread. A simulator calls the turns in any order on one thread. Nothing
//! here reads a clock, draws a random number or blocks, except [`StoreCore::open`] and [`StoreCore::finish_stop`],
//! which wait for the disk.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use engine::log::LogEngine;
use engine::store::Store;
use prometheus::Registry;

use crate::apply::{ApplyLoop, ApplyParts};
use crate::background::Background;
use crate::config::StoreConfig;
use crate::delegate::{Delegate, Router};
use crate::error::OpenError;
use crate::handle::{StoreContext, StoreHandle};
use crate::log_reader::LogReader;
use crate::mailbox::Mailbox;
use crate::messages::{ApplyQueue, CompletionInbox, Health, Job, MAX_FETCHES, MAX_JOBS, SnapshotQueues, StoreMsg};
use crate::metrics::Metrics;
use crate::peer::{Peer, PeerStart};
use crate::ports::{MemorySlot, RoleListener, Transport};
use crate::recovery::{self, RecoveredRegion};
use crate::region::{RegionId, StoreId};
use crate::snapshot::SnapshotFiles;
use crate::snapshot_worker::{SnapshotBuilder, SnapshotInstaller, WorkerParts};
use crate::storage::Fetch;
use crate::store::{LoopParts, StoreLoop};
use crate::time::{Clock, MonoTime};

pub use crate::recovery::bootstrap;

/// The parts a store is built from.
pub struct StoreParts<S: Store> {
    /// This store. Opening fails if a region on disk has no peer on it.
    pub store_id: StoreId,
    /// Settings.
    pub config: StoreConfig,
    /// The key-value store.
    pub store: S,
    /// The log. Its `LogWriter` stays with the caller, who runs its turns or its threads.
    pub log: LogEngine,
    /// The snapshot files of this store.
    pub snapshots: SnapshotFiles,
    /// Sends messages to other stores.
    pub transport: Arc<dyn Transport>,
    /// Notified of leadership changes.
    pub listener: Arc<dyn RoleListener>,
    /// The clock that `StoreHandle` reads. It must be the clock of every `now` passed to the core.
    pub clock: Arc<dyn Clock>,
    /// Seed of the randomized election timeouts. A simulator derives it from its own seed; a node draws it.
    pub seed: u64,
    /// The registry for the store's metrics.
    pub registry: Registry,
}

/// A store without threads. Dropping it is a crash: everything not durable is lost, and futures of its handles fail.
pub struct StoreCore<S: Store> {
    pub(crate) store_loop: StoreLoop,
    pub(crate) apply: ApplyLoop<S>,
    pub(crate) background: Background<S>,
    pub(crate) builder: SnapshotBuilder<S>,
    pub(crate) installer: SnapshotInstaller<S>,
    pub(crate) log_reader: LogReader,
    pub(crate) apply_queue: Arc<ApplyQueue>,
    pub(crate) handle: StoreHandle<S>,
}

/// State shared by the parts of a store.
struct SharedParts {
    config: Arc<StoreConfig>,
    mailbox: Arc<Mailbox<StoreMsg>>,
    inbox: Arc<CompletionInbox>,
    apply: Arc<ApplyQueue>,
    jobs: Arc<Mailbox<Job>>,
    snapshot_queues: SnapshotQueues,
    fetches: Arc<Mailbox<(RegionId, Fetch)>>,
    health: Arc<Health>,
    router: Arc<Router>,
    metrics: Metrics,
}

impl SharedParts {
    fn new(config: StoreConfig, registry: &Registry) -> Result<SharedParts, OpenError> {
        config.validate()?;
        let capacity = config.mailbox_capacity;
        let apply = ApplyQueue { mailbox: Mailbox::new(capacity), backlog: AtomicUsize::new(0) };
        Ok(SharedParts {
            config: Arc::new(config),
            mailbox: Arc::new(Mailbox::new(capacity)),
            inbox: Arc::default(),
            apply: Arc::new(apply),
            jobs: Arc::new(Mailbox::new(MAX_JOBS)),
            snapshot_queues: SnapshotQueues::default(),
            fetches: Arc::new(Mailbox::new(MAX_FETCHES)),
            health: Arc::default(),
            router: Arc::default(),
            metrics: Metrics::new(registry)?,
        })
    }

    fn worker_parts<S: Store>(&self, store: &S, snapshots: &SnapshotFiles) -> WorkerParts<S> {
        WorkerParts {
            store: store.clone(),
            snapshots: snapshots.clone(),
            inbox: Arc::clone(&self.inbox),
            wake: Arc::from(self.waker()),
            health: Arc::clone(&self.health),
            metrics: self.metrics.clone(),
        }
    }

    fn log_reader(&self, log: &LogEngine) -> LogReader {
        LogReader {
            log: log.clone(),
            queue: Arc::clone(&self.fetches),
            inbox: Arc::clone(&self.inbox),
            wake: Arc::from(self.waker()),
            health: Arc::clone(&self.health),
        }
    }

    fn waker(&self) -> Box<dyn Fn() + Send + Sync> {
        let mailbox = Arc::clone(&self.mailbox);
        Box::new(move || mailbox.wake())
    }
}

impl<S: Store> StoreCore<S> {
    /// Recovers all regions from disk.
    ///
    /// Snapshot installations that a crash or stop interrupted are continued by [`StoreCore::install_turn`]. Their
    /// regions do not serve until then, and cannot lead.
    ///
    /// # Errors
    ///
    /// - `Config`: a setting of `parts.config` is out of range.
    /// - `Metrics`: the registry already holds this store's metrics.
    /// - `Store`, `Log`: the key-value store or the log failed.
    /// - `Damaged`: the records of a region contradict each other.
    /// - `NotHere`: a region on disk has no peer on this store.
    /// - `SnapshotMissing`, `SnapshotDamaged`: the file of an interrupted installation is missing, or its header or
    ///   footer is damaged. Damage in between poisons the store when it is found.
    pub fn open(parts: StoreParts<S>, now: MonoTime) -> Result<StoreCore<S>, OpenError> {
        let StoreParts { store_id, config, store, log, snapshots, transport, listener, clock, seed, registry } = parts;
        let shared_parts = SharedParts::new(config, &registry)?;
        let regions = recovery::recover_all(&store, &log, &snapshots)?;
        let memory = MemorySlot::default();
        let context = StoreContext {
            id: store_id,
            config: Arc::clone(&shared_parts.config),
            store: store.clone(),
            clock,
            router: Arc::clone(&shared_parts.router),
            mailbox: Arc::clone(&shared_parts.mailbox),
            health: Arc::clone(&shared_parts.health),
            metrics: shared_parts.metrics.clone(),
            memory: Arc::clone(&memory),
        };
        let worker_parts = shared_parts.worker_parts(&store, &snapshots);
        let mut core = StoreCore {
            apply: ApplyLoop::new(ApplyParts {
                store: store.clone(),
                queue: Arc::clone(&shared_parts.apply),
                inbox: Arc::clone(&shared_parts.inbox),
                wake: shared_parts.waker(),
                health: Arc::clone(&shared_parts.health),
                metrics: shared_parts.metrics.clone(),
                batch_bytes: shared_parts.config.apply_batch_bytes,
            }),
            background: Background {
                store,
                log: log.clone(),
                snapshots: snapshots.clone(),
                mailbox: Arc::clone(&shared_parts.jobs),
                inbox: Arc::clone(&shared_parts.inbox),
                wake: Arc::from(shared_parts.waker()),
                health: Arc::clone(&shared_parts.health),
            },
            builder: SnapshotBuilder::new(worker_parts.clone(), Arc::clone(&shared_parts.snapshot_queues.builds)),
            installer: SnapshotInstaller::new(worker_parts, Arc::clone(&shared_parts.snapshot_queues.installs)),
            log_reader: shared_parts.log_reader(&log),
            apply_queue: Arc::clone(&shared_parts.apply),
            handle: StoreHandle { context: Arc::new(context) },
            store_loop: StoreLoop::new(
                LoopParts {
                    id: store_id,
                    config: shared_parts.config,
                    log: log.clone(),
                    snapshots,
                    transport,
                    listener,
                    memory,
                    router: shared_parts.router,
                    mailbox: shared_parts.mailbox,
                    inbox: shared_parts.inbox,
                    apply: shared_parts.apply,
                    background: shared_parts.jobs,
                    snapshot_queues: shared_parts.snapshot_queues,
                    fetches: shared_parts.fetches,
                    health: shared_parts.health,
                    metrics: shared_parts.metrics,
                },
                now,
            ),
        };
        for region in regions {
            core.add_region(region, store_id, &log, seed, now)?;
        }
        Ok(core)
    }

    fn add_region(
        &mut self,
        recovered: RecoveredRegion,
        store: StoreId,
        log: &LogEngine,
        seed: u64,
        now: MonoTime,
    ) -> Result<(), OpenError> {
        let RecoveredRegion { region, applied, floors, raft } = recovered;
        let Some(me) = region.peer_on(store) else { return Err(OpenError::NotHere { region: region.id, store }) };
        let region = Arc::new(region);
        let delegate = Delegate::new(Arc::clone(&region), applied);
        #[cfg(feature = "planted-bugs")]
        let delegate = {
            let mut delegate = delegate;
            delegate.plant(self.handle.context.config.planted_bug);
            delegate
        };
        let delegate = Arc::new(delegate);
        delegate.publish_floors(floors);
        self.apply.add_region(Arc::clone(&region), Arc::clone(&delegate), applied);
        let start = PeerStart {
            me,
            config: Arc::clone(&self.handle.context.config),
            log: log.clone(),
            recovered: raft,
            applied,
            seed: region_seed(seed, region.id),
            region: Arc::clone(&region),
        };
        let damaged = |e: crate::peer::PeerFault| OpenError::Damaged { region: region.id, what: e.to_string() };
        let peer = Peer::new(start, now).map_err(damaged)?;
        self.store_loop.add_peer(peer, delegate);
        Ok(())
    }

    /// A handle for requests and for delivering messages ([`StoreHandle::deliver`]).
    pub fn handle(&self) -> StoreHandle<S> {
        self.handle.clone()
    }

    /// Runs one turn of the store loop: completions, messages, a tick if one is due, then one log batch and the
    /// outgoing messages. Returns whether it did anything. Reads the clock once. Never blocks.
    ///
    /// Call it after every delivery or completion, and at least once per tick interval.
    pub fn store_turn(&mut self, clock: &dyn Clock) -> bool {
        self.store_loop.turn(clock)
    }

    /// Runs one stage of a turn, for a simulator that lets time pass between stages. After the last stage, returns what
    /// [`StoreCore::store_turn`] returns.
    pub fn store_stage(&mut self, clock: &dyn Clock) -> Option<bool> {
        self.store_loop.stage(clock)
    }

    /// Runs one turn of the apply loop: all queued entries go into as few writes as `apply_batch_bytes` allows. Returns
    /// whether it did anything.
    pub fn apply_turn(&mut self) -> bool {
        self.apply.turn()
    }

    /// Runs at most one background job: flush, purge, scrub, removal of snapshot files. Returns whether it did any.
    pub fn background_turn(&mut self) -> bool {
        self.background.turn()
    }

    /// Runs one step of the build of a snapshot file: takes the region's data, or writes the file. Returns whether it
    /// did anything.
    pub fn build_turn(&mut self) -> bool {
        self.builder.turn()
    }

    /// Installs at most one received snapshot. Returns whether it did anything.
    pub fn install_turn(&mut self) -> bool {
        self.installer.turn()
    }

    /// Reads old log entries for a follower that lags, at most one read. Returns whether it did anything.
    pub fn log_read_turn(&mut self) -> bool {
        self.log_reader.turn()
    }

    /// Starts a graceful stop: offers leadership to other stores, and serves meanwhile. Continue with turns until
    /// [`StoreCore::continue_stop`] returns true or a deadline passes, then call [`StoreCore::finish_stop`].
    pub fn begin_stop(&mut self, now: MonoTime) {
        self.store_loop.begin_stop(now);
    }

    /// Continues a graceful stop after a turn: refuses requests once all leaderships are handed over. Returns whether
    /// there is nothing left to wait for.
    pub fn continue_stop(&mut self, now: MonoTime) -> bool {
        self.store_loop.continue_stop(now) && self.apply_queue.backlog.load(std::sync::atomic::Ordering::SeqCst) == 0
    }

    /// Ends a graceful stop: answers all waiting requests, applies committed entries, and flushes the key-value store.
    ///
    /// # Errors
    ///
    /// The error of the flush. A poisoned store is not flushed and returns `Ok`.
    pub fn finish_stop(&mut self) -> Result<(), engine::store::StoreError> {
        self.store_loop.finish_stop();
        while self.apply.turn() {}
        if self.poisoned().is_some() {
            return Ok(());
        }
        self.background.store.flush()
    }

    /// Why the store is poisoned, if it is: the log failed, a committed entry is malformed, or a write failed.
    pub fn poisoned(&self) -> Option<String> {
        self.handle.poisoned()
    }
}

/// A separate seed for each region.
fn region_seed(seed: u64, region: RegionId) -> u64 {
    seed ^ region.get().wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

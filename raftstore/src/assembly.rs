//! A store put together without threads: the store loop, the apply loop and the background worker, each advanced by a plain call.
//!
//! [`crate::runtime`] runs each part on a thread of its own; a simulator calls the turns in any order it likes on one thread. Nothing here reads a clock,
//! draws a random number or waits.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use engine::log::LogEngine;
use engine::store::Store;
use prometheus::Registry;

use crate::apply::{ApplyLoop, ApplyParts};
use crate::background::Background;
use crate::config::StoreConfig;
use crate::delegate::Delegate;
use crate::error::OpenError;
use crate::handle::{StoreContext, StoreHandle};
use crate::health::Health;
use crate::mailbox::Mailbox;
use crate::messages::{ApplyQueue, CompletionInbox, Job, MAX_JOBS, StoreMsg};
use crate::metrics::Metrics;
use crate::peer::{Peer, PeerStart};
use crate::ports::{RoleListener, Transport};
use crate::recovery::{self, RecoveredRegion};
use crate::region::{RegionId, StoreId};
use crate::router::Router;
use crate::snapshot::SnapshotFiles;
use crate::store::{LoopParts, StoreLoop};
use crate::time::{Clock, MonoTime};

pub use crate::recovery::bootstrap;

/// What a store is built from.
pub struct StoreParts<S: Store> {
    /// This store. Regions that have no peer on it are refused.
    pub store_id: StoreId,
    /// Settings.
    pub config: StoreConfig,
    /// The key-value store.
    pub store: S,
    /// The log. Its `LogWriter` stays with the caller, who runs its turns (or its thread).
    pub log: LogEngine,
    /// Snapshot files.
    pub snapshots: SnapshotFiles,
    /// The way to other stores.
    pub transport: Arc<dyn Transport>,
    /// Told who leads.
    pub listener: Arc<dyn RoleListener>,
    /// What `StoreHandle` reads the time from; the same clock `now` comes from.
    pub clock: Arc<dyn Clock>,
    /// Seed of election timeouts. A simulator derives it from its own; a node draws it.
    pub seed: u64,
    /// Where metrics are registered.
    pub registry: Registry,
}

/// A store without threads. Dropping it is a crash: what is not durable is lost, futures of its handle fail.
pub struct StoreCore<S: Store> {
    pub(crate) store_loop: StoreLoop,
    pub(crate) apply: ApplyLoop<S>,
    pub(crate) background: Background<S>,
    pub(crate) apply_queue: Arc<ApplyQueue>,
    pub(crate) handle: StoreHandle<S>,
}

/// What all parts of a store share.
struct SharedParts {
    config: Arc<StoreConfig>,
    mailbox: Arc<Mailbox<StoreMsg>>,
    inbox: Arc<CompletionInbox>,
    apply: Arc<ApplyQueue>,
    jobs: Arc<Mailbox<Job>>,
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
            health: Arc::default(),
            router: Arc::default(),
            metrics: Metrics::new(registry)?,
        })
    }

    fn waker(&self) -> Box<dyn Fn() + Send + Sync> {
        let mailbox = Arc::clone(&self.mailbox);
        Box::new(move || mailbox.wake())
    }
}

impl<S: Store> StoreCore<S> {
    /// Recovers all regions from disk. Finishes what a crash left open (a snapshot half installed), for which it may write to the log
    /// and wait.
    pub fn open(parts: StoreParts<S>, now: MonoTime) -> Result<StoreCore<S>, OpenError> {
        let StoreParts { store_id, config, store, log, snapshots, transport, listener, clock, seed, registry } = parts;
        let shared_parts = SharedParts::new(config, &registry)?;
        let regions = recovery::recover_all(&store, &log, &snapshots)?;
        let context = StoreContext {
            id: store_id,
            config: Arc::clone(&shared_parts.config),
            store: store.clone(),
            clock,
            router: Arc::clone(&shared_parts.router),
            mailbox: Arc::clone(&shared_parts.mailbox),
            health: Arc::clone(&shared_parts.health),
            metrics: shared_parts.metrics.clone(),
        };
        let mut core = StoreCore {
            apply: ApplyLoop::new(ApplyParts {
                store: store.clone(),
                snapshots: snapshots.clone(),
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
                metrics: shared_parts.metrics.clone(),
            },
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
                    router: shared_parts.router,
                    mailbox: shared_parts.mailbox,
                    inbox: shared_parts.inbox,
                    apply: shared_parts.apply,
                    background: shared_parts.jobs,
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
        let RecoveredRegion { region, applied, raft } = recovered;
        let Some(me) = region.peer_on(store) else { return Err(OpenError::NotHere { region: region.id, store }) };
        let region = Arc::new(region);
        let delegate = Arc::new(Delegate::new(Arc::clone(&region), applied));
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

    /// A handle for requests and for delivering messages (`StoreHandle::deliver`).
    pub fn handle(&self) -> StoreHandle<S> {
        self.handle.clone()
    }

    /// One turn of the store loop: what the log made durable and apply applied, then the mailbox, then a tick if one is due, then one log
    /// batch and the messages. Returns whether it did anything. To be called when something was delivered or completed, and
    /// at least each tick interval. Reads the clock once.
    pub fn store_turn(&mut self, clock: &dyn Clock) -> bool {
        self.store_loop.turn(clock)
    }

    /// One stage of such a turn, for a simulator that lets time pass in the middle; what [`StoreCore::store_turn`] returns if it was the last.
    pub fn store_stage(&mut self, clock: &dyn Clock) -> Option<bool> {
        self.store_loop.stage(clock)
    }

    /// One turn of the apply loop: one write for all committed entries at hand (or one snapshot installed). Returns whether it did anything.
    pub fn apply_turn(&mut self) -> bool {
        self.apply.turn()
    }

    /// Runs at most one background job (build a snapshot file, flush, purge the log). Returns whether it did anything.
    pub fn background_turn(&mut self) -> bool {
        self.background.turn()
    }

    /// Starts a graceful stop: refuses new requests and offers leadership to others. Goes on with turns until [`StoreCore::is_drained`] or patience
    /// ends, then comes [`StoreCore::finish_stop`].
    pub fn begin_stop(&mut self, now: MonoTime) {
        self.handle.context.health.stop();
        self.store_loop.begin_stop(now);
    }

    /// Whether a graceful stop has nothing left to wait for.
    pub fn is_drained(&self, now: MonoTime) -> bool {
        self.store_loop.is_drained(now) && self.apply_queue.backlog.load(std::sync::atomic::Ordering::SeqCst) == 0
    }

    /// Ends a graceful stop: answers what still waits, applies what is committed, flushes the key-value store.
    pub fn finish_stop(&mut self) -> Result<(), engine::store::StoreError> {
        self.store_loop.finish_stop();
        while self.apply.turn() {}
        if self.poisoned().is_some() {
            return Ok(());
        }
        self.background.store.flush()
    }

    /// Why the store stopped serving, if it did: a failed log, a malformed committed entry, a failed write.
    pub fn poisoned(&self) -> Option<String> {
        self.handle.poisoned()
    }
}

/// A seed of its own for each region.
fn region_seed(seed: u64, region: RegionId) -> u64 {
    seed ^ region.get().wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

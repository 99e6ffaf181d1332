//! The nodes as the tasks see them: which run, what they serve, the virtual time, and what the tasks want of the world.
//!
//! The tasks are those of the production code, on one thread of tokio with paused time. The world runs between them.
//! Tokio's time is that of the world, in steps of a millisecond.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kv::server::KvServer;
use parking_lot::Mutex;
use prometheus::Registry;
use raftstore::{RegionId, StoreId};
use simulator::node::VirtualTime;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tso::{TsoClient, TsoService};
use txn::Database;

use crate::protocols::{Protocols, Watch};
use crate::replicas::{self, ReplicaReads, Surface};
use crate::steps::Step;
use crate::store::SimStore;
use crate::wire::AbortOnDrop;

/// What a node serves in one life.
#[derive(Clone)]
pub(crate) struct Life {
    /// The number of this life.
    pub(crate) number: u64,
    pub(crate) server: KvServer<SimStore>,
    pub(crate) oracle: TsoService,
    pub(crate) timestamps: TsoClient,
    /// Collects old versions of the store; ends with the last copy.
    pub(crate) _collect: Arc<AbortOnDrop>,
    /// What the store tells the others; ends with the last copy.
    pub(crate) _streams: Arc<AbortOnDrop>,
}

/// The coordinator of a node, which sessions use. It may end before the node's life does; then another one starts.
#[derive(Clone)]
pub(crate) struct Gateway {
    /// Unique in the run.
    pub(crate) number: u64,
    pub(crate) database: Database,
    /// Cancelled once it has ended.
    pub(crate) ended: CancellationToken,
}

/// What a task wants of the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// The node loses power.
    Crash(StoreId),
    /// The oracle's node hands over, or loses power.
    MoveOracle,
    /// The leader of the region hands over.
    MoveLeader(RegionId),
}

struct Running {
    life: Life,
    gateway: Gateway,
    is_paused: bool,
}

/// What happened so far to requests and coordinators.
#[derive(Clone, Debug, Default)]
pub(crate) struct Deaths {
    /// Coordinators that died, by their step.
    pub(crate) coordinators: BTreeMap<Step, u64>,
    /// Attempts that were refused after an attempt before had taken effect.
    pub(crate) refusals: u64,
    /// Copies of requests that arrived after the request, and lost requests that arrived after all.
    pub(crate) late: u64,
    /// Reads whose timestamp their store took.
    pub(crate) first_reads: u64,
    /// Commits whose least commit_ts their store took.
    pub(crate) names_ahead: u64,
    pub(crate) replica_reads: ReplicaReads,
}

/// See the module documentation.
pub(crate) struct Nodes {
    started: Instant,
    time: Arc<VirtualTime>,
    running: Mutex<BTreeMap<StoreId, Running>>,
    /// Stores that were called since the world ran last.
    called: Mutex<BTreeSet<StoreId>>,
    wanted: Mutex<Vec<Wanted>>,
    /// Lines for the trace.
    notes: Mutex<Vec<String>>,
    gateways: AtomicU64,
    pub(crate) seen: Mutex<Deaths>,
    pub(crate) watch: Mutex<Watch>,
    /// The metrics of every gateway that was opened.
    registries: Mutex<Vec<Registry>>,
    pub(crate) has_calls: Notify,
    /// All stores, running or not.
    pub(crate) stores: Vec<StoreId>,
}

impl Nodes {
    pub(crate) fn new(stores: u64, time: Arc<VirtualTime>) -> Nodes {
        Nodes {
            started: now(),
            time,
            running: Mutex::default(),
            called: Mutex::default(),
            wanted: Mutex::default(),
            notes: Mutex::default(),
            gateways: AtomicU64::new(0),
            seen: Mutex::default(),
            watch: Mutex::default(),
            registries: Mutex::default(),
            has_calls: Notify::new(),
            stores: (1..=stores).map(StoreId::new).collect(),
        }
    }

    /// Virtual nanoseconds since the start.
    pub(crate) fn elapsed(&self) -> u64 {
        now().duration_since(self.started).as_nanos() as u64
    }

    /// Waits until a virtual time.
    pub(crate) async fn sleep_until(&self, nanos: u64) {
        tokio::time::sleep_until(self.started + Duration::from_nanos(nanos)).await;
    }

    /// Sets the clocks of the stores to the time of the tasks.
    pub(crate) fn set_clocks(&self) {
        self.time.set(self.elapsed());
    }

    /// The world shall run a turn of this store.
    pub(crate) fn wake(&self, store: StoreId) {
        self.called.lock().insert(store);
        self.has_calls.notify_one();
    }

    /// The stores that were called since this was asked last.
    pub(crate) fn take_called(&self) -> BTreeSet<StoreId> {
        std::mem::take(&mut self.called.lock())
    }

    /// Asks something of the world, which does it before it runs on.
    pub(crate) fn want(&self, wanted: Wanted) {
        self.wanted.lock().push(wanted);
        self.has_calls.notify_one();
    }

    /// What was asked since the last call.
    pub(crate) fn take_wanted(&self) -> Vec<Wanted> {
        std::mem::take(&mut self.wanted.lock())
    }

    /// Adds a line to the trace.
    pub(crate) fn note(&self, line: String) {
        self.notes.lock().push(line);
    }

    /// The lines added since the last call.
    pub(crate) fn take_notes(&self) -> Vec<String> {
        std::mem::take(&mut self.notes.lock())
    }

    /// The number of a new gateway, which counts in these metrics.
    pub(crate) fn next_gateway(&self, metrics: &Registry) -> u64 {
        self.registries.lock().push(metrics.clone());
        self.gateways.fetch_add(1, Ordering::Relaxed)
    }

    /// What the gateways did so far.
    pub(crate) fn protocols(&self) -> Protocols {
        let mut protocols = self.watch.lock().counts;
        self.registries.lock().iter().for_each(|metrics| protocols.add_metrics(metrics));
        protocols
    }

    /// How the reads with options were served so far.
    pub(crate) fn surface(&self) -> Surface {
        let mut surface = Surface::default();
        self.registries.lock().iter().for_each(|metrics| replicas::add_counters(&mut surface, metrics));
        surface
    }

    pub(crate) fn start(&self, store: StoreId, life: Life, gateway: Gateway) {
        self.running.lock().insert(store, Running { life, gateway, is_paused: false });
    }

    pub(crate) fn stop(&self, store: StoreId) {
        let stopped = self.running.lock().remove(&store);
        if let Some(Running { life, gateway, .. }) = stopped {
            gateway.ended.cancel();
            life.oracle.on_step_down();
        }
    }

    /// Ends the gateway of a node, and begins another one.
    pub(crate) fn replace_gateway(&self, store: StoreId, gateway: Gateway) {
        if let Some(running) = self.running.lock().get_mut(&store) {
            std::mem::replace(&mut running.gateway, gateway).ended.cancel();
        }
    }

    pub(crate) fn set_paused(&self, store: StoreId, is_paused: bool) {
        if let Some(running) = self.running.lock().get_mut(&store) {
            running.is_paused = is_paused;
        }
    }

    /// The life of a node that runs.
    pub(crate) fn life(&self, store: StoreId) -> Option<Life> {
        self.running.lock().get(&store).map(|running| running.life.clone())
    }

    /// The gateway of a node that runs.
    pub(crate) fn gateway(&self, store: StoreId) -> Option<Gateway> {
        self.running.lock().get(&store).map(|running| running.gateway.clone())
    }

    /// Whether this life of the node goes on.
    pub(crate) fn is_alive(&self, store: StoreId, life: u64) -> bool {
        self.running.lock().get(&store).is_some_and(|running| running.life.number == life)
    }

    /// Whether this gateway of the node goes on.
    pub(crate) fn is_gateway(&self, store: StoreId, number: u64) -> bool {
        self.running.lock().get(&store).is_some_and(|running| running.gateway.number == number)
    }

    pub(crate) fn is_paused(&self, store: StoreId) -> bool {
        self.running.lock().get(&store).is_some_and(|running| running.is_paused)
    }
}

#[expect(clippy::disallowed_methods, reason = "tokio's time is paused")]
fn now() -> Instant {
    Instant::now()
}

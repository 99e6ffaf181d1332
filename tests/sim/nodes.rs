//! The nodes as the tasks see them: which run, what they serve, and the virtual time.
//!
//! The tasks are those of the production code, on one thread of tokio with paused time. The world runs between them.
//! Tokio's time is that of the world, in steps of a millisecond.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kv::server::KvServer;
use parking_lot::Mutex;
use raftstore::StoreId;
use simulator::node::VirtualTime;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tso::TsoService;
use txn::Database;

use crate::store::SimStore;

/// What a node serves in one life.
#[derive(Clone)]
pub(crate) struct Life {
    /// The number of this life.
    pub(crate) number: u64,
    pub(crate) server: KvServer<SimStore>,
    pub(crate) oracle: TsoService,
    pub(crate) database: Database,
    /// Cancelled once the life has ended.
    pub(crate) ended: CancellationToken,
}

struct Running {
    life: Life,
    is_paused: bool,
}

/// See the module documentation.
pub(crate) struct Nodes {
    started: Instant,
    time: Arc<VirtualTime>,
    running: Mutex<BTreeMap<StoreId, Running>>,
    /// Stores that were called since the world ran last.
    called: Mutex<BTreeSet<StoreId>>,
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

    pub(crate) fn start(&self, store: StoreId, life: Life) {
        self.running.lock().insert(store, Running { life, is_paused: false });
    }

    pub(crate) fn stop(&self, store: StoreId) {
        let stopped = self.running.lock().remove(&store);
        stopped.iter().for_each(|running| running.life.ended.cancel());
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

    /// Whether this life of the node goes on.
    pub(crate) fn is_alive(&self, store: StoreId, life: u64) -> bool {
        self.running.lock().get(&store).is_some_and(|running| running.life.number == life)
    }

    pub(crate) fn is_paused(&self, store: StoreId) -> bool {
        self.running.lock().get(&store).is_some_and(|running| running.is_paused)
    }
}

#[expect(clippy::disallowed_methods, reason = "tokio's time is paused")]
fn now() -> Instant {
    Instant::now()
}

//! A key-value cluster in one process, without Raft: the test double for everything above `kv::client`.
//!
//! [`MemoryCluster`] runs the server's read and write paths on an in-memory store, behind the client's [`Endpoint`]. It
//! has stores, and regions with leaders and epochs. All stores share one data set, as if replication took no time.
//! Messages and writes above the real limits are refused.
//!
//! Faults are injected one by one ([`MemoryCluster::inject`]) or drawn from a seed ([`Faults`]): refusals, lost
//! responses, unknown outcomes, duplicated requests, delays, leader moves and splits. Time is a counter
//! ([`CountingTso`]), so locks expire only when a test advances it.
//!
//! ```
//! use std::sync::Arc;
//! use kv::Key;
//! use kv::memory::MemoryCluster;
//!
//! // One region on one store:
//! let cluster = MemoryCluster::new();
//! // Three stores, three regions, and faults:
//! let cluster = MemoryCluster::builder()
//!     .stores(3)
//!     .split_at(Key::from_static(b"g"))
//!     .split_at(Key::from_static(b"p"))
//!     .faults(kv::memory::Faults::mixed(42))
//!     .build();
//! let endpoint: Arc<dyn kv::client::Endpoint> = Arc::new(cluster.clone());
//! let timestamps: Arc<dyn tso::TsoSource> = cluster.tso();
//! ```
//!
//! # Layers
//!
//! 1. `timestamps`, `topology`: timestamps without a clock; regions and their leaders
//! 2. `faults`, `regions`: what goes wrong with a call; a store as the server's paths see it

mod faults;
mod regions;
#[cfg(test)]
mod tests;
mod timestamps;
mod topology;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use engine::Cf;
use engine::store::memory::MemoryStore;
use engine::store::{Reader, Store};
use futures::future::BoxFuture;
use parking_lot::Mutex;
use prometheus::IntCounter;
use raftstore::{RegionContext, RegionError, RegionStatus, StoreConfig, StoreId};
use tso::Timestamp;

use crate::api::{LockInfo, Request, Response, ServerError};
use crate::client::{CallError, Endpoint};
use crate::concurrency::ConcurrencyManager;
use crate::error::ActionError;
use crate::key::Key;
use crate::locks::RowLockStatus;
use crate::mvcc::shared::lock_of_row;
#[cfg(feature = "planted-bugs")]
use crate::planted::PlantedBug;
use crate::read::{ReadConfig, ReadExecutor};
use crate::read_pool::ReadPool;
use crate::scheduler::Scheduler;
use crate::size::{MESSAGE_BYTES_MAX, request_bytes};

use faults::FaultPlan;
use regions::StoreRegions;
use timestamps::ObservedTimestamps;
use topology::Topology;

pub use faults::{Fault, Faults};
pub use regions::RegionReader;
pub use timestamps::CountingTso;

/// The most writes that hold latches or wait for them.
const LATCH_CAPACITY: usize = 10_000;

/// An in-memory cluster; see the module documentation. Clones share the cluster.
#[derive(Clone)]
pub struct MemoryCluster {
    state: Arc<ClusterState>,
    servers: Arc<BTreeMap<StoreId, StoreServer>>,
    /// Pages of scans that were read on a kept scan.
    continued_scans: IntCounter,
}

/// The read and the write path of a store.
struct StoreServer {
    reads: ReadExecutor<StoreRegions>,
    writes: Scheduler<StoreRegions>,
}

impl StoreServer {
    async fn execute(&self, request: Request) -> Result<Response, ServerError> {
        match request.body.is_read() {
            true => self.reads.run(request).await,
            false => self.writes.run(request, ()).await,
        }
    }
}

struct ClusterState {
    store: MemoryStore,
    topology: Arc<Mutex<Topology>>,
    faults: Mutex<FaultPlan>,
    tso: Arc<CountingTso>,
    timestamps: Arc<ObservedTimestamps>,
    calls: AtomicU64,
}

/// Builds a [`MemoryCluster`].
#[derive(Clone, Debug)]
pub struct MemoryClusterBuilder {
    stores: u64,
    splits: Vec<Key>,
    faults: Faults,
    ms_per_timestamp: u64,
    max_proposal_bytes: usize,
    read_config: ReadConfig,
    #[cfg(feature = "planted-bugs")]
    planted_bug: Option<PlantedBug>,
}

impl MemoryClusterBuilder {
    /// The number of stores; 0 counts as 1. Stores are numbered from 1. Every region has a replica on each store, and
    /// leaders are assigned round-robin.
    pub fn stores(mut self, stores: u64) -> Self {
        self.stores = stores.max(1);
        self
    }

    /// Adds a region boundary at `key`, which becomes the first key of a region.
    pub fn split_at(mut self, key: Key) -> Self {
        self.splits.push(key);
        self
    }

    /// The faults to draw.
    pub fn faults(mut self, faults: Faults) -> Self {
        self.faults = faults;
        self
    }

    /// Milliseconds by which the time advances with every call for timestamps. Default 0: time advances only with
    /// [`CountingTso::advance_ms`], and no lock expires before.
    pub fn ms_per_timestamp(mut self, ms: u64) -> Self {
        self.ms_per_timestamp = ms;
        self
    }

    /// The largest write, in bytes. Default 8 MiB, as in a real store.
    pub fn max_proposal_bytes(mut self, bytes: usize) -> Self {
        self.max_proposal_bytes = bytes;
        self
    }

    /// How the stores divide reads. All of a read runs in its caller's task, so that a seed determines a run. By
    /// default a page is one slice; the sizes of pages are those of a real store.
    pub fn reads(mut self, config: ReadConfig) -> Self {
        self.read_config = config;
        self
    }

    /// A deliberate bug of all stores.
    #[cfg(feature = "planted-bugs")]
    pub fn planted_bug(mut self, bug: Option<PlantedBug>) -> Self {
        self.planted_bug = bug;
        self
    }

    /// Builds the cluster.
    #[expect(clippy::expect_used, reason = "the name of the counter is valid")]
    pub fn build(self) -> MemoryCluster {
        let store = MemoryStore::new();
        let topology = Arc::new(Mutex::new(Topology::new(self.stores, &self.splits)));
        let continued_scans = IntCounter::new("continued_scans", "Pages read on a kept scan.").expect("a name");
        let tso = Arc::new(CountingTso::new(self.ms_per_timestamp));
        let timestamps = Arc::new(ObservedTimestamps::new(Arc::clone(&tso)));
        let servers = (1..=self.stores).map(StoreId::new).map(|id| {
            let (data, topology) = (store.clone(), Arc::clone(&topology));
            let store = StoreRegions { id, data, topology, max_proposal_bytes: self.max_proposal_bytes };
            let pool = ReadPool::in_caller();
            let concurrency = ConcurrencyManager::new(timestamps.clone());
            #[cfg(feature = "planted-bugs")]
            let concurrency = concurrency.with_planted_bug(self.planted_bug);
            let (config, continued) = (self.read_config, continued_scans.clone());
            let reads = ReadExecutor::new(store.clone(), concurrency.clone(), pool.clone(), config, continued);
            #[cfg(feature = "planted-bugs")]
            let reads = reads.with_planted_bug(self.planted_bug);
            let writes = Scheduler::new(store, concurrency, LATCH_CAPACITY, pool);
            #[cfg(feature = "planted-bugs")]
            let writes = writes.with_planted_bug(self.planted_bug);
            (id, StoreServer { reads, writes })
        });
        let servers = Arc::new(servers.collect());
        let faults = Mutex::new(FaultPlan::new(self.faults));
        let state = ClusterState { store, topology, faults, tso, timestamps, calls: AtomicU64::new(0) };
        MemoryCluster { state: Arc::new(state), servers, continued_scans }
    }
}

impl Default for MemoryCluster {
    fn default() -> MemoryCluster {
        MemoryCluster::new()
    }
}

impl MemoryCluster {
    /// One store with one region that holds every key, and no faults.
    pub fn new() -> MemoryCluster {
        MemoryCluster::builder().build()
    }

    /// A builder with the defaults: one store, one region, no faults, time does not advance.
    pub fn builder() -> MemoryClusterBuilder {
        MemoryClusterBuilder {
            stores: 1,
            splits: Vec::new(),
            faults: Faults::none(),
            ms_per_timestamp: 0,
            max_proposal_bytes: StoreConfig::default().max_proposal_bytes,
            read_config: ReadConfig {
                first_slice_steps: ReadConfig::default().page_steps,
                inline_keys: usize::MAX,
                ..ReadConfig::default()
            },
            #[cfg(feature = "planted-bugs")]
            planted_bug: None,
        }
    }

    /// The cluster's source of timestamps.
    pub fn tso(&self) -> Arc<CountingTso> {
        Arc::clone(&self.state.tso)
    }

    /// The next timestamp.
    pub fn timestamp(&self) -> Timestamp {
        self.state.tso.next()
    }

    /// Queues faults for the next calls, one per call and in this order. They come before drawn faults.
    pub fn inject(&self, faults: impl IntoIterator<Item = Fault>) {
        self.state.faults.lock().inject(faults);
    }

    /// Replaces the drawn faults, and drops injected faults and pending duplicates. [`Faults::none`] heals the cluster.
    pub fn set_faults(&self, faults: Faults) {
        *self.state.faults.lock() = FaultPlan::new(faults);
    }

    /// Splits the region that holds `key`, which becomes the first key of a new region. Does nothing if it is the first
    /// key of a region already.
    pub fn split(&self, key: &Key) {
        self.state.topology.lock().split(&key.to_storage());
    }

    /// Makes `store` the leader of the region that holds `key`. Does nothing if the store does not exist.
    pub fn move_leader(&self, key: &Key, store: StoreId) {
        self.state.topology.lock().move_leader(&key.to_storage(), store);
    }

    /// The regions in key order, as their leaders see them.
    pub fn regions(&self) -> Vec<RegionStatus> {
        self.state.topology.lock().regions()
    }

    /// The number of calls so far, failed ones included.
    pub fn calls(&self) -> u64 {
        self.state.calls.load(Ordering::Relaxed)
    }

    /// The number of pages that were read on a kept scan.
    pub fn continued_scans(&self) -> u64 {
        self.continued_scans.get()
    }

    /// The data.
    pub fn store(&self) -> &MemoryStore {
        &self.state.store
    }

    /// All row locks in the memory of the stores, and who waits for them.
    pub fn row_locks(&self) -> Vec<RowLockStatus> {
        self.servers.values().flat_map(|server| server.writes.row_locks(usize::MAX).0).collect()
    }

    /// All locks in key order, shared ones too. None should remain once all transactions have ended and their locks are
    /// resolved.
    ///
    /// # Errors
    ///
    /// [`ActionError::Mvcc`] if a lock record is malformed.
    pub fn locks(&self) -> Result<Vec<LockInfo>, ActionError> {
        let snapshot = self.state.store.snapshot();
        let mut cursor = snapshot.cursor(Cf::Lock, b"", b"")?;
        let mut locks = Vec::new();
        let mut found = cursor.seek_to_first()?;
        while found {
            locks.extend(lock_of_row(cursor.key(), cursor.value())?);
            found = cursor.next()?;
        }
        Ok(locks)
    }

    /// Delivers a call with the fault that is injected or drawn for it.
    async fn call_with_faults(&self, store: StoreId, request: Request) -> Result<Response, CallError> {
        self.state.calls.fetch_add(1, Ordering::Relaxed);
        let (fault, delay, due) = {
            let mut plan = self.state.faults.lock();
            let topology = self.state.topology.lock();
            (plan.draw(&request, &topology), plan.draw_delay(), plan.take_due_duplicates())
        };
        if delay > Duration::ZERO {
            tokio::time::sleep(delay).await;
        }
        for (store, request) in due {
            // The second copy of a request: its response is dropped.
            let _ = self.execute(store, &request).await;
        }
        match fault {
            None => Ok(self.execute(store, &request).await?),
            Some(Fault::Unreachable) => Err(CallError::Unreachable { store, why: "injected".to_owned() }),
            Some(Fault::Refuse(error)) => Err(CallError::Server(error.into())),
            Some(Fault::LoseReply) => {
                let _ = self.execute(store, &request).await;
                Err(CallError::Lost { store, why: "injected".to_owned() })
            }
            Some(Fault::Undetermined { applied }) if request.body.is_write() => {
                if applied {
                    let _ = self.execute(store, &request).await;
                }
                Err(CallError::Server(ServerError::Undetermined(request.context.region)))
            }
            Some(Fault::Undetermined { .. }) => Err(CallError::Lost { store, why: "injected".to_owned() }),
            Some(Fault::Duplicate) => {
                self.state.faults.lock().deliver_again_later(store, request.clone());
                Ok(self.execute(store, &request).await?)
            }
            Some(Fault::MoveLeader(to)) => {
                self.state.topology.lock().move_leader_of(request.context.region, to);
                Ok(self.execute(store, &request).await?)
            }
            Some(Fault::Split(key)) => {
                self.split(&key);
                Ok(self.execute(store, &request).await?)
            }
        }
    }

    /// Executes a request without faults.
    async fn execute(&self, store: StoreId, request: &Request) -> Result<Response, ServerError> {
        let (bytes, limit) = (request_bytes(&request.body), MESSAGE_BYTES_MAX);
        if bytes > limit {
            return Err(ServerError::TooLarge { bytes, limit });
        }
        self.state.timestamps.observe(&request.body);
        match self.servers.get(&store) {
            Some(server) => server.execute(request.clone()).await,
            None => Err(RegionError::RegionNotFound { region: request.context.region, store }.into()),
        }
    }
}

impl Endpoint for MemoryCluster {
    fn call(&self, store: StoreId, request: Request) -> BoxFuture<'_, Result<Response, CallError>> {
        Box::pin(self.call_with_faults(store, request))
    }

    fn locate(&self, store: StoreId, key: Vec<u8>) -> BoxFuture<'_, Result<Option<RegionStatus>, CallError>> {
        Box::pin(async move {
            if self.state.faults.lock().draw_unreachable() {
                return Err(CallError::Unreachable { store, why: "injected".to_owned() });
            }
            Ok(self.state.topology.lock().locate(store, &key))
        })
    }

    /// Every store is this process's own. A call that may meet a fault goes through [`Endpoint::call`].
    fn try_get(
        &self,
        store: StoreId,
        context: RegionContext,
        key: (&Key, &[u8]),
        start_ts: Timestamp,
    ) -> Option<Option<Bytes>> {
        if !self.state.faults.lock().is_empty() {
            return None;
        }
        let value = self.servers.get(&store)?.reads.try_get(context, key, start_ts)?.ok()?;
        self.state.calls.fetch_add(1, Ordering::Relaxed);
        Some(value)
    }

    fn stores(&self) -> Vec<StoreId> {
        self.state.topology.lock().stores()
    }
}

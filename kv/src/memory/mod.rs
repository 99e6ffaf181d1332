//! A whole key-value layer in one process, without Raft: the test double for everything above `kv::client`.
//!
//! [`MemoryCluster`] runs the same MVCC and Percolator code as a server, on an in-memory store, behind the same
//! [`Endpoint`]. It has stores and regions with leaders and epochs, so that a client has something to route by; all stores see the same
//! data at once, as if replication took no time. Messages and writes that are too large are refused as by a real store. Faults come one by one ([`MemoryCluster::inject`]) or by a seed ([`Faults`]): refusals,
//! lost replies, unknown outcomes, repeated requests, delays, leader moves and splits. Time is a counter ([`CountingTso`]), so that
//! locks expire when a test says so.
//!
//! ```
//! use std::sync::Arc;
//! use kv::Key;
//! use kv::memory::MemoryCluster;
//!
//! // One region on one store:
//! let cluster = MemoryCluster::new();
//! // Three stores, three regions, and trouble:
//! let cluster = MemoryCluster::builder()
//!     .stores(3)
//!     .split_at(Key::from_static(b"g"))
//!     .split_at(Key::from_static(b"p"))
//!     .faults(kv::memory::Faults::rough(42))
//!     .build();
//! let endpoint: Arc<dyn kv::client::Endpoint> = Arc::new(cluster.clone());
//! let timestamps: Arc<dyn tso::TsoSource> = cluster.tso();
//! ```

mod faults;
mod ranged;
#[cfg(test)]
mod tests;
mod timestamps;
mod topology;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use engine::Cf;
use engine::store::memory::MemoryStore;
use engine::store::{Reader, Store};
use futures::future::BoxFuture;
use parking_lot::Mutex;
use raftstore::{RegionError, RegionStatus, StoreConfig, StoreId};
use tso::Timestamp;

use crate::api::{LockInfo, Request, Response, ServerError};
use crate::client::{CallError, Endpoint};
use crate::error::ActionError;
use crate::key::Key;
use crate::latch::LatchTable;
use crate::mvcc::LockRecord;
use crate::percolator;
use crate::read::answer_at_once;
use crate::size::{MESSAGE_BYTES_MAX, request_bytes};

use faults::FaultPlan;
use ranged::Ranged;
use topology::Topology;

pub use faults::{Fault, Faults};
pub use timestamps::CountingTso;

/// Requests that may hold or await latches at a time.
const LATCH_CAPACITY: usize = 10_000;

/// See the module documentation. Clones share it.
#[derive(Clone)]
pub struct MemoryCluster {
    shared: Arc<Shared>,
}

struct Shared {
    store: MemoryStore,
    latches: LatchTable,
    topology: Mutex<Topology>,
    faults: Mutex<FaultPlan>,
    tso: Arc<CountingTso>,
    calls: AtomicU64,
    max_proposal_bytes: usize,
}

/// Describes a [`MemoryCluster`] to be built.
#[derive(Clone, Debug)]
pub struct MemoryClusterBuilder {
    stores: u64,
    splits: Vec<Key>,
    faults: Faults,
    ms_per_timestamp: u64,
    max_proposal_bytes: usize,
}

impl MemoryClusterBuilder {
    /// How many stores, at least 1; they are numbered from 1. Every region has a replica on each, and leaders are spread over them.
    pub fn stores(mut self, stores: u64) -> Self {
        self.stores = stores.max(1);
        self
    }

    /// A boundary between two regions, in the form that transactions use.
    pub fn split_at(mut self, key: Key) -> Self {
        self.splits.push(key);
        self
    }

    /// Trouble by a seed.
    pub fn faults(mut self, faults: Faults) -> Self {
        self.faults = faults;
        self
    }

    /// Milliseconds that pass with every call for timestamps; 0 unless told. Otherwise time stands until
    /// [`CountingTso::advance_ms`] is called, and no lock expires.
    pub fn ms_per_timestamp(mut self, ms: u64) -> Self {
        self.ms_per_timestamp = ms;
        self
    }

    /// The most bytes that one write may change; like a real store's, 8 MiB unless told.
    pub fn max_proposal_bytes(mut self, bytes: usize) -> Self {
        self.max_proposal_bytes = bytes;
        self
    }

    /// The cluster.
    pub fn build(self) -> MemoryCluster {
        let shared = Shared {
            store: MemoryStore::new(),
            latches: LatchTable::new(LATCH_CAPACITY),
            topology: Mutex::new(Topology::new(self.stores, &self.splits)),
            faults: Mutex::new(FaultPlan::new(self.faults)),
            tso: Arc::new(CountingTso::new(self.ms_per_timestamp)),
            calls: AtomicU64::new(0),
            max_proposal_bytes: self.max_proposal_bytes,
        };
        MemoryCluster { shared: Arc::new(shared) }
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

    /// Starts a description: one store, one region, no faults, time stands still.
    pub fn builder() -> MemoryClusterBuilder {
        MemoryClusterBuilder {
            stores: 1,
            splits: Vec::new(),
            faults: Faults::none(),
            ms_per_timestamp: 0,
            max_proposal_bytes: StoreConfig::default().max_proposal_bytes,
        }
    }

    /// The cluster's source of timestamps.
    pub fn tso(&self) -> Arc<CountingTso> {
        Arc::clone(&self.shared.tso)
    }

    /// A timestamp, without waiting.
    pub fn timestamp(&self) -> Timestamp {
        self.shared.tso.next()
    }

    /// The next calls each meet one of these, in this order, before any fault by the seed.
    pub fn inject(&self, faults: impl IntoIterator<Item = Fault>) {
        self.shared.faults.lock().inject(faults);
    }

    /// Replaces the faults that come by the seed; [`Faults::none`] heals the cluster, and forgets requests that were to be repeated.
    pub fn set_faults(&self, faults: Faults) {
        *self.shared.faults.lock() = FaultPlan::new(faults);
    }

    /// Splits the region that holds `key`, which becomes the first key of a new region. Nothing happens if it is one already.
    pub fn split(&self, key: &Key) {
        self.shared.topology.lock().split(&key.to_storage());
    }

    /// Makes `store` the leader of the region that holds `key`. Nothing happens if there is no such store.
    pub fn move_leader(&self, key: &Key, store: StoreId) {
        self.shared.topology.lock().move_leader(&key.to_storage(), store);
    }

    /// The regions, by range, as their leaders see them.
    pub fn regions(&self) -> Vec<RegionStatus> {
        self.shared.topology.lock().regions()
    }

    /// How many requests have been sent, whatever became of them.
    pub fn calls(&self) -> u64 {
        self.shared.calls.load(Ordering::Relaxed)
    }

    /// The data, for a test to look into.
    pub fn store(&self) -> &MemoryStore {
        &self.shared.store
    }

    /// Every lock there is, by key: none should be left when all transactions have ended and readers have passed.
    pub fn locks(&self) -> Result<Vec<LockInfo>, ActionError> {
        let snapshot = self.shared.store.snapshot();
        let mut cursor = snapshot.cursor(Cf::Lock, b"", b"")?;
        let mut locks = Vec::new();
        let mut found = cursor.seek_to_first()?;
        while found {
            locks.push(LockRecord::decode(cursor.value())?.info(Key::from_storage(cursor.key())?));
            found = cursor.next()?;
        }
        Ok(locks)
    }

    /// A call as the network and the stores treat it.
    async fn call_with_faults(&self, store: StoreId, request: Request) -> Result<Response, CallError> {
        self.shared.calls.fetch_add(1, Ordering::Relaxed);
        let (fault, delay, due) = {
            let mut plan = self.shared.faults.lock();
            let topology = self.shared.topology.lock();
            (plan.draw(&request, &topology), plan.draw_delay(), plan.take_due())
        };
        if delay > Duration::ZERO {
            tokio::time::sleep(delay).await;
        }
        for (store, request) in due {
            // A request that arrives twice: nobody waits for this answer.
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
            Some(Fault::Repeat) => {
                self.shared.faults.lock().repeat_later(store, request.clone());
                Ok(self.execute(store, &request).await?)
            }
            Some(Fault::MoveLeader(to)) => {
                self.shared.topology.lock().move_leader_of(request.context.region, to);
                Ok(self.execute(store, &request).await?)
            }
            Some(Fault::Split(key)) => {
                self.split(&key);
                Ok(self.execute(store, &request).await?)
            }
        }
    }

    /// What a faultless store does with a request.
    async fn execute(&self, store: StoreId, request: &Request) -> Result<Response, ServerError> {
        let (bytes, limit) = (request_bytes(&request.body), MESSAGE_BYTES_MAX);
        if bytes > limit {
            return Err(ServerError::TooLarge { bytes, limit });
        }
        if request.body.is_write() {
            return self.write(store, request).await;
        }
        let reader = self.reader(store, request)?;
        Ok(answer_at_once(&reader, &request.body)?)
    }

    async fn write(&self, store: StoreId, request: &Request) -> Result<Response, ServerError> {
        self.shared.topology.lock().check(store, request)?;
        let Ok(_latches) = self.shared.latches.acquire(&request.body.keys()).await else {
            return Err(RegionError::ServerBusy { store, what: "latches".to_owned() }.into());
        };
        let reader = self.reader(store, request)?;
        let (batch, response) = percolator::evaluate(&reader, &request.body)?;
        let (bytes, limit) = (batch.size(), self.shared.max_proposal_bytes);
        if bytes > limit {
            return Err(ServerError::TooLarge { bytes, limit });
        }
        // A real store replicates here: others run meanwhile, and meet our latches.
        tokio::task::yield_now().await;
        self.shared.store.write(&batch).map_err(|error| ServerError::Failed(error.to_string()))?;
        Ok(response)
    }

    /// A snapshot of the region that the request names, if it may be served on this store.
    fn reader(&self, store: StoreId, request: &Request) -> Result<Ranged, RegionError> {
        let region = self.shared.topology.lock().check(store, request)?;
        Ok(Ranged::new(self.shared.store.snapshot(), region))
    }
}

impl Endpoint for MemoryCluster {
    fn call(&self, store: StoreId, request: Request) -> BoxFuture<'_, Result<Response, CallError>> {
        Box::pin(self.call_with_faults(store, request))
    }

    fn locate(&self, store: StoreId, key: Vec<u8>) -> BoxFuture<'_, Result<Option<RegionStatus>, CallError>> {
        Box::pin(async move {
            if self.shared.faults.lock().draw_unreachable() {
                return Err(CallError::Unreachable { store, why: "injected".to_owned() });
            }
            Ok(self.shared.topology.lock().locate(store, &key))
        })
    }

    fn stores(&self) -> Vec<StoreId> {
        self.shared.topology.lock().stores()
    }
}

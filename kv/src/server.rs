//! The key-value server of a store: executes requests of this process or of the network adapter.
//!
//! It enforces the limits of admission: the number and the bytes of requests in flight, the writes that wait for
//! latches, the reads in the pool and the bytes of their results. A request above a limit is refused with `ServerBusy`,
//! and the client backs off. A part of the requests in flight is left to writes and heartbeats, which reads therefore
//! never crowd out, and in the pool the lowest level is shed first.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use prometheus::Registry;
use raftstore::{RegionContext, RegionError, RegionStatus};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tso::Timestamp;

use crate::api::{Request, Response, Served, ServerError};
use crate::concurrency::{ConcurrencyManager, TimestampSource};
use crate::grants::{GrantMetrics, Grants, GrantsConfig};
use crate::key::Key;
use crate::locks::{RowLockStatus, RowLocksConfig};
use crate::metrics::{Kind, ServerMetrics};
#[cfg(feature = "planted-bugs")]
use crate::planted::PlantedBug;
use crate::read::{ReadConfig, ReadExecutor};
use crate::read_pool::{PoolConfig, ReadPool, Workers};
use crate::region_store::RegionStore;
use crate::scheduler::Scheduler;
use crate::size::request_bytes;

/// Settings of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KvServerConfig {
    /// The most requests in flight, of which reads are at most three quarters. Default 4096, minimum 1.
    pub max_in_flight: usize,
    /// The most bytes of requests in flight. Default 256 MiB, minimum 1. A larger request counts as this much, so it
    /// runs alone.
    pub max_in_flight_bytes: u32,
    /// The most writes that hold latches or wait for them. Default 2048, minimum 1.
    pub latch_capacity: usize,
    /// The read pool. Reads that take long, or must read a file, run there.
    pub pool: PoolConfig,
    /// The sizes of pages and of the slices in which they are read.
    pub reads: ReadConfig,
    /// How replicas get what lets them serve reads.
    pub grants: GrantsConfig,
    /// The row locks in memory.
    pub row_locks: RowLocksConfig,
    /// A deliberate bug, so that a test can prove that it finds it.
    #[cfg(feature = "planted-bugs")]
    pub planted_bug: Option<PlantedBug>,
}

impl Default for KvServerConfig {
    fn default() -> KvServerConfig {
        KvServerConfig {
            max_in_flight: 4096,
            max_in_flight_bytes: 256 << 20,
            latch_capacity: 2048,
            pool: PoolConfig::default(),
            reads: ReadConfig::default(),
            grants: GrantsConfig::default(),
            row_locks: RowLocksConfig::default(),
            #[cfg(feature = "planted-bugs")]
            planted_bug: None,
        }
    }
}

/// Why a server could not be created.
#[derive(Debug, thiserror::Error)]
pub enum KvServerError {
    /// A setting is below its minimum.
    #[error("kv server: {0} must be at least 1")]
    Config(&'static str),
    /// The metrics could not be registered. A registry holds the metrics of one server.
    #[error("kv server: {0}")]
    Metrics(#[from] prometheus::Error),
}

impl KvServerConfig {
    /// Checks every setting against its minimum.
    ///
    /// # Errors
    ///
    /// [`KvServerError::Config`] with the name of the first setting below its minimum.
    pub fn validate(&self) -> Result<(), KvServerError> {
        let minimums = [
            ("max_in_flight", self.max_in_flight >= 1),
            ("max_in_flight_bytes", self.max_in_flight_bytes >= 1),
            ("latch_capacity", self.latch_capacity >= 1),
            (
                "pool.workers",
                !matches!(self.pool.workers, Workers::Threads { reads: 0, .. } | Workers::Threads { scans: 0, .. }),
            ),
            ("row_locks.capacity", self.row_locks.capacity >= 1),
            ("pool.jobs", self.pool.jobs >= 1),
            ("pool.result_bytes", self.pool.result_bytes >= 1),
        ];
        match minimums.into_iter().find(|(_, valid)| !valid) {
            Some((name, _)) => Err(KvServerError::Config(name)),
            None => Ok(()),
        }
    }
}

/// The server of one store. Clones share its limits, latches and metrics.
///
/// Any task of the process may call it; it needs a tokio runtime. A store must have one server: latches exclude only
/// the writes of the same server.
#[derive(Clone)]
pub struct KvServer<H: RegionStore> {
    store: H,
    reads: ReadExecutor<H>,
    writes: Scheduler<H>,
    grants: Grants<H>,
    admission: Admission,
    metrics: Arc<ServerMetrics>,
}

impl<H: RegionStore> KvServer<H> {
    /// A server over `store` that counts into `registry`. `timestamps` is where it learns what the oracle has issued.
    ///
    /// # Errors
    ///
    /// [`KvServerError::Config`] if a setting is below its minimum; [`KvServerError::Metrics`] if `registry` already
    /// holds the metrics of a server.
    pub fn new(
        store: H,
        timestamps: Arc<dyn TimestampSource>,
        config: &KvServerConfig,
        registry: &Registry,
    ) -> Result<KvServer<H>, KvServerError> {
        config.validate()?;
        let concurrency = ConcurrencyManager::new(timestamps);
        #[cfg(feature = "planted-bugs")]
        let concurrency = concurrency.with_planted_bug(config.planted_bug);
        let metrics = Arc::new(ServerMetrics::new(registry)?);
        let pool = ReadPool::new(&config.pool, metrics.pool.clone());
        let continued = metrics.continued_scans.clone();
        let grants = Grants::new(store.clone(), concurrency.clone(), config.grants, GrantMetrics::new(registry)?);
        #[cfg(feature = "planted-bugs")]
        let grants = grants.with_planted_bug(config.planted_bug);
        let reads = ReadExecutor::new(store.clone(), concurrency.clone(), pool.clone(), config.reads, continued);
        let reads = reads.with_grants(grants.clone());
        #[cfg(feature = "planted-bugs")]
        let reads = reads.with_planted_bug(config.planted_bug);
        let writes = Scheduler::new(store.clone(), concurrency, config.latch_capacity, pool);
        let writes = writes.with_row_locks(config.row_locks).with_lock_waits(metrics.lock_waits.clone());
        #[cfg(feature = "planted-bugs")]
        let writes = writes.with_planted_bug(config.planted_bug);
        store.set_leader_memory(writes.leader_memory());
        Ok(KvServer { reads, writes, grants, store, admission: Admission::new(config), metrics })
    }

    /// Executes a request. Must be polled within a tokio runtime. Takes as long as replication or the read index takes:
    /// the caller sets a timeout.
    ///
    /// # Errors
    ///
    /// - [`ServerError::Region`]: this store cannot serve the region now (not the leader, another epoch, fenced), or a
    ///   limit is reached (`ServerBusy`). The request had no effect.
    /// - [`ServerError::Key`]: the evaluation refused the request; see each action in [`crate::percolator`]. It had no
    ///   effect.
    /// - [`ServerError::Undetermined`]: a write was proposed and its outcome is unknown.
    /// - [`ServerError::TooLarge`], [`ServerError::Invalid`]: the request had no effect, and a retry is refused too.
    /// - [`ServerError::Failed`]: the store failed before it changed anything.
    ///
    /// # Cancel safety
    ///
    /// The future may be dropped at any time. A write that is not proposed yet has no effect. A proposed write
    /// continues, keeps its latches and counts as in flight until it is applied or lost.
    pub async fn handle(&self, request: Request) -> Result<Response, ServerError> {
        let kind = Kind::of(&request.body);
        let started = now();
        let result = match self.admission.try_acquire(!request.body.is_read(), request_bytes(&request.body)) {
            Ok(permit) => self.execute(request, permit).await,
            Err(limit) => {
                let store = self.store.store_id();
                Err(RegionError::ServerBusy { store, what: limit.to_owned() }.into())
            }
        };
        if let Err(ServerError::Failed(why)) = &result {
            tracing::error!(why, "a request failed");
        }
        self.metrics.observe(kind, &result, now().duration_since(started).as_secs_f64());
        result
    }

    /// Executes a point read of a key, given with its storage form, within this call. It waits for nothing and is not
    /// counted as in flight. Returns `None` for every outcome but a value or its absence: [`KvServer::handle`] then
    /// finds out.
    pub fn try_get(&self, context: RegionContext, key: (&Key, &[u8]), start_ts: Timestamp) -> Option<Option<Bytes>> {
        let value = self.reads.try_get(context, key, start_ts)?.ok()?;
        self.metrics.count_inline_get();
        Some(value)
    }

    /// Executes a point read at this store's replica within this call, whoever leads: at `start_ts`, or, if that is
    /// [`Timestamp::ZERO`], at the newest snapshot at or above `floor`. Otherwise as [`KvServer::try_get`].
    pub fn try_replica_get(
        &self,
        context: RegionContext,
        key: (&Key, &[u8]),
        start_ts: Timestamp,
        floor: Option<Timestamp>,
    ) -> Option<(Option<Bytes>, Served)> {
        let read = self.reads.try_replica_get(context, key, start_ts, floor)?;
        self.metrics.count_inline_get();
        Some(read)
    }

    /// The grants of this store: to be connected with the other stores, and run.
    pub fn grants(&self) -> &Grants<H> {
        &self.grants
    }

    /// The region that has a replica on this store and holds the storage key; `None` if there is none. The replica may
    /// be a follower and may lag. Does not block.
    pub fn locate(&self, key: &[u8]) -> Option<RegionStatus> {
        self.store.locate(key)
    }

    /// At most `limit` row locks of the regions that this store leads, with who waits for them, and the number of all.
    /// Rows that somebody waits for come first.
    pub fn row_locks(&self, limit: usize) -> (Vec<RowLockStatus>, usize) {
        self.writes.row_locks(limit)
    }

    async fn execute(&self, request: Request, permit: Permit) -> Result<Response, ServerError> {
        let in_flight = InFlightGuard::new(&self.metrics, permit);
        match &request.body {
            body if !body.is_read() => self.writes.run(request, in_flight).await,
            _ => {
                let _in_flight = in_flight;
                let mut answer = self.reads.run(request).await;
                if let Ok(Response::Replica { served, .. }) = &mut answer {
                    served.load = u32::try_from(self.metrics.in_flight.get()).unwrap_or(0);
                }
                answer
            }
        }
    }
}

/// Of the requests in flight, one in so many is left to writes.
const WRITE_RESERVE: usize = 4;

/// Limits the requests in flight by number and by bytes. Clones share the limits.
#[derive(Clone)]
struct Admission {
    requests: Arc<Semaphore>,
    /// Those that may be reads.
    reads: Arc<Semaphore>,
    bytes: Arc<Semaphore>,
    bytes_max: u32,
}

/// The share of one request in the limits. Returned when dropped.
struct Permit {
    _read: Option<OwnedSemaphorePermit>,
    _request: OwnedSemaphorePermit,
    _bytes: OwnedSemaphorePermit,
}

impl Admission {
    fn new(config: &KvServerConfig) -> Admission {
        let bytes_max = config.max_in_flight_bytes;
        Admission {
            requests: Arc::new(Semaphore::new(config.max_in_flight)),
            reads: Arc::new(Semaphore::new(config.max_in_flight - config.max_in_flight / WRITE_RESERVE)),
            bytes: Arc::new(Semaphore::new(bytes_max as usize)),
            bytes_max,
        }
    }

    /// A permit for a request of `bytes`, or the name of the limit that is reached.
    fn try_acquire(&self, is_write: bool, bytes: usize) -> Result<Permit, &'static str> {
        let read = match is_write {
            true => None,
            false => Some(Arc::clone(&self.reads).try_acquire_owned().map_err(|_| "reads")?),
        };
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX).min(self.bytes_max);
        let request = Arc::clone(&self.requests).try_acquire_owned().map_err(|_| "requests")?;
        let bytes = Arc::clone(&self.bytes).try_acquire_many_owned(bytes).map_err(|_| "bytes of requests")?;
        Ok(Permit { _read: read, _request: request, _bytes: bytes })
    }
}

/// Counts one request as in flight until dropped.
struct InFlightGuard {
    metrics: Arc<ServerMetrics>,
    _permit: Permit,
}

impl InFlightGuard {
    fn new(metrics: &Arc<ServerMetrics>, permit: Permit) -> InFlightGuard {
        metrics.in_flight.inc();
        InFlightGuard { metrics: Arc::clone(metrics), _permit: permit }
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.metrics.in_flight.dec();
    }
}

#[expect(clippy::disallowed_methods, reason = "the server is an edge: it measures the latency of requests")]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests;

//! The key-value server of a store: takes requests from this process or from the network adapter, carries them out, answers.
//!
//! Here are the limits: how many requests are in flight, how many wait for latches or for the read pool. What is above one is refused with
//! `ServerBusy`, which the client answers by backing off.

use std::sync::Arc;
use std::time::Instant;

use prometheus::Registry;
use raftstore::{RegionError, RegionStatus};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::api::{Request, Response, ServerError};
use crate::metrics::{Kind, ServerMetrics};
use crate::port::RegionStore;
use crate::read::Reads;
use crate::read_pool::ReadPool;
use crate::scheduler::Scheduler;

/// Settings of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KvServerConfig {
    /// Requests carried out at a time. Default 4096, minimum 1.
    pub max_in_flight: usize,
    /// Writes that hold latches or wait for them at a time. Default 2048, minimum 1.
    pub latch_capacity: usize,
    /// Long reads at a time. Default 4, minimum 1.
    pub read_threads: usize,
    /// Long reads that wait for a thread. Default 256.
    pub read_queue: usize,
}

impl Default for KvServerConfig {
    fn default() -> KvServerConfig {
        KvServerConfig { max_in_flight: 4096, latch_capacity: 2048, read_threads: 4, read_queue: 256 }
    }
}

/// Why a server could not be made.
#[derive(Debug, thiserror::Error)]
pub enum KvServerError {
    /// A setting is below its minimum.
    #[error("kv server: {0} must be at least 1")]
    Config(&'static str),
    /// The metrics could not be registered: there is one server per registry.
    #[error("kv server: {0}")]
    Metrics(#[from] prometheus::Error),
}

impl KvServerConfig {
    /// Refuses values below their minimum.
    pub fn validate(&self) -> Result<(), KvServerError> {
        let minimums = [
            ("max_in_flight", self.max_in_flight),
            ("latch_capacity", self.latch_capacity),
            ("read_threads", self.read_threads),
        ];
        match minimums.into_iter().find(|(_, value)| *value == 0) {
            Some((name, _)) => Err(KvServerError::Config(name)),
            None => Ok(()),
        }
    }
}

/// Serves one store. Clones share it.
#[derive(Clone)]
pub struct KvServer<H: RegionStore> {
    store: H,
    reads: Reads<H>,
    writes: Scheduler<H>,
    permits: Arc<Semaphore>,
    metrics: Arc<ServerMetrics>,
}

impl<H: RegionStore> KvServer<H> {
    /// A server over a store.
    pub fn new(store: H, config: &KvServerConfig, registry: &Registry) -> Result<KvServer<H>, KvServerError> {
        config.validate()?;
        let pool = ReadPool::new(config.read_threads, config.read_queue);
        Ok(KvServer {
            reads: Reads::new(store.clone(), pool.clone()),
            writes: Scheduler::new(store.clone(), config.latch_capacity, pool),
            store,
            permits: Arc::new(Semaphore::new(config.max_in_flight)),
            metrics: Arc::new(ServerMetrics::new(registry)?),
        })
    }

    /// Carries out a request. May be dropped at any time: a write that is being replicated goes on to its end. Must be polled within a
    /// tokio runtime.
    pub async fn handle(&self, request: Request) -> Result<Response, ServerError> {
        let kind = Kind::of(&request.body);
        let begun = now();
        let result = match Arc::clone(&self.permits).try_acquire_owned() {
            Ok(permit) => self.carry_out(request, permit).await,
            Err(_) => {
                let store = self.store.store_id();
                Err(RegionError::ServerBusy { store, what: "requests".to_owned() }.into())
            }
        };
        if let Err(ServerError::Failed(why)) = &result {
            tracing::error!(why, "a request failed");
        }
        self.metrics.observe(kind, &result, begun.elapsed().as_secs_f64());
        result
    }

    /// The region with a replica here whose range holds a storage key.
    pub fn locate(&self, key: &[u8]) -> Option<RegionStatus> {
        self.store.locate(key)
    }

    async fn carry_out(&self, request: Request, permit: OwnedSemaphorePermit) -> Result<Response, ServerError> {
        let in_flight = InFlight::new(&self.metrics, permit);
        if request.body.is_write() {
            self.writes.run(request, in_flight).await
        } else {
            let _in_flight = in_flight;
            self.reads.run(request).await
        }
    }
}

/// One request in flight, as long as it lives.
struct InFlight {
    metrics: Arc<ServerMetrics>,
    _permit: OwnedSemaphorePermit,
}

impl InFlight {
    fn new(metrics: &Arc<ServerMetrics>, permit: OwnedSemaphorePermit) -> InFlight {
        metrics.in_flight.inc();
        InFlight { metrics: Arc::clone(metrics), _permit: permit }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.metrics.in_flight.dec();
    }
}

#[expect(clippy::disallowed_methods, reason = "the server is an edge: it measures how long requests take")]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests;

//! The key-value server of a store: takes requests from this process or from the network adapter, carries them out, answers.
//!
//! Here are the limits: how many requests are in flight and how many bytes they hold, how many wait for latches or for the read pool. What is
//! above one is refused with `ServerBusy`, which the client answers by backing off.

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
use crate::size::request_bytes;

/// Settings of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KvServerConfig {
    /// Requests carried out at a time. Default 4096, minimum 1.
    pub max_in_flight: usize,
    /// Bytes of the requests carried out at a time. Default 256 MiB, minimum 1; a request that is larger counts as this much, so that it is
    /// carried out alone.
    pub max_in_flight_bytes: u32,
    /// Writes that hold latches or wait for them at a time. Default 2048, minimum 1.
    pub latch_capacity: usize,
    /// Long reads at a time. Default 4, minimum 1.
    pub read_threads: usize,
    /// Long reads that wait for a thread. Default 256.
    pub read_queue: usize,
}

impl Default for KvServerConfig {
    fn default() -> KvServerConfig {
        KvServerConfig {
            max_in_flight: 4096,
            max_in_flight_bytes: 256 << 20,
            latch_capacity: 2048,
            read_threads: 4,
            read_queue: 256,
        }
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
            ("max_in_flight", self.max_in_flight >= 1),
            ("max_in_flight_bytes", self.max_in_flight_bytes >= 1),
            ("latch_capacity", self.latch_capacity >= 1),
            ("read_threads", self.read_threads >= 1),
        ];
        match minimums.into_iter().find(|(_, fine)| !fine) {
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
    permits: Permits,
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
            permits: Permits::new(config),
            metrics: Arc::new(ServerMetrics::new(registry)?),
        })
    }

    /// Carries out a request. May be dropped at any time: a write that is being replicated goes on to its end. Must be polled within a
    /// tokio runtime.
    pub async fn handle(&self, request: Request) -> Result<Response, ServerError> {
        let kind = Kind::of(&request.body);
        let begun = now();
        let result = match self.permits.take(request_bytes(&request.body)) {
            Ok(permit) => self.carry_out(request, permit).await,
            Err(what) => {
                let store = self.store.store_id();
                Err(RegionError::ServerBusy { store, what: what.to_owned() }.into())
            }
        };
        if let Err(ServerError::Failed(why)) = &result {
            tracing::error!(why, "a request failed");
        }
        self.metrics.observe(kind, &result, now().duration_since(begun).as_secs_f64());
        result
    }

    /// The region with a replica here whose range holds a storage key.
    pub fn locate(&self, key: &[u8]) -> Option<RegionStatus> {
        self.store.locate(key)
    }

    async fn carry_out(&self, request: Request, permit: Permit) -> Result<Response, ServerError> {
        let in_flight = InFlight::new(&self.metrics, permit);
        if request.body.is_write() {
            self.writes.run(request, in_flight).await
        } else {
            let _in_flight = in_flight;
            self.reads.run(request).await
        }
    }
}

/// What may be in flight, by number and by bytes. Clones share it.
#[derive(Clone)]
struct Permits {
    requests: Arc<Semaphore>,
    bytes: Arc<Semaphore>,
    bytes_max: u32,
}

/// The place of one request among those in flight.
struct Permit {
    _request: OwnedSemaphorePermit,
    _bytes: OwnedSemaphorePermit,
}

impl Permits {
    fn new(config: &KvServerConfig) -> Permits {
        let bytes_max = config.max_in_flight_bytes;
        Permits {
            requests: Arc::new(Semaphore::new(config.max_in_flight)),
            bytes: Arc::new(Semaphore::new(bytes_max as usize)),
            bytes_max,
        }
    }

    /// A place for a request of `bytes`, or the name of the limit that is reached.
    fn take(&self, bytes: usize) -> Result<Permit, &'static str> {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX).min(self.bytes_max);
        let request = Arc::clone(&self.requests).try_acquire_owned().map_err(|_| "requests")?;
        let bytes = Arc::clone(&self.bytes).try_acquire_many_owned(bytes).map_err(|_| "bytes of requests")?;
        Ok(Permit { _request: request, _bytes: bytes })
    }
}

/// One request in flight, as long as it lives.
struct InFlight {
    metrics: Arc<ServerMetrics>,
    _permit: Permit,
}

impl InFlight {
    fn new(metrics: &Arc<ServerMetrics>, permit: Permit) -> InFlight {
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

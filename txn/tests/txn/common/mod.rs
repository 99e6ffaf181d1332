//! Shared parts of the integration tests: an in-memory cluster, an oracle on tokio's (paused) clock, faulty endpoints.
//!
//! Tests run on one thread with paused time, so the seed determines a run, and waits take no real time.

pub(crate) mod endpoints;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use kv::Key;
use kv::api::LockInfo;
use kv::client::{Client, ClientConfig, Endpoint};
use kv::concurrency::TimestampSource;
use kv::memory::{Faults, MemoryCluster, MemoryClusterBuilder};
use parking_lot::Mutex;
use prometheus::Registry;
use tokio::time::Instant;
use tso::{NewestTimestamp, Timestamp, TsRange, TsoClient, TsoError, TsoSource};
use txn::{CommitLimits, Database, TxnConfig};

/// An oracle whose physical time is tokio's clock.
pub(crate) struct VirtualTso {
    started: Instant,
    last: Mutex<Timestamp>,
    calls: AtomicU64,
}

impl VirtualTso {
    #[allow(clippy::disallowed_methods, reason = "tokio's time is paused in these tests")]
    pub(crate) fn new() -> Arc<VirtualTso> {
        Arc::new(VirtualTso { started: Instant::now(), last: Mutex::new(Timestamp::ZERO), calls: AtomicU64::new(0) })
    }

    /// The number of timestamps issued.
    pub(crate) fn issued(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }
}

impl TsoSource for VirtualTso {
    #[allow(clippy::disallowed_methods, reason = "tokio's time is paused in these tests")]
    fn allocate(&self, count: u32) -> BoxFuture<'_, Result<TsRange, TsoError>> {
        self.calls.fetch_add(u64::from(count), Ordering::Relaxed);
        let mut last = self.last.lock();
        let now = Timestamp::new(1_000_000 + self.started.elapsed().as_millis() as u64, 0);
        *last = Timestamp::from_raw(now.max(*last).raw() + u64::from(count));
        Box::pin(std::future::ready(Ok(TsRange { last: *last, count })))
    }
}

impl TimestampSource for VirtualTso {
    fn timestamp(&self) -> BoxFuture<'_, Result<Timestamp, TsoError>> {
        Box::pin(async { self.allocate(1).await.map(|range| range.last) })
    }

    fn newest(&self) -> NewestTimestamp {
        NewestTimestamp { timestamp: *self.last.lock(), age: Duration::ZERO }
    }
}

/// Three stores; regions split at `b`, `c` and `d`.
pub(crate) fn builder(faults: Faults) -> MemoryClusterBuilder {
    let stores = MemoryCluster::builder().stores(3);
    ["b", "c", "d"].into_iter().fold(stores, |builder, at| builder.split_at(key(at))).faults(faults)
}

/// A cluster of [`builder`].
pub(crate) fn cluster(faults: Faults) -> MemoryCluster {
    builder(faults).build()
}

/// A database over an endpoint.
pub(crate) fn database(endpoint: Arc<dyn Endpoint>, tso: Arc<dyn TsoSource>, config: TxnConfig) -> Database {
    let registry = Registry::new();
    let client =
        Client::with_config(endpoint, ClientConfig { seed: config.seed, ..ClientConfig::default() }, &registry);
    let client = client.expect("valid settings");
    Database::with_config(client, TsoClient::new(tso), config, &registry).expect("valid settings")
}

/// The remaining locks.
pub(crate) fn locks(cluster: &MemoryCluster) -> Vec<LockInfo> {
    cluster.locks().expect("well-formed locks")
}

/// Settings with a fixed seed, which make a run repeatable.
pub(crate) fn seeded(seed: u64) -> TxnConfig {
    TxnConfig { seed: Some(seed), ..TxnConfig::default() }
}

/// Settings with which every transaction is committed in two phases.
pub(crate) fn two_phase(seed: u64) -> TxnConfig {
    let commit = CommitLimits { one_phase: false, async_keys: 0, ..CommitLimits::default() };
    TxnConfig { commit, ..seeded(seed) }
}

pub(crate) fn key(text: &str) -> Key {
    Key::new(text.to_owned())
}

pub(crate) fn value(text: &str) -> Bytes {
    Bytes::from(text.to_owned())
}

/// Runs a test on one thread with paused time. Its runtime is dropped afterwards, with every task that still hangs in
/// it.
pub(crate) fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(async {
        // Without a timeout a hanging run would not report its seed.
        tokio::time::timeout(Duration::from_secs(3_600), test).await.expect("the test hangs")
    })
}

/// A planted bug: timestamps are prefetched, so they may be older than the call that receives them.
pub(crate) struct Prefetching {
    source: Arc<VirtualTso>,
    prefetched: Mutex<(Timestamp, u32)>,
}

impl Prefetching {
    pub(crate) fn new(source: Arc<VirtualTso>) -> Arc<Prefetching> {
        Arc::new(Prefetching { source, prefetched: Mutex::new((Timestamp::ZERO, 0)) })
    }
}

impl TsoSource for Prefetching {
    fn allocate(&self, count: u32) -> BoxFuture<'_, Result<TsRange, TsoError>> {
        Box::pin(async move {
            let needed = self.prefetched.lock().1 < count;
            if needed {
                let range = self.source.allocate(100 + count).await?;
                *self.prefetched.lock() = (Timestamp::from_raw(range.last.raw() - u64::from(range.count)), range.count);
            }
            let mut prefetched = self.prefetched.lock();
            *prefetched = (Timestamp::from_raw(prefetched.0.raw() + u64::from(count)), prefetched.1 - count);
            Ok(TsRange { last: prefetched.0, count })
        })
    }
}

//! What the integration tests share: a cluster in memory, a clock that follows tokio's (paused) time, endpoints that
//! misbehave.
//!
//! Everything runs on one thread with time paused, so a run is determined by its seed, and waits cost nothing.

#![allow(dead_code, reason = "every test binary uses a part of it")]

pub(crate) mod checker;
pub(crate) mod endpoints;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use kv::Key;
use kv::api::LockInfo;
use kv::client::{Client, ClientConfig, Endpoint};
use kv::memory::{Faults, MemoryCluster};
use parking_lot::Mutex;
use prometheus::Registry;
use tokio::time::Instant;
use tso::{Timestamp, TsRange, TsoClient, TsoError, TsoSource};
use txn::{Database, TxnConfig};

/// An oracle whose physical time is tokio's.
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

    /// How many timestamps were issued.
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

/// Three stores; regions split at `b`, `c` and `d`.
pub(crate) fn cluster(faults: Faults) -> MemoryCluster {
    ["b", "c", "d"]
        .into_iter()
        .fold(MemoryCluster::builder().stores(3), |builder, at| builder.split_at(key(at)))
        .faults(faults)
        .build()
}

/// A database over an endpoint.
pub(crate) fn database(endpoint: Arc<dyn Endpoint>, tso: Arc<dyn TsoSource>, config: TxnConfig) -> Database {
    let registry = Registry::new();
    let client =
        Client::with_config(endpoint, ClientConfig { seed: config.seed, ..ClientConfig::default() }, &registry);
    let client = client.expect("valid settings");
    Database::with_config(client, TsoClient::new(tso), config, &registry).expect("valid settings")
}

/// The locks that are left.
pub(crate) fn locks(cluster: &MemoryCluster) -> Vec<LockInfo> {
    cluster.locks().expect("well-formed locks")
}

/// Settings that make a run repeatable.
pub(crate) fn seeded(seed: u64) -> TxnConfig {
    TxnConfig { seed: Some(seed), ..TxnConfig::default() }
}

pub(crate) fn key(text: &str) -> Key {
    Key::new(text.to_owned())
}

pub(crate) fn value(text: &str) -> Bytes {
    Bytes::from(text.to_owned())
}

/// Runs a test on one thread with paused time. The runtime, and with it whatever hangs in it, is gone afterwards.
pub(crate) fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(async {
        // A run that hangs would otherwise never say with which seed.
        tokio::time::timeout(Duration::from_secs(3_600), test).await.expect("the test hangs")
    })
}

/// A planted bug: timestamps are handed out from a stock, so that they may be older than the call that asks for them.
pub(crate) struct Hoarding {
    source: Arc<VirtualTso>,
    stock: Mutex<(Timestamp, u32)>,
}

impl Hoarding {
    pub(crate) fn new(source: Arc<VirtualTso>) -> Arc<Hoarding> {
        Arc::new(Hoarding { source, stock: Mutex::new((Timestamp::ZERO, 0)) })
    }
}

impl TsoSource for Hoarding {
    fn allocate(&self, count: u32) -> BoxFuture<'_, Result<TsRange, TsoError>> {
        Box::pin(async move {
            let needed = self.stock.lock().1 < count;
            if needed {
                let range = self.source.allocate(100 + count).await?;
                *self.stock.lock() = (Timestamp::from_raw(range.last.raw() - u64::from(range.count)), range.count);
            }
            let mut stock = self.stock.lock();
            *stock = (Timestamp::from_raw(stock.0.raw() + u64::from(count)), stock.1 - count);
            Ok(TsRange { last: stock.0, count })
        })
    }
}

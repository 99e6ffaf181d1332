//! A store that takes one write at a time, or none: the client's writes take turns there. None runs out of time while
//! others are taken, and all end soon if none is.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use kv::Key;
use kv::api::{Mutation, MutationOp, Request, Response};
use kv::client::{CallError, Client, ClientConfig, ClientError, Endpoint};
use kv::memory::MemoryCluster;
use prometheus::Registry;
use raftstore::{RegionError, RegionStatus, StoreId};

use super::counter;

/// How long the store takes for a write.
const WORK: Duration = Duration::from_millis(5);
/// Keys of an operation, each in a request of its own.
const KEYS: u32 = 100;

struct OneAtATime {
    cluster: MemoryCluster,
    is_busy: AtomicBool,
    refused: AtomicU64,
}

impl OneAtATime {
    fn new(is_busy: bool) -> Arc<OneAtATime> {
        let (cluster, is_busy) = (MemoryCluster::new(), AtomicBool::new(is_busy));
        Arc::new(OneAtATime { cluster, is_busy, refused: AtomicU64::default() })
    }
}

/// A client of the store that sends each key in a request of its own.
fn client(store: &Arc<OneAtATime>, deadline: Duration, registry: &Registry) -> Client {
    let config = ClientConfig { batch_keys: 1, deadline, seed: Some(1), ..ClientConfig::default() };
    Client::with_config(Arc::<OneAtATime>::clone(store), config, registry).expect("valid settings")
}

fn keys() -> Vec<Key> {
    (0..KEYS).map(|n| Key::new(format!("{n:03}"))).collect()
}

impl Endpoint for OneAtATime {
    fn call(&self, store: StoreId, request: Request) -> BoxFuture<'_, Result<Response, CallError>> {
        Box::pin(async move {
            if self.is_busy.swap(true, Ordering::Relaxed) {
                self.refused.fetch_add(1, Ordering::Relaxed);
                let what = "pending proposals".to_owned();
                return Err(CallError::Server(RegionError::ServerBusy { store, what }.into()));
            }
            tokio::time::sleep(WORK).await;
            self.is_busy.store(false, Ordering::Relaxed);
            self.cluster.call(store, request).await
        })
    }

    fn locate(&self, store: StoreId, key: Vec<u8>) -> BoxFuture<'_, Result<Option<RegionStatus>, CallError>> {
        self.cluster.locate(store, key)
    }

    fn stores(&self) -> Vec<StoreId> {
        self.cluster.stores()
    }
}

/// A transaction of many keys, and the rollback of another one, kept each other from a store until the time of some
/// request was up. The transaction failed and left a rollback of its own, and the next one met the same.
#[tokio::test(start_paused = true)]
async fn writes_to_a_busy_store_take_turns() {
    let (store, registry, keys) = (OneAtATime::new(false), Registry::new(), keys());
    let cluster = &store.cluster;
    // A twentieth of the time that all the work takes.
    let client = client(&store, WORK * 10, &registry);
    let mutations = keys.iter().map(|key| Mutation::new(key.clone(), MutationOp::Delete)).collect();
    let (failed, start_ts) = (cluster.timestamp(), cluster.timestamp());
    let rollback = client.rollback(&keys, failed);
    let prewrite = client.prewrite(mutations, &keys[0], start_ts, || 3_000);
    let (rolled_back, prewritten) = tokio::join!(rollback, prewrite);
    assert_eq!(rolled_back, Ok(()));
    assert!(prewritten.is_ok(), "{prewritten:?}");
    assert_eq!(cluster.locks().expect("well-formed").len(), keys.len());
    let waits = counter(&registry, "cortado_kv_client_waits_total");
    let refused = store.refused.load(Ordering::Relaxed);
    println!("{waits} waits, {refused} refusals");
    assert!(waits >= u64::from(KEYS), "{waits} waits");
    // The first ones, which left at once, and then a few as the bound is tried.
    assert!(refused < u64::from(KEYS), "{refused} refusals");
}

/// The one whose turn it is runs out of time. Then the others do not wait for their turns.
#[tokio::test(start_paused = true)]
async fn writes_to_a_store_that_stays_busy_end_soon() {
    let (store, registry) = (OneAtATime::new(true), Registry::new());
    let deadline = Duration::from_secs(20);
    let (client, failed) = (client(&store, deadline, &registry), store.cluster.timestamp());
    let keys = keys();
    let rollbacks = keys.iter().map(|key| client.rollback(std::slice::from_ref(key), failed));
    let all = tokio::time::timeout(deadline * 3, futures::future::join_all(rollbacks)).await;
    for outcome in all.expect("not one deadline after the other") {
        assert!(matches!(outcome, Err(ClientError::Unavailable { .. })), "{outcome:?}");
    }
}

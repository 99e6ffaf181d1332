//! The production client against a store that does not serve any more: it asks another replica and does not wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use kv::Key;
use kv::api::{Mutation, MutationOp, Request, RequestBody, Response};
use kv::client::{CallError, Client, ClientConfig, ClientError, Endpoint};
use prometheus::Registry;
use raftstore::{RegionStatus, StoreId};
use tso::Timestamp;

use super::stores::{RunningStores, Stores};

/// The most requests that reach a poisoned store. Two are refused before an election can have ended; each of the few
/// rounds until then asks it once.
const CALLS_MAX: usize = 100;

/// Calls the servers in this process, and counts the calls to one store. The poisoned store is the nearest.
struct InProcess {
    stores: Arc<RunningStores>,
    poisoned: StoreId,
    calls: AtomicUsize,
}

impl Endpoint for InProcess {
    fn call(&self, store: StoreId, request: Request) -> BoxFuture<'_, Result<Response, CallError>> {
        if store == self.poisoned {
            self.calls.fetch_add(1, Ordering::Relaxed);
        }
        Box::pin(async move {
            let gone = || CallError::Unreachable { store, why: "it does not run".to_owned() };
            Ok(self.stores.server(store).ok_or_else(gone)?.handle(request).await?)
        })
    }

    fn locate(&self, store: StoreId, key: Vec<u8>) -> BoxFuture<'_, Result<Option<RegionStatus>, CallError>> {
        Box::pin(std::future::ready(Ok(self.stores.server(store).and_then(|server| server.locate(&key)))))
    }

    fn stores(&self) -> Vec<StoreId> {
        let others = self.stores.ids().into_iter().filter(|store| *store != self.poisoned);
        std::iter::once(self.poisoned).chain(others).collect()
    }
}

/// A client over `endpoint`. Its deadline is far above the time that an election takes, and an operation that waits for
/// the poisoned store until then fails.
fn client(endpoint: &Arc<InProcess>) -> Client {
    let config = ClientConfig { deadline: Duration::from_secs(20), seed: Some(1), ..ClientConfig::default() };
    Client::with_config(endpoint.clone(), config, &Registry::new()).expect("valid settings")
}

/// Sets a key in a transaction of its own, which commits at 3.
async fn set(client: &Client, key: &Key, value: &Bytes) -> Result<(), ClientError> {
    let (start_ts, commit_ts) = (Timestamp::new(2, 0), Timestamp::new(3, 0));
    let put = Mutation::new(key.clone(), MutationOp::Put(value.clone()));
    client.prewrite(vec![put], key, start_ts, || 60_000).await?;
    client.commit_primary(key, &[], start_ts, commit_ts).await.map(drop)
}

/// Regression: a poisoned store answered "not ready" before it looked at its role, and the client stayed with it until
/// its deadline. One client meets the poisoned store with a read, the other one with a write.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn client_leaves_a_poisoned_leader() {
    let stores = Stores::start(3, Key::from_static(b"m"));
    let running = stores.running();
    let small = super::client::Client::new(stores.running());
    let (key, start_ts, value) = (Key::from_static(b"a"), Timestamp::new(1, 0), Bytes::from_static(b"v"));
    let body = RequestBody::Get { key: key.clone(), start_ts, pass: Vec::new() };
    let poisoned = small.leader_according_to(StoreId::new(1), &key, body).await.expect("a leader");

    let endpoints =
        [(); 2].map(|()| Arc::new(InProcess { stores: running.clone(), poisoned, calls: AtomicUsize::new(0) }));
    let clients = endpoints.each_ref().map(client);
    for client in &clients {
        assert_eq!(client.get(&key, start_ts).await, Ok(None));
    }
    running.handle(poisoned).expect("it runs").poison("planted");
    let [reader, writer] = &clients;
    let (read, written) = tokio::join!(reader.get(&key, start_ts), set(writer, &key, &value));
    assert_eq!((read, written), (Ok(None), Ok(())));
    let calls = || endpoints.each_ref().map(|endpoint| endpoint.calls.load(Ordering::Relaxed));
    let asked = calls();
    assert!(asked.iter().all(|calls| *calls < CALLS_MAX), "{asked:?} calls to the poisoned store");

    // The routes are learned: the poisoned store is not asked again.
    for _ in 0..10 {
        for client in &clients {
            assert_eq!(client.get(&key, Timestamp::new(4, 0)).await, Ok(Some(value.clone())));
        }
    }
    assert_eq!(calls(), asked);
}

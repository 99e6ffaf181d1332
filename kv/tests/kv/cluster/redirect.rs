//! The production client against a store that does not serve any more: it asks another replica and does not wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use kv::Key;
use kv::api::{Request, RequestBody, Response};
use kv::client::{CallError, Client, ClientConfig, Endpoint};
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

/// Regression: a poisoned store answered "not ready" before it looked at its role, and the client stayed with it until
/// its deadline.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn client_leaves_a_poisoned_leader() {
    let stores = Stores::start(3, Key::from_static(b"m"));
    let running = stores.running();
    let small = super::client::Client::new(stores.running());
    let (key, start_ts) = (Key::from_static(b"a"), Timestamp::new(1, 0));
    let body = RequestBody::Get { key: key.clone(), start_ts };
    let leader = small.leader_according_to(StoreId::new(1), &key, body).await.expect("a leader");

    let endpoint = Arc::new(InProcess { stores: running.clone(), poisoned: leader, calls: AtomicUsize::new(0) });
    let config = ClientConfig { deadline: Duration::from_secs(60), seed: Some(1), ..ClientConfig::default() };
    let client = Client::with_config(endpoint.clone(), config, &Registry::new()).expect("valid settings");
    assert_eq!(client.get(&key, start_ts).await, Ok(None));
    running.handle(leader).expect("it runs").poison("planted");
    assert_eq!(client.get(&key, start_ts).await, Ok(None));
    let calls = endpoint.calls.load(Ordering::Relaxed);
    assert!(calls < CALLS_MAX, "{calls} calls to the poisoned store");

    // The route is learned: the poisoned store is not asked again.
    for _ in 0..10 {
        assert_eq!(client.get(&key, start_ts).await, Ok(None));
    }
    assert_eq!(endpoint.calls.load(Ordering::Relaxed), calls);
}

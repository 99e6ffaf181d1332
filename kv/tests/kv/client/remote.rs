//! The endpoint over links against a server on the loopback: responses, typed errors, and whether a failed request was
//! delivered.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use kv::Key;
use kv::api::{Mutation, MutationOp, ReadPath, Request, RequestBody, Response, Served, ServerError};
use kv::client::{
    CallError, Client, Endpoint, HedgePolicy, LocalStore, Locality, ReadOptions, RemoteConfig, RemoteEndpoint,
    ReplicaPolicy, RoutedEndpoint, Snapshot,
};
use kv::memory::MemoryCluster;
use kv::proto::{LOCATE, REQUEST, pb};
use link::{Answer, ClusterTag, LinkMetrics, LinkOptions, LinkServer, Links, Reason, Refused, ServerOptions, Service};
use prometheus::Registry;
use prost::Message;
use raftstore::{Epoch, RegionContext, RegionError, RegionId, RegionStatus, StoreId};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tso::Timestamp;

const ONE: StoreId = StoreId::new(1);
const TWO: StoreId = StoreId::new(2);
const CLUSTER: ClusterTag = ClusterTag::new(7);

/// The services of one store of an in-memory cluster.
#[derive(Clone)]
struct Store {
    cluster: MemoryCluster,
    store: StoreId,
    /// Whether to execute requests but never respond.
    mute: Arc<AtomicBool>,
}

fn server_result(result: Result<Response, CallError>) -> Result<Response, ServerError> {
    result.map_err(|error| match error {
        CallError::Server(error) => error,
        other => ServerError::Failed(other.to_string()),
    })
}

fn malformed(error: impl std::fmt::Display) -> Refused {
    Refused { reason: Reason::Malformed, why: error.to_string() }
}

struct Requests(Store);

impl Service for Requests {
    fn call(&self, payload: Bytes) -> Answer {
        let Store { cluster, store, mute } = self.0.clone();
        let answer = async move {
            let request = pb::Request::decode(payload).map_err(malformed)?;
            let result = cluster.call(store, Request::try_from(request).map_err(malformed)?).await;
            if mute.load(Ordering::Relaxed) {
                std::future::pending::<()>().await;
            }
            Ok(pb::Response::from(server_result(result)).encode_to_vec().into())
        };
        Answer::Later(answer.boxed())
    }
}

struct Locates(Store);

impl Service for Locates {
    fn call(&self, payload: Bytes) -> Answer {
        let Store { cluster, store, .. } = self.0.clone();
        let answer = async move {
            let key = pb::LocateRequest::decode(payload).map_err(malformed)?.key;
            let status = cluster.locate(store, key.to_vec()).await.map_err(malformed)?;
            Ok(pb::LocateResponse::from(status).encode_to_vec().into())
        };
        Answer::Later(answer.boxed())
    }
}

struct Server {
    address: SocketAddr,
    mute: Arc<AtomicBool>,
    links: LinkServer,
    task: JoinHandle<()>,
}

impl Server {
    /// Ends the listener and all links, as the death of the process does.
    async fn kill(&mut self) {
        self.task.abort();
        let _ = (&mut self.task).await;
        self.links.stop(Duration::ZERO).await;
    }
}

/// Starts the server of a store, at `address` or on a free port.
async fn serve(cluster: &MemoryCluster, store: StoreId, address: Option<SocketAddr>) -> Server {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let listener = TcpListener::bind(address.unwrap_or(any)).await.expect("a port");
    let address = listener.local_addr().expect("bound");
    let mute = Arc::new(AtomicBool::new(false));
    let service = Store { cluster: cluster.clone(), store, mute: Arc::clone(&mute) };
    let services: [(_, Arc<dyn Service>); 2] =
        [(REQUEST, Arc::new(Requests(service.clone()))), (LOCATE, Arc::new(Locates(service)))];
    let links = LinkServer::new(ServerOptions::new(CLUSTER), services, metrics());
    let serving = links.clone();
    let task = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            serving.serve(stream);
        }
    });
    Server { address, mute, links, task }
}

fn metrics() -> LinkMetrics {
    LinkMetrics::new(&Registry::new()).expect("a fresh registry")
}

fn config() -> RemoteConfig {
    RemoteConfig { request_timeout: Duration::from_millis(300), ..RemoteConfig::default() }
}

fn remote(stores: &[(StoreId, SocketAddr)]) -> RemoteEndpoint {
    counted_remote(stores, config(), metrics())
}

fn counted_remote(stores: &[(StoreId, SocketAddr)], config: RemoteConfig, metrics: LinkMetrics) -> RemoteEndpoint {
    let remote = RemoteEndpoint::new(config, Arc::new(Links::new(LinkOptions::new(CLUSTER), metrics)));
    let stores = stores.iter().map(|(store, address)| (*store, address.to_string())).collect();
    remote.set_stores(stores).expect("well-formed addresses");
    remote
}

fn get(cluster: &MemoryCluster, region: RegionId) -> Request {
    let context = RegionContext { region, epoch: Epoch { conf_ver: 1, version: 1 } };
    Request {
        context,
        body: RequestBody::Get { key: Key::from_static(b"a"), start_ts: cluster.timestamp(), pass: Vec::new() },
    }
}

#[tokio::test]
async fn responses_and_typed_errors_survive_the_wire() {
    let cluster = MemoryCluster::builder().stores(2).build();
    let server = serve(&cluster, ONE, None).await;
    let remote = remote(&[(ONE, server.address)]);
    let request = get(&cluster, RegionId::FIRST_DATA);
    assert_eq!(remote.call(ONE, request.clone()).await, Ok(Response::Value(None)));
    assert_eq!(remote.locate(ONE, b"a".to_vec()).await, cluster.locate(ONE, b"a".to_vec()).await);
    assert_eq!(remote.stores(), vec![ONE]);

    cluster.move_leader(&Key::from_static(b"a"), TWO);
    let refused = remote.call(ONE, request).await;
    let is_hint = |error: &CallError| {
        matches!(error, CallError::Server(ServerError::Region(RegionError::NotLeader { leader: Some(leader), .. }))
            if leader.store == TWO)
    };
    assert!(refused.as_ref().is_err_and(is_hint), "{refused:?}");
    let missing = remote.call(ONE, get(&cluster, RegionId::new(77))).await;
    let not_found = RegionError::RegionNotFound { region: RegionId::new(77), store: ONE };
    assert_eq!(missing, Err(ServerError::from(not_found).into()));
}

#[tokio::test]
async fn a_request_to_a_stopped_store_was_not_delivered() {
    let cluster = MemoryCluster::new();
    let mut server = serve(&cluster, ONE, None).await;
    let remote = remote(&[(ONE, server.address)]);
    server.kill().await;
    let request = get(&cluster, RegionId::FIRST_DATA);
    for _ in 0..3 {
        let failed = remote.call(ONE, request.clone()).await;
        assert!(matches!(failed, Err(CallError::Unreachable { store: ONE, .. })), "{failed:?}");
    }
    let unknown = remote.call(TWO, request.clone()).await;
    assert!(matches!(unknown, Err(CallError::Unreachable { store: TWO, .. })), "{unknown:?}");

    // The store restarts at the same address, and the same endpoint reaches it once its back-off is over.
    let _server = serve(&cluster, ONE, Some(server.address)).await;
    for _ in 0..10_000 {
        match remote.call(ONE, request.clone()).await {
            Err(CallError::Unreachable { .. }) => tokio::task::yield_now().await,
            other => return assert_eq!(other, Ok(Response::Value(None))),
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("the store is not reached again");
}

#[tokio::test]
async fn a_delivered_request_without_a_response_is_lost() {
    let cluster = MemoryCluster::new();
    let server = serve(&cluster, ONE, None).await;
    let remote = remote(&[(ONE, server.address)]);
    let request = get(&cluster, RegionId::FIRST_DATA);
    assert!(remote.call(ONE, request.clone()).await.is_ok());
    server.mute.store(true, Ordering::Relaxed);
    let calls = cluster.calls();
    let silent = remote.call(ONE, request).await;
    assert!(matches!(silent, Err(CallError::Lost { store: ONE, .. })), "{silent:?}");
    assert_eq!(cluster.calls() - calls, 1, "the request was executed");
}

/// A store that dies with a request under way: the request may have been executed, the next one was not delivered.
#[tokio::test]
async fn a_store_that_dies_may_have_executed_what_it_had() {
    let cluster = MemoryCluster::new();
    let mut server = serve(&cluster, ONE, None).await;
    let long = RemoteConfig { request_timeout: Duration::from_secs(60), ..config() };
    let remote = counted_remote(&[(ONE, server.address)], long, metrics());
    server.mute.store(true, Ordering::Relaxed);
    let request = get(&cluster, RegionId::FIRST_DATA);
    let calls = cluster.calls();
    let mut pending = Box::pin(remote.call(ONE, request.clone()));
    while cluster.calls() == calls {
        assert!(futures::poll!(&mut pending).is_pending());
        tokio::task::yield_now().await;
    }
    server.kill().await;
    let lost = pending.await;
    assert!(matches!(lost, Err(CallError::Lost { store: ONE, .. })), "{lost:?}");
    let refused = remote.call(ONE, request).await;
    assert!(matches!(refused, Err(CallError::Unreachable { store: ONE, .. })), "{refused:?}");
}

/// Another cluster's store executes nothing, and the error names both clusters.
#[tokio::test]
async fn a_store_of_another_cluster_is_unreachable() {
    let cluster = MemoryCluster::new();
    let server = serve(&cluster, ONE, None).await;
    let links = Links::new(LinkOptions::new(ClusterTag::new(8)), metrics());
    let remote = RemoteEndpoint::new(config(), Arc::new(links));
    remote.set_stores(vec![(ONE, server.address.to_string())]).expect("well-formed");
    let refused = remote.call(ONE, get(&cluster, RegionId::FIRST_DATA)).await;
    let Err(CallError::Unreachable { store: ONE, why }) = refused else { panic!("{refused:?}") };
    assert!(why.ends_with("belongs to cluster 0000000000000007, the request to cluster 0000000000000008"), "{why}");
    assert_eq!(cluster.calls(), 0);
}

/// A store that moved is reached at its new address, and the link to the old one is closed.
#[tokio::test]
async fn a_store_that_moves_is_followed() {
    let cluster = MemoryCluster::new();
    let (old, new) = (serve(&cluster, ONE, None).await, serve(&cluster, ONE, None).await);
    let counts = metrics();
    let remote = counted_remote(&[(ONE, old.address)], config(), counts.clone());
    let request = get(&cluster, RegionId::FIRST_DATA);
    assert!(remote.call(ONE, request.clone()).await.is_ok());
    old.mute.store(true, Ordering::Relaxed);
    let mut pending = Box::pin(remote.call(ONE, request.clone()));
    assert!(futures::poll!(&mut pending).is_pending());
    remote.set_stores(vec![(ONE, new.address.to_string())]).expect("well-formed");
    let lost = pending.await;
    assert!(matches!(lost, Err(CallError::Lost { store: ONE, .. })), "{lost:?}");
    assert_eq!(remote.call(ONE, request).await, Ok(Response::Value(None)));
    assert_eq!(counts.opened.get(), 2);
    for _ in 0..5_000 {
        if counts.open.get() == 1 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("{} links are open", counts.open.get());
}

/// Gets of any number of tasks share one connection and are one request each: the region is looked up once, and a frame
/// carries many.
#[tokio::test]
async fn concurrent_gets_are_one_request_each_over_one_link() {
    const GETS: usize = 200;
    let cluster = MemoryCluster::new();
    let server = serve(&cluster, ONE, None).await;
    let counts = metrics();
    let remote = counted_remote(&[(ONE, server.address)], RemoteConfig::default(), counts.clone());
    let client = Client::new(Arc::new(remote));
    let start_ts = cluster.timestamp();
    assert_eq!(client.get(&Key::from_static(b"a"), start_ts).await, Ok(None));
    let before = counts.requests.get();
    assert_eq!((before, counts.opened.get()), (2, 1), "one lookup and one read");
    let keys: Vec<Key> = (0..GETS).map(|n| Key::new(format!("k{n}"))).collect();
    let (frames, calls) = (counts.sent_frames.get(), cluster.calls());
    let found = join_all(keys.iter().map(|key| client.get(key, start_ts))).await;
    assert!(found.iter().all(|value| *value == Ok(None)));
    assert_eq!(counts.requests.get() - before, GETS as u64);
    assert_eq!(cluster.calls() - calls, GETS as u64);
    assert_eq!(counts.opened.get(), 1);
    let frames = counts.sent_frames.get() - frames;
    assert!(frames < GETS as u64 / 4, "{frames} frames for {GETS} requests of one turn");
}

/// A message that our own encoder would refuse was not delivered.
#[tokio::test]
async fn a_message_above_the_limit_is_not_sent() {
    let cluster = MemoryCluster::new();
    let server = serve(&cluster, ONE, None).await;
    let remote = remote(&[(ONE, server.address)]);
    let keys = vec![Key::new(vec![7; 1 << 20]); 17];
    let context = get(&cluster, RegionId::FIRST_DATA).context;
    let body = RequestBody::Commit { keys, start_ts: cluster.timestamp(), commit_ts: cluster.timestamp() };
    let refused = remote.call(ONE, Request { context, body }).await.expect_err("too large");
    assert!(matches!(refused, CallError::Server(ServerError::TooLarge { .. })), "{refused:?}");
    assert!(refused.is_final() && !refused.maybe_delivered());
    assert_eq!(cluster.calls(), 0);
}

#[tokio::test]
async fn malformed_addresses_change_nothing() {
    let cluster = MemoryCluster::new();
    let server = serve(&cluster, ONE, None).await;
    let remote = remote(&[(ONE, server.address)]);
    let refused = remote.set_stores(vec![(TWO, "no address".to_owned())]);
    assert_eq!(refused.err().map(|error| error.store), Some(TWO));
    assert_eq!(remote.stores(), vec![ONE]);
    assert!(remote.call(ONE, get(&cluster, RegionId::FIRST_DATA)).await.is_ok());
}

/// This node's own store, called without the network.
struct OwnStore(MemoryCluster);

impl LocalStore for OwnStore {
    fn call(&self, request: Request) -> BoxFuture<'_, Result<Response, ServerError>> {
        Box::pin(async move { server_result(self.0.call(ONE, request).await) })
    }

    fn try_get(&self, _: RegionContext, _: (&Key, &[u8]), _: Timestamp) -> Option<Option<Bytes>> {
        None
    }

    fn try_replica_get(
        &self,
        _: RegionContext,
        _: (&Key, &[u8]),
        start_ts: Timestamp,
        _: Option<Timestamp>,
    ) -> Option<(Option<Bytes>, Served)> {
        let path = ReadPath::Grant;
        Some((None, Served { store: ONE, path, start_ts, safe_ts: start_ts, asked: 0, load: 0 }))
    }

    fn locate(&self, key: &[u8]) -> Option<RegionStatus> {
        self.0.regions().into_iter().find(|status| status.region.contains(key))
    }
}

#[tokio::test]
async fn a_node_calls_its_own_store_directly_and_others_over_the_network() {
    let cluster = MemoryCluster::builder().stores(2).split_at(Key::from_static(b"m")).build();
    let server = serve(&cluster, TWO, None).await;
    let remote = Arc::new(remote(&[(TWO, server.address), (ONE, SocketAddr::from(([127, 0, 0, 1], 1)))]));
    remote.set_localities([(TWO, Locality::parse("region=eu"))]);
    let routed = RoutedEndpoint::new(ONE, Arc::new(OwnStore(cluster.clone())), remote, Duration::from_millis(300));
    assert_eq!(routed.stores(), vec![ONE, TWO]);
    assert_eq!(routed.own_store(), Some(ONE));
    assert_eq!(routed.locality(TWO), Locality::parse("region=eu"));
    let (context, a) = (get(&cluster, RegionId::FIRST_DATA).context, Key::from_static(b"a"));
    let try_at = |store| routed.try_replica_get(store, context, (&a, &a.to_storage()), Timestamp::MAX, None);
    assert!(try_at(ONE).is_some() && try_at(TWO).is_none(), "only the own store is read within the call");
    let client = Client::new(Arc::new(routed));
    let (start_ts, keys) = (cluster.timestamp(), [Key::from_static(b"a"), Key::from_static(b"z")]);
    let op = MutationOp::Put(Bytes::from_static(b"1"));
    let mutations = keys.iter().map(|key| Mutation::new(key.clone(), op.clone())).collect();
    client.prewrite(mutations, &keys[0], start_ts, || 3_000).await.expect("prewritten in both regions");
    client.commit(&keys, start_ts, cluster.timestamp()).await.expect("committed in both regions");
    let found = client.batch_get(&keys, Timestamp::MAX.prev()).await.expect("served");
    assert_eq!(found.len(), 2);
}

/// A local call that waits for a quorum in vain counts as lost, so that the client asks another replica.
#[tokio::test]
async fn a_local_call_that_hangs_is_lost() {
    struct Hanging;
    impl LocalStore for Hanging {
        fn call(&self, _request: Request) -> BoxFuture<'_, Result<Response, ServerError>> {
            Box::pin(std::future::pending())
        }
        fn try_get(&self, _: RegionContext, _: (&Key, &[u8]), _: Timestamp) -> Option<Option<Bytes>> {
            None
        }
        fn locate(&self, _key: &[u8]) -> Option<RegionStatus> {
            None
        }
    }
    let cluster = MemoryCluster::new();
    let others = Arc::new(remote(&[]));
    let routed = RoutedEndpoint::new(ONE, Arc::new(Hanging), others, Duration::from_millis(10));
    let lost = routed.call(ONE, get(&cluster, RegionId::FIRST_DATA)).await;
    assert!(matches!(lost, Err(CallError::Lost { store: ONE, .. })), "{lost:?}");
}

/// A store that never answers, but counts the requests that reach it and those that are dropped.
#[derive(Default)]
struct Hung {
    /// Requests that are refused a turn: they wait before anything of them is executed.
    queued: AtomicUsize,
    executing: AtomicUsize,
    dropped: AtomicUsize,
    is_full: AtomicBool,
}

/// Counts a request as dropped.
struct Dropped(Arc<Hung>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

struct HungRequests(Arc<Hung>);

impl Service for HungRequests {
    fn call(&self, _: Bytes) -> Answer {
        let store = Arc::clone(&self.0);
        let answer = async move {
            let _dropped = Dropped(Arc::clone(&store));
            if store.is_full.load(Ordering::Relaxed) {
                store.queued.fetch_add(1, Ordering::Relaxed);
                std::future::pending::<()>().await;
            }
            store.executing.fetch_add(1, Ordering::Relaxed);
            std::future::pending().await
        };
        Answer::Later(answer.boxed())
    }
}

/// The loser of a hedge is cancelled by its id: its store drops it, whether it waits there or is being executed.
#[tokio::test]
async fn the_loser_of_a_hedge_is_dropped_at_its_store() {
    let cluster = MemoryCluster::builder().stores(2).build();
    cluster.move_leader(&Key::default(), ONE);
    let leader = serve(&cluster, ONE, None).await;
    let hung = Arc::new(Hung::default());
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound");
    let services: [(_, Arc<dyn Service>); 1] = [(REQUEST, Arc::new(HungRequests(Arc::clone(&hung))))];
    let links = LinkServer::new(ServerOptions::new(CLUSTER), services, metrics());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            links.serve(stream);
        }
    });
    let counts = metrics();
    let long = RemoteConfig { request_timeout: Duration::from_secs(60), ..config() };
    let remote = counted_remote(&[(ONE, leader.address), (TWO, address)], long, counts.clone());
    let client = Client::new(Arc::new(remote));
    let start_ts = cluster.timestamp();
    let k = Key::from_static(b"k");
    assert_eq!(client.get(&k, start_ts).await, Ok(None));
    for (round, is_full) in [(1, false), (2, true)] {
        hung.is_full.store(is_full, Ordering::Relaxed);
        let hedge = HedgePolicy::After(Duration::from_millis(50));
        let options = Arc::new(ReadOptions { replica: ReplicaPolicy::Follower, hedge, ..ReadOptions::default() });
        // The store is left out for a moment after it was overtaken.
        let reached = async {
            loop {
                let at = Snapshot { options: Some(Arc::clone(&options)), ..start_ts.into() };
                assert_eq!(client.get(&k, at).await, Ok(None));
                if counts.cancels.get() == round {
                    break;
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(20), reached).await.expect("the store is asked again");
        for _ in 0..5_000 {
            if hung.dropped.load(Ordering::Relaxed) as u64 == round {
                break;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let state = [&hung.executing, &hung.queued, &hung.dropped].map(|count| count.load(Ordering::Relaxed));
        assert_eq!(state, [1, round as usize - 1, round as usize]);
    }
}

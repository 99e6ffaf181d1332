//! The gRPC endpoint against a server on the loopback: responses, typed errors, and whether a failed request was
//! delivered.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use kv::Key;
use kv::api::{Mutation, MutationOp, Request, RequestBody, Response, ServerError};
use kv::client::{CallError, Client, Endpoint, LocalStore, RemoteConfig, RemoteEndpoint, RoutedEndpoint};
use kv::memory::MemoryCluster;
use kv::proto::pb;
use kv::proto::pb::kv_server::{Kv, KvServer};
use raftstore::{Epoch, RegionContext, RegionError, RegionId, RegionStatus, StoreId};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::Status;
use tso::Timestamp;

const ONE: StoreId = StoreId::new(1);
const TWO: StoreId = StoreId::new(2);

/// A gRPC service over one store of an in-memory cluster.
struct Service {
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

#[tonic::async_trait]
impl Kv for Service {
    async fn call(&self, request: tonic::Request<pb::Request>) -> Result<tonic::Response<pb::Response>, Status> {
        let request = Request::try_from(request.into_inner()).map_err(|e| Status::invalid_argument(e.to_string()))?;
        let result = server_result(self.cluster.call(self.store, request).await);
        if self.mute.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
        Ok(tonic::Response::new(result.into()))
    }

    async fn locate(
        &self,
        request: tonic::Request<pb::LocateRequest>,
    ) -> Result<tonic::Response<pb::LocateResponse>, Status> {
        let found = self.cluster.locate(self.store, request.into_inner().key.to_vec()).await;
        let status = found.map_err(|e| Status::unavailable(e.to_string()))?;
        Ok(tonic::Response::new(status.into()))
    }
}

struct Server {
    address: SocketAddr,
    mute: Arc<AtomicBool>,
    task: JoinHandle<()>,
}

/// Starts the server of a store, at `address` or on a free port.
async fn serve(cluster: &MemoryCluster, store: StoreId, address: Option<SocketAddr>) -> Server {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let listener = TcpListener::bind(address.unwrap_or(any)).await.expect("a port");
    let address = listener.local_addr().expect("bound");
    let mute = Arc::new(AtomicBool::new(false));
    let service = KvServer::new(Service { cluster: cluster.clone(), store, mute: Arc::clone(&mute) });
    let serving = async move {
        let incoming = TcpListenerStream::new(listener);
        tonic::transport::Server::builder().serve_with_incoming(service, incoming).await.expect("serves until aborted");
    };
    let task = tokio::spawn(serving);
    Server { address, mute, task }
}

fn config() -> RemoteConfig {
    RemoteConfig { request_timeout: Duration::from_millis(300), ..RemoteConfig::default() }
}

fn remote(stores: &[(StoreId, SocketAddr)]) -> RemoteEndpoint {
    let remote = RemoteEndpoint::new(config());
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
    let server = serve(&cluster, ONE, None).await;
    let remote = remote(&[(ONE, server.address)]);
    server.task.abort();
    drop(server.task.await);
    let request = get(&cluster, RegionId::FIRST_DATA);
    for _ in 0..3 {
        let failed = remote.call(ONE, request.clone()).await;
        assert!(matches!(failed, Err(CallError::Unreachable { store: ONE, .. })), "{failed:?}");
    }
    let unknown = remote.call(TWO, request.clone()).await;
    assert!(matches!(unknown, Err(CallError::Unreachable { store: TWO, .. })), "{unknown:?}");

    // The store restarts at the same address, and the same endpoint reaches it.
    let _server = serve(&cluster, ONE, Some(server.address)).await;
    assert_eq!(remote.call(ONE, request).await, Ok(Response::Value(None)));
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

    fn locate(&self, key: &[u8]) -> Option<RegionStatus> {
        self.0.regions().into_iter().find(|status| status.region.contains(key))
    }
}

#[tokio::test]
async fn a_node_calls_its_own_store_directly_and_others_over_the_network() {
    let cluster = MemoryCluster::builder().stores(2).split_at(Key::from_static(b"m")).build();
    let server = serve(&cluster, TWO, None).await;
    let remote = Arc::new(remote(&[(TWO, server.address), (ONE, SocketAddr::from(([127, 0, 0, 1], 1)))]));
    let routed = RoutedEndpoint::new(ONE, Arc::new(OwnStore(cluster.clone())), remote, Duration::from_millis(300));
    assert_eq!(routed.stores(), vec![ONE, TWO]);
    let client = Client::new(Arc::new(routed));
    let (start_ts, keys) = (cluster.timestamp(), [Key::from_static(b"a"), Key::from_static(b"z")]);
    let op = MutationOp::Put(Bytes::from_static(b"1"));
    let mutations = keys.iter().map(|key| Mutation { key: key.clone(), op: op.clone() }).collect();
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
        fn locate(&self, _key: &[u8]) -> Option<RegionStatus> {
            None
        }
    }
    let cluster = MemoryCluster::new();
    let others = Arc::new(RemoteEndpoint::new(config()));
    let routed = RoutedEndpoint::new(ONE, Arc::new(Hanging), others, Duration::from_millis(10));
    let lost = routed.call(ONE, get(&cluster, RegionId::FIRST_DATA)).await;
    assert!(matches!(lost, Err(CallError::Lost { store: ONE, .. })), "{lost:?}");
}

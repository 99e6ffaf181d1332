//! Shared by the integration tests: a server over an in-memory cluster, a client that sees every message, and the
//! runner of SQL scripts.

pub(crate) mod client;
pub(crate) mod script;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use kv::api::{Request, Response};
use kv::client::{CallError, Client, ClientConfig, Endpoint};
use kv::memory::{CountingTso, MemoryCluster};
use prometheus::Registry;
use raftstore::{RegionStatus, StoreId};
use sql::catalog::{CatalogConfig, CatalogPeers};
use sql::error::SqlError;
use sql::server::{AdvisoryConfig, SessionThreads, SqlConfig, SqlMetrics, SqlServer, WallClock};
use sql::sessions::{LockInfo, LockList, LockWait, SessionInfo, SessionPeers, Signal};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tso::{TsRange, TsoClient, TsoError, TsoSource};
use txn::{BufferLimits, Database, TxnConfig};

/// The longest wait of a test for anything.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The database in a cluster.
pub(crate) fn database(cluster: &MemoryCluster) -> Database {
    Database::new(Client::new(Arc::new(cluster.clone())), TsoClient::new(cluster.tso()))
}

/// The oracle of a cluster, as a gateway on its node or on another one asks it.
struct Oracle {
    tso: Arc<CountingTso>,
    is_local: bool,
    asked: Arc<AtomicU64>,
}

impl TsoSource for Oracle {
    fn try_allocate(&self, count: u32) -> Option<TsRange> {
        self.is_local.then(|| self.tso.allocate(count).now_or_never())??.ok()
    }

    fn allocate(&self, count: u32) -> BoxFuture<'_, Result<TsRange, TsoError>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.tso.allocate(count)
    }
}

/// Settings of a gateway whose lease is renewed only by schema changes, and by a statement that finds it over: so that
/// the number of calls is that of the statements. A test moves the oracle's time.
pub(crate) fn gateway_config() -> SqlConfig {
    let catalog = CatalogConfig {
        renew_interval: Duration::from_secs(3_600),
        drain_grace: Duration::from_millis(30),
        ..CatalogConfig::default()
    };
    let advisory = AdvisoryConfig { renew_interval: Duration::from_secs(3_600), ..AdvisoryConfig::default() };
    SqlConfig { catalog, advisory, ..SqlConfig::default() }
}

/// All gateways, each with its cluster. A schema change reaches the other gateways of its cluster at once.
static GATEWAYS: Mutex<Vec<(ClusterTag, Weak<SqlServer>)>> = Mutex::new(Vec::new());

/// Tells clusters apart: the address of the oracle.
type ClusterTag = usize;

fn tag(cluster: &MemoryCluster) -> ClusterTag {
    Arc::as_ptr(&cluster.tso()).addr()
}

/// The other gateways of a cluster.
struct Gateways {
    cluster: ClusterTag,
    own: Weak<SqlServer>,
    memory: MemoryCluster,
}

impl Gateways {
    fn all(&self) -> Vec<Arc<SqlServer>> {
        let all = GATEWAYS.lock().expect("no panic");
        all.iter().filter(|(tag, _)| *tag == self.cluster).filter_map(|(_, server)| server.upgrade()).collect()
    }

    fn others(&self) -> Vec<Arc<SqlServer>> {
        self.all().into_iter().filter(|server| !std::ptr::eq(Arc::as_ptr(server), self.own.as_ptr())).collect()
    }
}

impl SessionPeers for Gateways {
    fn signal(&self, pid: i32, signal: Signal) -> BoxFuture<'_, Result<bool, SqlError>> {
        let found = self.others().iter().any(|server| server.signal(pid, signal));
        Box::pin(async move { Ok(found) })
    }

    fn sessions(&self) -> BoxFuture<'_, Vec<SessionInfo>> {
        let sessions = self.others().iter().flat_map(|server| server.sessions()).collect();
        Box::pin(async move { sessions })
    }

    fn locks(&self) -> BoxFuture<'_, Result<LockList, SqlError>> {
        Box::pin(async move {
            // What holds an advisory lock is its record, but a holder has a place in the queue too.
            let lock = |lock: kv::locks::RowLockStatus| LockInfo {
                key: lock.key,
                mode: lock.mode,
                owner: lock.start_ts,
                wait: lock.wait.map(|wait| LockWait {
                    ms: u64::try_from(wait.time.as_millis()).expect("a short time"),
                    behind: wait.behind,
                }),
            };
            let mut locks: Vec<LockInfo> = self.memory.row_locks().into_iter().map(lock).collect();
            locks.sort_by(|a, b| (&a.key, a.wait.is_some(), a.owner).cmp(&(&b.key, b.wait.is_some(), b.owner)));
            let owners = self.all().iter().flat_map(|server| server.lock_owners()).collect();
            Ok(LockList { locks, owners })
        })
    }
}

impl CatalogPeers for Gateways {
    fn renew_leases(&self) -> BoxFuture<'_, ()> {
        GATEWAYS.lock().expect("no panic").retain(|(_, server)| server.strong_count() > 0);
        let others = self.others();
        Box::pin(async move {
            for server in others {
                // A gateway that cannot renew does so later.
                let _ = server.renew_lease().await;
            }
        })
    }
}

/// The stores of a cluster, as a gateway reaches them whose first reads are slow: those that have no start_ts.
pub(crate) struct HeldReads {
    cluster: MemoryCluster,
    is_holding: AtomicBool,
    held: AtomicU64,
    changed: Notify,
}

impl HeldReads {
    pub(crate) fn new(cluster: &MemoryCluster) -> HeldReads {
        let (cluster, is_holding) = (cluster.clone(), AtomicBool::new(false));
        HeldReads { cluster, is_holding, held: AtomicU64::new(0), changed: Notify::new() }
    }

    /// Holds the first reads that are sent from here on.
    pub(crate) fn hold(&self) {
        self.held.store(0, Ordering::SeqCst);
        self.is_holding.store(true, Ordering::SeqCst);
    }

    /// Waits until a read is held.
    pub(crate) async fn until_held(&self) {
        let held = || self.held.load(Ordering::SeqCst) > 0;
        self.until(held).await;
    }

    /// Lets the held reads pass, and all others.
    pub(crate) fn release(&self) {
        self.is_holding.store(false, Ordering::SeqCst);
        self.changed.notify_waiters();
    }

    async fn until(&self, condition: impl Fn() -> bool) {
        loop {
            let changed = self.changed.notified();
            let mut changed = std::pin::pin!(changed);
            changed.as_mut().enable();
            if condition() {
                return;
            }
            changed.await;
        }
    }
}

impl Endpoint for HeldReads {
    fn call(&self, store: StoreId, mut request: Request) -> BoxFuture<'_, Result<Response, CallError>> {
        Box::pin(async move {
            if request.body.unset_start_ts().is_some() && self.is_holding.load(Ordering::SeqCst) {
                self.held.fetch_add(1, Ordering::SeqCst);
                self.changed.notify_waiters();
                self.until(|| !self.is_holding.load(Ordering::SeqCst)).await;
            }
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

/// A number for each gateway.
fn next_node() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Where a gateway is.
struct Place {
    cluster: MemoryCluster,
    endpoint: Arc<dyn Endpoint>,
    /// Whether it is on the oracle's node.
    has_oracle: bool,
    /// How much a transaction may write.
    buffer: BufferLimits,
    /// How long a request is repeated.
    deadline: Duration,
}

impl Place {
    /// The oracle's node.
    fn home(cluster: MemoryCluster) -> Place {
        let (buffer, deadline) = (BufferLimits::default(), ClientConfig::default().deadline);
        Place { endpoint: Arc::new(cluster.clone()), cluster, has_oracle: true, buffer, deadline }
    }
}

/// A server on a loopback port.
pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    pub(crate) cluster: MemoryCluster,
    /// The requests to the oracle on another node.
    asked: Arc<AtomicU64>,
    pub(crate) server: Arc<SqlServer>,
    pub(crate) registry: Registry,
    stop: CancellationToken,
    serving: Option<JoinHandle<()>>,
}

impl TestServer {
    /// With default settings.
    pub(crate) async fn start() -> TestServer {
        TestServer::with(gateway_config(), MemoryCluster::new(), Duration::from_secs(1)).await
    }

    /// With default settings over `cluster`, whose oracle is on another node. Several servers over one cluster are
    /// several gateways to one database.
    pub(crate) async fn over(cluster: &MemoryCluster) -> TestServer {
        TestServer::over_endpoint(cluster, Arc::new(cluster.clone())).await
    }

    /// As [`TestServer::over`], with requests to the stores over `endpoint`.
    pub(crate) async fn over_endpoint(cluster: &MemoryCluster, endpoint: Arc<dyn Endpoint>) -> TestServer {
        TestServer::over_endpoint_within(cluster, endpoint, ClientConfig::default().deadline).await
    }

    /// The same, with requests that are repeated for so long.
    pub(crate) async fn over_endpoint_within(
        cluster: &MemoryCluster,
        endpoint: Arc<dyn Endpoint>,
        deadline: Duration,
    ) -> TestServer {
        let place = Place { endpoint, has_oracle: false, deadline, ..Place::home(cluster.clone()) };
        TestServer::build(gateway_config(), place, Duration::from_secs(1), None).await
    }

    /// With these settings, over a cluster whose oracle is on its node, stopping within `grace`.
    pub(crate) async fn with(config: SqlConfig, cluster: MemoryCluster, grace: Duration) -> TestServer {
        TestServer::build(config, Place::home(cluster), grace, None).await
    }

    /// With another source of `now()`.
    pub(crate) async fn with_clock(config: SqlConfig, cluster: MemoryCluster, clock: WallClock) -> TestServer {
        TestServer::build(config, Place::home(cluster), Duration::from_secs(1), Some(clock)).await
    }

    /// With default settings, and transactions of at most `bytes`.
    pub(crate) async fn with_transactions_of(bytes: usize, cluster: MemoryCluster) -> TestServer {
        let buffer = BufferLimits { bytes, ..BufferLimits::default() };
        let place = Place { buffer, ..Place::home(cluster) };
        TestServer::build(gateway_config(), place, Duration::from_secs(1), None).await
    }

    async fn build(config: SqlConfig, place: Place, grace: Duration, clock: Option<WallClock>) -> TestServer {
        let Place { cluster, endpoint, has_oracle, buffer, deadline } = place;
        let config = SqlConfig { node_id: next_node(), ..config };
        config.validate().expect("valid settings");
        let asked = Arc::new(AtomicU64::new(0));
        let oracle = Oracle { tso: cluster.tso(), is_local: has_oracle, asked: asked.clone() };
        let settings = TxnConfig { buffer, ..TxnConfig::default() };
        let tso = TsoClient::new(Arc::new(oracle));
        let client = ClientConfig { deadline, ..ClientConfig::default() };
        let client = Client::with_config(endpoint, client, &Registry::new()).expect("valid settings");
        let db = Database::with_config(client, tso, settings, &Registry::new()).expect("valid settings");
        let registry = Registry::new();
        let metrics = SqlMetrics::new(&registry).expect("fresh registry");
        let server = match clock {
            Some(clock) => SqlServer::with_clock(db, config, metrics, clock),
            None => SqlServer::new(db, config, metrics),
        };
        GATEWAYS.lock().expect("no panic").push((tag(&cluster), Arc::downgrade(&server)));
        let (own, memory) = (Arc::downgrade(&server), cluster.clone());
        let gateways = Arc::new(Gateways { cluster: tag(&cluster), own, memory });
        server.set_peers(gateways.clone());
        server.set_session_peers(gateways);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let stop = CancellationToken::new();
        let serving = tokio::spawn(server.clone().serve(listener, SessionThreads::current(), stop.clone(), grace));
        TestServer { address, cluster, asked, server, registry, stop, serving: Some(serving) }
    }

    /// The number of requests to stores and to the oracle so far.
    pub(crate) fn requests(&self) -> (u64, u64) {
        (self.cluster.calls(), self.asked.load(Ordering::Relaxed))
    }

    /// From here on schema changes do not reach this gateway: it is paused, or cut off.
    pub(crate) fn cut(&self) {
        let is_other = |server: &Weak<SqlServer>| !std::ptr::eq(server.as_ptr(), Arc::as_ptr(&self.server));
        GATEWAYS.lock().expect("no panic").retain(|(_, server)| is_other(server));
    }

    /// Starts the shutdown.
    pub(crate) fn begin_stop(&self) {
        self.stop.cancel();
    }

    /// Waits for the end of the shutdown.
    pub(crate) async fn stopped(&mut self) {
        if let Some(serving) = self.serving.take() {
            tokio::time::timeout(PATIENCE, serving).await.expect("stops in time").expect("no panic");
        }
    }

    /// A tokio-postgres client, with its connection running in a task.
    pub(crate) async fn connect(&self) -> tokio_postgres::Client {
        self.connect_to("postgres").await
    }

    /// The same, to another database.
    pub(crate) async fn connect_to(&self, database: &str) -> tokio_postgres::Client {
        let config = format!("host=127.0.0.1 port={} user=postgres dbname={database}", self.address.port());
        let (client, connection) = tokio_postgres::connect(&config, tokio_postgres::NoTls).await.expect("a connection");
        tokio::spawn(connection);
        client
    }

    /// The value of a metric's line.
    pub(crate) fn metric(&self, line: &str) -> Option<f64> {
        let text = prometheus::TextEncoder::new().encode_to_string(&self.registry.gather()).expect("encodes");
        text.lines().find_map(|l| l.strip_prefix(line)).and_then(|rest| rest.trim().parse().ok())
    }
}

/// Waits until `condition` holds.
pub(crate) async fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let wait = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("never came: {what}"));
}

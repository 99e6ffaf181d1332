//! A serving node: builds the layers of a node that belongs to a cluster, runs them and stops them in order.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use engine::store::rocks::RocksStore;
use futures::future::BoxFuture;
use kv::Key;
use kv::api::{Request, Response, Served, ServerError};
use kv::client::{Client, ClientConfig, LocalStore, Locality, RemoteConfig, RemoteEndpoint, RoutedEndpoint};
use kv::grants::{Grants, GrantsConfig, LinkPeers};
use kv::placement::oracle::OracleRoleListener;
use kv::server::{KvServer, KvServerConfig};
use link::{ClusterTag, LinkMetrics, LinkOptions, LinkServer, Links, ServerOptions};
use prometheus::Registry;
use raftstore::time::RealClock;
use raftstore::transport::{StoreTransport, TransportMetrics, TransportOptions, TransportServer};
use raftstore::{RegionContext, RegionStatus, StoreConfig, StoreHandle, StoreParts, StoreRuntime};
use sql::server::{AdvisoryConfig, SessionThreads, SqlConfig, SqlMetrics, SqlServer};
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;
use tso::client::TsoClientOptions;
use tso::metrics::ClientMetrics;
use tso::router::TsoRouter;
use tso::{Timestamp, TsoClient, TsoService};
use txn::{BufferLimits, Database, TxnConfig};

use super::background;
use super::collect::CollectThread;
use super::error::{ServingError, in_layer};
use super::gateways::OtherGateways;
use super::incoming;
use super::join::{self, JoinError};
use super::oracle::{OracleDirectory, oracle};
use super::placement::Placement;
use super::ports::Ports;
use super::probe;
use super::rounds;
use super::service::NodeService;
use super::sessions::ClusterSessions;
use super::state::{self, NodeState};
use super::storage::{self, Storage};
use crate::config::NodeConfig;
use crate::data_dir::Ident;
use crate::http::Health;
use crate::proto::node_server::NodeServer;

/// The timeout of a request to the local store. After it the client tries another replica.
const LOCAL_TIMEOUT: Duration = Duration::from_secs(5);
/// How long running statements may continue when the node stops.
const SQL_GRACE: Duration = Duration::from_secs(5);
/// How long commits in progress may continue after that.
const COMMIT_GRACE: Duration = Duration::from_secs(5);
/// How long requests of other nodes may continue at the end.
const LINK_GRACE: Duration = Duration::from_secs(2);
/// The same for calls of the node service.
const GRPC_GRACE: Duration = Duration::from_secs(2);
/// The interval at which the node checks whether its store failed.
const POISON_CHECK_INTERVAL: Duration = Duration::from_millis(200);

/// A running node.
pub(crate) struct Serving {
    runtime: StoreRuntime<RocksStore>,
    collect: CollectThread,
    database: Database,
    sql: Arc<SqlServer>,
    session_threads: SessionThreads,
    sql_stop: CancellationToken,
    sql_task: Option<JoinHandle<()>>,
    grpc_stop: CancellationToken,
    grpc_task: JoinHandle<Result<(), tonic::transport::Error>>,
    transport_server: TransportServer,
    link_server: LinkServer,
    tso_client: TsoClient,
    discovery: JoinHandle<JoinError>,
    /// The background tasks; dropping aborts them.
    background: JoinSet<()>,
}

impl Serving {
    /// Starts all layers from the bottom. On return the node is an active member of its cluster; `run` accepts SQL
    /// clients.
    ///
    /// Not cancel-safe: the future must be polled to its end, because only `stop` stops the started layers in order.
    pub(crate) async fn start(
        state: Arc<NodeState>,
        ident: Ident,
        ports: &Ports,
        registry: &Registry,
    ) -> Result<Serving, ServingError> {
        let cluster = ClusterTag::new(ident.cluster_id.get());
        let link_metrics = LinkMetrics::new(registry).map_err(in_layer("links"))?;
        let connect_from = state.config.connect_from;
        let options = LinkOptions { connect_from, ..LinkOptions::new(cluster) };
        let links = Arc::new(Links::new(options, link_metrics.clone()));
        let storage = storage::open(state.clone(), ident.clone(), registry.clone()).await?;
        let (window, tso_service) = oracle::<RocksStore>(state.members.clone(), links.clone(), registry)
            .map_err(in_layer("timestamp oracle"))?;
        let options = TransportOptions::new(ident.cluster_id, ident.store_id, state::random_id());
        let options = TransportOptions { connect_from, ..options };
        let metrics = TransportMetrics::new(registry).map_err(in_layer("transport"))?;
        let snapshots = storage.snapshots.clone();
        let mut background = JoinSet::new();
        background.spawn(storage::observe_metrics(storage.store.clone(), storage.store_metrics.clone()));
        let discovery = tokio::spawn(join::discover(state.clone(), ident.clone()));
        let (runtime, collect) =
            start_store(&state, &ident, storage, &options, &metrics, &tso_service, registry).await?;
        let handle = runtime.handle();
        let tso_client = tso_client(&state, &handle, tso_service.clone(), links.clone(), registry)?;
        window.connect(handle.clone(), tso_client.clone());
        background.spawn(rounds::follow(handle.clone(), state.collect_bound.clone()));
        if state.placement.set(Placement::new(handle.clone())).is_err() {
            return Err(in_layer("placement")("started twice"));
        }
        let server = kv_server(&state, handle.clone(), tso_client.clone(), registry)?;
        background.spawn(run_grants(&state, server.grants(), links.clone()));
        let transport_server = TransportServer::new(options.clone(), Arc::new(handle.clone()), snapshots, metrics);
        let services = kv::service::link_services(server.clone()).into_iter();
        let services = services.chain(tso::remote::link_services(tso_service));
        let link_server = LinkServer::new(ServerOptions::new(cluster), services, link_metrics);
        let grpc_stop = CancellationToken::new();
        let raft_server = transport_server.clone();
        let raft: incoming::Serve = Arc::new(move |stream| raft_server.serve(stream));
        let incoming = incoming::accept(ports.listen()?, link_server.clone(), raft, grpc_stop.clone());
        let grpc = TransportServer::builder(&options)
            .add_service(NodeServer::new(NodeService::new(state.clone())))
            .add_service(transport_server.service())
            .serve_with_incoming_shutdown(incoming, grpc_stop.clone().cancelled_owned());
        let grpc_task = tokio::spawn(grpc);
        let grants = server.grants().clone();
        let (client, remote) = kv_client(&state, &ident, server, links, registry)?;
        background.spawn(background::update_client_addresses(state.clone(), remote));
        background.spawn(background::send_heartbeats(state.clone(), ident.clone(), handle.clone(), grants));
        let config = txn_config(&state.config);
        let database =
            Database::with_config(client, tso_client.clone(), config, registry).map_err(in_layer("transactions"))?;
        background.spawn(background::reclaim_dropped_rows(database.clone(), handle.clone()));
        background.spawn(rounds::run_rounds(state.clone(), database.clone(), handle));
        let sql = sql_server(&state, &ident, database.clone(), registry)?;
        let session_threads = SessionThreads::start().map_err(in_layer("threads of sessions"))?;
        Ok(Serving {
            runtime,
            collect,
            database,
            sql,
            session_threads,
            sql_stop: CancellationToken::new(),
            sql_task: None,
            grpc_stop,
            grpc_task,
            transport_server,
            link_server,
            tso_client,
            discovery,
            background,
        })
    }

    /// Accepts SQL clients once the cluster can serve them, then runs until a layer fails for good.
    pub(crate) async fn run(&mut self, ports: &Ports, health: &Health) -> ServingError {
        let handle = self.runtime.handle();
        let fatal_error = fatal_error(&handle, &mut self.grpc_task, &mut self.discovery);
        tokio::pin!(fatal_error);
        tokio::select! {
            () = probe::until_ready(&self.database, health) => {}
            error = &mut fatal_error => return error,
        }
        match ports.pg().await {
            Ok(Some(listener)) => {
                let (threads, stop) = (self.session_threads.clone(), self.sql_stop.clone());
                let serve = self.sql.clone().serve(listener, threads, stop, SQL_GRACE);
                self.sql_task = Some(tokio::spawn(serve));
            }
            Ok(None) => {}
            Err(error) => return error.into(),
        }
        health.serving();
        tracing::info!("serves SQL");
        tokio::select! {
            error = fatal_error => error,
            never = probe::watch(&self.database, health) => match never {},
        }
    }

    /// Stops the layers in order; see the module documentation of `node`.
    pub(crate) async fn stop(mut self) -> Result<(), ServingError> {
        self.sql_stop.cancel();
        if let Some(task) = self.sql_task.take()
            && let Err(error) = task.await
        {
            tracing::error!(%error, "the SQL server failed");
        }
        if !self.database.drain(COMMIT_GRACE).await {
            tracing::warn!("other nodes must resolve the locks of some transactions");
        }
        self.tso_client.close();
        self.background.abort_all();
        self.discovery.abort();
        let (runtime, collect) = (self.runtime, self.collect);
        // Blocks while leadership moves away, threads end and the store flushes. Raft messages still flow meanwhile.
        let stopped = tokio::task::spawn_blocking(move || {
            let stopped = runtime.stop();
            collect.stop();
            stopped
        });
        let stopped = stopped.await;
        self.transport_server.close();
        self.grpc_stop.cancel();
        self.link_server.stop(LINK_GRACE).await;
        if !self.grpc_task.is_finished() && tokio::time::timeout(GRPC_GRACE, &mut self.grpc_task).await.is_err() {
            self.grpc_task.abort();
        }
        match stopped {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(in_layer("store")(error)),
            Err(error) => Err(in_layer("store")(error)),
        }
    }
}

/// Completes when a layer failed for good.
async fn fatal_error(
    handle: &StoreHandle<RocksStore>,
    grpc: &mut JoinHandle<Result<(), tonic::transport::Error>>,
    discovery: &mut JoinHandle<JoinError>,
) -> ServingError {
    tokio::select! {
        error = poisoned(handle) => error,
        ended = grpc => ServingError::Layer {
            layer: "server for other nodes",
            why: match ended {
                Ok(Ok(())) => "it ended".to_string(),
                Ok(Err(error)) => error.to_string(),
                Err(error) => error.to_string(),
            },
        },
        ended = discovery => match ended {
            Ok(error) => error.into(),
            Err(error) => in_layer("discovery")(error),
        },
    }
}

/// Completes when the store failed for good.
async fn poisoned(handle: &StoreHandle<RocksStore>) -> ServingError {
    loop {
        if let Some(why) = handle.poisoned() {
            return ServingError::Poisoned(why);
        }
        tokio::time::sleep(POISON_CHECK_INTERVAL).await;
    }
}

/// Starts the store over its storage, and the collection of its old versions.
async fn start_store(
    state: &NodeState,
    ident: &Ident,
    storage: Storage,
    options: &TransportOptions,
    metrics: &TransportMetrics,
    tso_service: &TsoService,
    registry: &Registry,
) -> Result<(StoreRuntime<RocksStore>, CollectThread), ServingError> {
    let transport = StoreTransport::new(
        options.clone(),
        Arc::new(state.members.clone()),
        storage.snapshots.clone(),
        metrics.clone(),
        tokio::runtime::Handle::current(),
    );
    let parts = StoreParts {
        store_id: ident.store_id,
        config: StoreConfig { log_scrub_bytes: state.config.raft_log.scrub_bytes, ..StoreConfig::default() },
        store: storage.store,
        log: storage.log,
        snapshots: storage.snapshots,
        transport: Arc::new(transport),
        listener: Arc::new(OracleRoleListener { service: tso_service.clone() }),
        clock: Arc::new(RealClock::new()),
        seed: state::random_id(),
        registry: registry.clone(),
    };
    let runtime = storage::start_store(parts).await?;
    let collect = CollectThread::start(storage.collect).map_err(in_layer("collection of old versions"))?;
    Ok((runtime, collect))
}

/// Connects the grants of the store with the other nodes, and tells those of its regions.
fn run_grants(
    state: &NodeState,
    grants: &Grants<StoreHandle<RocksStore>>,
    links: Arc<Links>,
) -> impl Future<Output = ()> + use<> {
    let members = state.members.clone();
    grants.connect(Arc::new(LinkPeers::new(links, Arc::new(move |store| members.get(store)))));
    grants.clone().run(state::random_id())
}

fn txn_config(config: &NodeConfig) -> TxnConfig {
    let bytes = usize::try_from(config.max_transaction_size).unwrap_or(usize::MAX);
    let buffer = BufferLimits { bytes, ..BufferLimits::default() };
    TxnConfig { shadow_reads: config.shadow_reads, buffer, ..TxnConfig::default() }
}

fn kv_server(
    state: &NodeState,
    store: StoreHandle<RocksStore>,
    timestamps: TsoClient,
    registry: &Registry,
) -> Result<KvServer<StoreHandle<RocksStore>>, ServingError> {
    let grants = GrantsConfig { push_interval: state.config.push_interval, ..GrantsConfig::default() };
    let config = KvServerConfig { grants, ..KvServerConfig::default() };
    KvServer::new(store, Arc::new(timestamps), &config, registry).map_err(in_layer("key-value server"))
}

fn tso_client(
    state: &NodeState,
    handle: &StoreHandle<RocksStore>,
    service: TsoService,
    links: Arc<Links>,
    registry: &Registry,
) -> Result<TsoClient, ServingError> {
    let own = state.config.advertise.to_string();
    let directory = OracleDirectory { store: handle.clone(), members: state.members.clone() };
    let router = TsoRouter::new(Some((own, service)), Arc::new(directory), links);
    let metrics = ClientMetrics::new(registry).map_err(in_layer("timestamp client"))?;
    Ok(TsoClient::with_options(Arc::new(router), TsoClientOptions::default(), Some(metrics)))
}

fn kv_client(
    state: &NodeState,
    ident: &Ident,
    server: KvServer<StoreHandle<RocksStore>>,
    links: Arc<Links>,
    registry: &Registry,
) -> Result<(Client, Arc<RemoteEndpoint>), ServingError> {
    if state.kv.set(server.clone()).is_err() {
        return Err(in_layer("key-value server")("started twice"));
    }
    let remote = Arc::new(RemoteEndpoint::new(RemoteConfig::default(), links));
    let endpoint = RoutedEndpoint::new(ident.store_id, Arc::new(Local(server)), remote.clone(), LOCAL_TIMEOUT);
    let locality = Locality::parse(&state.config.locality.to_string());
    let config = ClientConfig { deadline: state.config.retry_for, locality, ..ClientConfig::default() };
    let client = Client::with_config(Arc::new(endpoint), config, registry);
    Ok((client.map_err(in_layer("key-value client"))?, remote))
}

fn sql_server(
    state: &Arc<NodeState>,
    ident: &Ident,
    database: Database,
    registry: &Registry,
) -> Result<Arc<SqlServer>, ServingError> {
    let status_host = Some(state.config.advertise.to_string());
    let node_max = usize::try_from(state.config.max_advisory_locks).unwrap_or(usize::MAX);
    let advisory = AdvisoryConfig { node_max, session_max: node_max / 10, ..AdvisoryConfig::default() };
    let config = SqlConfig { node_id: ident.store_id.get(), status_host, advisory, ..SqlConfig::default() };
    let metrics = SqlMetrics::new(registry).map_err(in_layer("SQL"))?;
    let server = SqlServer::new(database.clone(), config, metrics);
    let own = (ident.cluster_id, ident.store_id);
    server.set_peers(Arc::new(OtherGateways::new(own, state.members.clone(), state.config.connect_from)));
    server.set_session_peers(Arc::new(ClusterSessions::new(state)));
    if state.database.set(database).is_err() || state.sql.set(server.clone()).is_err() {
        return Err(in_layer("SQL")("started twice"));
    }
    Ok(server)
}

/// The node's own key-value server, called without a network.
struct Local(KvServer<StoreHandle<RocksStore>>);

impl LocalStore for Local {
    fn call(&self, request: Request) -> BoxFuture<'_, Result<Response, ServerError>> {
        Box::pin(self.0.handle(request))
    }

    fn try_get(&self, context: RegionContext, key: (&Key, &[u8]), start_ts: Timestamp) -> Option<Option<Bytes>> {
        self.0.try_get(context, key, start_ts)
    }

    fn try_replica_get(
        &self,
        context: RegionContext,
        key: (&Key, &[u8]),
        start_ts: Timestamp,
        floor: Option<Timestamp>,
    ) -> Option<(Option<Bytes>, Served)> {
        self.0.try_replica_get(context, key, start_ts, floor)
    }

    fn locate(&self, key: &[u8]) -> Option<RegionStatus> {
        self.0.locate(key)
    }
}

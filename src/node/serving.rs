//! The layers of a node that belongs to a cluster, put together.

use std::sync::Arc;
use std::time::Duration;

use engine::store::rocks::RocksStore;
use futures::future::BoxFuture;
use kv::api::{Request, Response, ServerError};
use kv::client::{Client, ClientConfig, LocalStore, RemoteConfig, RemoteEndpoint, RoutedEndpoint};
use kv::server::{KvServer, KvServerConfig};
use prometheus::Registry;
use raftstore::time::RealClock;
use raftstore::transport::{GrpcTransport, TransportMetrics, TransportOptions, TransportServer};
use raftstore::{RegionStatus, StoreConfig, StoreHandle, StoreParts, StoreRuntime};
use sql::server::{SqlConfig, SqlMetrics, SqlServer};
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;
use tonic::service::interceptor::InterceptedService;
use tso::client::TsoClientOptions;
use tso::cluster::ClusterTag;
use tso::grpc::RemoteSource;
use tso::metrics::ClientMetrics;
use tso::router::TsoRouter;
use tso::{OracleNode, TsoClient, TsoService};
use txn::{Database, TxnConfig};

use super::heartbeat;
use super::join::{self, JoinError};
use super::oracle::{OracleDirectory, OracleSwitch, oracle};
use super::placement::Placement;
use super::ports::{PortError, Ports};
use super::probe;
use super::proto::node_server::NodeServer;
use super::reclaim;
use super::service::NodeService;
use super::state::NodeState;
use super::storage::{self, Storage};
use crate::data_dir::{DataDirError, Ident};
use crate::http::Health;

/// A local request that takes longer counts as lost, so that another replica is asked.
const LOCAL_TIMEOUT: Duration = Duration::from_secs(5);
/// Running statements get this long when the node stops.
const SQL_GRACE: Duration = Duration::from_secs(5);
/// Commits under way get this long after that.
const COMMIT_GRACE: Duration = Duration::from_secs(5);
/// Other nodes' requests get this long at the very end.
const GRPC_GRACE: Duration = Duration::from_secs(2);
/// Between two looks at whether the store failed.
const WATCH_INTERVAL: Duration = Duration::from_millis(200);

/// Why the layers do not start, or failed for good; printed as one line.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServingError {
    /// The data directory failed.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// A port failed.
    #[error(transparent)]
    Port(#[from] PortError),
    /// A layer refused to start. Which one, and why.
    #[error("{layer}: {why}")]
    Layer { layer: &'static str, why: String },
    /// The node turns out to belong elsewhere.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// The disk or the log failed; nothing is acknowledged any more.
    #[error("the store stopped serving: {0}")]
    Poisoned(String),
}

/// Names the layer in whatever it failed with.
pub(super) fn layer<E: std::fmt::Display>(layer: &'static str) -> impl Fn(E) -> ServingError {
    move |error| ServingError::Layer { layer, why: error.to_string() }
}

/// A running node.
pub(crate) struct Serving {
    runtime: StoreRuntime<RocksStore>,
    database: Database,
    sql: Arc<SqlServer>,
    sql_stop: CancellationToken,
    sql_task: Option<JoinHandle<()>>,
    grpc_stop: CancellationToken,
    grpc_task: JoinHandle<Result<(), tonic::transport::Error>>,
    transport_server: TransportServer,
    tso_client: TsoClient,
    discovery: JoinHandle<JoinError>,
    /// Heartbeats and the like: ended by dropping.
    background: JoinSet<()>,
}

impl Serving {
    /// Starts all layers from the bottom. The node takes part in its cluster on return; SQL clients come in with `run`. Not to be dropped
    /// half-way: what has started is stopped in order by `stop` only.
    pub(crate) async fn start(
        state: Arc<NodeState>,
        ident: Ident,
        ports: &Ports,
        registry: &Registry,
    ) -> Result<Serving, ServingError> {
        let cluster = ClusterTag::new(&ident.cluster_id.to_string()).map_err(layer("cluster id"))?;
        let storage = storage::open(state.clone(), ident.clone(), registry.clone()).await?;
        let (window, tso_service) =
            oracle::<RocksStore>(state.members.clone(), registry).map_err(layer("timestamp oracle"))?;
        let options = TransportOptions::new(ident.cluster_id, ident.store_id, join::draw());
        let metrics = TransportMetrics::new(registry).map_err(layer("transport"))?;
        let snapshots = storage.snapshots.clone();
        let mut background = JoinSet::new();
        background.spawn(storage::observe(storage.store.clone(), storage.store_metrics.clone()));
        let discovery = tokio::spawn(join::discover(state.clone(), ident.clone()));
        let runtime = start_store(&state, &ident, storage, &options, &metrics, &tso_service, registry).await?;
        let handle = runtime.handle();
        window.connect(handle.clone());
        if state.placement.set(Placement::new(handle.clone())).is_err() {
            return Err(layer("placement")("started twice"));
        }
        let server =
            KvServer::new(handle.clone(), &KvServerConfig::default(), registry).map_err(layer("key-value server"))?;
        let transport_server = TransportServer::new(options.clone(), Arc::new(handle.clone()), snapshots, metrics);
        let grpc_stop = CancellationToken::new();
        let grpc = TransportServer::builder(&options)
            .add_service(NodeServer::new(NodeService::new(state.clone())))
            .add_service(transport_server.service())
            .add_service(InterceptedService::new(kv::service::kv_service(server.clone()), cluster.check()))
            .add_service(InterceptedService::new(tso::grpc::server(tso_service.clone()), cluster.check()))
            .serve_with_incoming_shutdown(ports.listen()?, grpc_stop.clone().cancelled_owned());
        let grpc_task = tokio::spawn(grpc);
        let tso_client = timestamps(&state, &handle, tso_service, &cluster, registry)?;
        let (client, remote) = kv_client(&ident, server, cluster, registry)?;
        background.spawn(follow_members(state.clone(), remote));
        background.spawn(heartbeat::report(state.clone(), ident.clone(), handle.clone()));
        let database = Database::with_config(client, tso_client.clone(), TxnConfig::default(), registry)
            .map_err(layer("transactions"))?;
        background.spawn(reclaim::run(database.clone(), handle));
        let sql = sql_server(&ident, database.clone(), registry)?;
        Ok(Serving {
            runtime,
            database,
            sql,
            sql_stop: CancellationToken::new(),
            sql_task: None,
            grpc_stop,
            grpc_task,
            transport_server,
            tso_client,
            discovery,
            background,
        })
    }

    /// Lets SQL clients in as soon as the cluster can serve them, then runs until something fails for good.
    pub(crate) async fn run(&mut self, ports: &Ports, health: &Health) -> ServingError {
        let handle = self.runtime.handle();
        let failure = failure(&handle, &mut self.grpc_task, &mut self.discovery);
        tokio::pin!(failure);
        tokio::select! {
            () = probe::until_ready(&self.database, health) => {}
            error = &mut failure => return error,
        }
        match ports.pg().await {
            Ok(Some(listener)) => {
                let serve = self.sql.clone().serve(listener, self.sql_stop.clone(), SQL_GRACE);
                self.sql_task = Some(tokio::spawn(serve));
            }
            Ok(None) => {}
            Err(error) => return error.into(),
        }
        health.serving();
        tracing::info!("serves SQL");
        tokio::select! {
            error = failure => error,
            never = probe::watch(&self.database, health) => match never {},
        }
    }

    /// Stops in order; see the module documentation of `node`.
    pub(crate) async fn stop(mut self) -> Result<(), ServingError> {
        self.sql_stop.cancel();
        if let Some(task) = self.sql_task.take()
            && let Err(error) = task.await
        {
            tracing::error!(%error, "the SQL server failed");
        }
        if !self.database.drain(COMMIT_GRACE).await {
            tracing::warn!("some transactions' locks are left for others to resolve");
        }
        self.tso_client.close();
        self.background.abort_all();
        self.discovery.abort();
        let runtime = self.runtime;
        // Blocks: leadership moves away, threads end, the store flushes. Messages still flow meanwhile.
        let stopped = tokio::task::spawn_blocking(move || runtime.stop()).await;
        self.transport_server.close();
        self.grpc_stop.cancel();
        if !self.grpc_task.is_finished() && tokio::time::timeout(GRPC_GRACE, &mut self.grpc_task).await.is_err() {
            self.grpc_task.abort();
        }
        match stopped {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(layer("store")(error)),
            Err(error) => Err(layer("store")(error)),
        }
    }
}

/// Ends when something failed for good.
async fn failure(
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
            Err(error) => layer("discovery")(error),
        },
    }
}

/// Ends when the store failed for good.
async fn poisoned(handle: &StoreHandle<RocksStore>) -> ServingError {
    loop {
        if let Some(why) = handle.poisoned() {
            return ServingError::Poisoned(why);
        }
        tokio::time::sleep(WATCH_INTERVAL).await;
    }
}

/// The store over its storage, with its threads running.
async fn start_store(
    state: &NodeState,
    ident: &Ident,
    storage: Storage,
    options: &TransportOptions,
    metrics: &TransportMetrics,
    tso_service: &TsoService,
    registry: &Registry,
) -> Result<StoreRuntime<RocksStore>, ServingError> {
    let transport = GrpcTransport::new(
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
        listener: Arc::new(OracleSwitch { service: tso_service.clone() }),
        clock: Arc::new(RealClock::new()),
        seed: join::draw(),
        registry: registry.clone(),
    };
    storage::start_store(parts).await
}

fn timestamps(
    state: &NodeState,
    handle: &StoreHandle<RocksStore>,
    service: TsoService,
    cluster: &ClusterTag,
    registry: &Registry,
) -> Result<TsoClient, ServingError> {
    let own = state.config.advertise.to_string();
    let directory = OracleDirectory { store: handle.clone(), members: state.members.clone() };
    let cluster = cluster.clone();
    let connect = move |address: &str| {
        let remote = RemoteSource::new(address)?.with_cluster(cluster.clone());
        Ok(Arc::new(remote) as Arc<dyn OracleNode>)
    };
    let router = TsoRouter::with_connect(Some((own, service)), Arc::new(directory), Box::new(connect));
    let metrics = ClientMetrics::new(registry).map_err(layer("timestamp client"))?;
    Ok(TsoClient::with_options(Arc::new(router), TsoClientOptions::default(), Some(metrics)))
}

fn kv_client(
    ident: &Ident,
    server: KvServer<StoreHandle<RocksStore>>,
    cluster: ClusterTag,
    registry: &Registry,
) -> Result<(Client, Arc<RemoteEndpoint>), ServingError> {
    let remote = Arc::new(RemoteEndpoint::new(RemoteConfig { cluster: Some(cluster), ..RemoteConfig::default() }));
    let endpoint = RoutedEndpoint::new(ident.store_id, Arc::new(Local(server)), remote.clone(), LOCAL_TIMEOUT);
    let client = Client::with_config(Arc::new(endpoint), ClientConfig::default(), registry);
    Ok((client.map_err(layer("key-value client"))?, remote))
}

fn sql_server(ident: &Ident, database: Database, registry: &Registry) -> Result<Arc<SqlServer>, ServingError> {
    let config = SqlConfig { node_id: ident.store_id.get(), ..SqlConfig::default() };
    let metrics = SqlMetrics::new(registry).map_err(layer("SQL"))?;
    Ok(SqlServer::new(database, config, metrics))
}

/// Tells the client where the other stores are, whenever that changes.
async fn follow_members(state: Arc<NodeState>, remote: Arc<RemoteEndpoint>) {
    let tell = |known| {
        if let Err(error) = remote.set_stores(known) {
            tracing::error!(%error, "an address cannot be dialled");
        }
    };
    state.members.follow(tell).await;
}

/// The node's own key-value server, as its client calls it.
struct Local(KvServer<StoreHandle<RocksStore>>);

impl LocalStore for Local {
    fn call(&self, request: Request) -> BoxFuture<'_, Result<Response, ServerError>> {
        Box::pin(self.0.handle(request))
    }

    fn locate(&self, key: &[u8]) -> Option<RegionStatus> {
        self.0.locate(key)
    }
}

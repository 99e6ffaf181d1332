//! The layers of a node that belongs to a cluster, put together.

use std::sync::Arc;
use std::time::Duration;

use engine::disk::RealDisk;
use engine::log::{LogEngine, LogOptions, LogWriter};
use engine::store::rocks::{RocksOptions, RocksStore};
use futures::future::BoxFuture;
use kv::api::{Request, Response, ServerError};
use kv::client::{Client, ClientConfig, LocalStore, RemoteConfig, RemoteEndpoint, RoutedEndpoint};
use kv::server::{KvServer, KvServerConfig};
use prometheus::Registry;
use raftstore::snapshot::SnapshotFiles;
use raftstore::time::RealClock;
use raftstore::transport::{
    ClusterId as RaftClusterId, GrpcTransport, TransportMetrics, TransportOptions, TransportServer,
};
use raftstore::{RegionId, RegionStatus, StoreConfig, StoreHandle, StoreParts, StoreRuntime};
use sql::server::{SqlConfig, SqlMetrics, SqlServer};
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;
use tso::client::TsoClientOptions;
use tso::metrics::ClientMetrics;
use tso::{TsoClient, TsoService};
use txn::{Database, TxnConfig};

use super::heartbeat;
use super::join;
use super::oracle::{OracleDirectory, OracleSwitch, oracle};
use super::placement::Placement;
use super::ports::{PortError, Ports};
use super::proto::node_server::NodeServer;
use super::reclaim;
use super::service::NodeService;
use super::state::NodeState;
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
/// Between two looks at things that rarely change.
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
    /// The disk or the log failed; nothing is acknowledged any more.
    #[error("the store stopped serving: {0}")]
    Poisoned(String),
}

/// Names the layer in whatever it failed with.
fn layer<E: std::fmt::Display>(layer: &'static str) -> impl Fn(E) -> ServingError {
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
    /// Heartbeats, discovery and the like: ended by dropping.
    background: JoinSet<()>,
}

/// The storage of a node, opened.
struct Storage {
    store: RocksStore,
    log: LogEngine,
    writer: LogWriter,
    snapshots: SnapshotFiles,
}

impl Serving {
    /// Starts all layers from the bottom. The node takes part in its cluster on return; SQL clients come in with `run`.
    pub(crate) async fn start(
        state: Arc<NodeState>,
        ident: Ident,
        ports: &Ports,
        registry: &Registry,
    ) -> Result<Serving, ServingError> {
        let storage = open_storage(state.clone(), ident.clone(), registry.clone()).await?;
        let (window, tso_service) = oracle::<RocksStore>(registry).map_err(layer("timestamp oracle"))?;
        let options = TransportOptions::new(
            RaftClusterId::new(ident.cluster_id.get()),
            ident.store_id,
            rand::random_range(0..=u64::MAX),
        );
        let metrics = TransportMetrics::new(registry).map_err(layer("transport"))?;
        let snapshots = storage.snapshots.clone();
        let transport = GrpcTransport::new(
            options.clone(),
            Arc::new(state.members.clone()),
            snapshots.clone(),
            metrics.clone(),
            tokio::runtime::Handle::current(),
        );
        let parts = StoreParts {
            store_id: ident.store_id,
            config: StoreConfig::default(),
            store: storage.store,
            log: storage.log,
            snapshots: snapshots.clone(),
            transport: Arc::new(transport),
            listener: Arc::new(OracleSwitch { service: tso_service.clone() }),
            clock: Arc::new(RealClock::new()),
            seed: rand::random_range(0..=u64::MAX),
            registry: registry.clone(),
        };
        let mut background = JoinSet::new();
        background.spawn(join::discover(state.clone(), ident.clone()));
        let runtime = start_store(parts, storage.writer).await?;
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
            .add_service(kv::service::kv_service(server.clone()))
            .add_service(tso::grpc::server(tso_service.clone()))
            .serve_with_incoming_shutdown(ports.listen()?, grpc_stop.clone().cancelled_owned());
        let grpc_task = tokio::spawn(grpc);
        background.spawn(hint_oracle(state.clone(), handle.clone(), tso_service.clone()));
        let tso_client = timestamps(&state, &handle, tso_service, registry)?;
        let (client, remote) = kv_client(&ident, server, registry)?;
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
            background,
        })
    }

    /// Lets SQL clients in as soon as the cluster can serve them, then runs until something fails for good.
    pub(crate) async fn run(&mut self, ports: &Ports, health: &Health) -> ServingError {
        let handle = self.runtime.handle();
        let database = self.database.clone();
        let first = async {
            while let Err(error) = database.begin().await {
                health.not_serving(format!("waiting for the cluster: {error}"));
                tokio::time::sleep(WATCH_INTERVAL).await;
            }
        };
        tokio::select! {
            () = first => {}
            error = poisoned(&handle) => return error,
        }
        match ports.pg() {
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
            error = poisoned(&handle) => error,
            ended = &mut self.grpc_task => ServingError::Layer {
                layer: "server for other nodes",
                why: match ended {
                    Ok(Ok(())) => "it ended".to_string(),
                    Ok(Err(error)) => error.to_string(),
                    Err(error) => error.to_string(),
                },
            },
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

/// Ends when the store failed for good.
async fn poisoned(handle: &StoreHandle<RocksStore>) -> ServingError {
    loop {
        if let Some(why) = handle.poisoned() {
            return ServingError::Poisoned(why);
        }
        tokio::time::sleep(WATCH_INTERVAL).await;
    }
}

/// Opens log, key-value store and snapshot files, and creates the first regions if that is still to be done.
async fn open_storage(state: Arc<NodeState>, ident: Ident, registry: Registry) -> Result<Storage, ServingError> {
    let open = move || {
        let log_dir = state.data().folder("log")?;
        let disk = RealDisk::open(&log_dir).map_err(layer("Raft log"))?;
        let options = LogOptions { registry: Some(registry), ..LogOptions::default() };
        let (log, mut writer, report) = LogEngine::open(disk, options).map_err(layer("Raft log"))?;
        tracing::info!(?report, "opened the Raft log");
        let cache = usize::try_from(state.config.cache_bytes).unwrap_or(usize::MAX);
        let options = RocksOptions { block_cache_bytes: cache, ..RocksOptions::default() };
        let store = RocksStore::open(&state.data().folder("kv")?, &options).map_err(layer("key-value store"))?;
        let disk = RealDisk::open(state.data().folder("snap")?).map_err(layer("snapshot files"))?;
        let snapshots = SnapshotFiles::open(disk).map_err(layer("snapshot files"))?;
        if !ident.bootstrapped {
            let regions = ident.plan.iter().flat_map(|plan| plan.regions());
            let own: Vec<_> = regions.filter(|region| region.peer_on(ident.store_id).is_some()).collect();
            raftstore::bootstrap(&store, &log, &own, &mut || {
                writer.turn();
            })
            .map_err(layer("first regions"))?;
            state.update_ident(|present| {
                Ok::<_, DataDirError>(present.map(|present| Ident { bootstrapped: true, ..present.clone() }))
            })?;
        }
        Ok(Storage { store, log, writer, snapshots })
    };
    tokio::task::spawn_blocking(open).await.map_err(layer("storage"))?
}

/// Recovers the regions and starts the store's threads.
async fn start_store(
    parts: StoreParts<RocksStore>,
    writer: LogWriter,
) -> Result<StoreRuntime<RocksStore>, ServingError> {
    let start = move || StoreRuntime::start(parts, writer);
    tokio::task::spawn_blocking(start).await.map_err(layer("store"))?.map_err(layer("store"))
}

fn timestamps(
    state: &NodeState,
    handle: &StoreHandle<RocksStore>,
    service: TsoService,
    registry: &Registry,
) -> Result<TsoClient, ServingError> {
    let own = state.config.advertise.to_string();
    let directory = OracleDirectory { store: handle.clone(), members: state.members.clone() };
    let router = tso::router::TsoRouter::new(Some((own, service)), Arc::new(directory));
    let metrics = ClientMetrics::new(registry).map_err(layer("timestamp client"))?;
    Ok(TsoClient::with_options(Arc::new(router), TsoClientOptions::default(), Some(metrics)))
}

fn kv_client(
    ident: &Ident,
    server: KvServer<StoreHandle<RocksStore>>,
    registry: &Registry,
) -> Result<(Client, Arc<RemoteEndpoint>), ServingError> {
    let remote = Arc::new(RemoteEndpoint::new(RemoteConfig::default()));
    let endpoint = RoutedEndpoint::new(ident.store_id, Arc::new(Local(server)), remote.clone(), LOCAL_TIMEOUT);
    let client = Client::with_config(Arc::new(endpoint), ClientConfig::default(), registry);
    Ok((client.map_err(layer("key-value client"))?, remote))
}

fn sql_server(ident: &Ident, database: Database, registry: &Registry) -> Result<Arc<SqlServer>, ServingError> {
    let config = SqlConfig { node_id: ident.store_id.get(), ..SqlConfig::default() };
    let metrics = SqlMetrics::new(registry).map_err(layer("SQL"))?;
    Ok(SqlServer::new(database, config, metrics))
}

/// Keeps the oracle's service able to say who serves, for nodes that have no replica of the system region.
async fn hint_oracle(state: Arc<NodeState>, handle: StoreHandle<RocksStore>, service: TsoService) {
    loop {
        let leader = handle.region(RegionId::SYSTEM).and_then(|status| status.leader);
        service.set_leader_hint(leader.and_then(|leader| state.members.get(leader.store)));
        tokio::time::sleep(WATCH_INTERVAL).await;
    }
}

/// Tells the client where the other stores are, whenever that changes.
async fn follow_members(state: Arc<NodeState>, remote: Arc<RemoteEndpoint>) {
    let mut told = Vec::new();
    loop {
        let known = state.members.all();
        if known != told {
            match remote.set_stores(known.clone()) {
                Ok(()) => told = known,
                Err(error) => tracing::error!(%error, "an address cannot be dialled"),
            }
        }
        tokio::time::sleep(WATCH_INTERVAL).await;
    }
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

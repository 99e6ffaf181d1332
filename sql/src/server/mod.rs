//! The server side of the PostgreSQL protocol: sockets, startup, the connection loop, shutdown.
//!
//! [`SqlServer::serve`] accepts connections and spawns a task for each ([`connection`]) on one of the
//! [`SessionThreads`]. The task checks and decodes bytes with [`crate::protocol`], passes messages to the
//! [`crate::session`] and writes its buffered replies. All connections of a node share the [`Node`]. The [`registry`]
//! routes a CancelRequest on one connection to the session of another, by way of its node if that is another one
//! ([`cluster`]). While the node starts,
//! [`reject_while_starting`] answers clients.
//!
//! # Layers
//!
//! 1. `check`, `config`, `registry`, `starting`, `threads`: comparison of tables with their indexes, configuration, the
//!    session registry, answers before the start, the threads of sessions
//! 2. `cluster`: the sessions of all nodes
//! 3. `connection`: one connection

mod check;
mod cluster;
mod config;
mod connection;
mod registry;
mod starting;
mod threads;

use std::sync::Arc;
use std::time::Duration;

use kv::Key;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tso::Timestamp;
use txn::Database;

use crate::advisory::NodeLocks;
pub use crate::advisory::{AdvisoryConfig, AdvisoryHolder};
use crate::catalog::{CatalogPeers, NodeCatalog, NodeId, row_name};
use crate::clock;
pub use crate::clock::WallClock;
use crate::coop::Workers;
use crate::error::SqlError;
pub use crate::metrics::SqlMetrics;
use crate::sequence::NodeSequences;
use crate::session::state::NodeContext;
use crate::session::values::{ClusterSessions, NodeView};
use crate::sessions::{SessionInfo, SessionPeers, Signal};
pub use check::TableChecks;
use cluster::NodeSessions;
pub use config::SqlConfig;
use connection::Node;
use pgtypes::TimeZone;
use registry::Registry;
use starting::ACCEPT_PAUSE;
pub use starting::reject_while_starting;
pub use threads::SessionThreads;

/// Time for connections to close after the kill. A commit that takes longer outlives `serve`.
const CLOSE_GRACE: Duration = Duration::from_secs(5);

/// Limit of the time to give the lease on the catalog back.
const RELEASE_LIMIT: Duration = Duration::from_millis(500);

/// The front end of a node.
pub struct SqlServer {
    node: Arc<Node>,
    db: Database,
    handshakes: Arc<Semaphore>,
}

impl SqlServer {
    /// A front end over a database. The config must be valid (see [`SqlConfig::validate`]).
    pub fn new(db: Database, config: SqlConfig, metrics: SqlMetrics) -> Arc<SqlServer> {
        SqlServer::with_clock(db, config, metrics, clock::system_micros)
    }

    /// As [`SqlServer::new`], with another source of `now()` than the system's clock.
    pub fn with_clock(db: Database, config: SqlConfig, metrics: SqlMetrics, wall_clock: WallClock) -> Arc<SqlServer> {
        let handshakes = Arc::new(Semaphore::new(config.max_handshakes));
        let sessions = Registry::new(config.node_id);
        let node = NodeId(config.node_id);
        let catalog = NodeCatalog::new(db.clone(), node, config.catalog.clone(), metrics.clone());
        let advisory = NodeLocks::new(db.clone(), node, config.advisory.clone());
        let sequences = NodeSequences::new(db.clone());
        let status_host = config.status_host.as_deref().map(Box::from);
        let workers = Workers::for_node();
        let cluster = Arc::new(NodeSessions::new(sessions.clone(), db.clone()));
        let view = NodeView { started: wall_clock(), clock: wall_clock, sessions: cluster.clone() };
        let context =
            Arc::new(NodeContext { catalog, advisory, sequences, metrics, wall_clock, workers, status_host, view });
        Arc::new(SqlServer { node: Arc::new(Node { context, config, sessions, cluster }), db, handshakes })
    }

    /// Sets how the other nodes are told of schema changes. Without it they notice when they renew their leases.
    pub fn set_peers(&self, peers: Arc<dyn CatalogPeers>) {
        self.node.context.catalog.set_peers(peers);
    }

    /// Renews the node's lease on the catalog, because another node has changed the schema. A node that has not had a
    /// lease has nothing to renew.
    ///
    /// # Errors
    /// 57P03 if the store or the oracle does not answer.
    pub async fn renew_lease(&self) -> Result<(), SqlError> {
        let catalog = &self.node.context.catalog;
        if catalog.version() == 0 { Ok(()) } else { catalog.renew().await }
    }

    /// The number of open sessions.
    pub fn connections(&self) -> usize {
        self.node.sessions.len()
    }

    /// Sets how the sessions of the other nodes are found. Without it there are none.
    pub fn set_session_peers(&self, peers: Arc<dyn SessionPeers>) {
        self.node.cluster.set_peers(peers);
    }

    /// The sessions of this node.
    pub fn sessions(&self) -> Vec<SessionInfo> {
        self.node.cluster.own()
    }

    /// The names under which sessions of this node may hold locks, with their process ids.
    pub fn lock_owners(&self) -> Vec<(Timestamp, i32)> {
        let owners = self.node.cluster.db().row_lockers().into_iter();
        owners.map(|(owner, session)| (owner, session.cast_signed())).collect()
    }

    /// Signals a session of this node. Returns whether there is one of this process id.
    pub fn signal(&self, pid: i32, signal: Signal) -> bool {
        self.node.sessions.signal(pid, signal)
    }

    /// The sessions that hold advisory locks, of all nodes.
    ///
    /// # Errors
    /// 57P03 if the store or the oracle does not answer.
    pub async fn advisory_locks(&self) -> Result<Vec<AdvisoryHolder>, SqlError> {
        Ok(self.node.context.advisory.holders().await?)
    }

    /// Begins to compare tables of a database with their indexes, all at one snapshot, while clients go on. `names`: as
    /// in SQL, in `public` without a schema; none for all tables.
    ///
    /// # Errors
    /// 3D000 and 42P01 for names that mean nothing, 57P03 if the stores or the oracle do not answer.
    pub async fn check_tables(&self, database: &str, names: &[String]) -> Result<TableChecks, SqlError> {
        TableChecks::begin(&self.db, database, names).await
    }

    /// The name of the table of a row, and the row's key as PostgreSQL's messages have it, `(id)=(5)`; empty if the
    /// table has none. `None` if the key is of no row of a table that this node knows.
    pub fn row_name(&self, key: &Key) -> Option<(String, String)> {
        let lease = self.node.context.catalog.newest_lease()?;
        row_name(&lease.catalog, key, &TimeZone::utc())
    }

    /// Serves connections on `threads` until `stop`. Then accepts no more, ends idle sessions at once and others at the
    /// end of their statement or transaction block. After `grace` ends all sessions. An ended session gets 57P01. A
    /// commit is never interrupted.
    pub async fn serve(
        self: Arc<Self>,
        listener: TcpListener,
        threads: SessionThreads,
        stop: CancellationToken,
        grace: Duration,
    ) {
        let tasks = TaskTracker::new();
        let lease = LeaseTask::start(&self.node.context);
        loop {
            let accepted = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, _)) => self.accept(stream, &threads, &tasks, &stop),
                // No descriptors are left, or the client has disconnected. Neither may end the loop.
                Err(error) => {
                    tracing::warn!("cannot accept a connection: {error}");
                    clock::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        drop(listener);
        tasks.close();
        self.node.sessions.drain();
        if tokio::time::timeout(grace, tasks.wait()).await.is_err() {
            self.node.sessions.kill();
            if tokio::time::timeout(CLOSE_GRACE, tasks.wait()).await.is_err() {
                tracing::warn!("{} connections did not close in time", tasks.len());
            }
        }
        lease.end().await;
    }

    fn accept(&self, stream: TcpStream, threads: &SessionThreads, tasks: &TaskTracker, stop: &CancellationToken) {
        let Ok(permit) = self.handshakes.clone().try_acquire_owned() else {
            self.node.context.metrics.connection_refused();
            return;
        };
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!("cannot set TCP_NODELAY: {error}");
        }
        let node = self.node.clone();
        let stop = stop.clone();
        let addresses = (stream.peer_addr().ok(), stream.local_addr().ok().map(|address| address.port()));
        // The runtime of the session's thread has to register the socket.
        let stream = match stream.into_std() {
            Ok(stream) => stream,
            Err(error) => return tracing::warn!("cannot serve a connection: {error}"),
        };
        let seat = threads.assign();
        let runtime = seat.runtime().clone();
        let session = async move {
            let _seat = seat;
            match TcpStream::from_std(stream) {
                Ok(stream) => {
                    let (reader, writer) = stream.into_split();
                    connection::run(node, Box::new(reader), Box::new(writer), addresses, permit, stop).await;
                }
                Err(error) => tracing::warn!("cannot serve a connection: {error}"),
            }
        };
        tasks.spawn_on(session, &runtime);
    }
}

/// What fuzzers reach without a socket.
#[cfg(feature = "fuzzing")]
impl SqlServer {
    /// Serves one connection over any pair of streams, until either side closes. A panic of the session is an error to
    /// the client, and counted in `sql_panics_total`.
    pub async fn serve_streams(
        &self,
        reader: Box<dyn tokio::io::AsyncRead + Send + Unpin>,
        writer: Box<dyn tokio::io::AsyncWrite + Send + Unpin>,
    ) {
        // The semaphore is never closed.
        let Ok(permit) = self.handshakes.clone().acquire_owned().await else { return };
        connection::run(self.node.clone(), reader, writer, (None, None), permit, CancellationToken::new()).await;
    }

    /// The newest catalog that the node has a lease on, as a session of the database `postgres` sees it. `None` before
    /// the first statement.
    pub fn newest_catalog(&self) -> Option<Arc<crate::catalog::Catalog>> {
        self.node.context.catalog.newest_lease().map(|lease| lease.catalog.clone())
    }
}

/// The tasks that keep the node's leases, on the catalog and on advisory locks. Its drop stops them.
struct LeaseTask {
    catalog: NodeCatalog,
    advisory: NodeLocks,
    stop: CancellationToken,
}

impl LeaseTask {
    fn start(node: &NodeContext) -> LeaseTask {
        let (catalog, advisory, stop) = (node.catalog.clone(), node.advisory.clone(), CancellationToken::new());
        let (kept, stopped) = (catalog.clone(), stop.clone());
        tokio::spawn(async move { kept.keep(stopped).await });
        let (kept, stopped) = (advisory.clone(), stop.clone());
        tokio::spawn(async move { kept.keep(stopped).await });
        LeaseTask { catalog, advisory, stop }
    }

    /// Stops them, and gives the leases back if that is quick.
    async fn end(self) {
        self.stop.cancel();
        let released = async { tokio::join!(self.advisory.release(), self.catalog.release()) };
        if tokio::time::timeout(RELEASE_LIMIT, released).await.is_err() {
            tracing::debug!("the leases of the node stay until they are over");
        }
    }
}

impl Drop for LeaseTask {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

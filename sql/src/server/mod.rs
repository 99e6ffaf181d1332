//! The server side of the PostgreSQL protocol: sockets, startup, the connection loop, shutdown.
//!
//! [`SqlServer::serve`] accepts connections and spawns a task for each ([`connection`]). The task checks and decodes
//! bytes with [`crate::protocol`], passes messages to the [`crate::session`] and writes its buffered replies. All
//! connections of a node share the [`Node`]. The [`registry`] routes a CancelRequest on one connection to the session
//! of another. While the node starts, [`reject_while_starting`] answers clients.
//!
//! # Layers
//!
//! 1. `config`, `registry`, `starting`: configuration, the session registry, answers before the start
//! 2. `connection`: one connection

mod config;
mod connection;
mod registry;
mod starting;

use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use txn::Database;

use crate::clock;
pub use crate::clock::WallClock;
pub use crate::metrics::SqlMetrics;
use crate::session::state::NodeContext;
pub use config::SqlConfig;
use connection::Node;
use registry::Registry;
use starting::ACCEPT_PAUSE;
pub use starting::reject_while_starting;

/// Time for connections to close after the kill. A commit that takes longer outlives `serve`.
const CLOSE_GRACE: Duration = Duration::from_secs(5);

/// The front end of a node.
pub struct SqlServer {
    node: Arc<Node>,
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
        let context = Arc::new(NodeContext::new(db, metrics, wall_clock));
        Arc::new(SqlServer { node: Arc::new(Node { context, config, sessions }), handshakes })
    }

    /// The number of open sessions.
    pub fn connections(&self) -> usize {
        self.node.sessions.len()
    }

    /// Serves connections until `stop`. Then accepts no more, ends idle sessions at once and others at the end of their
    /// statement or transaction block. After `grace` ends all sessions. An ended session gets 57P01. A commit is never
    /// interrupted.
    pub async fn serve(self: Arc<Self>, listener: TcpListener, stop: CancellationToken, grace: Duration) {
        let tasks = TaskTracker::new();
        loop {
            let accepted = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, _)) => self.accept(stream, &tasks, &stop),
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
        if tokio::time::timeout(grace, tasks.wait()).await.is_ok() {
            return;
        }
        self.node.sessions.kill();
        if tokio::time::timeout(CLOSE_GRACE, tasks.wait()).await.is_err() {
            tracing::warn!("{} connections did not close in time", tasks.len());
        }
    }

    fn accept(&self, stream: TcpStream, tasks: &TaskTracker, stop: &CancellationToken) {
        let Ok(permit) = self.handshakes.clone().try_acquire_owned() else {
            self.node.context.metrics.connection_refused();
            return;
        };
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!("cannot set TCP_NODELAY: {error}");
        }
        let node = self.node.clone();
        let stop = stop.clone();
        let (reader, writer) = stream.into_split();
        tasks.spawn(async move { connection::run(node, reader, Box::new(writer), permit, stop).await });
    }
}

//! The state of a node: its configuration, identity, address book and placement role. Also the edge where a node reads
//! its clock and draws random ids.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use engine::store::rocks::RocksStore;
use kv::gc::CollectBound;
use kv::server::KvServer;
use parking_lot::Mutex;
use raftstore::StoreHandle;
use raftstore::transport::ClusterId;
use sql::server::SqlServer;
use tokio::sync::watch;
use txn::Database;

use super::members::Members;
use super::placement::Placement;
use crate::config::NodeConfig;
use crate::data_dir::{DataDir, DataDirError, Ident};

/// A random id, never 0.
#[expect(clippy::disallowed_methods, reason = "the edge where a node draws its ids and the seeds of its components")]
pub(super) fn random_id() -> u64 {
    rand::random_range(1..=u64::MAX)
}

/// The id of a new cluster.
pub(super) fn new_cluster_id() -> ClusterId {
    ClusterId::new(random_id())
}

/// The state that all parts of a node share.
pub(crate) struct NodeState {
    /// The configuration, with the actual ports.
    pub(crate) config: NodeConfig,
    /// The address book.
    pub(crate) members: Members,
    /// The placement role; set once the node serves.
    pub(crate) placement: OnceLock<Placement<RocksStore>>,
    /// The PostgreSQL front end; set once the node serves.
    pub(crate) sql: OnceLock<Arc<SqlServer>>,
    /// The transactions; set once the node serves.
    pub(crate) database: OnceLock<Database>,
    /// The key-value server; set once the node serves.
    pub(crate) kv: OnceLock<KvServer<StoreHandle<RocksStore>>>,
    /// Up to where the store collects old versions.
    pub(crate) collect_bound: CollectBound,
    data: DataDir,
    ident: watch::Sender<Option<Ident>>,
    /// Held while the identity changes on disk and in memory.
    ident_lock: Mutex<()>,
    started: std::time::Instant,
}

impl NodeState {
    /// The state of a node over its locked data directory.
    #[expect(clippy::disallowed_methods, reason = "the edge where a node's clock begins")]
    pub(crate) fn new(config: NodeConfig, data: DataDir, ident: Option<Ident>) -> NodeState {
        NodeState {
            config,
            members: Members::default(),
            placement: OnceLock::new(),
            sql: OnceLock::new(),
            database: OnceLock::new(),
            kv: OnceLock::new(),
            collect_bound: CollectBound::new(),
            data,
            ident: watch::Sender::new(ident),
            ident_lock: Mutex::new(()),
            started: std::time::Instant::now(),
        }
    }

    /// The identity; `None` until the node belongs to a cluster.
    pub(crate) fn ident(&self) -> Option<Ident> {
        self.ident.borrow().clone()
    }

    /// Completes when the node belongs to a cluster.
    pub(crate) async fn wait_for_ident(&self) -> Ident {
        let mut changes = self.ident.subscribe();
        loop {
            if let Some(ident) = changes.borrow_and_update().clone() {
                return ident;
            }
            // Never fails: `self` owns the sender.
            if changes.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Changes the identity: `change` gets the current one and returns the new one, or `None` to keep it. Durable on
    /// return. Blocks on the disk.
    pub(crate) fn update_ident<E: From<DataDirError>>(
        &self,
        change: impl FnOnce(Option<&Ident>) -> Result<Option<Ident>, E>,
    ) -> Result<(), E> {
        let _guard = self.ident_lock.lock();
        let current = self.ident();
        if let Some(new) = change(current.as_ref())? {
            self.data.write_ident(&new)?;
            self.ident.send_replace(Some(new));
        }
        Ok(())
    }

    /// The data directory.
    pub(crate) fn data(&self) -> &DataDir {
        &self.data
    }

    /// Time since the node started.
    #[expect(clippy::disallowed_methods, reason = "the edge where a node's clock is read")]
    pub(crate) fn uptime(&self) -> Duration {
        std::time::Instant::now().duration_since(self.started)
    }
}

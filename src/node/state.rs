//! What a node knows of itself, from before it belongs to a cluster until it stops.

use std::sync::OnceLock;
use std::time::Duration;

use engine::store::rocks::RocksStore;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::members::Members;
use super::placement::Placement;
use crate::config::NodeConfig;
use crate::data_dir::{DataDir, DataDirError, Ident};

/// Shared by everything that runs on a node.
pub(crate) struct NodeState {
    /// The flags it was started with.
    pub(crate) config: NodeConfig,
    /// Where the stores answer.
    pub(crate) members: Members,
    /// The placement role; set once the node serves.
    pub(crate) placement: OnceLock<Placement<RocksStore>>,
    data: DataDir,
    ident: watch::Sender<Option<Ident>>,
    /// Serialises changes of the identity with their write to disk.
    ident_turn: Mutex<()>,
    started: std::time::Instant,
}

impl NodeState {
    /// A node over its opened data directory.
    #[expect(clippy::disallowed_methods, reason = "the edge where a node's clock begins")]
    pub(crate) fn new(config: NodeConfig, data: DataDir, ident: Option<Ident>) -> NodeState {
        NodeState {
            config,
            members: Members::default(),
            placement: OnceLock::new(),
            data,
            ident: watch::Sender::new(ident),
            ident_turn: Mutex::new(()),
            started: std::time::Instant::now(),
        }
    }

    /// Which store this is; `None` until the node belongs to a cluster.
    pub(crate) fn ident(&self) -> Option<Ident> {
        self.ident.borrow().clone()
    }

    /// Ends when the node belongs to a cluster.
    pub(crate) async fn wait_for_ident(&self) -> Ident {
        let mut changes = self.ident.subscribe();
        loop {
            if let Some(ident) = changes.borrow_and_update().clone() {
                return ident;
            }
            // The sender lives in `self`, so a change always comes or the node stops.
            if changes.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Changes the identity: `change` sees the present one and returns the new one, or `None` to leave it. Durable on return. Blocks on
    /// the disk.
    pub(crate) fn update_ident<E: From<DataDirError>>(
        &self,
        change: impl FnOnce(Option<&Ident>) -> Result<Option<Ident>, E>,
    ) -> Result<(), E> {
        let _turn = self.ident_turn.lock();
        let present = self.ident();
        if let Some(new) = change(present.as_ref())? {
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

//! The sessions of the cluster as a session of this node sees them: those of the registry, and those that other nodes
//! have.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use futures::future::BoxFuture;
use txn::{Database, LockKind};

use super::registry::Registry;
use crate::error::SqlError;
use crate::session::values::ClusterSessions;
use crate::sessions::{LockList, SessionInfo, SessionPeers, SessionWait, Signal};

/// The sessions of the cluster; see the module documentation.
pub(super) struct NodeSessions {
    registry: Arc<Registry>,
    db: Database,
    /// The other nodes. Unset: there are none.
    peers: OnceLock<Arc<dyn SessionPeers>>,
}

impl NodeSessions {
    pub(super) fn new(registry: Arc<Registry>, db: Database) -> NodeSessions {
        NodeSessions { registry, db, peers: OnceLock::new() }
    }

    /// The transactions of the node.
    pub(super) fn db(&self) -> &Database {
        &self.db
    }

    /// Sets how the other nodes are asked.
    pub(super) fn set_peers(&self, peers: Arc<dyn SessionPeers>) {
        if self.peers.set(peers).is_err() {
            tracing::warn!("the peers of the sessions were set twice");
        }
    }
}

impl ClusterSessions for NodeSessions {
    fn own(&self) -> Vec<SessionInfo> {
        let waiting: HashMap<u32, LockKind> = self.db.waiting_sessions().into_iter().collect();
        let mut sessions = self.registry.list();
        for session in &mut sessions {
            session.wait = session.wait.or_else(|| {
                waiting.get(&session.pid.cast_unsigned()).map(|kind| match kind {
                    LockKind::Row => SessionWait::Row,
                    LockKind::Session => SessionWait::Advisory,
                })
            });
        }
        sessions
    }

    fn all(&self) -> BoxFuture<'_, Vec<SessionInfo>> {
        Box::pin(async move {
            let others = match self.peers.get() {
                Some(peers) => peers.sessions().await,
                None => Vec::new(),
            };
            let mut all = self.own();
            all.extend(others);
            all.sort_by_key(|session| session.pid);
            all
        })
    }

    fn locks(&self) -> BoxFuture<'_, Result<LockList, SqlError>> {
        Box::pin(async move {
            match self.peers.get() {
                Some(peers) => peers.locks().await,
                None => Ok(LockList::default()),
            }
        })
    }

    fn signal(&self, pid: i32, signal: Signal) -> BoxFuture<'_, Result<bool, SqlError>> {
        Box::pin(async move {
            match self.peers.get() {
                _ if self.registry.is_own(pid) => Ok(self.registry.signal(pid, signal)),
                Some(peers) => peers.signal(pid, signal).await,
                None => Ok(false),
            }
        })
    }
}

//! The sessions of the cluster as one of its nodes sees them: what is known of each, the locks that they hold and wait
//! for, and signals to them.
//!
//! A node knows its own sessions ([`crate::server`]). Those of other nodes, and the locks in the memory of leaders, it
//! asks for: [`SessionPeers`]. The process id of a session has the number of its node in its upper bits
//! ([`node_of`]), so it is the same for all nodes, and names one session of the cluster.

use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;

use futures::future::BoxFuture;
use kv::Key;
use kv::api::LockMode;
use tso::Timestamp;

use crate::error::{SqlError, SqlState};

/// Bits of a process id for the session's number. The bits above, except the sign, hold the node's.
pub(crate) const SESSION_BITS: u32 = 20;

/// Node numbers are taken modulo this.
pub(crate) const NODES: u64 = 1 << (31 - SESSION_BITS);

/// The number of the node of a session, modulo 2048, from the session's process id.
pub fn node_of(pid: i32) -> Option<u64> {
    u64::try_from(pid >> SESSION_BITS).ok()
}

/// Whether a node, by its number, may have the session of a process id.
pub fn may_have(node: u64, pid: i32) -> bool {
    node_of(pid) == Some(node % NODES)
}

/// A signal to a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// None: asks whether there is such a session.
    Probe,
    /// Cancels its running statement.
    Cancel,
    /// The same, of a client that has to know the secret of the session.
    CancelWithSecret(i32),
    /// Ends the session.
    Terminate,
}

/// The other nodes of the cluster, as the sessions of this one ask them.
pub trait SessionPeers: Send + Sync {
    /// Signals a session of another node. Returns whether there is one of this process id.
    ///
    /// # Errors
    /// 57P03 if its node does not answer.
    fn signal(&self, pid: i32, signal: Signal) -> BoxFuture<'_, Result<bool, SqlError>>;

    /// The sessions of the other nodes. Those of nodes that do not answer are missing.
    fn sessions(&self) -> BoxFuture<'_, Vec<SessionInfo>>;

    /// The locks of rows and the advisory locks of the cluster, held and waited for. Those in the memory of nodes that
    /// do not answer are missing.
    ///
    /// # Errors
    /// 57P03 if what holds advisory locks cannot be read.
    fn locks(&self) -> BoxFuture<'_, Result<LockList, SqlError>>;
}

/// 57P03: a node that is to be asked does not answer.
pub fn silent(node: u64, why: &str) -> SqlError {
    let error = SqlError::new(SqlState::CANNOT_CONNECT_NOW, "the node of the session does not answer");
    error.detail(format!("Node {node}: {why}."))
}

/// What a session does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SessionState {
    /// It runs a statement.
    Active,
    /// It waits for its client, outside of a transaction block.
    #[default]
    Idle,
    /// It waits for its client, in a transaction block.
    IdleInTransaction,
    /// It waits for its client, in a transaction block that has failed.
    IdleInFailedTransaction,
}

/// What a session that is active waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionWait {
    /// The lock of a row.
    Row,
    /// An advisory lock.
    Advisory,
    /// A schema change, which has closed a table.
    Table,
    /// The end of `pg_sleep`.
    Sleep,
}

/// A session. Times are microseconds since 2000-01-01 UTC.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionInfo {
    /// Its process id.
    pub pid: i32,
    /// Its user.
    pub user: Arc<str>,
    /// Its database.
    pub database: Arc<str>,
    /// `application_name`.
    pub application: Arc<str>,
    /// The address and port of the client.
    pub client: Option<SocketAddr>,
    /// Its start.
    pub started: i64,
    /// The start of its transaction.
    pub transaction_start: Option<i64>,
    /// The start of its statement, or of its last one; `None`: it has run none.
    pub query_start: Option<i64>,
    /// Since when its state is what it is.
    pub state_change: i64,
    /// What it does.
    pub state: SessionState,
    /// What it waits for.
    pub wait: Option<SessionWait>,
    /// The beginning of the text that the client has sent last.
    pub query: Arc<str>,
}

/// A lock of a row or an advisory lock: held, or waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockInfo {
    /// The key of the row, or of the queue of the advisory lock ([`crate::lock_name`]). A long one is shortened.
    pub key: Key,
    /// The strength.
    pub mode: LockMode,
    /// The transaction, or what a session has for a name.
    pub owner: Timestamp,
    /// Its wait, if it does not have the lock.
    pub wait: Option<LockWait>,
}

/// The wait for a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockWait {
    /// How long it has waited, in milliseconds.
    pub ms: u64,
    /// For whom, the first of them.
    pub behind: Vec<Timestamp>,
}

/// The locks of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LockList {
    /// The locks.
    pub locks: Vec<LockInfo>,
    /// The process ids of their owners, as far as they are known.
    pub owners: HashMap<Timestamp, i32>,
}

impl LockList {
    /// The sessions that are in the way of a session, each once.
    pub(crate) fn blockers(&self, pid: i32) -> BTreeSet<i32> {
        let waits = self.locks.iter().filter(|lock| self.owners.get(&lock.owner) == Some(&pid));
        let behind = waits.filter_map(|lock| lock.wait.as_ref()).flat_map(|wait| &wait.behind);
        behind.filter_map(|owner| self.owners.get(owner).copied()).filter(|other| *other != pid).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_id_names_the_node() {
        assert_eq!((node_of((3 << SESSION_BITS) | 7), node_of(-1)), (Some(3), None));
        assert!(may_have(3, 3 << SESSION_BITS) && may_have(2051, 3 << SESSION_BITS) && !may_have(4, 3 << SESSION_BITS));
        assert!(!may_have(0, -1), "no session");
    }

    #[test]
    fn who_waits_is_blocked_by_holders_and_by_those_before_it() {
        let ts = |ms| Timestamp::new(ms, 0);
        let lock = |owner, behind: &[u64]| LockInfo {
            key: Key::default(),
            mode: LockMode::Update,
            owner: ts(owner),
            wait: (!behind.is_empty()).then(|| LockWait { ms: 5, behind: behind.iter().map(|ms| ts(*ms)).collect() }),
        };
        // 4 is a transaction that has ended by now. 5 and 2 are of one session.
        let owners = [(1, 11), (2, 12), (3, 13), (5, 12)].map(|(owner, pid)| (ts(owner), pid)).into();
        let list = LockList { locks: vec![lock(1, &[]), lock(2, &[1]), lock(3, &[1, 2, 4, 5])], owners };
        assert_eq!(list.blockers(13), BTreeSet::from([11, 12]));
        assert_eq!((list.blockers(12), list.blockers(11)), (BTreeSet::from([11]), BTreeSet::new()));
    }
}

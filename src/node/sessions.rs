//! The SQL sessions of the other nodes, and the locks of the cluster, as the sessions of this node see them: over the
//! node service. Nodes that do not answer in time are left out; a signal to one of them fails.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::future::{BoxFuture, join_all};
use kv::Key;
use kv::api::LockMode;
use raftstore::StoreId;
use sql::error::{SqlError, SqlState};
use sql::sessions::{
    LockInfo, LockList, LockWait, SessionInfo, SessionPeers, SessionState, SessionWait, Signal, may_have, silent,
};
use tonic::transport::Channel;
use tso::Timestamp;

use super::locks;
use super::state::NodeState;
use crate::client;
use crate::config::HostPort;
use crate::proto::node_client::NodeClient;
use crate::proto::session::{State, Wait};
use crate::proto::signal_request::Kind;
use crate::proto::{LocksResponse, RowLock, Session, SessionsRequest, SignalRequest};

/// How long a node may take to answer.
const TIME_LIMIT: Duration = Duration::from_secs(2);
/// How many sessions of a node are listed, and how many bytes of their texts.
const LISTED_MAX: usize = 5_000;
const QUERY_BYTES_MAX: usize = 2 << 20;
/// How many locks a session sees.
const LOCKS: usize = 10_000;

/// The other nodes; see the module documentation.
pub(super) struct ClusterSessions {
    /// The node owns its front end, which owns this.
    state: Weak<NodeState>,
}

impl ClusterSessions {
    pub(super) fn new(state: &Arc<NodeState>) -> ClusterSessions {
        ClusterSessions { state: Arc::downgrade(state) }
    }

    /// The node, and its cluster.
    fn node(&self) -> Result<(Arc<NodeState>, u64, StoreId), SqlError> {
        let stopped = || SqlError::new(SqlState::CANNOT_CONNECT_NOW, "the node stops");
        let state = self.state.upgrade().ok_or_else(stopped)?;
        let ident = state.ident().ok_or_else(stopped)?;
        Ok((state, ident.cluster_id.get(), ident.store_id))
    }

    async fn all_others(&self) -> Vec<SessionInfo> {
        let Ok((state, cluster_id, own)) = self.node() else { return Vec::new() };
        let others = state.members.all().into_iter().filter(|(store, _)| *store != own);
        let asked = others.map(|(store, address)| {
            let state = &state;
            async move {
                let ask = async {
                    let mut node = dial(state, &address).await?;
                    let answer = node.sessions(SessionsRequest { cluster_id }).await;
                    answer.map_err(|status| status.message().to_owned())
                };
                match in_time(ask).await {
                    Ok(answer) => answer.into_inner().sessions.into_iter().map(info_of).collect(),
                    Err(why) => {
                        tracing::warn!(node = %store, why, "the sessions of a node are not listed");
                        Vec::new()
                    }
                }
            }
        });
        join_all(asked).await.into_iter().flatten().collect()
    }

    async fn signal_other(&self, pid: i32, signal: Signal) -> Result<bool, SqlError> {
        let (state, cluster_id, own) = self.node()?;
        let (kind, secret) = match signal {
            Signal::Probe => (Kind::Probe, None),
            Signal::Cancel => (Kind::Cancel, None),
            Signal::CancelWithSecret(secret) => (Kind::Cancel, Some(secret)),
            Signal::Terminate => (Kind::Terminate, None),
        };
        let others = state.members.all().into_iter().filter(|(store, _)| *store != own && may_have(store.get(), pid));
        for (store, address) in others {
            let ask = async {
                let mut node = dial(&state, &address).await?;
                let request = SignalRequest { cluster_id, pid, kind: kind.into(), secret };
                node.signal(request).await.map_err(|status| status.message().to_owned())
            };
            if in_time(ask).await.map_err(|why| silent(store.get(), &why))?.into_inner().found {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn all_locks(&self) -> Result<LockList, SqlError> {
        let (state, ..) = self.node()?;
        let ident = state.ident().ok_or_else(|| SqlError::new(SqlState::CANNOT_CONNECT_NOW, "the node stops"))?;
        let listed = locks::all(&state, &ident, LOCKS).await;
        listed.map(list_of).map_err(|status| SqlError::new(SqlState::CANNOT_CONNECT_NOW, status.message()))
    }
}

impl SessionPeers for ClusterSessions {
    fn signal(&self, pid: i32, signal: Signal) -> BoxFuture<'_, Result<bool, SqlError>> {
        Box::pin(self.signal_other(pid, signal))
    }

    fn sessions(&self) -> BoxFuture<'_, Vec<SessionInfo>> {
        Box::pin(self.all_others())
    }

    fn locks(&self) -> BoxFuture<'_, Result<LockList, SqlError>> {
        Box::pin(self.all_locks())
    }
}

async fn dial(state: &NodeState, address: &str) -> Result<NodeClient<Channel>, String> {
    let host: HostPort = address.parse()?;
    client::connect(&host, state.config.connect_from).await.map_err(|error| error.to_string())
}

async fn in_time<T>(ask: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    tokio::time::timeout(TIME_LIMIT, ask).await.unwrap_or_else(|_| Err("no answer in time".to_owned()))
}

/// The sessions of this node as it tells others. Their texts share a budget, so that the message stays small.
pub(super) fn messages(mut sessions: Vec<SessionInfo>) -> Vec<Session> {
    sessions.truncate(LISTED_MAX);
    let most = QUERY_BYTES_MAX / sessions.len().max(1);
    let message = |info: SessionInfo| Session {
        pid: info.pid,
        user: info.user.to_string(),
        database: info.database.to_string(),
        application: info.application.to_string(),
        client: info.client.map_or_else(String::new, |client| client.to_string()),
        started: info.started,
        transaction_start: info.transaction_start,
        query_start: info.query_start,
        state_change: info.state_change,
        state: state_of(info.state).into(),
        wait: info.wait.map_or(Wait::None, wait_of).into(),
        query: info.query[..info.query.floor_char_boundary(most)].to_owned(),
    };
    sessions.into_iter().map(message).collect()
}

/// The signal of a request.
pub(super) fn signal_of(request: &SignalRequest) -> Signal {
    match (request.kind(), request.secret) {
        (Kind::Probe, _) => Signal::Probe,
        (Kind::Cancel, None) => Signal::Cancel,
        (Kind::Cancel, Some(secret)) => Signal::CancelWithSecret(secret),
        (Kind::Terminate, _) => Signal::Terminate,
    }
}

fn state_of(state: SessionState) -> State {
    match state {
        SessionState::Active => State::Active,
        SessionState::Idle => State::Idle,
        SessionState::IdleInTransaction => State::IdleInTransaction,
        SessionState::IdleInFailedTransaction => State::IdleInFailedTransaction,
    }
}

fn wait_of(wait: SessionWait) -> Wait {
    match wait {
        SessionWait::Row => Wait::RowLock,
        SessionWait::Advisory => Wait::AdvisoryLock,
        SessionWait::Table => Wait::ClosedTable,
        SessionWait::Sleep => Wait::Sleep,
    }
}

fn info_of(session: Session) -> SessionInfo {
    let (state, wait) = (session.state(), session.wait());
    SessionInfo {
        pid: session.pid,
        user: session.user.into(),
        database: session.database.into(),
        application: session.application.into(),
        client: session.client.parse().ok(),
        started: session.started,
        transaction_start: session.transaction_start,
        query_start: session.query_start,
        state_change: session.state_change,
        state: match state {
            State::Active => SessionState::Active,
            State::IdleInTransaction => SessionState::IdleInTransaction,
            State::IdleInFailedTransaction => SessionState::IdleInFailedTransaction,
            State::Idle | State::Unknown => SessionState::Idle,
        },
        wait: match wait {
            Wait::None => None,
            Wait::RowLock => Some(SessionWait::Row),
            Wait::AdvisoryLock => Some(SessionWait::Advisory),
            Wait::ClosedTable => Some(SessionWait::Table),
            Wait::Sleep => Some(SessionWait::Sleep),
        },
        query: session.query.into(),
    }
}

fn list_of(answer: LocksResponse) -> LockList {
    let lock = |lock: RowLock| LockInfo {
        mode: match lock.mode.as_str() {
            "KEY SHARE" => LockMode::KeyShare,
            "SHARE" => LockMode::Share,
            "NO KEY UPDATE" => LockMode::NoKeyUpdate,
            _ => LockMode::Update,
        },
        key: Key::new(lock.key),
        owner: Timestamp::from_raw(lock.start_ts),
        wait: lock
            .waits_ms
            .map(|ms| LockWait { ms, behind: lock.behind.into_iter().map(Timestamp::from_raw).collect() }),
    };
    let owners = answer.sessions.into_iter();
    let owners = owners.map(|session| (Timestamp::from_raw(session.start_ts), session.session.cast_signed()));
    LockList { owners: owners.collect(), locks: answer.locks.into_iter().map(lock).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_survive_the_way_to_another_node() {
        let states = [
            SessionState::Active,
            SessionState::Idle,
            SessionState::IdleInTransaction,
            SessionState::IdleInFailedTransaction,
        ];
        let waits = [SessionWait::Row, SessionWait::Advisory, SessionWait::Table, SessionWait::Sleep];
        let waits = waits.into_iter().map(Some).chain([None]);
        let sessions: Vec<SessionInfo> = waits
            .flat_map(|wait| states.map(|state| (state, wait)))
            .map(|(state, wait)| SessionInfo {
                pid: 7,
                user: "ann".into(),
                client: Some(([127, 0, 0, 1], 5).into()),
                transaction_start: Some(3),
                query: "select".into(),
                state,
                wait,
                ..SessionInfo::default()
            })
            .collect();
        let sent = messages(sessions.clone());
        assert_eq!(sent.into_iter().map(info_of).collect::<Vec<_>>(), sessions);
    }

    #[test]
    fn many_long_texts_are_cut() {
        let session = SessionInfo { query: "é".repeat(512).into(), ..SessionInfo::default() };
        let sent = messages(vec![session; 2 * LISTED_MAX]);
        assert_eq!(sent.len(), LISTED_MAX);
        assert!(sent.iter().map(|session| session.query.len()).sum::<usize>() <= QUERY_BYTES_MAX);
        assert!(sent[0].query.len() > 400);
    }

    #[test]
    fn locks_keep_their_modes_and_owners() {
        let lock = |mode: &str, waits_ms| RowLock {
            key: b"k".to_vec(),
            start_ts: 5,
            mode: mode.to_owned(),
            waits_ms,
            behind: vec![4],
            ..RowLock::default()
        };
        let session = crate::proto::LockingSession { start_ts: 5, store_id: 3, session: 77 };
        let locks = vec![lock("SHARE", None), lock("EXCLUSIVE", Some(9))];
        let list = list_of(LocksResponse { locks, sessions: vec![session], ..LocksResponse::default() });
        assert_eq!(list.owners.get(&Timestamp::from_raw(5)), Some(&77));
        assert_eq!((list.locks[0].mode, &list.locks[0].wait), (LockMode::Share, &None));
        let wait = LockWait { ms: 9, behind: vec![Timestamp::from_raw(4)] };
        assert_eq!((list.locks[1].mode, &list.locks[1].wait), (LockMode::Update, &Some(wait)));
    }
}

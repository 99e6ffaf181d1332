//! The session's settings as the expressions of a statement see and change them.
//!
//! `set_config` works on a copy, because a statement only borrows the session. The session takes the copy over after
//! each batch of rows; if the statement fails, the transaction's rollback restores the settings anyway.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use parking_lot::Mutex;

use super::activity::Activity;
use super::bounded_map::BoundedMap;
use super::settings::{Settings, transaction_modes};
use super::statement::{Hold, Portal, Prepared};
use super::txn_state::TxnState;
use crate::catalog::Catalog;
use crate::clock::{self, Chance, WallClock};
use crate::error::{SqlError, SqlState};
use crate::expr::{LockLog, SessionAccess, SessionsCall};
use crate::protocol::output::Notice;
use crate::sequence::SessionSequences;
use crate::session::interrupt::{canceled_error, shutdown_error};
use crate::sessions::{LockList, SessionInfo, Signal};
use crate::system::{ClusterSource, CursorInfo, SettingInfo, StatementInfo, SystemSession};
use pgtypes::{Array, Datum, SqlType};

/// The longest sleep. Longer requests, and endless ones, take this long.
const MAX_SLEEP: Duration = Duration::from_secs(100 * 365 * 86_400);

/// How often it is looked whether a session has ended.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// The session's values during a batch of rows.
pub(crate) struct SessionValues<'s> {
    settings: &'s Settings,
    state: &'s TxnState,
    /// Whether there is a savepoint.
    nested: bool,
    pid: i32,
    shown: Shown<'s>,
    sequences: &'s SessionSequences,
    requests: Mutex<Requests>,
    lock_log: LockLog,
}

/// What the system catalog shows of the session and its node.
#[derive(Clone, Copy)]
pub(crate) struct Shown<'s> {
    /// The catalog that the transaction sees.
    pub(crate) catalog: &'s Arc<Catalog>,
    pub(crate) user: &'s str,
    pub(crate) database: &'s str,
    /// The id of the transaction, if it has one.
    pub(crate) transaction: Option<i64>,
    pub(crate) node: &'s NodeView,
    /// It knows when the client's statement came. Without one that time is the start of the statement that runs, in
    /// microseconds since 2000-01-01 UTC.
    pub(crate) activity: &'s Activity,
    pub(crate) now: i64,
    pub(crate) chance: &'s Chance,
    pub(crate) statements: &'s BoundedMap<Prepared>,
    pub(crate) portals: &'s BoundedMap<Portal>,
}

impl<'s> Shown<'s> {
    /// Of a session of a user in a database, with its prepared statements and portals.
    pub(crate) fn new(
        catalog: &'s Arc<Catalog>,
        (user, database): (&'s str, &'s str),
        transaction: Option<i64>,
        (node, chance): (&'s NodeView, &'s Chance),
        (activity, now): (&'s Activity, i64),
        (statements, portals): (&'s BoundedMap<Prepared>, &'s BoundedMap<Portal>),
    ) -> Shown<'s> {
        Shown { catalog, user, database, transaction, node, activity, now, chance, statements, portals }
    }
}

/// What the system catalog shows of the node.
pub(crate) struct NodeView {
    /// Its start, in microseconds since 2000-01-01 UTC.
    pub(crate) started: i64,
    /// Its clock.
    pub(crate) clock: WallClock,
    /// Its sessions, and those of the other nodes.
    pub(crate) sessions: Arc<dyn ClusterSessions>,
}

/// The sessions of the cluster.
pub(crate) trait ClusterSessions: Send + Sync {
    /// Those of this node.
    fn own(&self) -> Vec<SessionInfo>;

    /// Those of all nodes that answer, by their process ids.
    fn all(&self) -> BoxFuture<'_, Vec<SessionInfo>>;

    /// The locks of rows and the advisory locks, held and waited for.
    ///
    /// # Errors
    /// 57P03 if they cannot be read.
    fn locks(&self) -> BoxFuture<'_, Result<LockList, SqlError>>;

    /// Signals a session. Returns whether there is one of this process id.
    ///
    /// # Errors
    /// 57P03 if its node does not answer.
    fn signal(&self, pid: i32, signal: Signal) -> BoxFuture<'_, Result<bool, SqlError>>;
}

#[derive(Default)]
struct Requests {
    changed: Option<Settings>,
    state: Option<TxnState>,
    pause: Duration,
    warnings: Vec<Notice>,
    /// What the cluster has answered, of this batch of rows.
    sessions: Option<Arc<Vec<SessionInfo>>>,
    locks: Option<Arc<LockList>>,
}

impl SessionValues<'_> {
    /// The values of a session.
    pub(crate) fn new<'s>(
        settings: &'s Settings,
        (state, nested): (&'s TxnState, bool),
        pid: i32,
        (shown, sequences): (Shown<'s>, &'s SessionSequences),
    ) -> SessionValues<'s> {
        SessionValues {
            settings,
            state,
            nested,
            pid,
            shown,
            sequences,
            requests: Mutex::default(),
            lock_log: LockLog::default(),
        }
    }

    /// The warnings since the last call that the client wants to see.
    pub(crate) fn take_warnings(&self) -> Vec<Notice> {
        let warnings = std::mem::take(&mut self.requests.lock().warnings);
        warnings.into_iter().filter(|warning| self.settings.wants(warning.level)).collect()
    }

    /// The sum of the pauses that were asked for, if any.
    pub(crate) fn pause(&self) -> Option<Duration> {
        let pause = self.requests.lock().pause;
        (!pause.is_zero()).then_some(pause)
    }

    /// Signals a session, and waits for its end if that was asked for. Returns whether it was signalled, and has ended.
    async fn signal(&self, pid: i32, signal: Signal, timeout: Duration) -> Result<bool, SqlError> {
        if pid == self.pid {
            // The session is at work on this very statement.
            return Err(if signal == Signal::Terminate { shutdown_error() } else { canceled_error() });
        }
        let sessions = &self.shown.node.sessions;
        if !sessions.signal(pid, signal).await? {
            self.warn(SqlState::WARNING, &format!("PID {pid} is not a PostgreSQL backend process"));
            return Ok(false);
        }
        let until = clock::instant().checked_add(timeout);
        let is_late = || until.is_some_and(|until| clock::instant() >= until);
        while !timeout.is_zero() && sessions.signal(pid, Signal::Probe).await? {
            if is_late() {
                let ms = timeout.as_millis();
                let message = format!("backend with PID {pid} did not terminate within {ms} milliseconds");
                self.warn(SqlState::WARNING, &message);
                return Ok(false);
            }
            let left = until.map_or(LOOK_INTERVAL, |until| until.saturating_duration_since(clock::instant()));
            clock::sleep(left.min(LOOK_INTERVAL)).await;
        }
        Ok(true)
    }

    /// The locks of the cluster.
    async fn gathered_locks(&self) -> Result<Arc<LockList>, SqlError> {
        if let Some(locks) = &self.requests.lock().locks {
            return Ok(Arc::clone(locks));
        }
        let locks = Arc::new(self.shown.node.sessions.locks().await?);
        self.requests.lock().locks = Some(Arc::clone(&locks));
        Ok(locks)
    }

    /// The settings and the state of the transaction, as far as they were changed.
    pub(crate) fn into_changed(self) -> (Option<Settings>, Option<TxnState>) {
        let requests = self.requests.into_inner();
        (requests.changed, requests.state)
    }
}

impl SessionAccess for SessionValues<'_> {
    fn setting(&self, name: &str) -> Option<String> {
        let requests = self.requests.lock();
        if let Some(value) = requests.state.as_ref().unwrap_or(self.state).setting(name) {
            return Some(value.to_owned());
        }
        let settings = requests.changed.as_ref().unwrap_or(self.settings);
        settings.show(name).ok().map(|(_, value)| value.into_owned())
    }

    fn set(&self, name: &str, value: Option<&str>, local: bool) -> Result<String, SqlError> {
        let mut requests = self.requests.lock();
        let values = value.map(|value| [value.to_owned()]);
        if let Some(modes) = transaction_modes(name, values.as_ref().map(<[String; 1]>::as_slice))? {
            let state = requests.state.get_or_insert_with(|| self.state.clone());
            state.apply(modes, self.nested)?;
            return Ok(state.setting(name).unwrap_or_default().to_owned());
        }
        let settings = requests.changed.get_or_insert_with(|| self.settings.clone());
        match value {
            Some(value) => settings.set(name, Some(&[value.to_owned()]), local)?,
            None => settings.set(name, None, local)?,
        }
        Ok(settings.show(name).map_or_else(|_| String::new(), |(_, value)| value.into_owned()))
    }

    fn work_mem(&self) -> usize {
        self.requests.lock().changed.as_ref().unwrap_or(self.settings).work_mem()
    }

    fn backend_pid(&self) -> i32 {
        self.pid
    }

    fn sleep(&self, seconds: f64) {
        let asked =
            if seconds > 0.0 { Duration::try_from_secs_f64(seconds).unwrap_or(MAX_SLEEP) } else { Duration::ZERO };
        if self.lock_log.is_rehearsal() {
            return;
        }
        let mut requests = self.requests.lock();
        requests.pause = requests.pause.saturating_add(asked).min(MAX_SLEEP);
    }

    fn lock_log(&self) -> Option<&LockLog> {
        Some(&self.lock_log)
    }

    fn sequences(&self) -> Option<&SessionSequences> {
        Some(self.sequences)
    }

    fn system(&self) -> Option<&dyn SystemSession> {
        Some(self)
    }

    fn ask(&self, call: SessionsCall) -> BoxFuture<'_, Result<Datum, SqlError>> {
        Box::pin(async move {
            match call {
                SessionsCall::Signal { pid, signal, timeout_ms } => {
                    self.signal(pid, signal, Duration::from_millis(timeout_ms)).await.map(Datum::Bool)
                }
                SessionsCall::Blockers(pid) => {
                    let blockers = self.gathered_locks().await?.blockers(pid);
                    let pids = blockers.into_iter().map(|pid| Datum::Int(pid.into())).collect();
                    Ok(Datum::Array(Box::new(Array::of(SqlType::INT4.oid, pids))))
                }
            }
        })
    }

    fn gather(&self, source: ClusterSource) -> BoxFuture<'_, Result<(), SqlError>> {
        Box::pin(async move {
            match source {
                ClusterSource::Locks => self.gathered_locks().await.map(drop),
                ClusterSource::Sessions if self.requests.lock().sessions.is_some() => Ok(()),
                ClusterSource::Sessions => {
                    let sessions = self.shown.node.sessions.all().await;
                    self.requests.lock().sessions = Some(Arc::new(sessions));
                    Ok(())
                }
            }
        })
    }

    fn warn(&self, code: SqlState, message: &str) {
        self.requests.lock().warnings.push(Notice::warning(code, message));
    }
}

impl SystemSession for SessionValues<'_> {
    fn catalog(&self) -> &Arc<Catalog> {
        self.shown.catalog
    }

    fn user(&self) -> &str {
        self.shown.user
    }

    fn database(&self) -> &str {
        self.shown.database
    }

    fn node_started(&self) -> i64 {
        self.shown.node.started
    }

    fn pid(&self) -> i32 {
        self.pid
    }

    fn transaction(&self) -> Option<i64> {
        self.shown.transaction
    }

    fn clock(&self) -> i64 {
        (self.shown.node.clock)()
    }

    fn statement_started(&self) -> i64 {
        self.shown.activity.statement_started().unwrap_or(self.shown.now)
    }

    fn random(&self) -> f64 {
        self.shown.chance.next()
    }

    fn set_seed(&self, seed: f64) {
        self.shown.chance.seed(seed);
    }

    fn settings(&self) -> Vec<SettingInfo> {
        self.requests.lock().changed.as_ref().unwrap_or(self.settings).describe()
    }

    fn sessions(&self) -> Arc<Vec<SessionInfo>> {
        let gathered = self.requests.lock().sessions.clone();
        gathered.unwrap_or_else(|| Arc::new(self.shown.node.sessions.own()))
    }

    fn locks(&self) -> Arc<LockList> {
        self.requests.lock().locks.clone().unwrap_or_default()
    }

    fn statements(&self) -> Vec<StatementInfo> {
        list_statements(self.shown.statements)
    }

    fn cursors(&self) -> Vec<CursorInfo> {
        list_cursors(self.shown.portals)
    }
}

/// The named prepared statements, by name.
pub(crate) fn list_statements(statements: &BoundedMap<Prepared>) -> Vec<StatementInfo> {
    // The unnamed statement is nobody's.
    let named = statements.iter().filter(|(name, _)| !name.is_empty());
    let info = |(name, statement): (&str, &Prepared)| StatementInfo {
        name: name.to_owned(),
        statement: statement.text.clone(),
        prepared: statement.created,
        parameter_types: statement.params().to_vec(),
        from_sql: statement.from_sql,
    };
    let mut found: Vec<StatementInfo> = named.map(info).collect();
    found.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    found
}

/// The cursors and portals, by name.
pub(crate) fn list_cursors(portals: &BoundedMap<Portal>) -> Vec<CursorInfo> {
    let info = |(name, portal): (&str, &Portal)| CursorInfo {
        name: name.to_owned(),
        statement: portal.text.clone(),
        is_holdable: portal.cursor().is_some_and(|cursor| cursor.hold != Hold::No),
        is_binary: portal.cursor().is_some_and(|cursor| cursor.binary),
        is_scrollable: portal.cursor().is_some_and(|cursor| cursor.rows.is_scrollable()),
        created: portal.created,
    };
    let mut found: Vec<CursorInfo> = portals.iter().map(info).collect();
    found.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    found
}

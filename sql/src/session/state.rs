//! The state of one session, the transaction in the store, and the components of the node that all sessions share.
//!
//! Its methods are those that every kind of message needs: errors, the end of a reply, the start and end of
//! statements and transactions.

use std::sync::Arc;
use std::time::Duration;

use pgwire::messages::response::ReadyForQuery;
use pgwire::messages::startup::{BackendKeyData, ParameterStatus};
use tokio::time::Instant;
use tso::Timestamp;
use txn::{Savepoint, Transaction, TxnError};

use super::activity::Activity;
use super::bounded_map::{BoundedMap, Limits};
use super::fault::Fault;
use super::interrupt::{Interrupt, timeout_error};
use super::plans::PlanCache;
use super::reads::Wanted;
use super::settings::{SavedSettings, Settings};
use super::sight::Seen;
use super::statement::{BoundStatement, Portal, Prepared, Query, Replay};
use super::txn_state::{Block, Outcome, TxnState};
use super::values::NodeView;
use crate::advisory::{AdvisorySession, NodeLocks};
use crate::catalog::{
    Catalog, Lease, LiveTransaction, NodeCatalog, SchemaChange, SchemaSavepoint, SessionSchemas, SessionSlot,
    constraint_error, doomed,
};
use crate::clock::{self, Chance, WallClock};
use crate::coop::{MANY, Workers, drop_elsewhere};
use crate::error::{SqlError, SqlState};
use crate::exec::KeyLines;
use crate::metrics::SqlMetrics;
use crate::protocol::input::SharedInput;
use crate::protocol::output::{Notice, Output, Severity};
use crate::sequence::{NodeSequences, SessionSequences};
use crate::sessions::SessionState;
use crate::table::Table;
use pgtypes::{SqlType, TimeZone};

/// Limits of one session's prepared statements.
const STATEMENTS: Limits = Limits { what: "prepared statements", count: 10_000, bytes: 128 << 20 };

/// Limits of one session's portals, measured by the size of their parameters.
const PORTALS: Limits = Limits { what: "portals", count: 1_000, bytes: 64 << 20 };

/// A statement is retried after conflicts only within this time of its start. Shorter than the wait for another
/// transaction's lock: a statement that timed out on a lock must not wait ten times.
pub(super) const RETRY_WINDOW: Duration = Duration::from_secs(10);

/// How long a reply waits for advisory locks to be given up. Later they are given up all the same.
const SETTLE_LIMIT: Duration = Duration::from_secs(2);

/// The components that every session of a node uses.
pub(crate) struct NodeContext {
    pub(crate) catalog: NodeCatalog,
    pub(crate) advisory: NodeLocks,
    pub(crate) sequences: NodeSequences,
    pub(crate) metrics: SqlMetrics,
    /// The source of `now()`.
    pub(crate) wall_clock: WallClock,
    /// The threads that parse and bind long texts.
    pub(crate) workers: Workers,
    /// Where `cortado txn status` finds this node, if it is reachable.
    pub(crate) status_host: Option<Box<str>>,
    /// What the system catalog shows of the node.
    pub(crate) view: NodeView,
}

/// No sessions.
#[cfg(test)]
struct NoSessions;

#[cfg(test)]
impl super::values::ClusterSessions for NoSessions {
    fn own(&self) -> Vec<crate::sessions::SessionInfo> {
        Vec::new()
    }

    fn all(&self) -> futures::future::BoxFuture<'_, Vec<crate::sessions::SessionInfo>> {
        Box::pin(async { Vec::new() })
    }

    fn locks(&self) -> futures::future::BoxFuture<'_, Result<crate::sessions::LockList, SqlError>> {
        Box::pin(async { Ok(crate::sessions::LockList::default()) })
    }

    fn signal(&self, _: i32, _: crate::sessions::Signal) -> futures::future::BoxFuture<'_, Result<bool, SqlError>> {
        Box::pin(async { Ok(false) })
    }
}

#[cfg(test)]
impl NodeContext {
    /// A context over a database, with default settings.
    pub(crate) fn new(db: txn::Database, metrics: SqlMetrics, wall_clock: WallClock) -> NodeContext {
        use crate::advisory::AdvisoryConfig;
        use crate::catalog::{CatalogConfig, NodeId};
        let catalog = NodeCatalog::new(db.clone(), NodeId(1), CatalogConfig::default(), metrics.clone());
        let advisory = NodeLocks::new(db.clone(), NodeId(1), AdvisoryConfig::default());
        NodeContext {
            catalog,
            advisory,
            sequences: NodeSequences::new(db),
            metrics,
            wall_clock,
            workers: Workers::for_node(),
            status_host: None,
            view: NodeView { started: wall_clock(), clock: wall_clock, sessions: Arc::new(NoSessions) },
        }
    }

    /// A context over an in-memory cluster.
    pub(crate) fn in_memory() -> NodeContext {
        let cluster = kv::memory::MemoryCluster::new();
        let tso = tso::TsoClient::new(cluster.tso());
        let db = txn::Database::new(kv::client::Client::new(Arc::new(cluster)), tso);
        NodeContext::new(db, SqlMetrics::new(&prometheus::Registry::new()).unwrap(), clock::system_micros)
    }
}

#[cfg(test)]
impl Session {
    /// A session of a node.
    pub(crate) fn over(node: NodeContext) -> Session {
        let (user, database) = ("ann".to_owned(), "postgres".to_owned());
        Session::new(Arc::new(node), user.clone(), database, Settings::new(&user), Default::default())
    }
}

/// The transaction in the store.
pub(crate) struct ActiveTxn {
    pub(crate) txn: Transaction,
    /// The lease that it plans with, from before it had its start_ts.
    pub(crate) lease: Arc<Lease>,
    /// Where its snapshot comes from.
    pub(crate) wanted: Wanted,
    /// The least snapshot that a replica may take, if one takes it.
    pub(crate) floor: Option<Timestamp>,
    /// Whether the catalog was looked at again since it has its start_ts, or it had that from the beginning.
    pub(crate) is_started: bool,
    /// The tables that it uses.
    pub(crate) live: LiveTransaction,
    /// Its schema change, if it has one.
    pub(crate) schema: Option<SchemaChange>,
    /// Whether every statement has a snapshot of its own.
    pub(crate) by_statement: bool,
    /// Whether a statement that writes has begun.
    pub(crate) writes: bool,
    /// Where the data of its last COPY FROM has unique keys that the commit checks.
    pub(crate) copied: KeyLines,
}

impl ActiveTxn {
    /// Its id, if it has one.
    pub(crate) fn id(&self) -> Option<i64> {
        i64::try_from(self.txn.start_ts().raw()).ok().filter(|start_ts| *start_ts > 0)
    }

    /// The catalog that it sees, and whether that has schema changes of its own.
    pub(crate) fn catalog(&self) -> (&Arc<Catalog>, bool) {
        match self.schema.as_ref().filter(|schema| schema.is_changed()) {
            Some(schema) => (schema.catalog(), true),
            None => (&self.lease.catalog, false),
        }
    }

    /// Whether its snapshot lies in the past, and its catalog with it.
    pub(crate) fn is_past(&self) -> bool {
        self.wanted != Wanted::Own && self.floor.is_none()
    }

    /// The tables of a plan that other transactions can use too.
    pub(crate) fn shared_tables<'t>(&'t self, bound: &'t BoundStatement) -> impl Iterator<Item = &'t Arc<Table>> {
        let is_own = |table: &Arc<Table>| self.schema.as_ref().is_some_and(|schema| schema.owns(table));
        bound.plan.tables().filter(move |table| !is_own(table))
    }

    /// Fails if its lease does not cover it, or if a schema change has ended it. Checked after data was read: whatever
    /// the read has found, the plan was the right one for start_ts. The first check after it has taken start_ts looks
    /// at the catalog again.
    ///
    /// A snapshot in the past has the catalog of its time, whatever has become of the tables since. One without a proof
    /// is what it is.
    pub(crate) fn check(&mut self, node: &NodeCatalog) -> Result<(), SqlError> {
        let start_ts = self.txn.read_ts();
        if self.is_past() || self.wanted.is_unproven() {
            return Ok(());
        }
        // The catalog would be too new for the snapshot. The replica was told.
        if self.floor.is_some_and(|floor| start_ts > Timestamp::ZERO && start_ts < floor) {
            return Err(doomed());
        }
        if self.live.is_doomed() || !self.lease.covers(start_ts) {
            return Err(doomed());
        }
        if !self.is_started && start_ts > Timestamp::ZERO {
            node.started(&self.live, self.txn.start_ts(), start_ts).map_err(|_| doomed())?;
            self.is_started = true;
        }
        Ok(())
    }

    /// A later statement of a transaction with snapshots of statements plans with the node's newest catalog, unless the
    /// transaction has changed the schema.
    pub(crate) fn look_again(&mut self, node: &NodeCatalog) {
        if self.by_statement && self.schema.as_ref().is_none_or(|schema| !schema.is_changed()) {
            node.newest_lease().into_iter().for_each(|lease| self.lease = lease);
        }
    }

    /// Begins a statement, with a snapshot of its own if every one has.
    pub(crate) fn begin_statement(&mut self) {
        if !self.by_statement {
            return;
        }
        let last = self.txn.read_ts();
        self.floor = self.floor.map(|floor| floor.max(last));
        self.live.begin_statement();
        self.txn.begin_statement();
        self.is_started = self.txn.read_ts() > Timestamp::ZERO && self.txn.read_ts() == last;
    }

    /// Takes start_ts now, if it has none, and the snapshot: the node knows whose the tables are that it closes.
    pub(crate) async fn start(&mut self, node: &NodeCatalog) -> Result<(), SqlError> {
        self.txn.take_start_ts().await?;
        self.txn.take_read_ts().await?;
        self.check(node)
    }

    /// Commits, and publishes a schema change. Constraint violations become the errors of the constraint.
    ///
    /// Returns the commit_ts, if anything was committed.
    ///
    /// Rows written to a table that another transaction has dropped or truncated meanwhile would be lost. The commit
    /// then fails with a conflict.
    ///
    /// A session with advisory locks commits only as long as it has them.
    async fn commit(
        mut self,
        zone: &TimeZone,
        node: &NodeCatalog,
        (advisory, seen): (&AdvisorySession, &Seen),
    ) -> Result<Option<Timestamp>, Fault> {
        let bound = advisory.commit_bound()?;
        if self.writes {
            node.begin_commit(&self.live, &mut self.txn, bound.as_ref()).map_err(|_| doomed())?;
        }
        if let Some(schema) = &mut self.schema {
            schema.begin_commit();
        }
        let catalog = self.catalog().0.clone();
        let ActiveTxn { txn, live, schema, copied, .. } = self;
        let inserts = txn.inserts();
        let committed = txn.commit().await;
        drop(live);
        match (committed, schema) {
            (Ok(committed), Some(schema)) => Ok(Box::pin(schema.publish()).await.map(|()| committed)?),
            (Ok(committed), None) => Ok(committed),
            (Err(TxnError::Conflict(why)), _) if bound.is_some() => {
                // Perhaps it came too late for its locks.
                advisory.confirm().await?;
                Err(TxnError::Conflict(why).into())
            }
            (Err(error), _) => match constraint_error(&as_last_seen(&catalog, seen), (&error, &inserts), zone) {
                Some(violation) => {
                    let line = || match &error {
                        TxnError::AlreadyExists { key } => copied.context(key),
                        _ => None,
                    };
                    Err(Fault::Statement(violation.context(line)))
                }
                None => Err(error.into()),
            },
        }
    }
}

/// The catalog from where the session last saw it: messages name its schemas.
fn as_last_seen(catalog: &Catalog, seen: &Seen) -> Catalog {
    seen.last().map_or_else(|| catalog.clone(), |last| catalog.seen_from(last.sight()))
}

/// A savepoint.
#[derive(Debug)]
pub(crate) struct SessionSavepoint {
    pub(crate) name: String,
    pub(crate) state: TxnState,
    pub(crate) settings: SavedSettings,
    /// The transaction in the store, if it had begun.
    pub(crate) txn: Option<Savepoint>,
    /// The schema change of the transaction, if it had one.
    pub(crate) schema: Option<SchemaSavepoint>,
    /// The advisory locks of the transaction.
    pub(crate) advisory: usize,
}

/// The state of one connection.
pub(crate) struct Session {
    pub(crate) node: Arc<NodeContext>,
    /// The process id of BackendKeyData.
    pub(crate) pid: i32,
    pub(crate) user: String,
    pub(crate) database: String,
    pub(crate) interrupt: Arc<Interrupt>,
    /// What it does, as other sessions see it.
    pub(crate) activity: Arc<Activity>,
    /// Where COPY FROM reads the client's data. Set by the connection.
    pub(crate) input: Option<SharedInput>,
    pub(crate) settings: Settings,
    /// The catalog as it sees it.
    pub(crate) seen: Seen,
    pub(crate) state: TxnState,
    pub(crate) active: Option<ActiveTxn>,
    /// Where the node sees the tables that the transaction uses.
    pub(crate) slot: SessionSlot,
    /// Its advisory locks.
    pub(crate) advisory: AdvisorySession,
    /// The schemas of its temporary relations.
    pub(crate) temporary: Arc<SessionSchemas>,
    /// Its sequences.
    pub(crate) sequences: SessionSequences,
    /// Its random numbers.
    pub(crate) chance: Chance,
    /// The savepoints of the transaction block, the newest last.
    pub(crate) savepoints: Vec<SessionSavepoint>,
    /// Whether the running statement has met a conflict: it runs again with row locks.
    pub(crate) is_contended: bool,
    /// `now()` of the transaction, in microseconds since 2000-01-01 UTC.
    pub(crate) now: i64,
    pub(crate) plans: PlanCache<(Arc<Query>, Arc<BoundStatement>)>,
    /// The empty list of declared parameter types, shared.
    pub(crate) no_types: Arc<[SqlType]>,
    /// Prepared statements. The unnamed statement has the empty name.
    pub(crate) statements: BoundedMap<Prepared>,
    /// Portals. The unnamed portal has the empty name.
    pub(crate) portals: BoundedMap<Portal>,
    /// The statement timeout of the running statement, across all its retries. In a pipeline it runs from the first
    /// message of a statement to the end of its Execute.
    pub(crate) deadline: Option<Instant>,
    /// The end of the running statement's retry window.
    pub(crate) retry_until: Instant,
    /// Characters before the running statement in the client's query string. Added to error positions.
    pub(crate) char_offset: u32,
    /// The pipeline failed: messages are skipped up to Sync.
    pub(crate) skipping: bool,
    /// Whether the current message is known to be the last before Sync.
    pub(crate) sync_follows: bool,
    /// The only statement that this pipeline's implicit transaction has run, if it can be retried.
    pub(crate) replay: Option<Replay>,
    /// The output position of the last Execute's CommandComplete, if nothing else follows it.
    pub(crate) last_complete: Option<u64>,
    /// Number of statements executed in this transaction.
    pub(crate) executed: u64,
    /// Whether the running statement is one of several of a query string.
    pub(crate) in_string: bool,
    /// Whether the running statement is known to be the only one of its implicit transaction.
    pub(crate) is_alone: bool,
    /// Whether reads report also where they need no options otherwise: somebody has looked at `cortado.last_read`.
    pub(crate) counts_reads: bool,
}

impl Session {
    /// The catalog of the transaction as the session sees it, and whether it has schema changes of its own. 3D000 if
    /// the session's database is gone.
    pub(crate) fn catalog(&mut self) -> Result<(Arc<Catalog>, bool), Fault> {
        let active =
            self.active.as_ref().ok_or_else(|| SqlError::internal("a statement runs without a transaction"))?;
        let (base, own_schema) = active.catalog();
        let (path, whose) = (self.settings.search_path(), (&*self.database, &*self.user));
        let seen = self.seen.look(base, path, whose, &self.temporary)?;
        Ok((seen, own_schema))
    }

    /// Creates a session. `settings` include those of the startup packet.
    pub(crate) fn new(
        node: Arc<NodeContext>,
        user: String,
        database: String,
        settings: Settings,
        (interrupt, activity): (Arc<Interrupt>, Arc<Activity>),
    ) -> Session {
        let slot = node.catalog.register();
        let ended = interrupt.clone();
        let advisory = AdvisorySession::new(node.advisory.clone(), Arc::new(move || ended.lose()));
        let sequences = SessionSequences::new(node.sequences.clone());
        let temporary = SessionSchemas::new(node.catalog.clone());
        Session {
            node,
            pid: 0,
            user,
            database,
            interrupt,
            activity,
            input: None,
            settings,
            seen: Seen::default(),
            state: TxnState::new(),
            active: None,
            slot,
            advisory,
            temporary,
            sequences,
            chance: Chance::new(),
            savepoints: Vec::new(),
            is_contended: false,
            now: 0,
            plans: PlanCache::new(),
            no_types: Arc::new([]),
            statements: BoundedMap::new(STATEMENTS),
            portals: BoundedMap::new(PORTALS),
            deadline: None,
            retry_until: clock::instant(),
            char_offset: 0,
            skipping: false,
            sync_follows: false,
            replay: None,
            last_complete: None,
            executed: 0,
            in_string: false,
            is_alone: false,
            counts_reads: false,
        }
    }

    /// Sends the end of the startup: reported settings, the cancel key, ReadyForQuery.
    pub(crate) fn send_startup_replies(&mut self, key: &BackendKeyData, out: &mut Output) -> Result<(), Fault> {
        self.pid = key.pid;
        self.advisory.set_session(key.pid.cast_unsigned());
        self.put_parameter_statuses(out)?;
        out.put(key)?;
        self.send_ready(out)
    }

    /// Sends changed settings, then ReadyForQuery.
    pub(crate) fn send_ready(&mut self, out: &mut Output) -> Result<(), Fault> {
        self.put_parameter_statuses(out)?;
        out.put(&ReadyForQuery::new(self.state.status()))?;
        let state = match self.state.block() {
            Block::Idle | Block::Implicit => SessionState::Idle,
            Block::Explicit => SessionState::IdleInTransaction,
            Block::Failed => SessionState::IdleInFailedTransaction,
        };
        self.activity.rest(state, self.node.wall_clock);
        self.deadline = None;
        self.char_offset = 0;
        // From here on a cancel is too late.
        self.interrupt.end();
        Ok(())
    }

    /// Writes the output buffer as part of the running statement: cancel and timeout apply.
    pub(crate) async fn write_pending(&self, out: &mut Output) -> Result<(), Fault> {
        self.interrupt.guard(self.deadline, async { out.flush().await.map_err(Fault::Io) }).await
    }

    /// Writes the output buffer at the end of a request. Only shutdown interrupts the wait for a client that does not
    /// read.
    pub(crate) async fn flush_reply(&self, out: &mut Output) -> Result<(), Fault> {
        if self.advisory.is_unsettled() {
            // The client may tell another one that a lock is free.
            let _ = tokio::time::timeout(SETTLE_LIMIT, Box::pin(self.advisory.settle())).await;
        }
        tokio::select! {
            biased;
            written = out.flush() => Ok(written?),
            () = self.interrupt.stopped(false) => Err(Fault::Fatal(self.interrupt.end_error())),
        }
    }

    fn put_parameter_statuses(&mut self, out: &mut Output) -> Result<(), Fault> {
        for (name, value) in self.settings.take_unreported() {
            if name == "application_name" {
                self.activity.set_application(&value);
            }
            out.put(&ParameterStatus::new(name.to_owned(), value))?;
        }
        Ok(())
    }

    /// Sends the error of the running statement and fails its transaction.
    pub(crate) fn report(&mut self, error: SqlError, out: &mut Output) -> Result<(), Fault> {
        self.fail();
        let error = error.with_status_host(self.node.status_host.as_deref());
        if error.code == SqlState::INTERNAL_ERROR {
            tracing::error!(user = self.user, "a statement failed inside: {error}");
        }
        self.node.metrics.error(error.code);
        out.put_error(Severity::Error, &error, self.char_offset)?;
        Ok(())
    }

    /// Drops the transaction of a failed statement, or undoes it to the newest savepoint.
    pub(crate) fn fail(&mut self) {
        self.state.fail();
        if self.savepoints.is_empty() {
            self.discard_transaction();
            self.portals.retain(Portal::is_held);
        } else {
            self.undo_to_last_savepoint();
        }
        self.deadline = None;
        self.replay = None;
        self.last_complete = None;
        if self.state.block() == Block::Idle {
            self.settings.rollback();
        }
    }

    /// Drops the transaction in the store, and with it its row locks and advisory locks. A large buffer is freed on
    /// another thread.
    pub(crate) fn discard_transaction(&mut self) {
        if let Some(ActiveTxn { txn, .. }) = self.active.take()
            && txn.changes() > MANY
        {
            drop_elsewhere(txn);
        }
        self.advisory.rollback_to(0);
    }

    /// Starts the timeout of a statement that has to be parsed first, unless it runs already.
    pub(crate) fn begin_parsing(&mut self) {
        let limit = self.settings.statement_timeout();
        self.deadline = self.deadline.or_else(|| limit.map(|limit| clock::instant() + limit));
    }

    /// Starts the timeout and retry window of a new statement. Outside of a block begins an implicit transaction.
    pub(crate) fn begin_statement(&mut self, char_offset: u32) {
        let now = clock::instant();
        self.deadline = self.settings.statement_timeout().map(|limit| now + limit);
        self.is_contended = false;
        self.retry_until = now + RETRY_WINDOW;
        self.restart_statement(char_offset);
    }

    /// Begins a message of the extended protocol. Its timeout is that of the statement that earlier messages began.
    pub(crate) fn begin_message(&mut self, char_offset: u32) {
        let running = self.deadline;
        self.begin_statement(char_offset);
        self.deadline = running.or(self.deadline);
    }

    /// Fails if the statement timeout has expired since the last message.
    pub(crate) fn check_timeout(&self) -> Result<(), SqlError> {
        if self.deadline.is_some_and(|deadline| clock::instant() >= deadline) { Err(timeout_error()) } else { Ok(()) }
    }

    /// Whether the buffered reply must not be written yet: it is of a statement whose commit follows, and an error of
    /// the commit replaces it.
    pub(crate) fn holds_reply(&self) -> bool {
        self.sync_follows && self.replay.is_some()
    }

    /// Begins the running statement again after a conflict. Its timeout and retry window continue.
    pub(crate) fn restart_statement(&mut self, char_offset: u32) {
        self.char_offset = char_offset;
        self.advisory.begin_statement();
        if self.state.block() == Block::Idle {
            self.now = (self.node.wall_clock)();
            self.activity.set_transaction(self.now);
            self.executed = 0;
            self.state.begin_implicit(self.settings.defaults());
        }
    }

    /// Commits or rolls back the transaction after the state has left it. Cancel, timeout and disconnect do not
    /// interrupt a commit.
    pub(crate) async fn end_transaction(&mut self, outcome: Outcome) -> Result<(), Fault> {
        self.portals.retain(|portal| portal.may_outlive(outcome));
        self.savepoints.clear();
        self.replay = None;
        self.executed = 0;
        let result = match (self.active.take(), outcome) {
            (Some(active), Outcome::Commit) => {
                let committed =
                    active.commit(self.settings.zone(), &self.node.catalog, (&self.advisory, &self.seen)).await;
                committed.map(|committed| committed.into_iter().for_each(|ts| self.settings.live.raise(ts)))
            }
            (_, Outcome::Commit) => Ok(()),
            (mut active, Outcome::Rollback) => {
                if let Some(active) = &mut active {
                    active.txn.release_locks().await;
                }
                self.active = active;
                self.discard_transaction();
                self.settings.rollback();
                return Ok(());
            }
        };
        self.advisory.rollback_to(0);
        match &result {
            Ok(()) => {
                self.settings.commit();
                self.portals.values_mut().for_each(Portal::hold);
            }
            Err(_) => {
                self.settings.rollback();
                self.portals.retain(Portal::is_held);
            }
        }
        result
    }

    /// Commits the implicit transaction, if there is one. After an error its modes and settings are still there, for a
    /// retry: the caller retries the statement or reports the error.
    pub(crate) async fn commit_implicit(&mut self) -> Result<(), Fault> {
        if self.state.block() != Block::Implicit {
            return Ok(());
        }
        self.end_temporary().await?;
        self.portals.retain(|portal| portal.may_outlive(Outcome::Commit));
        self.replay = None;
        let executed = std::mem::take(&mut self.executed);
        if let Some(mut active) = self.active.take() {
            if executed <= 1 {
                active.txn.set_single_statement();
            }
            let committed =
                active.commit(self.settings.zone(), &self.node.catalog, (&self.advisory, &self.seen)).await?;
            committed.into_iter().for_each(|ts| self.settings.live.raise(ts));
        }
        self.advisory.rollback_to(0);
        self.state.end_implicit();
        self.settings.commit();
        self.portals.values_mut().for_each(Portal::hold);
        Ok(())
    }

    /// Sends a notice unless `client_min_messages` suppresses it.
    pub(crate) fn send_notice(&self, notice: &Notice, out: &mut Output) -> Result<(), Fault> {
        if self.settings.wants(notice.level) {
            out.put_notice(notice)?;
        }
        Ok(())
    }

    /// Whether a transaction block is open, failed or not.
    pub(crate) fn in_block(&self) -> bool {
        matches!(self.state.block(), Block::Explicit | Block::Failed)
    }

    /// Whether the session has no transaction and no failed pipeline.
    pub(crate) fn is_idle(&self) -> bool {
        self.state.block() == Block::Idle && !self.skipping
    }

    /// The idle timeout of the current state, and the FATAL error of its expiry.
    pub(crate) fn idle_limit(&self) -> Option<(Duration, SqlError)> {
        let in_block = self.in_block();
        let limit = self.settings.idle_timeout(in_block)?;
        let error = if in_block {
            let message = "terminating connection due to idle-in-transaction timeout";
            SqlError::new(SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT, message)
        } else {
            let message = "terminating connection due to idle-session timeout";
            SqlError::new(SqlState::IDLE_SESSION_TIMEOUT, message)
        };
        Some((limit, error))
    }
}

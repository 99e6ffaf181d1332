//! A session: the state of one connection between messages, and the handling of each message.
//!
//! The server's connection loop passes checked messages to [`Session::handle`], which writes replies into the
//! [`Output`]. The submodules: the transaction state ([`state`]); the session's own statements, parsed by [`control`]
//! and executed by [`command`]; settings ([`settings`]); the simple ([`simple`]) and the extended ([`extended`]) query
//! protocol; execution of plans ([`execute`]); cancellation ([`interrupt`]).
//!
//! Invariants:
//! 1. `active`, the transaction in the store, exists only in the states `Implicit` and `Explicit`. The first statement
//!    that needs it begins it, not BEGIN.
//! 2. A portal does not outlive the transaction that created it.
//! 3. A commit that has begun runs to its end. Cancel, timeout, disconnect and shutdown do not interrupt it.
//! 4. After an error in a pipeline, messages are skipped up to its Sync.
//!
//! # Layers
//!
//! 1. `bounded_map`, `control`, `fault`, `interrupt`, `plans`, `rows`: parts without knowledge of the session
//! 2. `node`, `state`: the components of the node; the transaction state
//! 3. `settings`: the values of settings
//! 4. `statement`: statements, prepared statements, portals
//! 5. `execute`: execution of plans
//! 6. `command`: execution of the session's own statements
//! 7. `simple`, `extended`: the query protocols

pub(crate) mod bounded_map;
pub(crate) mod command;
pub(crate) mod control;
pub(crate) mod execute;
pub(crate) mod extended;
pub(crate) mod fault;
pub(crate) mod interrupt;
pub(crate) mod node;
pub(crate) mod plans;
pub(crate) mod rows;
pub(crate) mod settings;
pub(crate) mod simple;
pub(crate) mod state;
pub(crate) mod statement;

use std::sync::Arc;
use std::time::Duration;

use pgwire::messages::response::ReadyForQuery;
use pgwire::messages::startup::{BackendKeyData, ParameterStatus};
use tokio::time::Instant;
use txn::Transaction;

use crate::catalog::Catalog;
use crate::clock;
use crate::error::{SqlError, SqlState};
use crate::protocol::frame::Frontend;
use crate::protocol::output::{Notice, Output, Severity};
use crate::table::StorageId;
use crate::types::SqlType;
use bounded_map::{BoundedMap, Limits};
use execute::Replay;
use fault::Fault;
use interrupt::{Interrupt, shutdown_error};
use node::NodeContext;
use plans::PlanCache;
use settings::Settings;
use state::{Block, Outcome, TxnState};
use statement::{BoundStatement, Portal, Prepared, Query};

/// Limits of one session's prepared statements.
const STATEMENTS: Limits = Limits { what: "prepared statements", count: 10_000, bytes: 128 << 20 };

/// Limits of one session's portals, measured by the size of their parameters.
const PORTALS: Limits = Limits { what: "portals", count: 1_000, bytes: 64 << 20 };

/// A statement is retried after conflicts only within this time of its start. Shorter than the wait for another
/// transaction's lock: a statement that timed out on a lock must not wait ten times.
const RETRY_WINDOW: Duration = Duration::from_secs(10);

/// What the connection does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Read the next message.
    Continue,
    /// Close the connection: the client sent Terminate.
    Close,
}

/// The transaction in the store.
pub(crate) struct Active {
    pub(crate) txn: Transaction,
    /// The catalog at its snapshot; `None` before the first use and after a schema change.
    pub(crate) catalog: Option<Arc<Catalog>>,
    /// Whether it changed the schema.
    pub(crate) own_schema: bool,
    /// The storages of the tables that it writes to.
    pub(crate) written: Vec<StorageId>,
}

/// The state of one connection.
pub(crate) struct Session {
    pub(crate) node: Arc<NodeContext>,
    pub(crate) user: String,
    pub(crate) database: String,
    pub(crate) interrupt: Arc<Interrupt>,
    pub(crate) settings: Settings,
    pub(crate) state: TxnState,
    pub(crate) active: Option<Active>,
    /// `now()` of the transaction, in microseconds since 2000-01-01 UTC.
    pub(crate) now: i64,
    pub(crate) plans: PlanCache<(Arc<Query>, Arc<BoundStatement>)>,
    /// The empty list of declared parameter types, shared.
    pub(crate) no_types: Arc<[SqlType]>,
    /// Prepared statements. The unnamed statement has the empty name.
    pub(crate) statements: BoundedMap<Prepared>,
    /// Portals. The unnamed portal has the empty name.
    pub(crate) portals: BoundedMap<Portal>,
    /// The statement timeout of the running statement, across all its retries.
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
}

impl Session {
    /// Creates a session. `settings` include those of the startup packet.
    pub(crate) fn new(
        node: Arc<NodeContext>,
        user: String,
        database: String,
        settings: Settings,
        interrupt: Arc<Interrupt>,
    ) -> Session {
        Session {
            node,
            user,
            database,
            interrupt,
            settings,
            state: TxnState::new(),
            active: None,
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
        }
    }

    /// Handles one message. An error ends the connection; all other errors have been sent to the client.
    /// `sync_follows`: the input buffer already holds the next message, and it is a Sync.
    pub(crate) async fn handle(
        &mut self,
        message: Frontend,
        sync_follows: bool,
        out: &mut Output,
    ) -> Result<Next, Fault> {
        self.interrupt.begin();
        self.sync_follows = sync_follows;
        if self.skipping && !matches!(message, Frontend::Sync | Frontend::Terminate) {
            return Ok(Next::Continue);
        }
        if !matches!(message, Frontend::Sync | Frontend::Execute(_)) {
            // A retry of the Execute would lose the effects of later messages of its pipeline.
            self.replay = None;
            self.last_complete = None;
        }
        let result = match message {
            Frontend::Query(query) => {
                self.simple_query(&query.query, out).await?;
                return Ok(Next::Continue);
            }
            Frontend::FunctionCall => {
                self.report(function_call_error(), out)?;
                self.send_ready(out)?;
                self.flush_reply(out).await?;
                return Ok(Next::Continue);
            }
            Frontend::Sync => {
                self.sync(out).await?;
                return Ok(Next::Continue);
            }
            Frontend::Terminate => return Ok(Next::Close),
            Frontend::StrayCopy => Ok(()),
            Frontend::Flush => self.flush(out).await,
            Frontend::Parse(parse) => self.parse(parse, out).await,
            Frontend::Bind(bind) => self.bind(bind, out).await,
            Frontend::Describe(describe) => self.describe(&describe, out).await,
            Frontend::Execute(execute) => self.execute(&execute, out).await,
            Frontend::Close(close) => self.close(&close, out),
        };
        let result = match result {
            Ok(()) if out.is_full() => self.write_pending(out).await,
            other => other,
        };
        if let Err(fault) = result {
            self.report(fault.into_statement()?, out)?;
            self.skipping = true;
        }
        Ok(Next::Continue)
    }

    /// Sends the end of the startup: reported settings, the cancel key, ReadyForQuery.
    pub(crate) fn send_startup_replies(&mut self, key: &BackendKeyData, out: &mut Output) -> Result<(), Fault> {
        self.put_parameter_statuses(out)?;
        out.put(key)?;
        self.send_ready(out)
    }

    /// Sends changed settings, then ReadyForQuery.
    pub(crate) fn send_ready(&mut self, out: &mut Output) -> Result<(), Fault> {
        self.put_parameter_statuses(out)?;
        out.put(&ReadyForQuery::new(self.state.status()))?;
        self.deadline = None;
        self.char_offset = 0;
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
        tokio::select! {
            biased;
            written = out.flush() => Ok(written?),
            () = self.interrupt.stopped(false) => Err(Fault::Fatal(shutdown_error())),
        }
    }

    fn put_parameter_statuses(&mut self, out: &mut Output) -> Result<(), Fault> {
        for (name, value) in self.settings.take_unreported() {
            out.put(&ParameterStatus::new(name.to_owned(), value))?;
        }
        Ok(())
    }

    /// Sends the error of the running statement and fails its transaction.
    pub(crate) fn report(&mut self, error: SqlError, out: &mut Output) -> Result<(), Fault> {
        self.fail();
        if error.code == SqlState::INTERNAL_ERROR {
            tracing::error!(user = self.user, "a statement failed inside: {error}");
        }
        self.node.metrics.error(error.code);
        out.put_error(Severity::Error, &error, self.char_offset)?;
        Ok(())
    }

    /// Drops the transaction of a failed statement.
    pub(crate) fn fail(&mut self) {
        self.state.fail();
        self.active = None;
        self.replay = None;
        self.last_complete = None;
        self.portals.clear();
        if self.state.block() == Block::Idle {
            self.settings.rollback();
        }
    }

    /// Starts the timeout and retry window of a new statement. Outside of a block begins an implicit transaction.
    pub(crate) fn begin_statement(&mut self, char_offset: u32) {
        let now = clock::instant();
        self.deadline = self.settings.statement_timeout().map(|limit| now + limit);
        self.retry_until = now + RETRY_WINDOW;
        self.restart_statement(char_offset);
    }

    /// Begins the running statement again after a conflict. Its timeout and retry window continue.
    pub(crate) fn restart_statement(&mut self, char_offset: u32) {
        self.char_offset = char_offset;
        if self.state.block() == Block::Idle {
            self.now = (self.node.wall_clock)();
            self.executed = 0;
            self.state.begin_implicit(self.settings.default_read_only());
        }
    }

    /// Commits or rolls back the transaction after the state has left it. Cancel, timeout and disconnect do not
    /// interrupt a commit.
    pub(crate) async fn end_transaction(&mut self, outcome: Outcome) -> Result<(), Fault> {
        self.portals.clear();
        self.replay = None;
        self.executed = 0;
        let result = match (self.active.take(), outcome) {
            (Some(active), Outcome::Commit) => execute::commit(active, &self.settings, &self.node.catalog).await,
            (_, Outcome::Commit) => Ok(()),
            (_, Outcome::Rollback) => {
                self.settings.rollback();
                return Ok(());
            }
        };
        match &result {
            Ok(()) => self.settings.commit(),
            Err(_) => self.settings.rollback(),
        }
        result
    }

    /// Commits the implicit transaction, if there is one.
    pub(crate) async fn commit_implicit(&mut self) -> Result<(), Fault> {
        if self.state.end_implicit() { self.end_transaction(Outcome::Commit).await } else { Ok(()) }
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

fn function_call_error() -> SqlError {
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, "the function call protocol is not supported")
}

#[cfg(test)]
mod tests {
    use kv::client::Client;
    use kv::memory::MemoryCluster;
    use tso::TsoClient;
    use txn::Database;

    use super::*;
    use crate::metrics::SqlMetrics;

    /// A session over an in-memory cluster.
    fn session() -> Session {
        let cluster = MemoryCluster::new();
        let tso = TsoClient::new(cluster.tso());
        let db = Database::new(Client::new(Arc::new(cluster)), tso);
        let metrics = SqlMetrics::new(&prometheus::Registry::new()).unwrap();
        let node = Arc::new(NodeContext::new(db, metrics, clock::system_micros));
        let (user, database) = ("ann".to_owned(), "postgres".to_owned());
        Session::new(node, user.clone(), database, Settings::new(&user), Arc::new(Interrupt::default()))
    }

    /// Every retry started a new timeout: a statement that had waited for a lock in vain waited ten times.
    #[tokio::test(start_paused = true)]
    async fn retries_share_the_timeout_of_the_statement() {
        let mut session = session();
        session.settings.set("statement_timeout", Some(&["2000".to_owned()]), false).unwrap();
        session.settings.commit();
        session.begin_statement(0);
        let (deadline, until) = (session.deadline, session.retry_until);
        assert!(session.may_retry(0) && !session.may_retry(10));
        tokio::time::advance(Duration::from_secs(1)).await;
        session.wait_to_retry(0).await.unwrap();
        session.restart_statement(0);
        assert_eq!((session.deadline, session.retry_until), (deadline, until));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(session.wait_to_retry(1).await.unwrap_err().into_statement().unwrap().code.0, "57014");
        tokio::time::advance(RETRY_WINDOW).await;
        assert!(!session.may_retry(1), "it has waited long enough");
        session.begin_statement(0);
        assert!(session.may_retry(0) && session.deadline > deadline, "the next statement has its own time");
    }
}

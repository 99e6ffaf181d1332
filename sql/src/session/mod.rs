//! A session: what one connection has between its messages, and what each message does to it.
//!
//! The connection loop ([`crate::server`]) hands over checked messages; [`Session::handle`] answers them into the [`Output`].
//! Below it, one concept each: the transaction state ([`state`]), the session's own statements ([`control`], parsed from [`crate::lexer`]'s
//! tokens, carried out by [`command`]), settings ([`settings`]), the simple ([`simple`]) and the extended ([`extended`]) protocol, the running of
//! plans ([`execute`]), and how a running statement is stopped ([`interrupt`]).
//!
//! Invariants:
//! 1. `active`, the transaction in the store, exists only while the state is `Implicit` or `Explicit`; it is begun by the first
//!    statement that needs it, not by BEGIN.
//! 2. Portals live no longer than the transaction they were made in.
//! 3. A commit, once begun, is awaited to its end: nothing that stops a statement is looked at meanwhile.
//! 4. After a failure within a pipeline nothing is done until its Sync.

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

/// Prepared statements of one session.
const STATEMENTS: Limits = Limits { what: "prepared statements", count: 10_000, bytes: 128 << 20 };

/// Portals of one session, by the values of their parameters.
const PORTALS: Limits = Limits { what: "portals", count: 1_000, bytes: 64 << 20 };

/// A statement that meets conflicts is run again only within this time of its beginning. It is shorter than the wait for another
/// transaction's lock: who has waited that long in vain should not be made to wait ten times.
const RETRY_WINDOW: Duration = Duration::from_secs(10);

/// What the connection does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Reads on.
    Continue,
    /// Closes: the client said goodbye.
    Close,
}

/// The transaction in the store.
pub(crate) struct Active {
    pub(crate) txn: Transaction,
    /// The catalog it sees; forgotten when it changes the schema.
    pub(crate) catalog: Option<Arc<Catalog>>,
    /// Whether it changed the schema.
    pub(crate) own_schema: bool,
    /// Where the rows of the tables are that it writes to.
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
    /// `now()` of the transaction, microseconds since 2000-01-01 UTC.
    pub(crate) now: i64,
    pub(crate) plans: PlanCache<(Arc<Query>, Arc<BoundStatement>)>,
    /// The declared types of a statement without any.
    pub(crate) no_types: Arc<[SqlType]>,
    /// Prepared statements; the unnamed one has the empty name.
    pub(crate) statements: BoundedMap<Prepared>,
    /// Portals; the unnamed one has the empty name.
    pub(crate) portals: BoundedMap<Portal>,
    /// When the running statement has to stop, however often it was run.
    pub(crate) deadline: Option<Instant>,
    /// Until when it may be run again.
    pub(crate) retry_until: Instant,
    /// Characters before the running statement in the text that the client sent.
    pub(crate) char_offset: u32,
    /// The pipeline failed; skip to its Sync.
    pub(crate) skipping: bool,
    /// Whether the message being answered is the last of its pipeline, as far as is known.
    pub(crate) sync_follows: bool,
    /// The one statement that the implicit transaction of this pipeline has run, if it can be run again.
    pub(crate) replay: Option<Replay>,
    /// Where the CommandComplete of the pipeline's last Execute begins, as long as nothing else follows it.
    pub(crate) last_complete: Option<u64>,
    /// Statements executed in this transaction.
    pub(crate) executed: u64,
}

impl Session {
    /// A session of a user, with what the startup packet set.
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

    /// Answers one message. An error ends the connection; everything else has been said to the client. `sync_follows`: the next message is
    /// already here, and is a Sync.
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
            // What follows an Execute in its pipeline would be lost if the statement were run again.
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

    /// What a starting session tells: all reported settings, the key for cancel requests, that it is ready.
    pub(crate) fn send_startup_replies(&mut self, key: &BackendKeyData, out: &mut Output) -> Result<(), Fault> {
        self.put_parameter_statuses(out)?;
        out.put(key)?;
        self.send_ready(out)
    }

    /// ReadyForQuery, after what changed among the reported settings.
    pub(crate) fn send_ready(&mut self, out: &mut Output) -> Result<(), Fault> {
        self.put_parameter_statuses(out)?;
        out.put(&ReadyForQuery::new(self.state.status()))?;
        self.deadline = None;
        self.char_offset = 0;
        self.interrupt.end();
        Ok(())
    }

    /// Writes what waits, as a part of the running statement: what stops that stops this.
    pub(crate) async fn write_pending(&self, out: &mut Output) -> Result<(), Fault> {
        self.interrupt.guard(self.deadline, async { out.flush().await.map_err(Fault::Io) }).await
    }

    /// Writes what waits at the end of a request: only the server's stop ends the wait for a client that does not read.
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

    /// Says that the running statement failed, and lets its transaction fail with it.
    pub(crate) fn report(&mut self, error: SqlError, out: &mut Output) -> Result<(), Fault> {
        self.fail();
        if error.code == SqlState::INTERNAL_ERROR {
            tracing::error!(user = self.user, "a statement failed inside: {error}");
        }
        self.node.metrics.error(error.code);
        out.put_error(Severity::Error, &error, self.char_offset)?;
        Ok(())
    }

    /// The running statement failed: its transaction is dropped.
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

    /// A statement begins: its time runs, and outside of a block it gets a transaction.
    pub(crate) fn begin_statement(&mut self, char_offset: u32) {
        let now = clock::instant();
        self.deadline = self.settings.statement_timeout().map(|limit| now + limit);
        self.retry_until = now + RETRY_WINDOW;
        self.restart_statement(char_offset);
    }

    /// The same statement begins anew after a conflict: its time runs on.
    pub(crate) fn restart_statement(&mut self, char_offset: u32) {
        self.char_offset = char_offset;
        if self.state.block() == Block::Idle {
            self.now = (self.node.wall_clock)();
            self.executed = 0;
            self.state.begin_implicit(self.settings.default_read_only());
        }
    }

    /// Ends the transaction that the state has already left. A commit is awaited without regard to cancel, timeout or disconnect.
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

    /// Sends a notice, if the client wants such.
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

    /// Whether the client waits for nothing and nothing waits for the client.
    pub(crate) fn is_idle(&self) -> bool {
        self.state.block() == Block::Idle && !self.skipping
    }

    /// How long the client may leave the session idle as it stands, and the error it ends with if it does not come back.
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

    /// Every run of a statement that met a conflict had the whole time anew, and one that had waited for a lock in vain waited ten times.
    #[tokio::test(start_paused = true)]
    async fn all_runs_of_a_statement_share_its_time() {
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

//! The environment of a statement's execution, and what it keeps beside its rows: results of sub-queries, and of the
//! queries of WITH.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use kv::Key;
use parking_lot::Mutex;
use tso::Timestamp;
use txn::{Transaction, View};

use super::budget::Budget;
use super::reference_queue::ReferenceQueue;
use super::rows::Row;
use crate::advisory::{AdvisorySession, LockCall, Patience};
use crate::catalog::SchemaChange;
use crate::error::SqlError;
use crate::expr::eval::Env;
use crate::expr::{Answered, Asked, Pending, SequenceAsk, SessionAccess, SubqueryLog, SubqueryRows};
use crate::lock_name::LockName;
use crate::object::Sequence;
use crate::plan::{Plan, Profile};
use pgtypes::{Datum, IoEnv};

/// About the memory of a key that is remembered, beside its bytes.
const KEY_BYTES: usize = 64;

/// The environment of a statement's execution.
pub struct ExecContext<'a> {
    /// The transaction.
    pub txn: &'a mut Transaction,
    /// The transaction's schema change. Set if the plan changes the schema.
    pub schema: Option<&'a mut SchemaChange>,
    /// The session's time zone and styles, the names of the catalog, and `now()`: the start of the transaction.
    pub io: IoEnv<'a>,
    /// The session's user, for `current_user`.
    pub user: &'a str,
    /// The database's name.
    pub database: &'a str,
    /// The schema in which the session creates relations, for `current_schema()`.
    pub current_schema: Option<&'a str>,
    /// The session.
    pub session: &'a dyn SessionAccess,
    /// Whether the commit is the next action of the transaction.
    pub commit_follows: bool,
    /// Whether the statement locks the rows that it writes, before it writes them, and finds duplicate keys itself.
    /// Otherwise the commit finds conflicts.
    pub locks_rows: bool,
    /// How long the statement waits for the lock of a row, or for an advisory lock; `None` for ever.
    pub lock_timeout: Option<Duration>,
    /// The advisory locks of the session, if an expression of the plan takes or gives up some.
    pub advisory: Option<&'a mut AdvisorySession>,
    /// Whether an expression of the plan uses sequences.
    pub uses_sequences: bool,
    /// The number of the statement's parameters.
    pub params: usize,
    /// The results of sub-queries and of WITH, if the plan has some: [`super::Execution::statement`].
    pub statement: Option<&'a StatementState>,
    /// What foreign keys ask for when the statement's own changes are done.
    pub references: ReferenceQueue,
}

impl<'a> ExecContext<'a> {
    /// Where EXPLAIN ANALYZE counts; `None` for other statements.
    pub(super) fn profile(&self) -> Option<&'a Profile> {
        self.statement.and_then(|statement| statement.profile.as_ref())
    }

    /// Whether the statement has changes in its WITH.
    pub(super) fn has_several_changes(&self) -> bool {
        self.statement.is_some_and(|statement| statement.plan.changes_in_with)
    }

    /// What a change sees of the transaction: the start of the statement.
    pub(super) fn start_view(&self) -> View {
        let kept = self.statement.and_then(|statement| statement.starts.lock().pop());
        kept.unwrap_or_else(|| self.txn.view())
    }

    /// Notes that a statement with several changes has changed a row.
    pub(super) fn note_changed<'k>(&self, keys: impl IntoIterator<Item = &'k Key>) -> Result<(), SqlError> {
        match self.statement.filter(|statement| statement.plan.changes_in_with) {
            Some(statement) => {
                let mut changed = statement.changed.lock();
                keys.into_iter().try_for_each(|key| changed.add(key))
            }
            None => Ok(()),
        }
    }

    /// Whether the statement has changed a row already in another of its changes. The first one counts.
    pub(super) fn has_changed(&self, key: &Key) -> bool {
        self.has_several_changes()
            && self.statement.is_some_and(|statement| statement.changed.lock().keys.contains(key))
    }

    /// Whether expressions take or give up advisory locks, or ask other nodes.
    pub(super) fn takes_locks(&self) -> bool {
        self.advisory.is_some()
    }

    /// Whether expressions take or give up advisory locks, ask other nodes, or have sub-queries: what is about to be
    /// evaluated is to be rehearsed.
    pub(super) fn rehearses(&self) -> bool {
        self.rehearses_always() || self.statement.is_some_and(|statement| statement.plan.has_subqueries())
    }

    /// Whether all expressions are to be rehearsed, whatever they have.
    pub(super) fn rehearses_always(&self) -> bool {
        self.takes_locks() || self.uses_sequences
    }

    /// Evaluates, again and again, until all advisory locks are taken that the evaluation takes, and all sub-queries
    /// have run that it needs. Then the same evaluation finds their answers. `evaluate` changes nothing.
    pub(super) fn rehearse<'f, T: Send + 'f>(
        &'f mut self,
        params: &'f [Datum],
        mut evaluate: impl FnMut(&Env<'_>) -> Result<T, SqlError> + Send + 'f,
    ) -> BoxFuture<'f, Result<T, SqlError>> {
        Box::pin(async move {
            self.begin_rehearsal();
            loop {
                let result = evaluate(&self.env(params));
                if !self.answer().await? {
                    return result;
                }
            }
        })
    }

    /// Begins a rehearsal: the expressions of another row, or other ones.
    pub(super) fn begin_rehearsal(&self) {
        if let Some(log) = self.session.lock_log() {
            log.clear();
            log.rewind(true);
        }
    }

    /// Makes the call that waits, takes the advisory lock for which the evaluation has failed, and begins the rehearsal
    /// again. False if there is none: the next evaluation counts.
    pub(super) fn answer(&mut self) -> BoxFuture<'_, Result<bool, SqlError>> {
        Box::pin(self.answer_pending())
    }

    async fn answer_pending(&mut self) -> Result<bool, SqlError> {
        if let Some(statement) = self.statement
            && let Some(pending) = statement.log.take_pending()
        {
            let rows = (statement.runs.subquery)(self, &pending).await?;
            statement.log.note(pending, rows);
            if let Some(log) = self.session.lock_log() {
                log.rewind(true);
            }
            return Ok(true);
        }
        let Some(log) = self.session.lock_log() else { return Ok(false) };
        let answer = match log.take_pending() {
            None => {
                log.rewind(false);
                return Ok(false);
            }
            Some(Asked::Lock(call, lock)) => self.answer_lock(call, lock).await?,
            Some(Asked::Sequence(ask, sequence)) => self.answer_sequence(ask, &sequence).await?,
            Some(Asked::Sessions(call)) => Answered::Datum(self.session.ask(call).await?),
        };
        log.push(answer);
        log.rewind(true);
        Ok(true)
    }

    async fn answer_lock(&mut self, call: LockCall, lock: Option<LockName>) -> Result<Answered, SqlError> {
        let Some(advisory) = &mut self.advisory else {
            return Err(SqlError::internal("an advisory lock without a session"));
        };
        // What its transaction holds is held as long as it waits.
        let transaction = Some(self.txn.start_ts()).filter(|start_ts| *start_ts > Timestamp::ZERO);
        let patience = Patience { limit: self.lock_timeout, transaction };
        let answer = advisory.call(call, lock, patience).await?;
        advisory.introduce(self.txn);
        if let Some((code, message)) = answer.warning() {
            self.session.warn(code, &message);
        }
        Ok(Answered::Lock(answer))
    }

    async fn answer_sequence(&self, ask: SequenceAsk, sequence: &Sequence) -> Result<Answered, SqlError> {
        let Some(sequences) = self.session.sequences() else {
            return Err(SqlError::internal("a sequence without a session"));
        };
        Ok(match ask {
            SequenceAsk::Next => Answered::Value(sequences.next(sequence).await?, true),
            SequenceAsk::Set(value, is_called) => {
                sequences.set(sequence, value, is_called).await?;
                Answered::Value(value, is_called)
            }
            SequenceAsk::Values => {
                let values = sequences.values(sequence).await?;
                Answered::Value(values.last, values.is_called)
            }
        })
    }

    /// The environment of the statement's expressions.
    pub(super) fn env<'p>(&self, params: &'p [Datum]) -> Env<'p>
    where
        'a: 'p,
    {
        Env {
            params,
            io: self.io,
            user: self.user,
            database: self.database,
            current_schema: self.current_schema,
            session: self.session,
            first_outer: self.params,
            subqueries: self.statement.map(|statement| &statement.log),
            locals: &[],
        }
    }
}

/// Runs a sub-query.
pub(super) type RunSubquery =
    for<'f> fn(&'f mut ExecContext<'_>, &'f Pending) -> BoxFuture<'f, Result<SubqueryRows, SqlError>>;

/// A query of WITH that runs.
pub(super) trait WithQuery: Send {
    /// The next rows, and none only at the end. `most` are enough.
    fn next<'f>(&'f mut self, ctx: &'f mut ExecContext<'_>, most: usize) -> BoxFuture<'f, Result<Vec<Row>, SqlError>>;
}

/// Begins the query of WITH at a place. The values are the statement's parameters, then those around it.
pub(super) type BeginWith = fn(&Arc<Plan>, usize, Vec<Datum>, Budget) -> Box<dyn WithQuery>;

/// What the parts below the one that runs queries call to run some.
#[derive(Clone, Copy)]
pub(super) struct Runs {
    pub(super) subquery: RunSubquery,
    pub(super) with: BeginWith,
}

/// A run of a query of WITH. All its readers share it.
pub(super) struct WithRun {
    /// The values around the query that it is for.
    pub(super) args: Row,
    /// The rows that were read.
    pub(super) rows: Vec<Row>,
    pub(super) rest: WithRest,
}

/// What a run was not asked for yet.
pub(super) enum WithRest {
    Open(Box<dyn WithQuery>),
    /// A reader reads on, or has failed. Nobody else reads meanwhile: a query of WITH does not read itself.
    Taken,
    Done,
}

/// The state of a statement.
pub struct StatementState {
    pub(super) plan: Arc<Plan>,
    pub(super) log: SubqueryLog,
    pub(super) runs: Runs,
    /// The queries of WITH that run or have run.
    pub(super) with: Mutex<HashMap<usize, Arc<Mutex<WithRun>>>>,
    /// What the references of recursive queries to themselves give now.
    pub(super) recursion: Mutex<HashMap<usize, Arc<Vec<Row>>>>,
    /// What sub-queries see of the transaction, of a statement that writes.
    pub(super) view: Mutex<Option<View>>,
    /// What the changes of a statement see that has some in its WITH, one for each.
    pub(super) starts: Mutex<Vec<View>>,
    /// What correlated sub-queries keep between their runs.
    pub(super) kept: Mutex<HashMap<usize, Kept>>,
    /// The rows that they have changed.
    pub(super) changed: Mutex<ChangedRows>,
    /// What EXPLAIN ANALYZE counts.
    pub(super) profile: Option<Profile>,
}

/// Rows by keys.
pub(super) type ByKey = HashMap<Vec<u8>, Arc<Vec<Row>>>;

/// What a statement keeps for one of its sub-queries.
#[derive(Debug)]
pub(super) enum Kept {
    /// Nothing yet. It has run so often.
    Runs(u32),
    /// The rows of the table.
    Rows(Arc<ByKey>),
    /// They do not fit.
    TooLarge,
}

/// The keys of rows that a statement has changed.
#[derive(Default)]
pub(super) struct ChangedRows {
    keys: HashSet<Key>,
    budget: Option<Budget>,
}

impl ChangedRows {
    fn add(&mut self, key: &Key) -> Result<(), SqlError> {
        if !self.keys.contains(key) {
            self.budget.get_or_insert_with(Budget::of_statement).charge(KEY_BYTES + key.as_bytes().len())?;
            self.keys.insert(key.clone());
        }
        Ok(())
    }
}

impl StatementState {
    pub(super) fn new(plan: Arc<Plan>, runs: Runs) -> StatementState {
        StatementState {
            profile: plan.analyze.is_some().then(Profile::default),
            plan,
            log: SubqueryLog::default(),
            runs,
            with: Mutex::default(),
            recursion: Mutex::default(),
            view: Mutex::default(),
            starts: Mutex::default(),
            kept: Mutex::default(),
            changed: Mutex::default(),
        }
    }
}

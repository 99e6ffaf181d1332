//! The advisory locks of a session: what `pg_advisory_lock` and its kin do.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tso::Timestamp;
use txn::{CommitBound, LockWait, Transaction, TxnError};

use super::held::{Held, Level};
use super::node::{Claim, NodeLocks, OnLoss, PlantedBug, Taken, lost};
use super::shared::{Attempt, Shared};
use crate::clock;
use crate::error::{SqlError, SqlState};
use crate::lock_name::{LockName, Mode};

/// The interval between two looks at a record that names another holder, although the queue does not.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// What a function does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Takes the lock, and waits for it.
    Lock,
    /// Takes the lock if it is free.
    TryLock,
    /// Gives up what was taken for the session once.
    Unlock,
    /// Gives up all that was taken for the session.
    UnlockAll,
}

/// A call of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LockCall {
    pub(crate) action: Action,
    pub(crate) mode: Mode,
    pub(crate) level: Level,
}

/// The result of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// `void`.
    Done,
    /// Whether the session has the lock, or had it.
    Bool(bool),
    /// The session did not have the lock in this mode: `false`, with a warning.
    NotOwned(Mode),
}

/// How a call waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// `lock_timeout`.
    pub(crate) limit: Option<Duration>,
    /// The transaction of the session, if it has a name.
    pub(crate) transaction: Option<Timestamp>,
}

/// The advisory locks of a session. Its drop gives them up, in the background.
pub struct AdvisorySession {
    node: NodeLocks,
    session: u32,
    held: Held,
    /// `None`: it has taken no lock yet.
    shared: Option<Arc<Shared>>,
    on_loss: OnLoss,
}

impl AdvisorySession {
    /// Of a session that `on_loss` ends.
    pub(crate) fn new(node: NodeLocks, on_loss: OnLoss) -> AdvisorySession {
        AdvisorySession { node, session: 0, held: Held::default(), shared: None, on_loss }
    }

    /// Sets the process id, for people.
    pub(crate) fn set_session(&mut self, session: u32) {
        self.session = session;
    }

    /// Whether the session holds any lock.
    pub(crate) fn holds_any(&self) -> bool {
        !self.held.is_empty()
    }

    /// The name under which the session holds locks, if it holds any.
    pub(crate) fn name(&self) -> Option<Timestamp> {
        self.shared.as_ref().filter(|_| self.holds_any()).map(|shared| shared.name)
    }

    /// Fails with a FATAL error if locks of the session are lost, as far as the node can know. Asks the oracle if the
    /// lease on them may be over.
    pub(crate) async fn confirm(&self) -> Result<(), SqlError> {
        match self.shared.as_ref().filter(|_| self.holds_any()) {
            Some(shared) => Box::pin(self.node.confirm(shared.term())).await.map(drop),
            None => Ok(()),
        }
    }

    /// Fails with a FATAL error if locks of the session were lost before `read_ts`, a timestamp of the oracle.
    pub(crate) fn check(&self, read_ts: Timestamp) -> Result<(), SqlError> {
        let Some(shared) = self.shared.as_ref().filter(|_| self.holds_any()) else { return Ok(()) };
        let lease = self.node.current().filter(|lease| lease.term == shared.term());
        if lease.is_some_and(|lease| lease.covers(read_ts)) { Ok(()) } else { Err(lost()) }
    }

    /// The greatest commit_ts of a transaction of the session, if it holds locks. Fails with a FATAL error if they are
    /// lost.
    pub(crate) fn commit_bound(&self) -> Result<Option<CommitBound>, SqlError> {
        let Some(shared) = self.shared.as_ref().filter(|_| self.holds_any()) else { return Ok(None) };
        let lease = self.node.current().filter(|lease| lease.term == shared.term());
        let lease = lease.ok_or_else(lost)?;
        Ok(Some(lease.bound).filter(|_| !self.node.planted(PlantedBug::UnboundCommit)))
    }

    /// Executes a call.
    ///
    /// # Errors
    /// 55P03 after `lock_timeout`, 40P01 for a deadlock, 53200 without room for another lock, 57P03 if the system
    /// region does not serve, and the FATAL error if locks of the session are lost.
    ///
    /// # Cancel safety
    /// The future may be dropped at any time: then the session does not have the lock.
    pub(crate) async fn call(
        &mut self,
        call: LockCall,
        lock: Option<LockName>,
        patience: Patience,
    ) -> Result<Answer, SqlError> {
        match (call.action, lock) {
            (Action::Lock, Some(lock)) => self.lock(lock, call, patience).await.map(|_| Answer::Done),
            (Action::TryLock, Some(lock)) => self.lock(lock, call, patience).await.map(Answer::Bool),
            (Action::Unlock, Some(lock)) => {
                self.confirm().await?;
                let Some(lowered) = self.changing(|held| held.unlock(lock, call.mode)) else {
                    return Ok(Answer::NotOwned(call.mode));
                };
                self.give_up(lowered).await;
                Ok(Answer::Bool(true))
            }
            (Action::UnlockAll, _) => {
                let lowered = self.changing(Held::unlock_all);
                self.give_up(lowered).await;
                Ok(Answer::Done)
            }
            (_, None) => Err(SqlError::internal("an advisory lock without a name")),
        }
    }

    /// Whether the session has the lock now.
    async fn lock(&mut self, lock: LockName, call: LockCall, patience: Patience) -> Result<bool, SqlError> {
        self.confirm().await?;
        let before = self.held.mode(lock);
        if before >= Some(call.mode) {
            self.changing(|held| held.add(lock, call.mode, call.level));
            return Ok(true);
        }
        if before.is_none() {
            self.node.check_room(self.held.len())?;
        }
        let shared = self.shared().await?;
        // What was given up before is no longer in the way.
        shared.settle().await;
        let (term, name) = (shared.term(), shared.name);
        let claim = Claim { lock, mode: call.mode, name, session: self.session, term };
        let taking = Taking { shared, claim, before, on_loss: (!self.holds_any()).then_some(&self.on_loss) };
        let taken = taking.run(call.action == Action::TryLock, patience).await;
        if taken == Ok(true) {
            self.changing(|held| held.add(lock, call.mode, call.level));
        }
        taken
    }

    async fn shared(&mut self) -> Result<Arc<Shared>, SqlError> {
        if let Some(shared) = &self.shared {
            return Ok(Arc::clone(shared));
        }
        let queue = self.node.db().session_locks(self.session).await?;
        let shared = Arc::new(Shared::new(self.node.clone(), queue));
        self.shared = Some(Arc::clone(&shared));
        Ok(shared)
    }

    /// Changes what is held, and counts it for the node.
    fn changing<T>(&mut self, change: impl FnOnce(&mut Held) -> T) -> T {
        let before = self.held.len();
        let changed = change(&mut self.held);
        self.node.count(before, self.held.len());
        if let Some(shared) = self.shared.as_ref().filter(|_| before > 0 && self.held.is_empty()) {
            self.node.leave(shared.name);
        }
        changed
    }

    fn lower(&self, lowered: impl IntoIterator<Item = (LockName, Option<Mode>)>) {
        let mut lowered = lowered.into_iter().peekable();
        if let Some(shared) = self.shared.as_ref().filter(|_| lowered.peek().is_some()) {
            shared.lower(lowered);
        }
    }

    async fn give_up(&self, lowered: impl IntoIterator<Item = (LockName, Option<Mode>)>) {
        self.lower(lowered);
        self.settle().await;
    }

    /// Returns once everything is given up that is to be. To be awaited before a client is told, which may tell another
    /// one.
    ///
    /// # Cancel safety
    /// The future may be dropped at any time: a task goes on.
    pub(crate) async fn settle(&self) {
        if let Some(shared) = &self.shared {
            shared.settle().await;
        }
    }

    /// Whether [`AdvisorySession::settle`] has something to do.
    pub(crate) fn is_unsettled(&self) -> bool {
        self.shared.as_ref().is_some_and(|shared| shared.is_unsettled())
    }

    /// A position for [`AdvisorySession::rollback_to`].
    pub(crate) fn savepoint(&mut self) -> usize {
        self.held.savepoint()
    }

    /// Nobody goes back to a savepoint above this one; 0: to none.
    pub(crate) fn release(&mut self, savepoint: usize) {
        self.held.release(savepoint);
    }

    /// Gives up what the transaction has taken since a savepoint, in the background; from 0, all of it: it has ended.
    pub(crate) fn rollback_to(&mut self, savepoint: usize) {
        if self.holds_any() {
            let lowered = self.changing(|held| held.rollback_to(savepoint));
            self.lower(lowered);
        }
    }

    /// A statement begins.
    pub(crate) fn begin_statement(&mut self) {
        self.held.begin_attempt();
    }

    /// The statement runs again: what it has taken is given up, in the background.
    pub(crate) fn undo_statement(&mut self) {
        let lowered = self.changing(Held::undo_attempt);
        self.lower(lowered);
    }

    /// Gives up all that is held for the session, in the background.
    pub(crate) fn unlock_all(&mut self) {
        let lowered = self.changing(Held::unlock_all);
        self.lower(lowered);
    }

    /// Tells a transaction of the session under which name that holds advisory locks.
    pub(crate) fn introduce(&self, txn: &mut Transaction) {
        txn.set_companion(self.name());
    }
}

impl Drop for AdvisorySession {
    fn drop(&mut self) {
        let locks = self.changing(Held::take_all);
        self.shared.iter().for_each(|shared| self.node.leave(shared.name));
        self.lower(locks.into_iter().map(|lock| (lock, None)));
    }
}

/// A session takes a lock: a place in its queue, then the record.
struct Taking<'s> {
    shared: Arc<Shared>,
    claim: Claim,
    /// What it has of the lock.
    before: Option<Mode>,
    /// Of a session without locks: it takes the lock under the newest term.
    on_loss: Option<&'s OnLoss>,
}

impl Taking<'_> {
    /// Returns whether the session has the lock.
    async fn run(mut self, tries: bool, patience: Patience) -> Result<bool, SqlError> {
        let until = patience.limit.map(|limit| clock::instant() + limit);
        let (shared, key) = (Arc::clone(&self.shared), self.claim.lock.queue_key());
        let mut attempt = Attempt::new(&shared, (self.claim.lock, self.before), self.on_loss.is_some());
        let place = self.claim.mode.queue();
        // Whoever has the lock already goes first: the others wait for it anyway.
        if self.before.is_some() && self.take_record(&mut attempt).await? == Taken::Held {
            attempt.succeed();
            // A place in the queue only makes others wait there.
            let _ = shared.queue.lock().await.acquire(&key, (place, LockWait::NoWait), None).await;
            return Ok(true);
        }
        let wait = if tries { LockWait::NoWait } else { LockWait::Queue(patience.limit) };
        let mut queue = shared.queue.lock().await;
        queue.set_mark(self.claim.mode.mark());
        let queued = queue.acquire(&key, (place, wait), patience.transaction).await;
        drop(queue);
        match queued {
            Ok(()) => {}
            Err(TxnError::NotAvailable { .. }) if tries => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        loop {
            let holders = match self.take_record(&mut attempt).await? {
                Taken::Held => {
                    attempt.succeed();
                    return Ok(true);
                }
                Taken::Blocked(_) if tries => return Ok(false),
                Taken::Blocked(holders) => holders,
            };
            let changes = until_changed(&shared, self.claim, &holders, until);
            let mut queue = shared.queue.lock().await;
            queue.wait_for((&key, holders.clone()), patience.transaction, changes).await?;
            if until.is_some_and(|until| clock::instant() >= until) {
                return Err(TxnError::LockTimeout { key }.into());
            }
        }
    }

    async fn take_record(&mut self, attempt: &mut Attempt) -> Result<Taken, SqlError> {
        let (node, name) = (&self.shared.node, self.shared.name);
        if let Some(on_loss) = self.on_loss {
            self.claim.term = node.lease().await?.term;
            self.shared.set_term(self.claim.term);
            node.enter(name, self.claim.term, on_loss);
        }
        let taken = self.shared.take(self.claim, attempt).await;
        if matches!(taken, Ok(Taken::Blocked(_))) && self.on_loss.is_some() {
            // It may wait for long, and has nothing to lose.
            node.leave(name);
        }
        taken
    }
}

/// Returns once others hold the record of a lock than `holders`, or when it is too late.
async fn until_changed(shared: &Shared, claim: Claim, holders: &[Timestamp], until: Option<Instant>) {
    loop {
        let next = clock::instant() + LOOK_INTERVAL;
        tokio::time::sleep_until(until.map_or(next, |until| until.min(next))).await;
        if until.is_some_and(|until| clock::instant() >= until) {
            return;
        }
        match shared.node.blockers(&claim).await {
            Ok(now) if now == holders => {}
            Ok(_) => return,
            // It is looked at again.
            Err(error) => tracing::debug!(%error, "the record of an advisory lock is not read"),
        }
    }
}

impl LockCall {
    /// The call of a function's name.
    pub(crate) fn named(name: &str) -> Option<LockCall> {
        let actions = [Action::Lock, Action::TryLock, Action::Unlock, Action::UnlockAll];
        let levels = [Level::Session, Level::Transaction];
        let calls = actions.into_iter().flat_map(|action| {
            levels.into_iter().flat_map(move |level| {
                [Mode::Exclusive, Mode::Shared].into_iter().map(move |mode| LockCall { action, mode, level })
            })
        });
        calls.into_iter().find(|call| call.function() == name)
    }

    /// The name of the function.
    pub(crate) const fn function(self) -> &'static str {
        use Level::Transaction;
        use Mode::{Exclusive, Shared};
        match (self.action, self.level, self.mode) {
            (Action::Lock, Level::Session, Exclusive) => "pg_advisory_lock",
            (Action::Lock, Level::Session, Shared) => "pg_advisory_lock_shared",
            (Action::Lock, Transaction, Exclusive) => "pg_advisory_xact_lock",
            (Action::Lock, Transaction, Shared) => "pg_advisory_xact_lock_shared",
            (Action::TryLock, Level::Session, Exclusive) => "pg_try_advisory_lock",
            (Action::TryLock, Level::Session, Shared) => "pg_try_advisory_lock_shared",
            (Action::TryLock, Transaction, Exclusive) => "pg_try_advisory_xact_lock",
            (Action::TryLock, Transaction, Shared) => "pg_try_advisory_xact_lock_shared",
            (Action::Unlock, _, Exclusive) => "pg_advisory_unlock",
            (Action::Unlock, _, Shared) => "pg_advisory_unlock_shared",
            (Action::UnlockAll, ..) => "pg_advisory_unlock_all",
        }
    }
}

impl Answer {
    /// The warning that comes with it.
    pub(crate) fn warning(self) -> Option<(SqlState, String)> {
        match self {
            Answer::NotOwned(mode) => {
                Some((SqlState::WARNING, format!("you don't own a lock of type {}", mode.name())))
            }
            Answer::Done | Answer::Bool(_) => None,
        }
    }
}

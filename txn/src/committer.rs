//! The commit protocols as a pure state machine: answers and the elapsed time come in, requests to send come out.
//!
//! ```text
//!       one phase, or all locks async
//!      .-----------------------------> Done (committed)
//!      |
//!  Prewriting --all acknowledged--> FetchingTs --commit_ts--> Committing --acknowledged--> Done (committed)
//!      |                               |    ^                   |   |  \--outcome unknown--> Done (undetermined)
//!      | refused                       |    '-- too early ------'   |
//!      v                               v                            v primary's lock is gone
//!  Done (rolled back)          Done (rolled back)            ResolvingOutcome --> Done (any of the three)
//!  or Settling, ResolvingOutcome
//! ```
//!
//! The protocol is Percolator's (Peng and Dabek, OSDI 2010). The commit point is the commit of the primary. Before it,
//! other transactions may roll this one back once its locks expire; after it, they complete it. The commit_ts is
//! fetched *after* the last prewrite was acknowledged. Snapshots and grants depend on that order: a reader with a newer
//! timestamp finds our locks.
//!
//! Waiting for the locks of live transactions cannot deadlock: a transaction that may hold a lock waits only for
//! younger ones. For a row that another transaction has locked in memory no commit waits: it fails, and the caller runs
//! the transaction again with row locks of its own.
//!
//! **One-phase and asynchronous commit** have no commit point of their own: the prewrite may be the commit. A
//! transaction of one batch asks for them (`TryCommit`), and the regions answer what they did. If a region locks
//! without the async flag, that lock is replicated, no other transaction can take this one for committed, and two-phase
//! commit goes on. An attempt that is not answered may still commit. So the transaction is reported as failed only
//! - if a key that it must lock is refused for good, which also holds for every copy of the request,
//! - or if every request was answered by a store that could not serve it, which left nothing behind,
//! - or after its outcome was settled: the rollback of the primary finds a commit or leaves a mark that no late copy
//!   passes. The keys of an asynchronous commit are asked instead (`Settle`), because the locks of all of them are its
//!   commit: one that is missing gets the mark.
//!
//! Otherwise the outcome is undetermined.

use std::time::Duration;

use kv::Key;
use kv::api::{KeyError, LockInfo, LocksStatus, Mutation, MutationOp};
use kv::client::{ClientError, CommitAttempted, Prewritten};
use kv::size::prewrite_bytes;
use tso::{Timestamp, TsoError};

use crate::bound::CommitBound;
use crate::config::CommitLimits;
use crate::error::TxnError;

/// The number of a prewrite batch, from 0. Batch 0 contains the primary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BatchId(pub(crate) usize);

/// The answer to an effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The answer to [`Effect::Prewrite`].
    Prewritten(BatchId, Result<(), ClientError>),
    /// The answer to [`Effect::TryCommit`].
    Tried(CommitAttempted),
    /// The answer to [`Effect::Settle`].
    Settled(Result<LocksStatus, ClientError>),
    /// The answer to [`Effect::Resolve`]: the live transactions whose locks remain.
    Resolved(BatchId, Result<Vec<Timestamp>, TxnError>),
    /// The answer to [`Effect::FetchCommitTs`].
    CommitTs(Result<Timestamp, TsoError>),
    /// The answer to [`Effect::CommitPrimary`]: the other keys that were not committed with it.
    PrimaryCommitted(Result<Vec<Key>, ClientError>),
    /// The answer to [`Effect::RollbackPrimary`].
    PrimaryRolledBack(Result<(), ClientError>),
}

/// A request for the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Prewrite a batch, after a pause that grows with `attempt` (none at 0).
    Prewrite {
        /// The batch.
        batch: BatchId,
        /// Its mutations.
        mutations: Vec<Mutation>,
        /// How often the batch met locks of live transactions.
        attempt: u32,
    },
    /// Prewrite all mutations, in one phase or asynchronously where the regions can. Pauses as `Prewrite`.
    TryCommit {
        /// All mutations.
        mutations: Vec<Mutation>,
        /// How often they met locks of live transactions.
        attempt: u32,
        /// Whether regions may lock with the async flag.
        async_commit: bool,
    },
    /// Find out whether an asynchronous commit has all its locks. Otherwise mark a key that has none.
    Settle {
        /// All locked keys.
        keys: Vec<Key>,
    },
    /// Resolve the locks that a prewrite met.
    Resolve {
        /// The batch.
        batch: BatchId,
        /// The locks.
        locks: Vec<LockInfo>,
    },
    /// Fetch a timestamp that is issued after this effect.
    FetchCommitTs,
    /// Commit the primary, and with it those of the other keys that fit the same request.
    CommitPrimary {
        /// The timestamp of the commit.
        commit_ts: Timestamp,
        /// All other locked keys.
        others: Vec<Key>,
    },
    /// Roll the primary back. The answer says whether it was committed.
    RollbackPrimary,
    /// Answer the session with the outcome; `None` if nothing had to be committed. Emitted once, and only background
    /// work follows.
    Finish(Result<Option<Timestamp>, TxnError>),
    /// In the background: commit the secondaries, and remove shared locks.
    CommitSecondaries {
        /// The secondaries that were not committed with the primary.
        keys: Vec<Key>,
        /// The keys that may have a shared lock.
        shared: Vec<Key>,
        /// The timestamp of the commit.
        commit_ts: Timestamp,
    },
    /// In the background: roll back the locks of a failed transaction.
    Rollback {
        /// Every key that may be locked.
        keys: Vec<Key>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BatchState {
    Queued,
    InFlight,
    Prewritten,
}

#[derive(Debug)]
struct Batch {
    mutations: Vec<Mutation>,
    state: BatchState,
    attempt: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Prewriting,
    FetchingTs { attempt: u32 },
    Committing { commit_ts: Timestamp, attempt: u32 },
    ResolvingOutcome,
    Settling,
    Done,
}

/// The attempts to commit in one phase or asynchronously.
#[derive(Clone, Copy, Debug)]
struct Attempts {
    /// Whether regions may lock with the async flag.
    async_commit: bool,
    /// Whether every request held all mutations. Those that were answered by a refusal left no lock then.
    is_whole: bool,
    /// Whether a request was not answered.
    unanswered: bool,
    /// Whether a request met locks. A late copy of it may find them gone.
    was_blocked: bool,
}

/// The state machine.
///
/// Invariants:
/// 1. A commit_ts is fetched only when every batch is prewritten, and used only if it is above start_ts and not above
///    the transaction's bound.
/// 2. The primary takes a lock that is not shared, and it is in the first batch.
/// 3. `Finish` is emitted exactly once. After it, only the background work of the same step is emitted.
/// 4. Secondaries are committed only after the primary's commit was acknowledged.
/// 5. While the primary's commit may have taken effect, only the primary is rolled back: its region knows the outcome.
/// 6. While an attempt of one phase or an asynchronous commit may take effect, `Finish` reports no failure but
///    `Undetermined`. No key of an asynchronous commit that may be complete is rolled back.
#[derive(Debug)]
pub(crate) struct Committer {
    /// The transaction. Set by [`Committer::start`].
    start_ts: Timestamp,
    /// `None` if no mutation takes a lock: the transaction then ends with the prewrite.
    primary: Option<Key>,
    batches: Vec<Batch>,
    state: State,
    /// `None` if the transaction is committed in two phases, from the start or since a region locked for them.
    attempts: Option<Attempts>,
    /// The error to report if the outcome that is being settled is a rollback.
    failure: Option<TxnError>,
    limits: CommitLimits,
    /// The greatest commit_ts; `None` if any will do. Read when the commit_ts has arrived.
    bound: Option<CommitBound>,
}

impl Committer {
    /// A committer of at least one mutation, with distinct keys in ascending order. A commit_ts above `bound` is a
    /// conflict.
    pub(crate) fn new(mutations: Vec<Mutation>, bound: Option<CommitBound>, limits: CommitLimits) -> Committer {
        assert!(!mutations.is_empty(), "a commit changes something");
        let primary = mutations.iter().find(|mutation| mutation.op.is_exclusive()).map(|m| m.key.clone());
        let mut batches = split(mutations, primary.as_ref(), &limits);
        if let Some(at) = batches.iter().position(|batch| batch.mutations.iter().any(|m| m.op.is_exclusive())) {
            batches.swap(0, at);
        }
        let async_commit = is_async(&batches, &limits);
        let tries = batches.len() == 1 && primary.is_some() && (limits.one_phase || async_commit);
        let attempts =
            tries.then_some(Attempts { async_commit, is_whole: true, unanswered: false, was_blocked: false });
        let (start_ts, state, failure) = (Timestamp::ZERO, State::Prewriting, None);
        Committer { start_ts, primary, batches, state, attempts, failure, limits, bound }
    }

    /// Whether the transaction may be committed at a computed commit_ts.
    pub(crate) fn tries_computed(&self) -> bool {
        self.attempts.is_some()
    }

    /// Whether regions may lock with the async flag.
    pub(crate) fn tries_async(&self) -> bool {
        self.attempts.is_some_and(|attempts| attempts.async_commit)
    }

    /// The key whose record decides the outcome of the transaction. Any key if no mutation takes a lock.
    pub(crate) fn primary(&self) -> &Key {
        let any = || self.batches.iter().flat_map(|batch| &batch.mutations).map(|mutation| &mutation.key).next();
        match self.primary.as_ref().or_else(any) {
            Some(key) => key,
            None => unreachable!("a commit changes something"),
        }
    }

    /// Whether the primary's lock may exist and needs heartbeats.
    pub(crate) fn holds_lock(&self) -> bool {
        self.primary.is_some() && self.state != State::Done
    }

    /// The first requests.
    pub(crate) fn start(&mut self, start_ts: Timestamp) -> Vec<Effect> {
        self.start_ts = start_ts;
        if self.attempts.is_some() { self.try_commit() } else { self.send_batches() }
    }

    /// Processes an answer that arrived `elapsed` after the commit began. Answers after the end are ignored.
    pub(crate) fn step(&mut self, event: Event, elapsed: Duration) -> Vec<Effect> {
        let before = self.state;
        let effects = match (self.state, event) {
            (State::Prewriting, Event::Prewritten(batch, result)) => self.prewritten(batch, result),
            (State::Prewriting, Event::Tried(attempted)) => self.tried(attempted),
            (State::Settling, Event::Settled(result)) => self.settled(result),
            (State::Prewriting, Event::Resolved(batch, result)) => self.resolved(batch, result, elapsed),
            (State::FetchingTs { attempt }, Event::CommitTs(result)) => self.commit_ts(attempt, result),
            (State::Committing { commit_ts, attempt }, Event::PrimaryCommitted(result)) => {
                self.primary_committed(commit_ts, attempt, result)
            }
            (State::ResolvingOutcome, Event::PrimaryRolledBack(result)) => self.outcome_resolved(result),
            (State::Done, _) => Vec::new(),
            (state, event) => unreachable!("{event:?} answers no effect of {state:?}"),
        };
        self.check(before, &effects);
        effects
    }

    /// Asserts invariants 1 and 3 to 5 on the effects of a step.
    fn check(&self, before: State, effects: &[Effect]) {
        let finished = effects.iter().filter(|effect| matches!(effect, Effect::Finish(_))).count();
        let ends_now = before != State::Done && self.state == State::Done;
        assert_eq!(finished, usize::from(ends_now), "Finish comes once, with the end");
        let is_open = self.attempts.is_some_and(|attempts| attempts.unanswered) && before == State::Prewriting;
        for effect in effects {
            match effect {
                Effect::Finish(Err(error)) if is_open => {
                    let is_refused = matches!(error, TxnError::Conflict(_) | TxnError::AlreadyExists { .. });
                    assert!(is_refused, "invariant 6: {error} although the outcome is open");
                }
                Effect::FetchCommitTs | Effect::CommitPrimary { .. } => {
                    assert!(self.all_prewritten(), "commit before the last prewrite");
                }
                Effect::CommitSecondaries { .. } | Effect::Rollback { .. } => {
                    assert!(ends_now, "background work comes with the end")
                }
                _ => {}
            }
        }
    }

    fn all_prewritten(&self) -> bool {
        self.batches.iter().all(|batch| batch.state == BatchState::Prewritten)
    }

    fn send_batches(&mut self) -> Vec<Effect> {
        let in_flight = self.batches.iter().filter(|batch| batch.state == BatchState::InFlight).count();
        let room = self.limits.batches_in_flight.saturating_sub(in_flight);
        let queued = self.batches.iter_mut().enumerate().filter(|(_, batch)| batch.state == BatchState::Queued);
        let send = |(id, batch): (usize, &mut Batch)| {
            batch.state = BatchState::InFlight;
            Effect::Prewrite { batch: BatchId(id), mutations: batch.mutations.clone(), attempt: batch.attempt }
        };
        queued.take(room).map(send).collect()
    }

    fn try_commit(&mut self) -> Vec<Effect> {
        let async_commit = self.tries_async();
        let Some(batch) = self.batches.first_mut() else { return Vec::new() };
        batch.state = BatchState::InFlight;
        vec![Effect::TryCommit { mutations: batch.mutations.clone(), attempt: batch.attempt, async_commit }]
    }

    fn tried(&mut self, attempted: CommitAttempted) -> Vec<Effect> {
        let CommitAttempted { result, is_whole, unanswered } = attempted;
        let Some(attempts) = &mut self.attempts else { unreachable!("invariant: an attempt was made") };
        attempts.is_whole &= is_whole;
        attempts.unanswered |= unanswered;
        attempts.was_blocked |= matches!(result, Err(ClientError::Key(KeyError::Locked(_))));
        let is_whole = attempts.is_whole;
        match result {
            Ok(Prewritten::Committed { commit_ts }) => {
                let left = if is_whole { (Vec::new(), Vec::new()) } else { (self.exclusive(), self.shared()) };
                self.committed(commit_ts, left)
            }
            Ok(Prewritten::AsyncLocked { commit_ts }) => {
                let keys = self.exclusive();
                self.committed(commit_ts, (keys, Vec::new()))
            }
            Ok(Prewritten::Locked) => {
                self.attempts = None;
                self.prewritten(BatchId(0), Ok(()))
            }
            Err(ClientError::Key(KeyError::Locked(locks))) => vec![Effect::Resolve { batch: BatchId(0), locks }],
            Err(error) => self.attempt_failed(error),
        }
    }

    /// Ends an attempt that a region refused or that no region answered.
    fn attempt_failed(&mut self, error: ClientError) -> Vec<Effect> {
        let Some(Attempts { is_whole, unanswered, was_blocked, .. }) = self.attempts else {
            unreachable!("an attempt was made")
        };
        let locks = |key: &Key| self.locked_keys().contains(&key);
        let is_refused = match &error {
            ClientError::Key(KeyError::WriteConflict { key, .. } | KeyError::AlreadyExists { key }) => {
                is_whole || locks(key)
            }
            ClientError::Key(KeyError::RolledBack { .. }) => true,
            _ => false,
        };
        let error = match error {
            ClientError::Key(KeyError::AlreadyExists { key }) => TxnError::AlreadyExists { key },
            ClientError::Key(
                error @ (KeyError::WriteConflict { .. }
                | KeyError::Held { .. }
                | KeyError::LockLost { .. }
                | KeyError::TooOld { .. }),
            ) => TxnError::Conflict(error.to_string()),
            ClientError::Key(error @ KeyError::RolledBack { .. }) => {
                TxnError::Conflict(format!("locks expired: {error}"))
            }
            error => abort_error(error),
        };
        let holds_none = is_whole && !unanswered;
        match is_refused {
            // Nothing was locked and nothing will be.
            true if holds_none => self.finish(Err(error)),
            true => self.abort(error),
            false if holds_none && !was_blocked => self.finish(Err(error)),
            false => self.settle(error),
        }
    }

    /// Finds out what became of the attempts, to report `failure` if they came to nothing.
    fn settle(&mut self, failure: TxnError) -> Vec<Effect> {
        self.failure = Some(failure);
        if self.attempts.is_some_and(|attempts| attempts.async_commit && !attempts.is_whole) {
            self.state = State::Settling;
            return vec![Effect::Settle { keys: self.exclusive() }];
        }
        self.state = State::ResolvingOutcome;
        vec![Effect::RollbackPrimary]
    }

    fn settled(&mut self, result: Result<LocksStatus, ClientError>) -> Vec<Effect> {
        match result {
            Ok(LocksStatus::Locked { min_commit_ts: commit_ts } | LocksStatus::Committed { commit_ts }) => {
                let keys = self.exclusive();
                self.committed(commit_ts, (keys, Vec::new()))
            }
            // Only this committer could commit a transaction that has fallen back to two phases.
            Ok(LocksStatus::RolledBack | LocksStatus::TwoPhase) => self.abort_settled(),
            Ok(LocksStatus::Missing) | Err(_) => self.finish(Err(self.undetermined())),
        }
    }

    fn abort_settled(&mut self) -> Vec<Effect> {
        let expired = || TxnError::Conflict("locks expired before the commit".to_owned());
        let error = self.failure.take().unwrap_or_else(expired);
        self.abort(error)
    }

    /// Ends a transaction that does not get its locks. A copy of its last attempt may be on its way.
    fn give_up(&mut self, error: TxnError) -> Vec<Effect> {
        if self.attempts.is_some() { self.settle(error) } else { self.abort(error) }
    }

    fn prewritten(&mut self, id: BatchId, result: Result<(), ClientError>) -> Vec<Effect> {
        let Some(batch) = self.batches.get_mut(id.0) else { return Vec::new() };
        match result {
            Ok(()) => {
                batch.state = BatchState::Prewritten;
                let more = self.send_batches();
                if !self.all_prewritten() {
                    return more;
                }
                if self.primary.is_none() {
                    return self.finish(Ok(None));
                }
                self.state = State::FetchingTs { attempt: 0 };
                vec![Effect::FetchCommitTs]
            }
            Err(ClientError::Key(KeyError::Locked(locks))) => vec![Effect::Resolve { batch: id, locks }],
            Err(ClientError::Key(error @ (KeyError::WriteConflict { .. } | KeyError::AlreadyExists { .. }))) => {
                let error = match error {
                    KeyError::AlreadyExists { key } => TxnError::AlreadyExists { key },
                    other => TxnError::Conflict(other.to_string()),
                };
                // The region rejects the only key for good: no attempt of ours has locked it or ever will.
                if self.is_single() {
                    return self.finish(Err(error));
                }
                self.abort(error)
            }
            Err(ClientError::Key(error @ KeyError::RolledBack { .. })) => {
                self.abort(TxnError::Conflict(format!("locks expired: {error}")))
            }
            // It is not refused for good: the rollback keeps a late copy out.
            // Nor is what came too late: it may have locked keys before.
            Err(ClientError::Key(
                error @ (KeyError::Held { .. } | KeyError::LockLost { .. } | KeyError::TooOld { .. }),
            )) => self.abort(TxnError::Conflict(error.to_string())),
            Err(error) => self.abort(abort_error(error)),
        }
    }

    fn resolved(&mut self, id: BatchId, result: Result<Vec<Timestamp>, TxnError>, elapsed: Duration) -> Vec<Effect> {
        let holders = match result {
            Ok(holders) => holders,
            Err(error) => return self.give_up(error),
        };
        // With a single key the transaction holds no lock while it waits, so that no holder can wait for it. Nor does
        // it if each request is for all of its keys.
        let holds_none = self.attempts.is_some_and(|attempts| attempts.is_whole && !attempts.unanswered);
        let may_hold_lock = !self.is_single() && !holds_none;
        if let Some(older) = holders.iter().find(|holder| **holder < self.start_ts && may_hold_lock) {
            return self.give_up(TxnError::Conflict(format!("a key is locked by the older transaction {older}")));
        }
        if elapsed >= self.limits.lock_wait {
            let holder = holders.first().map_or_else(String::new, |holder| format!(", the last of {holder}"));
            return self.give_up(TxnError::Conflict(format!("locks did not go away within {elapsed:?}{holder}")));
        }
        let Some(batch) = self.batches.get_mut(id.0) else { return Vec::new() };
        batch.attempt = if holders.is_empty() { batch.attempt } else { batch.attempt.saturating_add(1) };
        if self.attempts.is_some() {
            return self.try_commit();
        }
        vec![Effect::Prewrite { batch: id, mutations: batch.mutations.clone(), attempt: batch.attempt }]
    }

    fn commit_ts(&mut self, attempt: u32, result: Result<Timestamp, TsoError>) -> Vec<Effect> {
        match result {
            Ok(commit_ts) if self.bound.as_ref().is_some_and(|bound| commit_ts > bound.get()) => {
                self.abort(TxnError::Conflict(format!("the commit_ts {commit_ts} is above the transaction's bound")))
            }
            Ok(commit_ts) if commit_ts > self.start_ts => {
                self.state = State::Committing { commit_ts, attempt };
                vec![Effect::CommitPrimary { commit_ts, others: self.secondaries() }]
            }
            Ok(commit_ts) => {
                let start_ts = self.start_ts;
                self.abort(TxnError::Internal(format!("the oracle issued {commit_ts} after {start_ts}")))
            }
            Err(error) => self.abort(error.into()),
        }
    }

    fn primary_committed(
        &mut self,
        commit_ts: Timestamp,
        attempt: u32,
        result: Result<Vec<Key>, ClientError>,
    ) -> Vec<Effect> {
        match result {
            Ok(left) => {
                let shared = self.shared();
                self.committed(commit_ts, (left, shared))
            }
            Err(ClientError::Key(KeyError::CommitTsTooEarly { .. })) if attempt < self.limits.commit_ts_retries => {
                self.state = State::FetchingTs { attempt: attempt + 1 };
                vec![Effect::FetchCommitTs]
            }
            Err(ClientError::Key(error @ KeyError::CommitTsTooEarly { .. })) => {
                self.abort(TxnError::Conflict(error.to_string()))
            }
            // A rollback is final and recorded.
            Err(ClientError::Key(error @ KeyError::RolledBack { .. })) => {
                self.abort(TxnError::Conflict(format!("locks expired: {error}")))
            }
            // This commit had no effect, but `LockNotFound` and `Committed` contradict the acknowledged prewrite. The
            // rollback settles the outcome: it finds a commit, or leaves a mark that no late request passes.
            Err(ClientError::Key(_)) => {
                self.state = State::ResolvingOutcome;
                vec![Effect::RollbackPrimary]
            }
            Err(ClientError::Undetermined(_)) => self.finish(Err(self.undetermined())),
            // The client returns these for a commit only if no attempt took effect.
            Err(
                error @ (ClientError::Unavailable { .. }
                | ClientError::Overloaded { .. }
                | ClientError::TooLarge { .. }
                | ClientError::Invalid(_)
                | ClientError::Failed(_)),
            ) => self.abort(abort_error(error)),
        }
    }

    fn outcome_resolved(&mut self, result: Result<(), ClientError>) -> Vec<Effect> {
        match result {
            Ok(()) | Err(ClientError::Key(KeyError::RolledBack { .. })) => self.abort_settled(),
            Err(ClientError::Key(KeyError::Committed { commit_ts, .. })) => {
                let left = (self.secondaries(), self.shared());
                self.committed(commit_ts, left)
            }
            Err(_) => self.finish(Err(self.undetermined())),
        }
    }

    /// The transaction is committed. These keys may have locks and shared locks of it.
    fn committed(&mut self, commit_ts: Timestamp, (keys, shared): (Vec<Key>, Vec<Key>)) -> Vec<Effect> {
        let mut effects = self.finish(Ok(Some(commit_ts)));
        if !keys.is_empty() || !shared.is_empty() {
            effects.push(Effect::CommitSecondaries { keys, shared, commit_ts });
        }
        effects
    }

    fn abort(&mut self, error: TxnError) -> Vec<Effect> {
        let sent = self.batches.iter().filter(|batch| batch.state != BatchState::Queued);
        let keys: Vec<Key> = sent.flat_map(locked_keys_of).cloned().collect();
        let mut effects = self.finish(Err(error));
        if !keys.is_empty() {
            effects.push(Effect::Rollback { keys });
        }
        effects
    }

    fn undetermined(&self) -> TxnError {
        TxnError::Undetermined { start_ts: self.start_ts, primary: self.primary().clone() }
    }

    fn finish(&mut self, result: Result<Option<Timestamp>, TxnError>) -> Vec<Effect> {
        self.state = State::Done;
        vec![Effect::Finish(result)]
    }

    /// Whether the transaction has a single mutation: until its prewrite succeeds, it holds no lock.
    fn is_single(&self) -> bool {
        self.batches.len() == 1 && self.batches.iter().all(|batch| batch.mutations.len() == 1)
    }

    fn locked_keys(&self) -> Vec<&Key> {
        self.batches.iter().flat_map(locked_keys_of).collect()
    }

    /// The keys that the transaction locks for itself alone.
    fn exclusive(&self) -> Vec<Key> {
        let mutations = self.batches.iter().flat_map(|batch| &batch.mutations);
        mutations.filter(|mutation| mutation.op.is_exclusive()).map(|mutation| mutation.key.clone()).collect()
    }

    /// The keys that it shares with others.
    fn shared(&self) -> Vec<Key> {
        let mutations = self.batches.iter().flat_map(|batch| &batch.mutations);
        mutations.filter(|m| matches!(m.op, MutationOp::Shared(_))).map(|mutation| mutation.key.clone()).collect()
    }

    fn secondaries(&self) -> Vec<Key> {
        self.exclusive().into_iter().filter(|key| Some(key) != self.primary.as_ref()).collect()
    }
}

/// Whether the transaction may be committed asynchronously: its primary's lock has room for all its keys, and each of
/// its mutations takes a lock of its own, by which others can see whether it is prewritten, also later.
fn is_async(batches: &[Batch], limits: &CommitLimits) -> bool {
    let mutations = || batches.iter().flat_map(|batch| &batch.mutations);
    let bytes: usize = mutations().map(|mutation| mutation.key.as_bytes().len()).sum();
    let is_exclusive = |mutation: &Mutation| mutation.op.is_exclusive();
    mutations().count() <= limits.async_keys && bytes <= limits.async_key_bytes && mutations().all(is_exclusive)
}

/// Whether the prewrite of a mutation leaves a lock.
pub(crate) fn takes_lock(mutation: &Mutation) -> bool {
    mutation.op != MutationOp::CheckNotExists
}

fn locked_keys_of(batch: &Batch) -> impl Iterator<Item = &Key> {
    batch.mutations.iter().filter(|mutation| takes_lock(mutation)).map(|mutation| &mutation.key)
}

/// Splits the mutations into batches by the bytes that a region writes for each. Every lock contains the primary's key,
/// so a long primary makes every mutation larger.
fn split(mutations: Vec<Mutation>, primary: Option<&Key>, limits: &CommitLimits) -> Vec<Batch> {
    let no_primary = Key::default();
    let primary = primary.unwrap_or(&no_primary);
    let mut batches: Vec<Batch> = Vec::new();
    let mut bytes = 0usize;
    for mutation in mutations {
        let size = prewrite_bytes(&mutation, primary);
        match batches.last_mut() {
            Some(batch) if batch.mutations.len() < limits.batch_keys && bytes + size <= limits.batch_bytes => {
                bytes += size;
                batch.mutations.push(mutation);
            }
            _ => {
                bytes = size;
                batches.push(Batch { mutations: vec![mutation], state: BatchState::Queued, attempt: 0 });
            }
        }
    }
    batches
}

/// Maps a client error of a transaction of which nothing can have been committed.
fn abort_error(error: ClientError) -> TxnError {
    match error {
        ClientError::Unavailable { .. } | ClientError::Undetermined(_) => TxnError::Unavailable(error.to_string()),
        ClientError::Overloaded { .. } => TxnError::Overloaded(error.to_string()),
        ClientError::TooLarge { .. } => TxnError::TooLarge(error.to_string()),
        ClientError::Key(_) | ClientError::Invalid(_) | ClientError::Failed(_) => TxnError::Internal(error.to_string()),
    }
}

#[cfg(test)]
mod tests;

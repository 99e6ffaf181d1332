//! Runs a commit: carries out what the [`Committer`] asks for, feeds the answers back, keeps the locks alive meanwhile.
//!
//! A commit runs in a task of its own, so that a session that goes away cannot tear it. The session is answered at the
//! commit point; the secondaries, or the roll-back of a failed commit, follow in the same task. The number of tasks
//! that are past their commit point is bounded: when there are too many, a commit is answered only after its own
//! clearing up.
//!
//! Keeping alive: a lock's life is counted from start_ts, so every request that writes one says how old the transaction
//! is when it is *sent*. A heartbeat goes out every third of a lock's life, whatever became of the last one, and one
//! more when the primary's prewrite took so long that its lock may be near its end already.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use kv::Key;
use kv::api::{LockInfo, Mutation};
use kv::client::ClientError;
use tokio::sync::oneshot;
use tso::Timestamp;

use crate::clock::Stopwatch;
use crate::committer::{BatchId, Committer, Effect, Event};
use crate::database::Shared;
use crate::error::TxnError;
use crate::lock_wait::lock_wait;

/// How much of the interval between two heartbeats one of them may take. Less than all, so that the client learns from
/// a leader's silence before the heartbeat is dropped for the next one.
const BEAT_PATIENCE: f32 = 0.75;

/// What a commit ends with: the commit_ts, or none if there was nothing to commit.
pub(crate) type Outcome = Result<Option<Timestamp>, TxnError>;

/// A commit to run.
pub(crate) struct Commit {
    /// The transaction.
    pub(crate) start_ts: Timestamp,
    /// Runs since start_ts was issued.
    pub(crate) begun: Stopwatch,
    /// Its changes, in key order, at least one.
    pub(crate) mutations: Vec<Mutation>,
}

/// Starts a commit and waits for its outcome. The commit goes on if the caller stops waiting.
pub(crate) async fn commit(shared: Arc<Shared>, commit: Commit) -> Outcome {
    let (reply, outcome) = oneshot::channel();
    let tasks = shared.tasks.clone();
    tasks.spawn(run(shared, commit, reply));
    // The task ends without an answer only if it panics or the runtime stops: then nobody knows how far it came.
    outcome.await.unwrap_or(Err(TxnError::Undetermined))
}

async fn run(shared: Arc<Shared>, commit: Commit, reply: oneshot::Sender<Outcome>) {
    let Commit { start_ts, begun, mutations } = commit;
    let committer = Committer::new(start_ts, mutations, shared.config.commit);
    let driver = Driver { shared: &shared, start_ts, begun, primary: committer.primary().clone() };
    let (outcome, left) = driver.drive(committer).await;
    shared.metrics.committed(&outcome);
    let permit = left.is_some().then(|| shared.background.try_acquire());
    let in_background = !matches!(permit, Some(Err(_)));
    let reply = if in_background {
        // The session may have gone away.
        drop(reply.send(outcome));
        None
    } else {
        Some((reply, outcome))
    };
    if let Some(left) = left {
        shared.metrics.background.inc();
        driver.clear(left).await;
        shared.metrics.background.dec();
    }
    if let Some((reply, outcome)) = reply {
        drop(reply.send(outcome));
    }
}

/// Work that is left when the outcome is known.
enum Left {
    Commit { keys: Vec<Key>, commit_ts: Timestamp },
    Rollback { keys: Vec<Key> },
}

/// What the loop waits for.
enum Happened {
    Answer(Event),
    /// The primary's batch is prewritten, and that took so long that its lock needs a heartbeat now.
    PrewrittenLate(Event),
    /// It is time for another heartbeat.
    Beat,
    /// A heartbeat out of turn is over.
    Extended,
}

struct Driver<'a> {
    shared: &'a Shared,
    start_ts: Timestamp,
    begun: Stopwatch,
    primary: Key,
}

impl Driver<'_> {
    /// Runs the committer to its end. Requests still under way then are dropped: their answers change nothing any more.
    async fn drive(&self, mut committer: Committer) -> (Outcome, Option<Left>) {
        let started = Stopwatch::start();
        let mut under_way: FuturesUnordered<BoxFuture<'_, Happened>> = FuturesUnordered::new();
        under_way.push(Box::pin(self.beat(false)));
        let mut effects = committer.start();
        loop {
            let (mut outcome, mut left) = (None, None);
            for effect in effects {
                match effect {
                    Effect::Finish(result) => outcome = Some(result),
                    Effect::CommitSecondaries { keys, commit_ts } => left = Some(Left::Commit { keys, commit_ts }),
                    Effect::Rollback { keys } => left = Some(Left::Rollback { keys }),
                    Effect::Prewrite { batch, mutations, attempt } => {
                        under_way.push(Box::pin(self.prewrite(batch, mutations, attempt)));
                    }
                    Effect::Resolve { batch, locks } => under_way.push(Box::pin(self.resolve(batch, locks))),
                    Effect::FetchCommitTs => under_way.push(Box::pin(self.fetch_commit_ts())),
                    Effect::CommitPrimary { commit_ts, others } => {
                        under_way.push(Box::pin(self.commit_primary(commit_ts, others)));
                    }
                    Effect::RollbackPrimary => under_way.push(Box::pin(self.rollback_primary())),
                }
            }
            if let Some(outcome) = outcome {
                return (outcome, left);
            }
            effects = match under_way.next().await {
                Some(Happened::Answer(event)) => committer.step(event, started.elapsed()),
                Some(Happened::PrewrittenLate(event)) => {
                    under_way.push(Box::pin(self.extend_now()));
                    committer.step(event, started.elapsed())
                }
                Some(Happened::Beat) => {
                    under_way.push(Box::pin(self.beat(committer.holds_lock())));
                    Vec::new()
                }
                Some(Happened::Extended) => Vec::new(),
                None => return (Err(TxnError::Undetermined), None),
            };
        }
    }

    async fn prewrite(&self, batch: BatchId, mutations: Vec<Mutation>, attempt: u32) -> Happened {
        if attempt > 0 {
            self.shared.metrics.waits.inc();
            tokio::time::sleep(lock_wait(attempt, None, self.shared.jitter())).await;
        }
        let sent = Stopwatch::start();
        let ttl_ms = || self.ttl_ms();
        let result = self.shared.kv.prewrite(mutations, &self.primary, self.start_ts, ttl_ms).await;
        let is_late = batch == BatchId(0) && result.is_ok() && sent.elapsed() > self.beat_interval();
        let event = Event::Prewritten(batch, result);
        if is_late { Happened::PrewrittenLate(event) } else { Happened::Answer(event) }
    }

    async fn resolve(&self, batch: BatchId, locks: Vec<LockInfo>) -> Happened {
        let living = self.shared.resolver.resolve(locks).await;
        let living = living.map(|holders| holders.into_iter().map(|holder| holder.start_ts).collect());
        Happened::Answer(Event::Resolved(batch, living))
    }

    async fn fetch_commit_ts(&self) -> Happened {
        Happened::Answer(Event::CommitTs(self.shared.tso.timestamp().await))
    }

    async fn commit_primary(&self, commit_ts: Timestamp, others: Vec<Key>) -> Happened {
        let result = self.shared.kv.commit_primary(&self.primary, &others, self.start_ts, commit_ts).await;
        Happened::Answer(Event::PrimaryCommitted(result))
    }

    async fn rollback_primary(&self) -> Happened {
        let result = self.shared.kv.rollback(std::slice::from_ref(&self.primary), self.start_ts).await;
        Happened::Answer(Event::PrimaryRolledBack(result))
    }

    /// Extends the primary's lock, if there is one yet, and waits until that is due again: no longer, even if the
    /// primary's region does not answer.
    async fn beat(&self, extend: bool) -> Happened {
        let interval = self.beat_interval();
        let beat = async {
            if extend {
                self.extend(interval.mul_f32(BEAT_PATIENCE)).await;
            }
            std::future::pending().await
        };
        let _: Result<(), _> = tokio::time::timeout(interval, beat).await;
        Happened::Beat
    }

    async fn extend_now(&self) -> Happened {
        self.extend(self.beat_interval()).await;
        Happened::Extended
    }

    async fn extend(&self, limit: Duration) {
        self.shared.metrics.heartbeats.inc();
        let beat = self.shared.kv.heartbeat(&self.primary, self.start_ts, || self.ttl_ms(), limit).await;
        if let Err(error) = beat {
            // Not there yet, or gone: the answer to the prewrite or the commit will tell.
            tracing::debug!(start_ts = %self.start_ts, %error, "heartbeat refused");
        }
    }

    /// Between two heartbeats. Two in a row may fail before a lock expires.
    fn beat_interval(&self) -> Duration {
        self.shared.config.lock_ttl / 3
    }

    /// Life of our locks, counted from start_ts: from now on, one `lock_ttl`.
    fn ttl_ms(&self) -> u64 {
        let ttl = u64::try_from(self.shared.config.lock_ttl.as_millis()).unwrap_or(u64::MAX);
        self.begun.elapsed_ms().saturating_add(ttl)
    }

    /// Commits the secondaries or removes the locks. What fails here, others finish when they meet the locks.
    async fn clear(&self, left: Left) {
        let (keys, result) = match left {
            Left::Commit { keys, commit_ts } => {
                let result = self.shared.kv.commit(&keys, self.start_ts, commit_ts).await;
                (keys, result)
            }
            Left::Rollback { keys } => {
                let result = self.shared.kv.rollback(&keys, self.start_ts).await;
                (keys, result)
            }
        };
        if let Err(error) = result {
            self.shared.metrics.leftovers.inc_by(keys.len() as u64);
            report(self.start_ts, keys.len(), &error);
        }
    }
}

fn report(start_ts: Timestamp, keys: usize, error: &ClientError) {
    tracing::warn!(%start_ts, keys, %error, "locks of a finished transaction are left to be resolved by others");
}

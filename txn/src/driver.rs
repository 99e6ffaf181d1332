//! Runs a commit: performs the effects of the [`Committer`], feeds the answers back, and keeps the locks alive
//! meanwhile.
//!
//! A commit runs in a task of its own, so that a cancelled session cannot tear it. The session is answered at the
//! commit point. The same task then cleans up: it commits the secondaries, or rolls back the locks of a failed commit.
//! The number of tasks past their commit point is bounded: beyond the bound, a commit cleans up before it answers.
//!
//! A lock's ttl counts from start_ts, in the oracle's time. So every request that writes a lock carries the
//! transaction's age at the time it is *sent*, and the age comes from the newest timestamp of this node: the
//! oracle's time moves forward with each of its handovers. A commit whose node has seen no timestamp for a while
//! fetches one first, and so does every heartbeat.
//!
//! A heartbeat is sent every third of `lock_ttl`, whether the previous one was answered or not. One more is sent when
//! the primary's prewrite took so long that its lock may be about to expire.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use kv::Key;
use kv::api::{LockInfo, Mutation};
use tokio::sync::oneshot;
use tso::Timestamp;

use crate::bound::CommitBound;
use crate::committer::{BatchId, Committer, Effect, Event};
use crate::coordinator::Coordinator;
use crate::error::TxnError;
#[cfg(feature = "planted-bugs")]
use crate::planted::PlantedBug;
use crate::timing::{Stopwatch, lock_pause, lock_ttl_ms};

/// A commit fetches a timestamp first if this node has received none for this long: it may have missed handovers.
///
/// A handover within it is unseen. It takes from the lock what a handover right after the prewrite would: a third of
/// its life at most (`config.rs`), and the first heartbeat comes before the rest is over. To fetch a timestamp for
/// every commit would not close the gap, because a handover can also come between the fetch and the prewrite.
const UNSEEN_MAX: Duration = Duration::from_millis(100);
/// How long a heartbeat waits for its timestamp, as a fraction of the heartbeat interval. Without one it goes by the
/// last. The two fractions add up to less than 1.
const HEARTBEAT_TIMESTAMP_FRACTION: f32 = 0.2;
/// The timeout of a periodic heartbeat, as a fraction of the heartbeat interval. Below 1, so that the client learns of
/// a silent leader before the next heartbeat replaces this one.
const HEARTBEAT_TIMEOUT_FRACTION: f32 = 0.75;

/// The outcome of a commit: its commit_ts, or `None` if nothing had to be committed.
pub(crate) type CommitOutcome = Result<Option<Timestamp>, TxnError>;

/// A transaction to commit.
pub(crate) struct CommitRequest {
    /// The transaction.
    pub(crate) start_ts: Timestamp,
    /// Its mutations, in key order, at least one.
    pub(crate) mutations: Vec<Mutation>,
    /// The greatest commit_ts, if there is one.
    pub(crate) bound: Option<CommitBound>,
}

/// Starts a commit and waits for its outcome. The commit continues if the caller stops waiting.
pub(crate) async fn commit(coordinator: Arc<Coordinator>, request: CommitRequest) -> CommitOutcome {
    let (reply, outcome) = oneshot::channel();
    let tasks = coordinator.tasks.clone();
    tasks.spawn(run(coordinator, request, reply));
    // The task ends without an answer only if it panics or the runtime shuts down. Its progress is then unknown.
    outcome.await.unwrap_or(Err(TxnError::Undetermined))
}

async fn run(coordinator: Arc<Coordinator>, request: CommitRequest, reply: oneshot::Sender<CommitOutcome>) {
    let CommitRequest { start_ts, mutations, bound } = request;
    let committer = Committer::new(start_ts, mutations, coordinator.config.commit).with_bound(bound);
    let driver = Driver {
        coordinator: &coordinator,
        start_ts,
        primary: committer.primary().clone(),
        #[cfg(feature = "planted-bugs")]
        early_commit_ts: planted_commit_ts(&coordinator).await,
    };
    let (outcome, cleanup) = driver.run_to_outcome(committer).await;
    coordinator.metrics.record_outcome(&outcome);
    let permit = cleanup.is_some().then(|| coordinator.background.try_acquire());
    let in_background = !matches!(permit, Some(Err(_)));
    let reply = if in_background {
        // Sending fails if the session was cancelled.
        drop(reply.send(outcome));
        None
    } else {
        Some((reply, outcome))
    };
    if let Some(cleanup) = cleanup {
        coordinator.metrics.background.inc();
        driver.clean_up(cleanup).await;
        coordinator.metrics.background.dec();
    }
    if let Some((reply, outcome)) = reply {
        drop(reply.send(outcome));
    }
}

/// The work that remains when the outcome is known.
enum Cleanup {
    CommitSecondaries { keys: Vec<Key>, commit_ts: Timestamp },
    Rollback { keys: Vec<Key> },
}

/// A completed future of the driver's loop.
enum Completed {
    Answer(Event),
    /// The primary's batch is prewritten, and took so long that its lock needs a heartbeat now.
    PrewrittenLate(Event),
    /// The next periodic heartbeat is due.
    HeartbeatDue,
    /// An extra heartbeat has ended.
    ExtraHeartbeat,
}

struct Driver<'a> {
    coordinator: &'a Coordinator,
    start_ts: Timestamp,
    primary: Key,
    /// A planted bug: the commit_ts, fetched before the prewrites.
    #[cfg(feature = "planted-bugs")]
    early_commit_ts: Option<Timestamp>,
}

/// Fetches a commit_ts before the prewrites, if that bug is planted.
#[cfg(feature = "planted-bugs")]
async fn planted_commit_ts(coordinator: &Coordinator) -> Option<Timestamp> {
    let is_planted = coordinator.config.planted_bug == Some(PlantedBug::CommitTsBeforePrewrites);
    if is_planted { coordinator.tso.timestamp().await.ok() } else { None }
}

impl Driver<'_> {
    /// Runs the committer to its end. Requests still in flight then are dropped: their answers change nothing any more.
    async fn run_to_outcome(&self, mut committer: Committer) -> (CommitOutcome, Option<Cleanup>) {
        let started = Stopwatch::start();
        if let Err(error) = self.refresh_time().await {
            // Nothing was sent.
            return (Err(error), None);
        }
        let mut in_flight: FuturesUnordered<BoxFuture<'_, Completed>> = FuturesUnordered::new();
        in_flight.push(Box::pin(self.heartbeat_interval_passes(false)));
        let mut effects = committer.start();
        loop {
            let (mut outcome, mut cleanup) = (None, None);
            for effect in effects {
                match effect {
                    Effect::Finish(result) => outcome = Some(result),
                    Effect::CommitSecondaries { keys, commit_ts } => {
                        cleanup = Some(Cleanup::CommitSecondaries { keys, commit_ts });
                    }
                    Effect::Rollback { keys } => cleanup = Some(Cleanup::Rollback { keys }),
                    Effect::Prewrite { batch, mutations, attempt } => {
                        in_flight.push(Box::pin(self.prewrite(batch, mutations, attempt)));
                    }
                    Effect::Resolve { batch, locks } => in_flight.push(Box::pin(self.resolve(batch, locks))),
                    Effect::FetchCommitTs => in_flight.push(Box::pin(self.fetch_commit_ts())),
                    Effect::CommitPrimary { commit_ts, others } => {
                        in_flight.push(Box::pin(self.commit_primary(commit_ts, others)));
                    }
                    Effect::RollbackPrimary => in_flight.push(Box::pin(self.rollback_primary())),
                }
            }
            if let Some(outcome) = outcome {
                return (outcome, cleanup);
            }
            effects = match in_flight.next().await {
                Some(Completed::Answer(event)) => committer.step(event, started.elapsed()),
                Some(Completed::PrewrittenLate(event)) => {
                    in_flight.push(Box::pin(self.extra_heartbeat()));
                    committer.step(event, started.elapsed())
                }
                Some(Completed::HeartbeatDue) => {
                    in_flight.push(Box::pin(self.heartbeat_interval_passes(committer.holds_lock())));
                    Vec::new()
                }
                Some(Completed::ExtraHeartbeat) => Vec::new(),
                None => return (Err(TxnError::Undetermined), None),
            };
        }
    }

    /// Fetches a timestamp, unless this node received one just now.
    async fn refresh_time(&self) -> Result<(), TxnError> {
        let tso = &self.coordinator.tso;
        if tso.newest().age > UNSEEN_MAX {
            tso.timestamp().await?;
        }
        Ok(())
    }

    async fn prewrite(&self, batch: BatchId, mutations: Vec<Mutation>, attempt: u32) -> Completed {
        if attempt > 0 {
            self.coordinator.metrics.waits.inc();
            tokio::time::sleep(lock_pause(attempt, None, self.coordinator.jitter())).await;
        }
        let sent = Stopwatch::start();
        let ttl_ms = || self.ttl_ms();
        let result = self.coordinator.kv.prewrite(mutations, &self.primary, self.start_ts, ttl_ms).await;
        let is_late = batch == BatchId(0) && result.is_ok() && sent.elapsed() > self.heartbeat_interval();
        let event = Event::Prewritten(batch, result);
        if is_late { Completed::PrewrittenLate(event) } else { Completed::Answer(event) }
    }

    async fn resolve(&self, batch: BatchId, locks: Vec<LockInfo>) -> Completed {
        let holders = self.coordinator.resolver.resolve(locks).await;
        let holders = holders.map(|holders| holders.into_iter().map(|holder| holder.start_ts).collect());
        Completed::Answer(Event::Resolved(batch, holders))
    }

    async fn fetch_commit_ts(&self) -> Completed {
        #[cfg(feature = "planted-bugs")]
        if let Some(early) = self.early_commit_ts {
            return Completed::Answer(Event::CommitTs(Ok(early)));
        }
        Completed::Answer(Event::CommitTs(self.coordinator.tso.timestamp().await))
    }

    async fn commit_primary(&self, commit_ts: Timestamp, others: Vec<Key>) -> Completed {
        #[cfg(feature = "planted-bugs")]
        if self.coordinator.config.planted_bug == Some(PlantedBug::SecondariesFirst) {
            drop(self.coordinator.kv.commit(&others, self.start_ts, commit_ts).await);
        }
        let result = self.coordinator.kv.commit_primary(&self.primary, &others, self.start_ts, commit_ts).await;
        Completed::Answer(Event::PrimaryCommitted(result))
    }

    async fn rollback_primary(&self) -> Completed {
        let result = self.coordinator.kv.rollback(std::slice::from_ref(&self.primary), self.start_ts).await;
        Completed::Answer(Event::PrimaryRolledBack(result))
    }

    /// Sends a heartbeat, if `send`, and ends when the next one is due, even if the primary's region does not answer.
    async fn heartbeat_interval_passes(&self, send: bool) -> Completed {
        let interval = self.heartbeat_interval();
        let heartbeat = async {
            if send {
                self.send_heartbeat(interval.mul_f32(HEARTBEAT_TIMEOUT_FRACTION)).await;
            }
            std::future::pending().await
        };
        let _: Result<(), _> = tokio::time::timeout(interval, heartbeat).await;
        Completed::HeartbeatDue
    }

    async fn extra_heartbeat(&self) -> Completed {
        self.send_heartbeat(self.heartbeat_interval()).await;
        Completed::ExtraHeartbeat
    }

    /// Extends the life of the primary's lock.
    async fn send_heartbeat(&self, timeout: Duration) {
        self.coordinator.metrics.heartbeats.inc();
        let wait = self.heartbeat_interval().mul_f32(HEARTBEAT_TIMESTAMP_FRACTION);
        // The client remembers it. Without an answer the last one must do.
        let _ = tokio::time::timeout(wait, self.coordinator.tso.timestamp()).await;
        let sent = self.coordinator.kv.heartbeat(&self.primary, self.start_ts, || self.ttl_ms(), timeout).await;
        if let Err(error) = sent {
            // The lock does not exist yet, or is gone: the answer to the prewrite or the commit will tell.
            tracing::debug!(start_ts = %self.start_ts, %error, "heartbeat refused");
        }
    }

    /// The interval between two heartbeats. Two in a row may fail before a lock expires.
    fn heartbeat_interval(&self) -> Duration {
        self.coordinator.config.lock_ttl / 3
    }

    /// The ttl, counted from start_ts, of a lock that lives for `lock_ttl` from now on.
    fn ttl_ms(&self) -> u64 {
        lock_ttl_ms(self.start_ts, self.coordinator.tso.newest(), self.coordinator.config.lock_ttl)
    }

    /// Commits the secondaries or rolls back the locks. Other transactions resolve the locks for which this fails.
    async fn clean_up(&self, cleanup: Cleanup) {
        let (keys, result) = match cleanup {
            Cleanup::CommitSecondaries { keys, commit_ts } => {
                let result = self.coordinator.kv.commit(&keys, self.start_ts, commit_ts).await;
                (keys, result)
            }
            Cleanup::Rollback { keys } => {
                let result = self.coordinator.kv.rollback(&keys, self.start_ts).await;
                (keys, result)
            }
        };
        if let Err(error) = result {
            self.coordinator.metrics.leftovers.inc_by(keys.len() as u64);
            let (start_ts, keys) = (self.start_ts, keys.len());
            tracing::warn!(%start_ts, keys, %error, "other transactions must resolve the locks of a finished one");
        }
    }
}

//! Runs a commit: performs the effects of the [`Committer`], feeds the answers back, and keeps the locks alive
//! meanwhile.
//!
//! A commit runs in the session's task. If the session is cancelled, it goes on in a task of its own, so that nothing
//! tears it. The session is answered at the commit point. A task then cleans up: it commits the secondaries, or rolls
//! back the locks of a failed commit. The number of these tasks is bounded: beyond the bound, a commit cleans up before
//! it answers.
//!
//! A lock's ttl counts from start_ts, in the oracle's time. So every request that writes a lock carries the
//! transaction's age at the time it is *sent*, and the age comes from the newest timestamp of this node: the oracle's
//! time moves forward with each of its handovers. A commit in two phases whose node has seen no timestamp for a while
//! fetches one first, and so does every heartbeat.
//!
//! A heartbeat is sent every third of `lock_ttl`, whether the previous one was answered or not, once a second request
//! is sent. One more is sent when the primary's prewrite took so long that its lock may be about to expire.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use kv::Key;
use kv::api::{CommitBounds, LockInfo, Mutation};
use kv::client::{CommitAttempt, CommitAttempted, Prewritten};
use kv::detach::DetachOnDrop;
use tso::Timestamp;

use crate::bound::CommitBound;
use crate::committer::{BatchId, Committer, Effect, Event, takes_lock};
use crate::coordinator::Coordinator;
use crate::error::TxnError;
use crate::live_snapshots::LiveSnapshot;
use crate::metrics::Protocol;
#[cfg(feature = "planted-bugs")]
use crate::planted::PlantedBug;
use crate::row_locks::RowLocks;
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
    /// The transaction. `None`: it has read nothing, and gets its start_ts now. If it has seen commits above it, it
    /// gets a new name now, above all of them: a transaction has seen every commit to its keys below its name.
    pub(crate) start_ts: Option<Timestamp>,
    /// Its mutations, in key order, at least one.
    pub(crate) mutations: Vec<Mutation>,
    /// Whether start_ts, if there is one, was fetched after the request for this commit arrived. Otherwise a commit_ts
    /// that a region computes could be below that of a transaction that was acknowledged before. Whether the caller
    /// runs the statement again after a conflict, if there is none.
    pub(crate) is_single_statement: bool,
    /// The greatest commit_ts, if there is one.
    pub(crate) bound: Option<CommitBound>,
    /// Its row locks in memory. Kept up to the outcome.
    pub(crate) locks: Option<RowLocks>,
    /// Its place among the transactions that live. Kept up to the outcome.
    pub(crate) live: LiveSnapshot,
}

/// Commits in the caller's task. The commit continues in a task of its own if the caller stops waiting.
pub(crate) async fn commit(coordinator: Arc<Coordinator>, request: CommitRequest) -> CommitOutcome {
    DetachOnDrop::new(run(coordinator, request)).await
}

async fn run(coordinator: Arc<Coordinator>, request: CommitRequest) -> CommitOutcome {
    // A drain waits for it, wherever the commit runs.
    let _running = coordinator.tasks.token();
    let CommitRequest { start_ts, mut mutations, is_single_statement, bound, mut locks, live } = request;
    let locked: Vec<Key> = match &locks {
        Some(_) => mutations.iter().filter(|m| takes_lock(m)).map(|mutation| mutation.key.clone()).collect(),
        None => Vec::new(),
    };
    let renamed = start_ts.filter(|start_ts| mutations.iter().any(|m| m.seen_ts.is_some_and(|seen| seen > *start_ts)));
    if let Some(locker) = renamed {
        mutations.iter_mut().for_each(|mutation| mutation.seen_ts = mutation.seen_ts.or(Some(locker)));
    }
    let committer = Committer::new(mutations, bound.clone(), coordinator.config.commit);
    // Its records are above all that it has seen.
    let start_ts = if renamed.is_some() { Some(coordinator.tso.timestamp().await?) } else { start_ts };
    let is_single_statement = is_single_statement || renamed.is_some();
    let name = name(&coordinator, (start_ts, &live), is_single_statement, committer.tries_async()).await?;
    let primary = committer.primary().clone();
    #[cfg(feature = "planted-bugs")]
    let early_commit_ts = planted_commit_ts(&coordinator).await;
    let mut driver = Driver {
        coordinator,
        start_ts: name.start_ts,
        primary,
        locker: renamed,
        least: name.start_ts,
        bound,
        lock_requests: AtomicUsize::new(0),
        #[cfg(feature = "planted-bugs")]
        early_commit_ts,
    };
    // Before anything is sent.
    driver.learn_time(committer.tries_computed(), name.origin).await?;
    let (outcome, cleanup) = driver.run_to_outcome(committer).await;
    driver.coordinator.metrics.record_outcome(&outcome);
    if let (Ok(Some(_)), Some(locks)) = (&outcome, &mut locks) {
        locks.forget(locked.iter());
    }
    if let Some(locks) = locks {
        locks.end().await;
    }
    drop(live);
    if name.origin == Origin::Ahead && matches!(outcome, Err(TxnError::Conflict(_))) {
        // Its successor is to see the commit that was in the way.
        driver.coordinator.tso.drop_ahead();
    }
    let Some(cleanup) = cleanup else { return outcome };
    match Arc::clone(&driver.coordinator.background).try_acquire_owned() {
        Ok(permit) => {
            let tasks = driver.coordinator.tasks.clone();
            tasks.spawn(async move {
                driver.clean_up(cleanup).await;
                drop(permit);
            });
        }
        Err(_) => driver.clean_up(cleanup).await,
    }
    outcome
}

/// The start_ts of a transaction that commits.
struct Name {
    start_ts: Timestamp,
    origin: Origin,
}

/// When a start_ts was fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// After the request for the commit arrived.
    Commit,
    /// For an earlier statement.
    EarlierStatement,
    /// Ahead, for any transaction of this node. The regions take the least commit_ts themselves.
    Ahead,
}

/// The name of a transaction with this start_ts, or of one that has read nothing, which needs start_ts as a name only.
/// If its commit may be one request, and the caller runs it again after a conflict, it gets a name that was fetched
/// ahead: it then conflicts with every commit since.
async fn name(
    coordinator: &Coordinator,
    (start_ts, live): (Option<Timestamp>, &LiveSnapshot),
    is_single_statement: bool,
    has_few_keys: bool,
) -> Result<Name, TxnError> {
    if let Some(start_ts) = start_ts {
        let origin = if is_single_statement { Origin::Commit } else { Origin::EarlierStatement };
        return Ok(Name { start_ts, origin });
    }
    if is_single_statement
        && has_few_keys
        && let Some(start_ts) = coordinator.take_ahead(live)
    {
        coordinator.metrics.names_ahead.inc();
        return Ok(Name { start_ts, origin: Origin::Ahead });
    }
    Ok(Name { start_ts: coordinator.tso.timestamp().await?, origin: Origin::Commit })
}

/// The work that remains when the outcome is known.
enum Cleanup {
    CommitSecondaries { keys: Vec<Key>, shared: Vec<Key>, commit_ts: Timestamp },
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

struct Driver {
    coordinator: Arc<Coordinator>,
    start_ts: Timestamp,
    /// The name of its row locks, if that is another one.
    locker: Option<Timestamp>,
    primary: Key,
    /// The least computed commit_ts. [`Timestamp::ZERO`]: see [`CommitBounds::least`].
    least: Timestamp,
    /// The greatest commit_ts, if there is one. Read when a request leaves.
    bound: Option<CommitBound>,
    /// Requests sent that may leave a lock.
    lock_requests: AtomicUsize,
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

type InFlight<'a> = FuturesUnordered<BoxFuture<'a, Completed>>;

impl Driver {
    /// Runs the committer to its end. Requests still in flight then are dropped: their answers change nothing any more.
    async fn run_to_outcome(&self, mut committer: Committer) -> (CommitOutcome, Option<Cleanup>) {
        let started = Stopwatch::start();
        let mut in_flight: InFlight<'_> = FuturesUnordered::new();
        let mut beats = false;
        let mut protocol = Protocol::TwoPhase;
        let mut effects = committer.start(self.start_ts);
        loop {
            let (mut outcome, mut cleanup) = (None, None);
            for effect in effects {
                match effect {
                    Effect::Finish(result) => outcome = Some(result),
                    Effect::CommitSecondaries { keys, shared, commit_ts } => {
                        cleanup = Some(Cleanup::CommitSecondaries { keys, shared, commit_ts });
                    }
                    Effect::Rollback { keys } => cleanup = Some(Cleanup::Rollback { keys }),
                    Effect::Prewrite { batch, mutations, attempt } => {
                        in_flight.push(Box::pin(self.prewrite(batch, mutations, attempt)));
                    }
                    Effect::TryCommit { mutations, attempt, async_commit } => {
                        in_flight.push(Box::pin(self.try_commit(mutations, attempt, async_commit)));
                    }
                    Effect::Settle { keys } => in_flight.push(Box::pin(self.settle(keys))),
                    Effect::Resolve { batch, locks } => in_flight.push(Box::pin(self.resolve(batch, locks))),
                    Effect::FetchCommitTs => in_flight.push(Box::pin(self.fetch_commit_ts())),
                    Effect::CommitPrimary { commit_ts, others } => {
                        in_flight.push(Box::pin(self.commit_primary(commit_ts, others)));
                    }
                    Effect::RollbackPrimary => in_flight.push(Box::pin(self.rollback_primary())),
                }
            }
            if let Some(outcome) = outcome {
                if let Ok(Some(_)) = outcome {
                    self.coordinator.metrics.record_protocol(protocol);
                }
                return (outcome, cleanup);
            }
            let completed = self.next_completed(&mut in_flight, &mut beats).await;
            if let Some(Completed::Answer(Event::Tried(attempted))) = &completed {
                protocol = protocol_of(attempted);
                let wanted = attempted.is_whole || committer.tries_async();
                self.coordinator.metrics.fallbacks.inc_by(u64::from(wanted && protocol == Protocol::TwoPhase));
                if attempted.result == Ok(Prewritten::Locked) && !beats {
                    // The locks are as old as the attempt took.
                    beats = true;
                    let is_late = started.elapsed() > self.heartbeat_interval();
                    in_flight.push(Box::pin(self.heartbeat_interval_passes(is_late)));
                }
            }
            effects = match completed {
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
                None => {
                    let (start_ts, primary) = (self.start_ts, self.primary.clone());
                    return (Err(TxnError::Undetermined { start_ts, primary }), None);
                }
            };
        }
    }

    /// Waits for a future of the loop. The usual commit is one request and is over before its lock, if it leaves one,
    /// needs a heartbeat. So the timer is set when another request is sent; `beats` says that it is.
    async fn next_completed<'a>(&'a self, in_flight: &mut InFlight<'a>, beats: &mut bool) -> Option<Completed> {
        poll_fn(|cx| {
            let next = in_flight.poll_next_unpin(cx);
            if next.is_pending() && !*beats && self.lock_requests.load(Ordering::Relaxed) > 1 {
                *beats = true;
                in_flight.push(Box::pin(self.heartbeat_interval_passes(false)));
                return in_flight.poll_next_unpin(cx);
            }
            next
        })
        .await
    }

    /// Fetches a timestamp before the first request if one is needed: as the least commit_ts of a transaction whose
    /// start_ts is from before its last statement, or to learn the oracle's time if this node has received no timestamp
    /// just now.
    async fn learn_time(&mut self, tries_computed: bool, origin: Origin) -> Result<(), TxnError> {
        let tso = &self.coordinator.tso;
        if tries_computed {
            match origin {
                Origin::Commit => (),
                Origin::EarlierStatement => self.least = tso.timestamp().await?,
                Origin::Ahead => self.least = Timestamp::ZERO,
            }
        } else if tso.newest().age > UNSEEN_MAX {
            tso.timestamp().await?;
        }
        Ok(())
    }

    async fn pause_before(&self, attempt: u32) {
        if attempt > 0 {
            self.coordinator.metrics.waits.inc();
            tokio::time::sleep(lock_pause(attempt, None, self.coordinator.jitter())).await;
        }
    }

    async fn try_commit(&self, mutations: Vec<Mutation>, attempt: u32, async_commit: bool) -> Completed {
        self.pause_before(attempt).await;
        let one_phase = self.coordinator.config.commit.one_phase;
        let (primary, start_ts) = (&self.primary, self.start_ts);
        let greatest = self.bound.as_ref().map_or(Timestamp::MAX, CommitBound::get);
        let bounds = CommitBounds { least: self.least, greatest };
        let request = CommitAttempt { primary, start_ts, locker: self.locker, bounds, one_phase, async_commit };
        let attempted = self.coordinator.kv.try_commit(mutations, &request, || self.lock_ttl_ms()).await;
        #[cfg(feature = "planted-bugs")]
        let attempted = self.planted_fallback(attempted);
        Completed::Answer(Event::Tried(attempted))
    }

    /// Takes locks of an async commit for those of two phases, if that bug is planted.
    #[cfg(feature = "planted-bugs")]
    fn planted_fallback(&self, mut attempted: CommitAttempted) -> CommitAttempted {
        if self.coordinator.config.planted_bug == Some(PlantedBug::FallbackOnAsyncLocks)
            && let Ok(prewritten @ Prewritten::AsyncLocked { .. }) = &mut attempted.result
        {
            *prewritten = Prewritten::Locked;
        }
        attempted
    }

    /// Asks the keys of an asynchronous commit whether it is complete, and marks one that is missing.
    async fn settle(&self, keys: Vec<Key>) -> Completed {
        let settled = self.coordinator.kv.check_locks(&keys, self.start_ts, Timestamp::ZERO, true).await;
        Completed::Answer(Event::Settled(settled))
    }

    async fn prewrite(&self, batch: BatchId, mutations: Vec<Mutation>, attempt: u32) -> Completed {
        self.pause_before(attempt).await;
        let sent = Stopwatch::start();
        let (primary, start_ts) = (&self.primary, self.start_ts);
        let bounds = CommitBounds { least: start_ts, greatest: Timestamp::MAX };
        let two_phases =
            CommitAttempt { primary, start_ts, locker: self.locker, bounds, one_phase: false, async_commit: false };
        let attempted = self.coordinator.kv.try_commit(mutations, &two_phases, || self.lock_ttl_ms()).await;
        let result = attempted.result.map(drop);
        let is_late = batch == BatchId(0) && result.is_ok() && sent.elapsed() > self.heartbeat_interval();
        let event = Event::Prewritten(batch, result);
        if is_late { Completed::PrewrittenLate(event) } else { Completed::Answer(event) }
    }

    /// The ttl for a request that may leave a lock.
    fn lock_ttl_ms(&self) -> u64 {
        self.lock_requests.fetch_add(1, Ordering::Relaxed);
        self.ttl_ms()
    }

    async fn resolve(&self, batch: BatchId, locks: Vec<LockInfo>) -> Completed {
        let resolved = self.coordinator.resolver.resolve(locks, Timestamp::ZERO).await;
        let holders = resolved.map(|resolved| resolved.holders.into_iter().map(|holder| holder.start_ts).collect());
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
        self.coordinator.metrics.background.inc();
        let (keys, result) = match cleanup {
            Cleanup::CommitSecondaries { mut keys, mut shared, commit_ts } => {
                let (kv, start_ts) = (&self.coordinator.kv, self.start_ts);
                let (committed, resolved) = tokio::join!(
                    async { if keys.is_empty() { Ok(()) } else { kv.commit(&keys, start_ts, commit_ts).await } },
                    // They leave no record by which a repeated commit would find that it is done.
                    async {
                        match shared.is_empty() {
                            true => Ok(()),
                            false => kv.resolve_locks(&shared, start_ts, Some(commit_ts)).await,
                        }
                    },
                );
                keys.append(&mut shared);
                (keys, committed.and(resolved))
            }
            Cleanup::Rollback { keys } => {
                let result = self.coordinator.kv.rollback(&keys, self.start_ts).await;
                (keys, result)
            }
        };
        self.coordinator.metrics.background.dec();
        if let Err(error) = result {
            self.coordinator.metrics.leftovers.inc_by(keys.len() as u64);
            let (start_ts, keys) = (self.start_ts, keys.len());
            tracing::warn!(%start_ts, keys, %error, "other transactions must resolve the locks of a finished one");
        }
    }
}

/// The protocol by which the attempt commits the transaction, if it does.
fn protocol_of(attempted: &CommitAttempted) -> Protocol {
    match attempted.result {
        Ok(Prewritten::Locked) => Protocol::TwoPhase,
        Ok(Prewritten::AsyncLocked { .. }) => Protocol::Async,
        Ok(Prewritten::Committed { .. }) | Err(_) if attempted.is_whole => Protocol::OnePhase,
        Ok(Prewritten::Committed { .. }) | Err(_) => Protocol::Async,
    }
}

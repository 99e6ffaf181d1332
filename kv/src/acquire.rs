//! Row locks in memory: the path of the requests that take, keep and give them up.
//!
//! For each key of an [`AcquireRequest`], in order:
//! 1. Take the latch, then the basis, as a write does.
//! 2. Take the lock from the table (`locks`), or a place in its queue. A request that waits holds no latch and does not
//!    count as in flight.
//! 3. Look at the newest records of the key (`percolator::look`). A lock record of another transaction is waited for
//!    with the row's lock held, so that nobody overtakes.
//!
//! At the end the term is confirmed: all locks that are answered were taken in it. They protect nothing that the
//! prewrite would not find out by itself, but whoever is told that it has a lock and has it not would fail later.
//!
//! A request waits for a limited time and is answered with who is in the way; the place in the queue stays, and the
//! caller asks again. So no request outlives the patience of a link, and the caller learns whom it waits for. A lock
//! record is answered sooner: its transaction may be dead, and the caller finds out.

use std::sync::Arc;
use std::time::{Duration, Instant};

use prometheus::Histogram;
use raftstore::{Basis, RegionContext, RegionError, RegionId, Term};
use tokio::sync::oneshot;
use tso::Timestamp;

use crate::api::{
    AcquireRequest, Acquired, Blocked, KeyError, LockId, LockInfo, LockMode, LockRef, LockedRow, Presence, Request,
    RequestBody, Response, RowFound, ServerError, WaitReport, Waiting,
};
use crate::error::ActionError;
use crate::key::Key;
use crate::locks::{Attempt, Detector, LocksFull, Place, RegionLocks, RowLockStatus, now};
use crate::metrics::LockWaits;
use crate::percolator::{Look, look};
#[cfg(feature = "planted-bugs")]
use crate::planted::PlantedBug;
use crate::region_store::{RegionStore, into_server_error, timestamp};
use crate::scheduler::Scheduler;

/// How long a request waits for a lock record before it is answered with it.
const RECORD_WAIT: Duration = Duration::from_millis(100);

/// The bytes of rows after which a request is answered, however many keys are left.
const ANSWER_BYTES: usize = 2 << 20;

/// What became of a key.
enum Outcome {
    Row(LockedRow),
    Blocked(Blocked),
}

/// One attempt on a key, under its latch.
enum Step {
    Done(Outcome),
    /// Wait for the lock in memory.
    Queued(Place),
    /// Wait for the lock record to go. What the transaction held before.
    Record(LockInfo, Option<LockMode>, oneshot::Receiver<()>),
}

/// A request under way.
struct Acquisition {
    context: RegionContext,
    request: Arc<AcquireRequest>,
    locks: Arc<RegionLocks>,
    /// The term of the locks that it has got; `None` before the first one.
    term: Option<Term>,
    /// When it is answered, if it may wait.
    until: Option<Instant>,
}

impl<H: RegionStore> Scheduler<H> {
    /// Executes a request about row locks. `permit` is dropped when the request begins to wait, at the latest at its
    /// end.
    ///
    /// # Errors
    ///
    /// Those of each kind, and [`ServerError::Invalid`] for a request that is not about row locks.
    ///
    /// # Cancel safety
    ///
    /// The future may be dropped at any time. What an `Acquire` has locked by then stays locked: the caller releases
    /// all keys that it has asked for.
    pub(crate) async fn run_lock_request<T>(&self, request: Request, permit: T) -> Result<Response, ServerError> {
        let context = request.context;
        match request.body {
            RequestBody::Acquire(acquire) => self.acquire(context, acquire, permit).await.map(Response::Acquired),
            RequestBody::Release { keys, start_ts, keep } => self.release(context, &keys, start_ts, keep),
            RequestBody::Refresh { locks } => self.refresh(context, &locks),
            RequestBody::Detect(report) => self.detect(context, &report),
            _ => Err(ServerError::Invalid("not a request about row locks".to_owned())),
        }
    }

    /// Locks rows in memory. `permit` is dropped when the request begins to wait, at the latest at its end.
    ///
    /// # Errors
    ///
    /// - [`ServerError::Region`]: as [`Scheduler::run`]. Locks may have been taken, and were not answered.
    /// - [`ServerError::Key`]: `WriteConflict` or `AlreadyExists`, of a row that the request depends on. The rows
    ///   before it are locked. `TooOld`: the snapshot of the transaction is below the safe point.
    /// - [`ServerError::Invalid`], [`ServerError::Failed`]: as [`Scheduler::run`].
    ///
    /// # Cancel safety
    ///
    /// The future may be dropped at any time. It gives up its place in a queue. Locks that it has taken stay: the
    /// caller releases all keys that it has asked for.
    async fn acquire<T>(
        &self,
        context: RegionContext,
        request: AcquireRequest,
        permit: T,
    ) -> Result<Acquired, ServerError> {
        let until = match request.waiting {
            Waiting::Queue { ms } => Some(now() + Duration::from_millis(ms.into())),
            Waiting::Fail | Waiting::Skip => None,
        };
        let newest = request.start_ts.max(request.seen_ts).max(request.snapshot.unwrap_or(Timestamp::ZERO));
        self.concurrency.check_issued(context.region, newest).await?;
        // What commits to the rows after the locks are lost commits above what the transaction has seen.
        self.concurrency.raise_max_ts(&self.concurrency.region(context.region), newest);
        let locks = self.locks.region(context.region);
        let request = Arc::new(request);
        let mut acquisition = Acquisition { context, request: Arc::clone(&request), locks, term: None, until };
        let (mut acquired, mut permit, mut bytes) = (Acquired::default(), Some(permit), 0);
        for key in &request.keys {
            match self.acquire_key(&mut acquisition, key, &mut permit).await? {
                Outcome::Row(row) => {
                    bytes += if let RowFound::Present(value) = &row.row { value.len() } else { 0 };
                    acquired.rows.push(row);
                    if bytes >= ANSWER_BYTES {
                        break;
                    }
                }
                Outcome::Blocked(blocked) => {
                    acquired.blocked = Some(blocked);
                    break;
                }
            }
        }
        if let Some(term) = acquisition.term {
            self.confirm_term(context, term).await?;
        }
        // After the look at the rows: a deleted row may be collected, and with it what conflicts with the snapshot.
        // Without a snapshot the newest row is the right one. Then the name may be as old as a session that locks.
        let safe_point = timestamp(self.store.floors(context.region).writes);
        match request.snapshot.map(|snapshot| snapshot.min(request.start_ts)).filter(|began| *began <= safe_point) {
            Some(start_ts) => Err(KeyError::TooOld { start_ts, safe_point }.into()),
            None => Ok(acquired),
        }
    }

    async fn acquire_key<T>(
        &self,
        acquisition: &mut Acquisition,
        key: &Key,
        permit: &mut Option<T>,
    ) -> Result<Outcome, ServerError> {
        loop {
            match self.attempt_key(acquisition, key).await? {
                Step::Done(outcome) => return Ok(outcome),
                Step::Queued(mut place) => {
                    drop(permit.take());
                    let handed = self.count_wait(|waits| &waits.row, in_time(acquisition.until, place.handed())).await;
                    match handed {
                        // The lock is the transaction's.
                        Some(true) => place.leave(),
                        Some(false) => return Err(stale(acquisition.context).into()),
                        None => {
                            let holders = place.waits_for();
                            place.leave();
                            return Ok(Outcome::Blocked(Blocked { holders, record: None }));
                        }
                    }
                }
                Step::Record(record, held, gone) => {
                    drop(permit.take());
                    let until = acquisition.until.map(|until| until.min(now() + RECORD_WAIT));
                    if self.count_wait(|waits| &waits.record, in_time(until, gone)).await.is_none() {
                        // Others may find out about it meanwhile.
                        if let Some(term) = acquisition.term {
                            acquisition.locks.undo(term, key, acquisition.request.start_ts, held);
                        }
                        let holders = vec![record.start_ts];
                        return Ok(Outcome::Blocked(Blocked { holders, record: Some(record) }));
                    }
                }
            }
        }
    }

    /// Waits, and counts for how long.
    async fn count_wait<T>(&self, what: impl FnOnce(&LockWaits) -> &Histogram, wait: impl Future<Output = T>) -> T {
        let start = now();
        let done = wait.await;
        if let Some(waits) = &self.lock_waits {
            what(waits).observe(now().duration_since(start).as_secs_f64());
        }
        done
    }

    /// Tries to lock a key, without waiting for other transactions.
    async fn attempt_key(&self, acquisition: &mut Acquisition, key: &Key) -> Result<Step, ServerError> {
        let Acquisition { context, request, locks, .. } = &*acquisition;
        let (start_ts, waits) = (request.start_ts, matches!(request.waiting, Waiting::Queue { .. }));
        let Ok(_latch) = self.latches.acquire(&[key]).await else { return Err(self.busy("latches")) };
        let basis = self.store.basis(*context)?;
        self.fences.check(context.region, basis.term)?;
        if !basis.region.contains(&key.to_storage()) {
            return Err(RegionError::KeyNotInRegion { region: context.region }.into());
        }
        if acquisition.term.is_some_and(|term| term != basis.term) {
            // What it has got is lost.
            return Err(stale(*context).into());
        }
        let attempt = locks.acquire(basis.term, key, (start_ts, request.mode), waits, now());
        let attempt = attempt.map_err(|LocksFull| self.busy("row locks"))?;
        if request.presence == Presence::Present && attempt.is_blocked() {
            // Whoever is in the way may be about to insert the row. Nobody waits for a row that is not there.
            let look = self.look_at(&basis, key, request).await?;
            if let Look::Row(row @ LockedRow { is_locked: false, row: RowFound::Absent, .. }) = look {
                acquisition.term = Some(basis.term);
                return Ok(Step::Done(Outcome::Row(row)));
            }
        }
        let (held, lock) = match attempt {
            Attempt::Held { before, lock } => (before, lock),
            #[cfg(feature = "planted-bugs")]
            Attempt::Queued(place) if self.planted_bug == Some(PlantedBug::LockHandedTwice) => {
                place.leave();
                (None, LockId::from_raw(1))
            }
            Attempt::Queued(place) => return Ok(Step::Queued(place)),
            Attempt::Frozen => return Err(handing_over(context.region).into()),
            Attempt::Refused(holders) if holders.is_empty() => return Err(stale(*context).into()),
            Attempt::Refused(holders) => return Ok(Step::Done(refused(request.waiting, holders, None))),
        };
        let undo = || locks.undo(basis.term, key, start_ts, held);
        let step = match self.look_at(&basis, key, request).await.inspect_err(|_| undo())? {
            Look::Row(row) => {
                #[cfg(feature = "planted-bugs")]
                let row = self.planted_row(row, request);
                if !row.is_locked {
                    undo();
                }
                let lock = if row.is_locked { lock } else { LockId::NONE };
                Step::Done(Outcome::Row(LockedRow { lock, ..row }))
            }
            // Registered under the latch, so that it is not missed.
            Look::Locked(record) if waits => {
                let gone = locks.record_gone(basis.term, key);
                Step::Record(record, held, gone)
            }
            Look::Locked(record) => {
                undo();
                Step::Done(refused(request.waiting, vec![record.start_ts], Some(record)))
            }
        };
        acquisition.term = Some(basis.term);
        Ok(step)
    }

    /// The row as the planted bug answers it.
    #[cfg(feature = "planted-bugs")]
    fn planted_row(&self, row: LockedRow, request: &AcquireRequest) -> LockedRow {
        let is_old = self.planted_bug == Some(PlantedBug::OldRowEvaluated) && request.seen_ts > Timestamp::ZERO;
        if is_old { LockedRow { row: RowFound::Unchanged, ..row } } else { row }
    }

    async fn look_at(&self, basis: &Basis, key: &Key, request: &Arc<AcquireRequest>) -> Result<Look, ServerError> {
        let (key, request) = (key.clone(), Arc::clone(request));
        match self.evaluate_newest(basis, true, move |reader| look(reader, &key, &request)).await? {
            Ok(look) => Ok(look),
            Err(error) if error.is_corruption() => Err(into_server_error(&self.store, error)),
            Err(error @ ActionError::Key(_)) => {
                let region = basis.region.id;
                self.confirm_term(RegionContext { region, epoch: basis.region.epoch }, basis.term).await?;
                Err(error.into())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// At most `limit` row locks of the regions that this store leads, with who waits for them, and the number of all.
    /// Rows that somebody waits for come first. The store may have others in memory, which it has handed over.
    pub fn row_locks(&self, limit: usize) -> (Vec<RowLockStatus>, usize) {
        let regions = self.store.regions();
        let led = regions.iter().filter(|status| status.is_leader).map(|status| (status.region.id, status.term));
        self.locks.list(led, limit, now())
    }

    /// Gives up the row locks of a transaction on keys of a region, or what is stronger than `keep`. A store that does
    /// not lead it has none that count.
    ///
    /// # Errors
    ///
    /// [`ServerError::Region`]: this store does not lead the region, or is about to hand over.
    fn release(
        &self,
        context: RegionContext,
        keys: &[Key],
        start_ts: Timestamp,
        keep: Option<LockMode>,
    ) -> Result<Response, ServerError> {
        let basis = self.store.basis(context)?;
        let locks = self.locks.known_region(context.region);
        match locks.is_none_or(|locks| locks.release(basis.term, start_ts, keys, keep)) {
            true => Ok(Response::Done),
            false => Err(handing_over(context.region).into()),
        }
    }

    /// Takes the report of a wait; see [`Response::Waits`]. Each term of the region has a detector of its own.
    ///
    /// # Errors
    ///
    /// [`ServerError::Region`]: this store does not lead the region.
    fn detect(&self, context: RegionContext, report: &WaitReport) -> Result<Response, ServerError> {
        let basis = self.store.basis(context)?;
        #[cfg(feature = "planted-bugs")]
        if self.planted_bug == Some(PlantedBug::DetectorDropsEdge) && report.waiter.raw().is_multiple_of(2) {
            return Ok(Response::Waits { cycle: Vec::new(), clock: crate::api::DetectorClock::default() });
        }
        let mut state = self.detector.lock();
        let (region, term, detector) = &mut *state;
        if (*region, *term) != (context.region, basis.term) {
            (*region, *term, *detector) = (context.region, basis.term, Detector::new(basis.term));
        }
        let (cycle, clock) = detector.report(report.clone(), now());
        Ok(Response::Waits { cycle, clock })
    }

    /// Keeps the row locks of transactions that live.
    ///
    /// # Errors
    ///
    /// [`ServerError::Region`]: this store does not lead the region.
    fn refresh(&self, context: RegionContext, live: &[LockRef]) -> Result<Response, ServerError> {
        let basis = self.store.basis(context)?;
        if let Some(locks) = self.locks.known_region(context.region) {
            locks.refresh(basis.term, live.iter().map(|lock| lock.start_ts), now());
        }
        Ok(Response::Done)
    }
}

/// The outcome for a row that another transaction has locked, if the request does not wait.
fn refused(waiting: Waiting, holders: Vec<Timestamp>, record: Option<LockInfo>) -> Outcome {
    match waiting {
        Waiting::Skip => Outcome::Row({
            let (lock, commit_ts) = (LockId::NONE, Timestamp::ZERO);
            LockedRow { is_locked: false, lock, commit_ts, row: RowFound::Skipped }
        }),
        Waiting::Queue { .. } | Waiting::Fail => Outcome::Blocked(Blocked { holders, record }),
    }
}

/// Whoever leads next has the locks.
fn handing_over(region: RegionId) -> RegionError {
    RegionError::NotReady { region, why: "its row locks are being handed over".to_owned() }
}

fn stale(context: RegionContext) -> RegionError {
    RegionError::StaleCommand { region: context.region }
}

/// Waits for `work` up to `until`. `None`: it is too late.
async fn in_time<T>(until: Option<Instant>, work: impl Future<Output = T>) -> Option<T> {
    match until {
        Some(until) => tokio::time::timeout_at(until.into(), work).await.ok(),
        None => Some(work.await),
    }
}

#[cfg(test)]
mod tests;

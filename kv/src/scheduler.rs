//! The write path on one region: latches, evaluation, replication, response.
//!
//! 1. Acquire the latches of the keys. Until they are released no other request is evaluated on these keys.
//! 2. Take the basis: the region's descriptor and its leader's term, whose first entry is applied.
//! 3. For a one-phase or async commit: publish locks in memory, then compute the least commit_ts (`concurrency`). If
//!    the region is not synced or the commit_ts is out of the request's bounds, it becomes a prewrite of two phases.
//! 4. Evaluate the action (`percolator`) on the newest state, as far as it is in memory, in the caller's task. If it
//!    needs a file, or has many keys, evaluate it on a snapshot in the read pool: a cold read holds up no other task.
//!    The latches keep the records of the keys from changing in that term, however long it takes.
//! 5. Replicate the batch, under the term and the epoch of the basis.
//! 6. Once the batch is applied, release the locks in memory and then the latches, on the thread that applied it;
//!    respond.
//!
//! A batch proves its own validity: the store refuses it unless the term and the epoch still hold. A response without a
//! batch (a repeated request, an error, a status) has no such proof, so leadership is confirmed after the evaluation.
//! Within one confirmed term, every write to our keys went through our latches.
//!
//! A commit that comes very late ([`COMMIT_LATE_MAX`](crate::concurrency::COMMIT_LATE_MAX)) is refused: the bound of
//! its commit_ts stood for a lease, and what was held under the lease may be gone.
//!
//! A proposal whose outcome is unknown may take effect after its latches are released. So its region is *fenced* at its
//! term: no write is evaluated there until a later term. The first entry of a later term comes after the proposal, or
//! the proposal is lost. A proposal that is lost with its store's threads has an unknown outcome too. Its locks in
//! memory stay as long as its fence.
//!
//! # The safe point
//!
//! A prewrite of a transaction that began at or below the safe point is refused (`percolator::Age`). The leader looks
//! after the evaluation, for a clear error. What counts is the look of apply, by the date that the proposal carries: a
//! write that was evaluated before the safe point rose, here or by an earlier leader, has no effect after it.
//!
//! # Row locks
//!
//! A transaction may lock rows in the leader's memory before it writes them (`acquire.rs`). A prewrite of a row that
//! another transaction has locked is refused. Once a write that ends a transaction on a key is applied, the row is
//! handed to whoever waits for it.
//!
//! Who has locked rows to share them confirms that with its prewrite (`percolator::shared`), for which others commit no
//! change below its commit_ts: `max_ts` is raised for that, before a one-phase commit computes its own, and before the
//! shared locks of others go.

use std::collections::HashMap;
use std::sync::Arc;

use engine::WriteBatch;
use engine::store::Reader;
use parking_lot::Mutex;
use raftstore::ports::LeaderMemory;
use raftstore::{Basis, Floor, Floors, LogIndex, Observer, ProposeError, RegionContext, RegionError, RegionId, Term};
use tso::Timestamp;

use crate::api::{
    CommitBounds, CommitMode, KeyError, LockMode, LocksStatus, Mutation, MutationOp, PrewriteRequest, Request,
    RequestBody, Response, ServerError, TxnStatus,
};
use crate::concurrency::{ConcurrencyManager, Leadership, LockOwner, MemoryLocks};
use crate::error::ActionError;
use crate::key::Key;
use crate::latch::{LatchGuard, LatchTable};
use crate::locks::{Detector, RegionLocks, RowLocks, RowLocksConfig, now};
use crate::metrics::LockWaits;
use crate::mvcc::shared::removes_shared;
use crate::percolator::{self, Age, Effects, PrewriteAction};
#[cfg(feature = "planted-bugs")]
use crate::planted::PlantedBug;
use crate::read_pool::{PoolError, ReadPool};
use crate::region_store::{RegionStore, RegionView, into_server_error};

/// A write of more keys than this is evaluated in the read pool, others in the caller's task.
const INLINE_KEYS: usize = 256;

/// Executes writes. Clones share latches and fences.
#[derive(Clone)]
pub struct Scheduler<H> {
    pub(crate) store: H,
    pub(crate) latches: LatchTable,
    pub(crate) concurrency: ConcurrencyManager,
    pub(crate) pool: ReadPool,
    pub(crate) fences: Fences,
    pub(crate) locks: RowLocks,
    /// Where waits for row locks are counted, if they are.
    pub(crate) lock_waits: Option<LockWaits>,
    /// The detector of deadlocks, with the region whose leader it is of, and the term.
    pub(crate) detector: Arc<Mutex<(RegionId, Term, Detector)>>,
    #[cfg(feature = "planted-bugs")]
    pub(crate) planted_bug: Option<PlantedBug>,
}

impl<H: RegionStore> Scheduler<H> {
    /// A scheduler over `store`, whose reads share `concurrency`. At most `latch_capacity` writes hold latches or wait
    /// for them. `pool` evaluates large writes.
    pub fn new(store: H, concurrency: ConcurrencyManager, latch_capacity: usize, pool: ReadPool) -> Scheduler<H> {
        Scheduler {
            store,
            latches: LatchTable::new(latch_capacity),
            concurrency,
            pool,
            fences: Fences::default(),
            locks: RowLocks::new(RowLocksConfig::default()),
            lock_waits: None,
            detector: Arc::new(Mutex::new((RegionId::new(0), Term::new(0), Detector::new(Term::new(0))))),
            #[cfg(feature = "planted-bugs")]
            planted_bug: None,
        }
    }

    /// What a leader hands over with its leadership.
    pub(crate) fn leader_memory(&self) -> Arc<dyn LeaderMemory> {
        Arc::new(self.locks.clone())
    }

    /// The scheduler with these settings of row locks.
    pub fn with_row_locks(mut self, config: RowLocksConfig) -> Scheduler<H> {
        self.locks = RowLocks::new(config);
        self
    }

    /// The scheduler, which counts waits for row locks there.
    pub(crate) fn with_lock_waits(mut self, waits: LockWaits) -> Scheduler<H> {
        self.lock_waits = Some(waits);
        self
    }

    /// The scheduler with this deliberate bug.
    #[cfg(feature = "planted-bugs")]
    pub fn with_planted_bug(mut self, bug: Option<PlantedBug>) -> Scheduler<H> {
        self.planted_bug = bug;
        self.fences.is_missing = bug == Some(PlantedBug::MissingFence);
        self.locks.planted_bug = bug;
        self
    }

    /// The number of writes that hold latches or wait for them.
    #[cfg(test)]
    fn latched_writes(&self) -> usize {
        self.latches.len()
    }

    /// Executes a write, or a request about row locks ([`Scheduler::run_lock_request`]). `permit` is dropped once the
    /// outcome of the write is known. Must be polled within a tokio runtime.
    ///
    /// # Errors
    ///
    /// - [`ServerError::Region`]: this store cannot serve the region now. `ServerBusy`: too many writes hold latches,
    ///   or the read pool is full. `NotReady`: the region is fenced. The write had no effect.
    /// - [`ServerError::Key`], [`ServerError::Invalid`]: the evaluation refused the write. It had no effect.
    /// - [`ServerError::TooLarge`]: the batch exceeds the largest proposal. It had no effect.
    /// - [`ServerError::Undetermined`]: the write was proposed and its outcome is unknown.
    /// - [`ServerError::Failed`]: the store failed before the proposal. The write had no effect.
    ///
    /// # Cancel safety
    ///
    /// The future may be dropped at any time. Before the proposal, nothing takes effect and the latches are released. A
    /// proposal under way continues and keeps latches and `permit` until it is applied or lost. Nor need the future be
    /// polled for them to be released then: its task may be busy.
    pub async fn run<T: Send + 'static>(&self, request: Request, permit: T) -> Result<Response, ServerError> {
        match request.body {
            RequestBody::RaiseSafePoint { writes, reads, .. } => {
                self.raise_safe_point(request.context, (writes, reads)).await
            }
            _ if request.body.is_of_locks() => self.run_lock_request(request, permit).await,
            _ => self.write(request, permit).await,
        }
    }

    async fn write<T: Send + 'static>(&self, mut request: Request, permit: T) -> Result<Response, ServerError> {
        self.take_least(&mut request).await?;
        let (context, read_ts) = (request.context, read_ts(&request.body));
        if let Some(read_ts) = read_ts {
            self.concurrency.check_issued(context.region, read_ts).await?;
        }
        let Ok(latches) = self.latches.acquire(&request.body.keys()).await else { return Err(self.busy("latches")) };
        let basis = self.store.basis(context)?;
        self.fences.check(context.region, basis.term)?;
        request.body.check_range(&basis.region)?;
        let rows = self.locks.known_region(context.region).filter(|rows| rows.is_in_use());
        if let Some(rows) = &rows {
            self.meet_rows(rows, &basis, &mut request).await?;
        }
        let ending = rows.and_then(|rows| Ending::of(rows, &request.body));
        if let Some(read_ts) = read_ts {
            // What is prewritten after our latches are released commits above it.
            self.concurrency.raise_max_ts(&self.concurrency.region(context.region), read_ts);
        }
        let locks = match &request.body {
            RequestBody::Prewrite(prewrite) => self.publish(context, basis.term, prewrite).await,
            _ => None,
        };
        let age = Age::of(&request.body);
        let commit_ts = if let RequestBody::Commit { commit_ts, .. } = request.body { Some(commit_ts) } else { None };
        let resolved_at =
            if let RequestBody::ResolveLock { commit_ts, .. } = request.body { commit_ts } else { commit_ts };
        let evaluated = self.evaluate(&basis, request.body, locks.as_ref().map(MemoryLocks::min_commit_ts)).await?;
        match self.judge(context.region, age, evaluated) {
            Ok((batch, response)) if !batch.is_empty() => {
                if let Some(commit_ts) = commit_ts.filter(|commit_ts| self.concurrency.is_long_past(*commit_ts)) {
                    let min_commit_ts = self.concurrency.newest();
                    return Err(KeyError::CommitTsTooEarly { commit_ts, min_commit_ts }.into());
                }
                if let Some(commit_ts) = resolved_at.filter(|_| removes_shared(&batch)) {
                    self.outlast(context.region, commit_ts).await?;
                }
                #[cfg(feature = "planted-bugs")]
                let latches = self.planted_release(latches).await;
                #[cfg(feature = "planted-bugs")]
                let locks = locks.filter(|_| self.planted_bug != Some(PlantedBug::EarlyMemoryRelease));
                let ending = ending.filter(|ending| ending.is_meant(&response));
                let held = HeldProposal::new(&self.fences, &basis, (locks, ending), (latches, permit));
                let proposal = self.propose(&basis, (batch, age), held);
                #[cfg(feature = "planted-bugs")]
                if self.planted_bug.is_some_and(|bug| bug.answers_early(&response)) {
                    // It leaves with the first poll.
                    drop(futures::poll!(Box::pin(proposal)));
                    return Ok(response);
                }
                proposal.await.map(|()| response)
            }
            Ok((_, response)) => {
                self.confirm_term(context, basis.term).await?;
                Ok(response)
            }
            Err(error) if error.is_corruption() => Err(into_server_error(&self.store, error)),
            Err(error) => {
                self.confirm_term(context, basis.term).await?;
                Err(error.into())
            }
        }
    }

    /// Has a write meet the rows that are locked in memory.
    ///
    /// # Errors
    ///
    /// [`KeyError::Held`] of a prewrite of a row that another transaction has locked.
    async fn meet_rows(&self, rows: &RegionLocks, basis: &Basis, request: &mut Request) -> Result<(), ServerError> {
        rows.begin(basis.term);
        let RequestBody::Prewrite(prewrite) = &mut request.body else { return Ok(()) };
        if let Some(held) = held_row(rows, basis.term, prewrite) {
            self.confirm_term(request.context, basis.term).await?;
            return Err(held.into());
        }
        confirm_locks(rows, basis.term, prewrite);
        if let PrewriteRequest { start_ts, locker: Some(locker), .. } = prewrite {
            rows.rename(basis.term, *locker, *start_ts);
        }
        Ok(())
    }

    /// Sees to it that what commits to rows whose shared locks go now does not commit below `commit_ts`, that of their
    /// holder. It may have been computed, and then the oracle has issued the timestamp before it, but not itself.
    async fn outlast(&self, region: RegionId, commit_ts: Timestamp) -> Result<(), ServerError> {
        let issued = commit_ts.prev();
        self.concurrency.check_issued(region, issued).await?;
        self.concurrency.raise_max_ts(&self.concurrency.region(region), issued);
        Ok(())
    }

    /// Takes the least commit_ts of a prewrite that leaves it to the store: above every commit that was acknowledged
    /// before the request was sent. Without one, the coordinator takes the commit_ts, after the locks.
    async fn take_least(&self, request: &mut Request) -> Result<(), RegionError> {
        let RequestBody::Prewrite(prewrite) = &mut request.body else { return Ok(()) };
        let Some(least) = prewrite.commit.unset_least() else { return Ok(()) };
        #[cfg(feature = "planted-bugs")]
        if self.planted_bug == Some(PlantedBug::LeastNotTaken) {
            return Ok(());
        }
        match self.concurrency.take_timestamp(&self.store, request.context).await? {
            Some(taken) => *least = taken,
            None => prewrite.commit = CommitMode::TwoPhase,
        }
        Ok(())
    }

    /// Publishes locks in memory for a prewrite that may compute its commit_ts. `None` if it must lock for two phases.
    async fn publish(&self, context: RegionContext, term: Term, request: &PrewriteRequest) -> Option<MemoryLocks> {
        let CommitBounds { least, greatest } = match &request.commit {
            CommitMode::TwoPhase => return None,
            CommitMode::OnePhase(bounds) | CommitMode::Async { bounds, .. } => *bounds,
        };
        let leadership = Leadership { term, version: context.epoch.version };
        let entry = self.concurrency.region(context.region);
        if !self.concurrency.is_synced(&entry, leadership) {
            return None;
        }
        // Only these change what a read sees.
        let changed = request.mutations.iter().filter(|m| m.op.is_exclusive() && m.op != MutationOp::Lock);
        let keys: Vec<Key> = changed.map(|mutation| mutation.key.clone()).collect();
        let PrewriteRequest { primary, start_ts, ttl_ms, .. } = request;
        let owner = LockOwner { primary: primary.clone(), start_ts: *start_ts, ttl_ms: *ttl_ms };
        let least = least.max(start_ts.next());
        #[cfg(feature = "planted-bugs")]
        if self.planted_bug == Some(PlantedBug::MaxTsBeforeLocks) {
            let early = entry.min_commit_ts_now().max(least);
            self.store.preempted().await;
            let mut locks = entry.publish(term, keys, owner, least);
            locks.lower_min_commit_ts(early);
            return Some(locks);
        }
        let locks = entry.publish(term, keys, owner, least);
        #[cfg(feature = "planted-bugs")]
        if self.planted_bug == Some(PlantedBug::LateCount) {
            locks.set_counted(false);
            self.store.preempted().await;
            locks.set_counted(true);
        }
        let is_within = locks.min_commit_ts() <= greatest.min(Timestamp::MAX.prev());
        (is_within && !self.concurrency.is_long_past(greatest)).then_some(locks)
    }

    /// Evaluates the action. `computed` is the least commit_ts of a prewrite that may compute it. The outer error is
    /// the server's, the inner one the result of the evaluation.
    async fn evaluate(
        &self,
        basis: &Basis,
        body: RequestBody,
        computed: Option<Timestamp>,
    ) -> Result<Result<Effects<Response>, ActionError>, ServerError> {
        #[cfg(feature = "planted-bugs")]
        let body = self.planted_body(body);
        let is_small = body.keys().len() <= INLINE_KEYS;
        let evaluate = move |reader: &dyn Reader| percolator::evaluate(reader, &body, action(&body, computed));
        self.evaluate_newest(basis, is_small, evaluate).await
    }

    /// Evaluates `work` on the newest state: if it is small and finds all it needs in memory in the caller's task,
    /// otherwise on a snapshot in the read pool. The outer error is the server's.
    pub(crate) async fn evaluate_newest<T: Send + 'static>(
        &self,
        basis: &Basis,
        is_small: bool,
        work: impl Fn(&dyn Reader) -> Result<T, ActionError> + Send + 'static,
    ) -> Result<Result<T, ActionError>, ServerError> {
        if is_small {
            match self.store.evaluate_cached(basis, &work)? {
                Err(error) if error.is_not_cached() => (),
                evaluated => return Ok(evaluated),
            }
        }
        let view = self.store.evaluate_on(basis)?;
        match self.pool.run_point(move || work(&view)).await {
            Ok(evaluated) => Ok(evaluated),
            Err(PoolError::Shed) => Err(self.busy("read pool")),
            Err(PoolError::Lost) => Err(ServerError::Failed(PoolError::Lost.to_string())),
        }
    }

    /// Replicates a batch and waits for its outcome. `held` is released when the outcome is known, by whoever knows it:
    /// the caller may be busy with something else, and others wait for what it holds.
    async fn propose<T: Send + 'static>(
        &self,
        basis: &Basis,
        (batch, age): (WriteBatch, Age),
        held: HeldProposal<T>,
    ) -> Result<(), ServerError> {
        let date = age.date().map(|date| Floor::new(date.raw()));
        #[cfg(feature = "planted-bugs")]
        let date = date.filter(|_| self.planted_bug != Some(PlantedBug::OldWritesAccepted));
        outcome(basis.region.id, self.store.propose(basis, batch, date, Box::new(held)).await)
    }

    /// The result of an evaluation as it stands under the floors of the region.
    fn judge(
        &self,
        region: RegionId,
        age: Age,
        evaluated: Result<Effects<Response>, ActionError>,
    ) -> Result<Effects<Response>, ActionError> {
        #[cfg(feature = "planted-bugs")]
        if self.planted_bug == Some(PlantedBug::OldWritesAccepted) {
            return evaluated;
        }
        age.judge(self.store.floors(region), evaluated)
    }

    /// Raises the safe point of a region that this store leads. `to`: of writes, of reads.
    async fn raise_safe_point(
        &self,
        context: RegionContext,
        (writes, reads): (Timestamp, Timestamp),
    ) -> Result<Response, ServerError> {
        let (raised, present) = (floors_of(writes, reads), self.store.floors(context.region));
        if reads > writes {
            return Err(ServerError::Invalid("reads fail above where writes are refused".to_owned()));
        }
        self.concurrency.check_issued(context.region, writes).await?;
        let basis = self.store.basis(context)?;
        if present.raised_to(raised) == present {
            self.confirm_term(context, basis.term).await?;
            return Ok(Response::Done);
        }
        outcome(basis.region.id, self.store.raise_floors(&basis, raised).await)?;
        Ok(Response::Done)
    }

    /// Confirms that this store still leads the region in `term`, at some moment after the call.
    pub(crate) async fn confirm_term(&self, context: RegionContext, term: Term) -> Result<(), RegionError> {
        let view = match self.store.try_read(context)? {
            Some(view) => view,
            None => self.store.read(context).await?,
        };
        if view.term() == term { Ok(()) } else { Err(RegionError::StaleCommand { region: context.region }) }
    }

    /// Exchanges the latches for none if the planted bug says so.
    #[cfg(feature = "planted-bugs")]
    async fn planted_release(&self, latches: LatchGuard) -> LatchGuard {
        if self.planted_bug != Some(PlantedBug::EarlyLatchRelease) {
            return latches;
        }
        self.latches.acquire(&[]).await.unwrap_or(latches)
    }

    /// The request as the planted bug changes it.
    #[cfg(feature = "planted-bugs")]
    fn planted_body(&self, mut body: RequestBody) -> RequestBody {
        self.planted_bug.into_iter().for_each(|bug| bug.spoil_request(&mut body));
        body
    }

    pub(crate) fn busy(&self, what: &str) -> ServerError {
        RegionError::ServerBusy { store: self.store.store_id(), what: what.to_owned() }.into()
    }
}

/// The outcome of a proposal, for the client.
fn outcome(region: RegionId, proposed: Result<LogIndex, ProposeError>) -> Result<(), ServerError> {
    match proposed {
        Ok(_) => Ok(()),
        Err(ProposeError::Region(error)) => Err(error.into()),
        Err(ProposeError::TooLarge { bytes, limit }) => Err(ServerError::TooLarge { bytes, limit }),
        Err(ProposeError::Undetermined { .. }) => Err(ServerError::Undetermined(region)),
        Err(ProposeError::Poisoned(why)) => {
            // Other replicas may hold the entry and can still commit it.
            tracing::error!(%region, why, "a proposal met a poisoned store");
            Err(ServerError::Undetermined(region))
        }
    }
}

fn floors_of(writes: Timestamp, reads: Timestamp) -> Floors {
    Floors { writes: Floor::new(writes.raw()), reads: Floor::new(reads.raw()) }
}

/// The row of a prewrite that another transaction has locked in memory.
fn held_row(rows: &RegionLocks, term: Term, request: &PrewriteRequest) -> Option<KeyError> {
    let (now, locker) = (now(), request.locker.unwrap_or(request.start_ts));
    request.mutations.iter().filter(|mutation| mutation.op != MutationOp::CheckNotExists).find_map(|mutation| {
        let mode = if let MutationOp::Shared(mode) = mutation.op { mode } else { LockMode::Update };
        let key = &mutation.key;
        let holder = rows.blockers(term, key, (locker, mode), now).first().copied()?;
        Some(KeyError::Held { key: key.clone(), holder })
    })
}

/// Strikes out the row locks that the transaction relies on and has. What is left is lost, and refused where it is not
/// prewritten yet. Under the latches: until the outcome is known, nobody gets what it has.
fn confirm_locks(rows: &RegionLocks, term: Term, request: &mut PrewriteRequest) {
    let (now, locker) = (now(), request.locker.unwrap_or(request.start_ts));
    for Mutation { key, lock, .. } in request.mutations.iter_mut() {
        *lock = lock.filter(|lock| !rows.holds(term, key, (locker, *lock), now));
    }
}

/// A write that ends a transaction on keys whose rows may be locked in memory.
struct Ending {
    rows: Arc<RegionLocks>,
    keys: Vec<Key>,
    start_ts: Timestamp,
    /// Whether only some answers mean that the transaction has ended.
    is_open: bool,
}

impl Ending {
    fn of(rows: Arc<RegionLocks>, body: &RequestBody) -> Option<Ending> {
        let (start_ts, is_open) = match body {
            RequestBody::Commit { start_ts, .. }
            | RequestBody::Rollback { start_ts, .. }
            | RequestBody::ResolveLock { start_ts, .. } => (*start_ts, false),
            RequestBody::Prewrite(request) => (request.start_ts, true),
            RequestBody::CheckTxnStatus(request) => (request.lock_ts, true),
            RequestBody::CheckLocks(request) => (request.lock_ts, true),
            _ => return None,
        };
        Some(Ending { rows, keys: body.keys().into_iter().cloned().collect(), start_ts, is_open })
    }

    /// Whether the answer says that the transaction has ended on the keys.
    fn is_meant(&self, response: &Response) -> bool {
        let ends = matches!(
            response,
            Response::Committed { .. }
                | Response::Status(TxnStatus::RolledBack)
                | Response::Locks(LocksStatus::RolledBack)
        );
        !self.is_open || ends
    }
}

/// The timestamp at which a request reads the rows that later ones may write: the start_ts of the read for which it
/// asks about a transaction, or the least commit_ts of one that relies on rows and is perhaps committed at once.
fn read_ts(body: &RequestBody) -> Option<Timestamp> {
    let read_ts = match body {
        RequestBody::CheckTxnStatus(request) => request.reader_ts,
        RequestBody::CheckLocks(request) => request.reader_ts,
        RequestBody::Prewrite(PrewriteRequest {
            mutations, start_ts, commit: CommitMode::OnePhase(bounds), ..
        }) if mutations.iter().any(|mutation| matches!(mutation.op, MutationOp::Shared(_))) => {
            bounds.least.max(*start_ts)
        }
        _ => return None,
    };
    (read_ts > Timestamp::ZERO).then_some(read_ts)
}

/// What a prewrite does with free keys. `computed` is the least commit_ts, `None` if it must lock for two phases.
fn action(body: &RequestBody, computed: Option<Timestamp>) -> PrewriteAction<'_> {
    let (RequestBody::Prewrite(request), Some(min_commit_ts)) = (body, computed) else { return PrewriteAction::Lock };
    match &request.commit {
        CommitMode::TwoPhase => PrewriteAction::Lock,
        CommitMode::OnePhase(_) => PrewriteAction::Commit(min_commit_ts),
        CommitMode::Async { secondaries, .. } => PrewriteAction::AsyncLock { min_commit_ts, secondaries },
    }
}

/// Holds the locks in memory and the latches of a proposal. If it is dropped before the outcome is known, for whatever
/// reason, it fences the region and keeps the locks before it releases the latches.
struct HeldProposal<T> {
    fences: Fences,
    region: RegionId,
    term: Term,
    /// Whether the proposal is applied, or certainly never will be.
    is_settled: bool,
    /// Released before the latches, so that no other write of the keys is published meanwhile.
    locks: Option<MemoryLocks>,
    /// What it means for the rows that are locked in memory.
    ending: Option<Ending>,
    /// The latches, and what else ends with the proposal. Dropped after `drop`.
    _guards: (LatchGuard, T),
}

impl<T> HeldProposal<T> {
    fn new(
        fences: &Fences,
        basis: &Basis,
        (locks, ending): (Option<MemoryLocks>, Option<Ending>),
        guards: (LatchGuard, T),
    ) -> HeldProposal<T> {
        let (fences, region, term) = (fences.clone(), basis.region.id, basis.term);
        HeldProposal { fences, region, term, is_settled: false, locks, ending, _guards: guards }
    }
}

impl<T: Send> Observer<Result<LogIndex, ProposeError>> for HeldProposal<T> {
    fn appended(&self, index: LogIndex) {
        if let Some(Ending { rows, keys, start_ts, .. }) = &self.ending {
            rows.ending(keys, *start_ts);
        }
        if let Some(locks) = &self.locks {
            locks.appended(index);
        }
    }

    /// Releases everything, because the outcome is known, or fences the region.
    fn answered(mut self: Box<Self>, outcome: &Result<LogIndex, ProposeError>) {
        self.is_settled = !matches!(outcome, Err(ProposeError::Undetermined { .. } | ProposeError::Poisoned(_)));
        if let (Ok(_), Some(Ending { rows, keys, start_ts, .. })) = (outcome, &self.ending) {
            rows.written(keys, *start_ts);
        }
    }
}

impl<T> Drop for HeldProposal<T> {
    fn drop(&mut self) {
        if let Some(Ending { rows, keys, .. }) = &self.ending {
            rows.ended(keys);
        }
        if !self.is_settled {
            self.fences.raise(self.region, self.term);
            if let Some(locks) = self.locks.take() {
                locks.keep_doubtful();
            }
        }
    }
}

/// For each region, the newest term in which a proposal has an unknown outcome.
///
/// Invariant: while a proposal of a term may still take effect without its latches, its region is fenced at that term
/// or a later one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fences {
    terms: Arc<Mutex<HashMap<RegionId, Term>>>,
    /// A planted bug: no write is refused.
    #[cfg(feature = "planted-bugs")]
    is_missing: bool,
}

impl Fences {
    /// Fences the region at `term`, unless it is fenced at a later one.
    fn raise(&self, region: RegionId, term: Term) {
        let mut terms = self.terms.lock();
        let fence = terms.entry(region).or_insert(term);
        *fence = (*fence).max(term);
    }

    /// Refuses a snapshot of a fenced term, because it may miss a proposal under way. A later term removes the fence.
    pub(crate) fn check(&self, region: RegionId, term: Term) -> Result<(), RegionError> {
        #[cfg(feature = "planted-bugs")]
        if self.is_missing {
            return Ok(());
        }
        let mut terms = self.terms.lock();
        match terms.get(&region) {
            Some(fence) if term <= *fence => {
                let why = format!("the outcome of a write in term {fence} is unknown");
                Err(RegionError::NotReady { region, why })
            }
            Some(_) => {
                terms.remove(&region);
                Ok(())
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;

//! The handle of a running store: the interface that `kv` and the node call.
//!
//! **Threads.** Every method may be called from any thread, inside or outside an async runtime. None blocks on the
//! disk, the network or the store's threads: the synchronous methods read shared state or push to a bounded mailbox.
//! The futures need no particular runtime; the store's threads complete them. A future does nothing before its first
//! poll.
//!
//! **Stopping.** A graceful stop first transfers the leaderships. Meanwhile the store serves as usual, so that a region
//! without a ready successor stays available. Then the store is *stopping*: it refuses new reads and evaluations and
//! finishes its proposals. It is *stopped* once its store loop has ended. It may be *poisoned* at any time; only a
//! restart recovers it. New calls then return:
//!
//! | call | stopping | stopped | poisoned |
//! |---|---|---|---|
//! | `try_read`, `read_newest`, `read` | `NotLeader` | `NotLeader` | `NotLeader` |
//! | `basis`, `evaluate`, `evaluate_cached`, `transfer_leader` | `NotLeader` | `NotLeader` | `NotLeader` |
//! | `propose` | the usual | `NotLeader` | `Poisoned` |
//! | `deliver` | the usual | `ServerBusy` | `Ok` or `ServerBusy`; the message is dropped |
//! | `deliver_all` | the usual | 0 | any number; the messages are dropped |
//! | `lease_holds` | false | false | false |
//!
//! `NotLeader` names the leader that this store knew last, unless that was itself. So the caller asks another store at
//! once, and does not wait for a store that will not serve again.
//!
//! All other methods work at any time. Calls that already wait:
//!
//! - Reads fail with `NotLeader`.
//! - Proposals go on while the store is stopping. When its loop ends, those whose entry is not appended fail with
//!   `NotLeader`, the others with `Undetermined`. Entries in apply's queue are still applied, and their proposals
//!   answered.
//! - On a poisoned store proposals fail with `Poisoned`, or with `Undetermined` after a panic of a thread.
//!
//! A call concurrent with these changes may also return `ServerBusy` or `NotReady`.

use std::ops::Deref;
use std::sync::Arc;

use engine::store::{Cursor, NewestReader, Reader, Snapshot, Store, StoreError};
use engine::{Cf, WriteBatch};
use tokio::sync::oneshot;

use crate::command;
use crate::config::StoreConfig;
use crate::delegate::{Delegate, Permit, Router};
use crate::error::{ProposeError, RegionError};
use crate::mailbox::{Mailbox, Refused};
use crate::messages::{Health, StoreMsg};
use crate::metrics::Metrics;
use crate::peer::proposal::{Proposal, ProposeReply};
use crate::ports::{LeaderMemory, MemorySlot, RaftMessage};
use crate::region::{Epoch, Floor, Floors, LogIndex, PeerMeta, Region, RegionId, StoreId, Term};
use crate::reply::{Observer, Reply};
use crate::time::Clock;

/// What hears of a proposal's progress; see [`StoreHandle::propose_observed`].
pub type ProposalObserver = Box<dyn Observer<Result<LogIndex, ProposeError>>>;

/// The region of a request, and the epoch that the sender knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionContext {
    /// The region.
    pub region: RegionId,
    /// Its epoch according to the sender. A request under another epoch is refused.
    pub epoch: Epoch,
}

/// The state of a replica on this store. The fields are read one after the other, so during a change of leadership they
/// may belong to different moments. On a stopped or poisoned store it is the last state known. Use it for routing and
/// display only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionStatus {
    /// The region's descriptor.
    pub region: Region,
    /// The leader, if this replica knows one.
    pub leader: Option<PeerMeta>,
    /// The replica's term.
    pub term: Term,
    /// Last index applied here.
    pub applied: LogIndex,
    /// Whether this replica leads the region. It may no longer be true when the caller looks; it proves nothing about
    /// reads.
    pub is_leader: bool,
}

/// A handle to a store. Clones share the store and are cheap.
#[derive(Clone)]
pub struct StoreHandle<S: Store> {
    pub(crate) context: Arc<StoreContext<S>>,
}

/// State of the store that its handles use.
pub(crate) struct StoreContext<S: Store> {
    pub(crate) id: StoreId,
    pub(crate) config: Arc<StoreConfig>,
    pub(crate) store: S,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) router: Arc<Router>,
    pub(crate) mailbox: Arc<Mailbox<StoreMsg>>,
    pub(crate) health: Arc<Health>,
    pub(crate) metrics: Metrics,
    pub(crate) memory: MemorySlot,
}

/// What a write is evaluated on. It is proposed under this term and epoch, and refused if either has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Basis {
    /// The region's descriptor.
    pub region: Arc<Region>,
    /// The term of the leader.
    pub term: Term,
}

impl From<Permit> for Basis {
    fn from(permit: Permit) -> Basis {
        Basis { region: permit.region, term: permit.term }
    }
}

/// A frozen view of one region, valid for the read or evaluation that it was requested for.
///
/// A [`Reader`] whose reads block on the key-value store's files only. Reads outside the region's range or in the Meta
/// column family fail with `StoreError::Io` of kind `InvalidInput`. A snapshot may be used from any thread and after
/// the store has stopped. It keeps old data from being compacted away, so it should not be held for long.
#[derive(Clone)]
pub struct RegionSnapshot<S: Store> {
    pub(crate) snapshot: S::Snapshot,
    /// The region's descriptor and the leader's term when the snapshot was taken; from [`StoreHandle::read`] the term
    /// in which it had applied the read index, from a replica its own term.
    pub(crate) basis: Basis,
}

impl<S: Store> Deref for RegionSnapshot<S> {
    type Target = Basis;

    fn deref(&self) -> &Basis {
        &self.basis
    }
}

impl<S: Store> RegionSnapshot<S> {
    /// The same view, read from memory alone: reads that would have to read a file fail with `StoreError::NotCached`.
    pub fn cached(&self) -> RegionSnapshot<S> {
        RegionSnapshot { snapshot: self.snapshot.cached(), basis: self.basis.clone() }
    }

    fn reader(&self) -> InRegion<'_, S::Snapshot> {
        InRegion { reader: &self.snapshot, region: &self.region }
    }
}

impl<S: Store> Reader for RegionSnapshot<S> {
    fn get(&self, cf: Cf, key: &[u8]) -> engine::store::Result<Option<Vec<u8>>> {
        self.reader().get(cf, key)
    }

    fn cursor(&self, cf: Cf, lower: &[u8], upper: &[u8]) -> engine::store::Result<Box<dyn Cursor>> {
        self.reader().cursor(cf, lower, upper)
    }

    fn limited_cursor(
        &self,
        cf: Cf,
        lower: &[u8],
        upper: &[u8],
        skips: usize,
    ) -> engine::store::Result<Box<dyn Cursor>> {
        self.reader().limited_cursor(cf, lower, upper, skips)
    }
}

/// Reads of one region. Those outside of it, and in the Meta column family, fail.
struct InRegion<'a, R> {
    reader: &'a R,
    region: &'a Region,
}

impl<R> InRegion<'_, R> {
    fn check(&self, cf: Cf, inside: bool) -> engine::store::Result<()> {
        if inside && cf != Cf::Meta {
            return Ok(());
        }
        let what = format!("read outside of region {}", self.region.id);
        Err(StoreError::Io(std::io::Error::new(std::io::ErrorKind::InvalidInput, what)))
    }
}

impl<R: Reader> Reader for InRegion<'_, R> {
    fn get(&self, cf: Cf, key: &[u8]) -> engine::store::Result<Option<Vec<u8>>> {
        self.check(cf, self.region.contains(key))?;
        self.reader.get(cf, key)
    }

    fn cursor(&self, cf: Cf, lower: &[u8], upper: &[u8]) -> engine::store::Result<Box<dyn Cursor>> {
        self.check(cf, self.region.contains_range(lower, upper))?;
        self.reader.cursor(cf, lower, upper)
    }

    fn limited_cursor(
        &self,
        cf: Cf,
        lower: &[u8],
        upper: &[u8],
        skips: usize,
    ) -> engine::store::Result<Box<dyn Cursor>> {
        self.check(cf, self.region.contains_range(lower, upper))?;
        self.reader.limited_cursor(cf, lower, upper, skips)
    }

    fn version_cursor(&self, lower: &[u8], upper: &[u8]) -> engine::store::Result<Box<dyn Cursor>> {
        self.check(Cf::Write, self.region.contains_range(lower, upper))?;
        self.reader.version_cursor(lower, upper)
    }
}

/// One part in this many of the mailbox is reserved for messages between stores.
const RAFT_RESERVE_DIVISOR: usize = 4;

/// Attempts to take a snapshot after a confirmed read index, if the replica changes meanwhile.
const SNAPSHOT_ATTEMPTS: usize = 3;

impl<S: Store> StoreHandle<S> {
    /// The id of this store.
    pub fn store_id(&self) -> StoreId {
        self.context.id
    }

    /// The regions with a replica on this store, in the order of their ranges.
    pub fn regions(&self) -> Vec<RegionStatus> {
        self.context.router.all().iter().map(|d| status(d)).collect()
    }

    /// The region on this store whose range contains `key`.
    pub fn locate(&self, key: &[u8]) -> Option<RegionStatus> {
        self.context.router.locate(key).map(|d| status(&d))
    }

    /// The region with this id, if this store holds a replica.
    pub fn region(&self, id: RegionId) -> Option<RegionStatus> {
        self.context.router.get(id).map(|d| status(&d))
    }

    /// The store that leads a region, if this store's replica knows one.
    pub fn leader(&self, region: RegionId) -> Option<StoreId> {
        self.context.router.get(region)?.leader().map(|leader| leader.store)
    }

    /// Takes a snapshot for a linearizable read under the leader's lease, without a message or a thread switch. Returns
    /// `Ok(None)` if the lease does not cover this moment or the leader has not applied an entry of its own term; then
    /// [`StoreHandle::read`] can still succeed.
    ///
    /// # Errors
    ///
    /// - `RegionNotFound`: this store holds no replica of the region.
    /// - `NotLeader`: this replica does not lead, or the store stops or is poisoned; names the leader if known.
    /// - `EpochNotMatch`: `ctx.epoch` is not the region's epoch; contains the current descriptor.
    /// - `NotReady`: the replica's role, term or descriptor is changing, or a snapshot is being installed.
    pub fn try_read(&self, ctx: RegionContext) -> Result<Option<RegionSnapshot<S>>, RegionError> {
        let delegate = self.delegate(ctx.region)?;
        let read = delegate.lease_read(ctx.epoch, &*self.context.clock, |_| self.context.store.snapshot())?;
        let Some((snapshot, permit)) = read else { return Ok(None) };
        self.context.metrics.lease_reads.inc();
        Ok(Some(RegionSnapshot { snapshot, basis: permit.into() }))
    }

    /// Reads the newest state of the region under the leader's lease, without a snapshot. Returns what `read` returned
    /// and the floor of reads after it, or `Ok(None)` if the lease did not cover the whole of it: its result proves
    /// nothing then. `read` keeps to the range of the region that it gets.
    ///
    /// Everything that `read` sees was applied on this replica, and everything that was acknowledged before the call is
    /// in what it sees. Its own calls may see different states, in the order of the calls.
    ///
    /// # Errors
    ///
    /// As [`StoreHandle::try_read`].
    pub fn read_newest<T>(
        &self,
        ctx: RegionContext,
        read: impl FnOnce(&dyn NewestReader, &Region) -> T,
    ) -> Result<Option<(T, Floor)>, RegionError> {
        let delegate = self.delegate(ctx.region)?;
        let done =
            delegate.lease_read(ctx.epoch, &*self.context.clock, |permit| read(&self.context.store, &permit.region))?;
        if done.is_some() {
            self.context.metrics.lease_reads.inc();
        }
        Ok(done.map(|(result, _)| (result, delegate.floors().reads())))
    }

    /// Whether this replica may serve a linearizable read under its lease at this moment: [`StoreHandle::try_read`]
    /// without its snapshot.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn has_lease(&self, ctx: RegionContext) -> Result<bool, RegionError> {
        let delegate = self.delegate(ctx.region)?;
        let covered = delegate.lease_read(ctx.epoch, &*self.context.clock, |_| ())?.is_some();
        if covered {
            self.context.metrics.lease_reads.inc();
        }
        Ok(covered)
    }

    /// Takes a snapshot for a linearizable read at the leader: under the lease if it covers, else after a read index
    /// round.
    ///
    /// The read index costs one heartbeat round to a quorum; concurrent reads share it. Then the future waits until
    /// this replica has applied the index. The store fails the request at the first tick after `read_timeout` (3 s by
    /// default).
    ///
    /// Cancel-safe: a dropped future has no effect. The store drops the answer when it comes; until then the request
    /// counts against `pending_reads`.
    ///
    /// # Errors
    ///
    /// Those of [`StoreHandle::try_read`], and:
    ///
    /// - `ServerBusy`: the mailbox or the region's queue of pending reads is full.
    /// - `NotLeader`: leadership ended, or the store stopped or was poisoned, while the read waited.
    /// - `NotReady`: the read index was not confirmed by a quorum and applied here within `read_timeout`, or the
    ///   replica kept changing.
    pub async fn read(&self, ctx: RegionContext) -> Result<RegionSnapshot<S>, RegionError> {
        if let Some(snapshot) = self.try_read(ctx)? {
            return Ok(snapshot);
        }
        let (reply, receiver) = Reply::new();
        self.push(ctx.region, StoreMsg::Read(ctx.region, ctx.epoch, reply))?;
        let lost = || RegionError::NotLeader { region: ctx.region, leader: None };
        let ready = receiver.await.map_err(|_| lost())??;
        self.context.metrics.index_reads.inc();
        let mut outcome = Err(lost());
        for _ in 0..SNAPSHOT_ATTEMPTS {
            let delegate = self.delegate(ctx.region)?;
            outcome = delegate.confirmed_read(ctx.epoch, || self.context.store.snapshot());
            match &outcome {
                Err(RegionError::NotReady { .. }) => {}
                _ => break,
            }
        }
        outcome.map(|(snapshot, region)| RegionSnapshot { snapshot, basis: Basis { region, term: ready.term } })
    }

    /// Takes a snapshot to evaluate a write on: it contains every write acknowledged by earlier leaders, because this
    /// leader has applied an entry of its own term. It needs no lease. Pass the snapshot to [`StoreHandle::propose`],
    /// which carries its term and epoch and is refused if either has changed.
    ///
    /// # Errors
    ///
    /// - `RegionNotFound`, `NotLeader`, `EpochNotMatch`: as for [`StoreHandle::try_read`].
    /// - `NotReady`: the leader has not applied an entry of its own term yet, or one of the causes listed there.
    /// - `StaleCommand`: term, role or descriptor changed, or the installation of a snapshot began or ended, during the
    ///   call.
    pub fn evaluate(&self, ctx: RegionContext) -> Result<RegionSnapshot<S>, RegionError> {
        let delegate = self.delegate(ctx.region)?;
        let (snapshot, permit) = delegate.evaluate(ctx.epoch, |_| self.context.store.snapshot())?;
        Ok(RegionSnapshot { snapshot, basis: permit.into() })
    }

    /// The basis of a write: [`StoreHandle::evaluate`] without its snapshot.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn basis(&self, ctx: RegionContext) -> Result<Basis, RegionError> {
        let (_, permit) = self.delegate(ctx.region)?.evaluate(ctx.epoch, |_| ())?;
        Ok(permit.into())
    }

    /// Evaluates a write on the newest state of the region, as far as it is in memory, without a snapshot. Its reads
    /// may see different states: the caller keeps what it reads from changing. Reads that would have to read a file
    /// fail with `StoreError::NotCached`. While `evaluate` ran, the replica led in the term of `basis` and changed
    /// neither its descriptor nor its data in other ways than by applying entries; otherwise its result is dropped.
    ///
    /// # Errors
    ///
    /// As [`StoreHandle::evaluate`], and `StaleCommand` if the term is not that of `basis`.
    pub fn evaluate_cached<T>(&self, basis: &Basis, evaluate: impl FnOnce(&dyn Reader) -> T) -> Result<T, RegionError> {
        let region = basis.region.id;
        let read = |region: &Region| evaluate(&InRegion { reader: &self.context.store.cached(), region });
        let (result, permit) = self.delegate(region)?.evaluate(basis.region.epoch, read)?;
        if permit.term == basis.term { Ok(result) } else { Err(RegionError::StaleCommand { region }) }
    }

    /// Replicates `batch` and waits until this replica has applied it. Returns the index of its log entry.
    ///
    /// `basis` is that of the evaluation: the snapshot of [`StoreHandle::evaluate`], or from [`StoreHandle::basis`].
    /// All keys of the batch lie in the region, and it takes at most `max_proposal_bytes` (8 MiB by default).
    ///
    /// There is no timeout while this replica leads. If leadership ends first, the outcome is reported as undetermined
    /// at the first tick after `read_timeout` (3 s by default), unless it becomes known before.
    ///
    /// Not cancel-safe: once polled, a dropped future neither withdraws the proposal nor reveals its outcome, and the
    /// batch may still be applied.
    ///
    /// # Errors
    ///
    /// The write had no effect:
    ///
    /// - `TooLarge`: the batch exceeds `max_proposal_bytes`; a retry fails the same way.
    /// - `Region(KeyNotInRegion)`: a key lies outside the region, or the batch writes to the Meta column family.
    /// - `Region(ServerBusy)`: a queue (mailbox, pending proposals, uncommitted entries, log, apply) is full, or the
    ///   log's disk is.
    /// - `Region(RegionNotFound)`, `Region(NotLeader)`: the replica is not here or does not lead, or the store stopped
    ///   before it appended the entry.
    /// - `Region(StaleCommand)`: the term changed since the evaluation, or another entry was committed in this one's
    ///   place.
    /// - `Region(EpochNotMatch)`: the epoch changed since the evaluation.
    /// - `Region(NotReady)`: leadership is being transferred.
    ///
    /// The write may or may not take effect:
    ///
    /// - `Undetermined`: leadership ended, a snapshot replaced the log, or the store stopped or its thread panicked
    ///   before the outcome was known.
    /// - `Poisoned`: the store is poisoned (see [`StoreHandle::poisoned`]). If it was poisoned before the first poll,
    ///   the write had no effect, but the error does not tell.
    pub async fn propose(&self, basis: &Basis, batch: WriteBatch) -> Result<LogIndex, ProposeError> {
        self.submit(basis, (&batch, None), Reply::new()).await
    }

    /// Raises the floors of the region of `basis` and waits until they are raised on this replica. Lower floors have no
    /// effect.
    ///
    /// # Errors
    ///
    /// As [`StoreHandle::propose`]. It may be repeated.
    ///
    /// # Panics
    ///
    /// If the floor of reads is above that of writes.
    pub async fn raise_floors(&self, basis: &Basis, floors: Floors) -> Result<LogIndex, ProposeError> {
        assert!(floors.reads <= floors.writes, "old data is removed where no old write comes any more: {floors:?}");
        let (reply, receiver) = Reply::new();
        self.push_proposal(basis, command::encode_floors(basis.term, basis.region.epoch, floors), reply);
        receiver.await.unwrap_or(Err(ProposeError::Undetermined { region: basis.region.id }))
    }

    /// The floors of this store's replica, as far as it has applied its log. 0 if there is no replica. Whoever asks
    /// after it has read data knows up to where that may be incomplete: a snapshot of the store does not keep old data.
    pub fn floors(&self, region: RegionId) -> Floors {
        self.context.router.get(region).map_or_else(Floors::default, |delegate| delegate.floors().load())
    }

    /// As [`StoreHandle::propose`], for a caller that holds something until the outcome is known, and must release it
    /// then, whatever becomes of the future. `observer` is told of the entry and of the outcome, before the future has
    /// it, by the thread that knows it: this one, a store thread or an apply thread. It is dropped without an answer if
    /// the store ends and the outcome stays unknown. A write with a `date` has no effect once the region's floor of
    /// writes has reached it: it fails with `StaleCommand` then.
    ///
    /// # Errors
    ///
    /// As there.
    pub async fn propose_observed(
        &self,
        basis: &Basis,
        batch: WriteBatch,
        date: Option<Floor>,
        observer: ProposalObserver,
    ) -> Result<LogIndex, ProposeError> {
        self.submit(basis, (&batch, date), Reply::observed(observer)).await
    }

    async fn submit(
        &self,
        basis: &Basis,
        (batch, date): (&WriteBatch, Option<Floor>),
        (reply, receiver): (ProposeReply, oneshot::Receiver<Result<LogIndex, ProposeError>>),
    ) -> Result<LogIndex, ProposeError> {
        let region = basis.region.id;
        if let Some(why) = self.context.health.poisoned() {
            reply.send(Err(ProposeError::Poisoned(why.to_string())));
        } else if let Err(refused) = self.check_batch(&basis.region, batch) {
            reply.send(Err(refused));
        } else {
            self.push_proposal(basis, command::encode_write(basis.term, basis.region.epoch, date, batch), reply);
        }
        // The reply was dropped together with the store, so the outcome is unknown.
        receiver.await.unwrap_or(Err(ProposeError::Undetermined { region }))
    }

    /// Queues a command. The reply gets the error, if there is one.
    fn push_proposal(&self, basis: &Basis, data: Vec<u8>, reply: ProposeReply) {
        let region = basis.region.id;
        let proposal = Proposal { term: basis.term, epoch: basis.region.epoch, data, reply };
        let refuse = |message, error: &RegionError| {
            if let StoreMsg::Propose(_, proposal) = message {
                proposal.reply.send(Err(error.clone().into()));
            }
        };
        let _ = self.push_or(region, StoreMsg::Propose(region, Box::new(proposal)), refuse);
    }

    /// Whether this store leads `region` in `term` and its lease holds at this moment, so that no other store can lead.
    /// It guards state kept outside the region's data that belongs to its leader, such as the oracle's window. Reads
    /// the clock at most once. Returns false whenever this is not certain: also until the leader has applied an entry
    /// of its own term, and while the store stops or is poisoned.
    pub fn lease_holds(&self, region: RegionId, term: Term) -> bool {
        let Ok(delegate) = self.delegate(region) else { return false };
        let lease = delegate.lease_read(delegate.region().epoch, &*self.context.clock, |_| ());
        matches!(lease, Ok(Some(((), permit))) if permit.term == term)
    }

    /// Delivers a message from another store. If it is a `MsgSnapshot`, its snapshot file must already be complete and
    /// durable in this store's `SnapshotFiles`. `Ok` means queued: the store may still drop the message, as a network
    /// may.
    ///
    /// # Errors
    ///
    /// `ServerBusy` if the mailbox is full or the store has stopped; the message is dropped.
    pub fn deliver(&self, message: RaftMessage) -> Result<(), RegionError> {
        self.context.mailbox.push(StoreMsg::Raft(Box::new(message))).map_err(|_| self.busy())
    }

    /// Delivers messages from another store, as [`StoreHandle::deliver`] does, with one wake-up. Takes all of them out
    /// of `messages`. Returns how many were queued: the first ones, until the mailbox is full or if the store has
    /// stopped.
    pub fn deliver_all(&self, messages: &mut Vec<RaftMessage>) -> usize {
        let all = messages.len();
        let queued = self.context.mailbox.push_all(messages.drain(..).map(|m| StoreMsg::Raft(Box::new(m))));
        if queued < all {
            self.context.metrics.busy.with_label_values(&["mailbox"]).inc_by((all - queued) as u64);
        }
        queued
    }

    /// Asks the replica on `to` to take over the leadership of `region`. Does not wait: `Ok` means queued. The request
    /// is ignored if `to` is this store or holds no voter, or if this replica has lost leadership meanwhile. The
    /// transfer may fail; watch [`StoreHandle::region`] or the `RoleListener` for its result.
    ///
    /// # Errors
    ///
    /// - `RegionNotFound`, `NotLeader`: the replica is not here or does not lead, or the store stops or is poisoned.
    /// - `ServerBusy`: the mailbox is full.
    pub fn transfer_leader(&self, region: RegionId, to: StoreId) -> Result<(), RegionError> {
        let delegate = self.delegate(region)?;
        if !delegate.is_leader() {
            return Err(delegate.not_leader());
        }
        self.push(region, StoreMsg::Transfer(region, to))
    }

    /// Sets what the leaders of this store hand over with their leadership. The last call counts.
    pub fn set_leader_memory(&self, memory: Arc<dyn LeaderMemory>) {
        *self.context.memory.write() = Some(memory);
    }

    /// Stops the store's service for good, for a reader that found its data damaged. Requests that wait fail, and no
    /// write is acknowledged any more, except by the apply turn under way; leadership passes to other replicas, which
    /// may be intact. Returns at once. The first reason is kept; later calls have no effect.
    pub fn poison(&self, why: &str) {
        self.context.health.poison(why);
        self.context.mailbox.wake();
    }

    /// Why the store is poisoned, if a failure or [`StoreHandle::poison`] stopped its service.
    pub fn poisoned(&self) -> Option<String> {
        self.context.health.poisoned().map(str::to_string)
    }

    fn check_batch(&self, region: &Region, batch: &WriteBatch) -> Result<(), ProposeError> {
        let (bytes, limit) = (batch.size(), self.context.config.max_proposal_bytes);
        if bytes > limit {
            return Err(ProposeError::TooLarge { bytes, limit });
        }
        if !batch.iter().all(|op| command::is_within(region, &op)) {
            return Err(RegionError::KeyNotInRegion { region: region.id }.into());
        }
        Ok(())
    }

    /// The delegate of a region, while the store serves.
    pub(crate) fn delegate(&self, region: RegionId) -> Result<Arc<Delegate>, RegionError> {
        let missing = || RegionError::RegionNotFound { region, store: self.context.id };
        let delegate = self.context.router.get(region).ok_or_else(missing)?;
        let refuses = self.context.health.refuses_requests();
        if refuses { Err(self.redirect(region, delegate.leader())) } else { Ok(delegate) }
    }

    /// The refusal of a store that does not serve: names the leader that it knew last, but never itself.
    fn redirect(&self, region: RegionId, known: Option<PeerMeta>) -> RegionError {
        RegionError::NotLeader { region, leader: known.filter(|leader| leader.store != self.context.id) }
    }

    /// Queues a request, leaving the reserved places to messages between stores. A flood of requests must not drop the
    /// heartbeats that keep this store's peers leading, and with them the answers to those requests.
    pub(crate) fn push(&self, region: RegionId, message: StoreMsg) -> Result<(), RegionError> {
        self.push_or(region, message, |_, _| ())
    }

    /// Queues a message, or calls `refuse` with it and with the error.
    fn push_or(
        &self,
        region: RegionId,
        message: StoreMsg,
        refuse: impl FnOnce(StoreMsg, &RegionError),
    ) -> Result<(), RegionError> {
        let reserved = self.context.config.mailbox_capacity / RAFT_RESERVE_DIVISOR;
        self.context.mailbox.push_reserving(message, reserved).map_err(|Refused(message)| {
            // A mailbox that is closed never has room again.
            let error = if self.context.mailbox.is_closed() {
                self.redirect(region, self.context.router.get(region).and_then(|delegate| delegate.leader()))
            } else {
                self.busy()
            };
            refuse(message, &error);
            error
        })
    }

    fn busy(&self) -> RegionError {
        self.context.metrics.busy.with_label_values(&["mailbox"]).inc();
        RegionError::ServerBusy { store: self.context.id, what: "mailbox".to_string() }
    }
}

fn status(delegate: &Delegate) -> RegionStatus {
    RegionStatus {
        region: (*delegate.region()).clone(),
        leader: delegate.leader(),
        term: delegate.term(),
        applied: delegate.applied_index(),
        is_leader: delegate.is_leader(),
    }
}

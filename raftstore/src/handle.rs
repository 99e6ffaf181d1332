//! The async face of a store: what `kv` and the node call.

use std::sync::Arc;

use engine::store::{Cursor, Reader, Store, StoreError};
use engine::{Cf, WriteBatch};

use crate::command;
use crate::config::StoreConfig;
use crate::delegate::{Delegate, Permit};
use crate::error::{ProposeError, RegionError};
use crate::health::Health;
use crate::mailbox::Mailbox;
use crate::messages::StoreMsg;
use crate::metrics::Metrics;
use crate::peer::proposal::Proposal;
use crate::ports::RaftMessage;
use crate::region::{Epoch, LogIndex, PeerMeta, Region, RegionId, StoreId, Term};
use crate::reply::Reply;
use crate::router::Router;
use crate::time::Clock;

/// Which region a request is for, and which version of it the sender knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionContext {
    /// The region.
    pub region: RegionId,
    /// Its epoch as the sender knows it.
    pub epoch: Epoch,
}

/// What a store knows of one of its regions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionStatus {
    /// The descriptor.
    pub region: Region,
    /// Who leads, as far as this replica knows.
    pub leader: Option<PeerMeta>,
    /// The replica's term.
    pub term: Term,
    /// Last index applied here.
    pub applied: LogIndex,
    /// Whether this store leads it.
    pub is_leader: bool,
}

/// A handle to the store; clones share it.
#[derive(Clone)]
pub struct StoreHandle<S: Store> {
    pub(crate) context: Arc<StoreContext<S>>,
}

/// What handles share with the loops.
pub(crate) struct StoreContext<S: Store> {
    pub(crate) id: StoreId,
    pub(crate) config: Arc<StoreConfig>,
    pub(crate) store: S,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) router: Arc<Router>,
    pub(crate) mailbox: Arc<Mailbox<StoreMsg>>,
    pub(crate) health: Arc<Health>,
    pub(crate) metrics: Metrics,
}

/// A view of one region at one moment, proven fit for the read it was asked for. Reads outside the region's range
/// are refused with an error.
#[derive(Clone)]
pub struct RegionSnapshot<S: Store> {
    snapshot: S::Snapshot,
    /// The region's descriptor when the snapshot was taken.
    pub region: Arc<Region>,
    /// The term of the leader it was taken on: a write evaluated on it is proposed under this term.
    pub term: Term,
}

impl<S: Store> RegionSnapshot<S> {
    fn new(snapshot: S::Snapshot, permit: Permit) -> RegionSnapshot<S> {
        RegionSnapshot { snapshot, region: permit.region, term: permit.term }
    }

    fn check(&self, cf: Cf, inside: bool) -> engine::store::Result<()> {
        if inside && cf != Cf::Meta {
            return Ok(());
        }
        let what = format!("read outside of region {}", self.region.id);
        Err(StoreError::Io(std::io::Error::new(std::io::ErrorKind::InvalidInput, what)))
    }
}

impl<S: Store> Reader for RegionSnapshot<S> {
    fn get(&self, cf: Cf, key: &[u8]) -> engine::store::Result<Option<Vec<u8>>> {
        self.check(cf, self.region.contains(key))?;
        self.snapshot.get(cf, key)
    }

    fn cursor(&self, cf: Cf, lower: &[u8], upper: &[u8]) -> engine::store::Result<Box<dyn Cursor + '_>> {
        self.check(cf, self.region.contains_range(lower, upper))?;
        self.snapshot.cursor(cf, lower, upper)
    }
}

/// One in so many places of the mailbox is for messages between stores alone.
const RAFT_RESERVE_DIVISOR: usize = 4;

/// Attempts to take a snapshot after a read index, while the replica changes under it.
const SNAPSHOT_ATTEMPTS: usize = 3;

impl<S: Store> StoreHandle<S> {
    /// This store.
    pub fn store_id(&self) -> StoreId {
        self.context.id
    }

    /// The regions with a replica here, by range.
    pub fn regions(&self) -> Vec<RegionStatus> {
        self.context.router.all().iter().map(|d| status(d)).collect()
    }

    /// The region with a replica here whose range holds `key`.
    pub fn locate(&self, key: &[u8]) -> Option<RegionStatus> {
        self.context.router.locate(key).map(|d| status(&d))
    }

    /// One region with a replica here.
    pub fn region(&self, id: RegionId) -> Option<RegionStatus> {
        self.context.router.get(id).map(|d| status(&d))
    }

    /// A snapshot for a linearizable read at the leader: inline and without a hop while the lease holds (`Ok(Some)`); `Ok(None)`
    /// says that the lease does not cover and `read` must be used.
    pub fn try_read(&self, ctx: RegionContext) -> Result<Option<RegionSnapshot<S>>, RegionError> {
        let delegate = self.delegate(ctx.region)?;
        let read = delegate.lease_read(ctx.epoch, &*self.context.clock, || self.context.store.snapshot())?;
        let Some((snapshot, permit)) = read else { return Ok(None) };
        self.context.metrics.lease_reads.inc();
        Ok(Some(RegionSnapshot::new(snapshot, permit)))
    }

    /// The same, falling back to a read index (one round trip) where the lease does not cover.
    pub async fn read(&self, ctx: RegionContext) -> Result<RegionSnapshot<S>, RegionError> {
        if let Some(snapshot) = self.try_read(ctx)? {
            return Ok(snapshot);
        }
        let (reply, receiver) = Reply::new();
        self.push(StoreMsg::Read(ctx.region, ctx.epoch, reply))?;
        let lost = || self.not_ready(ctx.region, "the store went away");
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
        outcome.map(|(snapshot, region)| RegionSnapshot { snapshot, region, term: ready.term })
    }

    /// A snapshot to evaluate a write on. The leader has applied an entry of its own term; the write evaluated on it is proposed with
    /// `snapshot.term` and `snapshot.region.epoch`, and refused if either changed.
    pub fn evaluate(&self, ctx: RegionContext) -> Result<RegionSnapshot<S>, RegionError> {
        let delegate = self.delegate(ctx.region)?;
        let (snapshot, permit) = delegate.evaluate(ctx.epoch, || self.context.store.snapshot())?;
        Ok(RegionSnapshot::new(snapshot, permit))
    }

    /// Replicates `batch`, evaluated on `basis`, and waits until it is applied here.
    pub async fn propose(&self, basis: &RegionSnapshot<S>, batch: WriteBatch) -> Result<LogIndex, ProposeError> {
        if let Some(why) = self.context.health.poisoned() {
            return Err(ProposeError::Poisoned(why.to_string()));
        }
        let region = basis.region.id;
        self.check_batch(&basis.region, &batch)?;
        let (reply, receiver) = Reply::new();
        let data = command::encode_write(basis.term, basis.region.epoch, &batch);
        let proposal = Proposal { term: basis.term, epoch: basis.region.epoch, data, reply };
        self.push(StoreMsg::Propose(region, Box::new(proposal)))?;
        // The reply was dropped with the store: what became of the entry is not known.
        receiver.await.unwrap_or(Err(ProposeError::Undetermined { region }))
    }

    /// Whether this store leads `region` in `term` and its lease holds at this moment: no other store can have taken over yet. For what is
    /// kept outside of the region's data and goes with its leadership.
    pub fn lease_holds(&self, region: RegionId, term: Term) -> bool {
        let Ok(delegate) = self.delegate(region) else { return false };
        let lease = delegate.lease_read(delegate.region().epoch, &*self.context.clock, || ());
        matches!(lease, Ok(Some(((), permit))) if permit.term == term)
    }

    /// Hands in a message from another store; never blocks. The file that a `MsgSnapshot` names must be complete and durable in this store's
    /// `SnapshotFiles` before. `Err` means dropped, as a network may.
    pub fn deliver(&self, message: RaftMessage) -> Result<(), RegionError> {
        self.push_reserving(StoreMsg::Raft(Box::new(message)), 0)
    }

    /// Asks `to` to take over leadership of `region`; does not wait.
    pub fn transfer_leader(&self, region: RegionId, to: StoreId) -> Result<(), RegionError> {
        let delegate = self.delegate(region)?;
        if !delegate.is_leader() {
            return Err(RegionError::NotLeader { region, leader: delegate.leader() });
        }
        self.push(StoreMsg::Transfer(region, to))
    }

    /// Ends the store's service for good: whoever reads its data found it damaged. What waits is refused, nothing is acknowledged any more.
    pub fn poison(&self, why: &str) {
        self.context.health.poison(why);
        self.context.mailbox.wake();
    }

    /// Why the store does not serve any more, if a failure stopped it.
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

    fn delegate(&self, region: RegionId) -> Result<Arc<Delegate>, RegionError> {
        if let Some(why) = self.context.health.refusal() {
            return Err(self.not_ready(region, &why));
        }
        let missing = || RegionError::RegionNotFound { region, store: self.context.id };
        self.context.router.get(region).ok_or_else(missing)
    }

    /// Queues a request. A part of the mailbox is kept for messages between stores: a flood of requests must not drop the heartbeats by which
    /// this store keeps its leaders, and with them the answers to those very requests.
    fn push(&self, message: StoreMsg) -> Result<(), RegionError> {
        self.push_reserving(message, self.context.config.mailbox_capacity / RAFT_RESERVE_DIVISOR)
    }

    fn push_reserving(&self, message: StoreMsg, spare: usize) -> Result<(), RegionError> {
        self.context.mailbox.push_reserving(message, spare).map_err(|_| {
            self.context.metrics.busy.with_label_values(&["mailbox"]).inc();
            RegionError::ServerBusy { store: self.context.id, what: "mailbox".to_string() }
        })
    }

    fn not_ready(&self, region: RegionId, why: &str) -> RegionError {
        RegionError::NotReady { region, why: why.to_string() }
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

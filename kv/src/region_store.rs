//! What the server needs of the store below it: snapshots of regions, and replication.
//!
//! `raftstore::StoreHandle` implements it for real. Tests of the server side use `fake::FakeStore`, whose leadership
//! and proposals fail on demand.

#[cfg(test)]
pub(crate) mod fake;

use std::future::Future;
use std::sync::Arc;

use engine::WriteBatch;
use engine::store::{NewestReader, Reader, Store};
use raftstore::ports::LeaderMemory;
use raftstore::{
    Basis, Floor, Floors, LogIndex, ProposalObserver, ProposeError, Region, RegionContext, RegionError, RegionId,
    RegionSnapshot, RegionStatus, ReplicaState, StoreHandle, StoreId, Term,
};
use tso::Timestamp;

use crate::api::ServerError;
use crate::error::ActionError;

/// A consistent view of one region.
pub trait RegionView: Reader + Clone + Send + Sync + 'static {
    /// The region's descriptor when the view was taken.
    fn region(&self) -> &Region;
    /// The term of the leader on which the view was taken.
    fn term(&self) -> Term;
    /// The same view, read from memory alone: reads that would have to read a file fail with `StoreError::NotCached`.
    fn cached(&self) -> Self;
}

/// The reads of a store of replicated regions. The methods are those of `raftstore::StoreHandle`.
pub trait RegionReads: Clone + Send + Sync + 'static {
    /// The type of views.
    type View: RegionView;

    /// The id of this store.
    fn store_id(&self) -> StoreId;
    /// Whether the leader's lease covers a linearizable read now: [`RegionReads::try_read`] without the view.
    ///
    /// # Errors
    ///
    /// As there.
    fn has_lease(&self, context: RegionContext) -> Result<bool, RegionError>;
    /// A view for a linearizable read under the leader's lease. `None` if the lease does not cover it: use
    /// [`RegionReads::read`]. Does not wait.
    ///
    /// # Errors
    ///
    /// [`RegionError`] if this store does not lead the region under this epoch (`NotLeader`, `RegionNotFound`,
    /// `EpochNotMatch`) or cannot serve yet (`NotReady`).
    fn try_read(&self, context: RegionContext) -> Result<Option<Self::View>, RegionError>;
    /// Runs `read` on the newest state of the region, without a view. It keeps to the region's range. Returns what it
    /// returned, and the floor of reads after it, or `None` if the leader's lease did not cover the whole of it. Does
    /// not wait.
    ///
    /// # Errors
    ///
    /// As [`RegionReads::try_read`].
    fn read_newest<T>(
        &self,
        context: RegionContext,
        read: impl FnOnce(&dyn NewestReader, &Region) -> T,
    ) -> Result<Option<(T, Floor)>, RegionError>;
    /// A view for a linearizable read. Waits for a read index if the lease does not cover it. The future may be dropped
    /// at any time.
    ///
    /// # Errors
    ///
    /// As [`RegionReads::try_read`], and `ServerBusy` if the store's mailbox or the region's queue of reads is full.
    fn read(&self, context: RegionContext) -> impl Future<Output = Result<Self::View, RegionError>> + Send;
    /// The regions with a replica here.
    fn regions(&self) -> Vec<RegionStatus>;
    /// The store that leads a region, as far as the replica here knows.
    fn leader(&self, region: RegionId) -> Option<StoreId>;
    /// Whether this store leads a region, as far as its replica knows.
    fn leads(&self, region: RegionId) -> bool {
        self.leader(region) == Some(self.store_id())
    }
    /// Runs `look` on the leader and then reads its applied index, under the lease. `None` if the lease does not cover
    /// it.
    ///
    /// # Errors
    ///
    /// As [`RegionReads::try_read`], but the epoch is that of the replica.
    fn sample<T>(
        &self,
        region: RegionId,
        look: impl FnOnce(&Region, Term) -> T,
    ) -> Result<Option<(T, LogIndex, Basis)>, RegionError>;
    /// The state of this store's replica, whoever leads.
    ///
    /// # Errors
    ///
    /// [`RegionError`] if there is none (`RegionNotFound`), or its data is being replaced (`NotReady`).
    fn replica(&self, region: RegionId) -> Result<ReplicaState, RegionError>;
    /// Runs `read` on the newest state of this store's replica, whoever leads. Returns what it returned, and the floor
    /// of reads after it, if the data was the replica's own all the time and held at least what the state says.
    ///
    /// # Errors
    ///
    /// As [`RegionReads::replica`], and `EpochNotMatch` if the version of the epoch is another.
    fn replica_newest<T>(
        &self,
        context: RegionContext,
        read: impl FnOnce(&ReplicaState, &dyn NewestReader) -> Option<T>,
    ) -> Result<Option<(T, Floor)>, RegionError>;
    /// A view of this store's replica, if `is_enough` says that its state from before is enough.
    ///
    /// # Errors
    ///
    /// As [`RegionReads::replica_newest`].
    fn replica_view(
        &self,
        context: RegionContext,
        is_enough: impl FnOnce(&ReplicaState) -> bool,
    ) -> Result<Option<Self::View>, RegionError>;
    /// Ends once the replica has applied `index`, or its data has changed in another way.
    ///
    /// # Errors
    ///
    /// As [`RegionReads::replica`].
    fn applied(&self, region: RegionId, index: LogIndex) -> impl Future<Output = Result<(), RegionError>> + Send;
    /// The floors of this store's replica, as far as it has applied its log. Who has read data and asks then knows up
    /// to where it may be incomplete.
    fn floors(&self, region: RegionId) -> Floors;
    /// Stops the store's service because its data is corrupt. Its leaderships pass to other stores.
    fn poison(&self, why: &str);
}

/// A store of replicated regions, also for writes. The methods are those of `raftstore::StoreHandle`.
pub trait RegionStore: RegionReads {
    /// The region that has a replica on this store and holds the storage key; `None` if there is none.
    fn locate(&self, key: &[u8]) -> Option<RegionStatus>;
    /// The basis of a write. All entries of earlier terms are applied. Does not wait, and does not prove the lease:
    /// [`RegionStore::propose`] checks the term.
    ///
    /// # Errors
    ///
    /// As [`RegionReads::try_read`], and `StaleCommand` if the replica changed during the call.
    fn basis(&self, context: RegionContext) -> Result<Basis, RegionError> {
        let view = self.evaluate(context)?;
        Ok(Basis { region: Arc::new(view.region().clone()), term: view.term() })
    }
    /// A view to evaluate a write on: the basis with the state of the same moment.
    ///
    /// # Errors
    ///
    /// As [`RegionStore::basis`].
    fn evaluate(&self, context: RegionContext) -> Result<Self::View, RegionError>;
    /// Evaluates a write on the newest state, from memory alone. Reads that would have to read a file fail with
    /// `StoreError::NotCached`. The caller keeps what it reads from changing.
    ///
    /// # Errors
    ///
    /// As [`RegionStore::basis`], and `StaleCommand` if the term is not that of `basis`.
    fn evaluate_cached<T>(&self, basis: &Basis, evaluate: impl FnOnce(&dyn Reader) -> T) -> Result<T, RegionError> {
        Ok(evaluate(&self.evaluate_on(basis)?))
    }
    /// A view of the basis: [`RegionStore::evaluate`] in the same term.
    ///
    /// # Errors
    ///
    /// As [`RegionStore::evaluate_cached`].
    fn evaluate_on(&self, basis: &Basis) -> Result<Self::View, RegionError> {
        let region = basis.region.id;
        let view = self.evaluate(RegionContext { region, epoch: basis.region.epoch })?;
        if view.term() == basis.term { Ok(view) } else { Err(RegionError::StaleCommand { region }) }
    }
    /// Replicates `batch`, which was evaluated on `basis`, and waits until it is applied on this store. With a `date`
    /// it has no effect once the region's floor of writes has reached that: it is refused with `StaleCommand`. If the
    /// future is dropped, the batch may still take effect. `observer` is told of the entry and of the outcome when they
    /// are known, whether the future is polled or not, by whatever thread knows it. It is dropped if the outcome stays
    /// unknown.
    ///
    /// # Errors
    ///
    /// - [`ProposeError::Region`]: refused, for example because the term or the epoch has changed since `basis`. It had
    ///   no effect.
    /// - [`ProposeError::TooLarge`]: it exceeds `max_proposal_bytes`. It had no effect.
    /// - [`ProposeError::Undetermined`], [`ProposeError::Poisoned`]: it may or may not take effect.
    fn propose(
        &self,
        basis: &Basis,
        batch: WriteBatch,
        date: Option<Floor>,
        observer: ProposalObserver,
    ) -> impl Future<Output = Result<LogIndex, ProposeError>> + Send;
    /// Raises the floors of the region of `basis`, and waits until they are raised on this store. The floor of reads is
    /// not above that of writes.
    ///
    /// # Errors
    ///
    /// As [`RegionStore::propose`]. It may be repeated.
    fn raise_floors(
        &self,
        basis: &Basis,
        floors: Floors,
    ) -> impl Future<Output = Result<LogIndex, ProposeError>> + Send;
    /// Sets what leaders hand over with their leadership. A store without transfers has no use for it.
    fn set_leader_memory(&self, _memory: Arc<dyn LeaderMemory>) {}
    /// Lets other requests run at a planted bug. A simulation with a clock of its own lets time pass.
    #[cfg(feature = "planted-bugs")]
    fn preempted(&self) -> impl Future<Output = ()> + Send {
        async {
            for _ in 0..8 {
                tokio::task::yield_now().await;
            }
        }
    }
}

/// A floor as the timestamp that it is.
pub(crate) fn timestamp(floor: Floor) -> Timestamp {
    Timestamp::from_raw(floor.get())
}

/// Converts the error of a read or an evaluation for the caller, and poisons the store if its data is corrupt. A leader
/// that kept serving would refuse for ever what another replica may hold intact.
pub(crate) fn into_server_error<H: RegionReads>(store: &H, error: ActionError) -> ServerError {
    if error.is_corruption() {
        store.poison(&error.to_string());
    }
    error.into()
}

impl<S: Store> RegionView for RegionSnapshot<S> {
    fn region(&self) -> &Region {
        &self.region
    }

    fn term(&self) -> Term {
        self.term
    }

    fn cached(&self) -> RegionSnapshot<S> {
        RegionSnapshot::cached(self)
    }
}

impl<S: Store> RegionReads for StoreHandle<S> {
    type View = RegionSnapshot<S>;

    fn store_id(&self) -> StoreId {
        StoreHandle::store_id(self)
    }

    fn has_lease(&self, context: RegionContext) -> Result<bool, RegionError> {
        StoreHandle::has_lease(self, context)
    }

    fn try_read(&self, context: RegionContext) -> Result<Option<RegionSnapshot<S>>, RegionError> {
        StoreHandle::try_read(self, context)
    }

    fn read_newest<T>(
        &self,
        context: RegionContext,
        read: impl FnOnce(&dyn NewestReader, &Region) -> T,
    ) -> Result<Option<(T, Floor)>, RegionError> {
        StoreHandle::read_newest(self, context, read)
    }

    fn read(&self, context: RegionContext) -> impl Future<Output = Result<RegionSnapshot<S>, RegionError>> + Send {
        StoreHandle::read(self, context)
    }

    fn regions(&self) -> Vec<RegionStatus> {
        StoreHandle::regions(self)
    }

    fn leader(&self, region: RegionId) -> Option<StoreId> {
        StoreHandle::leader(self, region)
    }

    fn sample<T>(
        &self,
        region: RegionId,
        look: impl FnOnce(&Region, Term) -> T,
    ) -> Result<Option<(T, LogIndex, Basis)>, RegionError> {
        StoreHandle::sample(self, region, look)
    }

    fn replica(&self, region: RegionId) -> Result<ReplicaState, RegionError> {
        StoreHandle::replica(self, region)
    }

    fn replica_newest<T>(
        &self,
        context: RegionContext,
        read: impl FnOnce(&ReplicaState, &dyn NewestReader) -> Option<T>,
    ) -> Result<Option<(T, Floor)>, RegionError> {
        StoreHandle::replica_newest(self, context, read)
    }

    fn replica_view(
        &self,
        context: RegionContext,
        is_enough: impl FnOnce(&ReplicaState) -> bool,
    ) -> Result<Option<RegionSnapshot<S>>, RegionError> {
        StoreHandle::replica_snapshot(self, context, is_enough)
    }

    fn applied(&self, region: RegionId, index: LogIndex) -> impl Future<Output = Result<(), RegionError>> + Send {
        StoreHandle::applied(self, region, index)
    }

    fn floors(&self, region: RegionId) -> Floors {
        StoreHandle::floors(self, region)
    }

    fn poison(&self, why: &str) {
        StoreHandle::poison(self, why);
    }
}

impl<S: Store> RegionStore for StoreHandle<S> {
    fn locate(&self, key: &[u8]) -> Option<RegionStatus> {
        StoreHandle::locate(self, key)
    }

    fn basis(&self, context: RegionContext) -> Result<Basis, RegionError> {
        StoreHandle::basis(self, context)
    }

    fn evaluate(&self, context: RegionContext) -> Result<RegionSnapshot<S>, RegionError> {
        StoreHandle::evaluate(self, context)
    }

    fn evaluate_cached<T>(&self, basis: &Basis, evaluate: impl FnOnce(&dyn Reader) -> T) -> Result<T, RegionError> {
        StoreHandle::evaluate_cached(self, basis, evaluate)
    }

    fn propose(
        &self,
        basis: &Basis,
        batch: WriteBatch,
        date: Option<Floor>,
        observer: ProposalObserver,
    ) -> impl Future<Output = Result<LogIndex, ProposeError>> + Send {
        StoreHandle::propose_observed(self, basis, batch, date, observer)
    }

    fn raise_floors(
        &self,
        basis: &Basis,
        floors: Floors,
    ) -> impl Future<Output = Result<LogIndex, ProposeError>> + Send {
        StoreHandle::raise_floors(self, basis, floors)
    }

    fn set_leader_memory(&self, memory: Arc<dyn LeaderMemory>) {
        StoreHandle::set_leader_memory(self, memory);
    }
}

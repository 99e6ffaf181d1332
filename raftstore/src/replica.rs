//! Reads at any replica, and what a leader proves for them: the part of the handle on which grants are built.
//!
//! This crate knows no timestamps. A leader says which index its log had applied at a moment at which nobody else led
//! ([`StoreHandle::sample`]). A replica says what it has applied, waits for more, and runs a read on data that is its
//! own all the time ([`StoreHandle::replica_newest`], [`StoreHandle::replica_snapshot`]). What follows from the index
//! is the caller's to know.

use engine::store::{NewestReader, Store};

use crate::delegate::{Permit, ReplicaState};
use crate::error::RegionError;
use crate::handle::{Basis, RegionContext, RegionSnapshot, StoreHandle};
use crate::region::{Floor, LogIndex, Region, RegionId, Term};

impl<S: Store> StoreHandle<S> {
    /// Runs `look` on the leader and then reads its applied index, under the lease: at the moment at which it was read
    /// nobody else led the region. Before `look`, everything committed in earlier terms was applied here. `Ok(None)` if
    /// the lease does not cover it. Does not wait.
    ///
    /// # Errors
    ///
    /// As [`StoreHandle::try_read`], but the epoch is that of the replica.
    pub fn sample<T>(
        &self,
        region: RegionId,
        look: impl FnOnce(&Region, Term) -> T,
    ) -> Result<Option<(T, LogIndex, Basis)>, RegionError> {
        let delegate = self.delegate(region)?;
        let look = |permit: &Permit| look(&permit.region, permit.term);
        let sampled = delegate.lease_sample(&*self.context.clock, look)?;
        Ok(sampled.map(|(looked, index, permit)| (looked, index, permit.into())))
    }

    /// The state of this store's replica of a region, whoever leads it.
    ///
    /// # Errors
    ///
    /// - `RegionNotFound`: this store holds no replica of the region.
    /// - `NotLeader`: the store stops or is poisoned.
    /// - `NotReady`: a snapshot is being installed, or the descriptor changes.
    pub fn replica(&self, region: RegionId) -> Result<ReplicaState, RegionError> {
        self.delegate(region)?.replica()
    }

    /// Runs `read` on the newest state of this store's replica, without a snapshot, whoever leads. `read` gets the
    /// replica's state from before, and returns `None` if that is not enough for it. It keeps to the range of the
    /// region. Its result counts only if it is returned, with the floor of reads after it: the data was the replica's
    /// own then, and held at least what the state says. Its own calls may see different states, in the order of the
    /// calls.
    ///
    /// # Errors
    ///
    /// As [`StoreHandle::replica`], and `EpochNotMatch` if the version of the region's epoch is not that of `context`.
    pub fn replica_newest<T>(
        &self,
        context: RegionContext,
        read: impl FnOnce(&ReplicaState, &dyn NewestReader) -> Option<T>,
    ) -> Result<Option<(T, Floor)>, RegionError> {
        let delegate = self.delegate(context.region)?;
        let done = delegate.replica_read(context.epoch.version, |state| read(state, &self.context.store))?;
        Ok(done.map(|result| (result, delegate.floors().reads())))
    }

    /// Takes a snapshot of this store's replica, if `is_enough` says that its state from before is enough. The snapshot
    /// holds at least what the state says.
    ///
    /// # Errors
    ///
    /// As [`StoreHandle::replica_newest`].
    pub fn replica_snapshot(
        &self,
        context: RegionContext,
        is_enough: impl FnOnce(&ReplicaState) -> bool,
    ) -> Result<Option<RegionSnapshot<S>>, RegionError> {
        let delegate = self.delegate(context.region)?;
        delegate.replica_read(context.epoch.version, |state| {
            let snapshot = is_enough(state).then(|| self.context.store.snapshot())?;
            let basis = Basis { region: state.region.clone(), term: delegate.term() };
            Some(RegionSnapshot { snapshot, basis })
        })
    }

    /// Ends once this replica has applied `index`, or its data has changed in another way: the caller looks again.
    ///
    /// # Errors
    ///
    /// As [`StoreHandle::replica`].
    pub async fn applied(&self, region: RegionId, index: LogIndex) -> Result<(), RegionError> {
        let delegate = self.delegate(region)?;
        delegate.replica()?;
        delegate.applied_up_to(index).await;
        Ok(())
    }
}

#[cfg(feature = "epoch-changes")]
impl<S: Store> StoreHandle<S> {
    /// Proposes to raise the version of the region's epoch, as a split would. `Ok` means queued.
    ///
    /// # Errors
    ///
    /// As [`StoreHandle::basis`], and `ServerBusy`.
    pub fn raise_version(&self, region: RegionId) -> Result<(), RegionError> {
        let basis = self.basis(RegionContext::from(&*self.delegate(region)?.region()))?;
        let (term, epoch) = (basis.term, basis.region.epoch);
        let data = crate::command::encode_raise_version(term, epoch);
        let (reply, _) = crate::reply::Reply::new();
        let proposal = crate::peer::proposal::Proposal { term, epoch, data, reply };
        self.push(region, crate::messages::StoreMsg::Propose(region, Box::new(proposal)))
    }
}

impl From<&Region> for RegionContext {
    fn from(region: &Region) -> RegionContext {
        RegionContext { region: region.id, epoch: region.epoch }
    }
}

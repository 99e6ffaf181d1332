//! One store of a [`super::MemoryCluster`], for the server's read and write paths. Models of other failures share its
//! views.

use std::sync::Arc;

use engine::store::memory::{MemorySnapshot, MemoryStore};
use engine::store::{Cursor, NewestReader, Reader, Result as StoreResult, Store, StoreError};
use engine::{Cf, WriteBatch};
use parking_lot::Mutex;
use raftstore::{
    Basis, DataGeneration, Floor, Floors, LogIndex, ProposalObserver, ProposeError, Region, RegionContext, RegionError,
    RegionId, RegionStatus, ReplicaState, StoreId, Term,
};

use super::topology::Topology;
use crate::detach::DetachOnDrop;
use crate::region_store::{RegionReads, RegionStore, RegionView};

/// The data of the cluster, as one of its stores reads and writes it. The leader always has a lease.
#[derive(Clone)]
pub(crate) struct StoreRegions {
    pub(super) id: StoreId,
    pub(super) data: MemoryStore,
    pub(super) topology: Arc<Mutex<Topology>>,
    pub(super) max_proposal_bytes: usize,
}

/// A snapshot of one region. Like the real one, it refuses reads outside the region.
#[derive(Clone)]
pub struct RegionReader {
    snapshot: MemorySnapshot,
    region: Region,
    term: Term,
}

impl StoreRegions {
    /// A snapshot of the region, if the store may serve it now.
    fn view(&self, context: RegionContext) -> Result<RegionReader, RegionError> {
        let (region, term) = self.topology.lock().check(self.id, context)?;
        Ok(RegionReader::new(self.data.snapshot(), region, term))
    }
}

/// The index of every entry, and of all that is applied.
const APPLIED: LogIndex = LogIndex::new(1);

impl StoreRegions {
    /// The replica, if its range is that of the context.
    fn current(&self, context: RegionContext) -> Result<ReplicaState, RegionError> {
        let state = self.replica(context.region)?;
        if state.region.epoch.version == context.epoch.version {
            return Ok(state);
        }
        Err(RegionError::EpochNotMatch { current: Box::new(Region::clone(&state.region)) })
    }
}

impl RegionReads for StoreRegions {
    type View = RegionReader;

    fn store_id(&self) -> StoreId {
        self.id
    }

    fn has_lease(&self, context: RegionContext) -> Result<bool, RegionError> {
        self.topology.lock().check(self.id, context).map(|_| true)
    }

    fn try_read(&self, context: RegionContext) -> Result<Option<RegionReader>, RegionError> {
        self.view(context).map(Some)
    }

    fn read_newest<T>(
        &self,
        context: RegionContext,
        read: impl FnOnce(&dyn NewestReader, &Region) -> T,
    ) -> Result<Option<(T, Floor)>, RegionError> {
        let (region, _) = self.topology.lock().check(self.id, context)?;
        let done = read(&self.data, &region);
        let topology = self.topology.lock();
        topology.check(self.id, context)?;
        Ok(Some((done, topology.floors(context.region).reads)))
    }

    async fn read(&self, context: RegionContext) -> Result<RegionReader, RegionError> {
        self.view(context)
    }

    fn regions(&self) -> Vec<RegionStatus> {
        self.topology.lock().regions_on(self.id)
    }

    fn leader(&self, region: RegionId) -> Option<StoreId> {
        self.topology.lock().leader(region)
    }

    fn sample<T>(
        &self,
        region: RegionId,
        look: impl FnOnce(&Region, Term) -> T,
    ) -> Result<Option<(T, LogIndex, Basis)>, RegionError> {
        let state = self.replica(region)?;
        let (region, term) = self.topology.lock().check(self.id, RegionContext::from(&*state.region))?;
        let looked = look(&region, term);
        Ok(Some((looked, state.applied, Basis { region: Arc::new(region), term })))
    }

    /// All stores share the data, so every replica has applied all of it.
    fn replica(&self, region: RegionId) -> Result<ReplicaState, RegionError> {
        let not_here = || RegionError::RegionNotFound { region, store: self.id };
        let region = self.topology.lock().region(region).cloned().ok_or_else(not_here)?;
        let generation = DataGeneration::new(region.epoch.version);
        Ok(ReplicaState { region: Arc::new(region), generation, applied: APPLIED })
    }

    fn replica_newest<T>(
        &self,
        context: RegionContext,
        read: impl FnOnce(&ReplicaState, &dyn NewestReader) -> Option<T>,
    ) -> Result<Option<(T, Floor)>, RegionError> {
        let state = self.current(context)?;
        let done = read(&state, &self.data);
        self.current(context)?;
        let floor = self.topology.lock().floors(context.region).reads;
        Ok(done.map(|done| (done, floor)))
    }

    fn replica_view(
        &self,
        context: RegionContext,
        is_enough: impl FnOnce(&ReplicaState) -> bool,
    ) -> Result<Option<RegionReader>, RegionError> {
        let state = self.current(context)?;
        let region = Region::clone(&state.region);
        Ok(is_enough(&state).then(|| RegionReader::new(self.data.snapshot(), region, Term::new(1))))
    }

    async fn applied(&self, _region: RegionId, _index: LogIndex) -> Result<(), RegionError> {
        Ok(())
    }

    fn floors(&self, region: RegionId) -> Floors {
        self.topology.lock().floors(region)
    }

    fn poison(&self, why: &str) {
        // All stores share the data: no other one could serve.
        panic!("the data of the cluster is corrupt: {why}");
    }
}

impl RegionStore for StoreRegions {
    fn locate(&self, key: &[u8]) -> Option<RegionStatus> {
        self.topology.lock().locate(self.id, key)
    }

    fn evaluate(&self, context: RegionContext) -> Result<RegionReader, RegionError> {
        self.view(context)
    }

    /// As with a real store, what has begun goes on if the caller stops waiting.
    async fn propose(
        &self,
        basis: &Basis,
        batch: WriteBatch,
        date: Option<Floor>,
        observer: ProposalObserver,
    ) -> Result<LogIndex, ProposeError> {
        let (regions, basis) = (self.clone(), basis.clone());
        let proposal = async move {
            // A real store replicates here. Let other requests run, so that they contend with this one.
            tokio::task::yield_now().await;
            observer.appended(APPLIED);
            let outcome = regions.apply(&basis, &batch, date);
            observer.answered(&outcome);
            outcome
        };
        DetachOnDrop::new(proposal).await
    }

    async fn raise_floors(&self, basis: &Basis, floors: Floors) -> Result<LogIndex, ProposeError> {
        let mut topology = self.topology.lock();
        topology.check(self.id, RegionContext::from(&*basis.region))?;
        topology.raise_floors(basis.region.id, floors);
        Ok(APPLIED)
    }
}

impl StoreRegions {
    fn apply(&self, basis: &Basis, batch: &WriteBatch, date: Option<Floor>) -> Result<LogIndex, ProposeError> {
        let (bytes, limit) = (batch.size(), self.max_proposal_bytes);
        if bytes > limit {
            return Err(ProposeError::TooLarge { bytes, limit });
        }
        let topology = self.topology.lock();
        let (id, epoch) = (basis.region.id, basis.region.epoch);
        let (_, term) = topology.check(self.id, RegionContext { region: id, epoch })?;
        if term != basis.term || date.is_some_and(|date| date <= topology.floors(id).writes) {
            return Err(RegionError::StaleCommand { region: id }.into());
        }
        match self.data.write(batch) {
            Ok(()) => Ok(APPLIED),
            Err(error) => panic!("the store in memory failed: {error}"),
        }
    }
}

impl RegionReader {
    /// A view of `region` on its leader in `term`.
    pub fn new(snapshot: MemorySnapshot, region: Region, term: Term) -> RegionReader {
        RegionReader { snapshot, region, term }
    }

    fn check(&self, inside: bool) -> StoreResult<()> {
        if inside { Ok(()) } else { Err(StoreError::Backend(format!("read outside region {}", self.region.id))) }
    }
}

impl Reader for RegionReader {
    fn get(&self, cf: Cf, key: &[u8]) -> StoreResult<Option<Vec<u8>>> {
        self.check(self.region.contains(key))?;
        self.snapshot.get(cf, key)
    }

    fn cursor(&self, cf: Cf, lower: &[u8], upper: &[u8]) -> StoreResult<Box<dyn Cursor>> {
        self.check(self.region.contains_range(lower, upper))?;
        self.snapshot.cursor(cf, lower, upper)
    }

    fn limited_cursor(&self, cf: Cf, lower: &[u8], upper: &[u8], skips: usize) -> StoreResult<Box<dyn Cursor>> {
        self.check(self.region.contains_range(lower, upper))?;
        self.snapshot.limited_cursor(cf, lower, upper, skips)
    }
}

impl RegionView for RegionReader {
    fn region(&self) -> &Region {
        &self.region
    }

    fn term(&self) -> Term {
        self.term
    }

    /// Everything is in memory.
    fn cached(&self) -> RegionReader {
        self.clone()
    }
}

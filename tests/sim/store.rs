//! The store of a key-value server: the production handle, with the clock set before each call and the store's loop
//! woken after it.

use std::sync::Arc;
#[cfg(feature = "planted-bugs")]
use std::time::Duration;

use engine::WriteBatch;
use engine::store::memory::MemoryStore;
use engine::store::{NewestReader, Reader};
use kv::region_store::{RegionReads, RegionStore};
use raftstore::ports::LeaderMemory;
use raftstore::{
    Basis, Floor, Floors, LogIndex, ProposalObserver, ProposeError, Region, RegionContext, RegionError, RegionId,
    RegionSnapshot, RegionStatus, ReplicaState, StoreHandle, StoreId, Term,
};

use crate::nodes::Nodes;

/// How long a write is preempted at a planted bug.
#[cfg(feature = "planted-bugs")]
const PREEMPTED: Duration = Duration::from_millis(5);

/// See the module documentation.
#[derive(Clone)]
pub(crate) struct SimStore {
    handle: StoreHandle<MemoryStore>,
    nodes: Arc<Nodes>,
}

impl SimStore {
    pub(crate) fn new(handle: StoreHandle<MemoryStore>, nodes: Arc<Nodes>) -> SimStore {
        SimStore { handle, nodes }
    }

    /// The handle, for a call at this moment.
    fn now(&self) -> &StoreHandle<MemoryStore> {
        self.nodes.set_clocks();
        self.nodes.wake(self.handle.store_id());
        &self.handle
    }
}

impl RegionReads for SimStore {
    type View = RegionSnapshot<MemoryStore>;

    fn store_id(&self) -> StoreId {
        self.handle.store_id()
    }

    fn has_lease(&self, context: RegionContext) -> Result<bool, RegionError> {
        self.now().has_lease(context)
    }

    fn try_read(&self, context: RegionContext) -> Result<Option<Self::View>, RegionError> {
        self.now().try_read(context)
    }

    fn read_newest<T>(
        &self,
        context: RegionContext,
        read: impl FnOnce(&dyn NewestReader, &Region) -> T,
    ) -> Result<Option<(T, Floor)>, RegionError> {
        self.now().read_newest(context, read)
    }

    async fn read(&self, context: RegionContext) -> Result<Self::View, RegionError> {
        self.now().read(context).await
    }

    fn regions(&self) -> Vec<RegionStatus> {
        self.now().regions()
    }

    fn leader(&self, region: RegionId) -> Option<StoreId> {
        self.now().leader(region)
    }

    fn sample<T>(
        &self,
        region: RegionId,
        look: impl FnOnce(&Region, Term) -> T,
    ) -> Result<Option<(T, LogIndex, Basis)>, RegionError> {
        self.now().sample(region, look)
    }

    fn replica(&self, region: RegionId) -> Result<ReplicaState, RegionError> {
        self.now().replica(region)
    }

    fn replica_newest<T>(
        &self,
        context: RegionContext,
        read: impl FnOnce(&ReplicaState, &dyn NewestReader) -> Option<T>,
    ) -> Result<Option<(T, Floor)>, RegionError> {
        self.now().replica_newest(context, read)
    }

    fn replica_view(
        &self,
        context: RegionContext,
        is_enough: impl FnOnce(&ReplicaState) -> bool,
    ) -> Result<Option<Self::View>, RegionError> {
        self.now().replica_snapshot(context, is_enough)
    }

    async fn applied(&self, region: RegionId, index: LogIndex) -> Result<(), RegionError> {
        self.now().applied(region, index).await
    }

    fn floors(&self, region: RegionId) -> Floors {
        self.now().floors(region)
    }

    fn poison(&self, why: &str) {
        self.now().poison(why);
    }
}

impl RegionStore for SimStore {
    fn locate(&self, key: &[u8]) -> Option<RegionStatus> {
        self.now().locate(key)
    }

    fn basis(&self, context: RegionContext) -> Result<Basis, RegionError> {
        self.now().basis(context)
    }

    fn evaluate(&self, context: RegionContext) -> Result<Self::View, RegionError> {
        self.now().evaluate(context)
    }

    fn evaluate_cached<T>(&self, basis: &Basis, evaluate: impl FnOnce(&dyn Reader) -> T) -> Result<T, RegionError> {
        self.now().evaluate_cached(basis, evaluate)
    }

    /// As long as a thread may be preempted.
    #[cfg(feature = "planted-bugs")]
    async fn preempted(&self) {
        tokio::time::sleep(PREEMPTED).await;
    }

    fn set_leader_memory(&self, memory: Arc<dyn LeaderMemory>) {
        self.handle.set_leader_memory(memory);
    }

    async fn propose(
        &self,
        basis: &Basis,
        batch: WriteBatch,
        date: Option<Floor>,
        observer: ProposalObserver,
    ) -> Result<LogIndex, ProposeError> {
        self.now().propose_observed(basis, batch, date, observer).await
    }

    async fn raise_floors(&self, basis: &Basis, floors: Floors) -> Result<LogIndex, ProposeError> {
        self.now().raise_floors(basis, floors).await
    }
}

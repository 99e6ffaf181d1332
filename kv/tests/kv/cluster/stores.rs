//! Replicated stores with their servers in one process, and the transport between them. The tests of `txn` include this
//! file by its path.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use engine::WriteBatch;
use engine::disk::SimDisk;
use engine::log::{LogEngine, LogOptions};
use engine::store::Store;
use engine::store::memory::MemoryStore;
use kv::Key;
use kv::concurrency::TimestampSource;
use kv::memory::CountingTso;
use kv::server::{KvServer, KvServerConfig};
use parking_lot::Mutex;
use prometheus::Registry;
use raftstore::ports::{Delivery, DeliveryDone, NoListener, RaftMessage, SendError, Transport};
use raftstore::snapshot::{SnapshotFiles, SnapshotKey};
use raftstore::{
    Clock, Epoch, PeerId, PeerMeta, PeerRole, RealClock, Region, RegionId, StoreConfig, StoreHandle, StoreId,
    StoreParts, StoreRuntime,
};

pub(crate) type Handle = StoreHandle<MemoryStore>;
pub(crate) type Server = KvServer<Handle>;

/// The running stores.
#[derive(Default)]
pub(crate) struct RunningStores {
    stores: Mutex<BTreeMap<StoreId, RunningStore>>,
}

struct RunningStore {
    handle: Handle,
    server: Server,
    data: MemoryStore,
}

impl RunningStores {
    pub(crate) fn server(&self, store: StoreId) -> Option<Server> {
        self.stores.lock().get(&store).map(|store| store.server.clone())
    }

    pub(crate) fn ids(&self) -> Vec<StoreId> {
        self.stores.lock().keys().copied().collect()
    }

    pub(crate) fn handle(&self, store: StoreId) -> Option<Handle> {
        self.stores.lock().get(&store).map(|store| store.handle.clone())
    }

    /// Writes rows into one replica's data, bypassing Raft.
    pub(crate) fn write_raw(&self, store: StoreId, batch: &WriteBatch) {
        let data = self.stores.lock().get(&store).map(|store| store.data.clone());
        data.unwrap().write(batch).unwrap();
    }
}

/// Delivers messages at once by function call. A store that does not run is unreachable.
struct DirectTransport(Arc<RunningStores>);

impl Transport for DirectTransport {
    fn send(&self, message: RaftMessage) -> Result<(), SendError> {
        let Some(handle) = self.0.handle(message.to.store) else { return Err(SendError::Unreachable) };
        handle.deliver(message).map_err(|_| SendError::Unreachable)
    }

    fn send_snapshot(&self, _: RaftMessage, _: SnapshotKey, done: DeliveryDone) {
        // No store falls behind far enough to need a snapshot.
        done(Delivery::Busy);
    }
}

/// A cluster of stores on their own threads.
pub(crate) struct Stores {
    running: Arc<RunningStores>,
    runtimes: BTreeMap<StoreId, StoreRuntime<MemoryStore>>,
}

impl Stores {
    /// Starts a store with default settings for each of `count`. See [`Stores::with_config`].
    pub(crate) fn start(count: u64, split: Key) -> Stores {
        let registries = (0..count).map(|_| Registry::new()).collect();
        Stores::with_config(registries, split, &KvServerConfig::default(), Arc::new(CountingTso::new(0)))
    }

    /// Starts a store for each of the registries, into which its server counts. There are two regions: region 1 below
    /// `split`, region 2 from there on.
    pub(crate) fn with_config(
        registries: Vec<Registry>,
        split: Key,
        config: &KvServerConfig,
        timestamps: Arc<dyn TimestampSource>,
    ) -> Stores {
        let count = registries.len() as u64;
        let mut stores = Stores { running: Arc::default(), runtimes: BTreeMap::new() };
        let split = split.to_storage();
        let regions = [
            region(RegionId::SYSTEM, Vec::new(), split.clone(), count),
            region(RegionId::FIRST_DATA, split, Vec::new(), count),
        ];
        for (id, registry) in (1..=count).map(StoreId::new).zip(registries) {
            let data = MemoryStore::new();
            let runtime = start(id, &regions, data.clone(), &stores.running);
            let server = KvServer::new(runtime.handle(), timestamps.clone(), config, &registry).unwrap();
            let store = RunningStore { handle: runtime.handle(), server, data };
            stores.running.stores.lock().insert(id, store);
            stores.runtimes.insert(id, runtime);
        }
        stores
    }

    pub(crate) fn running(&self) -> Arc<RunningStores> {
        Arc::clone(&self.running)
    }

    /// Asks the region's leader to transfer leadership to `to`. Does nothing if the region has no leader now.
    pub(crate) fn transfer_leader(&self, region: RegionId, to: StoreId) {
        for id in self.running.ids() {
            let _ = self.running.handle(id).map(|handle| handle.transfer_leader(region, to));
        }
    }

    /// Stops the store without notice. What it has not replicated is lost.
    pub(crate) fn kill(&mut self, store: StoreId) {
        self.running.stores.lock().remove(&store);
        self.runtimes.remove(&store);
    }
}

impl Drop for Stores {
    fn drop(&mut self) {
        // The transport holds handles and the handles hold the transport: break the cycle.
        self.running.stores.lock().clear();
    }
}

fn region(id: RegionId, start: Vec<u8>, end: Vec<u8>, stores: u64) -> Region {
    let peer =
        |store| PeerMeta { id: PeerId::new(id.get() * 10 + store), store: StoreId::new(store), role: PeerRole::Voter };
    Region { id, start, end, epoch: Epoch { conf_ver: 1, version: 1 }, peers: (1..=stores).map(peer).collect() }
}

fn start(
    id: StoreId,
    regions: &[Region],
    store: MemoryStore,
    running: &Arc<RunningStores>,
) -> StoreRuntime<MemoryStore> {
    let options = LogOptions { identity: Some(u128::from(id.get())), ..LogOptions::default() };
    let (log, _) = LogEngine::open(SimDisk::new().session(), options).unwrap();
    raftstore::bootstrap(&store, &log, regions).unwrap();
    let config = StoreConfig {
        tick_interval: Duration::from_millis(20),
        max_lease: Duration::from_millis(150),
        stop_timeout: Duration::ZERO,
        ..StoreConfig::default()
    };
    let parts = StoreParts {
        store_id: id,
        config,
        store,
        log,
        snapshots: SnapshotFiles::open(SimDisk::new().session()).unwrap(),
        transport: Arc::new(DirectTransport(Arc::clone(running))),
        listener: Arc::new(NoListener),
        clock: Arc::new(RealClock::new()) as Arc<dyn Clock>,
        seed: id.get(),
        registry: Registry::new(),
    };
    StoreRuntime::start(parts).unwrap()
}

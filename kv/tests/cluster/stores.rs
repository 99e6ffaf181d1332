//! Three stores with their servers, and the wire between them. The tests of `txn` use this file too, by its path.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use engine::WriteBatch;
use engine::disk::SimDisk;
use engine::log::{LogEngine, LogOptions};
use engine::store::Store;
use engine::store::memory::MemoryStore;
use kv::Key;
use kv::server::{KvServer, KvServerConfig};
use parking_lot::Mutex;
use prometheus::Registry;
use raftstore::ports::{NoListener, RaftMessage, SendError, Transport};
use raftstore::snapshot::{SnapshotFiles, SnapshotKey};
use raftstore::{
    Clock, Epoch, PeerId, PeerMeta, PeerRole, RealClock, Region, RegionId, StoreConfig, StoreHandle, StoreId,
    StoreParts, StoreRuntime,
};

pub(crate) type Handle = StoreHandle<MemoryStore>;
pub(crate) type Server = KvServer<Handle>;

/// What tests and the wire see of the stores that run.
#[derive(Default)]
pub(crate) struct Shared {
    running: Mutex<BTreeMap<StoreId, Running>>,
}

/// A store that runs.
struct Running {
    handle: Handle,
    server: Server,
    data: MemoryStore,
}

impl Shared {
    pub(crate) fn server(&self, store: StoreId) -> Option<Server> {
        self.running.lock().get(&store).map(|running| running.server.clone())
    }

    pub(crate) fn ids(&self) -> Vec<StoreId> {
        self.running.lock().keys().copied().collect()
    }

    pub(crate) fn handle(&self, store: StoreId) -> Option<Handle> {
        self.running.lock().get(&store).map(|running| running.handle.clone())
    }

    /// Writes rows into one replica's data, past Raft.
    pub(crate) fn tamper(&self, store: StoreId, batch: &WriteBatch) {
        let data = self.running.lock().get(&store).map(|running| running.data.clone());
        data.unwrap().write(batch).unwrap();
    }
}

/// Delivers at once; to a store that does not run, not at all.
struct Wire(Arc<Shared>);

impl Transport for Wire {
    fn send(&self, message: RaftMessage) -> Result<(), SendError> {
        let Some(handle) = self.0.handle(message.to.store) else { return Err(SendError::Unreachable) };
        handle.deliver(message).map_err(|_| SendError::Unreachable)
    }

    fn send_snapshot(&self, _: RaftMessage, _: SnapshotKey, done: Box<dyn FnOnce(bool) + Send>) {
        // No store falls behind far enough here.
        done(false);
    }
}

pub(crate) struct Stores {
    shared: Arc<Shared>,
    runtimes: BTreeMap<StoreId, StoreRuntime<MemoryStore>>,
}

impl Stores {
    /// Starts `count` stores with region 1 below `split` and region 2 from there on.
    pub(crate) fn start(count: u64, split: Key) -> Stores {
        let mut stores = Stores { shared: Arc::default(), runtimes: BTreeMap::new() };
        let split = split.to_storage();
        let regions = [
            region(RegionId::SYSTEM, Vec::new(), split.clone(), count),
            region(RegionId::FIRST_DATA, split, Vec::new(), count),
        ];
        for id in (1..=count).map(StoreId::new) {
            let data = MemoryStore::new();
            let runtime = start(id, &regions, data.clone(), &stores.shared);
            let server = KvServer::new(runtime.handle(), &KvServerConfig::default(), &Registry::new()).unwrap();
            let running = Running { handle: runtime.handle(), server, data };
            stores.shared.running.lock().insert(id, running);
            stores.runtimes.insert(id, runtime);
        }
        stores
    }

    pub(crate) fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }

    /// Asks whoever leads to hand over; nothing happens if nobody does just now.
    pub(crate) fn transfer_leader(&self, region: RegionId, to: StoreId) {
        for id in self.shared.ids() {
            let _ = self.shared.handle(id).map(|handle| handle.transfer_leader(region, to));
        }
    }

    /// The store hears and says nothing any more; what it had not replicated is lost.
    pub(crate) fn kill(&mut self, store: StoreId) {
        self.shared.running.lock().remove(&store);
        self.runtimes.remove(&store);
    }
}

impl Drop for Stores {
    fn drop(&mut self) {
        // The wire holds handles, and handles the wire: let go of both.
        self.shared.running.lock().clear();
    }
}

fn region(id: RegionId, start: Vec<u8>, end: Vec<u8>, stores: u64) -> Region {
    let peer =
        |store| PeerMeta { id: PeerId::new(id.get() * 10 + store), store: StoreId::new(store), role: PeerRole::Voter };
    Region { id, start, end, epoch: Epoch { conf_ver: 1, version: 1 }, peers: (1..=stores).map(peer).collect() }
}

fn start(id: StoreId, regions: &[Region], store: MemoryStore, shared: &Arc<Shared>) -> StoreRuntime<MemoryStore> {
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
        transport: Arc::new(Wire(Arc::clone(shared))),
        listener: Arc::new(NoListener),
        clock: Arc::new(RealClock::new()) as Arc<dyn Clock>,
        seed: id.get(),
        registry: Registry::new(),
    };
    StoreRuntime::start(parts).unwrap()
}

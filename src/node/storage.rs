//! The storage of a node: the Raft log, the key-value store and the snapshot files, opened in this order.
//!
//! Opening recovers from a crash and creates the initial regions if they do not exist yet. It blocks on the disk, so it
//! runs on a thread of its own.

use std::sync::Arc;
use std::time::Duration;

use engine::disk::RealDisk;
use engine::log::{LogEngine, LogOptions};
use engine::store::rocks::{RocksOptions, RocksStore, StoreMetrics, check_format};
use kv::gc::{Collection, GcConfig, GcMetrics, Worker};
use prometheus::Registry;
use raftstore::snapshot::SnapshotFiles;
use raftstore::{StoreParts, StoreRuntime};

use super::error::{ServingError, in_layer};
use super::state::NodeState;
use crate::data_dir::{DataDirError, Ident};

/// The interval between two updates of the key-value store's gauges.
const OBSERVE_INTERVAL: Duration = Duration::from_secs(1);

/// The folder of the key-value store. It is created after the log, so its existence proves that a log existed.
const STORE: &str = "kv";

/// The opened storage of a node.
pub(super) struct Storage {
    pub(super) store: RocksStore,
    pub(super) store_metrics: StoreMetrics,
    pub(super) log: LogEngine,
    pub(super) snapshots: SnapshotFiles,
    /// Collects the old versions of `store`.
    pub(super) collect: Worker<RocksStore>,
}

/// Opens the storage, and creates the initial regions if they do not exist yet.
pub(super) async fn open(state: Arc<NodeState>, ident: Ident, registry: Registry) -> Result<Storage, ServingError> {
    let open = move || open_blocking(&state, &ident, registry);
    tokio::task::spawn_blocking(open).await.map_err(in_layer("storage"))?
}

fn open_blocking(state: &NodeState, ident: &Ident, registry: Registry) -> Result<Storage, ServingError> {
    let store_metrics = StoreMetrics::new(&registry).map_err(in_layer("key-value store"))?;
    let gc_metrics = GcMetrics::new(&registry).map_err(in_layer("key-value store"))?;
    // Before the log is opened, which may change it: another release may have written all of them.
    if state.data().has_folder(STORE) {
        check_format(&state.data().folder(STORE)?).map_err(in_layer("key-value store"))?;
    }
    let log_dir = state.data().folder("log")?;
    let disk = RealDisk::open(&log_dir).map_err(in_layer("Raft log"))?;
    // The store's folder exists only if a log existed. A missing log is then an error; it is not created again.
    let create = !state.data().has_folder(STORE);
    let options = LogOptions { create, registry: Some(registry), ..state.config.raft_log.options() };
    let (log, report) = LogEngine::open(disk, options).map_err(in_layer("Raft log"))?;
    tracing::info!(?report, "opened the Raft log");
    let cache = usize::try_from(state.config.cache_bytes).unwrap_or(usize::MAX);
    let options = RocksOptions { block_cache_bytes: cache, ..RocksOptions::default() };
    let collection = Collection::new(GcConfig::default(), state.collect_bound.clone(), gc_metrics);
    let store = RocksStore::open_with(&state.data().folder(STORE)?, &options, collection.hooks());
    let store = store.map_err(in_layer("key-value store"))?;
    let disk = RealDisk::open(state.data().folder("snap")?).map_err(in_layer("snapshot files"))?;
    let snapshots = SnapshotFiles::open(disk).map_err(in_layer("snapshot files"))?;
    if !ident.bootstrapped {
        let regions = ident.plan.iter().flat_map(|plan| plan.regions());
        let own: Vec<_> = regions.filter(|region| region.peer_on(ident.store_id).is_some()).collect();
        raftstore::bootstrap(&store, &log, &own).map_err(in_layer("first regions"))?;
        state.update_ident(|present| {
            Ok::<_, DataDirError>(present.map(|present| Ident { bootstrapped: true, ..present.clone() }))
        })?;
    }
    let collect = collection.worker(store.clone());
    Ok(Storage { store, store_metrics, log, snapshots, collect })
}

/// Recovers the regions and starts the threads of the store.
pub(super) async fn start_store(parts: StoreParts<RocksStore>) -> Result<StoreRuntime<RocksStore>, ServingError> {
    let start = move || StoreRuntime::start(parts);
    tokio::task::spawn_blocking(start).await.map_err(in_layer("store"))?.map_err(in_layer("store"))
}

/// Updates the key-value store's gauges periodically, and never ends. Reads only counters in memory.
pub(super) async fn observe_metrics(store: RocksStore, metrics: StoreMetrics) {
    loop {
        metrics.observe(&store);
        tokio::time::sleep(OBSERVE_INTERVAL).await;
    }
}

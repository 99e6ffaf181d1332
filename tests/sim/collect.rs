//! The collection of old versions on a simulated store: the production worker, over the store in memory.
//!
//! Only the survey finds garbage here: apply writes through a handle of the store without hooks, so nothing is counted.
//! Surveys are frequent, and each covers the whole store. What a compaction drops is gone from the disk as well, also
//! of a store that crashes right after it.

use std::sync::Arc;
use std::time::Duration;

use engine::store::memory::MemoryStore;
use kv::gc::{CollectBound, Collection, GcConfig, GcMetrics};
use prometheus::Registry;
use raftstore::StoreId;

use crate::nodes::Nodes;
use crate::wire::AbortOnDrop;

/// The interval between two surveys, in virtual time.
const SURVEY_INTERVAL: Duration = Duration::from_millis(500);
/// The shortest pause between two turns.
const PAUSE: Duration = Duration::from_millis(20);

/// Collects on a store, in one life of its node, what the bound allows. Ends with the answer.
pub(crate) fn start(store: &MemoryStore, bound: &CollectBound, nodes: &Arc<Nodes>, id: StoreId) -> AbortOnDrop {
    let config = GcConfig { survey_interval: SURVEY_INTERVAL, settle_interval: SURVEY_INTERVAL, ..GcConfig::default() };
    let metrics = GcMetrics::new(&Registry::new()).expect("a registry of its own");
    let collection = Collection::new(config, bound.clone(), metrics);
    let mut worker = collection.worker(store.rehooked(collection.hooks()));
    let nodes = Arc::clone(nodes);
    let run = async move {
        loop {
            let clock = || Duration::from_nanos(nodes.elapsed());
            let wait = if nodes.is_paused(id) { Ok(PAUSE) } else { worker.turn(&clock) };
            // A store that fails is poisoned, and its node ends.
            let Ok(wait) = wait else { return };
            tokio::time::sleep(wait.max(PAUSE)).await;
        }
    };
    AbortOnDrop(tokio::spawn(run).abort_handle())
}

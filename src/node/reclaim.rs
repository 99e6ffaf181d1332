//! Removes the rows of dropped and truncated tables, in the background, from the node that leads the system region.
//!
//! Any node could do it; one is enough, and two would only run into each other.

use std::time::Duration;

use engine::store::rocks::RocksStore;
use raftstore::{RegionId, StoreHandle};
use sql::catalog::reclaim::Reclaimer;
use txn::Database;

/// Between two batches while there is more to remove: the foreground goes first.
const BUSY_INTERVAL: Duration = Duration::from_millis(100);
/// Between two looks otherwise, and after a failure.
const IDLE_INTERVAL: Duration = Duration::from_secs(60);

/// Reclaims for ever.
pub(crate) async fn run(database: Database, store: StoreHandle<RocksStore>) {
    let mut reclaimer = Reclaimer::new();
    loop {
        let leads = store.region(RegionId::SYSTEM).is_some_and(|status| status.is_leader);
        let more = leads
            && match reclaimer.step(&database).await {
                Ok(progress) => progress.more,
                Err(error) => {
                    tracing::info!(%error, "removing the rows of dropped tables is put off");
                    false
                }
            };
        tokio::time::sleep(if more { BUSY_INTERVAL } else { IDLE_INTERVAL }).await;
    }
}

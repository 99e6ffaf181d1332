//! Row locks in the memory of a region's leader, for transactions that lock before they write.
//!
//! `acquire.rs` takes them, under the latch of the key: it looks at the table here, *then* at the key's records. A
//! prewrite that meets the lock of another transaction is refused. A write that ends a transaction on a key releases
//! its lock when it is applied, and whoever waits for a lock record is told.
//!
//! The locks of a region are those of one term. A leader of another term knows nothing of them: they are lost, and
//! their transactions find out when they prewrite.
//!
//! # Layers
//!
//! 1. `detector`, `status`, `table`: state machines: who waits for whom; locks and queues; their listing
//! 2. `region`: the locks of a region, and the tasks that wait for them

mod detector;
mod region;
mod status;
mod table;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::RwLock;
use raftstore::RegionId;

pub(crate) use detector::Detector;
pub(crate) use region::{Attempt, Place, RegionLocks};
pub use status::{RowLockStatus, RowWait};
pub(crate) use table::LocksFull;
pub use table::RowLocksConfig;

/// The row locks of all regions of a store. Clones share them.
#[derive(Clone)]
pub(crate) struct RowLocks {
    regions: Arc<RwLock<HashMap<RegionId, Arc<RegionLocks>>>>,
    config: RowLocksConfig,
}

impl RowLocks {
    pub(crate) fn new(config: RowLocksConfig) -> RowLocks {
        RowLocks { regions: Arc::default(), config }
    }

    /// The locks of a region; `None` if it never had any.
    pub(crate) fn known_region(&self, region: RegionId) -> Option<Arc<RegionLocks>> {
        self.regions.read().get(&region).map(Arc::clone)
    }

    /// All locks and waiters, by region and row; the waiters of a row in their order.
    pub(crate) fn list(&self, now: Instant) -> Vec<RowLockStatus> {
        let regions: Vec<(RegionId, Arc<RegionLocks>)> =
            self.regions.read().iter().map(|(region, locks)| (*region, Arc::clone(locks))).collect();
        let mut all = Vec::new();
        for (region, locks) in regions {
            all.extend(locks.list(region, now));
        }
        all.sort_by(|a, b| (a.region, &a.key, a.wait.is_some()).cmp(&(b.region, &b.key, b.wait.is_some())));
        all
    }

    /// The locks of a region, created at the first call.
    pub(crate) fn region(&self, region: RegionId) -> Arc<RegionLocks> {
        if let Some(known) = self.known_region(region) {
            return known;
        }
        let create = || Arc::new(RegionLocks::new(self.config));
        Arc::clone(self.regions.write().entry(region).or_insert_with(create))
    }
}

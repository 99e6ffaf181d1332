//! Row locks in the memory of a region's leader, for transactions that lock before they write.
//!
//! `acquire.rs` takes them, under the latch of the key: it looks at the table here, *then* at the key's records. A
//! prewrite that meets the lock of another transaction is refused. A write that ends a transaction on a key releases
//! its lock when it is applied, and whoever waits for a lock record is told.
//!
//! The locks of a region are those of one term. A leader that hands over sends them along (`handover`), and the leader
//! of the next term begins with them. Otherwise a leader of another term knows nothing of them: they are lost, and
//! their transactions find out when they prewrite.
//!
//! From the moment at which they are packed nothing changes in them: requests are refused, and those that wait are sent
//! to the next leader, where their transactions have kept their places. A write that is in the log then, and ends a
//! transaction, counts as applied: the next leader has that log. If the leader finds out that it is not replaced, it
//! goes on where it stopped.
//!
//! # Layers
//!
//! 1. `detector`, `queue`, `status`: state machines: who waits for whom; the locks of one key; the form of locks in
//!    listings
//! 2. `handover`: the form of locks in the message to the next leader
//! 3. `table`: the state machine of locks and queues
//! 4. `region`: the locks of a region, and the tasks that wait for them

mod detector;
mod handover;
mod queue;
mod region;
mod status;
mod table;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::RwLock;
use raftstore::ports::LeaderMemory;
use raftstore::{RegionId, Term};

#[cfg(feature = "planted-bugs")]
use crate::planted::PlantedBug;
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
    #[cfg(feature = "planted-bugs")]
    pub(crate) planted_bug: Option<PlantedBug>,
}

impl LeaderMemory for RowLocks {
    fn pack(&self, region: RegionId, term: Term) -> Option<Vec<u8>> {
        #[cfg(feature = "planted-bugs")]
        if self.planted_bug == Some(PlantedBug::LocksNotHandedOver) {
            return None;
        }
        self.region(region).pack(term, now())
    }

    fn inherit(&self, region: RegionId, term: Term, packed: &[u8]) {
        let locks = self.region(region);
        if let Err(why) = locks.inherit(term, packed, now()) {
            tracing::warn!(%region, %term, why, "the row locks of the last leader are lost");
        }
        #[cfg(feature = "planted-bugs")]
        if self.planted_bug == Some(PlantedBug::WaiterForgotten) {
            locks.forget_owners();
        }
    }

    fn keep(&self, region: RegionId, term: Term) {
        if let Some(locks) = self.known_region(region) {
            locks.keep(term);
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the edge where waits for rows read the clock")]
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

impl RowLocks {
    pub(crate) fn new(config: RowLocksConfig) -> RowLocks {
        RowLocks {
            regions: Arc::default(),
            config,
            #[cfg(feature = "planted-bugs")]
            planted_bug: None,
        }
    }

    /// The locks of a region; `None` if it never had any.
    pub(crate) fn known_region(&self, region: RegionId) -> Option<Arc<RegionLocks>> {
        self.regions.read().get(&region).map(Arc::clone)
    }

    /// At most `limit` locks and waiters of these regions in these terms, by region and row; the waiters of a row in
    /// their order. Rows that somebody waits for come before others if there are too many. The second part is the
    /// number of all.
    pub(crate) fn list(
        &self,
        led: impl Iterator<Item = (RegionId, Term)>,
        limit: usize,
        now: Instant,
    ) -> (Vec<RowLockStatus>, usize) {
        let (mut listed, mut total) = (Vec::new(), 0);
        for (region, term) in led {
            let Some(locks) = self.known_region(region) else { continue };
            let (of_region, all) = locks.list(region, term, limit, now);
            listed.extend(of_region);
            total += all;
        }
        if listed.len() > limit {
            listed.sort_by_key(|status| !status.is_awaited);
            listed.truncate(limit);
        }
        listed.sort_by(|a, b| (a.region, &a.key, a.wait.is_some()).cmp(&(b.region, &b.key, b.wait.is_some())));
        (listed, total)
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

//! What the replicas of a store have published: how far the store may collect.

use raftstore::RegionStatus;
use tso::Timestamp;

use super::bound::CollectBound;
use crate::region_store::{RegionReads, timestamp};

/// Raises the bound of a store to the least safe point that all its replicas have published and applied. To be called
/// every now and then. A replica that lags holds the bound of its store back, and of no other.
pub fn follow_published<H: RegionReads>(store: &H, bound: &CollectBound) {
    let of_replica = |status: RegionStatus| timestamp(store.floors(status.region.id).reads);
    if let Some(least) = store.regions().into_iter().map(of_replica).min().filter(|least| *least > Timestamp::ZERO) {
        bound.raise(least);
    }
}

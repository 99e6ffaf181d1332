//! Checks that an index stands for one entry and one state on every replica that applied it.

use std::collections::BTreeMap;

use raftstore::{LogIndex, RegionId, StoreId};

use super::{Checked, violated};

/// The first hash observed for an index, and the store that reported it.
type Seen = BTreeMap<(RegionId, LogIndex), (u64, StoreId)>;

/// Invariants over the whole run, all replicas and all lives:
/// 1. Replicas that applied an index hold the same entry there.
/// 2. Replicas that applied exactly up to an index hold the same data.
#[derive(Default)]
pub(crate) struct ReplicaChecker {
    entries: Seen,
    states: Seen,
}

impl ReplicaChecker {
    /// `store` has applied `index`; its entry has this hash.
    pub(crate) fn on_entry(&mut self, store: StoreId, region: RegionId, index: LogIndex, hash: u64) -> Checked {
        agree(&mut self.entries, "entry", store, region, index, hash)
    }

    /// `store` has applied everything up to `index` and nothing beyond; its data has this hash.
    pub(crate) fn on_state(&mut self, store: StoreId, region: RegionId, index: LogIndex, hash: u64) -> Checked {
        agree(&mut self.states, "data", store, region, index, hash)
    }
}

fn agree(seen: &mut Seen, what: &str, store: StoreId, region: RegionId, index: LogIndex, hash: u64) -> Checked {
    let (first, by) = *seen.entry((region, index)).or_insert((hash, store));
    if first == hash {
        return Ok(());
    }
    violated(format!("region {region} index {index}: the {what} of store {store} is not that of store {by}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differing_replicas_are_found() {
        let (one, two, region) = (StoreId::new(1), StoreId::new(2), RegionId::new(1));
        let mut checker = ReplicaChecker::default();
        assert!(checker.on_entry(one, region, LogIndex::new(5), 77).is_ok());
        assert!(checker.on_entry(two, region, LogIndex::new(5), 77).is_ok());
        assert!(checker.on_state(two, region, LogIndex::new(5), 78).is_ok());
        assert!(checker.on_state(one, RegionId::new(2), LogIndex::new(5), 79).is_ok());
        assert!(checker.on_state(one, region, LogIndex::new(5), 79).is_err());
        assert!(checker.on_entry(one, region, LogIndex::new(5), 78).is_err());
    }
}

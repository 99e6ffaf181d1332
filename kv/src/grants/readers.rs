//! Where the regions of this leader are read: which stores get grants pushed. Pure.
//!
//! A store that has asked for a region's grants, or says that the region was read there, gets them every few
//! milliseconds for a while. Nothing is pushed for a region that nobody reads.

use std::collections::BTreeMap;
use std::time::Duration;

use raftstore::{RegionId, StoreId};
use tokio::time::Instant;

/// The regions that other stores read.
#[derive(Debug)]
pub(super) struct Readers {
    keep: Duration,
    until: BTreeMap<(StoreId, RegionId), Instant>,
}

impl Readers {
    /// A region counts as read for `keep` after it was wanted.
    pub(super) fn new(keep: Duration) -> Readers {
        Readers { keep, until: BTreeMap::new() }
    }

    /// `store` wants grants of these regions.
    pub(super) fn wanted(&mut self, store: StoreId, regions: impl IntoIterator<Item = RegionId>, now: Instant) {
        let until = now + self.keep;
        self.until.extend(regions.into_iter().map(|region| ((store, region), until)));
    }

    /// What to push to whom now.
    pub(super) fn due(&mut self, now: Instant) -> BTreeMap<StoreId, Vec<RegionId>> {
        self.until.retain(|_, until| *until > now);
        let mut due: BTreeMap<StoreId, Vec<RegionId>> = BTreeMap::new();
        for (store, region) in self.until.keys() {
            due.entry(*store).or_default().push(*region);
        }
        due
    }

    /// Whether nobody reads.
    pub(super) fn is_empty(&self) -> bool {
        self.until.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_region_is_pushed_while_it_is_read_and_no_longer() {
        let (a, b) = (StoreId::new(1), StoreId::new(2));
        let (two, three) = (RegionId::new(2), RegionId::new(3));
        let mut readers = Readers::new(Duration::from_secs(1));
        let start = crate::grants::hub::now();
        let at = |ms| start + Duration::from_millis(ms);
        readers.wanted(a, [two, three], at(0));
        readers.wanted(b, [two], at(500));
        readers.wanted(a, [three], at(500));
        assert_eq!(readers.due(at(600)), BTreeMap::from([(a, vec![two, three]), (b, vec![two])]));
        assert_eq!(readers.due(at(1_200)), BTreeMap::from([(a, vec![three]), (b, vec![two])]));
        assert!(readers.due(at(1_500)).is_empty() && readers.is_empty());
    }
}

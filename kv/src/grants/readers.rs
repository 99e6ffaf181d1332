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
    interval: Duration,
    reads: BTreeMap<(StoreId, RegionId), Reads>,
}

/// What is known of the reads of a region at a store.
#[derive(Clone, Copy, Debug)]
struct Reads {
    /// Until when the region counts as read there.
    until: Instant,
    /// When the store asked last.
    asked: Option<Instant>,
}

impl Readers {
    /// A region counts as read for `keep` after it was wanted, and gets its grants every `interval`.
    pub(super) fn new(keep: Duration, interval: Duration) -> Readers {
        Readers { keep, interval, reads: BTreeMap::new() }
    }

    /// `store` reads these regions, as far as it says.
    pub(super) fn wanted(&mut self, store: StoreId, regions: impl IntoIterator<Item = RegionId>, now: Instant) {
        let until = now + self.keep;
        for region in regions {
            self.reads.entry((store, region)).or_insert(Reads { until, asked: None }).until = until;
        }
    }

    /// `store` has asked for grants of these regions, and got them.
    pub(super) fn asked(&mut self, store: StoreId, regions: impl IntoIterator<Item = RegionId>, now: Instant) {
        let reads = Reads { until: now + self.keep, asked: Some(now) };
        self.reads.extend(regions.into_iter().map(|region| ((store, region), reads)));
    }

    /// What to push to whom now. A store that has just asked has what a push would say.
    pub(super) fn due(&mut self, now: Instant) -> BTreeMap<StoreId, Vec<RegionId>> {
        self.reads.retain(|_, reads| reads.until > now);
        let has_newer = |reads: &Reads| reads.asked.is_some_and(|at| now < at + self.interval);
        let mut due: BTreeMap<StoreId, Vec<RegionId>> = BTreeMap::new();
        for ((store, region), _) in self.reads.iter().filter(|(_, reads)| !has_newer(reads)) {
            due.entry(*store).or_default().push(*region);
        }
        due
    }

    /// Whether nobody reads.
    pub(super) fn is_empty(&self) -> bool {
        self.reads.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_region_is_pushed_while_it_is_read_and_no_longer() {
        let (a, b) = (StoreId::new(1), StoreId::new(2));
        let (two, three) = (RegionId::new(2), RegionId::new(3));
        let mut readers = Readers::new(Duration::from_secs(1), Duration::from_millis(2));
        let start = crate::grants::hub::now();
        let at = |ms| start + Duration::from_millis(ms);
        readers.wanted(a, [two, three], at(0));
        readers.wanted(b, [two], at(500));
        readers.wanted(a, [three], at(500));
        assert_eq!(readers.due(at(600)), BTreeMap::from([(a, vec![two, three]), (b, vec![two])]));
        assert_eq!(readers.due(at(1_200)), BTreeMap::from([(a, vec![three]), (b, vec![two])]));
        assert!(readers.due(at(1_500)).is_empty() && readers.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_pushed_to_a_store_that_has_just_asked() {
        let (a, two, three) = (StoreId::new(1), RegionId::new(2), RegionId::new(3));
        let mut readers = Readers::new(Duration::from_secs(1), Duration::from_millis(2));
        let start = crate::grants::hub::now();
        let at = |ms| start + Duration::from_millis(ms);
        readers.wanted(a, [three], at(0));
        readers.asked(a, [two], at(0));
        assert_eq!(readers.due(at(1)), BTreeMap::from([(a, vec![three])]));
        assert_eq!(readers.due(at(2)), BTreeMap::from([(a, vec![two, three])]));
        readers.asked(a, [two], at(900));
        readers.wanted(a, [two], at(901));
        assert_eq!(readers.due(at(901)), BTreeMap::from([(a, vec![three])]));
        assert_eq!(readers.due(at(1_800)), BTreeMap::from([(a, vec![two])]), "it counts as read");
        assert!(readers.due(at(1_901)).is_empty() && readers.is_empty());
    }
}

//! When a store that cannot write offers a leadership, and to which store.
//!
//! A log whose disk is full, or that has synced nothing for `log_stall`, keeps its store from applying what a quorum
//! has committed. Writes go on once another store leads. One offer may be in vain: the message is lost, or its target
//! cannot write its vote either. So the offers go on, to another store each time if there is one. raft-rs gives up a
//! transfer after one election timeout; the pause begins with twice that and doubles, because every offer suspends the
//! lease and refuses proposals while it lasts.
//!
//! Pure: the clock is an argument, and the answers say what to do.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::region::{RegionId, StoreId};
use crate::time::MonoTime;

/// The longest pause is this many times the first.
const LONGEST: u32 = 8;

/// The offers of one region since the store became unable to write.
#[derive(Clone, Copy, Debug)]
struct Offered {
    to: StoreId,
    /// The next offer is due at this time.
    due: MonoTime,
    pause: Duration,
}

/// See the module documentation. Empty while the store can write.
#[derive(Debug, Default)]
pub(super) struct Offers {
    regions: BTreeMap<RegionId, Offered>,
}

impl Offers {
    /// The store can write again.
    pub(super) fn end(&mut self) {
        self.regions.clear();
    }

    /// Whether an offer of this region is due. If so, returns the store to avoid: the target of the last offer.
    pub(super) fn due(&self, region: RegionId, now: MonoTime) -> Option<Option<StoreId>> {
        match self.regions.get(&region) {
            None => Some(None),
            Some(offered) => (offered.due <= now).then_some(Some(offered.to)),
        }
    }

    /// The leadership of a region was offered to `to`.
    pub(super) fn made(&mut self, region: RegionId, to: StoreId, election_timeout: Duration, now: MonoTime) {
        let first = election_timeout * 2;
        let pause = self.regions.get(&region).map_or(first, |last| (last.pause * 2).min(first * LONGEST));
        self.regions.insert(region, Offered { to, due: now.plus(pause), pause });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offers_are_repeated_with_growing_pauses() {
        let (region, other) = (RegionId::new(1), RegionId::new(2));
        let (b, c) = (StoreId::new(2), StoreId::new(3));
        let (second, at) = (Duration::from_secs(1), |seconds: u64| MonoTime::from_millis(seconds * 1000));
        let mut offers = Offers::default();
        assert_eq!(offers.due(region, at(0)), Some(None));
        offers.made(region, b, second, at(0));
        assert_eq!((offers.due(region, at(1)), offers.due(region, at(2))), (None, Some(Some(b))));
        assert_eq!(offers.due(other, at(0)), Some(None), "each region has its own pause");
        offers.made(region, c, second, at(2));
        assert_eq!((offers.due(region, at(5)), offers.due(region, at(6))), (None, Some(Some(c))));
        for _ in 0..9 {
            offers.made(region, b, second, at(100));
        }
        assert_eq!((offers.due(region, at(115)), offers.due(region, at(116))), (None, Some(Some(b))));
        offers.end();
        assert_eq!(offers.due(region, at(100)), Some(None));
    }
}

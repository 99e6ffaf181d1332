//! Checks that the cluster serves while enough of it is healthy.
//!
//! - **Availability.** While one quorum of a region is healthy and connected all the time, a write through a client
//!   that retries succeeds within a bound, whatever the other stores do.
//! - **Stability.** While all stores are healthy but for slow syncs and slow links, no leadership is lost.

use std::collections::BTreeMap;

use raftstore::{PeerRole, Region, RegionId, StoreId, Term};
use simulator::checkers::{Checked, violated};

/// Since when each smallest quorum of a region has been healthy without a break.
struct Quorums {
    quorums: Vec<(Vec<StoreId>, Option<u64>)>,
}

impl Quorums {
    fn new(region: &Region) -> Quorums {
        let voters = region.peers.iter().filter(|peer| peer.role == PeerRole::Voter);
        let voters: Vec<StoreId> = voters.map(|peer| peer.store).collect();
        let majority = voters.len() / 2 + 1;
        let subsets = 0u32..1 << voters.len();
        let of_size = subsets.filter(|subset| subset.count_ones() as usize == majority);
        let stores =
            |subset: u32| (0..voters.len()).filter(|at| subset & (1 << at) != 0).map(|at| voters[at]).collect();
        Quorums { quorums: of_size.map(|subset| (stores(subset), None)).collect() }
    }

    fn observe(&mut self, now: u64, works: impl Fn(StoreId, StoreId) -> bool) {
        for (stores, since) in &mut self.quorums {
            let healthy = stores.iter().all(|from| stores.iter().all(|to| works(*from, *to)));
            *since = healthy.then(|| since.unwrap_or(now));
        }
    }

    /// Since when some quorum has been healthy.
    fn since(&self) -> Option<u64> {
        self.quorums.iter().filter_map(|(_, since)| *since).min()
    }
}

/// See the module documentation. Times are in virtual nanoseconds.
pub(crate) struct AvailabilityChecker {
    bound: u64,
    regions: BTreeMap<RegionId, Quorums>,
    /// The longest wait seen under a healthy quorum.
    pub(crate) longest: u64,
    /// Writes that began under a healthy quorum.
    pub(crate) judged: u64,
}

impl AvailabilityChecker {
    /// A checker of these regions: a write succeeds within `bound`.
    pub(crate) fn new(regions: &[Region], bound: u64) -> AvailabilityChecker {
        let regions = regions.iter().map(|region| (region.id, Quorums::new(region))).collect();
        AvailabilityChecker { bound, regions, longest: 0, judged: 0 }
    }

    /// The health of the stores at this time. `works` tells, for a region, whether a message from one healthy store
    /// reaches another; of a store and itself, whether it is healthy. Called whenever that changes.
    pub(crate) fn observe(&mut self, now: u64, works: &dyn Fn(RegionId, StoreId, StoreId) -> bool) {
        for (region, quorums) in &mut self.regions {
            quorums.observe(now, |from, to| works(*region, from, to));
        }
    }

    /// A write to `region` that began at `begun` is not confirmed yet, or is confirmed now.
    pub(crate) fn waits(&mut self, region: RegionId, begun: u64, now: u64, confirmed: bool) -> Checked {
        let Some(since) = self.regions.get(&region).and_then(Quorums::since) else { return Ok(()) };
        let waited = now - begun.max(since).min(now);
        self.longest = self.longest.max(waited);
        self.judged += u64::from(confirmed && begun >= since);
        if waited <= self.bound {
            return Ok(());
        }
        violated(format!(
            "no write to region {region} succeeds for {} ms, though a quorum is healthy; the bound is {} ms",
            waited / 1_000_000,
            self.bound / 1_000_000
        ))
    }
}

/// The leaderships, while nothing but slow syncs and slow links may disturb them.
#[derive(Default)]
pub(crate) struct StabilityChecker {
    terms: BTreeMap<RegionId, Term>,
    /// Observations of a leadership that had to be kept.
    pub(crate) judged: u64,
}

impl StabilityChecker {
    /// Something may change leaderships from now on.
    pub(crate) fn disturbed(&mut self) {
        self.terms.clear();
    }

    /// The highest term in which a store leads the region, if any store does. Called only while nothing disturbs.
    pub(crate) fn leads(&mut self, region: RegionId, term: Option<Term>) -> Checked {
        let Some(before) = self.terms.get(&region).copied() else {
            self.terms.extend(term.map(|term| (region, term)));
            return Ok(());
        };
        self.judged += 1;
        match term {
            Some(term) if term == before => Ok(()),
            Some(term) => {
                violated(format!("region {region} is led in term {term}, not in {before}, for no good reason"))
            }
            None => violated(format!("region {region} has lost its leader of term {before} for no good reason")),
        }
    }
}

#[cfg(test)]
mod tests {
    use raftstore::{Epoch, PeerId, PeerMeta};

    use super::*;

    fn region() -> Region {
        let peer = |id| PeerMeta { id: PeerId::new(id), store: StoreId::new(id), role: PeerRole::Voter };
        let peers = (1..=3).map(peer).collect();
        Region { id: RegionId::new(1), start: Vec::new(), end: Vec::new(), epoch: Epoch::default(), peers }
    }

    /// Which stores are down, and which pair is cut.
    fn works(down: &[u64], cut: Option<(u64, u64)>) -> impl Fn(RegionId, StoreId, StoreId) -> bool {
        let down = down.to_vec();
        move |_, from, to| {
            let (from, to) = (from.get(), to.get());
            !down.contains(&from) && !down.contains(&to) && cut != Some((from, to))
        }
    }

    #[test]
    fn waits_count_while_one_quorum_stays_healthy() {
        let id = RegionId::new(1);
        let mut checker = AvailabilityChecker::new(&[region()], 100);
        checker.observe(0, &works(&[1], None));
        assert!(checker.waits(id, 0, 100, false).is_ok());
        assert!(checker.waits(id, 0, 101, false).is_err());
        assert!(checker.waits(id, 50, 101, true).is_ok());
        // Another store fails: from then on no quorum is healthy.
        checker.observe(60, &works(&[1, 2], None));
        assert!(checker.waits(id, 0, 1000, false).is_ok());
        // A quorum that is healthy again counts from then on, and so does one that takes over from another.
        checker.observe(2000, &works(&[2], None));
        assert!(checker.waits(id, 0, 2100, false).is_ok());
        assert!(checker.waits(id, 0, 2101, false).is_err());
        checker.observe(2050, &works(&[3], None));
        assert!(checker.waits(id, 0, 2150, false).is_ok());
        checker.observe(2060, &works(&[3], Some((2, 1))));
        assert!(checker.waits(id, 0, 5000, false).is_ok(), "one direction is cut");
        assert_eq!(checker.judged, 1);
    }

    #[test]
    fn lost_leaderships_are_found() {
        let id = RegionId::new(1);
        let mut checker = StabilityChecker::default();
        assert!(checker.leads(id, None).is_ok(), "none yet");
        assert!(checker.leads(id, Some(Term::new(5))).is_ok());
        assert!(checker.leads(id, Some(Term::new(5))).is_ok());
        assert!(checker.leads(id, None).is_err());
        assert!(checker.leads(id, Some(Term::new(6))).is_err());
        checker.disturbed();
        assert!(checker.leads(id, Some(Term::new(6))).is_ok());
    }
}

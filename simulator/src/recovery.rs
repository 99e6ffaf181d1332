//! Recovery: all faults end, and the cluster must become whole again by itself, within a bound of virtual time.

use std::collections::BTreeMap;

use raftstore::{LogIndex, RegionId, StoreId};

use crate::checkers::{Checked, Violation, violated};
use crate::world::{CandidateCrash, Load, World};

impl<L: Load> World<L> {
    /// Ends all faults for good. The cluster must then recover by itself.
    pub fn heal(&mut self) -> Checked {
        self.trace.line(self.now, format_args!("healing"));
        self.faults_on = false;
        self.candidate_crash = CandidateCrash::Off;
        self.held_answers = None;
        self.network.heal();
        L::disturbed(self);
        for store in (1..=self.options.stores).map(StoreId::new) {
            self.clear_disk(store);
            self.speed_up(store, |node| {
                (node.slowness, node.slow_apply, node.slow_turns, node.hold) = (1, 0, 0, None);
                node.slow_sync = 0;
            });
            self.resume(store)?;
            let Some(node) = self.nodes.get(&store) else { continue };
            if node.armed || node.poisoned || node.power.is_some() {
                self.crash(store)?;
            }
            self.restart(store)?;
        }
        Ok(())
    }

    /// Runs until `done`, one tick at a time. Past the deadline, a virtual time, it is a violation that `what` did not
    /// happen.
    pub fn run_until_done(
        &mut self,
        deadline: u64,
        what: &str,
        mut done: impl FnMut(&mut World<L>) -> Result<bool, Violation>,
    ) -> Checked {
        while !done(self)? {
            if self.now >= deadline {
                return violated(format!("not recovered in time; waited until {what}"));
            }
            let next = self.now + self.options.config.tick_interval.as_nanos() as u64;
            self.run_until(next)?;
        }
        Ok(())
    }

    /// The highest applied index of each region.
    pub fn applied(&self) -> BTreeMap<RegionId, LogIndex> {
        let live = self.nodes.values().filter_map(|node| node.live.as_ref());
        let mut highest = BTreeMap::new();
        for status in live.flat_map(|live| live.handle.regions()) {
            let index = highest.entry(status.region.id).or_insert(status.applied);
            *index = status.applied.max(*index);
        }
        highest
    }

    /// A replica that has not applied its region up to this index.
    pub fn lags_behind(&self, applied: &BTreeMap<RegionId, LogIndex>) -> Option<(StoreId, RegionId)> {
        let lags = |store: StoreId, region: RegionId, index: LogIndex| {
            let live = self.nodes.get(&store).and_then(|node| node.live.as_ref());
            live.and_then(|live| live.handle.region(region)).is_none_or(|status| status.applied < index)
        };
        let replicas = self.options.regions.iter().flat_map(|region| region.peers.iter().map(|p| (p.store, region.id)));
        replicas.into_iter().find(|(store, region)| applied.get(region).is_some_and(|at| lags(*store, *region, *at)))
    }

    /// Why the replicas differ; `None` if they agree.
    pub fn difference(&self) -> Result<Option<String>, Violation> {
        for region in &self.options.regions {
            let mut first = None;
            for peer in &region.peers {
                let live = self.nodes.get(&peer.store).and_then(|node| Some((node, node.live.as_ref()?)));
                let Some((node, live)) = live else { return Ok(Some(format!("store {} is down", peer.store))) };
                let Some(status) = live.handle.region(region.id) else {
                    return Ok(Some(format!("region {} is not on store {}", region.id, peer.store)));
                };
                let hash = node.hash_region(region, self.options.hash).map_err(|error| Violation(error.to_string()))?;
                let this = (status.applied, hash);
                let (expected, by) = *first.get_or_insert((this, peer.store));
                if expected.0 != this.0 {
                    let what = format!("store {} applied {}, store {by} {}", peer.store, this.0, expected.0);
                    return Ok(Some(format!("region {}: {what}", region.id)));
                }
                if expected.1 != this.1 {
                    return violated(format!(
                        "region {}: the data of stores {} and {by} differ",
                        region.id, peer.store
                    ));
                }
            }
        }
        Ok(None)
    }
}

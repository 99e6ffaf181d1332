//! The grants that a replica holds. Pure.
//!
//! A grant counts once the replica has applied its index; until then it waits in a queue. The timestamp of the newest
//! one that counts is the replica's *safe_ts*: what is read at or below it misses nothing. A grant says something of
//! the log, so neither a change of leader nor of term ends it. But it is said of a range and proven by a position: when
//! the replica's range changes, or its data is replaced, what counted counts no more.

use std::collections::VecDeque;

use raftstore::{DataGeneration, LogIndex, ReplicaState};
use tso::Timestamp;

use crate::grant::Grant;

/// The most grants that wait. A full queue loses the newest but one: those who wait for it wait for the newest.
const QUEUE_MAX: usize = 64;

/// See the module documentation.
///
/// Invariants:
/// 1. `queue` ascends strictly by version and index, and of each version by timestamp.
/// 2. `safe_ts` was granted for the range of `generation`, at an index that was applied in it.
#[derive(Debug, Default)]
pub(super) struct HeldGrants {
    generation: Option<DataGeneration>,
    safe_ts: Timestamp,
    queue: VecDeque<Grant>,
    #[cfg(feature = "planted-bugs")]
    planted_bug: Option<crate::planted::PlantedBug>,
}

impl HeldGrants {
    /// With this deliberate bug.
    #[cfg(feature = "planted-bugs")]
    pub(super) fn with_planted_bug(planted_bug: Option<crate::planted::PlantedBug>) -> HeldGrants {
        HeldGrants { planted_bug, ..HeldGrants::default() }
    }

    /// Adds a grant, unless those that are there say as much.
    pub(super) fn add(&mut self, grant: Grant) {
        let says_no_more = |a: &Grant, b: &Grant| a.version == b.version && a.ts <= b.ts && a.index >= b.index;
        if self.queue.iter().any(|held| says_no_more(&grant, held)) {
            return;
        }
        self.queue.retain(|held| !says_no_more(held, &grant));
        let at = self.queue.partition_point(|held| (held.version, held.index) < (grant.version, grant.index));
        self.queue.insert(at, grant);
        if self.queue.len() > QUEUE_MAX {
            self.queue.remove(self.queue.len() - 2);
        }
    }

    /// The safe_ts of the replica in this state; 0 for none.
    pub(super) fn safe_ts(&mut self, state: &ReplicaState) -> Timestamp {
        #[cfg(feature = "planted-bugs")]
        if self.planted_bug == Some(crate::planted::PlantedBug::GrantKeptOverChange) {
            self.generation.get_or_insert(state.generation);
        }
        let is_kept = self.generation == Some(state.generation);
        #[cfg(feature = "planted-bugs")]
        let is_kept = is_kept || self.planted_bug == Some(crate::planted::PlantedBug::GrantKeptOverChange);
        let version = state.region.epoch.version;
        if !is_kept {
            self.generation = Some(state.generation);
            self.safe_ts = Timestamp::ZERO;
            self.queue.retain(|grant| grant.version >= version);
        }
        let applied = self.counted_index(state.applied);
        let is_due =
            |grant: &mut Grant| grant.version < version || (grant.version == version && grant.index <= applied);
        while let Some(grant) = self.queue.pop_front_if(is_due) {
            if grant.version == version {
                self.safe_ts = self.safe_ts.max(grant.ts);
            }
        }
        self.safe_ts
    }

    /// The index to wait for, beyond what the replica has applied in this state, until a grant that waits covers `ts`.
    pub(super) fn awaits(&self, ts: Timestamp, state: &ReplicaState) -> Option<LogIndex> {
        let version = state.region.epoch.version;
        let mut waiting = self.queue.iter().filter(|grant| grant.version == version && grant.index > state.applied);
        waiting.find(|grant| grant.ts >= ts).map(|grant| grant.index)
    }

    #[cfg(feature = "planted-bugs")]
    fn counted_index(&self, applied: LogIndex) -> LogIndex {
        let is_early = self.planted_bug == Some(crate::planted::PlantedBug::QueueAnsweredEarly);
        if is_early { LogIndex::new(u64::MAX) } else { applied }
    }

    #[cfg(not(feature = "planted-bugs"))]
    fn counted_index(&self, applied: LogIndex) -> LogIndex {
        applied
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use raftstore::{Epoch, Region, RegionId};

    use super::*;

    fn grant(version: u64, ts: u64, index: u64) -> Grant {
        let region = RegionId::FIRST_DATA;
        Grant { region, version, ts: Timestamp::new(ts, 0), index: LogIndex::new(index) }
    }

    fn state(generation: u64, version: u64, applied: u64) -> ReplicaState {
        let epoch = Epoch { conf_ver: 1, version };
        let (id, peers) = (RegionId::FIRST_DATA, Vec::new());
        let region = Arc::new(Region { id, start: Vec::new(), end: Vec::new(), epoch, peers });
        ReplicaState { region, generation: DataGeneration::new(generation), applied: LogIndex::new(applied) }
    }

    fn ms(ts: Timestamp) -> u64 {
        ts.physical_ms()
    }

    #[test]
    fn a_grant_counts_once_its_index_is_applied_and_is_not_dropped_before() {
        let mut held = HeldGrants::default();
        held.add(grant(1, 100, 10));
        held.add(grant(1, 200, 12));
        assert_eq!(ms(held.safe_ts(&state(1, 1, 9))), 0);
        assert_eq!(held.awaits(Timestamp::new(150, 0), &state(1, 1, 9)), Some(LogIndex::new(12)));
        assert_eq!(held.awaits(Timestamp::new(201, 0), &state(1, 1, 9)), None);
        assert_eq!(ms(held.safe_ts(&state(1, 1, 11))), 100);
        assert_eq!(ms(held.safe_ts(&state(1, 1, 12))), 200);
        assert_eq!(ms(held.safe_ts(&state(1, 1, 12))), 200, "for ever");
    }

    #[test]
    fn late_and_repeated_grants_change_nothing() {
        let mut held = HeldGrants::default();
        for (ts, index) in [(200, 12), (200, 12), (100, 12), (150, 14), (90, 9)] {
            held.add(grant(1, ts, index));
        }
        assert_eq!(held.queue.len(), 2, "{held:?}");
        assert_eq!(ms(held.safe_ts(&state(1, 1, 9))), 90);
        assert_eq!(ms(held.safe_ts(&state(1, 1, 12))), 200);
        held.add(grant(1, 150, 5));
        assert_eq!(ms(held.safe_ts(&state(1, 1, 12))), 200);
    }

    /// What still counts of a grant after the data was replaced, and after the range has changed too.
    #[cfg(feature = "planted-bugs")]
    fn after_changes(held: &mut HeldGrants) -> [u64; 2] {
        held.add(grant(1, 100, 10));
        assert_eq!(ms(held.safe_ts(&state(1, 1, 10))), 100);
        [state(2, 1, 10), state(3, 2, 10)].map(|changed| ms(held.safe_ts(&changed)))
    }

    /// No run of the simulation can show this bug: an installed snapshot holds more than the grant speaks of.
    #[cfg(feature = "planted-bugs")]
    #[test]
    fn planted_grant_kept_over_change_is_noticed() {
        let bug = Some(crate::planted::PlantedBug::GrantKeptOverChange);
        assert_eq!(after_changes(&mut HeldGrants::with_planted_bug(bug)), [100, 100]);
        assert_eq!(after_changes(&mut HeldGrants::default()), [0, 0]);
    }

    /// tikv#18570, tikv#10224, and the design's list: a new range, an installed snapshot, a replica created anew.
    #[test]
    fn another_generation_ends_what_counted() {
        let mut held = HeldGrants::default();
        held.add(grant(1, 100, 10));
        held.add(grant(1, 300, 30));
        assert_eq!(ms(held.safe_ts(&state(1, 1, 10))), 100);
        assert_eq!(ms(held.safe_ts(&state(2, 1, 10))), 0, "installed: what counted is gone");
        assert_eq!(ms(held.safe_ts(&state(2, 1, 30))), 300, "what waited says something of the log");
        assert_eq!(ms(held.safe_ts(&state(3, 2, 40))), 0, "another range");
        held.add(grant(1, 400, 41));
        assert_eq!(ms(held.safe_ts(&state(3, 2, 50))), 0, "of the range before");
        held.add(grant(2, 500, 51));
        assert_eq!(ms(held.safe_ts(&state(3, 2, 51))), 500);
    }

    /// A follower that has not applied the split yet gets grants for the range after it.
    #[test]
    fn a_grant_for_a_later_range_waits_for_it() {
        let mut held = HeldGrants::default();
        held.add(grant(2, 500, 20));
        assert_eq!(ms(held.safe_ts(&state(1, 1, 30))), 0);
        assert_eq!(held.awaits(Timestamp::new(1, 0), &state(1, 1, 30)), None, "no index of this range helps");
        assert_eq!(ms(held.safe_ts(&state(2, 2, 30))), 500);
    }

    #[test]
    fn a_full_queue_keeps_the_newest_and_the_oldest() {
        let mut held = HeldGrants::default();
        for n in 1..=200 {
            held.add(grant(1, 1_000 + n, n));
        }
        assert_eq!(held.queue.len(), QUEUE_MAX);
        assert_eq!(held.awaits(Timestamp::new(1_001, 0), &state(1, 1, 0)), Some(LogIndex::new(1)));
        assert_eq!(held.awaits(Timestamp::new(1_200, 0), &state(1, 1, 0)), Some(LogIndex::new(200)));
        let ascends = |queue: &VecDeque<Grant>| {
            queue.iter().zip(queue.iter().skip(1)).all(|(a, b)| a.index < b.index && a.ts < b.ts)
        };
        assert!(ascends(&held.queue));
    }
}

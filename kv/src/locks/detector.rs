//! Finds deadlocks among transactions that wait for row locks: a state machine over what they report.
//!
//! A transaction reports its wait again and again while it lasts, and at its end. The detector keeps the waits as edges
//! of a graph. It has no other memory: a new one, on another leader, learns the edges from the reports that follow.
//!
//! # Why a cycle is a deadlock
//!
//! Each answer carries the detector's clock, the number of reports so far. A report says which clock its waiter had
//! heard before it asked for whom it waits: what it says was so at some later moment. Let w be the wait that began
//! last, as the detector has heard, at the clock c, and let every edge of the cycle be of a moment after c. All
//! transactions of the cycle waited at c, and those that still wait have kept their locks since, and got none. So an
//! edge of a later moment holds at c too, and as long as both of its transactions wait. The first one of them whose
//! wait could end would have to be let through by the next one, which still waits. So none of them goes on by itself,
//! and the one that hears of the deadlock is to give up. In a real deadlock every wait is reported again with a newer
//! clock, so somebody hears of it in the end, whatever message was lost.
//!
//! What was said from memory is not enough: a transaction may have rolled back to a savepoint and released the row
//! since, and then wait elsewhere.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use raftstore::Term;
use tso::Timestamp;

use crate::api::{DetectorClock, WaitReport};

/// A wait that was not reported for so long has ended.
const EXPIRY: Duration = Duration::from_secs(5);
/// Bits of a clock below those of the term: more reports than a leader takes in its term.
const TERM_SHIFT: u32 = 40;
/// After so many reports those that have expired are dropped.
const SWEEP: u64 = 1_024;

/// The waits of all transactions.
#[derive(Debug)]
pub(crate) struct Detector {
    waits: HashMap<Timestamp, Wait>,
    /// The number of reports so far, on top of the term: one of a later leader is newer.
    clock: DetectorClock,
}

#[derive(Debug)]
struct Wait {
    report: WaitReport,
    /// The clock at its first report.
    begun: DetectorClock,
    heard_at: Instant,
}

impl Detector {
    /// The detector of a leader.
    pub(crate) fn new(term: Term) -> Detector {
        Detector { waits: HashMap::new(), clock: DetectorClock(term.get() << TERM_SHIFT) }
    }

    /// Takes a report. Returns the deadlock that the wait has closed, beginning with it, and the clock.
    pub(crate) fn report(&mut self, report: WaitReport, now: Instant) -> (Vec<WaitReport>, DetectorClock) {
        self.clock.0 += 1;
        if self.clock.0.is_multiple_of(SWEEP) {
            self.waits.retain(|_, wait| wait.heard_at + EXPIRY > now);
        }
        let (waiter, clock) = (report.waiter, self.clock);
        if report.holders.is_empty() {
            self.waits.remove(&waiter);
            return (Vec::new(), clock);
        }
        let is_same = |known: &WaitReport| known.holders == report.holders && known.row == report.row;
        let known = self.waits.get(&waiter).filter(|wait| is_same(&wait.report) && wait.heard_at + EXPIRY > now);
        let begun = known.map_or(clock, |wait| wait.begun);
        self.waits.insert(waiter, Wait { report, begun, heard_at: now });
        (self.cycle(waiter, begun, now), clock)
    }

    /// The cycle through a wait that began after all others of it, of edges from after that.
    fn cycle(&self, waiter: Timestamp, begun: DetectorClock, now: Instant) -> Vec<WaitReport> {
        let is_fresh = |wait: &&Wait| wait.report.as_of >= begun;
        let counts = |wait: &&Wait| wait.begun < begun && is_fresh(wait) && wait.heard_at + EXPIRY > now;
        let Some(first) = self.waits.get(&waiter).filter(is_fresh) else { return Vec::new() };
        let (mut path, mut seen) = (vec![(first, 0)], HashSet::from([waiter]));
        while let Some((wait, next)) = path.last_mut() {
            let Some(holder) = wait.report.holders.get(*next) else {
                path.pop();
                continue;
            };
            *next += 1;
            if *holder == waiter {
                return path.into_iter().map(|(wait, _)| wait.report.clone()).collect();
            }
            if let Some(wait) = self.waits.get(holder).filter(counts).filter(|_| seen.insert(*holder)) {
                path.push((wait, 0));
            }
        }
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Key;

    struct Bench {
        detector: Detector,
        /// What each transaction has heard.
        clocks: HashMap<u64, DetectorClock>,
        now: Instant,
    }

    fn ts(number: u64) -> Timestamp {
        Timestamp::new(number, 0)
    }

    impl Bench {
        #[expect(clippy::disallowed_methods, reason = "any moment will do")]
        fn new() -> Bench {
            Bench { detector: Detector::new(Term::new(3)), clocks: HashMap::new(), now: Instant::now() }
        }

        /// Reports what a transaction has heard since its last report. Returns the transactions of the deadlock.
        fn wait(&mut self, waiter: u64, holders: &[u64]) -> Vec<u64> {
            let as_of = self.clocks.get(&waiter).copied().unwrap_or_default();
            self.report(waiter, holders, as_of)
        }

        fn report(&mut self, waiter: u64, holders: &[u64], as_of: DetectorClock) -> Vec<u64> {
            let holders = holders.iter().map(|number| ts(*number)).collect();
            let (at, row) = (Key::default(), Key::default());
            let report = WaitReport { at, waiter: ts(waiter), holders, session: 1, row, as_of };
            let (cycle, clock) = self.detector.report(report, self.now);
            self.clocks.insert(waiter, clock);
            cycle.into_iter().map(|wait| wait.waiter.physical_ms()).collect()
        }
    }

    #[test]
    fn the_wait_that_began_last_is_the_one_to_end() {
        let mut bench = Bench::new();
        for round in 0..3 {
            assert_eq!(bench.wait(1, &[2]), [0; 0], "it is not the last one");
            assert_eq!(bench.wait(2, &[3]), [0; 0]);
            let found = bench.wait(3, &[1]);
            // What the others say in the second round may be from before the third one waited.
            assert_eq!(found, if round < 2 { vec![] } else { vec![3, 1, 2] });
        }
    }

    /// Regression: a waiter told whom it had waited for when it queued up. Meanwhile one of them had rolled back to a
    /// savepoint, and waited for the waiter.
    #[test]
    fn what_is_said_from_memory_closes_no_cycle() {
        let mut bench = Bench::new();
        bench.wait(2, &[1, 3]);
        bench.wait(2, &[1, 3]);
        let before = bench.clocks[&2];
        for _ in 0..9 {
            assert_eq!(bench.wait(1, &[2]), [0; 0]);
            assert_eq!(bench.report(2, &[1, 3], before), [0; 0]);
        }
        // It asks again.
        assert_eq!(bench.wait(2, &[3]), [0; 0]);
        assert_eq!(bench.wait(1, &[2]), [0; 0]);
    }

    #[test]
    fn a_clock_of_an_earlier_leader_is_old() {
        let mut bench = Bench::new();
        (0..5).for_each(|_| drop(bench.wait(1, &[2])));
        bench.detector = Detector::new(Term::new(4));
        assert_eq!(bench.wait(2, &[1]), [0; 0]);
        assert_eq!(bench.wait(1, &[2]), [0; 0], "w, of which nothing is known");
        assert_eq!(bench.wait(2, &[1]), [0; 0]);
        assert_eq!(bench.wait(2, &[1]), [0; 0]);
        assert_eq!(bench.wait(1, &[2]), [1, 2]);
    }

    #[test]
    fn a_wait_that_has_ended_is_part_of_none() {
        let mut bench = Bench::new();
        for _ in 0..2 {
            bench.wait(1, &[2]);
            bench.wait(2, &[1]);
        }
        assert_eq!(bench.wait(1, &[]), [0; 0]);
        assert_eq!(bench.wait(2, &[1]), [0; 0]);
        // It waits for another transaction now.
        bench.wait(1, &[3]);
        assert_eq!(bench.wait(2, &[1]), [0; 0]);
        bench.wait(1, &[2]);
        bench.now += EXPIRY;
        assert_eq!(bench.wait(2, &[1]), [0; 0], "it was not heard of");
    }

    #[test]
    fn one_of_several_holders_closes_a_cycle() {
        let mut bench = Bench::new();
        bench.wait(8, &[9]);
        for _ in 0..2 {
            bench.wait(1, &[7, 8, 2]);
            assert_eq!(bench.wait(2, &[5, 1]), [0; 0]);
        }
        bench.wait(1, &[7, 8, 2]);
        assert_eq!(bench.wait(2, &[5, 1]), [2, 1]);
    }

    /// However the reports interleave and whichever are lost, somebody is told in the end, and nobody without a cycle.
    #[test]
    fn random_reports_find_the_cycles_that_there_are() {
        use rand::rngs::StdRng;
        use rand::{Rng, SeedableRng};
        for seed in 0..200 {
            let mut rng = StdRng::seed_from_u64(seed);
            let mut bench = Bench::new();
            let size = rng.random_range(2..6u64);
            let is_cycle = rng.random_bool(0.5);
            let next = |number: u64| if number == size && !is_cycle { 99 } else { number % size + 1 };
            let mut found = false;
            for _ in 0..200 {
                let number = rng.random_range(1..=size);
                if rng.random_bool(0.7) {
                    found |= !bench.wait(number, &[next(number)]).is_empty();
                }
            }
            assert_eq!(found, is_cycle, "seed {seed}");
        }
    }
}

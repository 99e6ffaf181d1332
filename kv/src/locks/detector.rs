//! Finds deadlocks among transactions that wait for row locks: a state machine over what they report.
//!
//! A transaction reports its wait again and again while it lasts, and at its end. The detector keeps the waits as edges
//! of a graph. It has no other memory: a new one, on another leader, learns the edges from the reports that follow.
//!
//! # Why a cycle is a deadlock
//!
//! The edges of a cycle were reported at different times, and some may have ended since. Let w be the wait that began
//! last, as the detector has heard, and let every other edge of the cycle be reported again after that. w lasts,
//! because its transaction is just reporting it, so its transaction has kept its locks all the time. Whoever waits for
//! that transaction, and said so since w began, still waits for it, and has kept its own locks; and so on around the
//! cycle. So the answer to w is the deadlock, and its transaction is to give up. In a real deadlock every wait is
//! reported again, so the last one is answered so in the end, whatever message was lost.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use tso::Timestamp;

use crate::api::WaitReport;

/// A wait that was not reported for so long has ended.
const EXPIRY: Duration = Duration::from_secs(5);
/// After so many reports those that have expired are dropped.
const SWEEP: u64 = 1_024;

/// The waits of all transactions.
#[derive(Debug, Default)]
pub(crate) struct Detector {
    waits: HashMap<Timestamp, Wait>,
    /// The number of reports so far.
    reports: u64,
}

#[derive(Debug)]
struct Wait {
    report: WaitReport,
    /// The number of its first report.
    begun: u64,
    /// The number of its last report.
    heard: u64,
    heard_at: Instant,
}

impl Detector {
    /// Takes a report. Returns the deadlock that the wait has closed, beginning with it; empty if there is none.
    pub(crate) fn report(&mut self, report: WaitReport, now: Instant) -> Vec<WaitReport> {
        self.reports += 1;
        if self.reports.is_multiple_of(SWEEP) {
            self.waits.retain(|_, wait| wait.heard_at + EXPIRY > now);
        }
        let (waiter, number) = (report.waiter, self.reports);
        if report.holders.is_empty() {
            self.waits.remove(&waiter);
            return Vec::new();
        }
        let known = self.waits.get(&waiter).filter(|wait| wait.report == report && wait.heard_at + EXPIRY > now);
        let begun = known.map_or(number, |wait| wait.begun);
        self.waits.insert(waiter, Wait { report, begun, heard: number, heard_at: now });
        self.cycle(waiter, begun, now)
    }

    /// The cycle through a wait that began after all others of it, each of which was reported since.
    fn cycle(&self, waiter: Timestamp, begun: u64, now: Instant) -> Vec<WaitReport> {
        let counts = |wait: &&Wait| wait.begun < begun && wait.heard > begun && wait.heard_at + EXPIRY > now;
        let Some(first) = self.waits.get(&waiter) else { return Vec::new() };
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
        now: Instant,
    }

    fn ts(number: u64) -> Timestamp {
        Timestamp::new(number, 0)
    }

    impl Bench {
        #[expect(clippy::disallowed_methods, reason = "any moment will do")]
        fn new() -> Bench {
            Bench { detector: Detector::default(), now: Instant::now() }
        }

        /// Reports a wait. Returns the transactions of the deadlock.
        fn wait(&mut self, waiter: u64, holders: &[u64]) -> Vec<u64> {
            let holders = holders.iter().map(|number| ts(*number)).collect();
            let report =
                WaitReport { at: Key::default(), waiter: ts(waiter), holders, session: 1, row: Key::default() };
            let cycle = self.detector.report(report, self.now);
            cycle.into_iter().map(|wait| wait.waiter.physical_ms()).collect()
        }
    }

    #[test]
    fn the_wait_that_began_last_is_the_one_to_end() {
        let mut bench = Bench::new();
        assert_eq!(bench.wait(1, &[2]), []);
        assert_eq!(bench.wait(2, &[3]), []);
        assert_eq!(bench.wait(3, &[1]), [], "the others may have ended since they were reported");
        assert_eq!(bench.wait(1, &[2]), [], "it is not the last one");
        assert_eq!(bench.wait(3, &[1]), []);
        assert_eq!(bench.wait(2, &[3]), []);
        assert_eq!(bench.wait(3, &[1]), [3, 1, 2]);
    }

    #[test]
    fn a_wait_that_has_ended_is_part_of_none() {
        let mut bench = Bench::new();
        bench.wait(1, &[2]);
        bench.wait(2, &[1]);
        assert_eq!(bench.wait(1, &[]), []);
        assert_eq!(bench.wait(2, &[1]), []);
        // It waits for another transaction now.
        bench.wait(1, &[3]);
        assert_eq!(bench.wait(2, &[1]), []);
        bench.wait(1, &[2]);
        bench.now += EXPIRY;
        assert_eq!(bench.wait(2, &[1]), [], "it was not heard of");
    }

    #[test]
    fn one_of_several_holders_closes_a_cycle() {
        let mut bench = Bench::new();
        bench.wait(1, &[7, 8, 2]);
        bench.wait(8, &[9]);
        bench.wait(2, &[5, 1]);
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

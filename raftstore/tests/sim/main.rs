//! Seeded simulation of a cluster whose clients write and read registers and lists. The package `simulator` runs the
//! stores. See `README.md`.
//!
//! `CORTADO_SIM_SEEDS=N` runs N seeds (200 by default). `CORTADO_SIM_SEED=S` replays one and prints every step.

mod checkers;
mod client;
mod load;
mod options;
#[cfg(feature = "planted-bugs")]
mod planted;
mod prober;
mod regressions;
mod run;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::options::Options;
use crate::run::{Failure, Outcome, run};

/// Seeds of a default run.
const SEEDS: u64 = 200;
/// Every this many seeds, one is run twice to check that it replays exactly.
const REPEAT_EVERY: u64 = 20;

fn number_from(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    let number = text.parse();
    Some(number.unwrap_or_else(|_| panic!("{name} is not a number: {text:?}")))
}

/// Runs seeds on all cores, each run on one thread. Stops early at a failure.
fn run_seeds(seeds: std::ops::Range<u64>) -> Result<BTreeMap<u64, Outcome>, Box<Failure>> {
    let next = AtomicU64::new(seeds.start);
    let outcomes = Mutex::new(BTreeMap::new());
    let failure = Mutex::new(None);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, std::num::NonZero::get) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end || failure.lock().is_some() {
                        return;
                    }
                    match run(Options::from_seed(seed), false) {
                        Ok(outcome) => drop(outcomes.lock().insert(seed, outcome)),
                        Err(found) => *failure.lock() = Some(found),
                    }
                }
            });
        }
    });
    match failure.into_inner() {
        Some(failure) => Err(failure),
        None => Ok(outcomes.into_inner()),
    }
}

#[test]
fn seeds() {
    if let Some(seed) = number_from("CORTADO_SIM_SEED") {
        let options = Options::from_seed(seed);
        println!("{options:#?}");
        match run(options, true) {
            Ok(outcome) => println!("{outcome:#?}"),
            Err(failure) => panic!("{}", failure.without_tail()),
        }
        return;
    }
    let count = number_from("CORTADO_SIM_SEEDS").unwrap_or(SEEDS);
    let outcomes = run_seeds(1..count + 1).unwrap_or_else(|failure| panic!("{failure}"));
    for (seed, first) in outcomes.iter().filter(|(seed, _)| **seed % REPEAT_EVERY == 0) {
        let again = run(Options::from_seed(*seed), false).unwrap_or_else(|failure| panic!("second run: {failure}"));
        assert_eq!((first.hash, first.lines), (again.hash, again.lines), "seed {seed} does not replay");
    }
    let total = Outcome::sum(outcomes.values());
    println!("{count} seeds: {total:#?}");
    if count >= SEEDS {
        total.assert_covers();
    }
}

/// A lying sync loses acknowledged writes. A simulator that misses that would miss everything.
#[test]
fn lying_disks_are_found() {
    let found = (1..40).find_map(|seed| {
        let mut options = Options::from_seed(seed);
        options.cluster.disk.lies = true;
        run(options, false).err()
    });
    println!("{}", found.expect("no seed found that the disks lie").without_tail());
}

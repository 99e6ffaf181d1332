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

use simulator::seeds::{number_from, run_all};

use crate::options::Options;
use crate::run::{Outcome, run};

/// Seeds of a default run.
const SEEDS: u64 = 200;
/// Every this many seeds, one is run twice to check that it replays exactly.
const REPEAT_EVERY: u64 = 20;

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
    let outcomes = run_all(1..count + 1, |seed| run(Options::from_seed(seed), false))
        .unwrap_or_else(|failure| panic!("{failure}"));
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

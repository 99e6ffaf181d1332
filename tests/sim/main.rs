//! Seeded simulation of the whole stack: transactions, the key-value client and server, the timestamp oracle, Raft, the
//! log and its disks. A run is on one thread, in virtual time. See `README.md`.
//!
//! `CORTADO_STACK_SEEDS=N` runs N seeds, from `CORTADO_STACK_FIRST` on. `CORTADO_STACK_SEED=S` replays one and prints
//! every step.

#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod gateway;
mod load;
mod nodes;
mod options;
mod panics;
#[cfg(feature = "planted-bugs")]
mod planted;
mod run;
mod settle;
mod stack;
mod steps;
mod store;
mod wire;

use simulator::seeds::{number_from, run_all};

use crate::options::Options;
use crate::run::{Outcome, run};

/// Seeds of a default run. From this many on, their sums are checked.
const SEEDS: u64 = 56;
/// Every this many seeds, one is run twice to check that it replays exactly.
const REPEAT_EVERY: u64 = 10;

#[test]
fn seeds() {
    if let Some(seed) = number_from("CORTADO_STACK_SEED") {
        let options = Options::from_seed(seed);
        println!("{options:#?}");
        match run(options, true) {
            Ok(outcome) => println!("{outcome:#?}"),
            Err(failure) => panic!("{}", failure.without_tail()),
        }
        return;
    }
    let count = number_from("CORTADO_STACK_SEEDS").unwrap_or(SEEDS);
    let first = number_from("CORTADO_STACK_FIRST").unwrap_or(1);
    let run_seed = |seed| {
        let outcome = run(Options::from_seed(seed), false)?;
        if seed % REPEAT_EVERY == 0 {
            let again = run(Options::from_seed(seed), false)?;
            assert_eq!((outcome.hash, outcome.lines), (again.hash, again.lines), "seed {seed} does not replay");
        }
        Ok(outcome)
    };
    let outcomes = run_all(first..first + count, run_seed).unwrap_or_else(|failure| panic!("{failure}"));
    let total = Outcome::sum(outcomes.values());
    println!("{count} seeds: {total:#?}");
    if count >= SEEDS {
        total.assert_covers();
    }
}

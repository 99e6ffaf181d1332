//! Seeded simulation of the whole stack: transactions, the key-value client and server, the timestamp oracle, Raft, the
//! log and its disks, on one thread in virtual time. See `README.md`.
//!
//! `CORTADO_STACK_SEEDS=N` runs N seeds. `CORTADO_STACK_SEED=S` replays one and prints every step.

#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod bank;
mod gateway;
mod nodes;
mod options;
mod run;
mod stack;
mod store;
mod wire;

use crate::options::Options;
use crate::run::{Outcome, run};

/// Seeds of a default run. From this many on, their sums are checked.
const SEEDS: u64 = 20;
/// Every this many seeds, one is run twice to check that it replays exactly.
const REPEAT_EVERY: u64 = 10;

fn number_from(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    let number = text.parse();
    Some(number.unwrap_or_else(|_| panic!("{name} is not a number: {text:?}")))
}

fn must_hold(seed: u64, print: bool) -> Outcome {
    run(Options::from_seed(seed), print).unwrap_or_else(|failure| {
        panic!("seed {seed}: {failure}\nreplay: CORTADO_STACK_SEED={seed} cargo test --test stack seeds -- --nocapture")
    })
}

#[test]
fn seeds() {
    if let Some(seed) = number_from("CORTADO_STACK_SEED") {
        println!("{:#?}", must_hold(seed, true));
        return;
    }
    let count = number_from("CORTADO_STACK_SEEDS").unwrap_or(SEEDS);
    let mut total = Outcome::default();
    for seed in 1..=count {
        let outcome = must_hold(seed, false);
        if seed % REPEAT_EVERY == 0 {
            let again = must_hold(seed, false);
            assert_eq!((outcome.hash, outcome.lines), (again.hash, again.lines), "seed {seed} does not replay");
        }
        total.add(&outcome);
    }
    println!("{count} seeds: {total:#?}");
    if count >= SEEDS {
        total.assert_covers();
    }
}

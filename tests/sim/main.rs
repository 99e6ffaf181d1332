//! Seeded simulation of the whole stack: transactions, the key-value client and server, the timestamp oracle, Raft, the
//! log and its disks. A run is on one thread, in virtual time. See `README.md`.
//!
//! `CORTADO_STACK_SEEDS=N` runs N seeds, from `CORTADO_STACK_FIRST` on. `CORTADO_STACK_SEED=S` replays one and prints
//! every step.

#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod collect;
mod gateway;
mod load;
mod logs;
mod nodes;
mod options;
mod panics;
#[cfg(feature = "planted-bugs")]
mod planted;
mod protocols;
mod regressions;
mod replicas;
mod run;
mod settle;
mod stack;
mod steps;
mod store;
mod wire;

use simulator::seeds::Seeds;

use crate::options::Options;
use crate::run::{Outcome, run};

const SEEDS: Seeds = Seeds { variables: "CORTADO_STACK", count: 56, repeat_every: 10 };

#[test]
fn seeds() {
    let run_seed = |seed, print| {
        let options = Options::from_seed(seed);
        if print {
            println!("{options:#?}");
        }
        run(options, print)
    };
    let total = SEEDS.run(run_seed, |outcome| (outcome.hash, outcome.lines), |all| Outcome::sum(all.iter()));
    if let Some(total) = total {
        total.assert_covers();
    }
}

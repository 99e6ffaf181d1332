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

use simulator::seeds::Seeds;

use crate::options::Options;
use crate::run::{Outcome, run};

const SEEDS: Seeds = Seeds { variables: "CORTADO_SIM", count: 200, repeat_every: 20 };

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

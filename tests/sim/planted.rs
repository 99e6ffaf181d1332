//! Each planted bug must be found within a number of seeds, by its symptom. Without the bug the same seed finds
//! nothing.
//!
//! `CORTADO_STACK_SEEDS=N` gives each N seeds instead of those of the table.

use simulator::seeds::number_from;

use crate::options::{Bugs, Options};
use crate::run::run;

/// A bug, the seeds within which it must be found, and words of which its violation must contain one.
struct Planted {
    bugs: Bugs,
    seeds: u64,
    words: &'static [&'static str],
}

/// Not a snapshot: a transaction saw a part of another one, or not what was there before.
const SNAPSHOT: &[&str] = &["cycle", "the total", "changed to", "was read as", "is not linearizable", "is lost"];
/// A transaction was applied twice, or although it failed.
const EFFECT: &[&str] = &["is twice in", "was seen", "took effect", "its transfers make", "is not linearizable"];

const fn in_txn(bug: txn::planted::PlantedBug) -> Bugs {
    Bugs { kv: None, tso: None, txn: Some(bug) }
}

const fn in_kv(bug: kv::planted::PlantedBug) -> Bugs {
    Bugs { kv: Some(bug), tso: None, txn: None }
}

const fn in_tso(bug: tso::service::PlantedBug) -> Bugs {
    Bugs { kv: None, tso: Some(bug), txn: None }
}

/// Runs seeds until one fails.
fn must_find(planted: &Planted) {
    let bugs = planted.bugs;
    let seeds = number_from("CORTADO_STACK_SEEDS").unwrap_or(planted.seeds);
    for seed in 1..=seeds {
        let sound = Options::from_seed(seed);
        let Err(failure) = run(Options { bugs, ..sound.clone() }, false) else { continue };
        let violation = &failure.violation;
        assert!(planted.words.iter().any(|words| violation.contains(words)), "{bugs:?}: {violation}");
        run(sound, false).unwrap_or_else(|failure| panic!("without {bugs:?}: {failure}"));
        println!("{bugs:?} found: {violation}");
        return;
    }
    panic!("{bugs:?} was not found by {seeds} seeds");
}

/// The table of planted bugs: a test for each line.
macro_rules! planted {
    ($($name:ident: $bugs:expr, $seeds:expr, $words:expr;)*) => {
        $(
            #[test]
            fn $name() {
                must_find(&Planted { bugs: $bugs, seeds: $seeds, words: $words });
            }
        )*
    };
}

planted! {
    commit_ts_before_prewrites: in_txn(txn::planted::PlantedBug::CommitTsBeforePrewrites), 20, SNAPSHOT;
    unknown_outcome_rerun: in_txn(txn::planted::PlantedBug::UnknownOutcomeRerun), 20, EFFECT;
    secondaries_first: in_txn(txn::planted::PlantedBug::SecondariesFirst), 20, SNAPSHOT;
    committed_rolled_back: in_txn(txn::planted::PlantedBug::CommittedRolledBack), 20, SNAPSHOT;
    early_latch_release: in_kv(kv::planted::PlantedBug::EarlyLatchRelease), 20, SNAPSHOT;
    missing_fence: in_kv(kv::planted::PlantedBug::MissingFence), 20, SNAPSHOT;
    lease_not_checked: in_tso(tso::service::PlantedBug::LeaseNotChecked), 20, SNAPSHOT;
}

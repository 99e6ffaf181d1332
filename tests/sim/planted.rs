//! Each planted bug must be found within a number of seeds, by its symptom. Without the bug the same seed finds
//! nothing.
//!
//! A bug that needs rare circumstances is sought with the faults that lead there. With `CORTADO_STACK_ORDINARY=N`, each
//! is sought among N ordinary seeds instead.

use std::time::Duration;

use kv::planted::PlantedBug as InKv;
use simulator::options::FaultKind;
use simulator::seeds::{self, number_from};
use tso::service::PlantedBug as InTso;
use txn::planted::PlantedBug as InTxn;

use crate::options::{Bugs, Options};
use crate::run::run;

/// A bug, the faults that lead to it, the seeds within which it must be found, and words of which its violation must
/// contain one.
struct Planted {
    bugs: Bugs,
    narrow: fn(&mut Options),
    seeds: u64,
    words: &'static [&'static str],
}

/// Not a snapshot: a transaction saw a part of another one, or not what was there before, or overwrote it.
const SNAPSHOT: &[&str] = &[
    "cycle",
    "the total",
    "changed to",
    "was read as",
    "is not linearizable",
    "is lost",
    "its transfers make",
    "was seen",
    "the read of",
];
/// A commit_ts does not follow the order of acknowledgements.
const ORDER: &[&str] = &["committed below"];
/// A transaction was applied twice, or although it failed.
const EFFECT: &[&str] = &["is twice in", "was seen", "took effect", "its transfers make", "is not linearizable"];
/// A store refuses to serve data that contradict each other.
const DAMAGE: &[&str] = &["does not run", "not done within", "no progress", "a transaction failed: internal error"];

const fn in_txn(bug: InTxn) -> Bugs {
    Bugs { kv: None, tso: None, txn: Some(bug) }
}

const fn in_kv(bug: InKv) -> Bugs {
    Bugs { kv: Some(bug), tso: None, txn: None }
}

const fn in_tso(bug: InTso) -> Bugs {
    Bugs { kv: None, tso: Some(bug), txn: None }
}

fn ordinary(_: &mut Options) {}

/// Executed commits lose their answers, and their clients give up soon.
fn refused(options: &mut Options) {
    options.requests.refusals = 0.1;
    options.settings.deadline = Duration::from_millis(300);
}

/// Leaders hand over right before commits in one phase leave for them.
fn handed_over(options: &mut Options) {
    options.coordinators.leader_moves = 0.5;
}

/// Leaders are replaced without learning of it, but requests still reach them.
fn transferred(options: &mut Options) {
    for (kind, weight) in &mut options.cluster.faults.weights {
        *weight = u32::from(matches!(kind, FaultKind::TransferAway | FaultKind::StallLeaderTurn));
    }
    options.requests.stop_at_cuts = false;
}

/// Seeks the bug among its seeds.
fn must_find(planted: &Planted) {
    let Planted { bugs, narrow, words, .. } = *planted;
    let ordinary = number_from("CORTADO_STACK_ORDINARY");
    let words = [words, DAMAGE].concat();
    seeds::must_find(&bugs, ordinary.unwrap_or(planted.seeds), &words, |seed, is_planted| {
        let mut options = Options::from_seed(seed);
        if ordinary.is_none() {
            narrow(&mut options);
        }
        if is_planted {
            options.settings.bugs = bugs;
        }
        run(options, false)
    });
}

/// The table of planted bugs: a test for each line.
macro_rules! planted {
    ($($name:ident: $bugs:expr, $narrow:ident, $seeds:expr, $words:expr;)*) => {
        $(
            #[test]
            fn $name() {
                must_find(&Planted { bugs: $bugs, narrow: $narrow, seeds: $seeds, words: $words });
            }
        )*
    };
}

planted! {
    commit_ts_before_prewrites: in_txn(InTxn::CommitTsBeforePrewrites), ordinary, 10, SNAPSHOT;
    unknown_outcome_rerun: in_txn(InTxn::UnknownOutcomeRerun), refused, 20, EFFECT;
    secondaries_first: in_txn(InTxn::SecondariesFirst), ordinary, 20, SNAPSHOT;
    committed_rolled_back: in_txn(InTxn::CommittedRolledBack), ordinary, 10, SNAPSHOT;
    timestamp_ahead: in_kv(InKv::TimestampAhead), ordinary, 20, SNAPSHOT;
    least_not_taken: in_kv(InKv::LeastNotTaken), ordinary, 20, ORDER;
    early_latch_release: in_kv(InKv::EarlyLatchRelease), ordinary, 20, SNAPSHOT;
    max_ts_before_locks: in_kv(InKv::MaxTsBeforeLocks), ordinary, 10, SNAPSHOT;
    early_memory_release: in_kv(InKv::EarlyMemoryRelease), ordinary, 10, SNAPSHOT;
    max_ts_not_raised: in_kv(InKv::MaxTsNotRaised), ordinary, 10, SNAPSHOT;
    unsynced_one_phase: in_kv(InKv::UnsyncedOnePhase), handed_over, 20, SNAPSHOT;
    forgotten_secondary: in_kv(InKv::ForgottenSecondary), ordinary, 20, SNAPSHOT;
    lease_not_checked: in_tso(InTso::LeaseNotChecked), transferred, 60, SNAPSHOT;
}

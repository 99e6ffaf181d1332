//! The simulator must find each planted bug within a bounded number of seeds, by its symptom. Without the bug the same
//! seed must find nothing.

use raftstore::config::PlantedBug;

use crate::options::{FaultKind, Options};
use crate::run::run;

/// Seeds within which a bug must be found.
const SEEDS: u64 = 60;

/// Runs seeds, either unchanged or with only some kinds of faults, until one fails. The failure must contain one of
/// these words.
fn must_find(bug: PlantedBug, alone: &[FaultKind], words: &[&str]) {
    for seed in 1..=SEEDS {
        let mut options = Options::from_seed(seed);
        for (kind, weight) in &mut options.faults.weights {
            *weight = if alone.is_empty() { *weight } else { u32::from(alone.contains(kind)) };
        }
        let sound = options.clone();
        options.config.planted_bug = Some(bug);
        let Err(failure) = run(options, false) else { continue };
        let violation = failure.violation();
        assert!(words.iter().any(|words| violation.contains(words)), "{bug:?}, seed {seed}: {violation}");
        run(sound, false).unwrap_or_else(|failure| panic!("without {bug:?}: {failure}"));
        println!("{bug:?} found with seed {seed}: {violation}");
        return;
    }
    panic!("{bug:?} was not found by {SEEDS} seeds");
}

#[test]
fn ack_before_fsync() {
    let words = ["before it crashed", "votes for", "is not that of store", "is not linearizable", "is lost"];
    must_find(PlantedBug::AckBeforeFsync, &[], &words);
}

#[test]
fn apply_above_commit() {
    must_find(PlantedBug::ApplyAboveCommit, &[], &["is not that of store"]);
}

/// A candidate's vote for itself is the one whose loss is hardest to observe.
#[test]
fn vote_forgotten_on_restart() {
    let words = ["votes for", "both lead"];
    must_find(PlantedBug::VoteForgottenOnRestart, &[FaultKind::CrashCandidate], &words);
}

/// Such votes break a lease only in a rare case that other faults mask, so only this kind of fault is enabled.
#[test]
fn promise_forgotten_on_restart() {
    must_find(PlantedBug::PromiseForgottenOnRestart, &[FaultKind::RestartVoters], &["is not linearizable"]);
}

#[test]
fn lease_read_after_newer_leader() {
    must_find(PlantedBug::LeaseReadAfterNewerLeader, &[], &["is not linearizable"]);
}

#[test]
fn read_index_under_old_clock() {
    must_find(PlantedBug::ReadIndexUnderOldClock, &[FaultKind::StallLeaderTurn], &["is not linearizable"]);
}

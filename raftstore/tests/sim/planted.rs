//! The simulator must find what it is there to find: each planted bug, within a bounded number of seeds.

use raftstore::planted::PlantedBug;

use crate::options::{FaultKind, Options};
use crate::run::run;

/// Seeds within which a bug must be found.
const SEEDS: u64 = 60;

/// Runs seeds as they are, or with one kind of fault alone.
fn must_find(bug: PlantedBug, alone: Option<FaultKind>) {
    for seed in 1..=SEEDS {
        let mut options = Options::from_seed(seed);
        for (kind, weight) in &mut options.faults.weights {
            *weight = alone.map_or(*weight, |alone| u32::from(*kind == alone));
        }
        options.config.planted_bug = Some(bug);
        if let Err(failure) = run(options, false) {
            println!("{bug:?} found with seed {seed}: {}", failure.violation());
            return;
        }
    }
    panic!("{bug:?} was not found by {SEEDS} seeds");
}

#[test]
fn ack_before_fsync() {
    must_find(PlantedBug::AckBeforeFsync, None);
}

#[test]
fn apply_above_commit() {
    must_find(PlantedBug::ApplyAboveCommit, None);
}

/// A lease is broken by such votes only in a corner that other faults hide: the one kind of fault that leads there, alone.
#[test]
fn vote_forgotten_on_restart() {
    must_find(PlantedBug::VoteForgottenOnRestart, Some(FaultKind::RestartVoters));
}

#[test]
fn lease_read_after_newer_leader() {
    must_find(PlantedBug::LeaseReadAfterNewerLeader, None);
}

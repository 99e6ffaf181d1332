//! The model must find each bug planted in the write path within a bounded number of seeds, by its own violation. The
//! same seed without the bug must find nothing.

use kv::planted::PlantedBug;
use kv::server::KvServerConfig;

use super::run;

/// Seeds within which a bug must be found.
const SEEDS: u64 = 40;

fn must_find(bug: PlantedBug, violation: &str) {
    for seed in 0..SEEDS {
        let config = KvServerConfig { planted_bug: Some(bug), ..KvServerConfig::default() };
        let found = run(seed, &config).err().unwrap_or_default();
        if !found.contains(violation) {
            continue;
        }
        run(seed, &KvServerConfig::default()).unwrap_or_else(|error| panic!("without {bug:?}, seed {seed}: {error}"));
        println!("{bug:?} found with seed {seed}: {found}");
        return;
    }
    panic!("{SEEDS} seeds did not show that with {bug:?} something {violation}");
}

/// Another prewrite overwrites the lock that its snapshot does not show.
#[test]
fn latches_released_before_the_proposal_is_applied() {
    must_find(PlantedBug::EarlyLatchRelease, "is lost");
}

/// A rollback does not see the lock of the undetermined prewrite, which is applied before it.
#[test]
fn no_fence_after_an_undetermined_proposal() {
    must_find(PlantedBug::MissingFence, "outlives its transaction");
}

/// A read at 150 finds no lock, because none is published yet; the write has read a `max_ts` of 100 and commits at 101.
#[test]
fn max_ts_read_before_the_memory_locks_are_published() {
    must_find(PlantedBug::MaxTsBeforeLocks, "the read of");
}

/// A read leaves no trace, and a commit lands below it.
#[test]
fn a_read_that_does_not_raise_max_ts() {
    must_find(PlantedBug::MaxTsNotRaised, "the read of");
}

/// A read raises `max_ts` after the commit_ts was computed, finds no lock, and reads before the commit is applied.
#[test]
fn memory_locks_released_before_the_proposal_is_applied() {
    must_find(PlantedBug::EarlyMemoryRelease, "the read of");
}

/// A leader commits below the reads of the leader before it.
#[test]
fn a_computed_commit_ts_before_max_ts_is_synced() {
    must_find(PlantedBug::UnsyncedOnePhase, "the read of");
}

/// A push is answered, and its proposal is lost.
#[test]
fn a_push_answered_before_it_is_replicated() {
    must_find(PlantedBug::PushAnsweredEarly, "the read of");
}

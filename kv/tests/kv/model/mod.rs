//! Random transaction histories, checked against an oracle of snapshot isolation.
//!
//! A few coordinators run transactions over a few keys. A mailbox delays, reorders, duplicates and loses their
//! requests. Coordinators send heartbeats, abort, die, and resolve each other's expired locks. A transaction may start
//! at the commit_ts of another one, and a commit_ts may be below its lock's min_commit_ts. Everything is drawn from a
//! seed, which a failure names. At the end the oracle checks, from the commits and all values read:
//!
//! 1. A coordinator and the store agree on the outcome of its transaction.
//! 2. Every read equals the snapshot at its start_ts: the newest write of a transaction that committed at or before it.
//! 3. Two committed transactions that wrote or locked the same key do not overlap in time: no lost update.
//! 4. The key of a committed insert did not exist in its snapshot.
//! 5. A row that a committed transaction relies on, by a lock that others may share, did not change meanwhile.
//! 6. After all locks are resolved, point reads and scans in both directions agree with the oracle at every past
//!    timestamp, every long value has a record, and no rollback mark was lost.
//!
//! Further tests plant a bug and demand that the oracle reports the violation which that bug causes.

mod coordinator;
mod oracle;
mod planted;
mod world;

use planted::PlantedBug;
use world::{Stats, World};

fn run(seed: u64, bug: Option<PlantedBug>) -> Result<Stats, String> {
    let mut world = World::new(seed, bug);
    world.run()?;
    oracle::check(&mut world)?;
    Ok(world.stats)
}

/// `CORTADO_MODEL_SEEDS=100000` runs that many seeds; the default is 400.
#[test]
fn random_histories_are_snapshot_isolated() {
    let seeds = std::env::var("CORTADO_MODEL_SEEDS").map_or(400, |seeds| seeds.parse().unwrap());
    let mut total = Stats::default();
    for seed in 0..seeds {
        let stats = run(seed, None).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        total.add(&stats);
    }
    println!("{total:?}");
    // The histories must exercise every one of these events.
    assert!(total.committed > 1_000 && total.aborted > 500 && total.dead > 50, "{total:?}");
    assert!(total.conflicts > 100 && total.locked > 500 && total.late_prewrites > 20, "{total:?}");
    assert!(total.expired > 50 && total.echoes > 50 && total.duplicates > 1_000, "{total:?}");
    assert!(total.heartbeats > 100 && total.too_early > 20 && total.overlaps > 20, "{total:?}");
    assert!(total.commits_together > 500 && total.resolves_together > 20, "{total:?}");
    assert!(total.shared > 200, "{total:?}");
}

/// Seeds within which a planted bug must show.
const PLANTED_SEEDS: u64 = 40;

/// Demands that the planted bug causes the violation whose report has these parts, and that the same seed without the
/// bug causes none.
fn must_find(bug: PlantedBug, violation: &[&str]) {
    for seed in 0..PLANTED_SEEDS {
        let found = run(seed, Some(bug)).err().unwrap_or_default();
        if !violation.iter().all(|part| found.contains(part)) {
            continue;
        }
        run(seed, None).unwrap_or_else(|error| panic!("without {bug:?}, seed {seed}: {error}"));
        println!("{bug:?} found with seed {seed}: {found}");
        return;
    }
    panic!("{PLANTED_SEEDS} seeds did not show that {bug:?} causes: {violation:?}");
}

#[test]
fn a_prewrite_without_conflict_check_is_detected() {
    must_find(PlantedBug::NoConflictCheck, &["lost update of"]);
}

#[test]
fn a_read_that_ignores_locks_is_detected() {
    must_find(PlantedBug::IgnoreLocks, &["txn ", " read \"", ", not "]);
}

#[test]
fn a_prewrite_that_ignores_rollback_marks_is_detected() {
    must_find(PlantedBug::IgnoreRollbacks, &["has a lock and a rollback mark of one transaction"]);
}

#[test]
fn a_commit_that_removes_a_rollback_mark_is_detected() {
    must_find(PlantedBug::RemoveRollbackMark, &["the rollback mark at ", " was lost"]);
}

#[test]
fn a_lock_record_that_names_no_data_record_is_detected() {
    // A transaction misses the value below the lock record.
    must_find(PlantedBug::ForgetLastData, &["txn ", " read \"", ": None, not Some("]);
}

#[test]
fn a_writer_that_ignores_shared_locks_is_detected() {
    must_find(PlantedBug::IgnoreShared, &["hare of ", " broke at "]);
}

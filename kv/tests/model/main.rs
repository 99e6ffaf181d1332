//! Random histories of transactions against an oracle of snapshot isolation.
//!
//! A handful of coordinators run transactions over a few keys. Their requests travel through a mailbox that delays, reorders,
//! duplicates and loses them; coordinators keep their locks alive, abort, die, and resolve each other's locks when these expire. A transaction
//! may begin at the very moment at which another commits, and a commit may come too early for its lock. Everything is drawn from a seed, which
//! a failure names. At the end the oracle looks at who committed, when, and what everybody read on the way:
//!
//! 1. A coordinator and the store agree on its transaction's fate.
//! 2. Every read equals the snapshot at its start_ts: the newest write by a transaction that committed at or before it.
//! 3. Two committed transactions that wrote or locked one key do not overlap in time: no lost update.
//! 4. A committed insert met no value in its snapshot.
//! 5. When all locks are resolved, point reads and scans in both directions agree with the oracle at every moment of the past,
//!    no value is left without a record, and no rollback mark was forgotten.
//!
//! The tests at the end plant bugs and see that they are caught.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod coordinator;
mod oracle;
mod planted;
mod world;

use planted::Plant;
use world::{Stats, World};

fn run(seed: u64, plant: Option<Plant>) -> Result<Stats, String> {
    let mut world = World::new(seed, plant);
    world.run()?;
    oracle::check(&mut world)?;
    Ok(world.stats)
}

/// `CORTADO_MODEL_SEEDS=100000` runs more of them.
#[test]
fn random_histories_are_snapshot_isolated() {
    let seeds = std::env::var("CORTADO_MODEL_SEEDS").map_or(400, |seeds| seeds.parse().unwrap());
    let mut total = Stats::default();
    for seed in 0..seeds {
        let stats = run(seed, None).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        total.add(&stats);
    }
    println!("{total:?}");
    // The histories are worth something only if all of this happens in them.
    assert!(total.committed > 1_000 && total.aborted > 500 && total.dead > 50, "{total:?}");
    assert!(total.conflicts > 100 && total.locked > 500 && total.late_prewrites > 20, "{total:?}");
    assert!(total.expired > 50 && total.echoes > 50 && total.duplicates > 1_000, "{total:?}");
    assert!(total.heartbeats > 100 && total.too_early > 20 && total.overlaps > 20, "{total:?}");
    assert!(total.commits_together > 500 && total.resolves_together > 20, "{total:?}");
}

fn caught(plant: Plant) -> String {
    for seed in 0..200 {
        if let Err(error) = run(seed, Some(plant)) {
            return error;
        }
    }
    panic!("{plant:?} was not caught")
}

#[test]
fn a_prewrite_without_conflict_check_is_caught() {
    let error = caught(Plant::BlindPrewrite);
    assert!(error.contains("lost update") || error.contains("read"), "{error}");
}

#[test]
fn a_read_that_overlooks_locks_is_caught() {
    let error = caught(Plant::BlindRead);
    assert!(error.contains("read"), "{error}");
}

#[test]
fn a_forgotten_rollback_is_caught() {
    caught(Plant::ForgetRollbacks);
}

#[test]
fn a_commit_that_takes_the_place_of_a_rollback_mark_is_caught() {
    let error = caught(Plant::LoseOverlaps);
    assert!(error.contains("rollback mark") || error.contains("read") || error.contains("secondaries"), "{error}");
}

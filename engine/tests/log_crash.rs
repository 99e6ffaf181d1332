//! Seeded crashes: whatever is lost, torn or kept of what was not synced, the log recovers a prefix of its history that
//! holds everything acknowledged as synced.

#[path = "log_model/mod.rs"]
mod log_model;

use engine::disk::Operation;
use engine::log::{Durability, LogOptions};
use log_model::{Driver, Generator, small_options};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// How many histories are tried; `CORTADO_SEEDS` tries more.
fn seeds(default: u64) -> u64 {
    std::env::var("CORTADO_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(default)
}

fn options(rng: &mut StdRng) -> LogOptions {
    LogOptions {
        align_bytes: [8, 512, 4096][rng.random_range(0..3)],
        prefill_bytes: [0, 16 << 10, 64 << 10][rng.random_range(0..3)],
        compress_from: [0, 256, usize::MAX][rng.random_range(0..3)],
        verify: rng.random_bool(0.3),
        ..small_options()
    }
}

/// Works until something stops it.
fn work(driver: &mut Driver, generator: &Generator, rng: &mut StdRng, steps: u64) {
    for _ in 0..steps {
        for _ in 0..rng.random_range(1..4) {
            // The state the batch will meet is the newest one only if nothing is queued: so some batches are refused.
            let changes = generator.batch(rng, &driver.history[driver.history.len() - 1]);
            let durability = if rng.random_bool(0.4) { Durability::Synced } else { Durability::Buffered };
            driver.submit(changes, durability);
        }
        if rng.random_bool(0.2) {
            // A full or dying disk may refuse; that is not what is looked at here.
            let _ = driver.engine.purge();
        }
        driver.turn();
        if driver.engine.poisoned().is_some() {
            return;
        }
        if rng.random_bool(0.1) {
            driver.check_live();
        }
    }
}

/// One history of several lives. An error says what did not hold.
fn run(seed: u64, lying: bool) -> Result<(), String> {
    let mut rng = StdRng::seed_from_u64(seed);
    let options = options(&mut rng);
    let mut driver = Driver::new(options);
    driver.disk.set_lying_sync(lying);
    let generator = Generator { groups: rng.random_range(1..6), max_entry: [30, 300, 3000][rng.random_range(0..3)] };
    for _ in 0..rng.random_range(2..5) {
        if rng.random_bool(0.5) {
            driver.disk.halt_after(rng.random_range(1..200));
        } else if rng.random_bool(0.3) {
            let operations =
                [Operation::Sync, Operation::Write, Operation::Rename, Operation::SyncDir, Operation::Create];
            let operation = operations[rng.random_range(0..operations.len())];
            driver.disk.fail_nth(operation, rng.random_range(1..50), std::io::ErrorKind::Other);
        }
        work(&mut driver, &generator, &mut rng, 60);
        driver.crash(rng.random())?;
        // Recovery is idempotent, also when it is cut off itself.
        if rng.random_bool(0.3) {
            driver.crash(rng.random())?;
        }
        driver.check_live();
    }
    Ok(())
}

#[test]
fn any_crash_leaves_a_prefix_with_everything_synced() {
    for seed in 0..seeds(400) {
        if let Err(what) = run(seed, false) {
            panic!("seed {seed}: {what}");
        }
    }
}

#[test]
fn a_disk_that_lies_about_syncing_is_noticed() {
    let noticed =
        (0..100).filter(|seed| std::panic::catch_unwind(|| run(*seed, true)).is_ok_and(|run| run.is_err())).count();
    assert!(noticed > 50, "only {noticed} of 100 histories on a lying disk were found wrong");
}

//! Seeded crashes: whatever is lost, torn or kept of what was not synced, the log recovers a prefix of its history that
//! holds everything acknowledged as synced.

#[path = "log_model/mod.rs"]
mod log_model;

use engine::disk::{Disk, Operation};
use engine::log::{Budget, Durability, LogOptions};
use log_model::{Change, Driver, Generator, small_options};
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
            let _ = driver.engine.purge(Budget::default());
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

/// Fills most of the first file with entries of a group that nothing else touches: so that it stays while later files, which
/// undo what it says of other groups, are written again and dropped.
fn pin_first_file(driver: &mut Driver, generator: &Generator, rng: &mut StdRng) {
    for _ in 0..4 {
        let changes = generator.batch(rng, &driver.history[driver.history.len() - 1]);
        driver.submit(changes, Durability::Buffered);
        driver.turn();
    }
    let entries = (0..15).map(|_| (0..3500).map(|_| rng.random::<u8>()).collect()).collect();
    driver.submit(vec![Change::Append { group: 99, first: 1, entries }], Durability::Synced);
    driver.turn();
}

/// Whether a file was dropped before an older one.
fn dropped_out_of_order(driver: &Driver) -> bool {
    let files = Disk::list(driver.disk.as_ref()).unwrap_or_default();
    let logs: Vec<u64> = files.iter().filter_map(|name| name.strip_suffix(".log")?.parse().ok()).collect();
    logs.windows(2).any(|pair| pair[0] + 1 < pair[1])
}

/// One history of several lives. An error says what did not hold; otherwise, whether files went out of order.
fn run(seed: u64, lying: bool) -> Result<bool, String> {
    let mut rng = StdRng::seed_from_u64(seed);
    let options = options(&mut rng);
    let mut driver = Driver::new(options);
    driver.disk.set_lying_sync(lying);
    let generator = Generator { groups: rng.random_range(1..6), max_entry: [30, 300, 3000][rng.random_range(0..3)] };
    if rng.random_bool(0.5) {
        pin_first_file(&mut driver, &generator, &mut rng);
    }
    let mut out_of_order = false;
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
        out_of_order |= dropped_out_of_order(&driver);
        driver.crash(rng.random())?;
        // Recovery is idempotent, also when it is cut off itself.
        if rng.random_bool(0.3) {
            driver.crash(rng.random())?;
        }
        driver.check_live();
    }
    Ok(out_of_order)
}

#[test]
fn any_crash_leaves_a_prefix_with_everything_synced() {
    let mut out_of_order = 0;
    for seed in 0..seeds(400) {
        match run(seed, false) {
            Ok(found) => out_of_order += u64::from(found),
            Err(what) => panic!("seed {seed}: {what}"),
        }
    }
    assert!(out_of_order > seeds(400) / 20, "only {out_of_order} histories dropped a file before an older one");
}

#[test]
fn a_disk_that_lies_about_syncing_is_noticed() {
    let noticed =
        (0..100).filter(|seed| std::panic::catch_unwind(|| run(*seed, true)).is_ok_and(|run| run.is_err())).count();
    assert!(noticed > 50, "only {noticed} of 100 histories on a lying disk were found wrong");
}

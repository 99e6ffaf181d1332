//! Running many seeds: on all cores, each run on one thread, and what they must cover together.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::failure::Failure;

/// A number from an environment variable; `None` if it is not set.
///
/// # Panics
/// If it is not a number.
pub fn number_from(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    let number = text.parse();
    Some(number.unwrap_or_else(|_| panic!("{name} is not a number: {text:?}")))
}

/// Runs seeds on all cores, in their order. Begins no more after a failure, and returns the one of the lowest seed.
///
/// # Errors
/// The failure of a seed.
pub fn run_all<T: Send>(
    seeds: Range<u64>,
    run: impl Fn(u64) -> Result<T, Box<Failure>> + Sync,
) -> Result<BTreeMap<u64, T>, Box<Failure>> {
    let next = AtomicU64::new(seeds.start);
    let outcomes = Mutex::new(BTreeMap::new());
    let failures = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, std::num::NonZero::get) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end || !failures.lock().is_empty() {
                        return;
                    }
                    match run(seed) {
                        Ok(outcome) => drop(outcomes.lock().insert(seed, outcome)),
                        Err(found) => drop(failures.lock().insert(seed, found)),
                    }
                }
            });
        }
    });
    match failures.into_inner().pop_first() {
        Some((_, failure)) => Err(failure),
        None => Ok(outcomes.into_inner()),
    }
}

/// Asserts that each of these counts reaches its minimum: (what, count, minimum).
///
/// # Panics
/// If one does not.
pub fn assert_enough(counts: &[(&str, u64, u64)]) {
    for (what, count, least) in counts {
        assert!(count >= least, "only {count} {what}: the seeds do not test what they should. All counts: {counts:?}");
    }
}

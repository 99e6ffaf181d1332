//! Running many seeds: on all cores, each run on one thread; one seed with every step; what all must cover together.

use std::collections::BTreeMap;
use std::fmt::Debug;
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

/// The seeds of a test. Environment variables change them: with the prefix `CORTADO_SIM`, `CORTADO_SIM_SEEDS=N` runs N
/// seeds, from `CORTADO_SIM_FIRST` on (1 by default), and `CORTADO_SIM_SEED=S` replays one and prints every step.
#[derive(Clone, Copy, Debug)]
pub struct Seeds {
    /// The prefix of the variables.
    pub variables: &'static str,
    /// The number of seeds of a default run. Only this many or more cover what they must.
    pub count: u64,
    /// Every this many seeds, one is run twice to check that it replays exactly.
    pub repeat_every: u64,
}

impl Seeds {
    /// Runs the seeds. `run` gets a seed, and whether to print its steps; `trace` says how two runs of a seed are
    /// compared. Returns the outcomes if there are enough to judge what they cover, and prints `sum` of them.
    ///
    /// # Panics
    /// If a seed fails, or does not replay.
    pub fn run<T: Send + Debug, S: Debug>(
        &self,
        run: impl Fn(u64, bool) -> Result<T, Box<Failure>> + Sync,
        trace: impl Fn(&T) -> (u64, u64) + Sync,
        sum: impl Fn(Vec<T>) -> S,
    ) -> Option<S> {
        let variable = |name: &str| number_from(&format!("{}_{name}", self.variables));
        if let Some(seed) = variable("SEED") {
            match run(seed, true) {
                Ok(outcome) => println!("{outcome:#?}"),
                Err(failure) => panic!("{}", failure.without_tail()),
            }
            return None;
        }
        let (first, count) = (variable("FIRST").unwrap_or(1), variable("SEEDS").unwrap_or(self.count));
        let run_seed = |seed: u64| {
            let outcome = run(seed, false)?;
            if seed.is_multiple_of(self.repeat_every) {
                assert_eq!(trace(&outcome), trace(&run(seed, false)?), "seed {seed} does not replay");
            }
            Ok(outcome)
        };
        let outcomes = run_all(first..first + count, run_seed).unwrap_or_else(|failure| panic!("{failure}"));
        let total = sum(outcomes.into_values().collect());
        println!("{count} seeds: {total:#?}");
        (count >= self.count).then_some(total)
    }
}

/// Seeks a planted bug among the seeds from 1 to `seeds`. `run` runs a seed, with the bug or without. The first failure
/// must contain one of `words`, and without the bug the same seed must find nothing.
///
/// # Panics
/// If the bug is not found so.
pub fn must_find<T>(bug: &dyn Debug, seeds: u64, words: &[&str], run: impl Fn(u64, bool) -> Result<T, Box<Failure>>) {
    for seed in 1..=seeds {
        let Err(failure) = run(seed, true) else { continue };
        let violation = &failure.violation;
        assert!(words.iter().any(|words| violation.contains(words)), "{bug:?}: {violation}");
        run(seed, false).unwrap_or_else(|failure| panic!("without {bug:?}: {failure}"));
        println!("{bug:?} found: {violation}");
        return;
    }
    panic!("{bug:?} was not found by {seeds} seeds");
}

/// Runs seeds on all cores, in their order. Begins no more after a failure, and returns the one of the lowest seed.
///
/// # Errors
/// The failure of a seed.
fn run_all<T: Send>(
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

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

//! Bugs that the simulation found, each as a few seeds of narrowed options that show it.
//!
//! The meaning of a seed changes with the options. So a regression fixes the settings that matter and lets a few seeds
//! draw the rest.

use std::time::Duration;

use crate::options::Options;
use crate::run::run;

/// Runs some seeds of narrowed options.
fn assert_no_violation(seeds: u64, narrow: impl Fn(&mut Options)) {
    for seed in 1..=seeds {
        let mut options = Options::from_seed(seed);
        narrow(&mut options);
        run(options, false).unwrap_or_else(|failure| panic!("{failure}"));
    }
}

/// Who has locked a row has the newest one, and it stays so: no transaction that locks before it writes meets a
/// conflict, whatever its level, unless the locks are lost.
#[test]
fn row_locks_that_are_kept_leave_no_conflicts() {
    assert_no_violation(8, Options::crowd_counters);
}

/// Nor do they lose them at a planned change of leaders: the next ones begin with the locks of those before.
#[test]
fn row_locks_go_along_with_the_leadership() {
    let mut leaderships = 0;
    for seed in 1..=8 {
        let mut options = Options::from_seed(seed);
        options.hand_over_politely();
        leaderships += run(options, false).unwrap_or_else(|failure| panic!("{failure}")).oracles;
    }
    assert!(leaderships > 100, "{leaderships} leaderships of the first region");
}

/// The requests of a commit of many keys, and those of the rollback of the attempt before, kept each other from the one
/// place in a region's queue until the time of some request was up. So the commit failed, again and again, or left
/// locks behind. (Seed 281.)
#[test]
fn large_commits_end_where_the_queue_of_proposals_is_short() {
    assert_no_violation(4, |options| {
        options.cluster.config.pending_proposals = 1;
        options.settings.deadline = Duration::from_millis(300);
        (options.settings.txn_batch_keys, options.settings.kv_batch_keys) = (1, 2);
        options.settings.batches_in_flight = 8;
        options.settings.background = 256;
    });
}

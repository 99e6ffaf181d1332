//! The simulator must find each planted bug within a bounded number of seeds, by its symptom. Without the bug the same
//! seed must find nothing.
//!
//! A bug that needs rare circumstances is sought with only the kinds of faults that lead there. How many ordinary seeds
//! each bug takes is in `README.md`. With `CORTADO_SIM_ORDINARY=N`, they are sought among N ordinary seeds instead.

use raftstore::config::PlantedBug;
use simulator::options::FaultKind;
use simulator::seeds::{self, number_from};

use crate::options::Options;
use crate::regressions::{hiccups, only};
use crate::run::run;

/// Seeds within which a bug must be found.
const SEEDS: u64 = 60;

const ACKED_EARLY: &[&str] =
    &["before it crashed", "votes for", "is not that of store", "is not linearizable", "is lost", "does not start"];
const STALE: &[&str] = &["is not linearizable"];
const TWO_VOTES: &[&str] = &["votes for", "both lead"];
const UNREPLICATED: &[&str] = &["is not that of store", "is lost", "is not linearizable", "does not start"];
const UNSTABLE: &[&str] = &["for no good reason", "no write to region"];
const UNAVAILABLE: &[&str] = &["no write to region"];

/// Seeks a bug among seeds of narrowed options.
fn must_find(bug: PlantedBug, words: &[&str], narrow: impl Fn(&mut Options)) {
    let ordinary = number_from("CORTADO_SIM_ORDINARY");
    seeds::must_find(&bug, ordinary.unwrap_or(SEEDS), words, |seed, is_planted| {
        let mut options = Options::from_seed(seed);
        if ordinary.is_none() {
            narrow(&mut options);
        }
        options.cluster.config.planted_bug = is_planted.then_some(bug);
        run(options, false)
    });
}

fn ordinary(_: &mut Options) {}

#[test]
fn ack_before_fsync() {
    must_find(PlantedBug::AckBeforeFsync, ACKED_EARLY, ordinary);
}

#[test]
fn apply_above_commit() {
    must_find(PlantedBug::ApplyAboveCommit, UNREPLICATED, ordinary);
}

/// A candidate's vote for itself is the one whose loss is hardest to observe.
#[test]
fn vote_forgotten_on_restart() {
    must_find(PlantedBug::VoteForgottenOnRestart, TWO_VOTES, |options| only(options, &[FaultKind::CrashCandidate]));
}

/// Such votes break a lease only in a rare case that other faults mask, so only this kind of fault is enabled.
#[test]
fn promise_forgotten_on_restart() {
    must_find(PlantedBug::PromiseForgottenOnRestart, STALE, |options| only(options, &[FaultKind::RestartVoters]));
}

#[test]
fn lease_read_after_newer_leader() {
    must_find(PlantedBug::LeaseReadAfterNewerLeader, STALE, ordinary);
}

#[test]
fn read_index_under_old_clock() {
    must_find(PlantedBug::ReadIndexUnderOldClock, STALE, |options| only(options, &[FaultKind::StallLeaderTurn]));
}

/// Today's heartbeats with yesterday's rules: hiccups of the disks that take no leadership then take some.
#[test]
fn liveness_waits_for_disk() {
    must_find(PlantedBug::LivenessWaitsForDisk, UNSTABLE, |options| {
        hiccups(options);
        // No disk is so slow that its leader hands over.
        options.cluster.disk.slowest_sync = 1;
    });
}

#[test]
fn stalled_leader_stays() {
    must_find(PlantedBug::StalledLeaderStays, UNAVAILABLE, |options| {
        hiccups(options);
        options.cluster.disk.slowest_sync = 60;
        options.cluster.faults.longest = options.cluster.config.election_timeout() * 60;
    });
}

#[test]
fn lease_not_suspected() {
    must_find(PlantedBug::LeaseNotSuspected, STALE, |options| only(options, &[FaultKind::TransferAway]));
}

#[test]
fn read_joins_older_round() {
    must_find(PlantedBug::ReadJoinsOlderRound, STALE, |options| only(options, &[FaultKind::LateAnswers]));
}

#[test]
fn own_term_unchecked() {
    must_find(
        PlantedBug::OwnTermUnchecked,
        &["is not linearizable", "is lost", "took effect", "out of order"],
        ordinary,
    );
}

/// A read is preempted under a lease that has run out, until its replica leads again.
#[test]
fn stale_generation() {
    must_find(PlantedBug::StaleGeneration, STALE, |options| {
        only(options, &[FaultKind::StallLeaderTurn, FaultKind::IsolateLeader]);
        options.preempts = 0.5;
    });
}

#[test]
fn truncation_above_flushed() {
    must_find(PlantedBug::TruncationAboveFlushed, &["does not start"], ordinary);
}

/// A network with one lane, as the transport once had, is not the product's bug but must be found as well.
#[test]
fn one_lane() {
    let found = (1..=SEEDS).find_map(|seed| {
        let mut options = Options::from_seed(seed);
        crate::regressions::slow_links(&mut options);
        options.cluster.network.one_lane = true;
        run(options, false).err()
    });
    let failure = found.expect("no seed found that heartbeats wait behind appends");
    assert!(UNSTABLE.iter().any(|words| failure.violation.contains(words)), "{failure}");
}

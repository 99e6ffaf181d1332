//! Each planted bug must be found within a number of seeds, by its symptom. Without the bug the same seed finds
//! nothing.
//!
//! A bug that needs rare circumstances is sought with the faults that lead there. With `CORTADO_STACK_ORDINARY=N`, each
//! is sought among N ordinary seeds instead.

use std::time::Duration;

use kv::planted::PlantedBug as InKv;
use simulator::options::FaultKind;
use simulator::seeds::{self, number_from};
use tso::service::PlantedBug as InTso;
use txn::planted::PlantedBug as InTxn;

use crate::collection::visible_hash;
use crate::options::{Bugs, CollectionOptions, GcBug, Options};
use crate::run::run;

/// A bug, the faults that lead to it, the seeds within which it must be found, and words of which its violation must
/// contain one.
struct Planted {
    bugs: Bugs,
    narrow: fn(&mut Options),
    seeds: u64,
    words: &'static [&'static str],
}

/// A read missed a commit at or below its timestamp. It changes when it is repeated, and what was written by it
/// overwrites the commit.
const MISSED: &[&str] = &["the read of", "the total", "its transfers make", "is lost"];
/// Parts of a transaction have different outcomes.
const TORN: &[&str] =
    &["the total", "its transfers make", "is lost", "of the aborted transaction", "cycle through", "the read of"];
/// As above, and a node knows two outcomes of one transaction: it refuses to go on with either.
const CONTRADICTION: &[&str] = &[
    "the total",
    "its transfers make",
    "is lost",
    "of the aborted transaction",
    "cycle through",
    "internal error: transaction",
];
/// As [`TORN`] or [`MISSED`], and a lock refuses the commit_ts of its transaction, because it was pushed above.
const TOO_EARLY: &[&str] = &[
    "the read of",
    "the total",
    "its transfers make",
    "is lost",
    "of the aborted transaction",
    "internal error: resolving a lock: commit_ts",
];
/// The leader contradicts what a replica has answered.
const CONTRADICTED: &[&str] = &["differs on the leader"];
/// A session does not see what it has seen or committed before.
const BELOW_TOKEN: &[&str] = &["below the session's", "a session went back"];
/// A read does not see what was acknowledged before it began.
const STALE: &[&str] = &["is not linearizable", "stale: cycle through"];
/// As above, or a session does not see what it has seen: a fresh snapshot was taken before the read arrived. The replay
/// also notices if nobody had written what was read.
const STALE_OR_BELOW_TOKEN: &[&str] =
    &["is not linearizable", "stale: cycle through", "below the session's", " read at Time("];
/// As [`STALE`], or a read that was served below a commit that was acknowledged before it changes when it is repeated,
/// or saw half of it.
const STALE_OR_MISSED: &[&str] = &["is not linearizable", "stale: cycle through", "the read of", "the total"];
/// A commit_ts does not follow the order of acknowledgements.
const ORDER: &[&str] = &["committed below"];
/// A transaction was applied twice, or although it failed. Nobody knows what it wrote the other time.
const TWICE: &[&str] = &[
    "is twice in",
    "of the aborted transaction",
    "took effect",
    "its transfers make",
    "is not linearizable",
    "was never appended",
    "append of its own in the wrong place",
];
/// A row lock did not protect its row until the commit.
const LOST_LOCK: &[&str] = &["that had locked its rows met a conflict"];
/// A row that a transaction relied on changed before that committed.
const BROKEN: &[&str] = &["was relied on", "the read of \"cp", "the read of \"zp"];
/// A row was removed although another one has come to refer to it.
const ORPHANED: &[&str] = &["nobody referred to it"];
/// A row was changed as it was before another change.
const LOST_UPDATE: &[&str] = &["its additions make"];
/// A transaction waits for ever.
const ENDLESS: &[&str] = &["every session ends after healing"];
/// A snapshot that lives is refused.
const PASSED: &[&str] = &["has passed a live snapshot"];
/// A snapshot has lost its versions, and its reader does not learn of it.
const CHANGED: &[&str] = &["changed under its reader", "is another one in the past", "the total"];
/// The record of a transaction is gone while others still need it, or versions under a reader. A replica lacks what no
/// published safe point allows to go.
const TORN_BY_COLLECTION: &[&str] = &[
    "is not that of",
    "is another one in the past",
    "changed under its reader",
    "the total",
    "its transfers make",
    "is lost",
    "of the aborted transaction",
    "cycle through",
    "internal error: transaction",
];
/// Two writes were evaluated on one state of a key, and both were applied. Only this bug may show by damage alone: the
/// records of a key then contradict each other, so that a store stops serving or refuses whoever meets them. Words of
/// that kind would hide, at any other bug, that it was found by something else.
const OVERWRITTEN: &[&str] = &[
    "the total",
    "its transfers make",
    "is lost",
    "was read as",
    "inconsistent data",
    "internal error: transaction",
    "not done within 120s: the sweep",
    "the sweep: task",
    "does not run",
];

const fn in_txn(bug: InTxn) -> Bugs {
    Bugs { kv: None, tso: None, txn: Some(bug), gc: None }
}

const fn in_kv(bug: InKv) -> Bugs {
    Bugs { kv: Some(bug), tso: None, txn: None, gc: None }
}

const fn in_tso(bug: InTso) -> Bugs {
    Bugs { kv: None, tso: Some(bug), txn: None, gc: None }
}

const fn in_gc(bug: GcBug, kv: Option<InKv>) -> Bugs {
    Bugs { kv, tso: None, txn: None, gc: Some(bug) }
}

/// Old versions do not stay for long.
fn collecting(options: &mut Options) {
    let (ttl, interval) = (Duration::from_millis(50), Duration::from_millis(100));
    options.collection = Some(CollectionOptions { ttl, interval, holders: 3 });
    options.cluster.hash = Some(visible_hash);
}

fn ordinary(_: &mut Options) {}

/// Executed commits lose their answers, and their clients give up soon.
fn refused(options: &mut Options) {
    options.requests.refusals = 0.1;
    options.settings.deadline = Duration::from_millis(300);
}

/// Leaders hand over right before commits in one phase leave for them.
fn handed_over(options: &mut Options) {
    options.coordinators.leader_moves = 0.5;
}

/// Leaders are replaced without learning of it, but requests still reach them.
fn transferred(options: &mut Options) {
    for (kind, weight) in &mut options.cluster.faults.weights {
        *weight = u32::from(matches!(kind, FaultKind::TransferAway | FaultKind::StallLeaderTurn));
    }
    options.requests.stop_at_cuts = false;
    options.surface = 0.0;
}

/// Every transaction of several keys commits in two phases: readers at the leader push their locks.
fn in_two_phases(options: &mut Options) {
    options.settings.txn_batch_keys = 1;
    options.requests.replica_reads = 0.0;
    options.surface = 0.0;
    options.epoch_changes = None;
    options.cluster.faults.interval /= 2;
}

/// Every transaction chooses how it reads, below the client no read is redirected.
fn chosen(options: &mut Options) {
    options.surface = 1.0;
    options.requests.replica_reads = 0.0;
}

/// Sessions read fresh data, and what they have seen before. None asks for an age.
fn in_order(options: &mut Options) {
    chosen(options);
    options.ages = false;
}

/// Many read and write registers over slow links, and replicas ask for grants: none are pushed.
fn asking(options: &mut Options) {
    chosen(options);
    options.registers = 16;
    options.requests.delay_ms = (10, 60);
    options.pause = Duration::from_millis(5);
    options.settings.grants.push_interval = Duration::ZERO;
}

/// Every read of a replica is compared with the leader's.
fn shadowed(options: &mut Options) {
    chosen(options);
    options.settings.shadow_reads = 1.0;
}

/// Many lock the same rows, without faults.
fn crowded(options: &mut Options) {
    options.crowd_counters();
}

/// Many lock the same rows, and leaders hand over again and again.
fn handed_over_politely(options: &mut Options) {
    options.hand_over_politely();
}

/// Leaders die, or are cut off, while children are written and parents changed.
fn families(options: &mut Options) {
    options.parents = 12;
    options.pause = Duration::from_millis(5);
    options.cluster.faults.interval /= 3;
}

/// Seeks the bug among its seeds.
fn must_find(planted: &Planted) {
    let Planted { bugs, narrow, words, .. } = *planted;
    let ordinary = number_from("CORTADO_STACK_ORDINARY");
    seeds::must_find(&bugs, ordinary.unwrap_or(planted.seeds), words, |seed, is_planted| {
        let mut options = Options::from_seed(seed);
        // What the comparison finds would hide the bug's own symptom.
        options.settings.shadow_reads = 0.0;
        if ordinary.is_none() {
            // Row locks and collections have bugs of their own.
            (options.counters, options.parents) = (0, 0);
            (options.collection, options.cluster.hash) = (None, None);
        }
        if ordinary.is_none() || words == CONTRADICTED {
            narrow(&mut options);
        }
        if is_planted {
            options.settings.bugs = bugs;
        }
        run(options, false)
    });
}

/// The table of planted bugs: a test for each line.
macro_rules! planted {
    ($($name:ident: $bugs:expr, $narrow:ident, $seeds:expr, $words:expr;)*) => {
        $(
            #[test]
            fn $name() {
                must_find(&Planted { bugs: $bugs, narrow: $narrow, seeds: $seeds, words: $words });
            }
        )*
    };
}

// `MissingFence` of kv is not here. A proposal whose outcome is unknown ends with the leadership of its term: raftstore
// answers so when it steps down, and a write whose caller is gone goes on. Only an answer that the store loses leaves a
// term that goes on, and the simulation loses none. `kv/tests/kv/write_path` does, and finds the bug.
planted! {
    commit_ts_before_prewrites: in_txn(InTxn::CommitTsBeforePrewrites), ordinary, 10, TOO_EARLY;
    unknown_outcome_rerun: in_txn(InTxn::UnknownOutcomeRerun), refused, 20, TWICE;
    secondaries_first: in_txn(InTxn::SecondariesFirst), ordinary, 20, TORN;
    committed_rolled_back: in_txn(InTxn::CommittedRolledBack), ordinary, 10, CONTRADICTION;
    fallback_on_async_locks: in_txn(InTxn::FallbackOnAsyncLocks), ordinary, 40, CONTRADICTION;
    timestamp_ahead: in_kv(InKv::TimestampAhead), ordinary, 20, STALE_OR_BELOW_TOKEN;
    least_not_taken: in_kv(InKv::LeastNotTaken), ordinary, 40, ORDER;
    early_latch_release: in_kv(InKv::EarlyLatchRelease), ordinary, 20, OVERWRITTEN;
    max_ts_before_locks: in_kv(InKv::MaxTsBeforeLocks), ordinary, 10, MISSED;
    late_count: in_kv(InKv::LateCount), ordinary, 10, MISSED;
    early_memory_release: in_kv(InKv::EarlyMemoryRelease), ordinary, 10, MISSED;
    max_ts_not_raised: in_kv(InKv::MaxTsNotRaised), ordinary, 10, MISSED;
    unsynced_one_phase: in_kv(InKv::UnsyncedOnePhase), handed_over, 20, MISSED;
    forgotten_secondary: in_kv(InKv::ForgottenSecondary), ordinary, 20, CONTRADICTION;
    async_pushed: in_kv(InKv::AsyncPushed), ordinary, 20, TORN;
    expired_async_rolled_back: in_kv(InKv::ExpiredAsyncRolledBack), ordinary, 20, TORN;
    push_answered_early: in_kv(InKv::PushAnsweredEarly), in_two_phases, 60, MISSED;
    queue_answered_early: in_kv(InKv::QueueAnsweredEarly), ordinary, 20, MISSED;
    grant_ignores_locks: in_kv(InKv::GrantIgnoresLocks), ordinary, 20, MISSED;
    grant_index_early: in_kv(InKv::GrantIndexEarly), ordinary, 40, MISSED;
    queue_answered_early_is_reported: in_kv(InKv::QueueAnsweredEarly), shadowed, 20, CONTRADICTED;
    lock_handed_twice: in_kv(InKv::LockHandedTwice), crowded, 10, LOST_LOCK;
    old_row_evaluated: in_kv(InKv::OldRowEvaluated), crowded, 10, LOST_UPDATE;
    shared_not_confirmed: in_kv(InKv::SharedNotConfirmed), families, 40, BROKEN;
    lost_lock_ignored: in_kv(InKv::LostLockIgnored), families, 40, ORPHANED;
    locks_not_handed_over: in_kv(InKv::LocksNotHandedOver), handed_over_politely, 20, LOST_LOCK;
    waiter_forgotten: in_kv(InKv::WaiterForgotten), handed_over_politely, 20, ENDLESS;
    detector_drops_edge: in_kv(InKv::DetectorDropsEdge), crowded, 20, ENDLESS;
    floor_ignored: in_kv(InKv::FloorIgnored), in_order, 20, BELOW_TOKEN;
    wish_joins_request: in_kv(InKv::WishJoinsRequest), asking, 40, STALE;
    lease_checked_first: in_kv(InKv::LeaseCheckedFirst), transferred, 60, STALE_OR_MISSED;
    lease_not_checked: in_tso(InTso::LeaseNotChecked), transferred, 60, STALE_OR_MISSED;
    snapshots_ignored: in_gc(GcBug::SnapshotsIgnored, None), collecting, 10, PASSED;
    snapshots_unchecked: in_gc(GcBug::SnapshotsIgnored, Some(InKv::SafePointUnchecked)), collecting, 10, CHANGED;
    collected_early: in_gc(GcBug::CollectedEarly, None), collecting, 40, TORN_BY_COLLECTION;
    reads_unchecked: in_kv(InKv::SafePointUnchecked), collecting, 10, CHANGED;
}

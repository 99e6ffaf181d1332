//! Coordinators that stop at each step of a commit: other transactions complete the commit or roll it back as a whole.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

#[cfg(feature = "planted-bugs")]
use super::common::builder;
use super::common::endpoints::{CommitFault, FaultyEndpoint, NoCommits, NoPrewrites, RequestFault, Stalling};
use super::common::{VirtualTso, cluster, database, key, locks, run, seeded, two_phase, value};
use kv::Key;
use kv::api::RequestBody;
use kv::memory::{Fault, Faults, MemoryCluster};
#[cfg(feature = "planted-bugs")]
use kv::planted::PlantedBug;
use tokio::task::JoinHandle;
use tso::Timestamp;
use txn::{Database, TxnConfig, TxnError, TxnOutcome};

type Outcome = Result<Option<Timestamp>, TxnError>;

/// Keys in four regions, two of them in one.
fn keys() -> Vec<Key> {
    ["a1", "a2", "b1", "c1", "d1"].into_iter().map(key).collect()
}

async fn write_all(db: &Database, text: &str) -> Outcome {
    write(db, &keys(), text).await
}

async fn write(db: &Database, keys: &[Key], text: &str) -> Outcome {
    let mut txn = db.begin().await?;
    for key in keys {
        txn.put(key.clone(), value(text))?;
    }
    txn.commit().await
}

/// The one value that all keys have, as another transaction reads it.
async fn read_all(db: &Database) -> String {
    let txn = db.begin().await.expect("a timestamp");
    let found = txn.batch_get(&keys()).await.expect("locks are resolved");
    let values: Vec<String> = found.iter().map(|(_, value)| String::from_utf8_lossy(value).into_owned()).collect();
    assert_eq!(values.len(), keys().len(), "a key is missing");
    assert!(values.windows(2).all(|pair| pair[0] == pair[1]), "a commit is not atomic: {values:?}");
    values[0].clone()
}

/// An asynchronous commit is complete once all keys that its primary's lock names are locked. If the lock forgets one,
/// others commit a part of the transaction.
#[cfg(feature = "planted-bugs")]
#[test]
fn an_async_commit_that_forgets_a_secondary_is_torn() {
    for (bug, expected) in [(Some(PlantedBug::ForgottenSecondary), false), (None, true)] {
        let is_atomic = run(async {
            let cluster = builder(Faults::none()).planted_bug(bug).build();
            let tso = VirtualTso::new();
            let others = database(Arc::new(cluster.clone()), tso.clone(), seeded(1));
            for _ in 0..2 {
                write_all(&others, "old").await.expect("nothing is in the way");
                assert!(others.drain(Duration::from_secs(60)).await);
            }
            // The coordinator dies before the last region is prewritten.
            let endpoint = Stalling::new(Arc::new(cluster.clone()), 3, false);
            let coordinator = database(endpoint.clone(), tso, seeded(2));
            let commit = tokio::spawn(async move { write_all(&coordinator, "new").await });
            endpoint.until_stalled().await;
            let found = others.begin().await.expect("a timestamp").batch_get(&keys()).await.expect("served");
            commit.abort();
            found.windows(2).all(|pair| pair[0].1 == pair[1].1)
        });
        assert_eq!(is_atomic, expected, "{bug:?}");
    }
}

struct StoppedCommit {
    cluster: MemoryCluster,
    /// The gateway of other transactions.
    others: Database,
    endpoint: Arc<Stalling>,
    commit: JoinHandle<Outcome>,
}

/// A cluster with old values, and a coordinator that commits new ones and stops after `calls` requests.
async fn stop_after(calls: u64, deliver_last: bool, config: TxnConfig) -> StoppedCommit {
    stop_in(cluster(Faults::none()), calls, deliver_last, config).await
}

/// The same in this cluster, which is empty.
async fn stop_in(cluster: MemoryCluster, calls: u64, deliver_last: bool, config: TxnConfig) -> StoppedCommit {
    let tso = VirtualTso::new();
    let others = database(Arc::new(cluster.clone()), tso.clone(), seeded(1));
    write_all(&others, "old").await.expect("nothing is in the way");
    assert!(others.drain(Duration::from_secs(60)).await);
    let endpoint = Stalling::new(Arc::new(cluster.clone()), calls, deliver_last);
    let coordinator = database(endpoint.clone(), tso, config);
    let commit = tokio::spawn(async move { write_all(&coordinator, "new").await });
    while !commit.is_finished() && !endpoint.has_stalled() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    StoppedCommit { cluster, others, endpoint, commit }
}

/// An asynchronous commit; two phases with one batch for all keys, and with one batch for each key.
fn configs() -> [TxnConfig; 3] {
    let mut many = two_phase(2);
    many.commit.batch_keys = 1;
    [seeded(2), two_phase(2), many]
}

/// Runs `check` for a coordinator that stops after 0, 1, 2, ... requests, until the commit needs fewer requests.
fn at_every_step(check: impl AsyncFn(StoppedCommit, &str)) {
    for (deliver_last, config) in [(false, 0), (true, 0), (false, 1), (true, 1), (false, 2), (true, 2)] {
        let mut steps = 0;
        loop {
            let at = format!("config {config}, after {steps} requests, last delivered: {deliver_last}");
            let stopped = run(async {
                let stopped_commit = stop_after(steps, deliver_last, configs()[config].clone()).await;
                // Background work may still stop after the commit was acknowledged.
                for _ in 0..50 {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                let stopped = stopped_commit.endpoint.has_stalled();
                check(stopped_commit, &at).await;
                stopped
            });
            if !stopped {
                break;
            }
            steps += 1;
        }
        assert!(steps >= 6, "a commit over four regions takes more than {steps} requests");
    }
}

#[test]
fn the_commit_of_a_dead_coordinator_is_atomic() {
    at_every_step(async |stopped, at| {
        let result = read_all(&stopped.others).await;
        if stopped.commit.is_finished() {
            assert!(matches!(stopped.commit.await.expect("no panic"), Ok(Some(_))), "{at}");
            assert_eq!(result, "new", "{at}: an acknowledged commit is lost");
        }
        // The read may have passed the locks while they were live.
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(read_all(&stopped.others).await, result, "{at}: the outcome changed");
        assert_eq!(locks(&stopped.cluster), Vec::new(), "{at}: locks are left");
    });
}

#[test]
fn a_resumed_coordinator_agrees_with_the_decided_outcome() {
    at_every_step(async |stopped, at| {
        let before = read_all(&stopped.others).await;
        stopped.endpoint.wake();
        let outcome = stopped.commit.await.expect("no panic");
        assert!(stopped.others.drain(Duration::from_secs(60)).await);
        let after = read_all(&stopped.others).await;
        match outcome {
            // Others may have read before its first lock existed: then it commits after them.
            Ok(Some(_)) => assert_eq!(after, "new", "{at}"),
            Err(TxnError::Conflict(_)) => assert_eq!((before.as_str(), after.as_str()), ("old", "old"), "{at}"),
            other => panic!("{at}: {other:?}"),
        }
        if before == "new" {
            assert_eq!(after, "new", "{at}: a value that was read is gone");
        }
    });
}

#[test]
fn a_commit_survives_one_fault_at_any_step() {
    let faults = [
        Fault::LoseReply,
        Fault::Undetermined { applied: true },
        Fault::Undetermined { applied: false },
        Fault::Unreachable,
        Fault::Duplicate,
        Fault::MoveLeader(raftstore::StoreId::new(2)),
        Fault::Split(key("a2")),
        Fault::Split(key("c1")),
    ];
    let no_fault = Fault::MoveLeader(raftstore::StoreId::new(99));
    for fault in faults {
        for step in 0..10 {
            run(async {
                let cluster = cluster(Faults::none());
                let db = database(Arc::new(cluster.clone()), VirtualTso::new(), seeded(step));
                write_all(&db, "old").await.expect("nothing is in the way");
                assert!(db.drain(Duration::from_secs(60)).await);
                let before = (0..step).map(|_| no_fault.clone());
                cluster.inject(before.chain([fault.clone()]));
                let outcome = write_all(&db, "new").await;
                assert!(matches!(outcome, Ok(Some(_))), "{fault:?} at step {step}: {outcome:?}");
                assert_eq!(read_all(&db).await, "new", "{fault:?} at step {step}");
                assert!(db.drain(Duration::from_secs(60)).await);
                assert_eq!(locks(&cluster), Vec::new(), "{fault:?} at step {step}");
            });
        }
    }
}

/// A commit that is never answered is `Undetermined`, whether it was executed or not. A commit that was certainly not
/// delivered is `Unavailable`. What an `Undetermined` names can be asked for later.
#[test]
fn the_outcome_of_a_commit_is_never_misstated() {
    let cases = [
        (CommitFault::LostReply, true, "new"),
        (CommitFault::LostRequest, true, "old"),
        (CommitFault::Unreachable, false, "old"),
    ];
    for (fault, is_unknown, then) in cases {
        run(async {
            let cluster = cluster(Faults::none());
            let tso = VirtualTso::new();
            let others = database(Arc::new(cluster.clone()), tso.clone(), seeded(1));
            write_all(&others, "old").await.expect("nothing is in the way");
            let db = database(Arc::new(NoCommits { cluster, fault }), tso, two_phase(2));
            let outcome = write_all(&db, "new").await;
            let (start_ts, primary) = match outcome {
                Err(TxnError::Undetermined { start_ts, primary }) if is_unknown => (start_ts, primary),
                Err(TxnError::Unavailable(_)) if !is_unknown => {
                    assert_eq!(read_all(&others).await, then, "{fault:?}");
                    return;
                }
                other => panic!("{fault:?}: {other:?}"),
            };
            let asked = others.outcome(start_ts, &primary).await;
            let committed = matches!(asked, Ok(TxnOutcome::Committed(_)));
            assert!(committed == (then == "new") || asked == Ok(TxnOutcome::Undecided), "{fault:?}: {asked:?}");
            // Past the life of any lock.
            tokio::time::sleep(Duration::from_secs(60)).await;
            assert_eq!(read_all(&others).await, then, "{fault:?}");
            let asked = others.outcome(start_ts, &primary).await;
            match then {
                "new" => assert!(matches!(asked, Ok(TxnOutcome::Committed(_))), "{fault:?}: {asked:?}"),
                _ => assert_eq!(asked, Ok(TxnOutcome::RolledBack), "{fault:?}"),
            }
            let never = others.outcome(start_ts.prev(), &primary).await;
            assert_eq!(never, Ok(TxnOutcome::Missing), "{fault:?}");
        });
    }
}

/// The answers to all attempts of a commit in one phase, and of an asynchronous one, are lost. The outcome is settled
/// afterwards, or it is unknown.
#[test]
fn the_outcome_of_an_unanswered_attempt_is_settled() {
    let cases = [
        (CommitFault::LostReply, false, Some(true), "new"),
        (CommitFault::LostRequest, false, Some(false), "old"),
        (CommitFault::Unreachable, false, Some(false), "old"),
        (CommitFault::LostReply, true, None, "new"),
        (CommitFault::LostRequest, true, None, "old"),
    ];
    for (fault, also_settling, expected, then) in cases {
        // In one region, and in four.
        for keys in [&keys()[..2], &keys()[..]] {
            let at = format!("{fault:?}, settling fails {also_settling}, {} keys", keys.len());
            run(async {
                let cluster = cluster(Faults::none());
                let tso = VirtualTso::new();
                let others = database(Arc::new(cluster.clone()), tso.clone(), seeded(1));
                // Twice, so that all regions are synced.
                for _ in 0..2 {
                    write(&others, keys, "old").await.expect("nothing is in the way");
                }
                assert!(others.drain(Duration::from_secs(60)).await);
                let lossy = NoPrewrites { cluster: cluster.clone(), fault, also_settling };
                let db = database(Arc::new(lossy), tso, seeded(2));
                let outcome = write(&db, keys, "new").await;
                match expected {
                    Some(true) => assert!(matches!(outcome, Ok(Some(_))), "{at}: {outcome:?}"),
                    Some(false) => assert!(matches!(outcome, Err(TxnError::Unavailable(_))), "{at}: {outcome:?}"),
                    None => assert!(matches!(outcome, Err(TxnError::Undetermined { .. })), "{at}: {outcome:?}"),
                }
                // Past the life of any lock.
                tokio::time::sleep(Duration::from_secs(60)).await;
                let txn = others.begin().await.expect("a timestamp");
                for key in keys {
                    assert_eq!(txn.get(key).await, Ok(Some(value(then))), "{at}: {key:?}");
                }
            });
        }
    }
}

/// Commits new values over old ones while `fault` decides what happens to each request. Another transaction reads once
/// `until_read` ends, and again after the commit. Returns the first read, the outcome and the second read.
async fn read_during_commit(
    fault: impl Fn(&RequestBody, Duration) -> RequestFault + Send + Sync + 'static,
    until_read: impl AsyncFn(&MemoryCluster),
) -> (String, Outcome, String) {
    let cluster = cluster(Faults::none());
    let tso = VirtualTso::new();
    let others = database(Arc::new(cluster.clone()), tso.clone(), seeded(1));
    write_all(&others, "old").await.expect("nothing is in the way");
    assert!(others.drain(Duration::from_secs(60)).await);
    let coordinator = database(FaultyEndpoint::new(&cluster, fault), tso, seeded(2));
    let commit = tokio::spawn(async move { write_all(&coordinator, "new").await });
    until_read(&cluster).await;
    let first = read_all(&others).await;
    let outcome = commit.await.expect("no panic");
    (first, outcome, read_all(&others).await)
}

/// Waits until the coordinator holds a lock, and one millisecond more.
async fn until_locked(cluster: &MemoryCluster) {
    while locks(cluster).is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    tokio::time::sleep(Duration::from_millis(1)).await;
}

fn is_prewrite(body: &RequestBody) -> bool {
    matches!(body, RequestBody::Prewrite(_))
}

fn is_commit(body: &RequestBody) -> bool {
    matches!(body, RequestBody::Commit { .. })
}

/// Heartbeats keep the locks of a slow commit alive: a reader waits for it instead of rolling it back.
#[test]
fn heartbeats_outlast_a_slow_commit() {
    run(async {
        // Seven seconds for every step, three for a lock.
        let slow = |body: &RequestBody, _| match body {
            RequestBody::Prewrite(_) | RequestBody::Commit { .. } => RequestFault::Late(Duration::from_secs(7)),
            _ => RequestFault::Pass,
        };
        let later = async |_: &MemoryCluster| tokio::time::sleep(Duration::from_millis(7_500)).await;
        let (first, outcome, _) = read_during_commit(slow, later).await;
        assert_eq!(first, "new", "the reader began while the locks existed");
        assert!(matches!(outcome, Ok(Some(_))));
    });
}

/// A lock's ttl counts from start_ts: a prewrite that succeeds late must send a longer ttl.
#[test]
fn a_late_prewrite_does_not_write_an_expired_lock() {
    run(async {
        let down = Duration::from_millis(8_300);
        let fault = move |body: &RequestBody, elapsed| match body {
            _ if is_prewrite(body) && elapsed < down => RequestFault::Unreachable,
            _ if is_commit(body) => RequestFault::Late(Duration::from_millis(500)),
            _ => RequestFault::Pass,
        };
        let (first, outcome, last) = read_during_commit(fault, until_locked).await;
        assert!(matches!(outcome, Ok(Some(_))), "a reader rolled it back: {outcome:?}");
        assert_eq!((first.as_str(), last.as_str()), ("old", "new"), "its commit_ts is above the reader's snapshot");
    });
}

/// A slow prewrite leaves a lock that is about to expire: an extra heartbeat is sent at once.
#[test]
fn a_slow_prewrite_is_followed_by_an_extra_heartbeat() {
    run(async {
        let fault = |body: &RequestBody, _| match body {
            _ if is_prewrite(body) => RequestFault::Late(Duration::from_millis(3_400)),
            _ if is_commit(body) => RequestFault::Late(Duration::from_millis(500)),
            _ => RequestFault::Pass,
        };
        let (_, outcome, last) = read_during_commit(fault, until_locked).await;
        assert!(matches!(outcome, Ok(Some(_))), "a reader rolled it back: {outcome:?}");
        assert_eq!(last, "new");
    });
}

/// An unanswered heartbeat does not delay the next one.
#[test]
fn an_unanswered_heartbeat_does_not_let_the_lock_expire() {
    run(async {
        let beats = AtomicU64::new(0);
        let fault = move |body: &RequestBody, _| match body {
            RequestBody::Heartbeat { .. } if beats.fetch_add(1, Ordering::Relaxed) == 0 => RequestFault::Silence,
            _ if is_commit(body) => RequestFault::Late(Duration::from_secs(6)),
            _ => RequestFault::Pass,
        };
        let later = async |_: &MemoryCluster| tokio::time::sleep(Duration::from_millis(4_500)).await;
        let (first, outcome, _) = read_during_commit(fault, later).await;
        assert!(matches!(outcome, Ok(Some(_))), "a reader rolled it back: {outcome:?}");
        assert_eq!(first, "new", "the reader waited for it");
    });
}

/// A lock whose primary is not yet prewritten belongs to a live transaction: a reader waits for it instead of rolling
/// it back.
#[test]
fn a_reader_waits_for_a_missing_primary() {
    run(async {
        let late = |body: &RequestBody, _| match body {
            RequestBody::Prewrite(prewrite) if prewrite.mutations.iter().any(|m| m.key == prewrite.primary) => {
                RequestFault::Late(Duration::from_secs(2))
            }
            _ => RequestFault::Pass,
        };
        let later = async |_: &MemoryCluster| tokio::time::sleep(Duration::from_millis(100)).await;
        let (first, outcome, last) = read_during_commit(late, later).await;
        assert_eq!(first, "old", "its commit_ts is above the reader's snapshot");
        assert!(matches!(outcome, Ok(Some(_))), "{outcome:?}");
        assert_eq!(last, "new");
    });
}

/// Garbage collection resolves what a coordinator has left, in all regions, before any record may go. What the
/// coordinator still has on its way comes to nothing.
#[test]
fn the_safe_point_passes_a_stopped_coordinator_and_nothing_of_it_comes_later() {
    let left_in_all = AtomicUsize::new(0);
    at_every_step(async |stopped, at| {
        left_in_all.fetch_add(locks(&stopped.cluster).len(), Ordering::Relaxed);
        // Its locks expire.
        tokio::time::sleep(Duration::from_secs(25)).await;
        let safe_point = stopped.others.begin().await.expect("a timestamp").start_ts();
        stopped.others.collection().raise(safe_point).await.unwrap_or_else(|error| panic!("{at}: {error}"));
        assert_eq!(locks(&stopped.cluster), Vec::new(), "{at}: locks are left");
        let before = read_all(&stopped.others).await;
        stopped.endpoint.wake();
        let outcome = stopped.commit.await.expect("no panic");
        assert!(stopped.others.drain(Duration::from_secs(60)).await);
        match &outcome {
            Ok(Some(_)) => assert_eq!(before, "new", "{at}"),
            Err(TxnError::Conflict(_)) => assert_eq!(before, "old", "{at}"),
            // Nobody says that it was rolled back, because its record might be collected.
            Err(TxnError::Undetermined { .. }) => {}
            other => panic!("{at}: {other:?}"),
        }
        assert_eq!(locks(&stopped.cluster), Vec::new(), "{at}: locks came later");
        assert_eq!(read_all(&stopped.others).await, before, "{at}: it changed below the safe point");
    });
    assert!(left_in_all.into_inner() > 20, "too few locks were left to show anything");
}

/// Nobody reads or writes the keys of a dead coordinator. The sweep finds its locks and settles them all alike.
#[test]
fn the_sweep_finds_the_locks_that_a_stopped_coordinator_has_left() {
    let met_in_all = AtomicUsize::new(0);
    at_every_step(async |stopped, at| {
        let left = locks(&stopped.cluster).len();
        let now = stopped.others.begin().await.expect("a timestamp").start_ts();
        stopped.others.collection().sweep(now).await.unwrap_or_else(|error| panic!("{at}: {error}"));
        let kept = locks(&stopped.cluster).len();
        if kept < left {
            assert_eq!(read_all(&stopped.others).await, "new", "{at}: locks of a living transaction are gone");
        }
        tokio::time::sleep(Duration::from_secs(25)).await;
        let now = stopped.others.begin().await.expect("a timestamp").start_ts();
        let met = stopped.others.collection().sweep(now).await.unwrap_or_else(|error| panic!("{at}: {error}"));
        assert_eq!(locks(&stopped.cluster), Vec::new(), "{at}: locks are left");
        assert!(met > 0 || kept == 0, "{at}: {kept} locks, none met");
        met_in_all.fetch_add(met, Ordering::Relaxed);
        let after = read_all(&stopped.others).await;
        if stopped.commit.is_finished() {
            assert_eq!(after, "new", "{at}: an acknowledged commit is lost");
        }
    });
    assert!(met_in_all.into_inner() > 20, "the sweep met too few locks to show anything");
}

/// A region that takes writes of transactions below its safe point lets a coordinator commit that was stopped before
/// its first request. By then records that its reads relied on may be collected.
#[cfg(feature = "planted-bugs")]
#[test]
fn planted_old_writes_below_the_safe_point_are_found() {
    for config in configs() {
        for (bug, commits) in [(Some(PlantedBug::OldWritesAccepted), true), (None, false)] {
            let outcome = run(async {
                let cluster = builder(Faults::none()).planted_bug(bug).build();
                let StoppedCommit { others, endpoint, commit, .. } = stop_in(cluster, 0, false, config.clone()).await;
                let safe_point = others.begin().await.expect("a timestamp").start_ts();
                others.collection().raise(safe_point).await.expect("all regions serve");
                endpoint.wake();
                commit.await.expect("no panic")
            });
            assert_eq!(matches!(outcome, Ok(Some(_))), commits, "{bug:?}: {outcome:?}");
        }
    }
}

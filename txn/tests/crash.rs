//! Coordinators that stop at every step of a commit: others finish or undo what was begun, all of it or nothing.

#![allow(clippy::expect_used, reason = "a test fails by panicking")]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use common::endpoints::{CommitFate, Course, Courses, NoCommits, Stalling};
use common::{VirtualTso, cluster, database, key, locks, run, seeded, value};
use kv::Key;
use kv::api::RequestBody;
use kv::memory::{Fault, Faults, MemoryCluster};
use tokio::task::JoinHandle;
use tso::Timestamp;
use txn::{CommitLimits, Database, TxnConfig, TxnError};

type Outcome = Result<Option<Timestamp>, TxnError>;

/// Keys in four regions, two of them in one.
fn keys() -> Vec<Key> {
    ["a1", "a2", "b1", "c1", "d1"].into_iter().map(key).collect()
}

async fn write_all(db: &Database, text: &str) -> Outcome {
    let mut txn = db.begin().await?;
    for key in keys() {
        txn.put(key, value(text))?;
    }
    txn.commit().await
}

/// What others see: the one value that all keys have.
async fn seen(db: &Database) -> String {
    let txn = db.begin().await.expect("a timestamp");
    let found = txn.batch_get(&keys()).await.expect("locks are resolved");
    let values: Vec<String> = found.iter().map(|(_, value)| String::from_utf8_lossy(value).into_owned()).collect();
    assert_eq!(values.len(), keys().len(), "a key is missing");
    assert!(values.windows(2).all(|pair| pair[0] == pair[1]), "a commit was torn: {values:?}");
    values[0].clone()
}

struct World {
    cluster: MemoryCluster,
    others: Database,
    endpoint: Arc<Stalling>,
    commit: JoinHandle<Outcome>,
}

/// Old values are there; a coordinator begins to write new ones, and stops after `calls` requests.
async fn world(calls: u64, deliver_last: bool, config: TxnConfig) -> World {
    let cluster = cluster(Faults::none());
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
    World { cluster, others, endpoint, commit }
}

/// One batch for all keys, and one for each.
fn configs() -> [TxnConfig; 2] {
    [100, 1].map(|batch_keys| TxnConfig { commit: CommitLimits { batch_keys, ..CommitLimits::default() }, ..seeded(2) })
}

/// Runs `check` for a coordinator that stops after 0, 1, 2, ... requests, until it does not stop any more.
fn at_every_step(check: impl AsyncFn(World, &str)) {
    for (deliver_last, config) in [(false, 0), (true, 0), (false, 1), (true, 1)] {
        let mut steps = 0;
        loop {
            let at = format!("config {config}, after {steps} requests, last delivered: {deliver_last}");
            let stopped = run(async {
                let world = world(steps, deliver_last, configs()[config].clone()).await;
                // Background work may still stop after the commit was acknowledged.
                for _ in 0..50 {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                let stopped = world.endpoint.has_stalled();
                check(world, &at).await;
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
fn a_coordinator_that_dies_leaves_all_or_nothing() {
    at_every_step(async |world, at| {
        let result = seen(&world.others).await;
        if world.commit.is_finished() {
            assert!(matches!(world.commit.await.expect("no panic"), Ok(Some(_))), "{at}");
            assert_eq!(result, "new", "{at}: an acknowledged commit is lost");
        }
        assert_eq!(locks(&world.cluster), Vec::new(), "{at}: locks are left");
        assert_eq!(seen(&world.others).await, result, "{at}: the fate changed");
    });
}

#[test]
fn a_coordinator_that_wakes_up_agrees_with_what_others_decided() {
    at_every_step(async |world, at| {
        let before = seen(&world.others).await;
        world.endpoint.wake();
        let outcome = world.commit.await.expect("no panic");
        assert!(world.others.drain(Duration::from_secs(60)).await);
        let after = seen(&world.others).await;
        match outcome {
            // Others may have looked before its first lock was there: then it commits after them.
            Ok(Some(_)) => assert_eq!(after, "new", "{at}"),
            Err(TxnError::Conflict(_)) => assert_eq!((before.as_str(), after.as_str()), ("old", "old"), "{at}"),
            other => panic!("{at}: {other:?}"),
        }
        if before == "new" {
            assert_eq!(after, "new", "{at}: what was seen is gone");
        }
    });
}

#[test]
fn one_fault_at_any_step_is_not_noticed() {
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
    let nothing = Fault::MoveLeader(raftstore::StoreId::new(99));
    for fault in faults {
        for step in 0..10 {
            run(async {
                let cluster = cluster(Faults::none());
                let db = database(Arc::new(cluster.clone()), VirtualTso::new(), seeded(step));
                write_all(&db, "old").await.expect("nothing is in the way");
                assert!(db.drain(Duration::from_secs(60)).await);
                let before = (0..step).map(|_| nothing.clone());
                cluster.inject(before.chain([fault.clone()]));
                let outcome = write_all(&db, "new").await;
                assert!(matches!(outcome, Ok(Some(_))), "{fault:?} at step {step}: {outcome:?}");
                assert_eq!(seen(&db).await, "new", "{fault:?} at step {step}");
                assert!(db.drain(Duration::from_secs(60)).await);
                assert_eq!(locks(&cluster), Vec::new(), "{fault:?} at step {step}");
            });
        }
    }
}

/// A commit that is never answered is `Undetermined`, whether it was carried out or not; one that surely was not
/// delivered is `Unavailable`.
#[test]
fn the_outcome_of_a_commit_is_never_misstated() {
    let cases = [
        (CommitFate::LostReply, Err(TxnError::Undetermined), "new"),
        (CommitFate::LostRequest, Err(TxnError::Undetermined), "old"),
        (CommitFate::Unreachable, Ok(()), "old"),
    ];
    for (fate, expected, then) in cases {
        run(async {
            let cluster = cluster(Faults::none());
            let tso = VirtualTso::new();
            let others = database(Arc::new(cluster.clone()), tso.clone(), seeded(1));
            write_all(&others, "old").await.expect("nothing is in the way");
            let db = database(Arc::new(NoCommits { cluster, fate }), tso, seeded(2));
            let outcome = write_all(&db, "new").await;
            match expected {
                Err(expected) => assert_eq!(outcome, Err(expected), "{fate:?}"),
                Ok(()) => assert!(matches!(outcome, Err(TxnError::Unavailable(_))), "{fate:?}: {outcome:?}"),
            }
            assert_eq!(seen(&others).await, then, "{fate:?}");
        });
    }
}

/// A cluster with old values, a coordinator that writes new ones while its requests go the way that `course` says, and
/// a moment for others to look.
async fn beside(
    course: impl Fn(&RequestBody, Duration) -> Course + Send + Sync + 'static,
    look: impl AsyncFn(&MemoryCluster),
) -> (String, Outcome, String) {
    let cluster = cluster(Faults::none());
    let tso = VirtualTso::new();
    let others = database(Arc::new(cluster.clone()), tso.clone(), seeded(1));
    write_all(&others, "old").await.expect("nothing is in the way");
    assert!(others.drain(Duration::from_secs(60)).await);
    let coordinator = database(Courses::new(&cluster, course), tso, seeded(2));
    let commit = tokio::spawn(async move { write_all(&coordinator, "new").await });
    look(&cluster).await;
    let first = seen(&others).await;
    let outcome = commit.await.expect("no panic");
    (first, outcome, seen(&others).await)
}

/// The first moment at which a lock of the coordinator is there, and a little later.
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

/// Heartbeats keep the locks of a slow commit alive; a reader waits for it instead of killing it.
#[test]
fn heartbeats_outlast_a_slow_commit() {
    run(async {
        // Seven seconds for every step, three for a lock.
        let slow = |body: &RequestBody, _| match body {
            RequestBody::Prewrite(_) | RequestBody::Commit { .. } => Course::Late(Duration::from_secs(7)),
            _ => Course::Pass,
        };
        let later = async |_: &MemoryCluster| tokio::time::sleep(Duration::from_millis(7_500)).await;
        let (first, outcome, _) = beside(slow, later).await;
        assert_eq!(first, "new", "the reader began while the locks were there");
        assert!(matches!(outcome, Ok(Some(_))));
    });
}

/// A lock's life is counted from the start of the transaction: a prewrite that got through late must say so.
#[test]
fn a_lock_is_not_born_expired_after_many_attempts() {
    run(async {
        let down = Duration::from_millis(8_300);
        let course = move |body: &RequestBody, elapsed| match body {
            _ if is_prewrite(body) && elapsed < down => Course::Unreachable,
            _ if is_commit(body) => Course::Late(Duration::from_millis(500)),
            _ => Course::Pass,
        };
        let (first, outcome, last) = beside(course, until_locked).await;
        assert!(matches!(outcome, Ok(Some(_))), "a reader took it for dead: {outcome:?}");
        assert_eq!((first.as_str(), last.as_str()), ("old", "new"), "its commit_ts comes after the reader's snapshot");
    });
}

/// A prewrite that was long under way leaves a lock that is old already: it is kept alive at once, not in its turn.
#[test]
fn a_lock_that_is_born_old_is_kept_alive_at_once() {
    run(async {
        let course = |body: &RequestBody, _| match body {
            _ if is_prewrite(body) => Course::Late(Duration::from_millis(3_400)),
            _ if is_commit(body) => Course::Late(Duration::from_millis(500)),
            _ => Course::Pass,
        };
        let (_, outcome, last) = beside(course, until_locked).await;
        assert!(matches!(outcome, Ok(Some(_))), "a reader took it for dead: {outcome:?}");
        assert_eq!(last, "new");
    });
}

/// A heartbeat that nobody answers does not keep the next one waiting.
#[test]
fn a_silent_heartbeat_does_not_let_the_lock_expire() {
    run(async {
        let beats = AtomicU64::new(0);
        let course = move |body: &RequestBody, _| match body {
            RequestBody::Heartbeat { .. } if beats.fetch_add(1, Ordering::Relaxed) == 0 => Course::Silence,
            _ if is_commit(body) => Course::Late(Duration::from_secs(6)),
            _ => Course::Pass,
        };
        let later = async |_: &MemoryCluster| tokio::time::sleep(Duration::from_millis(4_500)).await;
        let (first, outcome, _) = beside(course, later).await;
        assert!(matches!(outcome, Ok(Some(_))), "a reader took it for dead: {outcome:?}");
        assert_eq!(first, "new", "the reader waited for it");
    });
}

/// A lock whose primary is still on its way belongs to a living transaction: a reader waits for it instead of killing
/// it.
#[test]
fn a_primary_on_its_way_is_waited_for() {
    run(async {
        let late = |body: &RequestBody, _| match body {
            RequestBody::Prewrite(prewrite) if prewrite.mutations.iter().any(|m| m.key == prewrite.primary) => {
                Course::Late(Duration::from_secs(2))
            }
            _ => Course::Pass,
        };
        let later = async |_: &MemoryCluster| tokio::time::sleep(Duration::from_millis(100)).await;
        let (first, outcome, last) = beside(late, later).await;
        assert_eq!(first, "old", "its commit_ts comes after the reader's snapshot");
        assert!(matches!(outcome, Ok(Some(_))), "{outcome:?}");
        assert_eq!(last, "new");
    });
}

//! Row locks as transactions use them: snapshots of statements, waits, savepoints, locks that are lost, kept and given
//! up.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use kv::api::{LockMode, LockedRow, Presence, RowFound};
use kv::memory::{Faults, MemoryCluster};
use txn::{Database, LockAsk, LockWait, Transaction, TxnError};

use super::common::{cluster, database, key, run, seeded, value};

const ASK: LockAsk =
    LockAsk { mode: LockMode::Update, presence: Presence::Any, was_read: false, wait: LockWait::Queue(None) };

fn fresh() -> (MemoryCluster, Database) {
    let cluster = cluster(Faults::none());
    let db = database(Arc::new(cluster.clone()), cluster.tso(), seeded(7));
    (cluster, db)
}

async fn set(db: &Database, at: &str, text: &str) {
    let mut txn = db.begin().await.unwrap();
    txn.put(key(at), value(text)).unwrap();
    txn.commit().await.unwrap();
}

/// A transaction whose statements have snapshots of their own.
async fn read_committed(db: &Database) -> Transaction {
    let mut txn = db.begin().await.unwrap();
    txn.begin_statement();
    txn
}

async fn lock(txn: &mut Transaction, at: &str, ask: LockAsk) -> Result<LockedRow, TxnError> {
    Ok(txn.lock_rows(vec![key(at)], ask).await?.remove(0))
}

/// Adds 1 to a number, as an UPDATE does: locks the row, and writes what follows from it.
async fn increment(txn: &mut Transaction, at: &str) -> Result<(), TxnError> {
    let old = match lock(txn, at, ASK).await?.row {
        RowFound::Present(old) => String::from_utf8_lossy(&old).parse().unwrap(),
        _ => 0,
    };
    txn.put(key(at), value(&(old + 1).to_string()))
}

async fn get(db: &Database, at: &str) -> Option<bytes::Bytes> {
    db.begin().await.unwrap().get(&key(at)).await.unwrap()
}

#[test]
fn every_statement_sees_what_was_committed_before_it() {
    run(async {
        let (_, db) = fresh();
        set(&db, "a", "1").await;
        let mut txn = read_committed(&db).await;
        assert_eq!(txn.get(&key("a")).await, Ok(Some(value("1"))));
        let start_ts = txn.start_ts();
        set(&db, "a", "2").await;
        assert_eq!(txn.get(&key("a")).await, Ok(Some(value("1"))), "a statement keeps its snapshot");
        txn.begin_statement();
        assert_eq!(txn.get(&key("a")).await, Ok(Some(value("2"))));
        assert_eq!(txn.start_ts(), start_ts, "it is the same transaction");
    });
}

#[test]
fn concurrent_increments_wait_for_each_other_and_none_is_lost() {
    run(async {
        let (_, db) = fresh();
        let one = |n: u64| {
            let db = db.clone();
            async move {
                for _ in 0..5 {
                    let mut txn = read_committed(&db).await;
                    increment(&mut txn, "a").await.unwrap();
                    tokio::time::sleep(Duration::from_millis(n)).await;
                    txn.begin_statement();
                    increment(&mut txn, &format!("own{n}")).await.unwrap();
                    txn.commit().await.unwrap();
                }
            }
        };
        futures::future::join_all((0..8).map(one)).await;
        assert_eq!(get(&db, "a").await, Some(value("40")));
        assert_eq!(get(&db, "own3").await, Some(value("5")));
    });
}

#[test]
fn a_transaction_with_one_snapshot_conflicts_where_the_row_has_changed() {
    run(async {
        let (_, db) = fresh();
        let mut txn = db.begin().await.unwrap();
        set(&db, "a", "1").await;
        let refused = lock(&mut txn, "a", ASK).await;
        assert!(matches!(refused, Err(TxnError::Conflict(_))), "{refused:?}");
        let mut other = read_committed(&db).await;
        lock(&mut other, "a", ASK).await.expect("nothing is left of the one that failed");
    });
}

#[test]
fn waits_have_a_limit_if_the_caller_says_so() {
    run(async {
        let (_, db) = fresh();
        let mut holder = read_committed(&db).await;
        lock(&mut holder, "a", ASK).await.unwrap();
        let mut txn = read_committed(&db).await;
        let at_once = LockAsk { wait: LockWait::NoWait, ..ASK };
        assert_eq!(lock(&mut txn, "a", at_once).await, Err(TxnError::NotAvailable { key: key("a") }));
        let limited = LockAsk { wait: LockWait::Queue(Some(Duration::from_millis(1_500))), ..ASK };
        let early = tokio::time::timeout(Duration::from_millis(1_400), lock(&mut txn, "a", limited)).await;
        assert!(early.is_err(), "it waits for its time: {early:?}");
        let in_time = tokio::time::timeout(Duration::from_secs(3), lock(&mut txn, "a", limited)).await;
        assert_eq!(in_time, Ok(Err(TxnError::LockTimeout { key: key("a") })));
        let skips = LockAsk { wait: LockWait::Skip, ..ASK };
        let rows = txn.lock_rows(vec![key("a"), key("b")], skips).await.unwrap();
        assert_eq!(rows.iter().map(|row| row.is_locked).collect::<Vec<_>>(), [false, true]);
        drop(txn);
        // Far longer than a request to a store may take.
        let mut patient = read_committed(&db).await;
        let mut waiting = Box::pin(lock(&mut patient, "a", ASK));
        let early = tokio::time::timeout(Duration::from_secs(120), &mut waiting).await;
        assert!(early.is_err(), "the keeper keeps the lock, however long it takes: {early:?}");
        drop(holder);
        waiting.await.unwrap();
    });
}

#[test]
fn a_rollback_to_a_savepoint_gives_up_the_rows_locked_since() {
    run(async {
        let (_, db) = fresh();
        let mut txn = read_committed(&db).await;
        lock(&mut txn, "a", ASK).await.unwrap();
        txn.put(key("a"), value("kept")).unwrap();
        let savepoint = txn.savepoint();
        lock(&mut txn, "b", ASK).await.unwrap();
        txn.put(key("b"), value("undone")).unwrap();
        txn.rollback_to(savepoint);
        txn.locks_released().await;
        let mut other = read_committed(&db).await;
        let at_once = LockAsk { wait: LockWait::NoWait, ..ASK };
        lock(&mut other, "b", at_once).await.expect("it is free");
        assert!(lock(&mut other, "a", at_once).await.is_err(), "it is not");
        drop(other);
        txn.commit().await.unwrap();
        assert_eq!((get(&db, "a").await, get(&db, "b").await), (Some(value("kept")), None));
    });
}

#[test]
fn a_rollback_to_a_savepoint_keeps_the_weaker_lock_from_before() {
    run(async {
        let (_, db) = fresh();
        set(&db, "a", "1").await;
        let mut txn = read_committed(&db).await;
        let shared = LockAsk { mode: LockMode::KeyShare, ..ASK };
        lock(&mut txn, "a", shared).await.unwrap();
        let outer = txn.savepoint();
        lock(&mut txn, "a", LockAsk { mode: LockMode::Share, ..ASK }).await.unwrap();
        let inner = txn.savepoint();
        lock(&mut txn, "a", ASK).await.unwrap();
        let mut other = read_committed(&db).await;
        let at_once = |mode| LockAsk { mode, wait: LockWait::NoWait, ..ASK };
        assert!(lock(&mut other, "a", at_once(LockMode::KeyShare)).await.is_err(), "it is locked for an update");
        txn.rollback_to(inner);
        txn.locks_released().await;
        lock(&mut other, "a", at_once(LockMode::Share)).await.expect("it is shared again");
        drop(other);
        lock(&mut txn, "a", ASK).await.unwrap();
        txn.rollback_to(outer);
        txn.locks_released().await;
        let mut other = read_committed(&db).await;
        lock(&mut other, "a", at_once(LockMode::NoKeyUpdate)).await.expect("only the key is locked");
        assert!(lock(&mut other, "a", at_once(LockMode::Update)).await.is_err(), "it still is");
        drop(other);
        // The lock is a weaker one again, so what it needs is asked for.
        lock(&mut txn, "a", ASK).await.unwrap();
        txn.put(key("a"), value("2")).unwrap();
        txn.commit().await.unwrap();
        assert_eq!(get(&db, "a").await, Some(value("2")));
    });
}

/// Regression: the rows were given up after the answer, so that the session's next statement with SKIP LOCKED sometimes
/// left them out.
#[test]
fn rows_are_free_when_their_transaction_has_ended() {
    run(async {
        let (_, db) = fresh();
        set(&db, "a", "1").await;
        set(&db, "b", "1").await;
        let at_once = LockAsk { wait: LockWait::NoWait, ..ASK };
        for writes in [false, true] {
            let mut txn = read_committed(&db).await;
            lock(&mut txn, "a", at_once).await.unwrap();
            if writes {
                txn.put(key("b"), value("2")).unwrap();
            }
            txn.commit().await.unwrap();
            let mut next = read_committed(&db).await;
            assert!(lock(&mut next, "a", at_once).await.unwrap().is_locked, "writes: {writes}");
            next.release_locks().await;
        }
    });
}

/// The leaders of all regions change, more than once.
fn lose_leaders(cluster: &MemoryCluster) {
    for region in cluster.regions() {
        let (first, others) = (region.region.start.clone(), cluster.regions().len());
        assert!(others > 0);
        let at = if first.is_empty() { key("a") } else { kv::Key::from_storage(&first).unwrap_or(key("a")) };
        for store in [1, 2, 3].map(raftstore::StoreId::new) {
            cluster.move_leader(&at, store);
        }
    }
}

/// What is written is refused if the lock was lost and another transaction has committed: no update is lost.
#[test]
fn a_lock_that_was_lost_costs_the_transaction_and_no_data() {
    run(async {
        let (cluster, db) = fresh();
        set(&db, "a", "1").await;
        let mut txn = read_committed(&db).await;
        increment(&mut txn, "a").await.unwrap();
        lose_leaders(&cluster);
        let mut other = read_committed(&db).await;
        match increment(&mut other, "a").now_or_never() {
            Some(Ok(())) => (),
            other => panic!("the new leader knows nothing of the lock: {other:?}"),
        }
        other.commit().await.unwrap();
        let lost = txn.commit().await;
        assert!(matches!(lost, Err(TxnError::Conflict(_))), "{lost:?}");
        assert_eq!(get(&db, "a").await, Some(value("2")));
    });
}

/// A commit that has locked nothing fails, and does not wait: it may hold locks that the other one waits for.
#[test]
fn a_commit_without_row_locks_fails_where_another_transaction_has_them() {
    run(async {
        let (_, db) = fresh();
        let mut holder = read_committed(&db).await;
        increment(&mut holder, "a").await.unwrap();
        let mut txn = db.begin().await.unwrap();
        txn.put(key("a"), value("9")).unwrap();
        let refused = txn.commit().await;
        assert!(matches!(refused, Err(TxnError::Conflict(_))), "{refused:?}");
        holder.commit().await.unwrap();
        assert_eq!(get(&db, "a").await, Some(value("1")));
    });
}

#[test]
fn shared_locks_are_shared_and_keep_writers_out() {
    run(async {
        let (_, db) = fresh();
        set(&db, "a", "1").await;
        let share = LockAsk { mode: LockMode::Share, presence: Presence::Present, ..ASK };
        let (mut one, mut two) = (read_committed(&db).await, read_committed(&db).await);
        lock(&mut one, "a", share).await.unwrap();
        lock(&mut two, "a", share).await.unwrap();
        let mut writer = read_committed(&db).await;
        let mut waiting = Box::pin(increment(&mut writer, "a"));
        assert!(tokio::time::timeout(Duration::from_secs(5), &mut waiting).await.is_err());
        drop((one, two));
        waiting.await.unwrap();
    });
}

const fn shares(mode: LockMode) -> LockAsk {
    LockAsk { mode, presence: Presence::Present, ..ASK }
}

/// Whoever relies on a row commits before it changes, or not at all.
#[test]
fn a_row_that_a_commit_relies_on_has_not_changed() {
    for mode in [LockMode::KeyShare, LockMode::Share] {
        for is_changed in [false, true] {
            run(async {
                let (cluster, db) = fresh();
                set(&db, "a", "1").await;
                let mut txn = read_committed(&db).await;
                lock(&mut txn, "a", shares(mode)).await.unwrap();
                txn.put(key("child"), value("of a")).unwrap();
                lose_leaders(&cluster);
                if is_changed {
                    let mut other = read_committed(&db).await;
                    lock(&mut other, "a", ASK).await.unwrap();
                    other.delete(key("a")).unwrap();
                    other.commit().await.unwrap();
                }
                let outcome = txn.commit().await;
                assert_eq!(matches!(outcome, Err(TxnError::Conflict(_))), is_changed, "{mode:?}: {outcome:?}");
                assert_eq!(get(&db, "child").await.is_some(), !is_changed);
                db.drain(Duration::from_secs(10)).await;
                assert_eq!(cluster.locks().unwrap(), [], "nothing is left");
            });
        }
    }
}

/// The other one has the row in memory, and has changed nothing yet: one of the two fails.
#[test]
fn a_commit_does_not_rely_on_a_row_that_another_transaction_has_locked() {
    run(async {
        let (cluster, db) = fresh();
        set(&db, "a", "1").await;
        let mut txn = read_committed(&db).await;
        lock(&mut txn, "a", shares(LockMode::Share)).await.unwrap();
        txn.put(key("child"), value("of a")).unwrap();
        lose_leaders(&cluster);
        let mut other = read_committed(&db).await;
        increment(&mut other, "a").await.unwrap();
        let outcome = txn.commit().await;
        assert!(matches!(outcome, Err(TxnError::Conflict(_))), "{outcome:?}");
        other.commit().await.unwrap();
        assert_eq!((get(&db, "a").await, get(&db, "child").await), (Some(value("2")), None));
    });
}

/// Over two regions the shared lock is a record, which outlives the leader; the other one waits for the commit.
#[test]
fn a_row_waits_for_the_commit_of_one_that_relies_on_it() {
    run(async {
        let (cluster, db) = fresh();
        set(&db, "a", "1").await;
        let kv = kv::client::Client::new(Arc::new(cluster.clone()));
        let (start_ts, shared) = (cluster.tso().next(), kv::api::MutationOp::Shared(LockMode::Share));
        let child = kv::api::Mutation::new(key("child"), kv::api::MutationOp::Put(value("of a")));
        for mutation in [child, kv::api::Mutation::new(key("a"), shared)] {
            kv.prewrite(vec![mutation], &key("child"), start_ts, || 3_000).await.unwrap();
        }
        lose_leaders(&cluster);
        let mut other = read_committed(&db).await;
        let mut waiting = Box::pin(increment(&mut other, "a"));
        let early = tokio::time::timeout(Duration::from_millis(500), &mut waiting).await;
        assert!(early.is_err(), "{early:?}");
        assert_eq!(get(&db, "a").await, Some(value("1")), "readers do not wait");
        kv.commit_primary(&key("child"), &[], start_ts, cluster.tso().next()).await.unwrap();
        waiting.await.unwrap();
        other.commit().await.unwrap();
        assert_eq!((get(&db, "a").await, get(&db, "child").await), (Some(value("2")), Some(value("of a"))));
        assert_eq!(cluster.locks().unwrap(), []);
    });
}

/// Nothing is written: there is nothing to confirm, and nothing is sent.
#[test]
fn who_only_reads_commits_without_its_locks() {
    run(async {
        let (cluster, db) = fresh();
        set(&db, "a", "1").await;
        let mut txn = read_committed(&db).await;
        lock(&mut txn, "a", shares(LockMode::Share)).await.unwrap();
        lose_leaders(&cluster);
        set(&db, "a", "2").await;
        assert_eq!(txn.commit().await, Ok(None));
    });
}

/// The key is locked, others update the row, and then the transaction does too.
#[test]
fn a_row_whose_key_was_locked_may_be_updated_by_others_before() {
    run(async {
        let (_, db) = fresh();
        set(&db, "a", "1").await;
        let mut txn = read_committed(&db).await;
        lock(&mut txn, "a", shares(LockMode::KeyShare)).await.unwrap();
        let mut other = read_committed(&db).await;
        let update = LockAsk { mode: LockMode::NoKeyUpdate, ..ASK };
        lock(&mut other, "a", update).await.unwrap();
        other.put(key("a"), value("2")).unwrap();
        other.commit().await.unwrap();
        txn.begin_statement();
        assert_eq!(lock(&mut txn, "a", update).await.unwrap().row, RowFound::Present(value("2")));
        txn.put(key("a"), value("3")).unwrap();
        txn.commit().await.unwrap();
        assert_eq!(get(&db, "a").await, Some(value("3")));
    });
}

/// The row is newer than the name of the transaction, which therefore commits under another one than it locks under.
#[test]
fn a_transaction_confirms_its_locks_under_another_name() {
    run(async {
        let (_, db) = fresh();
        let mut txn = read_committed(&db).await;
        set(&db, "a", "1").await;
        txn.begin_statement();
        lock(&mut txn, "a", shares(LockMode::Share)).await.unwrap();
        let mut beside = read_committed(&db).await;
        lock(&mut beside, "a", shares(LockMode::Share)).await.unwrap();
        txn.put(key("child"), value("of a")).unwrap();
        txn.commit().await.unwrap();
        let mut other = read_committed(&db).await;
        let at_once = LockAsk { wait: LockWait::NoWait, ..ASK };
        assert!(lock(&mut other, "a", at_once).await.is_err(), "one still has it");
        drop(beside);
        lock(&mut other, "a", ASK).await.unwrap();
    });
}

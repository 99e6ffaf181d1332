//! The safe point of garbage collection: what holds it back and what it refuses. `crash.rs` has what is resolved
//! before, and the sweep.

use std::sync::Arc;
use std::time::Duration;

use super::common::{VirtualTso, cluster, database, key, locks, run, seeded, two_phase, value};
use kv::api::{LockMode, Presence};
use kv::memory::{Faults, MemoryCluster};
use tso::Timestamp;
use txn::{Database, LockAsk, LockWait, OldestSnapshot, Transaction, TxnError, TxnOutcome};

fn fresh() -> (MemoryCluster, Database, Arc<VirtualTso>) {
    let (cluster, tso) = (cluster(Faults::none()), VirtualTso::new());
    let db = database(Arc::new(cluster.clone()), tso.clone(), seeded(7));
    (cluster, db, tso)
}

async fn begin(db: &Database) -> Transaction {
    db.begin().await.expect("a timestamp")
}

async fn set(db: &Database, keys: &[&str], text: &str) -> Timestamp {
    let mut txn = begin(db).await;
    for at in keys {
        txn.put(key(at), value(text)).expect("fits");
    }
    txn.commit().await.expect("nothing is in the way").expect("it has written")
}

fn oldest(db: &Database) -> OldestSnapshot {
    db.oldest_snapshot().expect("the node has had a timestamp")
}

async fn raise(db: &Database, safe_point: Timestamp) {
    db.collection().raise(safe_point).await.expect("all regions serve");
}

fn too_old<T: std::fmt::Debug>(result: Result<T, TxnError>) {
    assert!(matches!(result, Err(TxnError::SnapshotTooOld(_))), "{result:?}");
}

#[test]
fn every_transaction_holds_the_safe_point_back_until_it_is_over() {
    run(async {
        let (_, db, _) = fresh();
        assert_eq!(db.oldest_snapshot(), None, "without a timestamp nothing is known");
        set(&db, &["a"], "1").await;
        let mut old = begin(&db).await;
        old.set_session(9);
        set(&db, &["a"], "2").await;
        let held = oldest(&db);
        assert!(held.bound <= old.start_ts() && held.session == Some(9), "{held:?}");
        let deferred = db.begin_deferred();
        drop(old);
        let bound = oldest(&db).bound;
        assert!(bound > held.bound, "{bound}");
        deferred.take_start_ts().await.expect("a timestamp");
        set(&db, &["a"], "3").await;
        assert!(oldest(&db).bound <= deferred.start_ts(), "it entered before it had a timestamp");
        let past = db.begin_at(held.bound).await.expect("issued");
        assert_eq!(oldest(&db).bound, held.bound, "a snapshot in the past counts too");
        drop((past, deferred));
        assert!(oldest(&db).bound > held.bound);
    });
}

#[test]
fn below_the_safe_point_reads_fail_and_at_it_they_do_not() {
    run(async {
        let (_, db, _) = fresh();
        set(&db, &["a", "b1"], "1").await;
        let early = begin(&db).await;
        let safe_point = set(&db, &["a", "b1"], "2").await;
        let (mut writer, other) = (begin(&db).await, begin(&db).await);
        raise(&db, safe_point).await;
        too_old(early.get(&key("a")).await);
        too_old(early.batch_get(&[key("a"), key("b1")]).await);
        let all = kv::client::ScanRange { start: key(""), end: key(""), reverse: false };
        too_old(early.scan(&all, 10).await);
        assert_eq!(early.try_get(&key("a")), None, "not within a call either");
        let at = db.begin_at(safe_point).await.expect("issued");
        assert_eq!(at.get(&key("a")).await, Ok(Some(value("2"))));
        assert_eq!(other.scan(&all, 10).await.expect("served").pairs.len(), 2);
        writer.put(key("a"), value("3")).expect("fits");
        assert!(matches!(writer.commit().await, Ok(Some(_))), "above it all is as it was");
    });
}

#[test]
fn a_transaction_below_the_safe_point_neither_locks_nor_writes() {
    for config in [seeded(1), two_phase(1)] {
        run(async {
            let (cluster, tso) = (cluster(Faults::none()), VirtualTso::new());
            let db = database(Arc::new(cluster.clone()), tso.clone(), config);
            set(&db, &["a", "b1"], "1").await;
            let mut old = begin(&db).await;
            let mut wide = begin(&db).await;
            let mut locker = begin(&db).await;
            old.put(key("a"), value("old")).expect("fits");
            wide.put(key("a"), value("old")).expect("fits");
            wide.put(key("b1"), value("old")).expect("fits");
            raise(&db, locker.start_ts()).await;
            let result = old.commit().await;
            assert!(matches!(result, Err(TxnError::Conflict(_))), "{result:?}");
            // An asynchronous commit in several regions is settled by its keys, whose records might be collected.
            let result = wide.commit().await;
            assert!(matches!(result, Err(TxnError::Conflict(_) | TxnError::Undetermined { .. })), "{result:?}");
            let (mode, presence) = (LockMode::Update, Presence::Any);
            let ask = LockAsk { mode, presence, was_read: false, wait: LockWait::NoWait };
            let result = locker.lock_rows(vec![key("a")], ask).await;
            assert!(matches!(result, Err(TxnError::Conflict(_))), "{result:?}");
            drop(locker);
            for at in ["a", "b1"] {
                assert_eq!(begin(&db).await.get(&key(at)).await, Ok(Some(value("1"))));
            }
            assert!(db.drain(Duration::from_secs(60)).await);
            assert_eq!(locks(&cluster), Vec::new());
        });
    }
}

#[test]
fn what_became_of_a_transaction_below_the_safe_point_is_not_known_any_more() {
    run(async {
        let (_, db, _) = fresh();
        set(&db, &["a"], "1").await;
        let never = begin(&db).await.start_ts();
        assert_eq!(db.outcome(never, &key("a")).await, Ok(TxnOutcome::Missing));
        let now = begin(&db).await.start_ts();
        raise(&db, now).await;
        assert_eq!(db.outcome(never, &key("a")).await, Ok(TxnOutcome::Collected));
        let later = begin(&db).await.start_ts();
        assert_eq!(db.outcome(later, &key("a")).await, Ok(TxnOutcome::Missing));
    });
}

//! Locks that sessions hold under names of their own: queues, what is given up, and deadlocks that lead through the
//! transaction of a session and its own locks.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use kv::api::{LockMode, Presence};
use kv::memory::{Faults, MemoryCluster};
use txn::{Database, LockAsk, LockWait, SessionLocks, TxnError};

use super::common::{cluster, database, key, run, seeded};

const WAIT: (LockMode, LockWait) = (LockMode::Update, LockWait::Queue(None));
const NO_WAIT: (LockMode, LockWait) = (LockMode::Update, LockWait::NoWait);
const LIMIT: Duration = Duration::from_secs(1);

fn fresh() -> (MemoryCluster, Database) {
    let cluster = cluster(Faults::none());
    let db = database(Arc::new(cluster.clone()), cluster.tso(), seeded(7));
    (cluster, db)
}

async fn sessions(db: &Database) -> (SessionLocks, SessionLocks) {
    (db.session_locks(1).await.unwrap(), db.session_locks(2).await.unwrap())
}

#[test]
fn a_lock_lasts_until_it_is_given_up_or_its_session_ends() {
    run(async {
        let (cluster, db) = fresh();
        let (mut a, mut b) = sessions(&db).await;
        a.acquire(&key("x"), WAIT, None).await.unwrap();
        a.acquire(&key("y"), WAIT, None).await.unwrap();
        assert_eq!(b.acquire(&key("x"), NO_WAIT, None).await, Err(TxnError::NotAvailable { key: key("x") }));
        a.give_up(&[key("x")], LIMIT).await;
        b.acquire(&key("x"), NO_WAIT, None).await.unwrap();
        {
            let y = key("y");
            let mut waits = Box::pin(b.acquire(&y, WAIT, None));
            assert!(waits.as_mut().now_or_never().is_none());
            drop(a);
            waits.await.unwrap();
        }
        let held: Vec<_> = cluster.row_locks().into_iter().map(|lock| (lock.key, lock.start_ts)).collect();
        assert_eq!(held, vec![(key("x"), b.name()), (key("y"), b.name())]);
        // A place that was left in the queue is given up too.
        let (mut c, mut d) = sessions(&db).await;
        let timeout = (LockMode::Update, LockWait::Queue(Some(Duration::from_millis(50))));
        assert_eq!(c.acquire(&key("x"), timeout, None).await, Err(TxnError::LockTimeout { key: key("x") }));
        c.give_up(&[key("x")], LIMIT).await;
        b.give_up(&[key("x")], LIMIT).await;
        d.acquire(&key("x"), NO_WAIT, None).await.unwrap();
    });
}

/// A session holds x under its own name and waits for a row as a transaction; another one the other way round.
#[test]
fn a_deadlock_leads_through_both_names_of_a_session() {
    run(async {
        let (_, db) = fresh();
        let (mut a, mut b) = sessions(&db).await;
        a.acquire(&key("x"), WAIT, None).await.unwrap();
        let (mut of_a, mut of_b) = (db.begin().await.unwrap(), db.begin().await.unwrap());
        of_a.set_companion(Some(a.name()));
        let (mode, presence, wait) = (LockMode::Update, Presence::Any, LockWait::Queue(None));
        let ask = LockAsk { mode, presence, was_read: false, wait };
        of_b.lock_rows(vec![key("row")], ask).await.unwrap();
        let mut first = tokio::spawn(async move {
            let locked = of_a.lock_rows(vec![key("row")], ask).await.map(drop);
            (of_a, a, locked)
        });
        let transaction = Some(of_b.start_ts());
        let mut second = tokio::spawn(async move {
            let locked = b.acquire(&key("x"), WAIT, transaction).await;
            (of_b, b, locked)
        });
        // One of both gives up. The other one goes on once it is gone.
        let (first, second) = tokio::select! {
            first = &mut first => {
                let (of_a, a, locked) = first.unwrap();
                assert!(matches!(locked, Err(TxnError::Deadlock { .. })), "{locked:?}");
                drop((of_a, a));
                (false, second.await.unwrap().2.is_ok())
            }
            second = &mut second => {
                let (of_b, b, locked) = second.unwrap();
                assert!(matches!(locked, Err(TxnError::Deadlock { .. })), "{locked:?}");
                drop((of_b, b));
                (true, false)
            }
        };
        assert_ne!(first, second);
    });
}

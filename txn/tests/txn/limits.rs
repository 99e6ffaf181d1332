//! Transactions as large as the limits allow can be committed, rolled back and resolved by others. The in-memory stores
//! reject what real ones reject: writes above 8 MiB and messages above 16 MiB.

use std::sync::Arc;
use std::time::Duration;

use super::common::endpoints::Stalling;
use super::common::{VirtualTso, cluster, database, key, locks, run, seeded};
use bytes::Bytes;
use kv::Key;
use kv::client::ScanRange;
use kv::memory::{Faults, MemoryCluster};
use txn::{BufferLimits, Database, Transaction, TxnError};

/// The accounted size of a mutation beyond its key and value.
const OVERHEAD: usize = 64;

fn fresh() -> (MemoryCluster, Arc<VirtualTso>, Database) {
    let cluster = cluster(Faults::none());
    let tso = VirtualTso::new();
    let db = database(Arc::new(cluster.clone()), tso.clone(), seeded(1));
    (cluster, tso, db)
}

/// A key of the maximum length. Keys are spread over the regions.
fn long_key(n: usize) -> Key {
    let mut bytes = format!("{}{n:05}", ["a", "b", "c", "d"][n % 4]).into_bytes();
    bytes.resize(BufferLimits::default().key_bytes, b'k');
    Key::new(bytes)
}

/// How many mutations of this size fit a transaction.
fn fitting(key_bytes: usize, value_bytes: usize) -> usize {
    let limits = BufferLimits::default();
    limits.keys.min(limits.bytes / (key_bytes + value_bytes + OVERHEAD))
}

/// The number of keys in a snapshot, and the total bytes of their values.
async fn sizes(txn: &Transaction) -> (usize, usize) {
    let mut range = ScanRange { start: Key::default(), end: Key::default(), reverse: false };
    let (mut keys, mut bytes) = (0, 0);
    loop {
        let page = txn.scan(&range, 10_000).await.expect("served");
        keys += page.pairs.len();
        bytes += page.pairs.iter().map(|(_, value)| value.len()).sum::<usize>();
        match page.resume {
            Some(resume) => range = range.resume_at(resume),
            None => return (keys, bytes),
        }
    }
}

/// Fills a transaction up to its limit and commits it.
async fn commit_full(db: &Database, key: impl Fn(usize) -> Key, value: Bytes) -> usize {
    let mut txn = db.begin().await.expect("a timestamp");
    let count = fitting(key(0).as_bytes().len(), value.len());
    for n in 0..count {
        txn.put(key(n), value.clone()).expect("fits");
    }
    assert!(matches!(txn.put(key(count), value), Err(TxnError::TooLarge(_))), "more than {count} keys fit");
    let outcome = txn.commit().await;
    assert!(matches!(outcome, Ok(Some(_))), "{count} keys: {outcome:?}");
    count
}

fn full_transaction(key: impl Fn(usize) -> Key, value: Bytes) {
    run(async {
        let (cluster, _, db) = fresh();
        let count = commit_full(&db, key, value.clone()).await;
        assert!(db.drain(Duration::from_secs(60)).await);
        assert_eq!(locks(&cluster).len(), 0);
        let txn = db.begin().await.expect("a timestamp");
        assert_eq!(sizes(&txn).await, (count, count * value.len()));
    });
}

#[test]
fn as_many_bytes_of_long_keys_as_the_limits_allow() {
    full_transaction(long_key, Bytes::new());
}

#[test]
fn as_many_bytes_of_long_values_as_the_limits_allow() {
    let value = Bytes::from(vec![7; BufferLimits::default().value_bytes]);
    full_transaction(|n| key(&format!("{}{n}", ["a", "b", "c", "d"][n % 4])), value);
}

/// Every lock contains the primary's key, so a long primary makes all locks long.
#[test]
fn as_many_keys_as_the_limits_allow_behind_a_long_primary() {
    let at = |n: usize| if n == 0 { long_key(0) } else { key(&format!("{}{n:06}", ["a", "b", "c", "d"][n % 4])) };
    run(async {
        let (cluster, _, db) = fresh();
        let mut txn = db.begin().await.expect("a timestamp");
        let count = 20_000;
        for n in 0..count {
            txn.put(at(n), Bytes::from_static(b"v")).expect("fits");
        }
        let outcome = txn.commit().await;
        assert!(matches!(outcome, Ok(Some(_))), "{outcome:?}");
        assert!(db.drain(Duration::from_secs(60)).await);
        assert_eq!(locks(&cluster).len(), 0);
        let txn = db.begin().await.expect("a timestamp");
        assert_eq!(sizes(&txn).await, (count, count));
    });
}

#[test]
fn as_many_keys_as_the_limits_allow() {
    full_transaction(|n| key(&format!("{}{n:06}", ["a", "b", "c", "d"][n % 4])), Bytes::from_static(b"v"));
}

/// The last key conflicts: all the others are prewritten by then, and are rolled back.
#[test]
fn a_failed_large_transaction_leaves_no_lock() {
    run(async {
        let (cluster, _, db) = fresh();
        let count = 600;
        let mut large = db.begin().await.expect("a timestamp");
        let mut other = db.begin().await.expect("a timestamp");
        other.put(long_key(count - 1), Bytes::from_static(b"other")).expect("fits");
        assert!(matches!(other.commit().await, Ok(Some(_))));
        for n in 0..count {
            large.put(long_key(n), Bytes::from_static(b"large")).expect("fits");
        }
        let outcome = large.commit().await;
        assert!(matches!(outcome, Err(TxnError::Conflict(_))), "{outcome:?}");
        assert!(db.drain(Duration::from_secs(60)).await);
        assert_eq!(locks(&cluster).len(), 0);
        let txn = db.begin().await.expect("a timestamp");
        assert_eq!(sizes(&txn).await, (1, 5));
    });
}

/// A coordinator dies with hundreds of long keys locked: others resolve the locks, in scans and in point gets.
#[test]
fn others_resolve_the_locks_of_a_large_transaction() {
    let count = 1_000;
    // After some prewrites, and after the commit of the primary.
    for (calls, by_scan) in [(50, true), (50, false), (75, true), (75, false)] {
        run(async {
            let (cluster, tso, db) = fresh();
            let dying = Stalling::new(Arc::new(cluster.clone()), calls, false);
            let coordinator = database(dying.clone(), tso, seeded(2));
            let mut txn = coordinator.begin().await.expect("a timestamp");
            for n in 0..count {
                txn.put(long_key(n), Bytes::from_static(b"v")).expect("fits");
            }
            let commit = tokio::spawn(txn.commit());
            dying.until_stalled().await;
            let left = locks(&cluster).len();
            assert!(left > 256, "it died too early: {left} locks");
            let txn = db.begin().await.expect("a timestamp");
            if by_scan {
                let (keys, _) = sizes(&txn).await;
                assert!(keys == 0 || keys == count, "the commit is not atomic: {keys}");
            } else {
                let keys: Vec<Key> = (0..count).map(long_key).collect();
                let found = txn.batch_get(&keys).await.expect("served").len();
                assert!(found == 0 || found == count, "the commit is not atomic: {found}");
            }
            // The read passed the locks of a live transaction. Once they have expired, one resolves them.
            tokio::time::sleep(Duration::from_secs(60)).await;
            assert!(sizes(&db.begin().await.expect("a timestamp")).await.0.is_multiple_of(count));
            assert_eq!(locks(&cluster).len(), 0);
            commit.abort();
        });
    }
}

/// A page holds only a few large values. All pages together hold every requested key, own writes included.
#[test]
fn pages_of_points_are_bounded_and_complete() {
    run(async {
        let (_, _, db) = fresh();
        let at = |n: usize| key(&format!("{}{n:03}", ["a", "b", "c", "d"][n / 10]));
        let value = |n: usize| Bytes::from(vec![n as u8; 300 << 10]);
        let mut txn = db.begin().await.expect("a timestamp");
        (0..40).for_each(|n| txn.put(at(n), value(n)).expect("fits"));
        txn.commit().await.expect("nothing is in the way");
        let mut txn = db.begin().await.expect("a timestamp");
        txn.delete(at(3)).expect("fits");
        txn.put(at(7), Bytes::from_static(b"own")).expect("fits");
        txn.put(key("d999"), Bytes::from_static(b"own")).expect("fits");
        let mut rest: Vec<Key> = (0..40).map(at).chain([key("b5"), key("d999")]).collect();
        rest.sort();
        let all = txn.batch_get(&rest).await.expect("served");
        let (mut found, mut pages) = (Vec::new(), 0);
        while !rest.is_empty() {
            let page = txn.batch_get_page(&rest).await.expect("served");
            pages += 1;
            found.extend(page.pairs);
            rest.retain(|key| page.resume.as_ref().is_some_and(|resume| key >= resume));
        }
        assert_eq!((found.len(), found == all), (40, true));
        assert!(pages > 2, "{pages} pages");
    });
}

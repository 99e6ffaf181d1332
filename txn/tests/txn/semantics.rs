//! The semantics of a transaction, case by case.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::common::endpoints::{FaultyEndpoint, RequestFault};
use super::common::{VirtualTso, cluster, database, key, locks, run, seeded, two_phase, value};
use futures::FutureExt;
use futures::future::BoxFuture;
use kv::Key;
use kv::api::RequestBody;
use kv::client::{Client, ScanRange};
use kv::memory::{Faults, MemoryCluster};
use prometheus::Registry;
use tso::{Timestamp, TsRange, TsoClient, TsoError, TsoSource};
use txn::{BufferLimits, Database, TxnConfig, TxnError};

fn fresh() -> (MemoryCluster, Database) {
    let cluster = cluster(Faults::none());
    let db = database(Arc::new(cluster.clone()), VirtualTso::new(), seeded(7));
    (cluster, db)
}

async fn set(db: &Database, pairs: &[(&str, &str)]) {
    let mut txn = db.begin().await.expect("a timestamp");
    for (at, text) in pairs {
        txn.put(key(at), value(text)).expect("fits");
    }
    txn.commit().await.expect("nothing is in the way");
}

async fn get(db: &Database, at: &str) -> Option<String> {
    let txn = db.begin().await.expect("a timestamp");
    let found = txn.get(&key(at)).await.expect("served");
    found.map(|value| String::from_utf8_lossy(&value).into_owned())
}

fn conflict<T: std::fmt::Debug>(result: Result<T, TxnError>) {
    assert!(matches!(result, Err(TxnError::Conflict(_))), "{result:?}");
}

#[test]
fn a_snapshot_does_not_move() {
    run(async {
        let (_, db) = fresh();
        set(&db, &[("a", "1"), ("c", "1")]).await;
        let txn = db.begin().await.expect("a timestamp");
        assert_eq!(txn.get(&key("a")).await, Ok(Some(value("1"))));
        set(&db, &[("a", "2"), ("c", "2"), ("d", "2")]).await;
        assert_eq!(txn.get(&key("a")).await, Ok(Some(value("1"))));
        assert_eq!(txn.get(&key("d")).await, Ok(None));
        let all = ScanRange { start: Key::default(), end: Key::default(), reverse: false };
        let page = txn.scan(&all, 10).await.expect("served");
        assert_eq!(page.pairs, vec![(key("a"), value("1")), (key("c"), value("1"))]);
        assert_eq!(page.resume, None);
        assert_eq!(txn.commit().await, Ok(None));
    });
}

#[test]
fn the_first_committer_wins() {
    run(async {
        let (cluster, db) = fresh();
        set(&db, &[("a", "1")]).await;
        let mut first = db.begin().await.expect("a timestamp");
        let mut second = db.begin().await.expect("a timestamp");
        second.put(key("a"), value("second")).expect("fits");
        second.put(key("c"), value("second")).expect("fits");
        assert!(matches!(second.commit().await, Ok(Some(_))));
        first.put(key("b"), value("first")).expect("fits");
        first.put(key("a"), value("first")).expect("fits");
        conflict(first.commit().await);
        assert_eq!(get(&db, "a").await.as_deref(), Some("second"));
        assert_eq!(get(&db, "b").await, None);
        assert!(db.drain(Duration::from_secs(60)).await);
        assert_eq!(locks(&cluster), Vec::new());
    });
}

#[test]
fn a_lock_conflicts_like_a_write_and_changes_nothing() {
    run(async {
        let (_, db) = fresh();
        set(&db, &[("a", "1"), ("c", "1")]).await;
        let mut locking = db.begin().await.expect("a timestamp");
        locking.lock(key("a")).expect("fits");
        locking.put(key("c"), value("2")).expect("fits");
        let mut writing = db.begin().await.expect("a timestamp");
        writing.put(key("a"), value("2")).expect("fits");
        assert!(matches!(writing.commit().await, Ok(Some(_))));
        conflict(locking.commit().await);

        let mut writing = db.begin().await.expect("a timestamp");
        writing.put(key("a"), value("3")).expect("fits");
        let mut locking = db.begin().await.expect("a timestamp");
        locking.lock(key("a")).expect("fits");
        assert!(matches!(locking.commit().await, Ok(Some(_))));
        conflict(writing.commit().await);
        assert_eq!(get(&db, "a").await.as_deref(), Some("2"));
    });
}

#[test]
fn write_skew_is_possible_without_locks() {
    run(async {
        let (_, db) = fresh();
        set(&db, &[("a", "on"), ("b", "on")]).await;
        let mut one = db.begin().await.expect("a timestamp");
        let mut two = db.begin().await.expect("a timestamp");
        assert_eq!(one.get(&key("b")).await, Ok(Some(value("on"))));
        assert_eq!(two.get(&key("a")).await, Ok(Some(value("on"))));
        one.put(key("a"), value("off")).expect("fits");
        two.put(key("b"), value("off")).expect("fits");
        assert!(one.commit().await.is_ok() && two.commit().await.is_ok());
    });
}

#[test]
fn inserts_name_the_key_that_exists() {
    run(async {
        let (cluster, db) = fresh();
        set(&db, &[("b", "1")]).await;
        let exists = |at: &str| Err(TxnError::AlreadyExists { key: key(at) });

        let mut txn = db.begin().await.expect("a timestamp");
        txn.insert(key("a"), value("2")).expect("not known yet");
        txn.insert(key("b"), value("2")).expect("not known yet");
        assert_eq!(txn.commit().await, exists("b"));
        assert_eq!(get(&db, "a").await, None);

        // A put over an insert, and an insert after insert and delete, keep the check of the first insert.
        for change in [true, false] {
            let mut txn = db.begin().await.expect("a timestamp");
            txn.insert(key("b"), value("2")).expect("not known yet");
            if change {
                txn.put(key("b"), value("3")).expect("fits");
            } else {
                txn.delete(key("b")).expect("fits");
                txn.insert(key("b"), value("3")).expect("not known yet");
            }
            assert_eq!(txn.commit().await, exists("b"));
        }

        // Insert, then delete: nothing is changed, but the key must not have existed.
        let mut txn = db.begin().await.expect("a timestamp");
        txn.insert(key("b"), value("2")).expect("not known yet");
        txn.delete(key("b")).expect("fits");
        assert_eq!(txn.get(&key("b")).await, Ok(None));
        assert_eq!(txn.commit().await, exists("b"));
        let mut txn = db.begin().await.expect("a timestamp");
        txn.insert(key("c"), value("2")).expect("fits");
        txn.delete(key("c")).expect("fits");
        assert_eq!(txn.commit().await, Ok(None));

        // Delete, then insert: a plain put. An insert of a key that the transaction wrote fails at once.
        let mut txn = db.begin().await.expect("a timestamp");
        txn.delete(key("b")).expect("fits");
        txn.insert(key("b"), value("2")).expect("we deleted it");
        assert_eq!(txn.insert(key("b"), value("3")), exists("b").map(drop));
        assert!(matches!(txn.commit().await, Ok(Some(_))));
        assert_eq!(get(&db, "b").await.as_deref(), Some("2"));
        assert!(db.drain(Duration::from_secs(60)).await);
        assert_eq!(locks(&cluster), Vec::new());
    });
}

#[test]
fn of_two_concurrent_inserts_one_wins() {
    run(async {
        let (_, db) = fresh();
        let mut one = db.begin().await.expect("a timestamp");
        let mut two = db.begin().await.expect("a timestamp");
        one.insert(key("a"), value("1")).expect("fits");
        two.insert(key("a"), value("2")).expect("fits");
        let (one, two) = tokio::join!(one.commit(), two.commit());
        assert_eq!([&one, &two].into_iter().filter(|result| result.is_ok()).count(), 1, "{one:?} {two:?}");
        let mut late = db.begin().await.expect("a timestamp");
        late.insert(key("a"), value("3")).expect("not known yet");
        assert_eq!(late.commit().await, Err(TxnError::AlreadyExists { key: key("a") }));
    });
}

#[test]
fn reads_see_own_writes_in_order_across_regions() {
    run(async {
        let (_, db) = fresh();
        set(&db, &[("a1", "s"), ("b1", "s"), ("c1", "s"), ("d1", "s"), ("d2", "s")]).await;
        let mut txn = db.begin().await.expect("a timestamp");
        txn.put(key("a2"), value("own")).expect("fits");
        txn.delete(key("b1")).expect("fits");
        txn.put(key("c1"), value("own")).expect("fits");
        txn.lock(key("d1")).expect("fits");
        let mark = txn.savepoint();
        txn.delete(key("d2")).expect("fits");
        txn.put(key("c2"), value("undone")).expect("fits");
        txn.rollback_to(mark);
        let expected: Vec<(Key, bytes::Bytes)> = [("a1", "s"), ("a2", "own"), ("c1", "own"), ("d1", "s"), ("d2", "s")]
            .map(|(at, text)| (key(at), value(text)))
            .into();
        for (limit, reverse) in [(1, false), (2, false), (100, false), (1, true), (2, true), (100, true)] {
            let mut rest = ScanRange { start: Key::default(), end: Key::default(), reverse };
            let mut found = Vec::new();
            loop {
                let page = txn.scan(&rest, limit).await.expect("served");
                found.extend(page.pairs);
                match page.resume {
                    Some(resume) => rest = rest.resume_at(resume),
                    None => break,
                }
            }
            if reverse {
                found.reverse();
            }
            assert_eq!(found, expected, "limit {limit}, reverse {reverse}");
        }
        let asked = ["d1", "zz", "b1", "a2", "d1"].map(key);
        let found: Vec<Key> = txn.batch_get(&asked).await.expect("served").into_iter().map(|(key, _)| key).collect();
        assert_eq!(found, vec![key("d1"), key("a2"), key("d1")], "in the order asked, absent ones left out");
    });
}

#[test]
fn a_renewed_range_is_seen_as_it_is_and_all_else_in_the_snapshot() {
    run(async {
        let (_, db) = fresh();
        let pairs = |of: &[(&str, &str)]| -> Vec<(Key, bytes::Bytes)> {
            of.iter().map(|(at, text)| (key(at), value(text))).collect()
        };
        set(&db, &[("a1", "1"), ("a2", "1"), ("b1", "1")]).await;
        let mut txn = db.begin().await.expect("a timestamp");
        set(&db, &[("a1", "2"), ("a3", "2"), ("b1", "2"), ("b2", "2")]).await;
        let range = ScanRange { start: key("a"), end: key("b"), reverse: false };
        txn.renew_snapshot_of(vec![range.clone()]).await.expect("a timestamp");
        set(&db, &[("a4", "3")]).await;
        let page = txn.scan(&range, 10).await.expect("served");
        assert_eq!(page.pairs, pairs(&[("a1", "2"), ("a2", "1"), ("a3", "2")]));
        let asked = ["b2", "a1", "b1", "a3"].map(key);
        assert_eq!(txn.batch_get(&asked).await, Ok(pairs(&[("a1", "2"), ("b1", "1"), ("a3", "2")])));
        let page = txn.batch_get_page(&asked).await.expect("served");
        assert_eq!((page.pairs, page.resume), (pairs(&[("a1", "2"), ("a3", "2")]), Some(key("b1"))));
        txn.put(key("a1"), value("own")).expect("fits");
        txn.delete(key("a3")).expect("fits");
        assert!(matches!(txn.commit().await, Ok(Some(_))), "it has seen what it changes");
        assert_eq!(get(&db, "a1").await.as_deref(), Some("own"));

        let mut txn = db.begin().await.expect("a timestamp");
        let mark = txn.savepoint();
        set(&db, &[("a2", "4")]).await;
        txn.renew_snapshot_of(vec![range]).await.expect("a timestamp");
        assert_eq!(txn.get(&key("a2")).await, Ok(Some(value("4"))));
        txn.rollback_to(mark);
        assert_eq!(txn.get(&key("a2")).await, Ok(Some(value("1"))));
        txn.put(key("a2"), value("own")).expect("fits");
        conflict(txn.commit().await);
    });
}

#[test]
fn a_transaction_beyond_a_limit_is_rejected() {
    run(async {
        let config = TxnConfig { buffer: BufferLimits { keys: 1, ..BufferLimits::default() }, ..seeded(1) };
        let db = database(Arc::new(MemoryCluster::new()), VirtualTso::new(), config);
        let mut txn = db.begin().await.expect("a timestamp");
        txn.put(key("a"), value("1")).expect("fits");
        assert!(matches!(txn.put(key("b"), value("1")), Err(TxnError::TooLarge(_))));
        assert!(matches!(txn.commit().await, Ok(Some(_))), "what fits is committed");
    });
}

#[test]
fn a_commit_continues_when_its_session_is_cancelled() {
    run(async {
        let (_, db) = fresh();
        let mut txn = db.begin().await.expect("a timestamp");
        txn.put(key("a"), value("1")).expect("fits");
        txn.put(key("c"), value("1")).expect("fits");
        let mut commit = Box::pin(txn.commit());
        assert!((&mut commit).now_or_never().is_none(), "it takes a round trip");
        drop(commit);
        assert!(db.drain(Duration::from_secs(60)).await);
        assert_eq!(get(&db, "a").await.as_deref(), Some("1"));
        assert_eq!(get(&db, "c").await.as_deref(), Some("1"));
    });
}

#[test]
fn a_read_only_transaction_needs_one_timestamp_and_no_write() {
    run(async {
        let cluster = cluster(Faults::none());
        let tso = VirtualTso::new();
        let db = database(Arc::new(cluster.clone()), tso.clone(), seeded(1));
        set(&db, &[("a", "1"), ("c", "1")]).await;
        assert!(db.drain(Duration::from_secs(60)).await);
        let (issued, calls) = (tso.issued(), cluster.calls());
        let txn = db.begin().await.expect("a timestamp");
        txn.get(&key("a")).await.expect("served");
        txn.batch_get(&[key("a"), key("c")]).await.expect("served");
        assert_eq!(txn.commit().await, Ok(None));
        assert_eq!(tso.issued() - issued, 1);
        assert_eq!(cluster.calls() - calls, 3, "one request for the get, one for each region of the batch");
    });
}

/// A transaction within one region is one request. It takes a timestamp to begin, and if it was several statements one
/// more when its commit begins.
#[test]
fn a_commit_within_one_region_is_one_request() {
    run(async {
        let cluster = cluster(Faults::none());
        let tso = VirtualTso::new();
        let db = database(Arc::new(cluster.clone()), tso.clone(), seeded(1));
        // Syncs the region.
        set(&db, &[("a1", "1")]).await;
        assert!(db.drain(Duration::from_secs(60)).await);
        for is_single in [true, false] {
            let (issued, calls) = (tso.issued(), cluster.calls());
            let mut txn = db.begin().await.expect("a timestamp");
            ["a1", "a2", "a3"].into_iter().for_each(|at| txn.put(key(at), value("2")).expect("fits"));
            if is_single {
                txn.set_single_statement();
            }
            assert!(matches!(txn.commit().await, Ok(Some(_))));
            assert!(db.drain(Duration::from_secs(60)).await);
            assert_eq!((cluster.calls() - calls, tso.issued() - issued), (1, if is_single { 1 } else { 2 }));
            assert_eq!(locks(&cluster), Vec::new());
        }
    });
}

/// An asynchronous commit is answered after one round of requests. Its locks become records in the background.
#[test]
fn a_commit_of_few_keys_in_several_regions_is_one_round() {
    run(async {
        let cluster = cluster(Faults::none());
        let tso = VirtualTso::new();
        let db = database(Arc::new(cluster.clone()), tso.clone(), seeded(1));
        set(&db, &[("a", "1"), ("c", "1")]).await;
        assert!(db.drain(Duration::from_secs(60)).await);
        let (issued, calls) = (tso.issued(), cluster.calls());
        let mut txn = db.begin().await.expect("a timestamp");
        ["a", "c"].into_iter().for_each(|at| txn.put(key(at), value("2")).expect("fits"));
        txn.set_single_statement();
        assert!(matches!(txn.commit().await, Ok(Some(_))));
        assert_eq!((cluster.calls() - calls, tso.issued() - issued), (2, 1));
        assert_eq!(locks(&cluster).len(), 2);
        assert!(db.drain(Duration::from_secs(60)).await);
        assert_eq!((cluster.calls() - calls, tso.issued() - issued), (4, 1));
        assert_eq!(locks(&cluster), Vec::new());
        assert_eq!(get(&db, "c").await.as_deref(), Some("2"));
    });
}

/// The value of a counter, of the series whose label has this value if one is given.
fn counted(registry: &Registry, name: &str, label: Option<&str>) -> u64 {
    let families = registry.gather();
    let family = families.iter().find(|family| family.name() == name).expect("registered");
    let series = family
        .get_metric()
        .iter()
        .find(|metric| label.is_none_or(|label| metric.get_label().iter().any(|pair| pair.value() == label)));
    series.expect("it has the series").get_counter().get_value() as u64
}

#[test]
fn commits_are_counted_by_their_protocol() {
    run(async {
        let (cluster, registry) = (cluster(Faults::none()), Registry::new());
        let (client, tso) = (Client::new(Arc::new(cluster.clone())), TsoClient::new(VirtualTso::new()));
        let db = Database::with_config(client, tso, seeded(1), &registry).expect("valid settings");
        // The first commit of each region falls back to two phases and syncs it.
        for pairs in [&[("a", "1")][..], &[("c", "1")], &[("a", "2")], &[("a", "3"), ("c", "3")]] {
            set(&db, pairs).await;
            assert!(db.drain(Duration::from_secs(60)).await);
        }
        let protocols = ["two_phase", "one_phase", "async"]
            .map(|name| counted(&registry, "cortado_txn_commit_protocols_total", Some(name)));
        assert_eq!(protocols, [2, 1, 1]);
        assert_eq!(counted(&registry, "cortado_txn_commit_fallbacks_total", None), 2);
    });
}

/// A reader that meets the lock of a live transaction pushes it and does not wait.
#[test]
fn a_reader_passes_the_lock_of_a_live_writer() {
    run(async {
        let cluster = cluster(Faults::none());
        let tso = VirtualTso::new();
        let others = database(Arc::new(cluster.clone()), tso.clone(), seeded(1));
        set(&others, &[("a", "1"), ("c", "1")]).await;
        assert!(others.drain(Duration::from_secs(60)).await);
        for config in [seeded(2), two_phase(2)] {
            // Its primary is prewritten, and the request for "c" is late.
            let slow = |body: &RequestBody, _| match body {
                RequestBody::Prewrite(request) if request.mutations.iter().any(|m| m.key == key("c")) => {
                    RequestFault::Late(Duration::from_secs(2))
                }
                _ => RequestFault::Pass,
            };
            let mut config = config;
            config.commit.batch_keys = if config.commit.one_phase { 512 } else { 1 };
            let writer = database(FaultyEndpoint::new(&cluster, slow), tso.clone(), config);
            let before = get(&others, "a").await;
            let mut txn = writer.begin().await.expect("a timestamp");
            ["a", "c"].into_iter().for_each(|at| txn.put(key(at), value("2")).expect("fits"));
            let commit = tokio::spawn(txn.commit());
            while locks(&cluster).is_empty() {
                tokio::task::yield_now().await;
            }
            let snapshot = others.begin().await.expect("a timestamp");
            for at in ["a", "c", "a"] {
                let read = tokio::time::timeout(Duration::from_millis(100), snapshot.get(&key(at))).await;
                let seen = read.expect("the reader waits").expect("served");
                assert_eq!(seen.as_deref(), before.as_deref().map(str::as_bytes), "{at}");
            }
            let commit_ts = commit.await.expect("no panic").expect("committed").expect("a commit_ts");
            assert!(commit_ts > snapshot.start_ts());
            assert_eq!(get(&others, "a").await.as_deref(), Some("2"));
            assert!(writer.drain(Duration::from_secs(60)).await);
            set(&others, &[("a", "1"), ("c", "1")]).await;
            assert!(others.drain(Duration::from_secs(60)).await);
        }
    });
}

/// In two phases it takes two requests: the prewrite, and the commit of all keys together.
#[test]
fn a_commit_in_two_phases_within_one_region_takes_two_requests() {
    run(async {
        let cluster = cluster(Faults::none());
        let db = database(Arc::new(cluster.clone()), VirtualTso::new(), two_phase(1));
        set(&db, &[("a1", "1")]).await;
        let calls = cluster.calls();
        set(&db, &[("a1", "2"), ("a2", "2"), ("a3", "2")]).await;
        assert!(db.drain(Duration::from_secs(60)).await);
        assert_eq!(cluster.calls() - calls, 2);
        assert_eq!(locks(&cluster), Vec::new());
    });
}

#[test]
fn run_repeats_conflicts_only() {
    run(async {
        let (_, db) = fresh();
        set(&db, &[("a", "0")]).await;
        let increment = async |db: &Database| {
            db.run(|txn| {
                async move {
                    let now = txn
                        .get(&key("a"))
                        .await?
                        .map_or(0, |v| String::from_utf8_lossy(&v).parse::<u64>().expect("a number"));
                    txn.put(key("a"), value(&(now + 1).to_string()))?;
                    Ok(now)
                }
                .boxed()
            })
            .await
        };
        let results = futures::future::join_all((0..8).map(|_| increment(&db))).await;
        let mut seen: Vec<u64> =
            results.into_iter().map(|result| result.expect("repeated until it went through")).collect();
        seen.sort_unstable();
        assert_eq!(seen, (0..8).collect::<Vec<_>>(), "every increment saw another value");

        let mut attempts = 0;
        let failed: Result<(), TxnError> = db
            .run(|_| {
                attempts += 1;
                async { Err(TxnError::Internal("no".to_owned())) }.boxed()
            })
            .await;
        assert_eq!((failed, attempts), (Err(TxnError::Internal("no".to_owned())), 1));

        let config = TxnConfig { run_attempts: 5, ..seeded(3) };
        let db = database(Arc::new(MemoryCluster::new()), VirtualTso::new(), config);
        let mut attempts = 0;
        let failed: Result<(), TxnError> = db
            .run(|_| {
                attempts += 1;
                async { Err(TxnError::Conflict("always".to_owned())) }.boxed()
            })
            .await;
        assert_eq!((failed, attempts), (Err(TxnError::Conflict("always".to_owned())), 5));
    });
}

/// Without permits for background work, a commit is answered when its locks are gone.
#[test]
fn background_work_is_bounded() {
    run(async {
        let cluster = cluster(Faults::none());
        let config = TxnConfig { background: 0, ..seeded(1) };
        let db = database(Arc::new(cluster.clone()), VirtualTso::new(), config);
        set(&db, &[("a", "1"), ("b", "1"), ("c", "1"), ("d", "1")]).await;
        assert_eq!(locks(&cluster), Vec::new());
        let mut txn = db.begin().await.expect("a timestamp");
        for at in ["b", "c", "x"] {
            txn.insert(key(at), value("2")).expect("not known yet");
        }
        assert!(matches!(txn.commit().await, Err(TxnError::AlreadyExists { .. })));
        assert_eq!(locks(&cluster), Vec::new());
    });
}

#[test]
fn without_an_oracle_begin_and_commit_are_unavailable() {
    struct Once(AtomicBool);
    impl TsoSource for Once {
        fn allocate(&self, count: u32) -> BoxFuture<'_, Result<TsRange, TsoError>> {
            let first = !self.0.swap(true, Ordering::Relaxed);
            let range = TsRange { last: Timestamp::new(1_000, count), count };
            let answer = if first { Ok(range) } else { Err(TsoError::Unavailable("no leader".to_owned())) };
            Box::pin(std::future::ready(answer))
        }
    }
    run(async {
        let cluster = cluster(Faults::none());
        let db = database(Arc::new(cluster.clone()), Arc::new(Once(AtomicBool::new(false))), seeded(1));
        let mut txn = db.begin().await.expect("the one timestamp");
        txn.put(key("a"), value("1")).expect("fits");
        txn.put(key("c"), value("1")).expect("fits");
        assert!(matches!(txn.commit().await, Err(TxnError::Unavailable(_))));
        assert!(matches!(db.begin().await.map(drop), Err(TxnError::Unavailable(_))));
        assert!(db.drain(Duration::from_secs(60)).await);
        assert_eq!(locks(&cluster), Vec::new());
    });
}

/// Sessions run on a multi-threaded runtime: every future must be `Send`.
#[test]
fn futures_are_send() {
    fn sendable<T: Send>(future: T) -> T {
        future
    }
    run(async {
        let (_, db) = fresh();
        let mut txn = sendable(db.begin()).await.expect("a timestamp");
        sendable(txn.get(&key("a"))).await.expect("served");
        sendable(txn.batch_get(&[key("a")])).await.expect("served");
        let range = ScanRange { start: Key::default(), end: Key::default(), reverse: false };
        sendable(txn.scan(&range, 1)).await.expect("served");
        txn.put(key("a"), value("1")).expect("fits");
        sendable(txn.commit()).await.expect("committed");
        sendable(db.run(|txn| async move { txn.get(&key("a")).await }.boxed())).await.expect("served");
        sendable(db.drain(Duration::from_secs(60))).await;
    });
}

//! The server, called within the process and over a link.

use std::time::Duration;

use bytes::Bytes;
use engine::Cf;
use engine::store::StoreError;
use link::{CallError, ClusterTag, Kind, LinkMetrics, LinkOptions, LinkServer, Links, ServerOptions};
use prost::Message;
use raftstore::StoreId;
use tokio::sync::oneshot;
use tso::Timestamp;

use super::*;
use crate::api::{KeyError, Mutation, MutationOp, PrewriteRequest, RequestBody, ScanRequest};
use crate::key::{Key, versioned};
use crate::memory::CountingTso;
use crate::mvcc::{WriteKind, WriteRecord};
use crate::proto::{LOCATE, REQUEST, pb};
use crate::read_pool::Cost;
use crate::region_store::fake::{FakeStore, ProposalOutcome};
use crate::service::link_services;
use crate::size::MESSAGE_BYTES_MAX;

fn ts(ms: u64) -> Timestamp {
    Timestamp::new(ms, 0)
}

fn server(store: &FakeStore, config: &KvServerConfig) -> KvServer<FakeStore> {
    KvServer::new(store.clone(), Arc::new(CountingTso::new(0)), config, &Registry::new()).unwrap()
}

/// Reads on threads of their own take turns in an order that the clock decides. These do not.
fn in_caller() -> KvServerConfig {
    let pool = PoolConfig { workers: Workers::Caller, ..PoolConfig::default() };
    KvServerConfig { pool, ..KvServerConfig::default() }
}

fn prewrite(keys: &[Key], value: &'static [u8], start_ms: u64) -> RequestBody {
    let put = |key: &Key| Mutation::new(key.clone(), MutationOp::Put(Bytes::from_static(value)));
    let (mutations, primary) = (keys.iter().map(put).collect(), keys[0].clone());
    RequestBody::Prewrite(PrewriteRequest {
        mutations,
        primary,
        start_ts: ts(start_ms),
        ttl_ms: 10,
        commit: crate::api::CommitMode::TwoPhase,
        locker: None,
    })
}

async fn put(server: &KvServer<FakeStore>, store: &FakeStore, keys: &[Key], start_ms: u64) {
    let commit = RequestBody::Commit { keys: keys.to_vec(), start_ts: ts(start_ms), commit_ts: ts(start_ms + 1) };
    for body in [prewrite(keys, b"v", start_ms), commit] {
        let request = Request { context: store.context(), body };
        assert_eq!(server.handle(request).await, Ok(Response::Done));
    }
}

/// Commits keys that make several slices and pages, and returns them in order.
async fn put_three_thousand(server: &KvServer<FakeStore>, store: &FakeStore) -> Vec<Key> {
    let keys: Vec<Key> = (0..3_000).map(|n| Key::new(format!("k{n:05}"))).collect();
    for (n, chunk) in keys.chunks(500).enumerate() {
        put(server, store, chunk, 10 + 10 * n as u64).await;
    }
    keys
}

fn scan(start: &Key, end: &Key, reverse: bool) -> RequestBody {
    RequestBody::Scan(ScanRequest {
        start: start.clone(),
        end: end.clone(),
        start_ts: ts(1_000),
        limit: u32::MAX,
        max_bytes: u32::MAX,
        reverse,
        keys_only: false,
        pass: Vec::new(),
    })
}

/// A point get of what is in memory takes no snapshot. Another one is read on a snapshot, where it may wait.
#[tokio::test]
async fn a_get_that_needs_a_file_reads_on_a_snapshot() {
    let store = FakeStore::new();
    let server = server(&store, &KvServerConfig::default());
    let (key, found) = (Key::from_static(b"k"), Response::Value(Some(Bytes::from_static(b"v"))));
    put(&server, &store, std::slice::from_ref(&key), 10).await;
    let body = RequestBody::Get { key: key.clone(), start_ts: ts(20), pass: Vec::new() };
    let get = Request { context: store.context(), body };
    assert_eq!(server.handle(get.clone()).await.as_ref(), Ok(&found), "the first read of a region");
    let before = store.views();
    assert_eq!(server.handle(get.clone()).await.as_ref(), Ok(&found));
    assert_eq!(store.views(), before);
    store.cool(&key.to_storage());
    assert_eq!(server.try_get(get.context, (&key, &key.to_storage()), ts(20)), None);
    assert_eq!(server.handle(get).await, Ok(found));
    assert_eq!(store.views(), before + 1);
}

#[tokio::test]
async fn reads_use_the_lease_and_fall_back_to_a_read_index() {
    let store = FakeStore::new();
    let server = server(&store, &KvServerConfig::default());
    let key = Key::from_static(b"k");
    put(&server, &store, std::slice::from_ref(&key), 10).await;
    let get = Request { context: store.context(), body: RequestBody::Get { key, start_ts: ts(20), pass: Vec::new() } };
    let value = Ok(Response::Value(Some(Bytes::from_static(b"v"))));
    assert_eq!(server.handle(get.clone()).await, value);
    assert_eq!(store.read_indexes(), 0);
    store.set_lease(false);
    assert_eq!(server.handle(get).await, value);
    assert_eq!(store.read_indexes(), 1);
    let outside = RequestBody::Get { key: Key::from_static(b"z"), start_ts: ts(20), pass: Vec::new() };
    let error = RegionError::KeyNotInRegion { region: store.context().region };
    assert_eq!(server.handle(Request { context: store.context(), body: outside }).await, Err(error.into()));
}

/// A scan of many slices returns the same as a scan of one slice, and stops before a lock that a later slice meets.
#[tokio::test]
async fn a_long_scan_merges_its_slices() {
    let store = FakeStore::new();
    let server = server(&store, &KvServerConfig::default());
    let keys = put_three_thousand(&server, &store).await;
    let [start, end] = [Key::from_static(b"c"), Key::from_static(b"x")];
    for reverse in [false, true] {
        let request = Request { context: store.context(), body: scan(&start, &end, reverse) };
        let Ok(Response::Pairs { pairs, resume }) = server.handle(request).await else { panic!("not pairs") };
        let mut found: Vec<Key> = pairs.into_iter().map(|(key, _)| key).collect();
        if reverse {
            found.reverse();
        }
        assert!(found == keys && resume.is_none(), "{} keys, reverse {reverse}", found.len());
    }
    let batch = RequestBody::BatchGet { keys: keys.clone(), start_ts: ts(1_000), pass: Vec::new() };
    let Ok(Response::Pairs { pairs, .. }) = server.handle(Request { context: store.context(), body: batch }).await
    else {
        panic!("not pairs")
    };
    assert!(pairs.iter().map(|(key, _)| key).eq(&keys));

    let lock = prewrite(&[keys[2_000].clone()], b"w", 500);
    assert_eq!(server.handle(Request { context: store.context(), body: lock }).await, Ok(Response::Done));
    for (reverse, count, bound) in [(false, 2_000, keys[2_000].clone()), (true, 999, keys[2_000].successor())] {
        let request = Request { context: store.context(), body: scan(&start, &end, reverse) };
        let Ok(Response::Pairs { pairs, resume }) = server.handle(request).await else { panic!("not pairs") };
        assert_eq!((pairs.len(), resume.as_ref()), (count, Some(&bound)));
        let rest = if reverse { scan(&start, &bound, true) } else { scan(&bound, &end, false) };
        let locked = server.handle(Request { context: store.context(), body: rest }).await;
        let Err(ServerError::Key(KeyError::Locked(locks))) = locked else { panic!("{locked:?}") };
        assert_eq!(locks.len(), 1);
    }
}

/// Reads a range in pages of 700 pairs, with `between` called before each page but the first. Returns the keys, in key
/// order, and the number of pages.
async fn read_pages(
    server: &KvServer<FakeStore>,
    store: &FakeStore,
    reverse: bool,
    between: impl Fn(),
) -> (Vec<Key>, usize) {
    let [mut start, mut end] = [Key::from_static(b"c"), Key::from_static(b"x")];
    let (mut found, mut pages) = (Vec::new(), 0);
    loop {
        let RequestBody::Scan(whole) = scan(&start, &end, reverse) else { panic!("not a scan") };
        let body = RequestBody::Scan(ScanRequest { limit: 700, ..whole });
        let answer = server.handle(Request { context: store.context(), body }).await;
        let Ok(Response::Pairs { pairs, resume }) = answer else { panic!("{answer:?}") };
        found.extend(pairs.into_iter().map(|(key, _)| key));
        pages += 1;
        match resume {
            None => break,
            Some(resume) if reverse => end = resume,
            Some(resume) => start = resume,
        }
        between();
    }
    if reverse {
        found.reverse();
    }
    (found, pages)
}

/// All pages of a statement read one snapshot through one cursor over the write records, behind that of the first
/// slice, which reads memory alone. A change of the region's epoch ends it.
#[tokio::test]
async fn the_pages_of_a_statement_share_a_cursor() {
    let store = FakeStore::new();
    let server = server(&store, &in_caller());
    let keys = put_three_thousand(&server, &store).await;
    for reverse in [false, true] {
        let before = (store.write_cursors(), store.views());
        assert_eq!(read_pages(&server, &store, reverse, || ()).await, (keys.clone(), 5));
        assert_eq!((store.write_cursors() - before.0, store.views() - before.1), (1, 1), "reverse {reverse}");
        let before = store.write_cursors();
        assert_eq!(read_pages(&server, &store, reverse, || store.raise_epoch()).await, (keys.clone(), 5));
        // The last page is as short as a first slice.
        assert_eq!(store.write_cursors() - before, 4, "reverse {reverse}, the epoch changes");
    }
}

/// The age of a scan counts while its pages are read, which takes all the time here.
#[tokio::test(start_paused = true)]
async fn slow_pages_hold_no_snapshot_beyond_its_age() {
    let store = FakeStore::new();
    let server = server(&store, &in_caller());
    let keys = put_three_thousand(&server, &store).await;
    store.set_lease(false);
    // The scan of the first page is opened at its end, is 4 s old after the second page and 8 s after the third. The
    // fourth opens another one. Pages of 6 s share it two by two, and the last one is short.
    for (delay_s, scans) in [(4, 2), (1, 1), (6, 2)] {
        store.set_read_delay(Duration::from_secs(delay_s));
        for reverse in [false, true] {
            let before = store.write_cursors();
            assert_eq!(read_pages(&server, &store, reverse, || ()).await, (keys.clone(), 5));
            assert_eq!(store.write_cursors() - before, scans, "pages of {delay_s} s, reverse {reverse}");
        }
    }
}

/// A kept scan does not stand in for the checks of the read path.
#[tokio::test]
async fn a_kept_scan_serves_no_request_that_the_store_refuses() {
    let store = FakeStore::new();
    let server = server(&store, &KvServerConfig::default());
    let keys: Vec<Key> = (0..2_000).map(|n| Key::new(format!("k{n:05}"))).collect();
    put(&server, &store, &keys, 10).await;
    let old = store.context();
    let [start, end] = [Key::from_static(b"c"), Key::from_static(b"x")];
    let page = |context, start: &Key| {
        let RequestBody::Scan(whole) = scan(start, &end, false) else { panic!("not a scan") };
        Request { context, body: RequestBody::Scan(ScanRequest { limit: 700, ..whole }) }
    };
    let first = server.handle(page(old, &start)).await;
    let Ok(Response::Pairs { resume: Some(next), .. }) = first else { panic!("{first:?}") };
    store.raise_epoch();
    let refused = server.handle(page(old, &next)).await;
    assert!(matches!(refused, Err(ServerError::Region(RegionError::EpochNotMatch { .. }))), "{refused:?}");
    store.set_leader(false);
    let refused = server.handle(page(store.context(), &next)).await;
    assert!(matches!(refused, Err(ServerError::Region(RegionError::NotLeader { .. }))), "{refused:?}");
    store.set_leader(true);
    store.set_lease(false);
    let served = server.handle(page(store.context(), &next)).await;
    assert!(matches!(served, Ok(Response::Pairs { .. })) && store.read_indexes() == 1, "{served:?}");
}

/// A page that ends before a lock is not continued: the next ones see the lock, and then what became of it. The lock is
/// within a slice, at its start or at its end.
#[tokio::test]
async fn a_scan_that_met_a_lock_continues_on_a_new_snapshot() {
    for at in [254, 255, 256, 257, 319, 320, 900] {
        let store = FakeStore::new();
        let server = server(&store, &KvServerConfig::default());
        let keys: Vec<Key> = (0..2_000).map(|n| Key::new(format!("k{n:05}"))).collect();
        put(&server, &store, &keys, 10).await;
        let locked = std::slice::from_ref(&keys[at]);
        let request = |body| Request { context: store.context(), body };
        assert_eq!(server.handle(request(prewrite(locked, b"new", 500))).await, Ok(Response::Done));
        let end = Key::from_static(b"x");
        let answer = server.handle(request(scan(&Key::from_static(b"c"), &end, false))).await;
        let Ok(Response::Pairs { pairs, resume: Some(resume) }) = answer else { panic!("{answer:?}") };
        assert_eq!((pairs.len(), &resume), (at, &keys[at]));
        let met = server.handle(request(scan(&resume, &end, false))).await;
        assert!(matches!(met, Err(ServerError::Key(KeyError::Locked(_)))), "{met:?}");
        let commit = RequestBody::Commit { keys: locked.to_vec(), start_ts: ts(500), commit_ts: ts(600) };
        assert_eq!(server.handle(request(commit)).await, Ok(Response::Done));
        let answer = server.handle(request(scan(&resume, &end, false))).await;
        let Ok(Response::Pairs { pairs, resume: None }) = answer else { panic!("{answer:?}") };
        assert_eq!((pairs.len(), &pairs[0]), (2_000 - at, &(keys[at].clone(), Bytes::from_static(b"new"))));
    }
}

#[tokio::test]
async fn requests_in_flight_are_bounded_and_counted() {
    let store = FakeStore::new();
    let registry = Registry::new();
    let config = KvServerConfig { max_in_flight: 1, ..KvServerConfig::default() };
    let server = KvServer::new(store.clone(), Arc::new(CountingTso::new(0)), &config, &registry).unwrap();
    let (release, held) = oneshot::channel();
    store.push_outcome(ProposalOutcome::Held(held));
    let key = Key::from_static(b"k");
    let request = |body| Request { context: store.context(), body };
    let mut first = Box::pin(server.handle(request(prewrite(std::slice::from_ref(&key), b"v", 10))));
    assert!(futures::poll!(&mut first).is_pending());
    // A request whose caller was dropped counts as in flight while it is replicated.
    drop(first);
    let get = request(RequestBody::Get { key, start_ts: ts(5), pass: Vec::new() });
    let busy = RegionError::ServerBusy { store: StoreId::new(1), what: "requests".to_owned() };
    assert_eq!(server.handle(get.clone()).await, Err(busy.into()));
    assert_eq!(server.metrics.in_flight.get(), 1);
    release.send(()).unwrap();
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    assert_eq!(server.metrics.in_flight.get(), 0);
    assert_eq!(server.handle(get).await, Ok(Response::Value(None)));
    let text: Vec<_> = registry.gather().iter().map(|family| family.name().to_owned()).collect();
    assert_eq!(text.iter().filter(|name| !name.starts_with("cortado_kv_read_pool_")).count(), 7, "{text:?}");
}

/// Regression: the first slice of a scan, and batch gets of up to 64 keys, read files in the session's thread.
#[tokio::test]
async fn no_read_of_a_file_runs_in_the_callers_thread() {
    let store = FakeStore::new();
    let server = server(&store, &KvServerConfig::default());
    let keys: Vec<Key> = (0..100).map(|n| Key::new(format!("k{n:05}"))).collect();
    put(&server, &store, &keys, 10).await;
    store.cool(&keys[50].to_storage());
    let [start, end] = [Key::from_static(b"c"), Key::from_static(b"x")];
    let start_ts = ts(1_000);
    let batch = |count: usize| RequestBody::BatchGet { keys: keys[..count].to_vec(), start_ts, pass: Vec::new() };
    // A read that passes a transaction reads on a view.
    let get = |pass| RequestBody::Get { key: keys[50].clone(), start_ts, pass };
    let reads = [
        (scan(&start, &end, false), 100),
        (scan(&start, &end, true), 100),
        (batch(60), 60),
        (batch(100), 100),
        (get(Vec::new()), 1),
        (get(vec![ts(5)]), 1),
    ];
    for (body, expected) in reads {
        let before = store.file_readers().len();
        let found = match server.handle(Request { context: store.context(), body: body.clone() }).await {
            Ok(Response::Pairs { pairs, resume: None }) => pairs.len(),
            Ok(Response::Value(Some(_))) => 1,
            other => panic!("{body:?}: {other:?}"),
        };
        let threads = store.file_readers().split_off(before);
        assert_eq!(found, expected, "{body:?}");
        assert!(!threads.is_empty() && threads.iter().all(|name| name.starts_with("cortado-read-")), "{threads:?}");
    }
    // What is in memory is read without the pool.
    let jobs = server.metrics.pool.jobs();
    assert_eq!(server.handle(Request { context: store.context(), body: batch(50) }).await.map(|_| ()), Ok(()));
    assert_eq!(server.metrics.pool.jobs(), jobs);
}

/// Regression: each page came as a request of its own and started at the highest level again.
#[tokio::test]
async fn the_next_page_of_an_expensive_statement_starts_where_it_has_fallen_to() {
    let store = FakeStore::new();
    let pool = PoolConfig { workers: Workers::Threads { reads: 1, scans: 1 }, ..PoolConfig::default() };
    let server = server(&store, &KvServerConfig { pool, ..KvServerConfig::default() });
    let keys: Vec<Key> = (0..100).map(|n| Key::new(format!("k{n:05}"))).collect();
    put(&server, &store, &keys, 10).await;
    let page = |start: &Key| {
        let RequestBody::Scan(whole) = scan(start, &Key::from_static(b"x"), false) else { panic!("not a scan") };
        ScanRequest { limit: 10, ..whole }
    };
    let mut long = Cost::default();
    (0..100).for_each(|_| long.add(1, Duration::from_millis(5), true));
    server.reads.note_cost(&page(&Key::from_static(b"c")), &keys[10], long);
    store.cool(&keys[99].to_storage());
    // The statement's second and third page. The next one would go on with the kept scan, but its region has changed.
    let mut start = keys[10].clone();
    for _ in 2..4 {
        let before = store.file_readers().len();
        let body = RequestBody::Scan(page(&start));
        let answer = server.handle(Request { context: store.context(), body }).await;
        let Ok(Response::Pairs { pairs, resume: Some(resume) }) = answer else { panic!("{answer:?}") };
        assert_eq!((pairs.len(), store.file_readers().split_off(before)), (10, vec!["cortado-scan-0".to_owned()]));
        start = resume;
        store.raise_epoch();
    }
    // The second page of another statement.
    let before = store.file_readers().len();
    let body = RequestBody::Scan(ScanRequest { start_ts: ts(1_001), ..page(&keys[10]) });
    assert!(server.handle(Request { context: store.context(), body }).await.is_ok());
    assert_eq!(store.file_readers().split_off(before), ["cortado-read-0"]);
}

/// Answers to others do not queue behind large pages of a scan that rests anyway.
#[tokio::test]
async fn pages_of_long_scans_are_small_while_others_want_the_processors() {
    let store = FakeStore::new();
    let reads = ReadConfig { page_bytes: 700, contended_part: 10, ..ReadConfig::default() };
    let server = server(&store, &KvServerConfig { reads, ..KvServerConfig::default() });
    let keys: Vec<Key> = (0..30).map(|n| Key::new(format!("k{n:05}"))).collect();
    put(&server, &store, &keys, 10).await;
    let mut long = Cost::default();
    (0..100).for_each(|_| long.add(1, Duration::from_millis(5), true));
    let mut last = 1_000;
    let mut pairs_of = async |is_long: bool| {
        last += 1;
        let RequestBody::Scan(whole) = scan(&keys[0], &Key::from_static(b"x"), false) else { panic!("not a scan") };
        let page = ScanRequest { start_ts: ts(last), ..whole };
        if is_long {
            server.reads.note_cost(&page, &keys[0], long);
        }
        match server.handle(Request { context: store.context(), body: RequestBody::Scan(page) }).await {
            Ok(Response::Pairs { pairs, .. }) => pairs.len(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!((pairs_of(false).await, pairs_of(true).await), (30, 30));
    server.reads.pool().contend();
    assert_eq!((pairs_of(false).await, pairs_of(true).await), (30, 10), "7 bytes each");
}

/// Long scans take all threads and all places that they can get, and their reads of a file do not return.
#[tokio::test]
async fn scans_that_hang_delay_neither_short_reads_nor_writes_nor_heartbeats() {
    let store = FakeStore::new();
    let workers = Workers::Threads { reads: 1, scans: 1 };
    let pool = PoolConfig { workers, jobs: 3, ..PoolConfig::default() };
    let server = server(&store, &KvServerConfig { pool, ..KvServerConfig::default() });
    let keys: Vec<Key> = (0..200).map(|n| Key::new(format!("k{n:05}"))).collect();
    put(&server, &store, &keys, 10).await;
    let context = store.context();
    let request = |body| Request { context, body };
    let mut long = Cost::default();
    (0..100).for_each(|_| long.add(1, Duration::from_millis(5), true));
    let long_scan = |start_ms| {
        let RequestBody::Scan(whole) = scan(&keys[10], &Key::from_static(b"x"), false) else { panic!("not a scan") };
        let page = ScanRequest { start_ts: ts(start_ms), ..whole };
        server.reads.note_cost(&page, &keys[10], long);
        Box::pin(server.handle(request(RequestBody::Scan(page))))
    };
    store.cool(&keys[199].to_storage());
    let gate = store.hold_file_reads();
    let mut scans: Vec<_> = [1_000, 1_001, 1_002].map(long_scan).into();
    for scan in &mut scans {
        assert!(futures::poll!(scan).is_pending());
    }
    let busy = Err(RegionError::ServerBusy { store: StoreId::new(1), what: "read pool".to_owned() }.into());
    assert_eq!(long_scan(1_003).await, busy, "there is no room for another one");
    // In memory, in the caller's thread.
    let get = RequestBody::Get { key: keys[0].clone(), start_ts: ts(1_000), pass: Vec::new() };
    assert_eq!(server.handle(request(get)).await, Ok(Response::Value(Some(Bytes::from_static(b"v")))));
    let (key, start_ts) = (keys[0].clone(), ts(500));
    assert_eq!(server.handle(request(prewrite(std::slice::from_ref(&key), b"w", 500))).await, Ok(Response::Done));
    let heartbeat = RequestBody::Heartbeat { primary: key.clone(), start_ts, ttl_ms: 3_000 };
    assert_eq!(server.handle(request(heartbeat)).await, Ok(Response::Ttl(3_000)));
    let commit = RequestBody::Commit { keys: vec![key], start_ts, commit_ts: ts(600) };
    assert_eq!(server.handle(request(commit)).await, Ok(Response::Done));
    // In the pool, where they displace the youngest scan.
    let batch = RequestBody::BatchGet { keys: keys[..100].to_vec(), start_ts: ts(1_000), pass: Vec::new() };
    let found = server.handle(request(batch)).await;
    assert!(matches!(&found, Ok(Response::Pairs { pairs, .. }) if pairs.len() == 100), "{found:?}");
    assert_eq!(scans.pop().unwrap().await, busy);
    drop(gate);
    for scan in scans {
        assert!(matches!(scan.await, Ok(Response::Pairs { pairs, .. }) if pairs.len() == 190));
    }
}

/// However many reads there are, a part of the requests in flight is left to writes and heartbeats.
#[tokio::test]
async fn reads_do_not_crowd_out_writes() {
    let store = FakeStore::new();
    let server = server(&store, &KvServerConfig { max_in_flight: 4, ..KvServerConfig::default() });
    let request = |body| Request { context: store.context(), body };
    let get = || request(RequestBody::Get { key: Key::from_static(b"k"), start_ts: ts(5), pass: Vec::new() });
    store.set_lease(false);
    let mut reads: Vec<_> = (0..3).map(|_| Box::pin(server.handle(get()))).collect();
    for read in &mut reads {
        assert!(futures::poll!(read).is_pending());
    }
    let busy = RegionError::ServerBusy { store: StoreId::new(1), what: "reads".to_owned() };
    assert_eq!(server.handle(get()).await, Err(busy.into()));
    assert_eq!(server.handle(request(prewrite(&[Key::from_static(b"l")], b"v", 10))).await, Ok(Response::Done));
    for read in reads {
        assert_eq!(read.await, Ok(Response::Value(None)));
    }
}

#[test]
fn settings_below_their_minimum_are_refused() {
    assert!(KvServerConfig::default().validate().is_ok());
    let pool = PoolConfig { workers: Workers::Threads { reads: 1, scans: 0 }, ..PoolConfig::default() };
    let config = KvServerConfig { pool, ..KvServerConfig::default() };
    let error =
        KvServer::new(FakeStore::new(), Arc::new(CountingTso::new(0)), &config, &Registry::new()).err().unwrap();
    assert_eq!(error.to_string(), "kv server: pool.workers must be at least 1");
}

/// A link to a server.
struct Remote {
    links: Links,
    address: String,
}

impl Remote {
    async fn call(&self, kind: Kind, payload: Vec<u8>) -> Result<Bytes, CallError> {
        let peer = self.links.peer(&self.address).unwrap();
        peer.call(kind, payload.into(), Duration::from_secs(10)).await
    }

    async fn request(&self, request: Request) -> Result<Response, ServerError> {
        let payload = pb::Request::from(request).encode_to_vec();
        let answer = pb::Response::decode(self.call(REQUEST, payload).await.unwrap()).unwrap();
        Result::<Response, ServerError>::try_from(answer).unwrap()
    }
}

/// Serves links on a free port, and connects to it.
async fn serve_and_connect(server: KvServer<FakeStore>) -> Remote {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let cluster = ClusterTag::new(1);
    let metrics = LinkMetrics::new(&Registry::new()).unwrap();
    let links = LinkServer::new(ServerOptions::new(cluster), link_services(server), metrics.clone());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            links.serve(stream);
        }
    });
    Remote { links: Links::new(LinkOptions::new(cluster), metrics), address }
}

#[tokio::test]
async fn requests_and_errors_survive_the_wire() {
    let store = FakeStore::new();
    let remote = serve_and_connect(server(&store, &KvServerConfig::default())).await;
    let key = Key::from_static(b"k");
    let commit = RequestBody::Commit { keys: vec![key.clone()], start_ts: ts(10), commit_ts: ts(20) };
    let missing = KeyError::LockNotFound { start_ts: ts(10), key: key.clone() };
    let steps = [
        (commit.clone(), Err(missing.into())),
        (prewrite(std::slice::from_ref(&key), b"v", 10), Ok(Response::Done)),
        (commit, Ok(Response::Done)),
        (
            RequestBody::Get { key, start_ts: ts(20), pass: Vec::new() },
            Ok(Response::Value(Some(Bytes::from_static(b"v")))),
        ),
    ];
    for (body, expected) in steps {
        let request = Request { context: store.context(), body };
        assert_eq!(remote.request(request).await, expected);
    }
    store.set_leader(false);
    let body = RequestBody::Get { key: Key::from_static(b"k"), start_ts: ts(20), pass: Vec::new() };
    let not_leader = RegionError::NotLeader { region: store.context().region, leader: None };
    assert_eq!(remote.request(Request { context: store.context(), body }).await, Err(not_leader.into()));
    for (at, found) in [(b"k", true), (b"z", false)] {
        let request = pb::LocateRequest { key: Key::from_static(at).to_storage().into() };
        let response = remote.call(LOCATE, request.encode_to_vec()).await.unwrap();
        let response = pb::LocateResponse::decode(response).unwrap();
        let status = Option::<RegionStatus>::try_from(response).unwrap();
        assert_eq!(status.map(|status| status.region.id), found.then_some(store.context().region));
    }
}

#[tokio::test]
async fn malformed_and_oversized_messages_are_refused() {
    let store = FakeStore::new();
    let remote = serve_and_connect(server(&store, &KvServerConfig::default())).await;
    let invalid = |why: &str| Err(CallError::Invalid(why.to_owned()));
    assert_eq!(remote.call(REQUEST, Vec::new()).await, invalid("malformed Request: no context"));
    for kind in [REQUEST, LOCATE] {
        let garbage = remote.call(kind, vec![0xff; 9]).await;
        assert!(matches!(garbage, Err(CallError::Invalid(_))), "{garbage:?}");
    }
    let key = Key::from_static(b"k");
    let huge = Bytes::from(vec![0; MESSAGE_BYTES_MAX + 1]);
    let mutations = vec![Mutation::new(key.clone(), MutationOp::Put(huge))];
    let body = RequestBody::Prewrite(PrewriteRequest {
        mutations,
        primary: key,
        start_ts: ts(10),
        ttl_ms: 10,
        commit: crate::api::CommitMode::TwoPhase,
        locker: None,
    });
    let huge = pb::Request::from(Request { context: store.context(), body }).encode_to_vec();
    let refused = remote.call(REQUEST, huge).await;
    assert!(matches!(refused, Err(CallError::Invalid(_))), "{refused:?}");
    assert_eq!(store.proposals(), 0);
}

/// Three values of 6 MiB exceed the largest message.
#[tokio::test]
async fn a_batch_get_ends_before_its_response_exceeds_a_message() {
    let store = FakeStore::new();
    let server = server(&store, &KvServerConfig::default());
    let keys: Vec<Key> = (0..3).map(|n| Key::new(format!("k{n}"))).collect();
    for key in &keys {
        let put = MutationOp::Put(Bytes::from(vec![7; 6 << 20]));
        let mutations = vec![Mutation::new(key.clone(), put)];
        let prewrite = PrewriteRequest {
            mutations,
            primary: key.clone(),
            start_ts: ts(10),
            ttl_ms: 10,
            commit: crate::api::CommitMode::TwoPhase,
            locker: None,
        };
        let commit = RequestBody::Commit { keys: vec![key.clone()], start_ts: ts(10), commit_ts: ts(20) };
        for body in [RequestBody::Prewrite(prewrite), commit] {
            assert_eq!(server.handle(Request { context: store.context(), body }).await, Ok(Response::Done));
        }
    }
    let remote = serve_and_connect(server).await;
    let mut rest = keys.clone();
    let mut found = Vec::new();
    while !rest.is_empty() {
        let body = RequestBody::BatchGet { keys: rest.clone(), start_ts: ts(30), pass: Vec::new() };
        let answer = remote.request(Request { context: store.context(), body }).await;
        let Ok(Response::Pairs { pairs, resume }) = answer else { panic!("{answer:?}") };
        assert_eq!(pairs.len(), 1, "a response ends with the value that reaches the limit");
        found.extend(pairs.into_iter().map(|(key, _)| key));
        rest = resume.map_or(Vec::new(), |resume| rest.into_iter().filter(|key| *key >= resume).collect());
    }
    assert_eq!(found, keys);
}

#[tokio::test]
async fn a_response_above_the_message_limit_becomes_an_invalid_request() {
    let store = FakeStore::new();
    let server = server(&store, &KvServerConfig::default());
    let key = Key::from_static(b"k");
    let record = WriteRecord { kind: WriteKind::Put, start_ts: ts(10), short_value: None };
    store.write_raw(Cf::Write, &versioned(&key.to_storage(), ts(20)), &record.encode());
    store.write_raw(Cf::Default, &versioned(&key.to_storage(), ts(10)), &vec![7; MESSAGE_BYTES_MAX]);
    let remote = serve_and_connect(server).await;
    let body = RequestBody::Get { key, start_ts: ts(30), pass: Vec::new() };
    let answer = remote.request(Request { context: store.context(), body }).await;
    assert!(matches!(answer, Err(ServerError::Invalid(_))), "{answer:?}");
}

#[tokio::test]
async fn the_bytes_of_requests_in_flight_are_bounded() {
    let store = FakeStore::new();
    let config = KvServerConfig { max_in_flight_bytes: 1_000, ..KvServerConfig::default() };
    let server = server(&store, &config);
    let put = |at: &str, len: usize| {
        let key = Key::new(at.to_owned());
        let mutations = vec![Mutation::new(key.clone(), MutationOp::Put(Bytes::from(vec![7; len])))];
        let prewrite = PrewriteRequest {
            mutations,
            primary: key,
            start_ts: ts(10),
            ttl_ms: 10,
            commit: crate::api::CommitMode::TwoPhase,
            locker: None,
        };
        Request { context: store.context(), body: RequestBody::Prewrite(prewrite) }
    };
    let (release, held) = oneshot::channel();
    store.push_outcome(ProposalOutcome::Held(held));
    let mut first = Box::pin(server.handle(put("k1", 600)));
    assert!(futures::poll!(&mut first).is_pending());
    let busy = RegionError::ServerBusy { store: StoreId::new(1), what: "bytes of requests".to_owned() };
    assert_eq!(server.handle(put("k2", 600)).await, Err(busy.into()));
    assert_eq!(server.handle(put("k3", 100)).await, Ok(Response::Done));
    release.send(()).unwrap();
    assert_eq!(first.await, Ok(Response::Done));
    // A request above the limit runs alone.
    assert_eq!(server.handle(put("k4", 5_000)).await, Ok(Response::Done));
}

/// Requests that read the rows of `key`: three kinds of reads, and a write.
fn requests_reading(key: &Key) -> [RequestBody; 4] {
    let get = RequestBody::Get { key: key.clone(), start_ts: ts(100), pass: Vec::new() };
    let batch = RequestBody::BatchGet { keys: vec![key.clone()], start_ts: ts(100), pass: Vec::new() };
    let all = scan(&Key::from_static(b"c"), &Key::from_static(b"x"), false);
    [get, batch, all, prewrite(std::slice::from_ref(key), b"v", 100)]
}

/// A leader that kept serving would refuse for ever what another replica may hold intact.
#[tokio::test]
async fn corrupt_data_poisons_the_store() {
    let key = Key::from_static(b"k");
    for n in 0..requests_reading(&key).len() {
        let missing = WriteRecord { kind: WriteKind::Put, start_ts: ts(10), short_value: None };
        let corruptions: [(Cf, Vec<u8>, Vec<u8>); 3] = [
            (Cf::Lock, key.to_storage(), vec![99]),
            (Cf::Write, versioned(&key.to_storage(), ts(20)), vec![1, 77]),
            // The long value of this record is missing. A write does not read it.
            (Cf::Write, versioned(&key.to_storage(), ts(20)), missing.encode()),
        ];
        for (at, (cf, row, value)) in corruptions.into_iter().enumerate() {
            if (n, at) == (3, 2) {
                continue;
            }
            let store = FakeStore::new();
            let server = server(&store, &KvServerConfig::default());
            store.write_raw(cf, &row, &value);
            let request = Request { context: store.context(), body: requests_reading(&key)[n].clone() };
            let answer = server.handle(request.clone()).await;
            assert!(matches!(answer, Err(ServerError::Failed(_))), "{:?}: {answer:?}", request.body);
            assert!(store.poisoned().is_some(), "{:?} on corruption {at}", request.body);
            let after = server.handle(request).await;
            assert!(matches!(after, Err(ServerError::Region(RegionError::NotLeader { .. }))), "{after:?}");
        }
    }
}

#[tokio::test]
async fn a_failed_read_poisons_the_store_only_if_the_data_is_corrupt() {
    let key = Key::from_static(b"k");
    for (error, fatal) in [
        ((|| StoreError::Corrupt("planted".to_owned())) as fn() -> StoreError, true),
        (|| StoreError::Backend("planted".to_owned()), false),
        (|| StoreError::Io(std::io::Error::other("planted")), false),
    ] {
        for body in requests_reading(&key) {
            if matches!(body, RequestBody::Scan(_)) {
                continue;
            }
            let store = FakeStore::new();
            let server = server(&store, &KvServerConfig::default());
            store.fail_reads_of(&key.to_storage(), error);
            let answer = server.handle(Request { context: store.context(), body }).await;
            assert!(matches!(answer, Err(ServerError::Failed(_))), "{answer:?}");
            assert_eq!(store.poisoned().is_some(), fatal, "{:?}", error());
        }
    }
}

//! The write path: latches are held as long as a proposal may take effect, fences follow unknown outcomes, and
//! responses without a proposal confirm leadership.

use bytes::Bytes;
use futures::poll;
use prometheus::Registry;
use raftstore::StoreId;
use tokio::sync::oneshot;
use tso::Timestamp;

use super::*;
use crate::api::{KeyError, Mutation, MutationOp, PrewriteRequest};
use crate::memory::CountingTso;
use crate::read_pool::{PoolConfig, PoolMetrics};
use crate::region_store::fake::{FakeStore, ProposalOutcome};

fn ts(ms: u64) -> Timestamp {
    Timestamp::new(ms, 0)
}

fn prewrite(store: &FakeStore, at: &'static [u8], start_ms: u64) -> Request {
    let key = Key::from_static(at);
    let mutations = vec![Mutation::new(key.clone(), MutationOp::Put(Bytes::from_static(b"v")))];
    let body = RequestBody::Prewrite(PrewriteRequest {
        mutations,
        primary: key,
        start_ts: ts(start_ms),
        ttl_ms: 10,
        commit: crate::api::CommitMode::TwoPhase,
        locker: None,
    });
    Request { context: store.context(), body }
}

fn commit(store: &FakeStore, at: &'static [u8], start_ms: u64, commit_ms: u64) -> Request {
    let (keys, start_ts, commit_ts) = (vec![Key::from_static(at)], ts(start_ms), ts(commit_ms));
    Request { context: store.context(), body: RequestBody::Commit { keys, start_ts, commit_ts } }
}

fn concurrency() -> ConcurrencyManager {
    ConcurrencyManager::new(Arc::new(CountingTso::new(0)))
}

fn scheduler(store: &FakeStore) -> Scheduler<FakeStore> {
    Scheduler::new(store.clone(), concurrency(), 100, ReadPool::in_caller())
}

fn is_fenced(result: &Result<Response, ServerError>) -> bool {
    matches!(result, Err(ServerError::Region(RegionError::NotReady { .. })))
}

/// Lets other tasks run until `done` holds; panics if it never does.
async fn until(done: impl Fn() -> bool) {
    for _ in 0..10_000 {
        if done() {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("the condition never held");
}

#[tokio::test]
async fn a_write_waits_for_earlier_writes_of_its_keys() {
    let store = FakeStore::new();
    let scheduler = scheduler(&store);
    let (release, held) = oneshot::channel();
    store.push_outcome(ProposalOutcome::Held(held));
    let mut first = Box::pin(scheduler.run(prewrite(&store, b"k", 10), ()));
    assert!(poll!(&mut first).is_pending());
    let mut second = Box::pin(scheduler.run(prewrite(&store, b"k", 11), ()));
    assert!(poll!(&mut second).is_pending());
    // A write of another key does not wait.
    assert_eq!(scheduler.run(prewrite(&store, b"l", 12), ()).await, Ok(Response::Done));
    assert!(poll!(&mut second).is_pending());
    release.send(()).unwrap();
    assert_eq!(first.await, Ok(Response::Done));
    assert!(matches!(second.await, Err(ServerError::Key(KeyError::Locked(_)))));
    assert_eq!(scheduler.latched_writes(), 0);
}

/// A cold read in the caller's task would hold up the other tasks of its thread.
#[tokio::test]
async fn a_write_that_needs_a_file_is_evaluated_in_the_pool() {
    let store = FakeStore::new();
    let config = PoolConfig { jobs: 1, ..PoolConfig::default() };
    let pool = ReadPool::new(&config, PoolMetrics::new(&Registry::new()).unwrap());
    let scheduler = Scheduler::new(store.clone(), concurrency(), 100, pool);
    store.cool(&Key::from_static(b"k").to_storage());
    let (release, held) = std::sync::mpsc::sync_channel::<()>(1);
    let mut running = Box::pin(scheduler.pool.run_point(move || held.recv().is_ok()));
    assert!(poll!(&mut running).is_pending());
    assert_eq!(scheduler.run(prewrite(&store, b"l", 10), ()).await, Ok(Response::Done), "in memory");
    let refused = scheduler.run(prewrite(&store, b"k", 10), ()).await;
    assert!(matches!(refused, Err(ServerError::Region(RegionError::ServerBusy { .. }))), "{refused:?}");
    release.send(()).unwrap();
    assert_eq!(running.await, Ok(true));
    assert_eq!(scheduler.run(prewrite(&store, b"k", 10), ()).await, Ok(Response::Done));
    assert!(matches!(scheduler.run(prewrite(&store, b"k", 11), ()).await, Err(ServerError::Key(KeyError::Locked(_)))));
    assert_eq!(store.proposals(), 2);
}

#[tokio::test]
async fn a_dropped_write_keeps_its_latches_while_its_proposal_is_under_way() {
    let store = FakeStore::new();
    let scheduler = scheduler(&store);
    let (release, held) = oneshot::channel();
    store.push_outcome(ProposalOutcome::Held(held));
    let permit = Arc::new(());
    let mut first = Box::pin(scheduler.run(prewrite(&store, b"k", 10), Arc::clone(&permit)));
    assert!(poll!(&mut first).is_pending());
    drop(first);
    let mut second = Box::pin(scheduler.run(prewrite(&store, b"k", 11), ()));
    for _ in 0..100 {
        tokio::task::yield_now().await;
        assert!(poll!(&mut second).is_pending());
    }
    assert_eq!((scheduler.latched_writes(), Arc::strong_count(&permit)), (2, 2));
    release.send(()).unwrap();
    assert!(matches!(second.await, Err(ServerError::Key(KeyError::Locked(_)))), "the dropped write took effect");
    until(|| scheduler.latched_writes() == 0 && Arc::strong_count(&permit) == 1).await;
}

/// Regression: the session's task released the latches and the locks in memory. While it computed something else, or
/// another session of its thread did, readers and writers of the keys waited.
#[tokio::test]
async fn an_applied_write_releases_its_keys_although_nobody_polls_it() {
    let store = FakeStore::new();
    let scheduler = scheduler(&store);
    let (release, held) = oneshot::channel();
    store.push_outcome(ProposalOutcome::Held(held));
    let permit = Arc::new(());
    let mut first = Box::pin(scheduler.run(prewrite(&store, b"k", 10), Arc::clone(&permit)));
    assert!(poll!(&mut first).is_pending());
    release.send(()).unwrap();
    until(|| scheduler.latched_writes() == 0 && Arc::strong_count(&permit) == 1).await;
    let second = scheduler.run(prewrite(&store, b"k", 11), ()).await;
    assert!(matches!(second, Err(ServerError::Key(KeyError::Locked(_)))), "{second:?}");
    assert_eq!(first.await, Ok(Response::Done));
}

/// A runtime of one thread, which may be dropped while futures of its tasks live on.
fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().build().unwrap()
}

/// Regression: without a runtime at hand the drop released the latches, with the proposal under way.
#[test]
fn a_write_that_is_dropped_outside_of_a_runtime_keeps_its_latches() {
    let store = FakeStore::new();
    let scheduler = scheduler(&store);
    let (release, held) = oneshot::channel();
    store.push_outcome(ProposalOutcome::Held(held));
    let runtime = runtime();
    let mut first = Box::pin(scheduler.run(prewrite(&store, b"k", 10), ()));
    runtime.block_on(async { assert!(poll!(&mut first).is_pending()) });
    drop(first);
    assert_eq!(scheduler.latched_writes(), 1);
    runtime.block_on(async {
        let mut second = Box::pin(scheduler.run(prewrite(&store, b"k", 11), ()));
        for _ in 0..100 {
            tokio::task::yield_now().await;
            assert!(poll!(&mut second).is_pending());
        }
        release.send(()).unwrap();
        assert!(matches!(second.await, Err(ServerError::Key(KeyError::Locked(_)))), "the dropped write took effect");
        until(|| scheduler.latched_writes() == 0).await;
    });
}

/// A store that ends without an answer leaves the outcome unknown, and the region is fenced.
#[test]
fn a_write_that_is_lost_with_its_store_fences_the_region() {
    let store = FakeStore::new();
    let scheduler = scheduler(&store);
    let (_release, held) = oneshot::channel();
    store.push_outcome(ProposalOutcome::Held(held));
    let ending = runtime();
    let mut first = Box::pin(scheduler.run(prewrite(&store, b"k", 10), ()));
    ending.block_on(async { assert!(poll!(&mut first).is_pending()) });
    drop(ending);
    drop(first);
    assert_eq!(scheduler.latched_writes(), 0);
    runtime().block_on(async {
        assert!(is_fenced(&scheduler.run(prewrite(&store, b"k", 11), ()).await));
        store.set_term(6);
        assert_eq!(scheduler.run(prewrite(&store, b"k", 11), ()).await, Ok(Response::Done));
    });
}

#[tokio::test]
async fn a_dropped_write_that_was_not_proposed_releases_its_latches() {
    let store = FakeStore::new();
    let scheduler = scheduler(&store);
    let (_release, held) = oneshot::channel();
    store.push_outcome(ProposalOutcome::Held(held));
    let mut first = Box::pin(scheduler.run(prewrite(&store, b"k", 10), ()));
    assert!(poll!(&mut first).is_pending());
    let mut second = Box::pin(scheduler.run(prewrite(&store, b"k", 11), ()));
    assert!(poll!(&mut second).is_pending());
    drop(second);
    assert_eq!((scheduler.latched_writes(), store.proposals()), (1, 1));
}

#[tokio::test]
async fn an_unknown_outcome_fences_the_region_until_a_later_term() {
    for (outcome, applied) in [
        (ProposalOutcome::Unknown { applied: true }, true),
        (ProposalOutcome::Unknown { applied: false }, false),
        (ProposalOutcome::Poisoned, false),
    ] {
        let store = FakeStore::new();
        let scheduler = scheduler(&store);
        store.push_outcome(outcome);
        let undetermined = Err(ServerError::Undetermined(store.context().region));
        assert_eq!(scheduler.run(prewrite(&store, b"k", 10), ()).await, undetermined);
        // The fence covers every key of the region.
        assert!(is_fenced(&scheduler.run(prewrite(&store, b"k", 10), ()).await));
        assert!(is_fenced(&scheduler.run(prewrite(&store, b"l", 11), ()).await));
        store.set_term(6);
        // The write is idempotent: repeating it succeeds, whether the first one took effect or not.
        let before = store.proposals();
        assert_eq!(scheduler.run(prewrite(&store, b"k", 10), ()).await, Ok(Response::Done));
        assert_eq!(store.proposals() - before, usize::from(!applied));
    }
}

#[tokio::test]
async fn a_refused_proposal_is_a_region_error_and_raises_no_fence() {
    let store = FakeStore::new();
    let scheduler = scheduler(&store);
    let stale = RegionError::StaleCommand { region: store.context().region };
    store.push_outcome(ProposalOutcome::Refused(stale.clone()));
    assert_eq!(scheduler.run(prewrite(&store, b"k", 10), ()).await, Err(stale.into()));
    assert_eq!(scheduler.run(prewrite(&store, b"k", 10), ()).await, Ok(Response::Done));
}

#[tokio::test]
async fn a_response_without_a_proposal_confirms_leadership() {
    let store = FakeStore::new();
    let scheduler = scheduler(&store);
    assert_eq!(scheduler.run(prewrite(&store, b"k", 10), ()).await, Ok(Response::Done));
    // A repeated request and an error, under a lease: no read index.
    assert_eq!(scheduler.run(prewrite(&store, b"k", 10), ()).await, Ok(Response::Done));
    let missing = scheduler.run(commit(&store, b"x", 10, 20), ()).await;
    assert!(matches!(missing, Err(ServerError::Key(KeyError::LockNotFound { .. }))));
    assert_eq!((store.proposals(), store.read_indexes()), (1, 0));
    // Without a lease: one read index.
    store.set_lease(false);
    assert_eq!(scheduler.run(prewrite(&store, b"k", 10), ()).await, Ok(Response::Done));
    assert_eq!((store.proposals(), store.read_indexes()), (1, 1));
    // The term changed after the evaluation: its result may be stale.
    store.set_read_term(6);
    let stale = Err(RegionError::StaleCommand { region: store.context().region }.into());
    assert_eq!(scheduler.run(prewrite(&store, b"k", 10), ()).await, stale);
    assert_eq!(scheduler.run(commit(&store, b"x", 10, 20), ()).await, stale);
}

#[tokio::test]
async fn keys_outside_the_region_and_other_epochs_are_refused() {
    let store = FakeStore::new();
    let scheduler = scheduler(&store);
    let region = store.context().region;
    let outside = Err(RegionError::KeyNotInRegion { region }.into());
    assert_eq!(scheduler.run(prewrite(&store, b"a", 10), ()).await, outside);
    assert_eq!(scheduler.run(prewrite(&store, b"y", 10), ()).await, outside);
    let mut request = prewrite(&store, b"k", 10);
    request.context.epoch.version += 1;
    let result = scheduler.run(request, ()).await;
    assert!(matches!(result, Err(ServerError::Region(RegionError::EpochNotMatch { .. }))));
    store.set_leader(false);
    let not_leader = Err(RegionError::NotLeader { region, leader: None }.into());
    assert_eq!(scheduler.run(prewrite(&store, b"k", 10), ()).await, not_leader);
    assert_eq!((store.proposals(), scheduler.latched_writes()), (0, 0));
}

#[tokio::test]
async fn a_large_write_is_evaluated_in_the_read_pool() {
    let store = FakeStore::new();
    let scheduler = scheduler(&store);
    let keys: Vec<Key> = (0..1_000).map(|n| Key::new(format!("k{n:04}"))).collect();
    let put = |key: &Key| Mutation::new(key.clone(), MutationOp::Put(Bytes::from_static(b"v")));
    let (mutations, primary) = (keys.iter().map(put).collect(), keys[0].clone());
    let body = RequestBody::Prewrite(PrewriteRequest {
        mutations,
        primary,
        start_ts: ts(10),
        ttl_ms: 10,
        commit: crate::api::CommitMode::TwoPhase,
        locker: None,
    });
    let request = Request { context: store.context(), body };
    assert_eq!(scheduler.run(request, ()).await, Ok(Response::Done));
    let body = RequestBody::Commit { keys, start_ts: ts(10), commit_ts: ts(20) };
    assert_eq!(scheduler.run(Request { context: store.context(), body }, ()).await, Ok(Response::Done));
}

#[tokio::test]
async fn writes_above_the_latch_capacity_are_refused() {
    let store = FakeStore::new();
    let scheduler = Scheduler::new(store.clone(), concurrency(), 1, ReadPool::in_caller());
    let (_release, held) = oneshot::channel();
    store.push_outcome(ProposalOutcome::Held(held));
    let mut first = Box::pin(scheduler.run(prewrite(&store, b"k", 10), ()));
    assert!(poll!(&mut first).is_pending());
    let busy = RegionError::ServerBusy { store: StoreId::new(1), what: "latches".to_owned() };
    assert_eq!(scheduler.run(prewrite(&store, b"l", 11), ()).await, Err(busy.into()));
}

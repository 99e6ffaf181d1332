//! Row locks: who waits for whom, what is answered, and what a prewrite makes of them.

mod handover;
mod lost;
mod shared;

use bytes::Bytes;
use futures::poll;
use raftstore::RegionContext;
use tso::Timestamp;

use super::*;
use crate::api::{
    CommitMode, KeyError, Mutation, MutationOp, Presence, PrewriteRequest, Request, RequestBody, ServerError,
};
use crate::concurrency::ConcurrencyManager;
use crate::memory::CountingTso;
use crate::read_pool::ReadPool;
use crate::region_store::fake::FakeStore;

/// A scheduler, and the context of its region.
struct Bench {
    scheduler: Scheduler<FakeStore>,
    context: RegionContext,
}

fn ts(ms: u64) -> Timestamp {
    Timestamp::new(ms, 0)
}

fn key(name: &'static str) -> Key {
    Key::from_static(name.as_bytes())
}

fn request(keys: &[&'static str], start_ms: u64) -> AcquireRequest {
    AcquireRequest {
        keys: keys.iter().map(|name| key(name)).collect(),
        start_ts: ts(start_ms),
        mode: LockMode::Update,
        presence: Presence::Any,
        snapshot: None,
        seen_ts: Timestamp::ZERO,
        waiting: Waiting::Queue { ms: 1_000 },
    }
}

impl Bench {
    fn new() -> Bench {
        Bench::with_tso(Arc::new(CountingTso::new(0)))
    }

    fn with_tso(tso: Arc<CountingTso>) -> Bench {
        let store = FakeStore::new();
        let concurrency = ConcurrencyManager::new(tso);
        let context = store.context();
        Bench { scheduler: Scheduler::new(store, concurrency, 100, ReadPool::in_caller()), context }
    }

    /// The answer, without the numbers of locks.
    async fn acquire(&self, request: &AcquireRequest) -> Result<Acquired, ServerError> {
        let mut acquired = self.scheduler.acquire(self.context, request.clone(), ()).await?;
        for row in &mut acquired.rows {
            assert_eq!(row.is_locked, row.lock != LockId::NONE, "{row:?}");
            row.lock = LockId::NONE;
        }
        Ok(acquired)
    }

    async fn run(&self, body: RequestBody) -> Result<Response, ServerError> {
        self.scheduler.run(Request { context: self.context, body }, ()).await
    }

    async fn prewrite(
        &self,
        name: &'static str,
        op: MutationOp,
        start_ms: u64,
        seen_ms: u64,
    ) -> Result<(), ServerError> {
        self.prewrite_as(name, op, (start_ms, None), seen_ms).await
    }

    async fn prewrite_as(
        &self,
        name: &'static str,
        op: MutationOp,
        (start_ms, locker): (u64, Option<u64>),
        seen_ms: u64,
    ) -> Result<(), ServerError> {
        let seen_ts = (seen_ms > 0).then(|| ts(seen_ms));
        let mutation = Mutation { seen_ts, ..Mutation::new(key(name), op) };
        let body = RequestBody::Prewrite(PrewriteRequest {
            mutations: vec![mutation],
            primary: key(name),
            start_ts: ts(start_ms),
            ttl_ms: 10,
            commit: CommitMode::TwoPhase,
            locker: locker.map(ts),
        });
        self.run(body).await.map(|response| assert_eq!(response, Response::Done))
    }

    async fn commit(&self, name: &'static str, start_ms: u64, commit_ms: u64) -> Result<(), ServerError> {
        let (keys, start_ts, commit_ts) = (vec![key(name)], ts(start_ms), ts(commit_ms));
        self.run(RequestBody::Commit { keys, start_ts, commit_ts }).await.map(|_| ())
    }

    async fn put(&self, name: &'static str, value: &'static str, (start_ms, commit_ms): (u64, u64)) {
        let op = MutationOp::Put(Bytes::from_static(value.as_bytes()));
        self.prewrite(name, op, start_ms, 0).await.unwrap();
        self.commit(name, start_ms, commit_ms).await.unwrap();
    }
}

fn locked(commit_ms: u64, row: RowFound) -> LockedRow {
    LockedRow { is_locked: true, lock: LockId::NONE, commit_ts: ts(commit_ms), row }
}

fn unlocked(commit_ms: u64) -> LockedRow {
    LockedRow { is_locked: false, lock: LockId::NONE, commit_ts: ts(commit_ms), row: RowFound::Absent }
}

fn rows(rows: Vec<LockedRow>) -> Result<Acquired, ServerError> {
    Ok(Acquired { rows, blocked: None })
}

fn put(value: &'static str) -> MutationOp {
    MutationOp::Put(Bytes::from_static(value.as_bytes()))
}

fn present(value: &'static str) -> RowFound {
    RowFound::Present(Bytes::from_static(value.as_bytes()))
}

#[tokio::test]
async fn a_waiter_gets_the_row_when_its_holder_has_committed_and_sees_what_it_wrote() {
    let bench = Bench::new();
    bench.put("k", "old", (1, 2)).await;
    assert_eq!(bench.acquire(&request(&["k"], 10)).await, rows(vec![locked(2, present("old"))]));
    let second = request(&["k"], 11);
    let mut second = Box::pin(bench.acquire(&second));
    assert!(poll!(&mut second).is_pending());
    bench.prewrite("k", put("new"), 10, 2).await.unwrap();
    assert!(poll!(&mut second).is_pending(), "the row is the first one's until it has committed");
    bench.commit("k", 10, 20).await.unwrap();
    assert_eq!(second.await, rows(vec![locked(20, present("new"))]));
    // It has seen a commit above its name, so it commits under another one.
    let third = request(&["k"], 12);
    let mut third = Box::pin(bench.acquire(&third));
    assert!(poll!(&mut third).is_pending());
    bench.prewrite_as("k", put("newest"), (25, Some(11)), 20).await.unwrap();
    bench.commit("k", 25, 30).await.unwrap();
    assert_eq!(third.await, rows(vec![locked(30, present("newest"))]));
    bench.scheduler.release(bench.context, &[key("k")], ts(12), None).unwrap();
    assert!(!bench.scheduler.locks.region(bench.context.region).is_in_use(), "nothing is left");
}

#[tokio::test]
async fn a_prewrite_of_a_row_that_another_transaction_has_locked_is_refused() {
    let bench = Bench::new();
    bench.acquire(&request(&["k"], 10)).await.unwrap();
    let held = KeyError::Held { key: key("k"), holder: ts(10) };
    assert_eq!(bench.prewrite("k", put("v"), 11, 0).await, Err(held.into()));
    assert_eq!(bench.prewrite("other", put("v"), 11, 0).await, Ok(()));
    bench.scheduler.release(bench.context, &[key("k")], ts(10), None).unwrap();
    assert_eq!(bench.prewrite("k", put("v"), 11, 0).await, Ok(()));
}

/// The lock was lost with its leader, and another transaction has committed meanwhile.
#[tokio::test]
async fn a_prewrite_refuses_what_was_committed_since_the_row_was_seen() {
    let bench = Bench::new();
    bench.put("k", "seen", (1, 15)).await;
    bench.put("k", "unseen", (16, 17)).await;
    let refused = bench.prewrite("k", put("v"), 30, 15).await;
    assert!(matches!(refused, Err(ServerError::Key(KeyError::WriteConflict { .. }))), "{refused:?}");
    let above = bench.prewrite("k", put("v"), 10, 17).await;
    assert!(matches!(above, Err(ServerError::Invalid(_))), "a name is above what was seen: {above:?}");
    bench.prewrite("k", put("v"), 30, 17).await.unwrap();
}

/// A task that was handed the row gave it up with its place, and queued up behind the others.
#[tokio::test]
async fn the_first_of_several_waiters_gets_the_row_and_keeps_it() {
    let bench = Bench::new();
    bench.acquire(&request(&["k"], 10)).await.unwrap();
    let (first, second) = (request(&["k"], 11), request(&["k"], 12));
    let mut first = Box::pin(bench.acquire(&first));
    let mut second = Box::pin(bench.acquire(&second));
    assert!(poll!(&mut first).is_pending() && poll!(&mut second).is_pending());
    bench.scheduler.release(bench.context, &[key("k")], ts(10), None).unwrap();
    assert_eq!(first.await.unwrap().blocked, None);
    assert!(poll!(&mut second).is_pending());
    bench.scheduler.release(bench.context, &[key("k")], ts(11), None).unwrap();
    assert_eq!(second.await.unwrap().blocked, None);
}

#[tokio::test(start_paused = true)]
async fn a_request_is_answered_after_its_time_and_keeps_its_place() {
    let bench = Bench::new();
    bench.acquire(&request(&["k"], 10)).await.unwrap();
    let waiting = request(&["j", "k"], 11);
    let answer = bench.acquire(&waiting).await.unwrap();
    assert_eq!(answer.rows, vec![locked(0, RowFound::Absent)], "the row before it is locked");
    assert_eq!(answer.blocked, Some(Blocked { holders: vec![ts(10)], record: None }));
    let behind = request(&["k"], 12);
    let mut behind = Box::pin(bench.acquire(&behind));
    assert!(poll!(&mut behind).is_pending());
    // Handed over while nobody asks.
    bench.scheduler.release(bench.context, &[key("k")], ts(10), None).unwrap();
    assert!(poll!(&mut behind).is_pending(), "the row is kept for the one that was first");
    assert_eq!(bench.acquire(&waiting).await.unwrap().blocked, None);
}

#[tokio::test]
async fn a_request_that_is_dropped_gives_its_place_up() {
    let bench = Bench::new();
    bench.acquire(&request(&["k"], 10)).await.unwrap();
    let (first, second) = (request(&["k"], 11), request(&["k"], 12));
    let mut dropped = Box::pin(bench.acquire(&first));
    let mut next = Box::pin(bench.acquire(&second));
    assert!(poll!(&mut dropped).is_pending() && poll!(&mut next).is_pending());
    drop(dropped);
    bench.scheduler.release(bench.context, &[key("k")], ts(10), None).unwrap();
    assert_eq!(next.await.unwrap().blocked, None);
}

#[tokio::test(start_paused = true)]
async fn a_lock_record_is_waited_for_and_then_reported() {
    let bench = Bench::new();
    bench.prewrite("k", put("v"), 5, 0).await.unwrap();
    let waiting = request(&["k"], 10);
    let blocked = bench.acquire(&waiting).await.unwrap().blocked.expect("it is locked");
    assert_eq!(blocked.record.map(|record| record.start_ts), Some(ts(5)));
    let mut again = Box::pin(bench.acquire(&waiting));
    assert!(poll!(&mut again).is_pending());
    bench.commit("k", 5, 6).await.unwrap();
    assert_eq!(again.await, rows(vec![locked(6, present("v"))]));
}

#[tokio::test]
async fn a_request_may_refuse_to_wait() {
    let bench = Bench::new();
    bench.acquire(&request(&["k"], 10)).await.unwrap();
    bench.prewrite("r", put("v"), 5, 0).await.unwrap();
    for name in ["k", "r"] {
        let fails = AcquireRequest { waiting: Waiting::Fail, ..request(&[name], 11) };
        assert!(bench.acquire(&fails).await.unwrap().blocked.is_some());
        let skips = AcquireRequest { waiting: Waiting::Skip, ..request(&[name, "free"], 11) };
        let skipped = LockedRow { row: RowFound::Skipped, ..unlocked(0) };
        assert_eq!(bench.acquire(&skips).await, rows(vec![skipped, locked(0, RowFound::Absent)]));
    }
    bench.commit("r", 5, 6).await.unwrap();
    bench.scheduler.release(bench.context, &[key("k"), key("free")], ts(10), None).unwrap();
    let fails = AcquireRequest { waiting: Waiting::Fail, ..request(&["r", "k"], 12) };
    assert_eq!(bench.acquire(&fails).await.unwrap().blocked, None, "nothing is left of the refused ones");
}

#[tokio::test]
async fn presence_decides_what_is_locked() {
    let bench = Bench::new();
    bench.put("here", "v", (1, 2)).await;
    let free = |row| LockedRow { row, ..unlocked(2) };
    let ask = |presence, names: &[&'static str]| AcquireRequest { presence, ..request(names, 10) };
    let found = bench.acquire(&ask(Presence::Present, &["here", "gone"])).await.unwrap().rows;
    let gone = unlocked(0);
    assert_eq!(found, vec![locked(2, present("v")), gone]);
    bench.scheduler.release(bench.context, &[key("here"), key("gone")], ts(10), None).unwrap();
    let found = bench.acquire(&ask(Presence::Absent, &["here", "gone"])).await.unwrap().rows;
    assert_eq!(found, vec![free(present("v")), locked(0, RowFound::Absent)]);
    let refused = bench.acquire(&ask(Presence::MustBeAbsent, &["here"])).await;
    assert_eq!(refused, Err(KeyError::AlreadyExists { key: key("here") }.into()));
    let others = AcquireRequest { waiting: Waiting::Fail, ..request(&["here"], 11) };
    assert_eq!(bench.acquire(&others).await.unwrap().blocked, None, "it was not locked");
}

/// Nobody waits for a row that is not there, although another transaction has locked its key to insert it.
#[tokio::test]
async fn a_row_that_is_about_to_be_inserted_is_not_waited_for() {
    let bench = Bench::new();
    bench.acquire(&AcquireRequest { presence: Presence::Absent, ..request(&["k"], 10) }).await.unwrap();
    for waiting in [Waiting::Queue { ms: 60_000 }, Waiting::Fail] {
        let update = AcquireRequest { presence: Presence::Present, waiting, ..request(&["k"], 20) };
        let answer = bench.acquire(&update).await.unwrap();
        assert_eq!(answer.blocked, None);
        assert!(matches!(answer.rows[..], [LockedRow { is_locked: false, row: RowFound::Absent, .. }]), "{answer:?}");
    }
    // It has left no place in the queue.
    bench.scheduler.release(bench.context, &[key("k")], ts(10), None).unwrap();
    let fails = AcquireRequest { waiting: Waiting::Fail, ..request(&["k"], 30) };
    assert_eq!(bench.acquire(&fails).await.unwrap().blocked, None);
}

/// What a transaction that must not see newer rows gets: a conflict, if it depends on one that has changed.
#[tokio::test]
async fn a_snapshot_refuses_what_was_committed_after_it() {
    use Presence::{Absent, Any, Present};
    let bench = Bench::new();
    bench.put("k_changed", "old", (1, 2)).await;
    bench.put("k_changed", "new", (20, 21)).await;
    bench.put("k_deleted", "old", (1, 2)).await;
    bench.prewrite("k_deleted", MutationOp::Delete, 20, 0).await.unwrap();
    bench.commit("k_deleted", 20, 21).await.unwrap();
    bench.put("k_added", "new", (20, 21)).await;
    bench.put("k_kept", "old", (1, 2)).await;
    // A lock that changed nothing is no conflict.
    bench.prewrite("k_kept", MutationOp::Lock, 20, 0).await.unwrap();
    bench.commit("k_kept", 20, 21).await.unwrap();
    for (name, conflicts) in [
        ("k_changed", [(Present, true), (Any, true), (Absent, true)]),
        ("k_deleted", [(Present, true), (Any, true), (Absent, false)]),
        ("k_added", [(Present, false), (Any, true), (Absent, true)]),
        ("k_kept", [(Present, false), (Any, false), (Absent, false)]),
    ] {
        for (presence, conflict) in conflicts {
            let ask = AcquireRequest { presence, snapshot: Some(ts(10)), ..request(&[name], 10) };
            let answer = bench.acquire(&ask).await;
            let refused = matches!(answer, Err(ServerError::Key(KeyError::WriteConflict { .. })));
            assert_eq!(refused, conflict, "{name} {presence:?}: {answer:?}");
        }
    }
    let seen = AcquireRequest { seen_ts: ts(10), snapshot: Some(ts(10)), ..request(&["k_kept"], 10) };
    assert_eq!(bench.acquire(&seen).await, rows(vec![locked(21, RowFound::Unchanged)]));
}

//! Row locks that are shared: what the prewrite of their holder confirms, and who waits for it.

use super::*;
use crate::api::CommitBounds;
use crate::mvcc::shared::count_shared;

/// The prewrite of a transaction that puts `own` and shares `row`, which it saw at `seen_ms`.
fn holder(
    own: Option<&'static str>,
    (row, mode, seen_ms): (&'static str, LockMode, u64),
    start_ms: u64,
) -> PrewriteRequest {
    let shared = Mutation { seen_ts: Some(ts(seen_ms)), ..Mutation::new(key(row), MutationOp::Shared(mode)) };
    let own = own.map(|own| Mutation::new(key(own), put("v")));
    PrewriteRequest {
        mutations: own.into_iter().chain([shared]).collect(),
        primary: key("primary"),
        start_ts: ts(start_ms),
        ttl_ms: 10,
        commit: CommitMode::TwoPhase,
        locker: None,
    }
}

fn at_once(mut request: PrewriteRequest, least_ms: u64) -> RequestBody {
    request.commit = CommitMode::OnePhase(CommitBounds { least: ts(least_ms), greatest: Timestamp::MAX });
    RequestBody::Prewrite(request)
}

impl Bench {
    /// Waits until the region computes commit_ts.
    async fn sync(&self) {
        for n in 0..100 {
            let mut warm = holder(Some("warm"), ("none", LockMode::KeyShare, 0), 900 + n);
            warm.mutations.truncate(1);
            if let Ok(Response::Committed { .. }) = self.run(at_once(warm.clone(), 0)).await {
                return;
            }
            let rollback = RequestBody::Rollback { keys: vec![key("warm")], start_ts: warm.start_ts };
            self.run(rollback).await.unwrap();
            tokio::task::yield_now().await;
        }
        panic!("the region is never in sync");
    }

    async fn resolve(&self, row: &'static str, start_ms: u64, commit_ms: Option<u64>) {
        let (keys, commit_ts) = (vec![key(row)], commit_ms.map(ts));
        self.run(RequestBody::ResolveLock { keys, start_ts: ts(start_ms), commit_ts }).await.unwrap();
    }

    fn shared(&self, row: &'static str) -> u32 {
        count_shared(&self.scheduler.store.newest(), &key(row).to_storage()).unwrap()
    }
}

#[tokio::test(start_paused = true)]
async fn a_row_waits_for_all_who_share_it() {
    let bench = Bench::new();
    bench.put("row", "v", (1, 2)).await;
    for start_ms in [10, 11] {
        let prewrite = holder(None, ("row", LockMode::Share, 2), start_ms);
        assert_eq!(bench.run(RequestBody::Prewrite(prewrite)).await, Ok(Response::Done));
    }
    // Readers of the newest row share it too, and updates wait. The memory of the leader knows nothing of the holders.
    let share = AcquireRequest { mode: LockMode::Share, ..request(&["row"], 20) };
    assert_eq!(bench.acquire(&share).await, rows(vec![locked(2, present("v"))]));
    bench.scheduler.release(bench.context, &[key("row")], ts(20), None).unwrap();
    let update = AcquireRequest { mode: LockMode::NoKeyUpdate, ..request(&["row"], 21) };
    let blocked = bench.acquire(&update).await.unwrap().blocked.and_then(|blocked| blocked.record);
    assert_eq!(blocked.map(|record| (record.start_ts, record.primary)), Some((ts(11), key("primary"))));
    let mut waiting = Box::pin(bench.acquire(&update));
    assert!(poll!(&mut waiting).is_pending());
    bench.resolve("row", 11, Some(30)).await;
    assert!(poll!(&mut waiting).is_pending(), "the other one has it still");
    bench.resolve("row", 10, None).await;
    assert_eq!(waiting.await, rows(vec![locked(2, present("v"))]));
    assert_eq!(bench.shared("row"), 0);
}

#[tokio::test]
async fn holders_of_the_key_let_updates_pass_and_deletions_wait() {
    let bench = Bench::new();
    bench.put("row", "v", (1, 2)).await;
    let prewrite = holder(None, ("row", LockMode::KeyShare, 2), 10);
    assert_eq!(bench.run(RequestBody::Prewrite(prewrite)).await, Ok(Response::Done));
    let fails = |mode| AcquireRequest { mode, waiting: Waiting::Fail, ..request(&["row"], 20) };
    assert!(bench.acquire(&fails(LockMode::Update)).await.unwrap().blocked.is_some());
    assert_eq!(bench.acquire(&fails(LockMode::NoKeyUpdate)).await, rows(vec![locked(2, present("v"))]));
    bench.prewrite("row", put("new"), 20, 2).await.unwrap();
    // Nor does the update in progress keep others from the key.
    let key_share = AcquireRequest { mode: LockMode::KeyShare, waiting: Waiting::Fail, ..request(&["row"], 21) };
    assert_eq!(bench.acquire(&key_share).await, rows(vec![locked(2, present("v"))]));
    bench.commit("row", 20, 22).await.unwrap();
    let deleted = bench.prewrite("row", MutationOp::Delete, 23, 0).await;
    assert!(matches!(deleted, Err(ServerError::Key(KeyError::Held { .. }))), "one holds it in memory: {deleted:?}");
    bench.scheduler.release(bench.context, &[key("row")], ts(21), None).unwrap();
    let deleted = bench.prewrite("row", MutationOp::Delete, 23, 0).await;
    assert!(matches!(deleted, Err(ServerError::Key(KeyError::Locked(_)))), "one has left a record: {deleted:?}");
    bench.resolve("row", 10, Some(24)).await;
    assert_eq!(bench.prewrite("row", MutationOp::Delete, 23, 0).await, Ok(()));
}

#[tokio::test]
async fn a_prewrite_does_not_confirm_what_another_one_has_locked_since() {
    let bench = Bench::new();
    bench.put("row", "v", (1, 2)).await;
    bench.acquire(&request(&["row"], 20)).await.unwrap();
    let held = KeyError::Held { key: key("row"), holder: ts(20) };
    let prewrite = || holder(None, ("row", LockMode::Share, 2), 10);
    assert_eq!(bench.run(RequestBody::Prewrite(prewrite())).await, Err(held.into()), "its own lock is lost");
    bench.prewrite("row", put("new"), 20, 2).await.unwrap();
    bench.commit("row", 20, 21).await.unwrap();
    let refused = bench.run(RequestBody::Prewrite(prewrite())).await;
    assert!(matches!(refused, Err(ServerError::Key(KeyError::WriteConflict { .. }))), "{refused:?}");
}

/// What was committed beside others that share the row, in one request, leaves nothing there.
#[tokio::test]
async fn a_commit_in_one_phase_confirms_without_a_record() {
    let bench = Bench::new();
    bench.sync().await;
    bench.put("row", "v", (1, 2)).await;
    let share = |start_ms| AcquireRequest { mode: LockMode::Share, ..request(&["row"], start_ms) };
    for start_ms in [10, 11] {
        bench.acquire(&share(start_ms)).await.unwrap();
    }
    let update = AcquireRequest { mode: LockMode::NoKeyUpdate, ..request(&["row"], 12) };
    let mut waiting = Box::pin(bench.acquire(&update));
    assert!(poll!(&mut waiting).is_pending());
    for (start_ms, primary) in [(10, "primary"), (11, "primary2")] {
        assert!(poll!(&mut waiting).is_pending());
        let mut prewrite = holder(Some(primary), ("row", LockMode::Share, 2), start_ms);
        prewrite.primary = key(primary);
        let done = bench.run(at_once(prewrite, start_ms)).await;
        assert!(matches!(done, Ok(Response::Committed { .. })), "{done:?}");
        assert_eq!(bench.shared("row"), 0);
    }
    assert_eq!(waiting.await, rows(vec![locked(2, present("v"))]), "both have ended");
}

/// A writer whose least commit_ts is old was kept out by a holder that commits late.
#[tokio::test]
async fn nobody_commits_a_row_below_the_commit_of_one_that_relied_on_it() {
    let tso = Arc::new(CountingTso::new(0));
    let bench = Bench::with_tso(Arc::clone(&tso));
    bench.sync().await;
    bench.put("row_a", "v", (1, 2)).await;
    bench.put("row_b", "v", (1, 2)).await;
    tso.advance_ms(900_000);
    let write = |row: &'static str| {
        let mutation = Mutation { seen_ts: Some(ts(2)), ..Mutation::new(key(row), put("new")) };
        at_once(
            PrewriteRequest {
                mutations: vec![mutation],
                primary: key(row),
                ..holder(None, (row, LockMode::Share, 2), 200_000)
            },
            200_000,
        )
    };
    // In two phases: the holder's commit_ts is known when its lock goes.
    let mut prewrite = holder(None, ("row_a", LockMode::Share, 2), 10);
    prewrite.primary = key("elsewhere");
    bench.run(RequestBody::Prewrite(prewrite)).await.unwrap();
    bench.resolve("row_a", 10, Some(300_000)).await;
    let Ok(Response::Committed { commit_ts }) = bench.run(write("row_a")).await else { panic!("it commits") };
    assert!(commit_ts >= ts(300_000), "{commit_ts}");
    // At once: its least commit_ts is known.
    let holds = at_once(holder(Some("primary"), ("row_b", LockMode::Share, 2), 11), 400_000);
    let Ok(Response::Committed { commit_ts: held_until }) = bench.run(holds).await else { panic!("it commits") };
    let Ok(Response::Committed { commit_ts }) = bench.run(write("row_b")).await else { panic!("it commits") };
    assert!(commit_ts >= held_until && held_until >= ts(400_000), "{commit_ts}, {held_until}");
}

//! Transactions that rely on a row lock: they commit if it was held all the time, and otherwise not at all.
//!
//! Whoever removes a row looks for others that refer to it, with the row locked. If the lock is lost after that look,
//! another transaction may refer to the row, and leaves no trace there.

use super::*;
use crate::api::CommitBounds;

impl Bench {
    /// Locks a row, and returns the number of the lock.
    async fn lock(&self, name: &'static str, mode: LockMode, start_ms: u64) -> LockId {
        let acquire = AcquireRequest { mode, ..request(&[name], start_ms) };
        let acquired = self.scheduler.acquire(self.context, acquire, ()).await.unwrap();
        acquired.rows.first().expect("a row").lock
    }

    async fn delete(&self, name: &'static str, lock: LockId, commit: CommitMode) -> Result<Response, ServerError> {
        let mutation = Mutation { lock: Some(lock), ..Mutation::new(key(name), MutationOp::Delete) };
        let primary = key("primary");
        let request =
            PrewriteRequest { mutations: vec![mutation], primary, start_ts: ts(10), ttl_ms: 10, commit, locker: None };
        self.run(RequestBody::Prewrite(request)).await
    }

    fn give_up(&self, name: &'static str) {
        self.scheduler.release(self.context, &[key(name)], ts(10), None).unwrap();
    }
}

fn lost(name: &'static str) -> Result<Response, ServerError> {
    Err(KeyError::LockLost { key: key(name) }.into())
}

#[tokio::test]
async fn what_was_held_all_the_time_commits() {
    let bench = Bench::new();
    bench.put("k", "v", (1, 2)).await;
    let lock = bench.lock("k", LockMode::Update, 10).await;
    assert_eq!(bench.lock("k", LockMode::KeyShare, 10).await, lock, "it has more than that");
    assert_eq!(bench.delete("k", lock, CommitMode::TwoPhase).await, Ok(Response::Done));
    bench.give_up("k");
    // The record of the lock counts from now on.
    assert_eq!(bench.delete("k", lock, CommitMode::TwoPhase).await, Ok(Response::Done), "a repeated request");
    bench.commit("k", 10, 20).await.unwrap();
    let committed = Ok(Response::Committed { commit_ts: ts(20) });
    assert_eq!(bench.delete("k", lock, CommitMode::TwoPhase).await, committed, "a late one");
}

#[tokio::test]
async fn what_was_lost_does_not_although_it_was_taken_again() {
    let bench = Bench::new();
    bench.put("k", "v", (1, 2)).await;
    let lock = bench.lock("k", LockMode::Update, 10).await;
    bench.give_up("k");
    assert_eq!(bench.delete("k", lock, CommitMode::TwoPhase).await, lost("k"));
    // Another transaction has shared the row, and is gone.
    bench.lock("k", LockMode::KeyShare, 11).await;
    bench.scheduler.release(bench.context, &[key("k")], ts(11), None).unwrap();
    let again = bench.lock("k", LockMode::Update, 10).await;
    assert_eq!(bench.delete("k", lock, CommitMode::TwoPhase).await, lost("k"));
    let bounds = CommitBounds { least: Timestamp::ZERO, greatest: Timestamp::MAX };
    assert_eq!(bench.delete("k", lock, CommitMode::OnePhase(bounds)).await, lost("k"), "nor at once");
    assert_eq!(bench.delete("k", again, CommitMode::TwoPhase).await, Ok(Response::Done));
}

#[tokio::test]
async fn a_weaker_lock_does_not_stand_for_a_stronger_one() {
    let bench = Bench::new();
    bench.put("k", "v", (1, 2)).await;
    let weak = bench.lock("k", LockMode::KeyShare, 10).await;
    let strong = bench.lock("k", LockMode::Update, 10).await;
    assert_ne!(weak, strong);
    bench.scheduler.release(bench.context, &[key("k")], ts(10), Some(LockMode::KeyShare)).unwrap();
    assert_eq!(bench.delete("k", strong, CommitMode::TwoPhase).await, lost("k"));
}

/// The leader knows nothing of the locks of the one before.
#[tokio::test]
async fn a_leader_that_inherits_nothing_refuses() {
    let (old, new) = (Bench::new(), Bench::new());
    let lock = old.lock("k", LockMode::Update, 10).await;
    assert_eq!(new.delete("k", lock, CommitMode::TwoPhase).await, lost("k"));
}

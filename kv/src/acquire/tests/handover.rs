//! Row locks that a leader hands to its successor: two schedulers, as on two stores.

use raftstore::ports::LeaderMemory;
use raftstore::{RegionError, Term};

use super::*;

/// The old leader in term 5, and the new one, which has its data.
fn leaders() -> (Bench, Bench) {
    let old = Bench::new();
    let new = successor(&old);
    (old, new)
}

/// The leader of term 6, which has the data of the old one.
fn successor(old: &Bench) -> Bench {
    let store = old.scheduler.store.follower(raftstore::StoreId::new(2));
    store.set_term(6);
    store.set_leader(true);
    let concurrency = ConcurrencyManager::new(Arc::new(CountingTso::new(0)));
    let context = store.context();
    Bench { scheduler: Scheduler::new(store, concurrency, 100, ReadPool::in_caller()), context }
}

fn term(bench: &Bench) -> Term {
    bench.scheduler.store.basis(bench.context).unwrap().term
}

fn pack(bench: &Bench) -> Vec<u8> {
    bench.scheduler.locks.pack(bench.context.region, term(bench)).expect("there are locks")
}

fn inherit(bench: &Bench, packed: &[u8]) {
    bench.scheduler.locks.inherit(bench.context.region, term(bench), packed);
}

fn is_refused<T>(answer: &Result<T, ServerError>) -> bool {
    matches!(answer, Err(ServerError::Region(RegionError::NotReady { .. } | RegionError::StaleCommand { .. })))
}

#[tokio::test]
async fn holders_and_waiters_keep_their_places_at_the_next_leader() {
    let (old, new) = leaders();
    old.acquire(&request(&["k"], 10)).await.unwrap();
    let (second, third) = (request(&["k"], 11), request(&["k"], 12));
    let (mut waiting, mut behind) = (Box::pin(old.acquire(&second)), Box::pin(old.acquire(&third)));
    assert!(poll!(&mut waiting).is_pending() && poll!(&mut behind).is_pending());
    let packed = pack(&old);
    // Nothing changes any more: those that wait and those that come are sent away, and nothing is given up.
    assert!(is_refused(&waiting.await) && is_refused(&behind.await));
    assert!(is_refused(&old.acquire(&request(&["other"], 13)).await));
    assert!(is_refused(&old.scheduler.release(old.context, &[key("k")], ts(10), None)));
    assert_eq!(pack(&old), packed, "as often as the offer is made");

    inherit(&new, &packed);
    // The third one comes first, and does not overtake.
    let mut behind = Box::pin(new.acquire(&third));
    let mut waiting = Box::pin(new.acquire(&second));
    assert!(poll!(&mut behind).is_pending() && poll!(&mut waiting).is_pending());
    let held = KeyError::Held { key: key("k"), holder: ts(10) };
    assert_eq!(new.prewrite("k", put("v"), 20, 0).await, Err(held.into()), "the lock counts here");
    new.prewrite("k", put("v"), 10, 0).await.unwrap();
    new.commit("k", 10, 30).await.unwrap();
    assert_eq!(waiting.await.unwrap().rows, vec![locked(30, present("v"))]);
    assert!(poll!(&mut behind).is_pending());
    new.scheduler.release(new.context, &[key("k")], ts(11), None).unwrap();
    assert_eq!(behind.await.unwrap().blocked, None);
}

/// The first request that reaches the new leader is a prewrite, or one that gives a lock up.
#[tokio::test]
async fn whatever_comes_first_finds_what_was_inherited() {
    let (old, new) = leaders();
    old.acquire(&request(&["k", "l"], 10)).await.unwrap();
    let packed = pack(&old);
    inherit(&new, &packed);
    let held = KeyError::Held { key: key("k"), holder: ts(10) };
    assert_eq!(new.prewrite("k", put("v"), 20, 0).await, Err(held.into()));
    let (_, another) = leaders();
    inherit(&another, &packed);
    another.scheduler.release(another.context, &[key("k")], ts(10), None).unwrap();
    let fails = AcquireRequest { waiting: Waiting::Fail, ..request(&["k", "l"], 11) };
    let answer = another.acquire(&fails).await.unwrap();
    assert_eq!((answer.rows.len(), answer.blocked.map(|blocked| blocked.holders)), (1, Some(vec![ts(10)])));
}

/// The transaction has prewritten at the old leader, under another name than it has locked. The first request that
/// reaches the new one commits it.
#[tokio::test]
async fn a_commit_that_comes_first_ends_inherited_locks() {
    let old = Bench::new();
    old.acquire(&request(&["k"], 10)).await.unwrap();
    let second = request(&["k"], 11);
    let mut waiting = Box::pin(old.acquire(&second));
    assert!(poll!(&mut waiting).is_pending());
    old.prewrite_as("k", put("v"), (20, Some(10)), 0).await.unwrap();
    let new = successor(&old);
    inherit(&new, &pack(&old));
    assert!(is_refused(&waiting.await));
    new.commit("k", 20, 30).await.unwrap();
    let holders: Vec<_> =
        new.scheduler.row_locks(usize::MAX).0.into_iter().map(|lock| (lock.start_ts, lock.wait)).collect();
    assert_eq!(holders, [(ts(11), None)], "it was the next one");
    assert_eq!(new.acquire(&second).await.unwrap().rows, vec![locked(30, present("v"))]);
}

/// The region's epoch changes between the offer and the next leadership: the locks are the region's all the same.
#[tokio::test]
async fn an_epoch_that_changes_meanwhile_loses_nothing() {
    let (old, mut new) = leaders();
    old.acquire(&request(&["k"], 10)).await.unwrap();
    inherit(&new, &pack(&old));
    new.scheduler.store.raise_epoch();
    let refused = new.acquire(&request(&["k"], 11)).await;
    assert!(matches!(refused, Err(ServerError::Region(RegionError::EpochNotMatch { .. }))), "{refused:?}");
    new.context = new.scheduler.store.context();
    let fails = AcquireRequest { waiting: Waiting::Fail, ..request(&["k"], 11) };
    let answer = new.acquire(&fails).await.unwrap();
    assert_eq!(answer.blocked.map(|blocked| blocked.holders), Some(vec![ts(10)]));
}

/// Each lock is listed by the store that leads: at the new leader before it gets a request, at the old one no more.
#[tokio::test]
async fn inherited_locks_are_listed_once() {
    let (old, new) = leaders();
    let listed = |bench: &Bench| -> Vec<_> {
        bench.scheduler.row_locks(usize::MAX).0.into_iter().map(|lock| (lock.start_ts, lock.wait.is_some())).collect()
    };
    old.acquire(&request(&["k"], 10)).await.unwrap();
    let second = request(&["k"], 11);
    let mut waiting = Box::pin(old.acquire(&second));
    assert!(poll!(&mut waiting).is_pending());
    let all = [(ts(10), false), (ts(11), true)];
    assert_eq!((listed(&old), listed(&new)), (all.to_vec(), vec![]), "it leads, and inherits in a moment");
    let packed = pack(&old);
    assert!(is_refused(&waiting.await));
    old.scheduler.store.set_leader(false);
    inherit(&new, &packed);
    assert_eq!((listed(&old), listed(&new)), (vec![], all.to_vec()));
    // Nor has that begun the term too early or too late.
    let held = KeyError::Held { key: key("k"), holder: ts(10) };
    assert_eq!(new.prewrite("k", put("v"), 20, 0).await, Err(held.into()));
    assert_eq!(listed(&new), all);
}

/// Whoever leads in another term than the next one has nothing of it.
#[tokio::test]
async fn a_later_term_does_not_begin_with_old_locks() {
    let (old, new) = leaders();
    old.acquire(&request(&["k"], 10)).await.unwrap();
    inherit(&new, &pack(&old));
    new.scheduler.store.set_term(7);
    assert_eq!(new.acquire(&request(&["k"], 11)).await, rows(vec![locked(0, RowFound::Absent)]));
}

/// The transfer came to nothing.
#[tokio::test]
async fn a_leader_that_stays_goes_on_where_it_stopped() {
    let (old, _) = leaders();
    old.acquire(&request(&["k"], 10)).await.unwrap();
    let (second, third) = (request(&["k"], 11), request(&["k"], 12));
    let (mut waiting, mut behind) = (Box::pin(old.acquire(&second)), Box::pin(old.acquire(&third)));
    assert!(poll!(&mut waiting).is_pending() && poll!(&mut behind).is_pending());
    pack(&old);
    assert!(is_refused(&waiting.await) && is_refused(&behind.await));
    old.scheduler.locks.keep(old.context.region, term(&old));
    let mut behind = Box::pin(old.acquire(&third));
    assert!(poll!(&mut behind).is_pending());
    old.scheduler.release(old.context, &[key("k")], ts(10), None).unwrap();
    assert!(poll!(&mut behind).is_pending(), "the other one was first");
    assert_eq!(old.acquire(&second).await.unwrap().blocked, None);
}

/// The next leader applies the commit, and does not know whose locks it ends.
#[tokio::test]
async fn a_transaction_whose_end_is_in_the_log_hands_nothing_over() {
    let (old, new) = leaders();
    old.acquire(&request(&["k"], 10)).await.unwrap();
    let second = request(&["k"], 11);
    let mut waiting = Box::pin(old.acquire(&second));
    assert!(poll!(&mut waiting).is_pending());
    let locks = old.scheduler.locks.region(old.context.region);
    locks.ending(&[key("k")], ts(10));
    inherit(&new, &pack(&old));
    assert!(is_refused(&waiting.await));
    assert_eq!(new.acquire(&second).await.unwrap().blocked, None, "it is its turn");
    // A write that is refused ends nothing.
    locks.ended(&[key("k")]);
    let (_, another) = leaders();
    inherit(&another, &pack(&old));
    let fails = AcquireRequest { waiting: Waiting::Fail, ..request(&["k"], 12) };
    let holders = another.acquire(&fails).await.unwrap().blocked.map(|blocked| blocked.holders);
    assert_eq!(holders, Some(vec![ts(10), ts(11)]));
}

/// What a new leader cannot read is lost, as if the old one had died.
#[tokio::test]
async fn malformed_locks_are_lost() {
    let (old, new) = leaders();
    old.acquire(&request(&["k"], 10)).await.unwrap();
    let packed = pack(&old);
    inherit(&new, &packed[..packed.len() - 1]);
    inherit(&new, b"\x07");
    assert_eq!(new.acquire(&request(&["k"], 11)).await, rows(vec![locked(0, RowFound::Absent)]));
}

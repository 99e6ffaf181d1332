//! Sessions of several nodes take locks, while stores fail, leaders move, sessions vanish, and time leaps past leases.
//!
//! Whoever holds a lock commits to keys of its own, which nothing else protects. At the end the commits of two who held
//! a lock alone must not interleave. Planted bugs are found.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use kv::Key;
use kv::client::Client;
use kv::memory::{Faults, MemoryCluster};
use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tso::{Timestamp, TsoClient};
use txn::Database;

use super::held::Level;
use super::node::{Claim, PlantedBug, Taken};
use super::record::{Holder, LockRecord};
use super::session::Action;
use super::*;
use crate::catalog::NodeId;
use crate::error::SqlError;
use crate::lock_name::{LockName, Mode};

/// The locks.
const LOCKS: i64 = 2;
/// How often each session takes a lock.
const ROUNDS: usize = 12;
/// Longer than the lease.
const LEAP_MS: u64 = 11_000;

/// The commits of one who held a lock: the first and the last one.
#[derive(Clone, Copy, Debug)]
struct Hold {
    lock: i64,
    mode: Mode,
    first: Timestamp,
    last: Timestamp,
}

struct World {
    cluster: MemoryCluster,
    holds: Mutex<Vec<Hold>>,
}

fn call(action: Action, mode: Mode, level: Level) -> LockCall {
    LockCall { action, mode, level }
}

/// Commits to a key that nobody else writes, as a session does.
async fn commit(db: &Database, advisory: &AdvisorySession, key: String) -> Result<Timestamp, SqlError> {
    let mut txn = db.begin().await?;
    txn.put(Key::new(key.into_bytes()), Bytes::from_static(b"x"))?;
    if let Some(bound) = advisory.commit_bound()? {
        txn.set_commit_bound(bound);
    }
    Ok(txn.commit().await?.expect("a commit_ts"))
}

/// A session that takes locks, and commits while it holds them.
async fn session(world: Arc<World>, node: NodeLocks, db: Database, seed: u64) {
    let mut rng = StdRng::seed_from_u64(seed);
    let is_lost = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&is_lost);
    let fresh = || {
        let flag = Arc::clone(&flag);
        AdvisorySession::new(node.clone(), Arc::new(move || flag.store(true, Ordering::SeqCst)))
    };
    let mut advisory = fresh();
    for round in 0..ROUNDS {
        if is_lost.swap(false, Ordering::SeqCst) || rng.random_bool(0.1) {
            // The session has ended; another one begins.
            advisory = fresh();
        }
        let lock = rng.random_range(0..LOCKS);
        let mode = if rng.random_bool(0.3) { Mode::Shared } else { Mode::Exclusive };
        let level = if rng.random_bool(0.5) { Level::Session } else { Level::Transaction };
        let action = if rng.random_bool(0.3) { Action::TryLock } else { Action::Lock };
        let patience = Patience { limit: Some(Duration::from_millis(500)), transaction: None };
        let taken = advisory.call(call(action, mode, level), Some(LockName::Big(lock)), patience);
        // A statement that is cancelled.
        let limit = Duration::from_millis(if rng.random_bool(0.1) { 2 } else { 2_000 });
        match tokio::time::timeout(limit, taken).await {
            Ok(Ok(Answer::Done | Answer::Bool(true))) => {}
            _ => continue,
        }
        let mut hold: Option<Hold> = None;
        for step in 0..rng.random_range(1..4) {
            // As before a statement.
            if rng.random_bool(0.5) && advisory.confirm().await.is_err() {
                break;
            }
            if let Ok(at) = commit(&db, &advisory, format!("t{seed}-{round}-{step}")).await {
                let first = hold.map_or(at, |hold| hold.first);
                hold = Some(Hold { lock, mode, first, last: at });
            }
            if rng.random_bool(0.05) {
                // Time leaps: every lease is over, known or not.
                world.cluster.tso().advance_ms(LEAP_MS);
            }
            let longest = if rng.random_bool(0.2) { 300 } else { 5 };
            tokio::time::sleep(Duration::from_millis(rng.random_range(0..longest))).await;
        }
        world.holds.lock().extend(hold);
        match level {
            Level::Transaction => advisory.rollback_to(0),
            Level::Session => {
                let unlock = call(Action::Unlock, mode, level);
                if advisory.call(unlock, Some(LockName::Big(lock)), patience).await.is_err() {
                    advisory = fresh();
                }
            }
        }
    }
}

/// Two who held a lock, one of them alone, and whose commits interleave.
fn overlap(holds: &[Hold]) -> Option<(Hold, Hold)> {
    let mut of_lock: BTreeMap<i64, Vec<Hold>> = BTreeMap::new();
    holds.iter().for_each(|hold| of_lock.entry(hold.lock).or_default().push(*hold));
    for holds in of_lock.values() {
        for (at, a) in holds.iter().enumerate() {
            let conflicts = |b: &&Hold| a.mode.conflicts_with(b.mode) && a.first <= b.last && b.first <= a.last;
            if let Some(b) = holds.iter().skip(at + 1).find(conflicts) {
                return Some((*a, *b));
            }
        }
    }
    None
}

/// Runs a seed. Returns the number of holds, and two that overlap.
fn run(seed: u64, bug: Option<PlantedBug>) -> (usize, Option<(Hold, Hold)>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let faults = Faults { delay_max: Duration::from_millis(3), split: 0.0, ..Faults::mixed(seed) };
        let cluster = MemoryCluster::builder().stores(3).faults(faults).ms_per_timestamp(1).build();
        let world = Arc::new(World { cluster: cluster.clone(), holds: Mutex::default() });
        let mut tasks = Vec::new();
        for node in 1..=3 {
            let db = Database::new(Client::new(Arc::new(cluster.clone())), TsoClient::new(cluster.tso()));
            let config = AdvisoryConfig::default();
            let locks = NodeLocks::new(db.clone(), NodeId(node), config).with_planted_bug(bug);
            for at in 0..2 {
                let seed = seed * 100 + node * 10 + at;
                tasks.push(tokio::spawn(session(Arc::clone(&world), locks.clone(), db.clone(), seed)));
            }
        }
        for task in tasks {
            task.await.expect("no panic");
        }
        let holds = world.holds.lock();
        (holds.len(), overlap(&holds))
    })
}

#[test]
fn no_two_hold_a_lock_whatever_fails() {
    let mut total = 0;
    for seed in 0..30 {
        let (holds, overlap) = run(seed, None);
        assert!(overlap.is_none(), "seed {seed}: {overlap:?}");
        total += holds;
    }
    assert!(total > 500, "the locks were taken: {total}");
}

/// A timestamp of the oracle. The node has heard of the time then.
async fn timestamp(db: &Database) -> Timestamp {
    db.begin().await.unwrap().start_ts()
}

/// Lets every task run until it waits for time.
async fn settled() {
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
}

/// Regression: a session that could not give a lock up before the lease of its node was over stayed in the record under
/// the old term. When it took the lock again, under the new term, it found itself there and took that for its lock, but
/// others saw a term that was over, and took the lock too.
#[tokio::test(start_paused = true)]
async fn what_was_held_under_an_earlier_term_is_no_lock_of_the_next_one() {
    let cluster = MemoryCluster::new();
    let db = || Database::new(Client::new(Arc::new(cluster.clone())), TsoClient::new(cluster.tso()));
    let [a, b] = [1, 2].map(|node| NodeLocks::new(db(), NodeId(node), AdvisoryConfig::default()));
    let lock = LockName::Big(1);
    let name = timestamp(&db()).await;
    let under = |term| Claim { lock, mode: Mode::Exclusive, name, session: 1, term };
    let first = a.lease().await.unwrap().term;
    assert_eq!(a.take(&under(first), &mut false).await.unwrap(), Taken::Held);
    let record = db().begin().await.unwrap().get(&lock.record_key()).await.unwrap().expect("a holder");

    cluster.tso().advance_ms(LEAP_MS);
    timestamp(a.db()).await;
    let second = a.lease().await.unwrap().term;
    assert!(second > first);
    // The task that removes what the earlier term has left has ended, and was not heard: the holder is there.
    settled().await;
    let mut txn = db().begin().await.unwrap();
    txn.put(lock.record_key(), record).unwrap();
    txn.commit().await.unwrap();

    assert_eq!(a.take(&under(second), &mut false).await.unwrap(), Taken::Held);
    let other = b.lease().await.unwrap().term;
    let claim = Claim { name: timestamp(&db()).await, ..under(other) };
    assert_eq!(b.take(&claim, &mut false).await.unwrap(), Taken::Blocked(vec![name]));
}

/// Regression: whoever waited for the record of a lock read the leases of its holders at a snapshot from before the
/// wait. A node that had taken its lease meanwhile had none there, so its lock passed for one of a dead node.
#[tokio::test(start_paused = true)]
async fn the_lease_of_a_holder_is_read_after_the_record() {
    let cluster = MemoryCluster::new();
    let db = || Database::new(Client::new(Arc::new(cluster.clone())), TsoClient::new(cluster.tso()));
    let [a, b] = [1, 2].map(|node| NodeLocks::new(db(), NodeId(node), AdvisoryConfig::default()));
    let lock = LockName::Big(1);
    let [first, second] = [timestamp(&db()).await, timestamp(&db()).await];
    let of_b = b.lease().await.unwrap().term;

    // Another one has the record; B waits for it, with a timestamp that is taken already.
    let mut txn = db().begin().await.unwrap();
    let (mode, presence, wait) = (kv::api::LockMode::Update, kv::api::Presence::Any, txn::LockWait::NoWait);
    let ask = txn::LockAsk { mode, presence, was_read: false, wait };
    txn.lock_rows(vec![lock.record_key()], ask).await.unwrap();
    let claim = Claim { lock, mode: Mode::Exclusive, name: second, session: 2, term: of_b };
    let waiting = tokio::spawn(async move { b.take(&claim, &mut false).await });
    settled().await;
    assert!(cluster.row_locks().iter().any(|lock| lock.wait.is_some()), "B waits");

    // Now node A takes its lease, and the lock.
    let term = a.lease().await.unwrap().term;
    let since = timestamp(&db()).await;
    let mut record = LockRecord::default();
    record.add(Holder { node: NodeId(1), term, name: first, session: 1, mode: Mode::Exclusive, since });
    txn.put(lock.record_key(), record.encode()).unwrap();
    txn.commit().await.unwrap();
    assert_eq!(waiting.await.unwrap().unwrap(), Taken::Blocked(vec![first]));
}

/// Regression: the task that removes what the earlier terms of a node have left removed all terms but its own. If it
/// was late, it removed what was held under a term after its own.
#[tokio::test(start_paused = true)]
async fn what_is_held_under_a_later_term_is_not_removed() {
    let cluster = MemoryCluster::new();
    let db = Database::new(Client::new(Arc::new(cluster.clone())), TsoClient::new(cluster.tso()));
    let node = NodeLocks::new(db.clone(), NodeId(1), AdvisoryConfig::default());
    let mut terms = Vec::new();
    for number in 0..3 {
        let lease = node.lease().await.unwrap();
        let lock = LockName::Big(number);
        let claim = Claim { lock, mode: Mode::Exclusive, name: timestamp(&db).await, session: 1, term: lease.term };
        assert_eq!(node.take(&claim, &mut false).await.unwrap(), Taken::Held);
        settled().await;
        terms.push(lease.term);
        if number < 2 {
            cluster.tso().advance_ms(LEAP_MS);
            timestamp(&db).await;
        }
    }
    // The late task of the second term, which ended the first one.
    node.remove_dead(BTreeMap::from([(NodeId(1), terms[0])])).await.unwrap();
    let held = node.holders().await.unwrap();
    assert_eq!(held.iter().map(|holder| holder.lock).collect::<Vec<_>>(), [LockName::Big(2)]);
}

#[test]
fn planted_bugs_are_found() {
    for bug in [PlantedBug::UnboundCommit, PlantedBug::LeaseIgnored, PlantedBug::LeaseRevived] {
        let found = (0..60).any(|seed| run(seed, Some(bug)).1.is_some());
        assert!(found, "{bug:?}");
    }
}

#[test]
fn interleaved_commits_are_an_overlap() {
    let hold = |mode, first, last| {
        let ts = Timestamp::from_raw;
        Hold { lock: 1, mode, first: ts(first), last: ts(last) }
    };
    assert!(overlap(&[hold(Mode::Exclusive, 1, 5), hold(Mode::Shared, 5, 6)]).is_some());
    assert!(overlap(&[hold(Mode::Exclusive, 1, 5), hold(Mode::Exclusive, 6, 7)]).is_none());
    assert!(overlap(&[hold(Mode::Shared, 1, 5), hold(Mode::Shared, 2, 7)]).is_none());
}

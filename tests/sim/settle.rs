//! After all faults have ended: the cluster serves again, every session ends, every lock goes, the replicas become
//! equal, and their data is what the acknowledged transactions make of it.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use engine::Cf;
use engine::store::{Reader, Store};
use futures::FutureExt;
use kv::Key;
use kv::mvcc::shared::lock_of_row;
use simulator::World;
use simulator::checkers::independent::Model;
use simulator::checkers::{Checked, Violation, independent, replay, snapshot_isolation, violated};
use tokio::task::JoinHandle;
use txn::{Database, Transaction, TxnError};

use crate::collection;
use crate::load::{Book, SharedBook, bank, counters, lists, registers};
use crate::logs::Logs;
use crate::nodes::Nodes;
use crate::stack::{Parts, Stack, complete, run_until};

/// Acknowledged transfers and transactions on lists after which the cluster counts as recovered.
const PROGRESS: u64 = 5;
/// Keys of one transaction of the sweep. The requests of one of many keys delay each other where few proposals may be
/// under way.
const SWEPT: usize = 20;
/// How long each step takes at most. The longest is a commit, which retries for twenty seconds after the first failure
/// of each of its requests.
const LIMIT: Duration = Duration::from_secs(120);
/// After this time of sweeps no replica may hold a lock. A lock that the first does not resolve expires after three
/// seconds.
const LOCKS_LIMIT: Duration = Duration::from_secs(60);
/// How long replicas are waited for after each sweep.
const APPLY_LIMIT: Duration = Duration::from_secs(2);
/// The pause before the sweep or the last read is repeated.
const RETRY_PAUSE: Duration = Duration::from_millis(100);

/// See the module documentation. Returns the number of locks that the sessions left.
pub(crate) async fn settle(
    world: &mut World<Stack>,
    parts: &Parts,
    (book, logs): (&SharedBook, &Logs),
    sessions: Vec<JoinHandle<()>>,
) -> Result<u64, Violation> {
    let nodes = &parts.nodes;
    world.heal()?;
    parts.wire.heal();
    recover(world, nodes, book).await?;
    book.borrow_mut().is_closed = true;
    let ended = async {
        for session in sessions {
            session.await.map_err(|error| Violation(format!("a session panicked: {error}")))?;
        }
        Ok(())
    };
    complete(world, nodes, LIMIT, "every session ends after healing", ended).await??;
    let end = nodes.elapsed() + LIMIT.as_nanos() as u64;
    run_until(world, nodes, end, |_| parts.wire.is_quiet()).await?;
    for store in &nodes.stores {
        let Some(gateway) = nodes.gateway(*store) else { return violated(format!("{store} does not run")) };
        let drained = complete(world, nodes, LIMIT, "a drain", async move { gateway.database.drain(LIMIT).await });
        if !drained.await? {
            return violated(format!("commits in progress at {store} do not end"));
        }
    }
    logs.check()?;
    let left = locks(world)?.len() as u64;
    sweep(world, nodes, book).await?;
    collection::finish(world, nodes, book).await?;
    converge(world, nodes).await?;
    read_everywhere(world, nodes, book).await?;
    let mut book = book.borrow_mut();
    book.check()?;
    if let Some(node) = world.nodes.values().next() {
        book.reads.check(&node.store.snapshot(), book.safe_point)?;
        book.family.check()?;
    }
    registers::check(&book)?;
    check_lists(&mut book)?;
    Ok(left)
}

/// Three checkers look at the lists: our own, one of others, and one that takes the timestamps for granted.
fn check_lists(book: &mut Book) -> Checked {
    snapshot_isolation::check(&book.history)?;
    independent::check(&book.history, Model::StrongSnapshotIsolation)?;
    replay::check(&book.history, &book.times)?;
    let skews = independent::anomalies(&book.history, Model::Serializable);
    if let Some(other) = skews.iter().find(|name| *name != "G2-item") {
        return violated(format!("snapshot isolation does not allow {other}"));
    }
    book.counts.write_skews += u64::from(!skews.is_empty());
    book.counts.replayed += book.times.iter().filter(|times| times.commit.is_some()).count() as u64;
    Ok(())
}

/// Transactions succeed again.
async fn recover(world: &mut World<Stack>, nodes: &Nodes, book: &SharedBook) -> Checked {
    let before = book.borrow().counts;
    let end = nodes.elapsed() + LIMIT.as_nanos() as u64;
    let has_progress = || {
        let now = book.borrow().counts;
        now.transfers >= before.transfers + PROGRESS && now.lists >= before.lists + PROGRESS
    };
    run_until(world, nodes, end, |_| book.borrow().violation.is_some() || has_progress()).await?;
    book.borrow().check()?;
    if has_progress() { Ok(()) } else { violated("no progress after healing") }
}

/// Reads every key, which resolves the locks that readers meet, and locks every key, which resolves those that only
/// writers meet. The cleanup of the last commits may fail and leave locks too, so it goes on until no replica holds
/// any.
async fn sweep(world: &mut World<Stack>, nodes: &Nodes, book: &SharedBook) -> Checked {
    let keys = book.borrow().keys();
    let Some(gateway) = nodes.stores.first().and_then(|store| nodes.gateway(*store)) else {
        return violated("no gateway to sweep");
    };
    let end = nodes.elapsed() + LOCKS_LIMIT.as_nanos() as u64;
    loop {
        let swept = sweep_once(gateway.database.clone(), keys.clone());
        let swept = complete(world, nodes, LIMIT, "the sweep", swept).await?;
        swept.map_err(|error| Violation(format!("the sweep: {error}")))?;
        if locks_go(world, nodes).await? {
            return Ok(());
        }
        if nodes.elapsed() > end {
            return violated(format!("locks remain: {:?}", locks(world)?));
        }
    }
}

async fn sweep_once(db: Database, keys: Vec<Key>) -> Result<(), TxnError> {
    for keys in keys.chunks(SWEPT) {
        until_served(|| read_all(&db, keys)).await?;
        let lock_all = |txn: &mut Transaction| keys.iter().try_for_each(|key| txn.lock(key.clone()));
        until_served(|| db.run(|txn| std::future::ready(lock_all(txn)).boxed())).await?;
    }
    Ok(())
}

/// Whether no replica holds a lock within a short time, which replicas need to apply what the leader has applied.
async fn locks_go(world: &mut World<Stack>, nodes: &Nodes) -> Result<bool, Violation> {
    let end = nodes.elapsed() + APPLY_LIMIT.as_nanos() as u64;
    while !locks(world)?.is_empty() {
        if nodes.elapsed() >= end {
            return Ok(false);
        }
        let next = nodes.elapsed() + Duration::from_millis(50).as_nanos() as u64;
        run_until(world, nodes, next, |_| false).await?;
    }
    Ok(true)
}

/// Repeats `work`, which may be repeated whatever its outcome, until the cluster serves it.
async fn until_served<T, F>(work: impl Fn() -> F) -> Result<T, TxnError>
where
    F: Future<Output = Result<T, TxnError>>,
{
    loop {
        match work().await {
            Err(
                TxnError::Unavailable(_)
                | TxnError::Overloaded(_)
                | TxnError::Undetermined { .. }
                | TxnError::Conflict(_),
            ) => {
                tokio::time::sleep(RETRY_PAUSE).await;
            }
            done => return done,
        }
    }
}

/// The locks on the replicas.
fn locks(world: &World<Stack>) -> Result<Vec<String>, Violation> {
    let failed = |error: engine::store::StoreError| Violation(error.to_string());
    let mut found = Vec::new();
    for node in world.nodes.values() {
        let mut cursor = node.store.snapshot().cursor(Cf::Lock, b"", b"").map_err(failed)?;
        let mut is_valid = cursor.seek_to_first().map_err(failed)?;
        while is_valid {
            let lock = lock_of_row(cursor.key(), cursor.value()).map_err(|error| Violation(error.to_string()))?;
            let what = lock.map_or_else(|| "a counter of shared locks".to_owned(), |lock| lock.to_string());
            found.push(format!("{what} on {}", node.id));
            is_valid = cursor.next().map_err(failed)?;
        }
    }
    Ok(found)
}

/// All replicas become the same.
async fn converge(world: &mut World<Stack>, nodes: &Nodes) -> Checked {
    let end = nodes.elapsed() + LIMIT.as_nanos() as u64;
    let mut difference = world.difference()?;
    while difference.is_some() && nodes.elapsed() < end {
        let next = nodes.elapsed() + Duration::from_millis(50).as_nanos() as u64;
        run_until(world, nodes, next, |_| false).await?;
        difference = world.difference()?;
    }
    difference.map_or(Ok(()), violated)
}

async fn read_all(db: &Database, keys: &[Key]) -> Result<BTreeMap<Key, Bytes>, TxnError> {
    Ok(db.begin().await?.batch_get(keys).await?.into_iter().collect())
}

/// Reads every key through each node, and adds what it found to the histories.
async fn read_everywhere(world: &mut World<Stack>, nodes: &Nodes, book: &SharedBook) -> Checked {
    for store in &nodes.stores {
        let Some(gateway) = nodes.gateway(*store) else { return violated(format!("{store} does not run")) };
        let keys = book.borrow().keys();
        let begin = book.borrow_mut().next();
        let read = async move { until_served(|| read_all(&gateway.database, &keys)).await };
        let found = complete(world, nodes, LIMIT, "the last read", read).await?;
        let found = found.map_err(|error| Violation(format!("the last read at {store}: {error}")))?;
        let mut book = book.borrow_mut();
        bank::check_final(&book.transfers, &found)
            .map_err(|Violation(what)| Violation(format!("at {store}: {what}")))?;
        counters::check_final(&book.additions, &found)
            .map_err(|Violation(what)| Violation(format!("at {store}: {what}")))?;
        lists::add_final(&mut book, &found);
        let end = book.next();
        for number in 0..book.registers.len() {
            let value = registers::value(found.get(&registers::key(number)));
            book.registers[number].read(value, begin, end);
        }
    }
    Ok(())
}

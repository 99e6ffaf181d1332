//! Garbage collection: rounds that choose a safe point and raise it, nodes that collect, and sessions that hold
//! snapshots for long.
//!
//! One task runs the rounds, as the node that leads the system region does: it asks every gateway that lives how far
//! its transactions look back, and raises the safe point through a gateway. It is persisted in the task, which no fault
//! ends. Every node follows with its own store, in each life anew, and collects all that it may at once. So the ttl,
//! which the seed draws, can be far shorter than transactions are long.

use std::collections::{BTreeSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use engine::Cf;
use engine::store::memory::MemoryStore;
use engine::store::{Reader, Store, StoreError};
use kv::Key;
use kv::gc::collect::is_garbage_row;
use kv::gc::{CollectBound, Collection, Collector, GcConfig, GcMetrics, Verdict, follow_published};
use kv::key::split_ts;
use kv::mvcc::{LockRecord, LockRow, WriteRecord};
use kv::placement::safe_point::choose;
use kv::placement::{ClusterView, Heartbeat, Oldest};
use prometheus::Registry;
use raftstore::{Region, StoreId, records};
use rand::Rng;
use rand::rngs::StdRng;
use simulator::World;
use simulator::checkers::{Checked, Violation, violated};
use tso::Timestamp;
use txn::{OldestSnapshot, TxnError};

use crate::load::{Session, SharedBook, bank};
use crate::nodes::{Gateway, Life, Nodes};
#[cfg(feature = "planted-bugs")]
use crate::options::GcBug;
use crate::options::{Bugs, CollectionOptions};
use crate::stack::{Stack, complete, run_until};
use crate::store::SimStore;

/// Hash of what a region's replica would hold if it had collected all that its own safe point allows. So replicas with
/// one applied index agree, however far each of them has collected.
pub(crate) fn visible_hash(reader: &dyn Reader, region: &Region) -> Result<u64, StoreError> {
    let corrupt = |error: &dyn std::fmt::Display| StoreError::Corrupt(error.to_string());
    let floors = match reader.get(Cf::Meta, &records::floors_key(region.id))? {
        Some(floors) => records::decode_floors(&floors).map_err(|error| corrupt(&error))?,
        None => Default::default(),
    };
    let safe_point = Timestamp::from_raw(floors.reads.get());
    let (mut collector, mut hasher, mut named) = (Collector::new(safe_point), DefaultHasher::new(), BTreeSet::new());
    for cf in [Cf::Lock, Cf::Write, Cf::Default] {
        let mut cursor = reader.cursor(cf, &region.start, &region.end)?;
        let mut more = cursor.seek_to_first()?;
        while more {
            let (key, value) = (cursor.key(), cursor.value());
            let stays = match cf {
                Cf::Lock => {
                    // A shared lock has no value.
                    if let LockRow::Lock(storage) = LockRow::of(key).map_err(|error| corrupt(&error))? {
                        let lock = LockRecord::decode(value).map_err(|error| corrupt(&error))?;
                        named.insert((storage.to_vec(), lock.start_ts));
                    }
                    true
                }
                Cf::Write => {
                    let stays = collector.next(key, value, || false).map_err(|error| corrupt(&error))? == Verdict::Keep;
                    if stays {
                        let write = WriteRecord::decode(value).map_err(|error| corrupt(&error))?;
                        let (storage, _) = split_ts(key).map_err(|error| corrupt(&error))?;
                        named.insert((storage.to_vec(), write.start_ts));
                    }
                    stays
                }
                _ => {
                    let is_named = |storage: &[u8], ts| Ok(named.contains(&(storage.to_vec(), ts)));
                    !is_garbage_row(safe_point, key, value, is_named).map_err(|error| corrupt(&error))?
                }
            };
            if stays {
                (cf.code(), key, value).hash(&mut hasher);
            }
            more = cursor.next()?;
        }
    }
    Ok(hasher.finish())
}

/// How long a round may take. The safe point is raised again in the next one.
const ROUND_LIMIT: Duration = Duration::from_secs(2);
/// How often each family is compacted in a row. What hides the last version of a key goes after it.
const PASSES: usize = 4;
/// How long the last round may take.
const LIMIT: Duration = Duration::from_secs(120);

/// The collection in the store of a node, in one life.
#[derive(Clone)]
pub(crate) struct NodeCollection {
    store: SimStore,
    data: MemoryStore,
    bound: CollectBound,
}

impl NodeCollection {
    /// One that has collected nothing in this life.
    pub(crate) fn new(store: SimStore, data: &MemoryStore) -> NodeCollection {
        let (bound, metrics) = (CollectBound::new(), GcMetrics::new(&Registry::new()).expect("metrics"));
        let hooks = Collection::new(GcConfig::default(), bound.clone(), metrics).hooks();
        NodeCollection { store, data: data.rehooked(hooks), bound }
    }

    /// Collects what the replicas have published, or up to `early`.
    fn collect(&self, early: Option<Timestamp>) {
        match early {
            Some(safe_point) => self.bound.raise(safe_point),
            None => follow_published(&self.store, &self.bound),
        }
        // A store that fails stops by itself.
        if self.bound.settle(|| self.data.flush()).is_err() {
            return;
        }
        for cf in [Cf::Write, Cf::Default] {
            for _ in 0..PASSES {
                let _ = self.data.compact_range(cf, b"", b"");
            }
        }
    }
}

/// Every node that runs collects.
fn collect_all(nodes: &Nodes, early: Option<Timestamp>) {
    for store in nodes.stores.iter().filter(|store| !nodes.is_paused(**store)) {
        nodes.life(*store).into_iter().for_each(|life: Life| life.collection.collect(early));
    }
}

/// What the gateways that live report.
fn view(nodes: &Nodes, bugs: Bugs) -> ClusterView {
    let mut view = ClusterView::new();
    for store in &nodes.stores {
        let Some(gateway) = nodes.gateway(*store) else { continue };
        let oldest = gateway.database.oldest_snapshot();
        let oldest = oldest.map(|OldestSnapshot { bound, session }| Oldest { bound, session });
        #[cfg(feature = "planted-bugs")]
        let oldest = match bugs.gc {
            Some(GcBug::SnapshotsIgnored) => Some(Oldest { bound: Timestamp::MAX, session: None }),
            _ => oldest,
        };
        #[cfg(not(feature = "planted-bugs"))]
        let _ = bugs;
        view.apply_heartbeat(heartbeat(*store, oldest), Duration::ZERO);
    }
    view
}

fn heartbeat(store: StoreId, oldest: Option<Oldest>) -> Heartbeat {
    let (address, pg_address, locality, version) = Default::default();
    Heartbeat { store, address, pg_address, locality, version, oldest, regions: Vec::new() }
}

/// Whether the stores collect before the safe point is raised.
fn is_early(bugs: Bugs) -> bool {
    #[cfg(feature = "planted-bugs")]
    return bugs.gc == Some(GcBug::CollectedEarly);
    #[cfg(not(feature = "planted-bugs"))]
    {
        let _ = bugs;
        false
    }
}

/// Runs rounds until the book is closed.
pub(crate) async fn rounds(
    options: CollectionOptions,
    bugs: Bugs,
    nodes: Arc<Nodes>,
    book: SharedBook,
    mut rng: StdRng,
) {
    while !book.borrow().is_closed {
        tokio::time::sleep(rng.random_range(options.interval / 2..options.interval * 2)).await;
        let store = nodes.stores[rng.random_range(0..nodes.stores.len())];
        let Some(gateway) = nodes.gateway(store) else { continue };
        let round = async {
            let now = gateway.database.now().await?;
            let present = book.borrow().safe_point;
            let view = view(&nodes, bugs);
            let safe_point = choose(present, (now, options.ttl), &view, (Duration::ZERO, Duration::ZERO)).safe_point;
            if safe_point == Timestamp::ZERO {
                return Ok(());
            }
            book.borrow_mut().safe_point = safe_point;
            if is_early(bugs) {
                collect_all(&nodes, Some(safe_point));
                return Ok(());
            }
            gateway.database.collection().raise(safe_point).await
        };
        if let Ok(Ok(())) = tokio::time::timeout(ROUND_LIMIT, Box::pin(round)).await {
            book.borrow_mut().counts.rounds += 1;
        }
        // Regions that were reached have it, whether all were or not.
        if !is_early(bugs) {
            collect_all(&nodes, None);
        }
    }
}

/// A snapshot, and what it showed.
type Snapshot = (Timestamp, Vec<(Key, Bytes)>);

/// The snapshots that a session remembers.
const REMEMBERED: usize = 8;

/// Reads some keys, and the same again after a while, in one snapshot. Now and then, reads one of the past again.
pub(crate) async fn holder(mut session: Session, ttl: Duration) {
    let mut past: VecDeque<Snapshot> = VecDeque::new();
    while !session.is_closed() {
        let Some(gateway) = session.gateway().await else { continue };
        let keys: Vec<Key> = (0..bank::ACCOUNTS).map(bank::account).collect();
        if !past.is_empty() && session.rng.random_bool(0.6) {
            let snapshot = past[session.rng.random_range(0..past.len())].clone();
            read_again(&mut session, &gateway, keys, snapshot).await;
            continue;
        }
        let pause = session.rng.random_range(Duration::ZERO..=ttl * 3);
        let db = gateway.database.clone();
        let reads = async move {
            let txn = db.begin().await?;
            let before = txn.batch_get(&keys).await?;
            tokio::time::sleep(pause).await;
            Ok((before, txn.batch_get(&keys).await?, txn.start_ts()))
        };
        let outcome: Option<Result<_, TxnError>> = session.at(&gateway, reads).await;
        match &outcome {
            Some(Ok((before, after, start_ts))) if before != after => {
                let what = format!("the snapshot at {start_ts} changed under its reader: {before:?}, then {after:?}");
                session.book.borrow_mut().violation.get_or_insert(what);
            }
            Some(Ok((before, _, start_ts))) => {
                session.book.borrow_mut().counts.held += 1;
                past.push_back((*start_ts, before.clone()));
                past.drain(..past.len().saturating_sub(REMEMBERED));
            }
            Some(Err(TxnError::SnapshotTooOld(why))) => {
                let what = format!("the safe point has passed a live snapshot: {why}");
                session.book.borrow_mut().violation.get_or_insert(what);
            }
            _ => {}
        }
        session.judge(outcome.map(|outcome| outcome.map(drop))).await;
    }
}

/// Reads a snapshot of the past. It shows what it showed then, or is refused.
async fn read_again(session: &mut Session, gateway: &Gateway, keys: Vec<Key>, (start_ts, before): Snapshot) {
    let db = gateway.database.clone();
    let read = async move { db.begin_at(start_ts).await?.batch_get(&keys).await };
    let outcome = session.at(gateway, read).await;
    if let Some(Ok(after)) = &outcome
        && *after != before
    {
        let what = format!("the snapshot at {start_ts} is another one in the past: {before:?}, now {after:?}");
        session.book.borrow_mut().violation.get_or_insert(what);
    }
    session.judge(outcome.map(|outcome| outcome.map(drop))).await;
}

/// Raises the last safe point everywhere, and lets all stores collect up to it, so that they become equal.
pub(crate) async fn finish(world: &mut World<Stack>, nodes: &Arc<Nodes>, book: &SharedBook) -> Checked {
    let safe_point = book.borrow().safe_point;
    let Some(gateway) = nodes.stores.first().and_then(|store| nodes.gateway(*store)) else {
        return violated("no gateway to collect");
    };
    if safe_point == Timestamp::ZERO {
        return Ok(());
    }
    let raise = async move {
        let mut last = gateway.database.collection().raise(safe_point).await;
        while last.is_err() {
            tokio::time::sleep(Duration::from_millis(100)).await;
            last = gateway.database.collection().raise(safe_point).await;
        }
    };
    complete(world, nodes, LIMIT, "the last safe point is raised", raise).await?;
    let end = nodes.elapsed() + LIMIT.as_nanos() as u64;
    let follow = |nodes: &Nodes| {
        collect_all(nodes, None);
        let behind = |store: &StoreId| nodes.life(*store).is_none_or(|life| life.collection.bound.get() < safe_point);
        nodes.stores.iter().any(behind)
    };
    while follow(nodes) {
        if nodes.elapsed() > end {
            return Err(Violation("a store does not follow the safe point".to_owned()));
        }
        let next = nodes.elapsed() + Duration::from_millis(50).as_nanos() as u64;
        run_until(world, nodes, next, |_| false).await?;
    }
    Ok(())
}

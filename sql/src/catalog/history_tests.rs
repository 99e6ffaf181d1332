//! Random histories of leases and schema changes: three nodes over one in-memory cluster write to two tables and
//! truncate them, while nodes are paused and crash at any of their calls. Everything but the pauses is production code.
//! Time is virtual, the oracle's too, and the seed determines a run.
//!
//! What must hold, for every insert whose commit was acknowledged:
//! 1. Its row is in the table's present storage, or the truncation that gave its storage up is ordered after it: the
//!    commit_ts of the truncation is greater.
//! 2. In the second case the insert took effect in the store before that truncation was acknowledged. (A paused node
//!    may get the answer, and pass it on, later.)
//! 3. It was not planned with a storage whose truncation had been acknowledged when the insert began.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use kv::Key;
use kv::api::{Request, RequestBody, Response};
use kv::client::{CallError, Client, Endpoint};
use kv::memory::{CountingTso, Faults, MemoryCluster};
use parking_lot::Mutex;
use prometheus::Registry;
use raftstore::{RegionStatus, StoreId};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tso::{Timestamp, TsRange, TsoClient, TsoError, TsoSource};
use txn::{Database, TxnConfig};

use super::planted::PlantedBug;
use super::snapshot::{Access, Catalog};
use super::{CatalogConfig, CatalogPeers, NewTable, NodeCatalog, NodeId, SchemaChange};
use crate::codec::key;
use crate::error::SqlError;
use crate::metrics::SqlMetrics;
use crate::table::{Column, ColumnId, StorageId};
use pgtypes::SqlType;

const NODES: u64 = 3;
const TABLES: [&str; 2] = ["a", "b"];
/// How long the nodes work, and how long they have to end afterwards.
const WORK: Duration = Duration::from_secs(4);
const END: Duration = Duration::from_secs(60);
pub(super) const LEASE: Duration = Duration::from_millis(200);

/// Chooses requests.
type Accepts = fn(&RequestBody) -> bool;

/// A gate that each call of a node passes on its way out and on its way back. A paused node is a closed gate.
#[derive(Default)]
pub(super) struct Gate {
    closed: AtomicBool,
    opened: Notify,
    /// Closes the gate at the first request that it accepts.
    stop_at: Mutex<Option<Accepts>>,
}

impl Gate {
    /// Closes the gate at the first request that `accepts` accepts. Lets what waits pass.
    pub(super) fn stop_at(&self, accepts: Accepts) {
        *self.stop_at.lock() = Some(accepts);
        self.open();
    }

    /// Waits until the gate is closed.
    pub(super) async fn until_closed(&self) {
        while !self.closed.load(Ordering::Relaxed) {
            tokio::time::sleep(Duration::from_micros(100)).await;
        }
    }

    fn arrive(&self, body: &RequestBody) {
        let mut stop_at = self.stop_at.lock();
        if stop_at.is_some_and(|accepts| accepts(body)) {
            *stop_at = None;
            self.close();
        }
    }

    async fn pass(&self) {
        while self.closed.load(Ordering::Relaxed) {
            self.opened.notified().await;
        }
    }

    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    pub(super) fn open(&self) {
        self.closed.store(false, Ordering::Relaxed);
        self.opened.notify_waiters();
    }
}

/// The calls of one node.
struct Gated {
    world: Arc<World>,
    tso: Arc<CountingTso>,
    gate: Arc<Gate>,
}

/// When the store executed the requests for a key.
#[derive(Clone, Copy, Default)]
struct Executed {
    /// The last prewrite.
    prewrite: u64,
    /// The first commit.
    commit: Option<u64>,
}

impl Endpoint for Gated {
    fn call(&self, store: StoreId, request: Request) -> BoxFuture<'_, Result<Response, CallError>> {
        Box::pin(async move {
            self.gate.arrive(&request.body);
            self.gate.pass().await;
            let body = request.body.clone();
            let answer = self.world.cluster.call(store, request).await;
            if answer.is_ok() {
                self.world.executed(&body);
            }
            self.gate.pass().await;
            answer
        })
    }

    fn locate(&self, store: StoreId, key: Vec<u8>) -> BoxFuture<'_, Result<Option<RegionStatus>, CallError>> {
        self.world.cluster.locate(store, key)
    }

    fn stores(&self) -> Vec<StoreId> {
        self.world.cluster.stores()
    }
}

impl TsoSource for Gated {
    fn allocate(&self, count: u32) -> BoxFuture<'_, Result<TsRange, TsoError>> {
        Box::pin(async move {
            self.gate.pass().await;
            let range = self.tso.allocate(count).await;
            // The node may be paused with a commit_ts that it has not used.
            tokio::time::sleep(Duration::from_millis(2)).await;
            self.gate.pass().await;
            range
        })
    }
}

/// All nodes.
struct AllNodes(Arc<World>);

impl CatalogPeers for AllNodes {
    fn renew_leases(&self) -> BoxFuture<'_, ()> {
        let nodes: Vec<NodeCatalog> = self.0.nodes.lock().values().map(|(catalog, _)| catalog.clone()).collect();
        Box::pin(async move {
            for node in nodes {
                tokio::spawn(async move { node.renew().await });
            }
        })
    }
}

/// An insert whose commit was acknowledged.
struct Insert {
    storage: StorageId,
    key: Key,
    commit_ts: Timestamp,
    began: u64,
    /// When it took effect in the store.
    effective: u64,
}

/// A truncation that may have committed.
struct Truncation {
    from: StorageId,
    /// `None` if its session did not learn it.
    commit_ts: Option<Timestamp>,
    acknowledged: Option<u64>,
}

#[derive(Default)]
struct History {
    /// Orders the events.
    events: u64,
    executed: BTreeMap<Key, Executed>,
    inserts: Vec<Insert>,
    truncations: Vec<Truncation>,
    pauses: u64,
    crashes: u64,
}

pub(super) struct World {
    pub(super) cluster: MemoryCluster,
    seed: u64,
    bug: Option<PlantedBug>,
    nodes: Mutex<BTreeMap<u64, (NodeCatalog, Arc<Gate>)>>,
    history: Mutex<History>,
    stop: CancellationToken,
}

impl World {
    fn event(&self) -> u64 {
        let mut history = self.history.lock();
        history.events += 1;
        history.events
    }

    fn executed(&self, body: &RequestBody) {
        let at = self.event();
        let executed = &mut self.history.lock().executed;
        match body {
            RequestBody::Prewrite(prewrite) => {
                prewrite.mutations.iter().for_each(|m| executed.entry(m.key.clone()).or_default().prewrite = at);
            }
            RequestBody::Commit { keys, .. } => keys.iter().for_each(|key| {
                executed.entry(key.clone()).or_default().commit.get_or_insert(at);
            }),
            _ => {}
        }
    }

    /// A cluster without nodes.
    pub(super) fn new(seed: u64, bug: Option<PlantedBug>) -> Arc<World> {
        Arc::new(World {
            cluster: MemoryCluster::builder().split_at(Key::new("t")).build(),
            seed,
            bug,
            nodes: Mutex::default(),
            history: Mutex::default(),
            stop: CancellationToken::new(),
        })
    }

    /// A node that does nothing by itself, with the gate of its calls.
    pub(super) fn node(self: &Arc<World>, id: u64, seed: u64) -> (NodeCatalog, Arc<Gate>) {
        let gate = Arc::new(Gate::default());
        let endpoint = || Gated { world: self.clone(), tso: self.cluster.tso(), gate: gate.clone() };
        let config = TxnConfig {
            lock_ttl: Duration::from_millis(90),
            read_lock_wait: Duration::from_secs(2),
            seed: Some(seed),
            ..TxnConfig::default()
        };
        let tso = TsoClient::new(Arc::new(endpoint()));
        let db = Database::with_config(Client::new(Arc::new(endpoint())), tso, config, &Registry::new());
        let settings = CatalogConfig {
            lease: LEASE,
            renew_interval: LEASE / 3,
            drain_grace: Duration::from_millis(60),
            closed_wait: Duration::from_millis(500),
        };
        let metrics = SqlMetrics::new(&Registry::new()).expect("fresh");
        let catalog = NodeCatalog::new(db.expect("valid"), NodeId(id), settings, metrics).with_planted_bug(self.bug);
        catalog.set_peers(Arc::new(AllNodes(self.clone())));
        self.nodes.lock().insert(id, (catalog.clone(), gate.clone()));
        (catalog, gate)
    }

    /// Starts a node with its sessions, again if it has crashed.
    fn start(self: &Arc<World>, id: u64, life: u64) {
        let seed = self.seed * 100 + id * 10 + life;
        let (catalog, _) = self.node(id, seed);
        let (kept, stop) = (catalog.clone(), self.stop.clone());
        tokio::spawn(async move { kept.keep(stop).await });
        for writer in 0..3 {
            tokio::spawn(write(self.clone(), catalog.clone(), StdRng::seed_from_u64(seed * 10 + writer)));
        }
        tokio::spawn(truncate(self.clone(), catalog, StdRng::seed_from_u64(seed * 10 + 9)));
    }

    /// Pauses nodes, and replaces some of them.
    async fn disturb(self: Arc<World>) {
        let mut rng = StdRng::seed_from_u64(self.seed);
        let mut life = 0;
        while !self.stop.is_cancelled() {
            sleep(&mut rng, 150).await;
            let id = rng.random_range(0..NODES);
            let gate = self.nodes.lock()[&id].1.clone();
            gate.close();
            // A node that has crashed is one that never wakes.
            if rng.random_bool(0.15) {
                life += 1;
                self.history.lock().crashes += 1;
                sleep(&mut rng, 200).await;
                self.start(id, life);
            } else {
                self.history.lock().pauses += 1;
                sleep(&mut rng, 500).await;
                gate.open();
            }
        }
    }
}

async fn sleep(rng: &mut StdRng, most_ms: u64) {
    tokio::time::sleep(Duration::from_millis(rng.random_range(0..=most_ms))).await;
}

async fn write(world: Arc<World>, catalog: NodeCatalog, mut rng: StdRng) {
    let slot = catalog.register();
    while !world.stop.is_cancelled() {
        sleep(&mut rng, 15).await;
        let table = TABLES[rng.random_range(0..TABLES.len())];
        let began = world.event();
        let Ok((lease, mut txn)) = catalog.begin().await else { continue };
        let live = slot.begin(txn.start_ts());
        let Some(table) = lease.catalog.table(table) else { continue };
        let tables = || std::iter::once(table);
        if catalog.access(&lease.catalog, tables(), txn.start_ts()) != Access::Open
            || catalog.enter(&live, tables(), &[table.storage]).is_err()
        {
            continue;
        }
        let mut row = key::storage_range(table.storage).0.as_bytes().to_vec();
        row.extend_from_slice(&txn.start_ts().raw().to_be_bytes());
        let row = Key::new(row);
        txn.put(row.clone(), Bytes::from_static(b"row")).expect("fits");
        if rng.random_bool(0.2) {
            sleep(&mut rng, 150).await;
        }
        if live.is_doomed() || catalog.begin_commit(&live, &mut txn, None).is_err() {
            continue;
        }
        if let Ok(Some(commit_ts)) = txn.commit().await {
            let mut history = world.history.lock();
            let executed = history.executed.get(&row).copied().unwrap_or_default();
            let effective = executed.commit.unwrap_or(executed.prewrite);
            history.inserts.push(Insert { storage: table.storage, key: row, commit_ts, began, effective });
        }
    }
}

async fn truncate(world: Arc<World>, catalog: NodeCatalog, mut rng: StdRng) {
    let slot = catalog.register();
    while !world.stop.is_cancelled() {
        sleep(&mut rng, 400).await;
        let table = TABLES[rng.random_range(0..TABLES.len())];
        let Ok((lease, mut txn)) = catalog.begin().await else { continue };
        let live = slot.begin(txn.start_ts());
        let Some(table) = lease.catalog.table(table).cloned() else { continue };
        let mut change = SchemaChange::new(catalog.clone(), &txn, &live, lease.catalog.clone());
        if change.truncate(&mut txn, std::slice::from_ref(&table)).await.is_err() || rng.random_bool(0.15) {
            continue;
        }
        if rng.random_bool(0.3) {
            sleep(&mut rng, 300).await;
        }
        if catalog.begin_commit(&live, &mut txn, None).is_err() {
            continue;
        }
        change.begin_commit();
        let at = {
            let mut history = world.history.lock();
            history.truncations.push(Truncation { from: table.storage, commit_ts: None, acknowledged: None });
            history.truncations.len() - 1
        };
        let committed = txn.commit().await;
        drop(live);
        let Ok(commit_ts) = committed else { continue };
        world.history.lock().truncations[at].commit_ts = commit_ts;
        if change.publish().await.is_ok() {
            let acknowledged = world.event();
            world.history.lock().truncations[at].acknowledged = Some(acknowledged);
        }
    }
}

pub(super) async fn create_tables(catalog: &NodeCatalog) -> Result<(), SqlError> {
    let slot = catalog.register();
    let (lease, mut txn) = catalog.begin().await?;
    let live = slot.begin(txn.start_ts());
    let mut change = SchemaChange::new(catalog.clone(), &txn, &live, lease.catalog.clone());
    for name in TABLES {
        let column = Column {
            id: ColumnId(1),
            name: "k".to_owned(),
            ty: SqlType::INT4,
            not_null: false,
            default: None,
            generated: None,
            identity: None,
            domain: None,
        };
        let (name, key_name) = (name.to_owned(), String::new());
        let new = NewTable {
            schema: crate::object::FIRST_SCHEMA,
            name,
            columns: vec![column],
            primary_key: Vec::new(),
            key_name,
            indexes: Vec::new(),
            checks: Vec::new(),
            foreign_keys: Vec::new(),
            sequences: Vec::new(),
            at_commit: None,
        };
        change.create_table(&mut txn, &new).await?;
    }
    change.begin_commit();
    txn.commit().await?;
    drop(live);
    change.publish().await
}

/// Runs a history. Returns what is wrong with it, and what it has seen.
async fn run(seed: u64, bug: Option<PlantedBug>) -> (Option<String>, History) {
    let faults = Faults { seed, delay_max: Duration::from_millis(6), lose_reply: 0.002, ..Faults::none() };
    let world = World::new(seed, bug);
    let tso = world.cluster.tso();
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_millis(1)).await;
            tso.advance_ms(1);
        }
    });
    world.start(0, 0);
    let first = world.nodes.lock()[&0].0.clone();
    create_tables(&first).await.expect("nothing is in the way");
    (1..NODES).for_each(|id| world.start(id, 0));
    world.cluster.set_faults(faults);
    let disturber = tokio::spawn(world.clone().disturb());
    tokio::time::sleep(WORK).await;
    world.stop.cancel();
    disturber.await.expect("no panic");
    world.cluster.set_faults(Faults::none());
    for (_, gate) in world.nodes.lock().values() {
        gate.open();
    }
    let wrong = match tokio::time::timeout(END, settled(&world)).await {
        Ok(catalog) => check(&world, &catalog).await,
        Err(_) => Some("a table stays closed".to_owned()),
    };
    let history = std::mem::take(&mut *world.history.lock());
    (wrong, history)
}

/// The catalog after all schema changes have ended.
async fn settled(world: &Arc<World>) -> Catalog {
    let catalog = world.nodes.lock()[&0].0.clone();
    loop {
        tokio::time::sleep(LEASE).await;
        catalog.sweep().await;
        let Ok(txn) = catalog.state.db.begin().await else { continue };
        match Catalog::load(&txn).await {
            Ok(loaded) if loaded.is_open() => return loaded,
            _ => {}
        }
    }
}

async fn check(world: &Arc<World>, catalog: &Catalog) -> Option<String> {
    // What is still on its way ends, or is stuck with a crashed node.
    tokio::time::sleep(5 * LEASE).await;
    let db = world.nodes.lock()[&0].0.state.db.clone();
    let txn = db.begin().await.expect("healed");
    let history = world.history.lock().inserts.drain(..).collect::<Vec<_>>();
    let truncations = std::mem::take(&mut world.history.lock().truncations);
    let present: Vec<StorageId> = TABLES.iter().map(|name| catalog.table(name).expect("there").storage).collect();
    let mut wrong = None;
    for insert in &history {
        let of_storage = || truncations.iter().filter(|truncation| truncation.from == insert.storage);
        if of_storage().filter_map(|truncation| truncation.acknowledged).any(|at| at < insert.began) {
            wrong = Some(format!("{}: planned after its truncation was acknowledged", insert.storage));
        }
        if present.contains(&insert.storage) {
            let row = txn.get(&insert.key).await.expect("healed");
            if row.is_none() {
                wrong = Some(format!("{}: a row is missing", insert.storage));
            }
            continue;
        }
        let known = of_storage().find(|truncation| truncation.commit_ts.is_some());
        if let Some(truncation) = known {
            if truncation.commit_ts < Some(insert.commit_ts) {
                wrong = Some(format!("{}: committed after its truncation", insert.storage));
            }
            if truncation.acknowledged.is_some_and(|at| at < insert.effective) {
                wrong = Some(format!("{}: took effect after its truncation was acknowledged", insert.storage));
            }
        }
    }
    let mut seen = world.history.lock();
    (seen.inserts, seen.truncations) = (history, truncations);
    wrong
}

/// Runs a history on virtual time.
fn run_seed(seed: u64, bug: Option<PlantedBug>) -> (Option<String>, History) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().expect("a runtime");
    runtime.block_on(run(seed, bug))
}

fn seeds(default: u64) -> u64 {
    std::env::var("CORTADO_CATALOG_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// `CORTADO_CATALOG_SEEDS` runs more seeds.
#[test]
fn no_acknowledged_insert_is_lost_with_a_truncation() {
    let mut sums = [0; 4];
    for seed in 0..seeds(4) {
        let (wrong, history) = run_seed(seed, None);
        assert_eq!(wrong, None, "seed {seed}");
        let acknowledged = history.truncations.iter().filter(|truncation| truncation.acknowledged.is_some()).count();
        let seen = [history.inserts.len(), acknowledged, history.pauses as usize, history.crashes as usize];
        (0..4).for_each(|at| sums[at] += seen[at]);
    }
    println!("inserts, truncations, pauses, crashes: {sums:?}");
    assert!(sums[0] > 500 && sums[1] > 20 && sums[2] > 10 && sums[3] > 1, "the histories are empty: {sums:?}");
}

/// Each deliberate bug is found within this many seeds.
#[test]
fn planted_bugs_are_found() {
    let bugs = [
        (PlantedBug::NoClosing, 10),
        (PlantedBug::NoDrain, 10),
        (PlantedBug::ImpatientStep, 10),
        (PlantedBug::UnboundCommit, 10),
        (PlantedBug::LocksLeft, 20),
    ];
    for (bug, within) in bugs {
        let found = (0..within).find_map(|seed| Some((seed, run_seed(seed, Some(bug)).0?)));
        let (seed, why) = found.unwrap_or_else(|| panic!("{bug:?} is not found in {within} seeds"));
        println!("{bug:?}: seed {seed}: {why}");
    }
}

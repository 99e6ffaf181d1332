//! A cluster of [`StoreCore`]s on one thread.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use engine::disk::SimDisk;
use engine::log::{LogEngine, LogOptions, LogWriter};
use engine::store::memory::MemoryStore;
use engine::store::{Reader, Store};
use engine::{Cf, WriteBatch};
use parking_lot::Mutex;
use raft::eraftpb::MessageType;
use raftstore::ports::{Delivery, DeliveryDone, NoListener, RaftMessage, SendError, Transport};
use raftstore::snapshot::{SnapshotFiles, SnapshotKey};
use raftstore::transport::frame_bytes;
use raftstore::{
    Clock, Epoch, LogIndex, MonoTime, PeerId, PeerMeta, PeerRole, ProposeError, Region, RegionContext, RegionId,
    StoreConfig, StoreCore, StoreHandle, StoreId, StoreParts,
};

pub(crate) type Handle = StoreHandle<MemoryStore>;

/// Virtual time, shared by all stores.
pub(crate) struct VirtualClock(AtomicU64);

impl Clock for VirtualClock {
    fn now(&self) -> MonoTime {
        MonoTime::from_nanos(self.0.load(Ordering::SeqCst))
    }
}

/// Messages and snapshots in flight.
#[derive(Default)]
pub(crate) struct Wire {
    pub(crate) messages: Mutex<VecDeque<RaftMessage>>,
    snapshots: Mutex<VecDeque<(RaftMessage, SnapshotKey, DeliveryDone)>>,
    /// Messages refused because they exceed the frame limit.
    pub(crate) too_large: AtomicU64,
    /// Number of messages sent, by kind.
    pub(crate) sent: Mutex<BTreeMap<String, u64>>,
}

/// The frame limit of the production transport.
const FRAME_LIMIT: usize = 16 << 20;

struct WireTransport(Arc<Wire>);

impl Transport for WireTransport {
    fn send(&self, message: RaftMessage) -> Result<(), SendError> {
        let bytes = frame_bytes(&message);
        if bytes > FRAME_LIMIT {
            self.0.too_large.fetch_add(1, Ordering::SeqCst);
            return Err(SendError::TooLarge { bytes, limit: FRAME_LIMIT });
        }
        *self.0.sent.lock().entry(format!("{:?}", message.message.get_msg_type())).or_default() += 1;
        self.0.messages.lock().push_back(message);
        Ok(())
    }

    fn send_snapshot(&self, message: RaftMessage, snapshot: SnapshotKey, done: DeliveryDone) {
        self.0.snapshots.lock().push_back((message, snapshot, done));
    }
}

/// What the receivers of snapshot files do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Receivers {
    /// They take them.
    Ready,
    /// They refuse them.
    Busy,
    /// They take the file so slowly that the sender gives up waiting.
    Slow,
}

/// A node: the state that survives a crash, and the store while it runs.
pub(crate) struct Node {
    id: u64,
    pub(crate) disk: Arc<SimDisk>,
    pub(crate) files: Arc<SimDisk>,
    pub(crate) store: MemoryStore,
    pub(crate) writer: Option<LogWriter>,
    pub(crate) core: Option<StoreCore<MemoryStore>>,
    registry: prometheus::Registry,
}

pub(crate) struct Cluster {
    pub(crate) clock: Arc<VirtualClock>,
    pub(crate) wire: Arc<Wire>,
    pub(crate) nodes: BTreeMap<u64, Node>,
    pub(crate) config: StoreConfig,
    pub(crate) log: LogOptions,
    pub(crate) regions: Vec<Region>,
    /// Stores that neither send nor receive.
    pub(crate) isolated: BTreeSet<u64>,
    /// Messages that match are held back.
    pub(crate) hold: fn(&RaftMessage) -> bool,
    pub(crate) held: Vec<RaftMessage>,
    /// Stores whose apply is paused.
    pub(crate) apply_paused: BTreeSet<u64>,
    /// Stores whose snapshot workers are paused, in the middle of a build or before an installation.
    pub(crate) builds_paused: BTreeSet<u64>,
    pub(crate) installs_paused: BTreeSet<u64>,
    /// Stores whose log reader is paused.
    pub(crate) log_reads_paused: BTreeSet<u64>,
    /// Stores whose log is paused.
    pub(crate) log_paused: BTreeSet<u64>,
    /// What receivers of snapshot files do.
    pub(crate) receivers: Receivers,
    /// Number of snapshots sent, and of files that were copied for them.
    pub(crate) snapshots_sent: usize,
    pub(crate) files_copied: usize,
    lives: u64,
}

pub(crate) const KEY: &[u8] = b"k";

/// Regions 1 (`[, m)`) and 2 (`[m, )`) with a voter on each of `stores` stores.
pub(crate) fn regions(stores: u64) -> Vec<Region> {
    let region = |id: u64, start: &[u8], end: &[u8]| {
        let peer =
            |store| PeerMeta { id: PeerId::new(id * 10 + store), store: StoreId::new(store), role: PeerRole::Voter };
        let epoch = Epoch { conf_ver: 1, version: 1 };
        let peers = (1..=stores).map(peer).collect();
        Region { id: RegionId::new(id), start: start.to_vec(), end: end.to_vec(), epoch, peers }
    };
    vec![region(1, b"", b"m"), region(2, b"m", b"")]
}

pub(crate) fn put(key: &[u8], value: &[u8]) -> WriteBatch {
    let mut batch = WriteBatch::new();
    batch.put(Cf::Default, key, value);
    batch
}

impl Cluster {
    pub(crate) fn new(stores: u64) -> Cluster {
        Cluster::with_config(stores, StoreConfig::default())
    }

    pub(crate) fn with_config(stores: u64, config: StoreConfig) -> Cluster {
        Cluster::with_log(stores, config, LogOptions::default())
    }

    /// A cluster with these log settings.
    pub(crate) fn with_log(stores: u64, config: StoreConfig, log: LogOptions) -> Cluster {
        Cluster::with_regions(stores, config, log, regions(stores))
    }

    /// A cluster with these regions.
    pub(crate) fn with_regions(stores: u64, config: StoreConfig, log: LogOptions, regions: Vec<Region>) -> Cluster {
        let mut cluster = Cluster {
            clock: Arc::new(VirtualClock(AtomicU64::new(1_000_000_000))),
            wire: Arc::default(),
            nodes: BTreeMap::new(),
            config,
            log,
            regions,
            isolated: BTreeSet::new(),
            hold: |_| false,
            held: Vec::new(),
            apply_paused: BTreeSet::new(),
            builds_paused: BTreeSet::new(),
            installs_paused: BTreeSet::new(),
            log_reads_paused: BTreeSet::new(),
            log_paused: BTreeSet::new(),
            receivers: Receivers::Ready,
            snapshots_sent: 0,
            files_copied: 0,
            lives: 0,
        };
        for id in 1..=stores {
            let (disk, files, store) = (SimDisk::new(), SimDisk::new(), MemoryStore::new());
            let registry = prometheus::Registry::new();
            cluster.nodes.insert(id, Node { id, disk, files, store, writer: None, core: None, registry });
            cluster.start(id);
        }
        cluster
    }

    /// Opens a node on its disks.
    pub(crate) fn start(&mut self, id: u64) {
        self.try_start(id).unwrap();
    }

    pub(crate) fn try_start(&mut self, id: u64) -> Result<(), raftstore::OpenError> {
        self.lives += 1;
        let seed = id * 1000 + self.lives;
        let node = self.nodes.get_mut(&id).unwrap();
        node.registry = prometheus::Registry::new();
        let options = LogOptions { identity: Some(id.into()), ..self.log.clone() };
        let (log, writer, _) = LogEngine::open_driven(node.disk.session(), options).unwrap();
        raftstore::bootstrap(&node.store, &log, &self.regions)?;
        let parts = StoreParts {
            store_id: StoreId::new(id),
            config: self.config.clone(),
            store: node.store.clone(),
            log,
            snapshots: SnapshotFiles::open(node.files.session()).unwrap(),
            transport: Arc::new(WireTransport(Arc::clone(&self.wire))),
            listener: Arc::new(NoListener),
            clock: Arc::clone(&self.clock) as Arc<dyn Clock>,
            seed,
            registry: node.registry.clone(),
        };
        node.core = Some(StoreCore::open(parts, self.clock.now())?);
        node.writer = Some(writer);
        Ok(())
    }

    /// Power loss: everything not durable is lost.
    pub(crate) fn crash(&mut self, id: u64, seed: u64) {
        let node = self.nodes.get_mut(&id).unwrap();
        (node.core, node.writer) = (None, None);
        node.disk.crash(seed);
        node.files.crash(seed);
        node.store.crash();
    }

    pub(crate) fn now(&self) -> MonoTime {
        self.clock.now()
    }

    pub(crate) fn handle(&self, id: u64) -> Handle {
        self.nodes[&id].core.as_ref().unwrap().handle()
    }

    /// Runs all nodes and the network until nothing happens any more.
    pub(crate) fn settle(&mut self) {
        for _ in 0..10_000 {
            if !self.round() {
                return;
            }
        }
        panic!("the cluster does not settle");
    }

    /// Delivers every message in flight, then runs one turn of each node. Returns whether anything happened.
    pub(crate) fn round(&mut self) -> bool {
        let mut busy = self.deliver();
        for node in self.nodes.values_mut() {
            let paused = Paused {
                apply: self.apply_paused.contains(&node.id),
                builds: self.builds_paused.contains(&node.id),
                installs: self.installs_paused.contains(&node.id),
                log: self.log_paused.contains(&node.id),
                log_reads: self.log_reads_paused.contains(&node.id),
            };
            busy |= node.turn(&*self.clock, paused);
        }
        busy
    }

    /// Runs one turn of a store loop and nothing else.
    pub(crate) fn store_turn(&mut self, id: u64) {
        let clock = Arc::clone(&self.clock);
        self.nodes.get_mut(&id).unwrap().core.as_mut().unwrap().store_turn(&*clock);
    }

    /// A counter or gauge of a store; `label` selects one of a labelled counter.
    pub(crate) fn metric(&self, store: u64, name: &str, label: Option<&str>) -> f64 {
        let families = self.nodes[&store].registry.gather();
        let family = families.iter().find(|family| family.name() == name);
        let mut metrics = family.into_iter().flat_map(|family| family.get_metric());
        let found = metrics.find(|m| label.is_none_or(|label| m.get_label().iter().any(|l| l.value() == label)));
        found.map_or(0.0, |m| m.get_counter().get_value() + m.get_gauge().get_value())
    }

    /// Delivers every message in flight.
    pub(crate) fn deliver(&mut self) -> bool {
        let messages: Vec<_> = self.wire.messages.lock().drain(..).collect();
        let snapshots: Vec<_> = self.wire.snapshots.lock().drain(..).collect();
        let busy = !messages.is_empty() || !snapshots.is_empty();
        for message in messages {
            if (self.hold)(&message) {
                self.held.push(message);
            } else {
                self.deliver_one(message);
            }
        }
        self.snapshots_sent += snapshots.len();
        for (message, key, done) in snapshots {
            let (from, to) = (message.from.store.get(), message.to.store.get());
            let cut = self.isolated.contains(&from) || self.isolated.contains(&to);
            let away = cut || self.receivers == Receivers::Busy || self.nodes[&to].core.is_none();
            let delivery = match away {
                true => Delivery::Busy,
                false => self.copy_snapshot(from, to, key),
            };
            if delivery == Delivery::Delivered && (self.hold)(&message) {
                self.held.push(message);
            } else if delivery == Delivery::Delivered {
                self.deliver_one(message);
            }
            done(delivery);
        }
        busy
    }

    pub(crate) fn deliver_one(&mut self, message: RaftMessage) {
        let (from, to) = (message.from.store.get(), message.to.store.get());
        if self.isolated.contains(&from) || self.isolated.contains(&to) {
            return;
        }
        if let Some(core) = self.nodes.get(&to).and_then(|n| n.core.as_ref()) {
            let _ = core.handle().deliver(message);
        }
    }

    /// Copies a file as the transport does.
    fn copy_snapshot(&mut self, from: u64, to: u64, key: SnapshotKey) -> Delivery {
        let files = |id: u64| SnapshotFiles::open(self.nodes[&id].files.session()).unwrap();
        let (source, target) = (files(from), files(to));
        if target.contains(key) {
            return Delivery::Delivered;
        }
        self.files_copied += 1;
        let mut writer = target.receive(key).unwrap();
        let mut offset = 0;
        loop {
            let Ok(bytes) = source.read(key, offset, 1000) else { return Delivery::Damaged };
            if bytes.is_empty() {
                break;
            }
            offset += bytes.len() as u64;
            writer.write(&bytes).unwrap();
        }
        match writer.finish() {
            Ok(()) if self.receivers == Receivers::Slow => Delivery::Busy,
            Ok(()) => Delivery::Delivered,
            Err(_) => Delivery::Damaged,
        }
    }

    /// Advances the clock in steps of a fifth of a tick and runs everything.
    pub(crate) fn run_for(&mut self, time: Duration) {
        let end = self.now().plus(time);
        let step = self.config.tick_interval / 5;
        while self.now() < end {
            self.advance(step);
            self.settle();
        }
    }

    pub(crate) fn advance(&self, by: Duration) {
        self.clock.0.fetch_add(u64::try_from(by.as_nanos()).unwrap(), Ordering::SeqCst);
    }

    /// Runs until `condition` holds, for at most a minute of virtual time.
    pub(crate) fn run_until(&mut self, what: &str, mut condition: impl FnMut(&Cluster) -> bool) {
        for _ in 0..3000 {
            if condition(self) {
                return;
            }
            self.run_for(self.config.tick_interval / 5);
        }
        panic!("did not happen: {what}");
    }

    /// Waits for a store that leads a region and may evaluate.
    pub(crate) fn leader(&mut self, region: u64) -> u64 {
        let mut leader = 0;
        self.run_until("a leader", |cluster| {
            let ctx = cluster.ctx(region);
            let leads = |n: &&Node| n.core.as_ref().is_some_and(|c| c.handle().evaluate(ctx).is_ok());
            let live = cluster.nodes.values().filter(|n| !cluster.isolated.contains(&n.id));
            leader = live.into_iter().find(leads).map_or(0, |n| n.id);
            leader != 0
        });
        leader
    }

    /// Moves the leadership of a region to a store.
    pub(crate) fn lead(&mut self, region: u64, store: u64) {
        let leader = self.leader(region);
        if leader != store {
            self.handle(leader).transfer_leader(RegionId::new(region), StoreId::new(store)).unwrap();
        }
        let ctx = self.ctx(region);
        self.run_until("leadership to move", |cluster| cluster.handle(store).evaluate(ctx).is_ok());
        self.run_until("a lease", |cluster| matches!(cluster.handle(store).try_read(ctx), Ok(Some(_))));
    }

    pub(crate) fn ctx(&self, region: u64) -> RegionContext {
        let region = self.regions.iter().find(|r| r.id.get() == region).unwrap();
        RegionContext { region: region.id, epoch: region.epoch }
    }

    /// Starts a write at a store; poll it with [`poll`].
    pub(crate) fn start_write(
        &self,
        store: u64,
        region: u64,
        batch: WriteBatch,
    ) -> Task<Result<LogIndex, ProposeError>> {
        let handle = self.handle(store);
        let ctx = self.ctx(region);
        let mut task = Task::new(async move {
            let basis = handle.evaluate(ctx)?;
            handle.propose(&basis, batch).await
        });
        task.start();
        task
    }

    /// Writes through the leader and waits for the acknowledgement.
    pub(crate) fn write(&mut self, region: u64, key: &[u8], value: &[u8]) {
        let leader = self.leader(region);
        let mut task = self.start_write(leader, region, put(key, value));
        self.finish(&mut task).unwrap();
    }

    /// Runs until a task has finished.
    pub(crate) fn finish<T>(&mut self, task: &mut Task<T>) -> T {
        for _ in 0..3000 {
            if let Some(result) = task.poll() {
                return result;
            }
            self.run_for(self.config.tick_interval / 5);
        }
        panic!("the task does not finish");
    }

    /// The value in a store's own data, whether or not the store leads.
    pub(crate) fn stored(&self, store: u64, key: &[u8]) -> Option<Vec<u8>> {
        self.nodes[&store].store.snapshot().get(Cf::Default, key).unwrap()
    }

    /// Waits until all running stores hold a value.
    pub(crate) fn wait_stored(&mut self, key: &[u8], value: &[u8]) {
        self.run_until("the value on every store", |cluster| {
            let running = cluster.nodes.values().filter(|n| n.core.is_some() && !cluster.isolated.contains(&n.id));
            running.into_iter().all(|n| cluster.stored(n.id, key).as_deref() == Some(value))
        });
    }
}

/// The parts of a node that do not run.
#[derive(Clone, Copy, Default)]
pub(crate) struct Paused {
    pub(crate) apply: bool,
    pub(crate) builds: bool,
    pub(crate) installs: bool,
    pub(crate) log: bool,
    pub(crate) log_reads: bool,
}

impl Node {
    pub(crate) fn turn(&mut self, clock: &dyn Clock, paused: Paused) -> bool {
        let Some(core) = self.core.as_mut() else { return false };
        let mut busy = core.store_turn(clock);
        busy |= !paused.log && self.writer.as_mut().is_some_and(|w| w.turn() > 0);
        busy |= !paused.apply && core.apply_turn();
        busy |= !paused.log_reads && core.log_read_turn();
        busy |= !paused.builds && core.build_turn();
        busy |= !paused.installs && core.install_turn();
        busy | core.background_turn()
    }
}

/// A future that is polled by hand.
pub(crate) struct Task<T> {
    future: Option<Pin<Box<dyn Future<Output = T>>>>,
    result: Option<T>,
}

impl<T> Task<T> {
    pub(crate) fn new(future: impl Future<Output = T> + 'static) -> Task<T> {
        Task { future: Some(Box::pin(future)), result: None }
    }

    /// Polls the future.
    pub(crate) fn start(&mut self) {
        let Some(future) = self.future.as_mut() else { return };
        if let Poll::Ready(result) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            (self.future, self.result) = (None, Some(result));
        }
    }

    /// The result, once.
    pub(crate) fn poll(&mut self) -> Option<T> {
        self.start();
        self.result.take()
    }
}

/// Whether a message is of this kind.
pub(crate) fn is(message: &RaftMessage, kind: MessageType) -> bool {
    message.message.get_msg_type() == kind
}

/// Polls stores that run on threads, for at most half a minute.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..6000 {
        if holds() {
            return;
        }
        std::thread::park_timeout(Duration::from_millis(5));
    }
    panic!("did not happen: {what}");
}

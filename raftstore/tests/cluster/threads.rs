//! Stores on threads: a build or an installation that takes for ever delays no other region.
//!
//! A gate stops the worker in the middle: a build when it creates its file, an installation when it replaces the data.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use engine::disk::{Disk, DiskFile, SimDisk};
use engine::log::{GroupId, LogEngine, LogOptions};
use engine::store::memory::{MemorySnapshot, MemoryStore};
use engine::store::{NewestReader, Reader, Result, Store, Visit};
use engine::{Cf, WriteBatch};
use parking_lot::{Condvar, Mutex};
use raftstore::ports::{Delivery, DeliveryDone, NoListener, RaftMessage, SendError, Transport};
use raftstore::snapshot::{SnapshotFiles, SnapshotKey};
use raftstore::{RealClock, RegionContext, RegionId, StoreConfig, StoreHandle, StoreId, StoreParts, StoreRuntime};

use crate::harness::{put, regions, until};

/// A door; whoever comes while it is closed waits.
#[derive(Default)]
struct Gate {
    /// Whether it is closed, and how many wait.
    state: Mutex<(bool, usize)>,
    changed: Condvar,
}

impl Gate {
    fn pass(&self) {
        let mut state = self.state.lock();
        state.1 += 1;
        self.changed.notify_all();
        // Bounded, so that a failed test ends.
        while state.0 && !self.changed.wait_for(&mut state, Duration::from_secs(60)).timed_out() {}
        state.1 -= 1;
    }

    fn set_closed(&self, closed: bool) {
        self.state.lock().0 = closed;
        self.changed.notify_all();
    }

    fn is_waited_for(&self) -> bool {
        let state = self.state.lock();
        state.0 && state.1 > 0
    }
}

/// A disk whose files are created through a gate.
struct GatedDisk {
    disk: Arc<SimDisk>,
    gate: Arc<Gate>,
}

impl Disk for GatedDisk {
    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.disk.open(name)
    }
    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.gate.pass();
        self.disk.create(name)
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.rename(from, to)
    }
    fn remove(&self, name: &str) -> io::Result<()> {
        self.disk.remove(name)
    }
    fn list(&self) -> io::Result<Vec<String>> {
        self.disk.list()
    }
    fn sync_dir(&self) -> io::Result<()> {
        self.disk.sync_dir()
    }
}

/// A store whose ranges are replaced through a gate.
#[derive(Clone)]
struct GatedStore {
    store: MemoryStore,
    gate: Arc<Gate>,
}

impl NewestReader for GatedStore {
    fn get_newest(&self, cf: Cf, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.store.get_newest(cf, key)
    }
    fn visit_versions(&self, cf: Cf, prefix: &[u8], from: &[u8], visit: &mut Visit<'_>) -> Result<()> {
        self.store.visit_versions(cf, prefix, from, visit)
    }
}

impl Store for GatedStore {
    type Snapshot = MemorySnapshot;

    fn snapshot(&self) -> MemorySnapshot {
        self.store.snapshot()
    }
    fn cached(&self) -> impl Reader + '_ {
        self.store.cached()
    }
    fn write(&self, batch: &WriteBatch) -> Result<()> {
        self.store.write(batch)
    }
    fn flush(&self) -> Result<()> {
        self.store.flush()
    }
    fn get_flushed(&self, cf: Cf, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.store.get_flushed(cf, key)
    }
    fn replace_range(
        &self,
        start: &[u8],
        end: &[u8],
        rows: &mut dyn Iterator<Item = Result<(Cf, Vec<u8>, Vec<u8>)>>,
        last: &WriteBatch,
    ) -> Result<()> {
        self.gate.pass();
        self.store.replace_range(start, end, rows, last)
    }
    fn compact_range(&self, cf: Cf, start: &[u8], end: &[u8]) -> Result<()> {
        self.store.compact_range(cf, start, end)
    }
    fn divide(&self, cf: Cf, start: &[u8], end: &[u8], bytes: u64) -> Result<Vec<Vec<u8>>> {
        self.store.divide(cf, start, end, bytes)
    }
    fn key_at(&self, cf: Cf, start: &[u8], end: &[u8], part: f64) -> Result<Vec<u8>> {
        self.store.key_at(cf, start, end, part)
    }
    fn bytes_on_disk(&self, cf: Cf, start: &[u8], end: &[u8]) -> Result<u64> {
        self.store.bytes_on_disk(cf, start, end)
    }
    fn is_strained(&self) -> bool {
        self.store.is_strained()
    }
}

type Handle = StoreHandle<GatedStore>;

/// Connects the stores. Store 3 can be cut off from region 1 alone.
#[derive(Default)]
struct Switch {
    ends: Mutex<BTreeMap<StoreId, (Handle, SnapshotFiles)>>,
    cut: AtomicBool,
}

struct Port(Arc<Switch>, SnapshotFiles);

impl Switch {
    fn deliver(&self, message: RaftMessage) -> std::result::Result<(), SendError> {
        let third = [message.from.store, message.to.store].contains(&StoreId::new(3));
        if third && message.region == RegionId::new(1) && self.cut.load(Ordering::SeqCst) {
            return Ok(());
        }
        let handle = self.ends.lock().get(&message.to.store).map(|(handle, _)| handle.clone());
        handle.ok_or(SendError::UnknownStore)?.deliver(message).map_err(|_| SendError::Unreachable)
    }
}

impl Transport for Port {
    fn send(&self, message: RaftMessage) -> std::result::Result<(), SendError> {
        self.0.deliver(message)
    }

    fn send_snapshot(&self, message: RaftMessage, key: SnapshotKey, done: DeliveryDone) {
        let (switch, from) = (Arc::clone(&self.0), self.1.clone());
        std::thread::spawn(move || {
            let to = switch.ends.lock().get(&message.to.store).map(|(_, files)| files.clone());
            let copied = to.is_some_and(|to| copy(&from, &to, key).is_ok());
            let delivered = copied && switch.deliver(message).is_ok();
            done(if delivered { Delivery::Delivered } else { Delivery::Busy });
        });
    }
}

fn copy(from: &SnapshotFiles, to: &SnapshotFiles, key: SnapshotKey) -> Result<()> {
    let mut writer = to.receive(key)?;
    writer.write(&from.read(key, 0, usize::MAX)?)?;
    writer.finish()
}

struct Node {
    runtime: Option<StoreRuntime<GatedStore>>,
    handle: Handle,
    log: LogEngine,
    store: MemoryStore,
    builds: Arc<Gate>,
    installs: Arc<Gate>,
}

fn start(id: u64, switch: &Arc<Switch>) -> Node {
    let (builds, installs) = (Arc::<Gate>::default(), Arc::<Gate>::default());
    let store = GatedStore { store: MemoryStore::new(), gate: Arc::clone(&installs) };
    let files = SnapshotFiles::open(Arc::new(GatedDisk { disk: SimDisk::new(), gate: Arc::clone(&builds) })).unwrap();
    let options = LogOptions { prefill_bytes: 0, ..LogOptions::default() };
    let (log, _) = LogEngine::open(SimDisk::new().session(), options).unwrap();
    raftstore::bootstrap(&store, &log, &regions(3)).unwrap();
    let config = StoreConfig {
        tick_interval: Duration::from_millis(20),
        max_lease: Duration::from_millis(160),
        log_gc_ticks: 1,
        log_tail_entries: 2,
        log_lag_entries: 5,
        flush_log_bytes: 1,
        ..StoreConfig::default()
    };
    let parts = StoreParts {
        store_id: StoreId::new(id),
        config,
        store: store.clone(),
        log: log.clone(),
        snapshots: files.clone(),
        transport: Arc::new(Port(Arc::clone(switch), files.clone())),
        listener: Arc::new(NoListener),
        clock: Arc::new(RealClock::new()),
        seed: id,
        registry: prometheus::Registry::new(),
    };
    let runtime = StoreRuntime::start(parts).unwrap();
    let handle = runtime.handle();
    switch.ends.lock().insert(StoreId::new(id), (handle.clone(), files));
    Node { runtime: Some(runtime), handle, log, store: store.store, builds, installs }
}

fn ctx(region: u64) -> RegionContext {
    RegionContext { region: RegionId::new(region), epoch: regions(3)[0].epoch }
}

/// Writes through whichever store leads.
fn write(nodes: &BTreeMap<u64, Node>, region: u64, key: &[u8], value: &[u8]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    until("a write", || {
        let led = nodes.values().find_map(|node| node.handle.evaluate(ctx(region)).ok().map(|basis| (node, basis)));
        let Some((node, basis)) = led else { return false };
        runtime.block_on(node.handle.propose(&basis, put(key, value))).is_ok()
    });
}

/// Makes store 1 lead a region.
fn lead(nodes: &BTreeMap<u64, Node>, region: u64) {
    until("store 1 to lead", || {
        for node in nodes.values().skip(1) {
            // Refused unless the store leads.
            drop(node.handle.transfer_leader(RegionId::new(region), StoreId::new(1)));
        }
        nodes[&1].handle.evaluate(ctx(region)).is_ok()
    });
}

/// Writes a value to region 2 and waits until a store has it on disk.
fn write_and_flush(nodes: &BTreeMap<u64, Node>, store: u64, value: &[u8]) {
    write(nodes, 2, b"other", value);
    until("a value of the other region on disk", || {
        // A store flushes only after further writes.
        write(nodes, 2, b"more", value);
        nodes[&store].store.get_flushed(Cf::Default, b"other").unwrap().as_deref() == Some(value)
    });
}

#[test]
fn stopped_workers_delay_nobody() {
    let switch = Arc::<Switch>::default();
    let mut nodes: BTreeMap<u64, Node> = (1..=3).map(|id| (id, start(id, &switch))).collect();
    lead(&nodes, 1);
    lead(&nodes, 2);
    switch.cut.store(true, Ordering::SeqCst);
    for value in 0..60u8 {
        write(&nodes, 1, b"k", &[value]);
    }
    until("the log to be truncated", || nodes[&1].log.bounds(GroupId(1)).is_some_and(|bounds| bounds.first > 40));

    // A build stops in the middle.
    nodes[&1].builds.set_closed(true);
    switch.cut.store(false, Ordering::SeqCst);
    until("a build", || nodes[&1].builds.is_waited_for());
    write_and_flush(&nodes, 1, b"build");
    write(&nodes, 1, b"k", b"and the same region");

    // An installation stops in the middle.
    nodes[&3].installs.set_closed(true);
    nodes[&1].builds.set_closed(false);
    until("an installation", || nodes[&3].installs.is_waited_for());
    write_and_flush(&nodes, 3, b"installation");

    // The leader of both regions stops.
    let leader = nodes.remove(&1).unwrap();
    leader.runtime.unwrap().stop().unwrap();
    switch.ends.lock().remove(&StoreId::new(1));
    write_and_flush(&nodes, 3, b"other leader");
    assert!(nodes[&3].installs.is_waited_for(), "still installing");
    assert_ne!(nodes[&3].store.snapshot().get(Cf::Default, b"k").unwrap().as_deref(), Some(&[59u8][..]));

    nodes[&3].installs.set_closed(false);
    write(&nodes, 1, b"k", b"last");
    until("the last value", || nodes[&3].store.snapshot().get(Cf::Default, b"k").unwrap().as_deref() == Some(b"last"));
    for node in nodes.into_values() {
        node.runtime.unwrap().stop().unwrap();
    }
}

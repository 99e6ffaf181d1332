//! A simulated store: disks that survive crashes, and the production code that runs on them, one life after another.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use engine::Cf;
use engine::disk::SimDisk;
use engine::log::{GroupId, LogEngine, LogError, LogOptions, LogWriter};
use engine::store::memory::MemoryStore;
use engine::store::{Reader, Store};
use parking_lot::Mutex;
use prometheus::Registry;

use raftstore::assembly::{StoreCore, StoreParts, bootstrap};
use raftstore::ports::RoleListener;
use raftstore::records;
use raftstore::snapshot::SnapshotFiles;
use raftstore::{Clock, LogIndex, MonoTime, OpenError, Region, RegionId, StoreHandle, StoreId, Term};

use crate::network::{Cuts, Outbox};
use crate::options::{Options, RegionHash};
use crate::preempted::preemption_point;

/// Virtual nanoseconds since the start, which all clocks of a run follow. The world sets it. A load whose calls come
/// between two events sets it before each call.
#[derive(Debug, Default)]
pub struct VirtualTime {
    now: AtomicU64,
}

impl VirtualTime {
    /// Sets the time. It never goes back.
    pub fn set(&self, now: u64) {
        self.now.fetch_max(now, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }
}

/// A store's clock: virtual time with a drift and an origin of its own.
pub(crate) struct SimClock {
    time: Arc<VirtualTime>,
    origin: u64,
    drift_ppm: i64,
}

impl Clock for SimClock {
    fn now(&self) -> MonoTime {
        preemption_point();
        let now = self.time.get();
        let drift = i128::from(now) * i128::from(self.drift_ppm) / 1_000_000;
        let local = i128::from(self.origin) + i128::from(now) + drift;
        MonoTime::from_nanos(u64::try_from(local).unwrap_or(0))
    }
}

/// Records leadership events; the world reads them after each turn.
#[derive(Default)]
pub(crate) struct Roles {
    announced: Mutex<Vec<(RegionId, Term, bool)>>,
}

impl Roles {
    /// The events since the last call: region, term, whether it leads.
    pub(crate) fn take(&self) -> Vec<(RegionId, Term, bool)> {
        std::mem::take(&mut self.announced.lock())
    }
}

impl RoleListener for Roles {
    fn on_leader(&self, region: RegionId, term: Term) {
        self.announced.lock().push((region, term, true));
    }
    fn on_step_down(&self, region: RegionId, term: Term) {
        self.announced.lock().push((region, term, false));
    }
}

/// The state that a crash destroys.
pub struct Live {
    pub(crate) core: StoreCore<MemoryStore>,
    pub(crate) writer: LogWriter,
    pub(crate) log: LogEngine,
    pub(crate) snapshots: SnapshotFiles,
    /// How callers reach the store.
    pub handle: StoreHandle<MemoryStore>,
    pub(crate) outbox: Arc<Outbox>,
    pub(crate) roles: Arc<Roles>,
    /// The last applied entry compared with the other replicas, per region.
    pub(crate) compared: BTreeMap<RegionId, u64>,
    /// Indexes of the snapshots received in this life, per region, with the number of writes confirmed in the region
    /// when each arrived last. One that arrives during the installation of another is not installed.
    pub(crate) delivered: BTreeMap<RegionId, BTreeMap<u64, u64>>,
    /// While a snapshot is built: the number of writes confirmed in each region before.
    pub(crate) building: Option<BTreeMap<RegionId, u64>>,
}

/// The turns that are scheduled, so that each is scheduled once.
#[derive(Default)]
pub(crate) struct Scheduled {
    pub(crate) store: bool,
    pub(crate) log: bool,
    pub(crate) apply: bool,
    pub(crate) background: bool,
    pub(crate) build: bool,
    pub(crate) install: bool,
    pub(crate) log_read: bool,
}

/// See the module documentation.
pub struct Node {
    /// The store.
    pub id: StoreId,
    pub(crate) log_disk: Arc<SimDisk>,
    pub(crate) snapshot_disk: Arc<SimDisk>,
    /// The replicated state. It survives a crash up to its last flush.
    pub store: MemoryStore,
    pub(crate) clock: Arc<SimClock>,
    /// Number of the current life; events of earlier lives are void.
    pub life: u64,
    /// `None` while the store is down.
    pub live: Option<Live>,
    pub(crate) scheduled: Scheduled,
    /// The store is paused.
    pub paused: bool,
    /// Power is lost once the disks have made more changes than this: (log, snapshots).
    pub(crate) power: Option<(u64, u64)>,
    /// A disk or store failure is armed and has not happened yet.
    pub(crate) armed: bool,
    /// Observed as poisoned; a restart is scheduled.
    pub(crate) poisoned: bool,
    /// The log's disk is full.
    pub(crate) full: bool,
    /// Slowdown factor of the log's disk.
    pub(crate) slowness: u64,
    /// Longest delay of every second sync of the log in nanoseconds; 0 for none.
    pub(crate) slow_sync: u64,
    /// A sync under way that keeps the store from serving ends at this virtual time.
    pub(crate) stuck_until: u64,
    /// Whether the next sync of a log with slow syncs is slow.
    pub(crate) next_is_slow: bool,
    /// Whether the scheduled turn of the log is slow.
    pub(crate) sync_is_slow: bool,
    /// Longest delay of an apply turn in nanoseconds; 0 for none.
    pub(crate) slow_apply: u64,
    /// Longest delay between two stages of a store turn in nanoseconds; 0 for none.
    pub(crate) slow_turns: u64,
    /// Completed stages of the current turn.
    pub(crate) stages: u32,
    /// Delay of the next turn between deciding and carrying out.
    pub(crate) hold: Option<u64>,
}

impl Node {
    /// A store that has never been started.
    pub(crate) fn new(id: StoreId, drift_ppm: i64, time: Arc<VirtualTime>) -> Node {
        let origin = 1_000_000_000 * (1 + id.get());
        Node {
            id,
            log_disk: SimDisk::new(),
            snapshot_disk: SimDisk::new(),
            store: MemoryStore::new(),
            clock: Arc::new(SimClock { time, origin, drift_ppm }),
            life: 0,
            live: None,
            scheduled: Scheduled::default(),
            paused: false,
            power: None,
            armed: false,
            poisoned: false,
            full: false,
            slowness: 1,
            slow_sync: 0,
            stuck_until: 0,
            next_is_slow: false,
            sync_is_slow: false,
            slow_apply: 0,
            slow_turns: 0,
            stages: 0,
            hold: None,
        }
    }

    /// Whether the store runs and is not paused.
    pub fn is_up(&self) -> bool {
        self.live.is_some() && !self.paused
    }

    /// Starts the production code on the disks. `seed` determines election timeouts.
    pub(crate) fn open(&mut self, options: &Options, cuts: Cuts, seed: u64) -> Result<(), OpenError> {
        self.log_disk.set_lying_sync(options.disk.lies);
        // Padded groups soon fill a small disk, which makes the full-disk fault effective.
        let log_options = LogOptions {
            file_bytes: options.log_file_bytes,
            align_bytes: 4096,
            recovery_threads: 1,
            ..LogOptions::default()
        };
        let (log, writer, _) = LogEngine::open_driven(self.log_disk.session(), log_options)?;
        let snapshots = SnapshotFiles::open(self.snapshot_disk.session())?;
        let here = options.regions.iter().filter(|region| region.peer_on(self.id).is_some());
        bootstrap(&self.store, &log, &here.cloned().collect::<Vec<_>>())?;
        let outbox = Outbox::new(self.id, cuts, &options.network);
        let roles = Arc::new(Roles::default());
        let parts = StoreParts {
            store_id: self.id,
            config: options.config.clone(),
            store: self.store.clone(),
            log: log.clone(),
            snapshots: snapshots.clone(),
            transport: Arc::<Outbox>::clone(&outbox),
            listener: Arc::<Roles>::clone(&roles),
            clock: Arc::<SimClock>::clone(&self.clock),
            seed,
            registry: Registry::new(),
        };
        let core = StoreCore::open(parts, self.clock.now())?;
        let handle = core.handle();
        self.life += 1;
        self.stages = 0;
        self.scheduled = Scheduled::default();
        self.live = Some(Live {
            core,
            writer,
            log,
            snapshots,
            handle,
            outbox,
            roles,
            compared: BTreeMap::new(),
            delivered: BTreeMap::new(),
            building: None,
        });
        Ok(())
    }

    /// Power loss: memory is lost; disks keep synced data and some of the rest.
    pub(crate) fn crash(&mut self, seed: u64) {
        self.live = None;
        self.stuck_until = 0;
        self.paused = false;
        self.power = None;
        self.armed = false;
        self.poisoned = false;
        self.log_disk.crash(seed);
        self.snapshot_disk.crash(seed ^ 1);
        self.store.crash();
    }

    /// Whether the armed power loss is due.
    pub(crate) fn power_is_gone(&self) -> bool {
        let Some((log, snapshots)) = self.power else { return false };
        self.log_disk.changes() > log || self.snapshot_disk.changes() > snapshots
    }

    /// Whether the replica has begun to install a snapshot: its data is undefined, and its log may hold entries that
    /// were never committed.
    pub(crate) fn is_installing(&self, region: RegionId) -> bool {
        let intent = |live: &Live| live.log.get(GroupId(region.get()), records::INTENT_KEY);
        self.live.as_ref().is_some_and(|live| intent(live).is_ok_and(|intent| intent.is_some()))
    }

    /// Applied entries in the log that were not compared yet, as (index, hash).
    pub(crate) fn new_entries(&mut self, region: RegionId, applied: LogIndex) -> Vec<(LogIndex, u64)> {
        let Some(live) = &mut self.live else { return Vec::new() };
        let group = GroupId(region.get());
        let Some(bounds) = live.log.bounds(group) else { return Vec::new() };
        // Until the log restarts after a snapshot, it may hold entries that were never committed.
        let installed = live.delivered.get(&region).and_then(|all| all.range(..=applied.get()).next_back());
        if installed.is_some_and(|(snapshot, _)| bounds.first <= *snapshot) {
            return Vec::new();
        }
        let compared = live.compared.entry(region).or_default();
        let mut next = (*compared + 1).max(bounds.first);
        let mut found = Vec::new();
        // Applied entries may not be in the local log yet; they are compared later.
        while next <= applied.get().min(bounds.last) {
            match live.log.entry(group, next) {
                Ok(bytes) => found.push((LogIndex::new(next), hash_bytes(FNV, &bytes))),
                Err(LogError::Compacted { first }) => {
                    next = first;
                    continue;
                }
                Err(_) => break,
            }
            next += 1;
        }
        *compared = next - 1;
        found
    }

    /// Hash of a region's data, or of a part of it.
    pub(crate) fn hash_region(
        &self,
        region: &Region,
        hash: Option<RegionHash>,
    ) -> Result<u64, engine::store::StoreError> {
        let snapshot = self.store.snapshot();
        if let Some(hash) = hash {
            return hash(&snapshot, region);
        }
        let mut hash = FNV;
        for cf in Cf::DATA {
            let mut cursor = snapshot.cursor(cf, &region.start, &region.end)?;
            let mut valid = cursor.seek_to_first()?;
            while valid {
                for part in [&[cf.code()], cursor.key(), cursor.value()] {
                    hash = hash_bytes(hash_bytes(hash, &(part.len() as u64).to_le_bytes()), part);
                }
                valid = cursor.next()?;
            }
        }
        Ok(hash)
    }
}

const FNV: u64 = 0xcbf2_9ce4_8422_2325;

fn hash_bytes(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

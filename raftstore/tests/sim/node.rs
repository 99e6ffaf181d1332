//! One simulated store: disks that survive it, and the production code that runs on them, one life after another.

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
use raftstore::snapshot::SnapshotFiles;
use raftstore::{Clock, LogIndex, MonoTime, OpenError, Region, RegionId, StoreHandle, StoreId, Term};

use crate::network::{Cuts, Outbox};
use crate::options::Options;

/// A store's clock: the virtual time, a little faster or slower, from a start of its own.
pub(crate) struct SimClock {
    now: AtomicU64,
    origin: u64,
    drift_ppm: i64,
}

impl SimClock {
    fn set(&self, virtual_now: u64) {
        let drift = i128::from(virtual_now) * i128::from(self.drift_ppm) / 1_000_000;
        let local = i128::from(self.origin) + i128::from(virtual_now) + drift;
        self.now.store(u64::try_from(local).unwrap_or(0), Ordering::Relaxed);
    }
}

impl Clock for SimClock {
    fn now(&self) -> MonoTime {
        MonoTime::from_nanos(self.now.load(Ordering::Relaxed))
    }
}

/// Notes who was told to lead; the world looks at it after each turn.
#[derive(Default)]
pub(crate) struct Roles {
    announced: Mutex<Vec<(RegionId, Term, bool)>>,
}

impl Roles {
    /// What was announced since the last call: region, term, whether it leads.
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

/// What dies in a crash.
pub(crate) struct Live {
    pub(crate) core: StoreCore<MemoryStore>,
    pub(crate) writer: LogWriter,
    pub(crate) log: LogEngine,
    pub(crate) snapshots: SnapshotFiles,
    pub(crate) handle: StoreHandle<MemoryStore>,
    pub(crate) outbox: Arc<Outbox>,
    pub(crate) roles: Arc<Roles>,
    /// Applied entries that were compared with the other replicas', per region.
    pub(crate) compared: BTreeMap<RegionId, u64>,
    /// Index of the last snapshot that came in this life, per region.
    pub(crate) delivered: BTreeMap<RegionId, u64>,
}

/// Which turns are under way, so that each is scheduled once.
#[derive(Default)]
pub(crate) struct Scheduled {
    pub(crate) store: bool,
    pub(crate) log: bool,
    pub(crate) apply: bool,
    pub(crate) background: bool,
}

/// See the module documentation.
pub(crate) struct Node {
    pub(crate) id: StoreId,
    pub(crate) log_disk: Arc<SimDisk>,
    pub(crate) snapshot_disk: Arc<SimDisk>,
    pub(crate) store: MemoryStore,
    pub(crate) clock: Arc<SimClock>,
    /// Grows with every start; events of an earlier life are void.
    pub(crate) life: u64,
    pub(crate) live: Option<Live>,
    pub(crate) scheduled: Scheduled,
    /// Stands still.
    pub(crate) paused: bool,
    /// Clients whose request came while it stood still.
    pub(crate) stalled: Vec<usize>,
    /// Power goes when the disks have made more changes than this: log, snapshots.
    pub(crate) power: Option<(u64, u64)>,
    /// A failure of the disk or store is planned and has not happened.
    pub(crate) armed: bool,
    /// Found poisoned; a restart is on its way.
    pub(crate) poisoned: bool,
    /// The log's disk has no space.
    pub(crate) full: bool,
    /// By how much the log's disk is slowed.
    pub(crate) slowness: u64,
    /// How long a turn of apply may be put off, in nanoseconds; 0 if it is not.
    pub(crate) slow_apply: u64,
    /// How long a turn of the store may be held up between two stages, in nanoseconds; 0 if it is not.
    pub(crate) slow_turns: u64,
    /// Stages of the turn under way that are done.
    pub(crate) stages: u32,
    /// How long the next turn is held up before it carries out what it decided.
    pub(crate) hold: Option<u64>,
}

impl Node {
    /// A store that was never started.
    pub(crate) fn new(id: StoreId, drift_ppm: i64) -> Node {
        let origin = 1_000_000_000 * (1 + id.get());
        Node {
            id,
            log_disk: SimDisk::new(),
            snapshot_disk: SimDisk::new(),
            store: MemoryStore::new(),
            clock: Arc::new(SimClock { now: AtomicU64::new(origin), origin, drift_ppm }),
            life: 0,
            live: None,
            scheduled: Scheduled::default(),
            paused: false,
            stalled: Vec::new(),
            power: None,
            armed: false,
            poisoned: false,
            full: false,
            slowness: 1,
            slow_apply: 0,
            slow_turns: 0,
            stages: 0,
            hold: None,
        }
    }

    /// Whether it runs.
    pub(crate) fn is_up(&self) -> bool {
        self.live.is_some() && !self.paused
    }

    /// Sets its clock.
    pub(crate) fn set_time(&self, virtual_now: u64) {
        self.clock.set(virtual_now);
    }

    /// Starts the production code on what the disks hold. `seed` is for election timeouts.
    pub(crate) fn open(&mut self, options: &Options, cuts: Cuts, seed: u64) -> Result<(), OpenError> {
        self.log_disk.set_lying_sync(options.disk.lies);
        // Padded groups fill a small disk soon: a full one is among the faults.
        let log_options = LogOptions {
            file_bytes: options.log_file_bytes,
            align_bytes: 4096,
            recovery_threads: 1,
            ..LogOptions::default()
        };
        let (log, writer, _) = LogEngine::open_driven(self.log_disk.session(), log_options)?;
        let snapshots = SnapshotFiles::open(self.snapshot_disk.session())?;
        bootstrap(&self.store, &log, &options.regions)?;
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
        });
        Ok(())
    }

    /// Power loss: memory is gone, the disks keep what was synced and some of the rest.
    pub(crate) fn crash(&mut self, seed: u64) {
        self.live = None;
        self.paused = false;
        self.power = None;
        self.armed = false;
        self.poisoned = false;
        self.log_disk.crash(seed);
        self.snapshot_disk.crash(seed ^ 1);
        self.store.crash();
    }

    /// Whether the planned loss of power is due.
    pub(crate) fn power_is_gone(&self) -> bool {
        let Some((log, snapshots)) = self.power else { return false };
        self.log_disk.changes() > log || self.snapshot_disk.changes() > snapshots
    }

    /// Applied entries that are in the log and were not compared yet: index and hash.
    pub(crate) fn new_entries(&mut self, region: RegionId, applied: LogIndex) -> Vec<(LogIndex, u64)> {
        let Some(live) = &mut self.live else { return Vec::new() };
        let group = GroupId(region.get());
        let Some(bounds) = live.log.bounds(group) else { return Vec::new() };
        // Between installing a snapshot and starting the log anew after it, the log holds entries that were never committed.
        let snapshot = live.delivered.get(&region).copied().unwrap_or_default();
        if applied.get() >= snapshot && bounds.first <= snapshot {
            return Vec::new();
        }
        let compared = live.compared.entry(region).or_default();
        let mut next = (*compared + 1).max(bounds.first);
        let mut found = Vec::new();
        // Applied entries may wait for their own disk; they are looked at again later.
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

    /// Hash of the region's data.
    pub(crate) fn hash_region(&self, region: &Region) -> Result<u64, engine::store::StoreError> {
        let snapshot = self.store.snapshot();
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

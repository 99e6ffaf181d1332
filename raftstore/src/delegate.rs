//! The read delegate of a region: proves on any thread, without the store thread, that a read or an evaluation is valid
//! here.
//!
//! The store thread publishes role, term and lease; the apply thread publishes the applied position.
//! [`Delegate::lease_read`] and [`Delegate::evaluate`] contain the proofs. They depend on the order of the steps.
//!
//! The [`Router`] finds the delegate of a region by id or by key.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicU64};

use arc_swap::ArcSwap;

use crate::applied::Applied;
use crate::error::RegionError;
use crate::peer::effects::PeerView;
use crate::records::LogPosition;
use crate::region::{Epoch, Floor, Floors, LogIndex, PeerId, PeerMeta, Region, RegionId, Term};
use crate::time::{Clock, MonoTime};

/// See the module documentation.
///
/// Invariants:
/// 1. `generation` is odd while term, role, descriptor or `serving` change, and differs before and after the change.
/// 2. `lease` is zero unless this replica leads `term`. It is cleared before any of those change.
/// 3. `data` is zero while the replica does not serve or its range changes, and no value returns.
/// 4. The floors never fall, and are those of the applied entries once the write with those entries is done.
pub(crate) struct Delegate {
    region: ArcSwap<Region>,
    generation: AtomicU64,
    term: AtomicU64,
    leader: AtomicU64,
    is_leader: AtomicBool,
    serving: AtomicBool,
    /// End of the lease in nanoseconds, exclusive; 0 for none.
    lease: AtomicU64,
    /// The [`DataGeneration`]; 0 for none.
    data: AtomicU64,
    /// Whether apply has changed the range and the descriptor is that of before.
    is_range_old: AtomicBool,
    changes_range: AtomicBool,
    applied: Applied,
    floors: FloorCell,
    #[cfg(feature = "planted-bugs")]
    planted: Option<crate::config::PlantedBug>,
}

/// The floors of a replica, as readers see them.
#[derive(Debug, Default)]
pub(crate) struct FloorCell {
    writes: AtomicU64,
    reads: AtomicU64,
}

impl FloorCell {
    /// The floor of reads. Who loads it after the data sees every floor up to which that data can be incomplete.
    pub(crate) fn reads(&self) -> Floor {
        Floor::new(self.reads.load(SeqCst))
    }

    pub(crate) fn load(&self) -> Floors {
        // `reads` first: it is not above what `writes` was then, and so not above what it is now.
        let reads = self.reads();
        Floors { writes: Floor::new(self.writes.load(SeqCst)), reads }
    }

    fn raise(&self, floors: Floors) {
        self.writes.fetch_max(floors.writes.get(), SeqCst);
        self.reads.fetch_max(floors.reads.get(), SeqCst);
    }
}

/// A period in which a replica's data changes only because entries are applied: its range stays, no snapshot replaces
/// it, and it is not destroyed. A change of term or leader does not end it. No two periods of a process are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataGeneration(u64);

impl DataGeneration {
    /// The generation with this number, for stores of tests. 0 is none.
    pub const fn new(raw: u64) -> DataGeneration {
        DataGeneration(raw)
    }

    fn next() -> DataGeneration {
        static LAST: AtomicU64 = AtomicU64::new(0);
        DataGeneration(LAST.fetch_add(1, SeqCst) + 1)
    }
}

/// The state of a replica's data, as it was at some moment.
#[derive(Clone, Debug)]
pub struct ReplicaState {
    /// The region's descriptor.
    pub region: Arc<Region>,
    /// What the state belongs to.
    pub generation: DataGeneration,
    /// The last entry that is certainly in the data.
    pub applied: LogIndex,
}

/// The state of the replica under one generation.
pub(crate) struct Permit {
    pub(crate) region: Arc<Region>,
    pub(crate) term: Term,
    generation: u64,
}

impl Delegate {
    /// The delegate of a replica that does not serve yet.
    pub(crate) fn new(region: Arc<Region>, applied: LogPosition) -> Delegate {
        Delegate {
            region: ArcSwap::new(region),
            generation: AtomicU64::new(0),
            term: AtomicU64::new(0),
            leader: AtomicU64::new(0),
            is_leader: AtomicBool::new(false),
            serving: AtomicBool::new(false),
            lease: AtomicU64::new(0),
            data: AtomicU64::new(0),
            is_range_old: AtomicBool::new(false),
            changes_range: AtomicBool::new(false),
            applied: Applied::new(applied),
            floors: FloorCell::default(),
            #[cfg(feature = "planted-bugs")]
            planted: None,
        }
    }

    /// Enables a deliberate bug.
    #[cfg(feature = "planted-bugs")]
    pub(crate) fn plant(&mut self, bug: Option<crate::config::PlantedBug>) {
        self.planted = bug;
    }

    /// Publishes the state of the peer. Store thread only. Returns whether the descriptor changed.
    pub(crate) fn publish(&self, region: &Arc<Region>, view: &PeerView) -> bool {
        let leader = view.leader.map_or(0, |p| p.id.get());
        let region_changed = !Arc::ptr_eq(&self.region.load(), region);
        let unchanged = !region_changed
            && self.term.load(SeqCst) == view.term.get()
            && self.leader.load(SeqCst) == leader
            && self.is_leader.load(SeqCst) == view.is_leader
            && self.serving.load(SeqCst) == view.serving
            && self.changes_range.load(SeqCst) == view.changes_range;
        let keeps_range = self.region.load().epoch.version == region.epoch.version;
        let keeps_data = view.serving && keeps_range && self.data.load(SeqCst) != 0;
        if !unchanged {
            self.lease.store(0, SeqCst);
            self.generation.fetch_add(1, SeqCst);
            if !keeps_data {
                self.data.store(0, SeqCst);
            }
            self.term.store(view.term.get(), SeqCst);
            self.leader.store(leader, SeqCst);
            self.is_leader.store(view.is_leader, SeqCst);
            self.serving.store(view.serving, SeqCst);
            self.changes_range.store(view.changes_range, SeqCst);
            if region_changed {
                self.region.store(Arc::clone(region));
            }
            if !keeps_range {
                self.is_range_old.store(false, SeqCst);
            }
            if view.serving && !keeps_data && !self.is_range_old.load(SeqCst) {
                self.data.store(DataGeneration::next().0, SeqCst);
            }
            self.generation.fetch_add(1, SeqCst);
            if !keeps_data {
                self.applied.wake_all();
            }
        }
        let bound = view.lease.filter(|_| view.is_leader && view.serving).map_or(0, MonoTime::nanos);
        if self.lease.load(SeqCst) != bound {
            self.lease.store(bound, SeqCst);
        }
        region_changed
    }

    /// Refuses all reads from now on. A follower goes on naming the leader that it knew; a leader names none, because
    /// it serves nobody.
    pub(crate) fn close(&self) {
        self.lease.store(0, SeqCst);
        self.generation.fetch_add(1, SeqCst);
        if self.is_leader.swap(false, SeqCst) {
            self.leader.store(0, SeqCst);
        }
        self.serving.store(false, SeqCst);
        self.data.store(0, SeqCst);
        self.generation.fetch_add(1, SeqCst);
        self.applied.wake_all();
    }

    /// Refuses reads at this replica until the descriptor of a new range is published. Apply thread only, before it
    /// writes what changes the range.
    #[cfg(feature = "epoch-changes")]
    pub(crate) fn hold_range(&self) {
        self.is_range_old.store(true, SeqCst);
        self.data.store(0, SeqCst);
        self.applied.wake_all();
    }

    /// Publishes the applied position. Apply thread only.
    pub(crate) fn publish_applied(&self, applied: LogPosition) {
        self.applied.publish(applied);
    }

    /// Publishes floors of applied entries. Those that are lower have no effect. Whoever applies entries, before it
    /// publishes their positions.
    pub(crate) fn publish_floors(&self, floors: Floors) {
        self.floors.raise(floors);
    }

    pub(crate) fn floors(&self) -> &FloorCell {
        &self.floors
    }

    /// Ends once `index` is applied, or the data has changed in another way.
    pub(crate) async fn applied_up_to(&self, index: LogIndex) {
        self.applied.wait(index).await;
    }

    pub(crate) fn region(&self) -> Arc<Region> {
        self.region.load_full()
    }

    pub(crate) fn term(&self) -> Term {
        Term::new(self.term.load(SeqCst))
    }

    pub(crate) fn is_leader(&self) -> bool {
        self.is_leader.load(SeqCst)
    }

    pub(crate) fn leader(&self) -> Option<PeerMeta> {
        self.region.load().peer(PeerId::new(self.leader.load(SeqCst)))
    }

    pub(crate) fn applied_index(&self) -> LogIndex {
        self.applied.index()
    }

    /// Takes a snapshot for a linearizable read under the lease. `Ok(None)` if the lease does not cover it.
    ///
    /// The order of the steps is the proof:
    ///
    /// 1. *Before* the snapshot: this replica leads and has applied an entry of its term. So the snapshot holds every
    ///    write that earlier leaders acknowledged before the read began.
    /// 2. *After* the snapshot: read the clock, then the lease. So nobody else led while the snapshot was taken
    ///    (tikv#13553).
    /// 3. *Last*: the generation is unchanged (tikv#9517).
    pub(crate) fn lease_read<R>(
        &self,
        epoch: Epoch,
        clock: &dyn Clock,
        take_snapshot: impl FnOnce(&Permit) -> R,
    ) -> Result<Option<(R, Permit)>, RegionError> {
        let permit = self.permit(epoch)?;
        if !self.has_applied_own_term() || self.lease.load(SeqCst) == 0 {
            return Ok(None);
        }
        let is_covered = || clock.now().nanos() < self.lease.load(SeqCst);
        #[cfg(feature = "planted-bugs")]
        let early = (self.planted == Some(crate::config::PlantedBug::LeaseCheckedEarly)).then(is_covered);
        let snapshot = take_snapshot(&permit);
        let covered = is_covered();
        #[cfg(feature = "planted-bugs")]
        let covered = early.unwrap_or(covered);
        #[cfg(feature = "planted-bugs")]
        if self.planted == Some(crate::config::PlantedBug::StaleGeneration) {
            return Ok(covered.then_some((snapshot, permit)));
        }
        Ok((covered && self.is_current(&permit)).then_some((snapshot, permit)))
    }

    /// Runs `look` and then reads the applied index, as [`Delegate::lease_read`] takes a snapshot.
    pub(crate) fn lease_sample<T>(
        &self,
        clock: &dyn Clock,
        look: impl FnOnce(&Permit) -> T,
    ) -> Result<Option<(T, LogIndex, Permit)>, RegionError> {
        // What is read in a new range may be written elsewhere once the entry is committed. (Who proposes it after this
        // look changes the generation.)
        if self.changes_range.load(SeqCst) {
            return Err(self.not_ready("its range changes"));
        }
        let epoch = self.region.load().epoch;
        let sampled = self.lease_read(epoch, clock, |permit| (look(permit), self.applied_index()))?;
        Ok(sampled.map(|((looked, index), permit)| (looked, index, permit)))
    }

    /// Takes a snapshot to evaluate a write on, or evaluates it on the newest state. It holds everything committed in
    /// earlier terms, because an entry of the current term was applied *before* it was taken.
    pub(crate) fn evaluate<R>(
        &self,
        epoch: Epoch,
        take_snapshot: impl FnOnce(&Region) -> R,
    ) -> Result<(R, Permit), RegionError> {
        let permit = self.permit(epoch)?;
        if !self.has_applied_own_term() {
            return Err(self.not_ready("the leader has not applied an entry of its term"));
        }
        let snapshot = take_snapshot(&permit.region);
        if !self.is_current(&permit) {
            return Err(RegionError::StaleCommand { region: permit.region.id });
        }
        Ok((snapshot, permit))
    }

    /// Takes a snapshot after a read index was confirmed and applied. Leadership no longer matters, but the region's
    /// data must be complete.
    pub(crate) fn confirmed_read<R>(
        &self,
        epoch: Epoch,
        take_snapshot: impl FnOnce() -> R,
    ) -> Result<(R, Arc<Region>), RegionError> {
        let before = self.generation.load(SeqCst);
        let region = self.region.load_full();
        check_epoch(&region, epoch)?;
        if !self.serving.load(SeqCst) {
            return Err(self.not_ready("a snapshot is being installed"));
        }
        let snapshot = take_snapshot();
        if before % 2 == 1 || self.generation.load(SeqCst) != before {
            return Err(self.not_ready("the replica changed under the read"));
        }
        Ok((snapshot, region))
    }

    /// Runs `read` at this replica, whoever leads. It gets the state of the replica from before, and decides whether it
    /// reads. Returns what it returned, if the data was the same replica's all the time.
    ///
    /// The order of the steps is the proof: the position is loaded *before* the data is read, so the data holds at
    /// least that; *after* it the generation is unchanged, so the data was neither replaced nor cut meanwhile.
    pub(crate) fn replica_read<T>(
        &self,
        version: u64,
        read: impl FnOnce(&ReplicaState) -> Option<T>,
    ) -> Result<Option<T>, RegionError> {
        let state = self.replica()?;
        if state.region.epoch.version != version {
            return Err(RegionError::EpochNotMatch { current: Box::new(Region::clone(&state.region)) });
        }
        let done = read(&state);
        #[cfg(feature = "planted-bugs")]
        if self.planted == Some(crate::config::PlantedBug::GenerationUnchecked) {
            return Ok(done);
        }
        if self.data.load(SeqCst) != state.generation.0 {
            return Err(self.not_ready("the replica changed under the read"));
        }
        Ok(done)
    }

    /// The state of this replica's data, whoever leads.
    pub(crate) fn replica(&self) -> Result<ReplicaState, RegionError> {
        let generation = DataGeneration(self.data.load(SeqCst));
        let region = self.region.load_full();
        let applied = self.applied_index();
        // The descriptor belongs to the generation if that is the same on both sides.
        if generation.0 == 0 || self.data.load(SeqCst) != generation.0 {
            return Err(self.not_ready("the replica is changing"));
        }
        Ok(ReplicaState { region, generation, applied })
    }

    fn permit(&self, epoch: Epoch) -> Result<Permit, RegionError> {
        let generation = self.generation.load(SeqCst);
        let region = self.region.load_full();
        let term = self.term();
        if !self.is_leader() {
            return Err(self.not_leader());
        }
        check_epoch(&region, epoch)?;
        if !self.serving.load(SeqCst) || generation % 2 == 1 {
            return Err(self.not_ready("the replica is changing"));
        }
        Ok(Permit { region, term, generation })
    }

    fn is_current(&self, permit: &Permit) -> bool {
        self.generation.load(SeqCst) == permit.generation
    }

    fn has_applied_own_term(&self) -> bool {
        #[cfg(feature = "planted-bugs")]
        if self.planted == Some(crate::config::PlantedBug::OwnTermUnchecked) {
            return true;
        }
        self.applied.term() == self.term()
    }

    /// The refusal that names the leader that this replica knows. A closed leader knows none.
    pub(crate) fn not_leader(&self) -> RegionError {
        RegionError::NotLeader { region: self.region.load().id, leader: self.leader() }
    }

    fn not_ready(&self, why: &str) -> RegionError {
        RegionError::NotReady { region: self.region.load().id, why: why.to_string() }
    }
}

fn check_epoch(region: &Region, epoch: Epoch) -> Result<(), RegionError> {
    if region.epoch == epoch {
        return Ok(());
    }
    Err(RegionError::EpochNotMatch { current: Box::new(region.clone()) })
}

/// The delegates of a store. The table is replaced as a whole when a region is added, removed or changed.
#[derive(Default)]
pub(crate) struct Router {
    table: ArcSwap<Table>,
}

#[derive(Default)]
struct Table {
    by_id: BTreeMap<RegionId, Arc<Delegate>>,
    by_start: BTreeMap<Vec<u8>, Arc<Delegate>>,
}

impl Router {
    /// Replaces all delegates. Store thread only.
    pub(crate) fn replace(&self, delegates: impl Iterator<Item = (RegionId, Arc<Delegate>)>) {
        let by_id: BTreeMap<_, _> = delegates.collect();
        let by_start = by_id.values().map(|d| (d.region().start.clone(), Arc::clone(d))).collect();
        self.table.store(Arc::new(Table { by_id, by_start }));
    }

    pub(crate) fn get(&self, region: RegionId) -> Option<Arc<Delegate>> {
        self.table.load().by_id.get(&region).cloned()
    }

    /// The region whose range holds `key`.
    pub(crate) fn locate(&self, key: &[u8]) -> Option<Arc<Delegate>> {
        let table = self.table.load();
        let (_, delegate) = table.by_start.range::<[u8], _>((Bound::Unbounded, Bound::Included(key))).next_back()?;
        delegate.region().contains(key).then(|| Arc::clone(delegate))
    }

    /// All delegates, in the order of their ranges.
    pub(crate) fn all(&self) -> Vec<Arc<Delegate>> {
        self.table.load().by_start.values().cloned().collect()
    }
}

#[cfg(test)]
mod tests;

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

use crate::error::RegionError;
use crate::peer::effects::PeerView;
use crate::records::LogPosition;
use crate::region::{Epoch, LogIndex, PeerId, PeerMeta, Region, RegionId, Term};
use crate::time::{Clock, MonoTime};

/// See the module documentation.
///
/// Invariants:
/// 1. `generation` is odd while term, role, descriptor or `serving` change, and differs before and after the change.
/// 2. `lease` is zero unless this replica leads `term`. It is cleared before any of those change.
/// 3. `applied_term` and `applied_index` are stored after the write they describe.
pub(crate) struct Delegate {
    region: ArcSwap<Region>,
    generation: AtomicU64,
    term: AtomicU64,
    leader: AtomicU64,
    is_leader: AtomicBool,
    serving: AtomicBool,
    /// End of the lease in nanoseconds, exclusive; 0 for none.
    lease: AtomicU64,
    applied_index: AtomicU64,
    applied_term: AtomicU64,
    #[cfg(feature = "planted-bugs")]
    planted: Option<crate::config::PlantedBug>,
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
            applied_index: AtomicU64::new(applied.index.get()),
            applied_term: AtomicU64::new(applied.term.get()),
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
            && self.serving.load(SeqCst) == view.serving;
        if !unchanged {
            self.lease.store(0, SeqCst);
            self.generation.fetch_add(1, SeqCst);
            self.term.store(view.term.get(), SeqCst);
            self.leader.store(leader, SeqCst);
            self.is_leader.store(view.is_leader, SeqCst);
            self.serving.store(view.serving, SeqCst);
            if region_changed {
                self.region.store(Arc::clone(region));
            }
            self.generation.fetch_add(1, SeqCst);
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
        self.generation.fetch_add(1, SeqCst);
    }

    /// Publishes the applied position. Apply thread only.
    pub(crate) fn publish_applied(&self, applied: LogPosition) {
        self.applied_index.store(applied.index.get(), SeqCst);
        self.applied_term.store(applied.term.get(), SeqCst);
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
        LogIndex::new(self.applied_index.load(SeqCst))
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
        take_snapshot: impl FnOnce(&Region) -> R,
    ) -> Result<Option<(R, Permit)>, RegionError> {
        let permit = self.permit(epoch)?;
        if !self.has_applied_own_term() || self.lease.load(SeqCst) == 0 {
            return Ok(None);
        }
        let snapshot = take_snapshot(&permit.region);
        let now = clock.now();
        let covered = now.nanos() < self.lease.load(SeqCst);
        #[cfg(feature = "planted-bugs")]
        if self.planted == Some(crate::config::PlantedBug::StaleGeneration) {
            return Ok(covered.then_some((snapshot, permit)));
        }
        Ok((covered && self.is_current(&permit)).then_some((snapshot, permit)))
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
        self.applied_term.load(SeqCst) == self.term.load(SeqCst)
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
mod tests {
    use super::*;
    use crate::region::{PeerRole, StoreId};

    const EPOCH: Epoch = Epoch { conf_ver: 1, version: 1 };

    struct ManualClock(AtomicU64);

    impl Clock for ManualClock {
        fn now(&self) -> MonoTime {
            MonoTime::from_nanos(self.0.load(SeqCst))
        }
    }

    fn region() -> Arc<Region> {
        let peer = PeerMeta { id: PeerId::new(1), store: StoreId::new(1), role: PeerRole::Voter };
        Arc::new(Region { id: RegionId::new(2), start: Vec::new(), end: Vec::new(), epoch: EPOCH, peers: vec![peer] })
    }

    fn view(region: &Region, lease: u64) -> PeerView {
        let lease = Some(MonoTime::from_nanos(lease)).filter(|l| *l > MonoTime::ZERO);
        PeerView { term: Term::new(5), leader: Some(region.peers[0]), is_leader: true, lease, serving: true }
    }

    fn applied(term: u64) -> LogPosition {
        LogPosition { index: LogIndex::new(9), term: Term::new(term) }
    }

    /// A leader in term 5 with a lease until 100.
    fn leader() -> (Delegate, Arc<Region>, ManualClock) {
        let region = region();
        let delegate = Delegate::new(Arc::clone(&region), applied(5));
        delegate.publish(&region, &view(&region, 100));
        (delegate, region, ManualClock(AtomicU64::new(50)))
    }

    #[test]
    fn lease_covers_until_its_bound() {
        let (delegate, _, clock) = leader();
        assert!(delegate.lease_read(EPOCH, &clock, |_| ()).unwrap().is_some());
        clock.0.store(100, SeqCst);
        assert!(delegate.lease_read(EPOCH, &clock, |_| ()).unwrap().is_none());
    }

    /// tikv#13553: if the lease is checked before the snapshot, a slow snapshot may lack writes that a newer leader
    /// acknowledged.
    #[test]
    fn clock_is_read_after_the_snapshot() {
        let (delegate, _, clock) = leader();
        let slow_snapshot = |_: &Region| clock.0.store(100, SeqCst);
        assert!(delegate.lease_read(EPOCH, &clock, slow_snapshot).unwrap().is_none());
    }

    #[test]
    fn lease_is_checked_after_the_snapshot() {
        let (delegate, region, clock) = leader();
        let suspected = |_: &Region| {
            delegate.publish(&region, &view(&region, 0));
        };
        assert!(delegate.lease_read(EPOCH, &clock, suspected).unwrap().is_none());
    }

    /// A snapshot from before the own-term entry was applied may lack writes that the previous leader acknowledged,
    /// even under a valid lease.
    #[test]
    fn own_term_must_be_applied_before_the_snapshot() {
        let (delegate, _, clock) = leader();
        delegate.publish_applied(applied(4));
        let apply_late = || delegate.publish_applied(applied(5));
        assert!(delegate.lease_read(EPOCH, &clock, |_| apply_late()).unwrap().is_none());
        delegate.publish_applied(applied(4));
        assert!(matches!(delegate.evaluate(EPOCH, |_| apply_late()), Err(RegionError::NotReady { .. })));
        apply_late();
        assert!(delegate.evaluate(EPOCH, |_| ()).is_ok());
    }

    /// tikv#9517: a replica that was replaced or re-elected between two checks is not the one whose permit was checked.
    #[test]
    fn change_between_permit_and_snapshot_is_detected() {
        let (delegate, region, clock) = leader();
        let away_and_back = || {
            delegate.publish(&region, &PeerView { is_leader: false, ..view(&region, 0) });
            delegate.publish(&region, &view(&region, 100));
        };
        assert!(delegate.lease_read(EPOCH, &clock, |_| away_and_back()).unwrap().is_none());
        assert!(matches!(delegate.evaluate(EPOCH, |_| away_and_back()), Err(RegionError::StaleCommand { .. })));
        assert!(delegate.confirmed_read(EPOCH, away_and_back).is_err());
    }

    #[test]
    fn wrong_epoch_role_and_installing_are_refused() {
        let (delegate, region, clock) = leader();
        let newer = Epoch { conf_ver: 1, version: 2 };
        assert!(matches!(delegate.lease_read(newer, &clock, |_| ()), Err(RegionError::EpochNotMatch { .. })));
        delegate.publish(&region, &PeerView { serving: false, ..view(&region, 100) });
        assert!(delegate.confirmed_read(EPOCH, || ()).is_err());
        assert!(matches!(delegate.evaluate(EPOCH, |_| ()), Err(RegionError::NotReady { .. })));
    }

    /// A closed leader that named itself would send every client back to itself.
    #[test]
    fn closed_leader_names_no_leader_and_closed_follower_keeps_its_leader() {
        let (delegate, region, clock) = leader();
        delegate.close();
        let refused = delegate.lease_read(EPOCH, &clock, |_| ()).err();
        assert_eq!(refused, Some(RegionError::NotLeader { region: region.id, leader: None }));
        let (delegate, region, _) = leader();
        delegate.publish(&region, &PeerView { is_leader: false, ..view(&region, 0) });
        delegate.close();
        assert_eq!(delegate.leader(), Some(region.peers[0]));
    }
}

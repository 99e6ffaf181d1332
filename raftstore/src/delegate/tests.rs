//! The order of the checks around a read, an evaluation, a sample and a replica read.

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
    PeerView {
        term: Term::new(5),
        leader: Some(region.peers[0]),
        is_leader: true,
        lease,
        serving: true,
        changes_range: false,
    }
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
    let slow_snapshot = |_: &Permit| clock.0.store(100, SeqCst);
    assert!(delegate.lease_read(EPOCH, &clock, slow_snapshot).unwrap().is_none());
}

#[test]
fn lease_is_checked_after_the_snapshot() {
    let (delegate, region, clock) = leader();
    let suspected = |_: &Permit| {
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

/// The pieces of a replica read that only this file can know: what ends a generation, and what does not.
#[test]
fn data_generation_ends_with_the_data_and_not_with_the_leadership() {
    let (delegate, region, _) = leader();
    let generation = |delegate: &Delegate| delegate.replica().unwrap().generation;
    let first = generation(&delegate);
    delegate.publish(&region, &PeerView { term: Term::new(6), is_leader: false, leader: None, ..view(&region, 0) });
    assert_eq!(generation(&delegate), first, "neither term nor role");
    let conf_changed = Arc::new(Region { epoch: Epoch { conf_ver: 2, version: 1 }, ..Region::clone(&region) });
    delegate.publish(&conf_changed, &view(&region, 0));
    assert_eq!(generation(&delegate), first, "nor a change of members");
    let split = Arc::new(Region { epoch: Epoch { conf_ver: 2, version: 2 }, ..Region::clone(&region) });
    delegate.publish(&split, &view(&region, 0));
    let second = generation(&delegate);
    assert_ne!(second, first);
    delegate.publish(&split, &PeerView { serving: false, ..view(&region, 0) });
    assert!(matches!(delegate.replica(), Err(RegionError::NotReady { .. })), "installing");
    delegate.publish(&split, &view(&region, 0));
    let third = generation(&delegate);
    assert!(third != second && third != first);
    delegate.close();
    assert!(delegate.replica().is_err());
    // tikv#18570: a replica that is created anew, at the same place, is not the one before.
    let again = Delegate::new(Arc::clone(&split), applied(5));
    again.publish(&split, &view(&region, 0));
    assert!(![first, second, third].contains(&generation(&again)));
}

/// tikv#18570, tikv#10224: the data was replaced between the look at the replica and its end.
#[test]
fn a_replica_read_over_an_installation_is_refused() {
    let (delegate, region, _) = leader();
    let version = region.epoch.version;
    assert_eq!(delegate.replica_read(version, |state| Some(state.applied)).unwrap(), Some(LogIndex::new(9)));
    assert_eq!(delegate.replica_read(version, |_| None::<()>).unwrap(), None);
    assert!(matches!(delegate.replica_read(7, |_| Some(())), Err(RegionError::EpochNotMatch { .. })));
    let install = |_: &ReplicaState| {
        delegate.publish(&region, &PeerView { serving: false, ..view(&region, 0) });
        delegate.publish(&region, &view(&region, 0));
        Some(())
    };
    assert!(matches!(delegate.replica_read(version, install), Err(RegionError::NotReady { .. })));
}

/// The index of a sample counts only if nobody else led when it was read (pitfall 6: not before an entry of the own
/// term is applied).
#[test]
fn a_sample_is_taken_under_the_lease_after_the_look() {
    let (delegate, _, clock) = leader();
    let look = |_: &Permit| delegate.publish_applied(LogPosition { index: LogIndex::new(12), term: Term::new(5) });
    let ((), index, permit) = delegate.lease_sample(&clock, look).unwrap().unwrap();
    assert_eq!((index, permit.term), (LogIndex::new(12), Term::new(5)), "what is applied after the look counts");
    let slow_look = |_: &Permit| clock.0.store(100, SeqCst);
    assert!(delegate.lease_sample(&clock, slow_look).unwrap().is_none());
    delegate.publish_applied(applied(4));
    clock.0.store(50, SeqCst);
    assert!(delegate.lease_sample(&clock, |_| ()).unwrap().is_none());
}

/// Rule 14 of grants: none between the entry that changes the range and its end.
#[test]
fn no_sample_is_taken_while_the_range_changes() {
    let (delegate, region, clock) = leader();
    assert!(delegate.lease_sample(&clock, |_| ()).unwrap().is_some());
    let proposed = |_: &Permit| {
        delegate.publish(&region, &PeerView { changes_range: true, ..view(&region, 100) });
    };
    assert!(delegate.lease_sample(&clock, proposed).unwrap().is_none(), "it was proposed meanwhile");
    assert!(delegate.lease_sample(&clock, |_| ()).is_err());
    assert!(delegate.lease_read(EPOCH, &clock, |_| ()).unwrap().is_some(), "the leader itself reads on");
    delegate.publish(&region, &view(&region, 100));
    assert!(delegate.lease_sample(&clock, |_| ()).unwrap().is_some());
}

#[cfg(feature = "epoch-changes")]
#[test]
fn a_replica_whose_range_has_changed_serves_under_the_new_descriptor_only() {
    let (delegate, region, _) = leader();
    delegate.hold_range();
    assert!(delegate.replica().is_err());
    delegate.publish(&region, &PeerView { term: Term::new(9), ..view(&region, 100) });
    assert!(delegate.replica().is_err(), "another term brings no new descriptor");
    let split = Arc::new(Region { epoch: Epoch { conf_ver: 1, version: 2 }, ..Region::clone(&region) });
    delegate.publish(&split, &view(&region, 100));
    assert_eq!(delegate.replica().unwrap().region.epoch.version, 2);
}

/// The simulation preempts reads only once they have their snapshot, so this bug shows here alone.
#[cfg(feature = "planted-bugs")]
#[test]
fn planted_lease_checked_early_answers_after_its_end() {
    let (mut delegate, _, clock) = leader();
    delegate.plant(Some(crate::config::PlantedBug::LeaseCheckedEarly));
    let slow_snapshot = |_: &Permit| clock.0.store(100, SeqCst);
    assert!(delegate.lease_read(EPOCH, &clock, slow_snapshot).unwrap().is_some());
}

/// No simulation preempts a read at a replica, so this bug shows here alone.
#[cfg(feature = "planted-bugs")]
#[test]
fn planted_generation_unchecked_reads_over_an_installation() {
    let (mut delegate, region, _) = leader();
    delegate.plant(Some(crate::config::PlantedBug::GenerationUnchecked));
    let install = |_: &ReplicaState| {
        delegate.publish(&region, &PeerView { serving: false, ..view(&region, 0) });
        delegate.publish(&region, &view(&region, 0));
        Some(())
    };
    assert_eq!(delegate.replica_read(region.epoch.version, install), Ok(Some(())));
}

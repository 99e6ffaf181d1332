//! Lease reads, read indexes, transfer.

use std::time::Duration;

use engine::Cf;
use engine::store::Reader;
use raft::eraftpb::MessageType;
use raftstore::{RegionError, RegionId, StoreId};

use crate::harness::{Cluster, KEY, Task, is, put};

fn read(cluster: &Cluster, store: u64) -> Task<Result<Option<Vec<u8>>, RegionError>> {
    let (handle, ctx) = (cluster.handle(store), cluster.ctx(1));
    let mut task = Task::new(async move { Ok(handle.read(ctx).await?.get(Cf::Default, KEY).unwrap()) });
    task.start();
    task
}

fn lease_read(cluster: &Cluster, store: u64) -> Option<Option<Vec<u8>>> {
    let (handle, ctx) = (cluster.handle(store), cluster.ctx(1));
    let value = handle.try_read(ctx).map(|snapshot| snapshot.map(|s| s.get(Cf::Default, KEY).unwrap()));
    let newest = handle.read_newest(ctx, |reader, _| reader.get_newest(Cf::Default, KEY).unwrap());
    let newest = newest.map(|read| read.map(|(value, _)| value));
    assert_eq!(newest, value, "a read without a snapshot has the same proof");
    value.ok().flatten()
}

#[test]
fn idle_leader_keeps_its_lease() {
    let mut cluster = Cluster::new(3);
    cluster.lead(1, 1);
    cluster.write(1, KEY, b"v");
    for _ in 0..50 {
        cluster.run_for(Duration::from_millis(100));
        assert_eq!(lease_read(&cluster, 1), Some(Some(b"v".to_vec())));
    }
}

#[test]
fn isolated_leaders_lease_ends_before_another_leads() {
    for round in 0..10u64 {
        let mut cluster = Cluster::new(3);
        cluster.lead(1, 1);
        cluster.write(1, KEY, b"old");
        cluster.run_for(Duration::from_millis(round * 37));
        cluster.isolated.insert(1);
        cluster.write(1, KEY, b"new");
        assert_eq!(lease_read(&cluster, 1), None, "round {round}");
    }
}

#[test]
fn read_without_a_lease_uses_a_read_index() {
    let mut cluster = Cluster::new(3);
    cluster.lead(1, 1);
    cluster.write(1, KEY, b"v");
    // The lease has ended, and no turn has renewed it.
    cluster.advance(Duration::from_millis(900));
    assert_eq!(lease_read(&cluster, 1), None);
    let mut task = read(&cluster, 1);
    cluster.settle();
    assert_eq!(task.poll(), Some(Ok(Some(b"v".to_vec()))));
}

#[test]
fn isolated_leader_fails_reads() {
    let mut cluster = Cluster::new(3);
    cluster.lead(1, 1);
    cluster.isolated.insert(1);
    cluster.run_for(Duration::from_millis(900));
    let mut task = read(&cluster, 1);
    let outcome = cluster.finish(&mut task);
    assert!(matches!(outcome, Err(RegionError::NotLeader { .. } | RegionError::NotReady { .. })), "{outcome:?}");
}

#[test]
fn follower_names_the_leader() {
    let mut cluster = Cluster::new(3);
    cluster.lead(1, 2);
    cluster.run_for(Duration::from_millis(500));
    let outcome = cluster.handle(1).try_read(cluster.ctx(1)).err();
    assert!(
        matches!(outcome, Some(RegionError::NotLeader { leader: Some(leader), .. }) if leader.store.get() == 2),
        "{outcome:?}"
    );
}

/// PR tikv#6340, tikv#9208: a new leader's commit index may be behind until it commits an entry of its own term.
#[test]
fn new_leader_serves_nothing_before_committing_in_its_term() {
    let mut cluster = Cluster::new(3);
    cluster.lead(1, 1);
    cluster.write(1, KEY, b"v");
    cluster.isolated.insert(1);
    // The new leader is elected, but the answers to its first entry are held.
    cluster.hold = |m| is(m, MessageType::MsgAppendResponse);
    cluster
        .run_until("a new leader", |c| [2, 3].iter().any(|s| c.handle(*s).region(RegionId::new(1)).unwrap().is_leader));
    let leader = if cluster.handle(2).region(RegionId::new(1)).unwrap().is_leader { 2 } else { 3 };
    assert_eq!(lease_read(&cluster, leader), None);
    assert!(matches!(cluster.handle(leader).evaluate(cluster.ctx(1)), Err(RegionError::NotReady { .. })));
    let mut task = read(&cluster, leader);
    cluster.settle();
    assert_eq!(task.poll(), None);
    cluster.hold = |_| false;
    for message in std::mem::take(&mut cluster.held) {
        cluster.deliver_one(message);
    }
    assert_eq!(cluster.finish(&mut task), Ok(Some(b"v".to_vec())));
}

/// tikv#1593: the lease is suspect from before `MsgTimeoutNow` leaves.
#[test]
fn transfer_ends_the_lease_before_the_target_campaigns() {
    let mut cluster = Cluster::new(3);
    cluster.lead(1, 1);
    cluster.write(1, KEY, b"old");
    cluster.hold = |m| is(m, MessageType::MsgTimeoutNow);
    cluster.handle(1).transfer_leader(RegionId::new(1), StoreId::new(2)).unwrap();
    cluster.settle();
    assert_eq!(cluster.held.len(), 1);
    assert_eq!(lease_read(&cluster, 1), None);
    // The target's log has not grown, so it obeys the message.
    cluster.hold = |_| false;
    let message = cluster.held.remove(0);
    cluster.deliver_one(message);
    cluster.settle();
    let ctx = cluster.ctx(1);
    cluster.run_until("the target leads", |c| c.handle(2).evaluate(ctx).is_ok());
}

/// raft-rs#234: a `MsgTimeoutNow` that arrives long after the old leader regained its lease.
#[test]
fn late_timeout_now_is_ignored() {
    let mut cluster = Cluster::new(3);
    cluster.lead(1, 1);
    cluster.hold = |m| is(m, MessageType::MsgTimeoutNow);
    cluster.handle(1).transfer_leader(RegionId::new(1), StoreId::new(2)).unwrap();
    // The transfer times out, and an empty entry ends the suspicion.
    cluster.run_for(Duration::from_secs(3));
    cluster.hold = |_| false;
    assert_eq!(lease_read(&cluster, 1), Some(None));
    let term = cluster.handle(1).region(RegionId::new(1)).unwrap().term;
    cluster.isolated.insert(1);
    let message = cluster.held.remove(0);
    cluster.isolated.remove(&1);
    cluster.deliver_one(message);
    cluster.isolated.insert(1);
    cluster.settle();
    assert_eq!(lease_read(&cluster, 1), Some(None), "nobody else may lead while this lease holds");
    assert_eq!(cluster.handle(2).region(RegionId::new(1)).unwrap().term, term);
}

/// tikv#15035: store 2 restarts while store 1 leads under a lease that store 2 confirmed. Store 3 must not get store
/// 2's vote meanwhile.
#[test]
fn restarted_voter_keeps_its_promise() {
    for round in 0..5u64 {
        let mut cluster = Cluster::new(3);
        cluster.lead(1, 1);
        cluster.write(1, KEY, b"old");
        cluster.isolated.insert(3);
        cluster.run_for(Duration::from_millis(700 + 100 * round));
        cluster.crash(2, round);
        cluster.start(2);
        // Store 3 has heard nobody for long and campaigns at once; store 1 is cut off with its lease running.
        cluster.isolated = [1].into();
        for _ in 0..40 {
            cluster.run_for(Duration::from_millis(20));
            let others_lead = [2, 3].iter().any(|s| cluster.handle(*s).evaluate(cluster.ctx(1)).is_ok());
            assert!(!(others_lead && lease_read(&cluster, 1).is_some()), "round {round}: two leaders serve");
        }
    }
}

/// tikv#14715: apply is behind the commit index. A read must wait until everything acknowledged is applied.
#[test]
fn read_index_waits_for_apply() {
    let mut cluster = Cluster::new(3);
    cluster.lead(1, 1);
    cluster.write(1, KEY, b"1");
    cluster.apply_paused.insert(1);
    let mut write = cluster.start_write(1, 1, put(KEY, b"2"));
    cluster.settle();
    assert_eq!(write.poll(), None, "acknowledged only once applied");
    cluster.advance(Duration::from_millis(900));
    let mut task = read(&cluster, 1);
    cluster.settle();
    assert_eq!(task.poll(), None);
    cluster.apply_paused.clear();
    cluster.settle();
    assert_eq!(task.poll(), Some(Ok(Some(b"2".to_vec()))));
}

/// tikv#10347: a read must not be answered by an index of an earlier leadership.
#[test]
fn step_down_fails_waiting_reads() {
    let mut cluster = Cluster::new(3);
    cluster.lead(1, 1);
    cluster.hold = |m| is(m, MessageType::MsgHeartbeatResponse);
    cluster.advance(Duration::from_millis(900));
    let mut task = read(&cluster, 1);
    cluster.settle();
    assert_eq!(task.poll(), None);
    cluster.hold = |_| false;
    cluster.isolated.insert(1);
    let outcome = cluster.finish(&mut task);
    assert!(matches!(outcome, Err(RegionError::NotLeader { .. })), "{outcome:?}");
}

/// A read outside the region is an error, not an empty answer.
#[test]
fn reads_outside_the_region_are_refused() {
    let mut cluster = Cluster::new(1);
    cluster.lead(1, 1);
    let snapshot = cluster.handle(1).try_read(cluster.ctx(1)).unwrap().unwrap();
    assert!(snapshot.get(Cf::Default, b"z").is_err());
    assert!(snapshot.get(Cf::Meta, b"k").is_err());
    assert!(snapshot.cursor(Cf::Default, b"a", b"").is_err());
    assert!(snapshot.cursor(Cf::Default, b"a", b"m").is_ok());
}

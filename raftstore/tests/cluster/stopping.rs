//! Graceful stops: a store serves until its leaderships are handed over, then names the new leaders.

use raft::eraftpb::MessageType;
use raftstore::{RegionError, StoreId};

use crate::harness::{Cluster, KEY, Task, is, put};

/// A cluster whose store 1 leads region 1 and stops, while `held` messages are held back.
fn stopping(held: fn(&raftstore::ports::RaftMessage) -> bool) -> Cluster {
    let mut cluster = Cluster::new(3);
    cluster.lead(1, 1);
    cluster.write(1, KEY, b"before");
    cluster.hold = held;
    let now = cluster.now();
    cluster.nodes.get_mut(&1).unwrap().core.as_mut().unwrap().begin_stop(now);
    cluster
}

fn is_drained(cluster: &mut Cluster) -> bool {
    let now = cluster.now();
    cluster.nodes.get_mut(&1).unwrap().core.as_mut().unwrap().continue_stop(now)
}

/// Runs until the stopping store has nothing left to wait for.
fn drain(cluster: &mut Cluster) {
    for _ in 0..3000 {
        if is_drained(cluster) {
            return;
        }
        cluster.run_for(cluster.config.tick_interval / 5);
    }
    panic!("the store does not drain");
}

/// A transfer that does not succeed leaves the region without a successor. Its leader must not refuse meanwhile.
#[test]
fn store_serves_until_its_successor_leads() {
    let mut cluster = stopping(|m| is(m, MessageType::MsgTimeoutNow));
    // Both followers get an offer, which is given up after an election timeout. Then the leader accepts writes for a
    // while.
    let ticks = 6 * cluster.config.election_ticks;
    for round in 0..4 {
        assert!(!is_drained(&mut cluster));
        let written = (0..ticks).filter(|_| {
            cluster.run_for(cluster.config.tick_interval);
            let mut task = cluster.start_write(1, 1, put(KEY, b"during"));
            cluster.finish(&mut task).is_ok()
        });
        assert!(written.count() >= ticks as usize / 3, "round {round}");
    }
    // The offers go on: the next one succeeds.
    cluster.hold = |_| false;
    drain(&mut cluster);
    assert_ne!(cluster.leader(1), 1);
    cluster.write(1, KEY, b"after");
}

/// A refusal names the leader, so the client asks it at once.
#[test]
fn drained_store_names_the_new_leader() {
    let mut cluster = stopping(|_| false);
    drain(&mut cluster);
    let leader = StoreId::new(cluster.leader(1));
    cluster.run_for(cluster.config.tick_interval * 5);
    let named = |cluster: &Cluster| match cluster.handle(1).evaluate(cluster.ctx(1)) {
        Err(RegionError::NotLeader { leader, .. }) => leader.map(|peer| peer.store),
        other => panic!("not refused as expected: {:?}", other.err()),
    };
    assert_eq!(named(&cluster), Some(leader));
    cluster.nodes.get_mut(&1).unwrap().core.as_mut().unwrap().finish_stop().unwrap();
    assert_eq!(named(&cluster), Some(leader));
}

/// A store without a live successor has nobody to hand over to.
#[test]
fn lone_store_drains_at_once() {
    let mut cluster = Cluster::new(1);
    cluster.write(1, KEY, b"v");
    let now = cluster.now();
    let core = cluster.nodes.get_mut(&1).unwrap().core.as_mut().unwrap();
    core.begin_stop(now);
    assert!(core.continue_stop(now));
    let refused = cluster.handle(1).evaluate(cluster.ctx(1)).err();
    assert!(matches!(refused, Some(RegionError::NotLeader { leader: None, .. })), "{refused:?}");
}

/// The results of one call of each kind that a store refuses with `NotLeader` if it does not lead region 1.
fn calls(cluster: &Cluster, store: u64) -> [(&'static str, Result<(), RegionError>); 5] {
    let (handle, reader, ctx) = (cluster.handle(store), cluster.handle(store), cluster.ctx(1));
    let mut read = Task::new(async move { reader.read(ctx).await.map(drop) });
    [
        ("try_read", handle.try_read(ctx).map(drop)),
        ("has_lease", handle.has_lease(ctx).map(|_| ())),
        ("read", read.poll().unwrap()),
        ("evaluate", handle.evaluate(ctx).map(drop)),
        ("transfer_leader", handle.transfer_leader(ctx.region, StoreId::new(2))),
    ]
}

/// A poisoned follower serves nobody, but it knows who does: a client asks that store at once and does not search.
#[test]
fn poisoned_follower_names_the_leader() {
    let mut cluster = Cluster::new(3);
    cluster.lead(1, 1);
    cluster.write(1, KEY, b"v");
    cluster.wait_stored(KEY, b"v");
    let region = cluster.ctx(1).region;
    let leader = cluster.regions[0].peer_on(StoreId::new(1));
    let refused: Result<(), RegionError> = Err(RegionError::NotLeader { region, leader });
    cluster.handle(3).poison("planted");
    // Before the loop of the store has noticed, when it has, and long after.
    for ticks in [0, 1, 50] {
        cluster.run_for(cluster.config.tick_interval * ticks);
        for (call, result) in calls(&cluster, 3) {
            assert_eq!(result, refused, "{call} after {ticks} ticks");
        }
    }
    assert_eq!(cluster.leader(1), 1);
}

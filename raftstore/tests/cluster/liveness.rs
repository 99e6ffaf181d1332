//! Leadership and reads do not wait for the disk; a leader that cannot write hands over; no region starves.

use std::time::Duration;

use engine::log::LogOptions;
use raft::eraftpb::{Message, MessageType};
use raftstore::ports::RaftMessage;
use raftstore::{
    Epoch, LogIndex, PeerId, PeerMeta, PeerRole, ProposeError, Region, RegionError, RegionId, StoreConfig, StoreId,
    Term,
};

use crate::backlog::fill;
use crate::harness::{Cluster, KEY, Task, is, put, regions};

type Write = Task<Result<LogIndex, ProposeError>>;

/// Starts a write at store 1 and runs everything that can happen, so that it is in a log batch of its own.
fn write_alone(cluster: &mut Cluster, value: u8) -> Write {
    let write = cluster.start_write(1, 1, put(KEY, &[value]));
    cluster.settle();
    write
}

fn term(cluster: &Cluster, store: u64) -> Term {
    cluster.handle(store).region(RegionId::new(1)).unwrap().term
}

/// Runs 300 ms in which store 1 holds the lease of region 1.
fn keeps_its_lease(cluster: &mut Cluster, stalled: &[u64]) {
    let ctx = cluster.ctx(1);
    for _ in 0..3 {
        cluster.run_for(Duration::from_millis(100));
        let read = cluster.handle(1).try_read(ctx);
        assert!(matches!(read, Ok(Some(_))), "{stalled:?}: no lease: {:?}", read.err());
    }
}

/// The syncs of some stores take 1.5 s, with more batches waiting than the log takes in. Nobody loses a leadership or a
/// lease meanwhile, reads are served, and the writes succeed afterwards. (Before, the answers of a follower waited for
/// its newest sync, and with 8 batches undurable nothing left a store.)
#[test]
fn hiccup_of_the_disk_takes_no_leadership() {
    for stalled in [&[1][..], &[2], &[2, 3], &[1, 2, 3]] {
        let mut cluster = Cluster::new(3);
        cluster.lead(1, 1);
        let (ctx, before) = (cluster.ctx(1), term(&cluster, 1));
        cluster.log_paused.extend(stalled);
        let mut writes: Vec<Write> = (0..20).map(|value| write_alone(&mut cluster, value)).collect();
        keeps_its_lease(&mut cluster, stalled);
        cluster.advance(Duration::from_millis(900));
        assert!(matches!(cluster.handle(1).try_read(ctx), Ok(None)), "the lease is over");
        let handle = cluster.handle(1);
        let mut read = Task::new(async move { handle.read(ctx).await.map(drop) });
        read.start();
        cluster.settle();
        // What the others have committed is to be seen, and the leader applies only what it has written.
        let waits = stalled == [1];
        assert_eq!(read.poll(), (!waits).then_some(Ok(())), "{stalled:?}: a read index");
        keeps_its_lease(&mut cluster, stalled);
        cluster.log_paused.clear();
        assert!(!waits || cluster.finish(&mut read) == Ok(()));
        for write in &mut writes {
            cluster.finish(write).unwrap();
        }
        assert_eq!((cluster.leader(1), term(&cluster, 1)), (1, before), "{stalled:?}");
    }
}

/// A quorum writes without the leader, which cannot apply what it has not written. So it hands over, also when its
/// undurable batches have reached their bound in bytes.
#[test]
fn leader_with_a_stalled_log_hands_over() {
    for bytes in [1, 40_000] {
        let config = StoreConfig { log_backlog_bytes: 128 << 10, ..StoreConfig::default() };
        let bound = config.log_stall + config.election_timeout();
        let mut cluster = Cluster::with_config(3, config);
        cluster.lead(1, 1);
        cluster.log_paused.insert(1);
        let mut writes: Vec<Write> = Vec::new();
        for value in 0..3 {
            writes.push(cluster.start_write(1, 1, put(&[value], &vec![value; bytes])));
            cluster.settle();
        }
        let begun = cluster.now();
        let ctx = cluster.ctx(1);
        cluster.run_until("another leader", |c| [2, 3].iter().any(|s| c.handle(*s).evaluate(ctx).is_ok()));
        let leader = if cluster.handle(2).evaluate(ctx).is_ok() { 2 } else { 3 };
        let mut write = cluster.start_write(leader, 1, put(KEY, b"elsewhere"));
        cluster.finish(&mut write).unwrap();
        assert!(cluster.now().since(begun) < bound, "{:?}", cluster.now().since(begun));
        if bytes > 1 {
            // It exceeded the bound and was never appended.
            let refused = writes.pop().unwrap().poll();
            assert!(matches!(refused, Some(Err(ProposeError::Region(RegionError::NotLeader { .. })))), "{refused:?}");
        }
        cluster.log_paused.clear();
        for write in &mut writes {
            cluster.finish(write).unwrap();
        }
    }
}

/// Regression: a store with a full disk offered its leaderships once; if the offer was lost, it kept them.
#[test]
fn full_disk_goes_on_offering() {
    let mut cluster = Cluster::new(3);
    cluster.lead(1, 1);
    cluster.hold = |m| is(m, MessageType::MsgTimeoutNow);
    let mut writes = fill(&mut cluster, 1);
    cluster.run_for(Duration::from_secs(10));
    let offered: Vec<(u64, u64)> =
        cluster.held.iter().filter(|m| m.region.get() == 1).map(|m| (m.to.store.get(), m.message.term)).collect();
    assert!(offered.len() >= 2 && offered.iter().any(|o| o.0 == 2) && offered.iter().any(|o| o.0 == 3), "{offered:?}");
    assert!(offered.len() <= 5, "every offer suspends the lease: {offered:?}");
    cluster.held.clear();
    cluster.hold = |_| false;
    let ctx = cluster.ctx(1);
    cluster.run_until("another leader", |c| [2, 3].iter().any(|s| c.handle(*s).evaluate(ctx).is_ok()));
    cluster.nodes[&1].disk.set_capacity(None);
    for write in &mut writes {
        cluster.finish(write).unwrap();
    }
}

/// Regression: the only voter led, and sent entries to a learner, before its term was durable. After a crash it led the
/// same term with other entries.
#[test]
fn sole_voter_sends_nothing_before_its_vote_is_durable() {
    let mut learning = regions(2);
    for region in &mut learning {
        region.peers[1].role = PeerRole::Learner;
    }
    let mut cluster = Cluster::with_regions(2, StoreConfig::default(), LogOptions::default(), learning);
    cluster.log_paused.insert(1);
    let write = cluster.start_write(1, 1, put(KEY, b"lost"));
    cluster.run_for(Duration::from_secs(3));
    drop(write);
    let heard = cluster.handle(2).region(RegionId::new(1)).unwrap();
    assert_eq!((heard.term, heard.leader), (Term::new(1), None), "the learner has heard of no leader");
    cluster.crash(1, 1);
    cluster.start(1);
    cluster.log_paused.clear();
    cluster.write(1, KEY, b"kept");
    cluster.wait_stored(KEY, b"kept");
}

/// Stops the log of a store and fills the room for its batches with a write to `region`, which it leads.
fn take_the_room(cluster: &mut Cluster, store: u64, region: u64) -> Write {
    cluster.log_paused.insert(store);
    let key = if region == 1 { b"a" } else { b"z" };
    let write = cluster.start_write(store, region, put(key, &[0; 40_000]));
    cluster.settle();
    write
}

/// Regression: between the change of its term and the next batch, a sole voter counted its new term as durable, because
/// the old one was. Without room for a batch it sent entries of that term.
#[test]
fn sole_voter_without_room_for_a_batch_sends_nothing_of_a_new_term() {
    let mut learning = regions(2);
    for region in &mut learning {
        region.peers[1].role = PeerRole::Learner;
    }
    let config = StoreConfig { log_backlog_bytes: 64 << 10, ..StoreConfig::default() };
    let mut cluster = Cluster::with_regions(2, config, LogOptions::default(), learning);
    for (region, key) in [(1, b"a"), (2, b"z")] {
        cluster.write(region, key, b"before");
        cluster.wait_stored(key, b"before");
    }
    let before = term(&cluster, 2);
    let write = take_the_room(&mut cluster, 1, 2);
    // The leader of region 1 learns of a later term, and leads the one after that.
    let peers = &cluster.regions[0].peers;
    let mut message = Message { from: 12, to: 11, term: before.get() + 5, ..Message::default() };
    message.set_msg_type(MessageType::MsgHeartbeatResponse);
    let region = RegionId::new(1);
    let message = RaftMessage { region, epoch: cluster.regions[0].epoch, from: peers[1], to: peers[0], message };
    cluster.handle(1).deliver(message).unwrap();
    cluster.run_for(Duration::from_secs(4));
    let status = cluster.handle(1).region(region).unwrap();
    assert_eq!((status.is_leader, status.term), (true, Term::new(before.get() + 6)));
    assert_eq!(term(&cluster, 2), before, "the learner has heard of it");
    drop(write);
    cluster.crash(1, 1);
    cluster.log_paused.clear();
    cluster.start(1);
    cluster.write(1, KEY, b"kept");
    cluster.wait_stored(KEY, b"kept");
}

/// A vote needs room for a batch; the answer to a pre-vote does not.
#[test]
fn voter_without_room_for_a_batch_gives_no_vote() {
    let config = StoreConfig { log_backlog_bytes: 64 << 10, ..StoreConfig::default() };
    let mut cluster = Cluster::with_config(3, config);
    cluster.lead(1, 1);
    cluster.lead(2, 2);
    cluster.write(1, KEY, b"v");
    cluster.wait_stored(KEY, b"v");
    let mut write = take_the_room(&mut cluster, 2, 2);
    cluster.isolated.insert(1);
    cluster.hold = |m| is(m, MessageType::MsgRequestVoteResponse) && m.region.get() == 1;
    let before = term(&cluster, 2);
    cluster.run_until("a candidate", |c| term(c, 3) > before && term(c, 2) > before);
    cluster.run_for(Duration::from_secs(3));
    assert!(cluster.held.is_empty(), "{:?}", cluster.held);
    cluster.hold = |_| false;
    cluster.log_paused.clear();
    let ctx = cluster.ctx(1);
    cluster.run_until("a leader", |c| [2, 3].iter().any(|s| c.handle(*s).evaluate(ctx).is_ok()));
    cluster.isolated.clear();
    cluster.finish(&mut write).ok();
}

/// Regression: the store served the regions in the order of their ids until apply's mailbox was full. With more busy
/// regions than places, the last ones were never served.
#[test]
fn no_region_starves_while_apply_is_full() {
    const REGIONS: u64 = 20;
    let region = |id: u64| Region {
        id: RegionId::new(id),
        start: if id == 1 { Vec::new() } else { vec![id as u8] },
        end: if id == REGIONS { Vec::new() } else { vec![id as u8 + 1] },
        epoch: Epoch { conf_ver: 1, version: 1 },
        peers: vec![PeerMeta { id: PeerId::new(id), store: StoreId::new(1), role: PeerRole::Voter }],
    };
    let config = StoreConfig { mailbox_capacity: 16, apply_batch_bytes: 4096, ..StoreConfig::default() };
    let all = (1..=REGIONS).map(region).collect();
    let mut cluster = Cluster::with_regions(1, config, LogOptions::default(), all);
    for id in 1..=REGIONS {
        cluster.leader(id);
    }
    // Each of the others has so many committed entries that it has some for apply in every turn.
    let mut writes: Vec<Write> = Vec::new();
    for id in 1..REGIONS {
        for _ in 0..128 {
            writes.push(cluster.start_write(1, id, put(&[id as u8], &[0; 5000])));
            cluster.store_turn(1);
        }
    }
    let mut last = cluster.start_write(1, REGIONS, put(&[REGIONS as u8], b"v"));
    cluster.store_turn(1);
    let turns = (1..20).find(|_| {
        while cluster.nodes.get_mut(&1).unwrap().writer.as_mut().unwrap().turn() > 0 {}
        cluster.store_turn(1);
        cluster.nodes.get_mut(&1).unwrap().core.as_mut().unwrap().apply_turn();
        last.poll().is_some()
    });
    assert!(turns.is_some_and(|turns| turns <= 4), "{turns:?}");
    for write in &mut writes {
        cluster.finish(write).unwrap();
    }
}

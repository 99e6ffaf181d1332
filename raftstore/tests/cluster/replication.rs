//! Elections, writes, restarts, failures.

use std::time::Duration;

use engine::disk::Operation;
use raft::eraftpb::MessageType;
use raftstore::{ProposeError, RegionError, StoreConfig};

use crate::harness::{Cluster, KEY, is, put};

#[test]
fn single_store_leads_at_once() {
    let mut cluster = Cluster::new(1);
    cluster.settle();
    assert_eq!(cluster.leader(1), 1);
    cluster.write(1, KEY, b"v");
    assert_eq!(cluster.stored(1, KEY).as_deref(), Some(&b"v"[..]));
}

#[test]
fn three_stores_elect_and_replicate() {
    let mut cluster = Cluster::new(3);
    cluster.write(1, KEY, b"v");
    cluster.write(2, b"z", b"w");
    cluster.wait_stored(KEY, b"v");
    cluster.wait_stored(b"z", b"w");
}

/// Regression: a leader reads old entries for a follower, is replaced, and its log is overwritten by a shorter one
/// before the read is done. The entries are gone, and the store took that for a damaged log.
#[test]
fn late_read_of_an_overwritten_log_poisons_nothing() {
    let config = StoreConfig { entry_cache_bytes: 0, log_scrub_bytes: 0, ..StoreConfig::default() };
    let mut cluster = Cluster::with_config(3, config);
    cluster.lead(1, 1);
    cluster.isolated.insert(3);
    for value in 0..20u8 {
        cluster.write(1, KEY, &[value]);
    }
    // Store 1 alone has the next entries. It begins to read them for store 3.
    cluster.isolated = [2, 3].into();
    cluster.log_reads_paused.insert(1);
    let mut lost: Vec<_> = (0..20u8).map(|value| cluster.start_write(1, 1, put(KEY, &[value, 0]))).collect();
    cluster.settle();
    cluster.isolated = [2].into();
    cluster.run_for(Duration::from_millis(500));
    assert_ne!(cluster.stored(3, KEY), Some(vec![19]), "nobody has read what it needs");
    cluster.isolated = [1].into();
    cluster.write(1, KEY, b"of another leader");
    cluster.isolated.clear();
    cluster.wait_stored(KEY, b"of another leader");
    let core = cluster.nodes.get_mut(&1).unwrap().core.as_mut().unwrap();
    assert!(core.log_read_turn(), "the read was under way");
    cluster.log_reads_paused.clear();
    cluster.lead(1, 1);
    cluster.write(1, KEY, b"last");
    cluster.wait_stored(KEY, b"last");
    assert_eq!(cluster.handle(1).poisoned(), None);
    for write in &mut lost {
        assert!(cluster.finish(write).is_err(), "it was overwritten");
    }
}

#[test]
fn writes_outside_the_region_are_refused() {
    let mut cluster = Cluster::new(1);
    let leader = cluster.leader(1);
    let mut task = cluster.start_write(leader, 1, put(b"z", b"v"));
    assert!(matches!(cluster.finish(&mut task), Err(ProposeError::Region(RegionError::KeyNotInRegion { .. }))));
}

#[test]
fn acknowledged_writes_survive_a_crash_of_all_stores() {
    for seed in 0..10 {
        let mut cluster = Cluster::new(3);
        for value in 0..5u8 {
            cluster.write(1, &[value], &[seed as u8, value]);
        }
        for id in 1..=3 {
            cluster.crash(id, seed + id);
        }
        for id in 1..=3 {
            cluster.start(id);
        }
        cluster.leader(1);
        for value in 0..5u8 {
            cluster.wait_stored(&[value], &[seed as u8, value]);
        }
    }
}

#[test]
fn lagging_minority_catches_up_from_the_log() {
    let mut cluster = Cluster::new(3);
    cluster.lead(1, 1);
    cluster.isolated.insert(3);
    cluster.write(1, KEY, b"1");
    cluster.write(1, KEY, b"2");
    assert_eq!(cluster.stored(3, KEY), None);
    cluster.isolated.clear();
    cluster.wait_stored(KEY, b"2");
}

#[test]
fn evaluation_of_another_term_is_refused() {
    let mut cluster = Cluster::new(3);
    cluster.lead(1, 1);
    let basis = cluster.handle(1).evaluate(cluster.ctx(1)).unwrap();
    cluster.lead(1, 2);
    cluster.lead(1, 1);
    let handle = cluster.handle(1);
    let mut task = crate::harness::Task::new(async move { handle.propose(&basis, put(KEY, b"v")).await });
    assert!(matches!(cluster.finish(&mut task), Err(ProposeError::Region(RegionError::StaleCommand { .. }))));
}

/// An isolated leader's write may still be committed by its successor, so it is not answered until that is known or a
/// timeout passes.
#[test]
fn write_of_a_deposed_leader_is_answered_once_decided() {
    let mut cluster = Cluster::new(3);
    cluster.lead(1, 1);
    cluster.isolated.insert(1);
    let mut lost = cluster.start_write(1, 1, put(KEY, b"lost"));
    cluster.run_for(Duration::from_millis(100));
    assert!(lost.poll().is_none());
    cluster.write(1, KEY, b"kept");
    cluster.isolated.clear();
    let outcome = cluster.finish(&mut lost);
    assert!(matches!(outcome, Err(ProposeError::Region(RegionError::StaleCommand { .. }))), "{outcome:?}");
    cluster.wait_stored(KEY, b"kept");
}

#[test]
fn outcome_that_stays_unknown_is_undetermined() {
    let mut cluster = Cluster::new(3);
    cluster.lead(1, 1);
    cluster.isolated.insert(1);
    let mut lost = cluster.start_write(1, 1, put(KEY, b"lost"));
    let outcome = cluster.finish(&mut lost);
    assert!(matches!(outcome, Err(ProposeError::Undetermined { .. })), "{outcome:?}");
}

/// A write above the limit is refused before it is proposed; the region is not affected.
#[test]
fn write_above_the_limit_is_refused() {
    let mut cluster = Cluster::new(3);
    cluster.lead(1, 1);
    let limit = StoreConfig::default().max_proposal_bytes;
    let outcome = {
        let mut task = cluster.start_write(1, 1, put(KEY, &vec![7; limit]));
        cluster.finish(&mut task)
    };
    assert!(
        matches!(outcome, Err(ProposeError::TooLarge { bytes, limit: reported }) if bytes > limit && reported == limit)
    );
    cluster.write(1, KEY, b"fits");
    cluster.wait_stored(KEY, b"fits");
}

/// The leader's appends leave before its own fsync, so that a quorum of followers can commit without it.
#[test]
fn appends_leave_before_the_leaders_own_fsync() {
    let mut cluster = Cluster::new(3);
    cluster.lead(1, 1);
    let task = cluster.start_write(1, 1, put(KEY, b"v"));
    cluster.store_turn(1);
    let sent = cluster.wire.messages.lock().iter().filter(|m| is(m, MessageType::MsgAppend)).count();
    assert_eq!(sent, 2);
    drop(task);
}

/// A follower acknowledges an entry only after its own fsync.
#[test]
fn followers_acknowledge_after_their_fsync() {
    let mut cluster = Cluster::new(3);
    cluster.lead(1, 1);
    let task = cluster.start_write(1, 1, put(KEY, b"v"));
    cluster.store_turn(1);
    cluster.deliver();
    cluster.store_turn(2);
    let acknowledged = |cluster: &Cluster| {
        let acks =
            |m: &&raftstore::ports::RaftMessage| is(m, MessageType::MsgAppendResponse) && m.from.store.get() == 2;
        cluster.wire.messages.lock().iter().filter(acks).count()
    };
    assert_eq!(acknowledged(&cluster), 0);
    cluster.nodes.get_mut(&2).unwrap().writer.as_mut().unwrap().turn();
    cluster.store_turn(2);
    assert_eq!(acknowledged(&cluster), 1);
    drop(task);
}

#[test]
fn nothing_is_acknowledged_after_a_failed_fsync() {
    let mut cluster = Cluster::new(1);
    cluster.write(1, KEY, b"1");
    cluster.nodes[&1].disk.fail_nth(Operation::Sync, 1, std::io::ErrorKind::Other);
    let mut task = cluster.start_write(1, 1, put(KEY, b"2"));
    let outcome = cluster.finish(&mut task);
    assert!(matches!(outcome, Err(ProposeError::Poisoned(_))), "{outcome:?}");
    let mut next = cluster.start_write(1, 1, put(KEY, b"3"));
    assert!(cluster.finish(&mut next).is_err());
    assert!(cluster.handle(1).try_read(cluster.ctx(1)).is_err());
    assert_eq!(cluster.stored(1, KEY).as_deref(), Some(&b"1"[..]));
    cluster.crash(1, 7);
    cluster.start(1);
    cluster.write(1, KEY, b"4");
}

#[test]
fn failed_apply_write_poisons_the_store() {
    let mut cluster = Cluster::new(1);
    cluster.write(1, KEY, b"1");
    cluster.nodes[&1].store.fail_write(1);
    let mut task = cluster.start_write(1, 1, put(KEY, b"2"));
    assert!(matches!(cluster.finish(&mut task), Err(ProposeError::Poisoned(_))));
    assert!(cluster.nodes[&1].core.as_ref().unwrap().poisoned().is_some());
}

/// tikv#4560, #11885: the key-value store was flushed after the last durable commit index.
#[test]
fn applied_index_may_be_ahead_of_the_durable_commit_index() {
    let mut cluster = Cluster::new(3);
    cluster.write(1, KEY, b"1");
    cluster.wait_stored(KEY, b"1");
    for id in 1..=3 {
        engine::store::Store::flush(&cluster.nodes[&id].store).unwrap();
        cluster.crash(id, id);
        cluster.start(id);
    }
    cluster.write(1, KEY, b"2");
    cluster.wait_stored(KEY, b"2");
}

#[test]
fn log_is_truncated_up_to_the_flushed_index() {
    let config = StoreConfig { log_gc_ticks: 2, log_tail_entries: 3, flush_log_bytes: 2000, ..StoreConfig::default() };
    let mut cluster = Cluster::with_config(3, config);
    for value in 0..100u8 {
        cluster.write(1, KEY, &[value; 100]);
    }
    cluster.run_for(Duration::from_secs(5));
    for id in 1..=3 {
        cluster.crash(id, id);
        cluster.start(id);
    }
    cluster.leader(1);
    cluster.wait_stored(KEY, &[99; 100]);
    cluster.write(1, KEY, b"after");
    cluster.wait_stored(KEY, b"after");
}

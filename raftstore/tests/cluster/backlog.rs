//! Overload, full disks, and malformed input.

use std::time::Duration;

use engine::log::LogOptions;
use raft::eraftpb::{Entry, Message, MessageType};
use raftstore::ports::RaftMessage;
use raftstore::{Epoch, PeerId, PeerMeta, PeerRole, ProposeError, RegionError, RegionId, StoreConfig, StoreId};

use crate::harness::{Cluster, KEY, Task, put};

const MEGABYTE: usize = 1 << 20;

/// A megabyte of incompressible data.
fn large(value: u8) -> Vec<u8> {
    let mut state = u64::from(value) + 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..MEGABYTE).map(|_| next()).collect()
}

fn is_busy<T>(outcome: Option<&Result<T, ProposeError>>, with: &str) -> bool {
    matches!(outcome, Some(Err(ProposeError::Region(RegionError::ServerBusy { what, .. }))) if what == with)
}

/// A message from store 2 to store 1, as from the leader of region 1.
fn message(kind: MessageType, term: u64) -> RaftMessage {
    let peer = |store: u64| PeerMeta { id: PeerId::new(10 + store), store: StoreId::new(store), role: PeerRole::Voter };
    let mut message = Message { from: 12, to: 11, term, ..Message::default() };
    message.set_msg_type(kind);
    let epoch = Epoch { conf_ver: 1, version: 1 };
    RaftMessage { region: RegionId::new(1), epoch, from: peer(2), to: peer(1), message }
}

/// Regression: everything that a follower lacked went into one message, which the transport dropped silently; a
/// follower more than 16 MiB behind never caught up.
#[test]
fn follower_far_behind_catches_up_within_the_frame_limit() {
    let mut cluster = Cluster::new(3);
    cluster.lead(1, 1);
    cluster.isolated.insert(3);
    for value in 0..24 {
        cluster.write(1, KEY, &large(value));
    }
    cluster.isolated.clear();
    cluster.wait_stored(KEY, &large(23));
    assert_eq!(cluster.wire.too_large.load(std::sync::atomic::Ordering::SeqCst), 0);
    assert_eq!(cluster.snapshots_sent, 0);
}

/// Regression: one message of a kind unknown to raft-rs stopped the store thread, because raft-rs' getters panic.
#[test]
fn messages_of_unknown_kinds_are_dropped() {
    let mut cluster = Cluster::new(3);
    cluster.lead(1, 2);
    cluster.run_for(Duration::from_secs(1));
    let mut strange = message(MessageType::MsgHeartbeat, 5);
    strange.message.msg_type = 99;
    let mut entry = message(MessageType::MsgAppend, 5);
    (entry.message.index, entry.message.log_term) = (1, 1);
    entry.message.entries = vec![Entry { index: 2, term: 5, entry_type: 99, ..Entry::default() }];
    for message in [strange, entry] {
        cluster.handle(1).deliver(message).unwrap();
        cluster.settle();
    }
    assert_eq!(cluster.metric(1, "raftstore_dropped_messages_total", Some("unknown kind")), 1.0);
    assert_eq!(cluster.metric(1, "raftstore_dropped_messages_total", Some("Malformed")), 1.0);
    cluster.write(1, KEY, b"v");
    cluster.wait_stored(KEY, b"v");
}

/// Regression: proposals filled the mailbox, and the heartbeats that keep a follower quiet were dropped.
#[test]
fn flood_of_requests_leaves_room_for_messages() {
    let mut cluster = Cluster::with_config(3, StoreConfig { mailbox_capacity: 16, ..StoreConfig::default() });
    cluster.lead(1, 1);
    let mut tasks: Vec<_> = (0..13u8).map(|value| cluster.start_write(1, 1, put(&[value], b"v"))).collect();
    assert!(is_busy(tasks[12].poll().as_ref(), "mailbox"));
    for _ in 0..4 {
        cluster.handle(1).deliver(message(MessageType::MsgHeartbeatResponse, 2)).unwrap();
    }
    assert!(cluster.handle(1).deliver(message(MessageType::MsgHeartbeatResponse, 2)).is_err());
    for task in &mut tasks[..12] {
        cluster.finish(task).unwrap();
    }
}

#[test]
fn writes_are_refused_while_the_log_lags() {
    let config = StoreConfig { log_backlog_bytes: 64 << 10, ..StoreConfig::default() };
    let mut cluster = Cluster::with_config(1, config);
    cluster.lead(1, 1);
    cluster.log_paused.insert(1);
    let mut tasks = Vec::new();
    for value in 0..4 {
        tasks.push(cluster.start_write(1, 1, put(&[value], &[value; 30_000])));
        cluster.settle();
    }
    assert!(is_busy(tasks[3].poll().as_ref(), "log backlog"));
    cluster.log_paused.clear();
    for task in &mut tasks[..3] {
        cluster.finish(task).unwrap();
    }
    cluster.write(1, KEY, b"after");
}

/// Regression: a follower whose log was stalled took in appends without bound, until the log's queue was full and the
/// store failed.
#[test]
fn follower_with_a_stalled_log_takes_in_a_bounded_backlog() {
    let config = StoreConfig { log_backlog_bytes: MEGABYTE, ..StoreConfig::default() };
    let mut cluster = Cluster::with_config(3, config);
    cluster.lead(1, 1);
    cluster.log_paused.insert(3);
    for value in 0..80 {
        cluster.write(1, KEY, &large(value));
    }
    assert!(cluster.metric(3, "raftstore_dropped_messages_total", Some("log backlog")) > 0.0);
    let backlog = cluster.metric(3, "raftstore_log_backlog_bytes", None);
    assert!(backlog < 4.0 * MEGABYTE as f64, "{backlog}");
    cluster.log_paused.clear();
    cluster.wait_stored(KEY, &large(79));
    assert_eq!(cluster.handle(3).poisoned(), None);
}

/// Writes large values until one is refused because the disk is full. Returns those that wait for space.
pub(crate) fn fill(cluster: &mut Cluster, store: u64) -> Vec<Task<Result<raftstore::LogIndex, ProposeError>>> {
    let disk = &cluster.nodes[&store].disk;
    disk.set_capacity(Some(disk.used() + MEGABYTE as u64));
    let mut waiting = Vec::new();
    for value in 0..100 {
        let mut task = cluster.start_write(store, 1, put(&[value], &large(value)));
        cluster.settle();
        match task.poll() {
            None => waiting.push(task),
            Some(Ok(_)) => {}
            Some(Err(error)) => {
                assert!(is_busy(Some(&Err::<(), _>(error.clone())), "disk full"), "{error}");
                return waiting;
            }
        }
    }
    panic!("the disk does not fill up");
}

/// Regression: a full disk stopped the store until it was restarted.
#[test]
fn store_continues_when_its_full_disk_has_space_again() {
    let mut cluster = Cluster::new(1);
    cluster.write(1, KEY, b"before");
    let mut waiting = fill(&mut cluster, 1);
    assert!(!waiting.is_empty(), "writes that met the full disk are not answered");
    // For a minute: reads continue, nothing is acknowledged, nothing fails.
    cluster.run_for(Duration::from_secs(60));
    assert!(matches!(cluster.handle(1).try_read(cluster.ctx(1)), Ok(Some(_))));
    assert!(waiting.iter_mut().all(|task| task.poll().is_none()));
    assert_eq!(cluster.handle(1).poisoned(), None);
    assert_eq!(cluster.metric(1, "raftstore_log_full", None), 1.0);
    cluster.nodes[&1].disk.set_capacity(None);
    for task in &mut waiting {
        cluster.finish(task).unwrap();
    }
    assert_eq!(cluster.metric(1, "raftstore_log_full", None), 0.0);
    cluster.write(1, KEY, b"after");
    cluster.crash(1, 7);
    cluster.start(1);
    cluster.leader(1);
    cluster.wait_stored(KEY, b"after");
}

/// A leader that cannot write transfers its leadership. Its own writes get an outcome once there is space, and it
/// catches up.
#[test]
fn leader_with_a_full_disk_transfers_leadership() {
    let mut cluster = Cluster::new(3);
    cluster.lead(1, 1);
    let mut waiting = fill(&mut cluster, 1);
    let ctx = cluster.ctx(1);
    cluster.run_until("another leader", |c| [2, 3].iter().any(|s| c.handle(*s).evaluate(ctx).is_ok()));
    let other = if cluster.handle(2).evaluate(ctx).is_ok() { 2 } else { 3 };
    let mut write = cluster.start_write(other, 1, put(KEY, b"elsewhere"));
    cluster.finish(&mut write).unwrap();
    assert_ne!(cluster.stored(1, KEY).as_deref(), Some(&b"elsewhere"[..]));
    cluster.nodes[&1].disk.set_capacity(None);
    cluster.wait_stored(KEY, b"elsewhere");
    for task in &mut waiting {
        cluster.finish(task).unwrap();
    }
    assert_eq!(cluster.handle(1).poisoned(), None);
}

/// After a power loss with batches waiting for space, the log opens and holds all acknowledged writes.
#[test]
fn crash_with_a_full_disk_loses_nothing_acknowledged() {
    for seed in 0..10 {
        let mut cluster = Cluster::new(1);
        cluster.write(1, KEY, &[seed as u8]);
        drop(fill(&mut cluster, 1));
        cluster.crash(1, seed);
        cluster.nodes[&1].disk.set_capacity(None);
        cluster.start(1);
        cluster.leader(1);
        cluster.wait_stored(KEY, &[seed as u8]);
    }
}

/// 8 KiB of incompressible data.
fn medium(value: u64) -> Vec<u8> {
    let mixed = |at: u64| {
        (at + value * 8192).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    };
    (0..1024).flat_map(|at| mixed(at).to_le_bytes()).collect()
}

/// One store whose log alone has filled its disk, with 8 KiB values under [`KEY`], from 40 on: the store keeps entries
/// for others. Returns the waiting writes and the disk's capacity. The log has a reserve, all applied entries are
/// flushed, and only entries are live in the first files.
fn full_of_log(purge_threshold: u64) -> (Cluster, Vec<Task<Result<raftstore::LogIndex, ProposeError>>>, u64) {
    let config =
        StoreConfig { log_gc_ticks: 2, log_tail_entries: 1 << 30, flush_log_bytes: 64 << 10, ..StoreConfig::default() };
    let log = LogOptions { file_bytes: 64 << 10, prefill_bytes: 8 << 10, purge_threshold, ..LogOptions::default() };
    let mut cluster = Cluster::with_log(1, config, log);
    cluster.leader(1);
    for value in 0..40 {
        cluster.write(1, KEY, &medium(value));
    }
    cluster.crash(1, 1);
    cluster.start(1);
    for region in 1..=2 {
        cluster.leader(region);
    }
    cluster.run_for(Duration::from_secs(5));
    let disk = &cluster.nodes[&1].disk;
    let capacity = disk.used() + (128 << 10);
    disk.set_capacity(Some(capacity));
    let mut waiting = Vec::new();
    let refused = (40..400).find(|value| {
        let mut task = cluster.start_write(1, 1, put(KEY, &medium(*value)));
        cluster.settle();
        let outcome = task.poll();
        if outcome.is_none() {
            waiting.push(task);
        }
        is_busy(outcome.as_ref(), "disk full")
    });
    assert!(refused.is_some() && !waiting.is_empty(), "the disk fills up");
    (cluster, waiting, capacity)
}

/// Regression: truncations waited behind batches that did not fit, so the store could not free space by itself.
#[test]
fn log_that_filled_the_disk_frees_space_by_itself() {
    let (mut cluster, mut waiting, capacity) = full_of_log(256 << 10);
    for task in &mut waiting {
        cluster.finish(task).unwrap();
    }
    assert_eq!(cluster.metric(1, "raftstore_log_full", None), 0.0);
    // And again, for several times the capacity of the disk.
    for value in 400..500 {
        cluster.run_until("room for another", |cluster| cluster.metric(1, "raftstore_log_full", None) == 0.0);
        cluster.write(1, KEY, &medium(value));
    }
    assert!(cluster.nodes[&1].disk.used() <= capacity);
    cluster.crash(1, 3);
    cluster.start(1);
    cluster.leader(1);
    cluster.wait_stored(KEY, &medium(499));
}

/// The log is within its threshold, so purge reports no pinning region; but the disk is full.
#[test]
fn full_disk_truncates_entries_kept_for_others() {
    let (mut cluster, mut waiting, _) = full_of_log(1 << 30);
    for task in &mut waiting {
        cluster.finish(task).unwrap();
    }
    assert_eq!(cluster.metric(1, "raftstore_log_full", None), 0.0);
}

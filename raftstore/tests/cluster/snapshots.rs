//! Followers beyond the log: snapshots, and a crash between any two steps of an installation.

use std::collections::BTreeSet;
use std::time::Duration;

use engine::disk::Operation;
use engine::store::StoreError;
use raft::eraftpb::MessageType;
use raftstore::snapshot::SnapshotFiles;
use raftstore::{Floor, Floors, OpenError, RegionError, RegionId, StoreConfig};

use crate::harness::{Cluster, KEY, Receivers, Task, is};

fn config() -> StoreConfig {
    StoreConfig {
        log_gc_ticks: 2,
        log_tail_entries: 2,
        log_lag_entries: 5,
        flush_log_bytes: 1,
        ..StoreConfig::default()
    }
}

/// A cluster whose store 3 has missed more than the log still holds. Store 3 has a key of its own that the snapshot
/// must remove.
fn lagging() -> Cluster {
    let mut cluster = Cluster::with_config(3, config());
    fall_behind(&mut cluster);
    cluster
}

fn fall_behind(cluster: &mut Cluster) {
    fall_behind_by(cluster, 60);
}

/// Isolates store 3 and writes `entries` values to region 1, which store 1 leads.
fn fall_behind_by(cluster: &mut Cluster, entries: u8) {
    cluster.lead(1, 1);
    cluster.write(1, b"gone", b"x");
    cluster.wait_stored(b"gone", b"x");
    cluster.isolated.insert(3);
    let mut delete = engine::WriteBatch::new();
    delete.delete(engine::Cf::Default, b"gone");
    let leader = cluster.leader(1);
    let mut task = cluster.start_write(leader, 1, delete);
    cluster.finish(&mut task).unwrap();
    for value in 0..entries {
        cluster.write(1, KEY, &[value]);
    }
    cluster.run_for(Duration::from_secs(3));
}

fn caught_up(cluster: &mut Cluster) {
    cluster.write(1, KEY, b"last");
    cluster.wait_stored(KEY, b"last");
    assert_eq!(cluster.stored(3, b"gone"), None);
    // It also takes part: with another store isolated, its vote is needed.
    cluster.isolated.insert(2);
    cluster.write(1, KEY, b"needs 3");
    cluster.isolated.clear();
    cluster.wait_stored(KEY, b"needs 3");
}

fn snapshot_files(cluster: &Cluster, store: u64) -> usize {
    SnapshotFiles::open(cluster.nodes[&store].files.session()).unwrap().list().unwrap().len()
}

#[test]
fn follower_beyond_the_log_gets_a_snapshot() {
    let mut cluster = lagging();
    cluster.isolated.clear();
    caught_up(&mut cluster);
    cluster.run_for(Duration::from_secs(5));
    assert_eq!((snapshot_files(&cluster, 1), snapshot_files(&cluster, 3)), (0, 0), "files are removed after use");
}

/// What older entries have raised travels with the data that they have shaped, and survives a restart.
#[test]
fn floors_travel_with_a_snapshot() {
    let mut cluster = Cluster::with_config(3, config());
    cluster.lead(1, 1);
    let floors = Floors { writes: Floor::new(9), reads: Floor::new(7) };
    let handle = cluster.handle(1);
    let basis = handle.basis(cluster.ctx(1)).unwrap();
    cluster.isolated.insert(3);
    let mut raising = Task::new(async move { handle.raise_floors(&basis, floors).await });
    raising.start();
    cluster.finish(&mut raising).unwrap();
    fall_behind(&mut cluster);
    assert_eq!(
        (cluster.handle(1).floors(RegionId::new(1)), cluster.handle(3).floors(RegionId::new(1))),
        (floors, Floors::default())
    );
    cluster.isolated.clear();
    caught_up(&mut cluster);
    assert_eq!(cluster.handle(3).floors(RegionId::new(1)), floors);
    cluster.run_for(Duration::from_secs(5));
    cluster.crash(3, 0);
    cluster.start(3);
    assert_eq!(cluster.handle(3).floors(RegionId::new(1)), floors);
}

/// PR tikv#5919: a read during an installation sees an empty region.
#[test]
fn nothing_is_served_while_a_snapshot_is_installed() {
    let mut cluster = lagging();
    cluster.installs_paused.insert(3);
    cluster.isolated.clear();
    cluster.run_for(Duration::from_secs(2));
    let error = cluster.handle(3).evaluate(cluster.ctx(1)).err();
    assert!(matches!(error, Some(RegionError::NotLeader { .. } | RegionError::NotReady { .. })), "{error:?}");
    assert_eq!(cluster.stored(3, KEY), None);
    cluster.installs_paused.clear();
    caught_up(&mut cluster);
}

/// tikv#12618: data and Raft state live in separate engines. The follower loses power after each of the first disk
/// changes that follow the snapshot's arrival, which covers every point between the steps of the installation.
#[test]
fn interrupted_installation_is_redone() {
    for changes in 0..12 {
        for install_runs in [false, true] {
            let mut cluster = lagging();
            cluster.isolated.clear();
            cluster.hold = |m| is(m, MessageType::MsgSnapshot);
            if !install_runs {
                cluster.installs_paused.insert(3);
            }
            // The file is on the follower; the message is still held.
            cluster.run_until("the snapshot's file", |c| snapshot_files(c, 3) > 0);
            cluster.hold = |_| false;
            let message = cluster.held.remove(0);
            cluster.nodes[&3].disk.halt_after(changes);
            cluster.deliver_one(message);
            cluster.run_for(Duration::from_millis(40));
            cluster.crash(3, changes);
            cluster.installs_paused.clear();
            cluster.start(3);
            caught_up(&mut cluster);
        }
    }
}

/// The same with a key-value store that fails while the data is replaced, in the worst way its contract allows.
#[test]
fn store_that_fails_while_replacing_the_data_starts_over() {
    for flush in [false, true] {
        let mut cluster = lagging();
        if flush {
            cluster.nodes[&3].store.fail_flush(1);
        } else {
            cluster.nodes[&3].store.fail_write(1);
        }
        cluster.isolated.clear();
        cluster.run_until("the store to fail", |c| c.nodes[&3].core.as_ref().unwrap().poisoned().is_some());
        cluster.crash(3, 1);
        cluster.start(3);
        caught_up(&mut cluster);
    }
}

/// Term and vote are kept through an interrupted installation.
#[test]
fn term_is_kept_through_an_installation() {
    let mut cluster = lagging();
    cluster.installs_paused.insert(3);
    cluster.isolated.clear();
    cluster.run_until("the snapshot's file", |c| snapshot_files(c, 3) > 0);
    cluster.run_for(Duration::from_millis(100));
    let term = cluster.handle(3).region(RegionId::new(1)).unwrap().term;
    cluster.isolated.insert(3);
    cluster.crash(3, 5);
    cluster.installs_paused.clear();
    cluster.start(3);
    assert!(cluster.handle(3).region(RegionId::new(1)).unwrap().term >= term);
    cluster.isolated.clear();
    caught_up(&mut cluster);
}

/// A cluster whose store 3 has started to install a snapshot and makes no progress.
fn installing() -> Cluster {
    let mut cluster = lagging();
    cluster.installs_paused.insert(3);
    cluster.isolated.clear();
    cluster.run_until("the snapshot's file", |c| snapshot_files(c, 3) > 0);
    cluster.run_for(Duration::from_millis(100));
    let error = cluster.handle(3).evaluate(cluster.ctx(1)).err();
    assert!(matches!(error, Some(RegionError::NotLeader { .. })), "{error:?}");
    cluster
}

/// Regression: the clock of a replica's promise to its leader stopped during an installation, so it voted for nobody
/// until it was done.
#[test]
fn installing_replica_votes_for_others() {
    let mut cluster = installing();
    cluster.isolated.insert(1);
    let leads = |c: &Cluster, store: u64| c.handle(store).region(RegionId::new(1)).unwrap().is_leader;
    cluster.run_until("another leader", |c| leads(c, 2));
    assert!(!leads(&cluster, 3));
    assert_eq!(snapshot_files(&cluster, 3), 1, "still installing");
    cluster.installs_paused.clear();
    cluster.isolated.clear();
    cluster.run_until("the old leader to learn of it", |c| !leads(c, 1));
    caught_up(&mut cluster);
}

/// A replica that installs does not campaign, however long nobody leads.
#[test]
fn installing_replica_never_campaigns() {
    let mut cluster = installing();
    cluster.hold = |m| is(m, MessageType::MsgRequestPreVote) || is(m, MessageType::MsgRequestVote);
    cluster.isolated.insert(1);
    cluster.run_for(Duration::from_secs(20));
    let candidates = |c: &Cluster| c.held.iter().map(|m| m.from.store.get()).collect::<BTreeSet<u64>>();
    assert_eq!(candidates(&cluster), BTreeSet::from([1, 2]));
    assert_eq!(snapshot_files(&cluster, 3), 1, "still installing");
    cluster.installs_paused.clear();
    cluster.run_until("store 3 to campaign", |c| candidates(c).contains(&3));
}

/// Regression: once delivered, a snapshot no longer counted as the follower's position. The log behind it was truncated
/// before the follower had installed it, so the follower needed another snapshot, as long as writes continued.
#[test]
fn log_behind_a_delivered_snapshot_is_kept_during_installation() {
    let mut cluster = installing();
    let sent = cluster.snapshots_sent;
    for value in 0..4u8 {
        cluster.write(1, KEY, &[value]);
    }
    // Many log truncations.
    cluster.run_for(Duration::from_secs(5));
    cluster.installs_paused.clear();
    caught_up(&mut cluster);
    assert_eq!(cluster.snapshots_sent, sent);
}

/// A crash during an installation leaves its file, which the next start needs. The error names what is wrong with it.
#[test]
fn start_reports_a_bad_file_of_an_unfinished_installation() {
    let mut cluster = installing();
    cluster.crash(3, 1);
    cluster.installs_paused.clear();
    let files = std::sync::Arc::clone(&cluster.nodes[&3].files);
    let name = engine::disk::Disk::list(&*files).unwrap().into_iter().find(|name| name.ends_with(".snap")).unwrap();
    let sound = files.content(&name).unwrap();

    files.lose(&name);
    let error = cluster.try_start(3).unwrap_err();
    assert!(matches!(error, OpenError::SnapshotMissing { .. }), "{error}");

    // The last byte of the rows: the footer has 32.
    let row = sound.len() - 33;
    for at in [0, row, sound.len() - 1] {
        let mut damaged = sound.clone();
        damaged[at] ^= 1;
        files.set_content(&name, damaged);
        let error = if at == row {
            // Found when the rows are read, and then the store stops.
            cluster.start(3);
            let poisoned = |c: &Cluster| c.nodes[&3].core.as_ref().unwrap().poisoned();
            cluster.run_until("the damage to be found", |c| poisoned(c).is_some());
            let why = poisoned(&cluster).unwrap();
            cluster.crash(3, 1);
            why
        } else {
            let error = cluster.try_start(3).unwrap_err();
            assert!(matches!(error, OpenError::SnapshotDamaged { .. }), "{error}");
            error.to_string()
        };
        assert!(error.contains("is damaged") && error.contains("replace this store"), "{error}");
    }

    files.set_content(&name, sound);
    files.fail_nth(Operation::Read, 1, std::io::ErrorKind::Other);
    let error = cluster.try_start(3).unwrap_err();
    assert!(matches!(error, OpenError::Store(StoreError::Io(_))), "{error}");

    cluster.start(3);
    caught_up(&mut cluster);
}

/// Writes `count` values to region 1 and lets the logs be truncated many times.
fn write_on(cluster: &mut Cluster, count: u8) {
    for value in 0..count {
        cluster.write(1, KEY, &[value]);
    }
    cluster.run_for(Duration::from_secs(5));
}

/// Snapshot files that a store has built.
fn built(cluster: &Cluster, store: u64) -> f64 {
    cluster.metric(store, "raftstore_snapshots_total", Some("built"))
}

/// Regression: while the file of a large region was written, sent and installed, the log was truncated past its index,
/// at the latest when more entries followed than are kept for a lagging follower. So the region was built again, for
/// as long as clients wrote.
#[test]
fn log_is_held_from_the_start_of_a_build_until_the_follower_has_caught_up() {
    let mut cluster = lagging();
    cluster.builds_paused.insert(1);
    cluster.installs_paused.insert(3);
    cluster.isolated.clear();
    write_on(&mut cluster, 30);
    // The data is taken. Writing the file takes long.
    let core = cluster.nodes.get_mut(&1).unwrap().core.as_mut().unwrap();
    assert!(core.build_turn());
    write_on(&mut cluster, 30);
    cluster.builds_paused.clear();
    write_on(&mut cluster, 30);
    assert_eq!(snapshot_files(&cluster, 3), 1, "delivered, not installed");
    write_on(&mut cluster, 30);
    cluster.installs_paused.clear();
    caught_up(&mut cluster);
    assert_eq!((cluster.snapshots_sent, built(&cluster, 1)), (1, 1.0));
    // The hold ends, and the file goes.
    cluster.run_for(Duration::from_secs(5));
    write_on(&mut cluster, 2);
    assert_eq!((snapshot_files(&cluster, 1), snapshot_files(&cluster, 3)), (0, 0));
}

/// Only space ends a hold. The follower then gets another snapshot, but not at full speed: while each is useless when
/// it is built, or when it is installed, the next build waits longer.
#[test]
fn hold_ends_when_the_disk_is_short_of_space() {
    for slow_builds in [false, true] {
        let mut cluster = Cluster::with_config(3, StoreConfig { log_hold_free_bytes: 1 << 40, ..config() });
        fall_behind(&mut cluster);
        let disk = std::sync::Arc::clone(&cluster.nodes[&1].disk);
        cluster.installs_paused.insert(3);
        cluster.isolated.clear();
        cluster.run_until("the snapshot's file", |c| snapshot_files(c, 3) > 0);
        if slow_builds {
            cluster.builds_paused.insert(1);
        }
        write_on(&mut cluster, 30);
        // Less free space than `log_hold_free_bytes`, enough to go on.
        disk.set_capacity(Some(disk.used() + (1 << 30)));
        write_on(&mut cluster, 30);
        let before = built(&cluster, 1);
        if slow_builds {
            cluster.installs_paused.clear();
        }
        // For a minute there are 30 writes while a file is written, or from its arrival to its installation.
        let end = cluster.now().plus(Duration::from_secs(60));
        while cluster.now() < end {
            let arrived = snapshot_files(&cluster, 3) > 0;
            for value in 0..30u8 {
                cluster.write(1, KEY, &[value]);
            }
            cluster.run_for(Duration::from_millis(300));
            let worker = cluster.nodes.get_mut(if slow_builds { &1 } else { &3 });
            let core = worker.unwrap().core.as_mut().unwrap();
            if slow_builds {
                // A build has two turns: it takes the data, and writes the file in the next round.
                core.build_turn();
            } else if arrived {
                core.install_turn();
            }
        }
        let builds = built(&cluster, 1) - before;
        assert!((3.0..=8.0).contains(&builds), "slow builds: {slow_builds}, {builds} in 60 election timeouts");
        cluster.builds_paused.clear();
        cluster.installs_paused.clear();
        caught_up(&mut cluster);
        assert!(cluster.snapshots_sent > 1, "the entries after the first one were truncated");
        assert_eq!(cluster.handle(1).poisoned(), None);
    }
}

/// A new leader learns from the follower's answers that it installs a snapshot, and holds the log for it.
#[test]
fn new_leader_holds_the_log_for_an_installing_follower() {
    let mut cluster = Cluster::with_config(3, StoreConfig { log_tail_entries: 60, ..config() });
    fall_behind_by(&mut cluster, 150);
    cluster.installs_paused.insert(3);
    cluster.isolated.clear();
    cluster.run_until("the snapshot's file", |c| snapshot_files(c, 3) > 0);
    cluster.run_for(Duration::from_millis(100));
    cluster.lead(1, 2);
    cluster.run_for(Duration::from_secs(1));
    // More than the tail, one truncation after another.
    for _ in 0..4 {
        write_on(&mut cluster, 30);
    }
    let sent = cluster.snapshots_sent;
    cluster.installs_paused.clear();
    caught_up(&mut cluster);
    assert_eq!(cluster.snapshots_sent, sent);
}

/// Neither a build nor an installation delays other regions: apply, flushes and truncation go on.
#[test]
fn other_regions_go_on_during_builds_and_installations() {
    let mut cluster = lagging();
    cluster.builds_paused.insert(1);
    cluster.isolated.clear();
    cluster.lead(2, 1);
    let flushed = |c: &Cluster, store: u64, value: &[u8]| {
        engine::store::Store::get_flushed(&c.nodes[&store].store, engine::Cf::Default, OTHER).unwrap().as_deref()
            == Some(value)
    };
    for (value, installing) in [(b"build", false), (b"inst.", true)] {
        if installing {
            cluster.installs_paused.insert(3);
            cluster.builds_paused.clear();
            cluster.run_until("the snapshot's file", |c| snapshot_files(c, 3) > 0);
        }
        cluster.write(2, OTHER, value);
        cluster.wait_stored(OTHER, value);
        cluster.run_until("flushes", |c| flushed(c, 1, value) && flushed(c, 3, value));
    }
    assert_eq!(snapshot_files(&cluster, 3), 1, "still installing");
    cluster.installs_paused.clear();
    caught_up(&mut cluster);
}

/// Regression: a leader that was asked to hand over to a replica that installs a snapshot refused writes for an
/// election timeout.
#[test]
fn installing_replica_is_no_successor() {
    let mut cluster = installing();
    cluster.handle(1).transfer_leader(RegionId::new(1), raftstore::StoreId::new(3)).unwrap();
    cluster.settle();
    let mut write = cluster.start_write(1, 1, crate::harness::put(KEY, b"at once"));
    cluster.settle();
    write.poll().expect("an answer without waiting").unwrap();
    // With the other store away, a stopping leader has nobody to wait for.
    cluster.isolated.insert(2);
    cluster.run_for(Duration::from_secs(3));
    let now = cluster.now();
    let core = cluster.nodes.get_mut(&1).unwrap().core.as_mut().unwrap();
    core.begin_stop(now);
    cluster.settle();
    let now = cluster.now();
    assert!(cluster.nodes.get_mut(&1).unwrap().core.as_mut().unwrap().continue_stop(now));
}

/// A stopping leader whose first successor lets the offer pass takes another. Until then it leads.
#[test]
fn stopping_leader_offers_again() {
    let mut cluster = Cluster::new(3);
    cluster.lead(1, 1);
    cluster.write(1, KEY, b"x");
    cluster.wait_stored(KEY, b"x");
    cluster.hold = |m| is(m, MessageType::MsgTimeoutNow) && m.to.store.get() == 2;
    let now = cluster.now();
    cluster.nodes.get_mut(&1).unwrap().core.as_mut().unwrap().begin_stop(now);
    cluster.run_for(Duration::from_millis(500));
    assert!(!cluster.held.is_empty(), "store 2 was asked first");
    cluster.run_until("store 3 to lead", |c| c.handle(3).region(RegionId::new(1)).unwrap().is_leader);
}

/// A key of region 2.
const OTHER: &[u8] = b"other";

/// Store 1 stops while store 3 installs a snapshot of region 1. Region 2 moves to store 3 at once and is served there.
/// Region 1 is served at store 1.
#[test]
fn leader_stops_while_its_successor_installs_another_region() {
    let mut cluster = Cluster::with_config(3, config());
    cluster.lead(2, 1);
    fall_behind(&mut cluster);
    cluster.installs_paused.insert(3);
    cluster.isolated.clear();
    cluster.run_until("the snapshot's file", |c| snapshot_files(c, 3) > 0);
    cluster.write(2, OTHER, b"x");
    cluster.wait_stored(OTHER, b"x");
    // Store 2 accepts no offer, so store 3 is the only successor for region 2, and none for region 1.
    cluster.hold = |m| is(m, MessageType::MsgTimeoutNow) && m.to.store.get() == 2;
    let now = cluster.now();
    cluster.nodes.get_mut(&1).unwrap().core.as_mut().unwrap().begin_stop(now);
    let ctx = cluster.ctx(2);
    cluster.run_until("store 3 to serve region 2", |c| c.handle(3).evaluate(ctx).is_ok());
    let mut write = cluster.start_write(3, 2, crate::harness::put(OTHER, b"y"));
    cluster.finish(&mut write).unwrap();
    assert!(!cluster.handle(3).region(RegionId::new(1)).unwrap().is_leader);
    // Nobody takes region 1, so store 1 goes on serving it. It refuses writes only while an offer is open.
    let ticks = 6 * cluster.config.election_ticks;
    let is_served = (0..ticks).any(|_| {
        cluster.run_for(cluster.config.tick_interval);
        let now = cluster.now();
        let core = cluster.nodes.get_mut(&1).unwrap().core.as_mut().unwrap();
        assert!(!core.continue_stop(now), "the drain ended");
        let mut write = cluster.start_write(1, 1, crate::harness::put(KEY, b"during"));
        cluster.finish(&mut write).is_ok()
    });
    assert!(is_served, "store 1 accepts no write to region 1");
    assert_eq!(snapshot_files(&cluster, 3), 1, "still installing");
}

/// Regression: a build that failed was repeated with every heartbeat.
#[test]
fn failed_build_backs_off() {
    let mut cluster = lagging();
    let files = std::sync::Arc::clone(&cluster.nodes[&1].files);
    files.set_capacity(Some(0));
    cluster.isolated.clear();
    let before = files.calls(Operation::Create);
    cluster.run_for(Duration::from_secs(60));
    let tries = files.calls(Operation::Create) - before;
    assert!((3..=10).contains(&tries), "{tries} builds in 60 election timeouts");
    files.set_capacity(None);
    caught_up(&mut cluster);
}

/// A file that is lost or damaged is built anew, also if the region stands still: a build does not take the damaged
/// file for its own.
#[test]
fn lost_or_damaged_snapshot_is_built_again() {
    for lost in [true, false] {
        let mut cluster = lagging();
        cluster.builds_paused.insert(1);
        cluster.isolated.clear();
        cluster.run_for(Duration::from_secs(1));
        let core = cluster.nodes.get_mut(&1).unwrap().core.as_mut().unwrap();
        assert!(core.build_turn() && core.build_turn());
        let files = std::sync::Arc::clone(&cluster.nodes[&1].files);
        let name = engine::disk::Disk::list(&*files).unwrap().pop().unwrap();
        if lost {
            files.lose(&name);
        } else {
            let mut content = files.content(&name).unwrap();
            let middle = content.len() / 2;
            content[middle] ^= 1;
            files.set_content(&name, content);
        }
        cluster.builds_paused.clear();
        cluster.run_until("the follower to catch up", |c| c.stored(3, KEY) == Some(vec![59]));
        assert_eq!((cluster.snapshots_sent, built(&cluster, 1)), (4, 2.0), "lost: {lost}");
        caught_up(&mut cluster);
    }
}

/// Regression: every undelivered snapshot counted as a fault of its file, and every third one was built anew. A
/// receiver that is busy, or away, is sent the same file later, at growing intervals.
#[test]
fn busy_receiver_is_sent_the_same_file_later() {
    let mut cluster = lagging();
    cluster.receivers = Receivers::Busy;
    cluster.isolated.clear();
    write_on(&mut cluster, 10);
    cluster.run_for(Duration::from_secs(60));
    let sent = cluster.snapshots_sent;
    assert!((5..=9).contains(&sent), "{sent} deliveries in 65 election timeouts");
    cluster.isolated.insert(3);
    cluster.run_for(Duration::from_secs(30));
    cluster.isolated.clear();
    cluster.receivers = Receivers::Ready;
    caught_up(&mut cluster);
    assert_eq!((cluster.files_copied, built(&cluster, 1)), (1, 1.0));
}

/// The sender gave up waiting for a receiver whose disk is slow. The file is there, so only the message is sent again.
#[test]
fn file_at_a_slow_receiver_is_neither_sent_nor_built_again() {
    let mut cluster = lagging();
    cluster.receivers = Receivers::Slow;
    cluster.isolated.clear();
    caught_up(&mut cluster);
    assert_eq!((cluster.snapshots_sent, cluster.files_copied, built(&cluster, 1)), (2, 1, 1.0));
}

/// Entries that are no longer cached are read by a thread of their own; the store thread reads nothing. While that
/// thread waits for the disk, everything but the follower that needs them goes on.
#[test]
fn old_entries_are_not_read_on_the_store_thread() {
    let config = StoreConfig { entry_cache_bytes: 0, log_scrub_bytes: 0, ..StoreConfig::default() };
    let mut cluster = Cluster::with_config(3, config);
    cluster.lead(1, 1);
    cluster.lead(2, 1);
    cluster.isolated.insert(3);
    for value in 0..60u8 {
        cluster.write(1, KEY, &[value]);
    }
    cluster.log_reads_paused.insert(1);
    cluster.isolated.clear();
    let disk = std::sync::Arc::clone(&cluster.nodes[&1].disk);
    cluster.run_for(Duration::from_secs(3));
    let before = disk.calls(Operation::Read);
    for value in 0..5u8 {
        cluster.write(2, OTHER, &[value]);
    }
    cluster.wait_stored(OTHER, &[4]);
    cluster.run_for(Duration::from_secs(10));
    assert_eq!(cluster.leader(1), 1);
    assert_ne!(cluster.stored(3, KEY), Some(vec![59]), "nobody has read what it needs");
    assert_eq!(disk.calls(Operation::Read), before, "neither ticks nor answers read");
    cluster.log_reads_paused.clear();
    cluster.wait_stored(KEY, &[59]);
    assert_eq!(cluster.snapshots_sent, 0);
}

/// Regression: a store that restarted in the middle of an installation completed it before it served anything.
#[test]
fn restarted_store_continues_an_installation_while_it_serves() {
    let mut cluster = installing();
    let sent = cluster.snapshots_sent;
    cluster.crash(3, 1);
    cluster.start(3);
    // The other region is served, and store 3 may lead it.
    cluster.lead(2, 3);
    cluster.write(2, OTHER, b"x");
    cluster.wait_stored(OTHER, b"x");
    // It votes for others in the region that it installs, and never leads it.
    cluster.handle(1).transfer_leader(RegionId::new(1), raftstore::StoreId::new(3)).unwrap();
    cluster.run_for(Duration::from_secs(1));
    cluster.isolated.insert(1);
    let leads = |c: &Cluster, store: u64| c.handle(store).region(RegionId::new(1)).unwrap().is_leader;
    cluster.run_until("another leader", |c| leads(c, 2));
    cluster.isolated = [1, 2].into();
    cluster.run_for(Duration::from_secs(20));
    assert!(!leads(&cluster, 3));
    assert_eq!(snapshot_files(&cluster, 3), 1, "still installing");
    // Stopped again, with the data half replaced.
    cluster.nodes[&3].store.fail_write(1);
    cluster.installs_paused.clear();
    cluster.run_until("the store to fail", |c| c.nodes[&3].core.as_ref().unwrap().poisoned().is_some());
    cluster.crash(3, 2);
    cluster.start(3);
    cluster.isolated.clear();
    caught_up(&mut cluster);
    assert_eq!(cluster.snapshots_sent, sent, "the file was there");
}

//! Followers beyond the log: snapshots, and a crash between any two steps of an installation.

use std::time::Duration;

use engine::disk::Operation;
use engine::store::StoreError;
use raft::eraftpb::MessageType;
use raftstore::snapshot::SnapshotFiles;
use raftstore::{OpenError, RegionError, RegionId, StoreConfig};

use crate::harness::{Cluster, KEY, is};

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
    cluster.lead(1, 1);
    cluster.write(1, b"gone", b"x");
    cluster.wait_stored(b"gone", b"x");
    cluster.isolated.insert(3);
    let mut delete = engine::WriteBatch::new();
    delete.delete(engine::Cf::Default, b"gone");
    let leader = cluster.leader(1);
    let mut task = cluster.start_write(leader, 1, delete);
    cluster.finish(&mut task).unwrap();
    for value in 0..60u8 {
        cluster.write(1, KEY, &[value]);
    }
    cluster.run_for(Duration::from_secs(3));
    cluster
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

    for at in [0, sound.len() / 2, sound.len() - 1] {
        let mut damaged = sound.clone();
        damaged[at] ^= 1;
        files.set_content(&name, damaged);
        let error = cluster.try_start(3).unwrap_err();
        assert!(matches!(error, OpenError::SnapshotDamaged { .. }), "{error}");
        assert!(error.to_string().contains("replace this store"), "{error}");
    }

    files.set_content(&name, sound);
    files.fail_nth(Operation::Read, 1, std::io::ErrorKind::Other);
    let error = cluster.try_start(3).unwrap_err();
    assert!(matches!(error, OpenError::Store(StoreError::Io(_))), "{error}");

    cluster.start(3);
    caught_up(&mut cluster);
}

//! Log space: a region that writes little must not pin log files that hold mostly dead data of others.

use std::time::Duration;

use engine::disk::{Disk, Operation};
use engine::log::LogOptions;
use raftstore::StoreConfig;

use crate::harness::{Cluster, KEY, put};

/// A key in region 2.
const QUIET: &[u8] = b"quiet";

/// Region 2 has filled a few log files and then become quiet; store 3 has not received the last entries. The region has
/// far fewer entries than the tail it may keep.
fn pinned() -> Cluster {
    pinned_and_scrubbed(StoreConfig::default().log_scrub_bytes)
}

/// The same, with this scrub rate in bytes per second.
fn pinned_and_scrubbed(log_scrub_bytes: u64) -> Cluster {
    let config = StoreConfig {
        log_gc_ticks: 2,
        log_tail_entries: 100,
        flush_log_bytes: 1 << 30,
        log_scrub_bytes,
        ..StoreConfig::default()
    };
    let log = LogOptions { file_bytes: 64 << 10, prefill_bytes: 0, purge_threshold: 2 << 20, ..LogOptions::default() };
    let mut cluster = Cluster::with_log(3, config, log);
    cluster.lead(1, 1);
    cluster.lead(2, 1);
    for number in 0..40u8 {
        if number == 30 {
            cluster.isolated.insert(3);
        }
        cluster.write(2, QUIET, &quiet(number));
    }
    cluster
}

/// An incompressible value.
fn quiet(number: u8) -> Vec<u8> {
    (0..4096u64).map(|at| ((at * at + u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u8).collect()
}

fn oldest_file(cluster: &Cluster, store: u64) -> bool {
    cluster.nodes[&store].disk.content("0000000000000001.log").is_some()
}

#[test]
fn quiet_region_releases_the_old_files_it_pins() {
    let mut cluster = pinned();
    assert!(oldest_file(&cluster, 1));
    for number in 0..700u32 {
        let value: Vec<u8> =
            (0..4096u32).map(|at| ((at * at + number).wrapping_mul(0x9e37_79b9) >> 20) as u8).collect();
        cluster.write(1, KEY, &value);
    }
    cluster.run_for(Duration::from_secs(5));
    assert!(!oldest_file(&cluster, 1) && !oldest_file(&cluster, 2), "the leader and a follower");
    // A follower that needs truncated entries gets a snapshot.
    let sent = cluster.snapshots_sent;
    cluster.isolated.clear();
    cluster.write(2, QUIET, b"last");
    cluster.wait_stored(QUIET, b"last");
    assert!(cluster.snapshots_sent > sent);
    // The rest is intact: it survives a restart.
    for id in 1..=3 {
        cluster.crash(id, id);
        cluster.start(id);
    }
    cluster.write(2, QUIET, b"again");
    cluster.wait_stored(QUIET, b"again");
}

/// The disk is filled by others, and there is no reserve. Purge finds work, reads and compresses it, and cannot write
/// it. It must retry once per tick, not as fast as it can. When there is space again, the store continues.
#[test]
fn purge_does_not_spin_on_a_disk_that_stays_full() {
    let config =
        StoreConfig { log_gc_ticks: 2, log_tail_entries: 100, flush_log_bytes: 64 << 10, ..StoreConfig::default() };
    let log = LogOptions {
        file_bytes: 64 << 10,
        prefill_bytes: 0,
        purge_threshold: 1 << 30,
        spare_files: 0,
        ..LogOptions::default()
    };
    let mut cluster = Cluster::with_log(1, config, log);
    cluster.leader(1);
    cluster.leader(2);
    let value = |number: u32| -> Vec<u8> {
        (0..4096u32).map(|at| ((at * at + number).wrapping_mul(0x9e37_79b9) >> 20) as u8).collect()
    };
    // A third of the older files is live, which is too much to rewrite them before the disk is full.
    for number in 0..300 {
        let (region, key) = if number % 3 == 0 { (2, QUIET) } else { (1, KEY) };
        cluster.write(region, key, &value(number));
    }
    cluster.run_for(Duration::from_secs(5));
    let disk = cluster.nodes[&1].disk.clone();
    disk.set_capacity(Some(disk.used()));
    let mut waiting = cluster.start_write(1, 1, put(KEY, &value(200)));
    cluster.settle();
    let before = disk.calls(Operation::Write);
    // One minute of ticks. Each tick retries a few batches and one purge step.
    let ticks = Duration::from_secs(60).as_millis() / cluster.config.tick_interval.as_millis();
    cluster.run_for(Duration::from_secs(60));
    let calls = disk.calls(Operation::Write) - before;
    assert!(calls > 0 && u128::from(calls) < 40 * ticks, "{calls} writes in {ticks} ticks");
    assert_eq!(cluster.handle(1).poisoned(), None);
    disk.set_capacity(None);
    cluster.finish(&mut waiting).unwrap();
    (201..220).for_each(|number| cluster.write(1, KEY, &value(number)));
}

/// Purge finds a damaged file. The store is poisoned, as after a failed read, and other replicas take over.
#[test]
fn damage_found_by_purge_poisons_the_store() {
    let mut cluster = pinned();
    cluster.isolated.clear();
    let poisoned = |cluster: &Cluster, id: u64| cluster.nodes[&id].core.as_ref().unwrap().poisoned();
    for number in 0..500u32 {
        let value: Vec<u8> =
            (0..4096u32).map(|at| ((at * at + number).wrapping_mul(0x9e37_79b9) >> 20) as u8).collect();
        if number == 200 {
            damage_sealed_files(&cluster, 1);
        }
        let leader = cluster.leader(1);
        let mut write = cluster.start_write(leader, 1, put(KEY, &value));
        // The write in flight when the damage is found fails.
        let written = cluster.finish(&mut write);
        assert!(written.is_ok() || poisoned(&cluster, 1).is_some(), "{written:?}");
    }
    let why = poisoned(&cluster, 1).unwrap();
    assert!(why.starts_with("log: 0000") && why.contains("no seal"), "{why}");
    assert_eq!((poisoned(&cluster, 2), poisoned(&cluster, 3)), (None, None));
    assert_ne!(cluster.leader(1), 1);
    cluster.write(1, KEY, b"goes on");
}

/// The same for damage, in a seal or a block, that neither reads nor purge meet: scrub finds it. With scrub off nothing
/// does.
#[test]
fn damage_found_by_scrub_poisons_the_store() {
    let poisoned = |cluster: &Cluster, id: u64| cluster.nodes[&id].core.as_ref().unwrap().poisoned();
    for (harm, what) in
        [(damage_sealed_files as fn(&Cluster, u64), "no seal"), (damage_a_block, "block fails its checksum")]
    {
        for pace in [0, StoreConfig::default().log_scrub_bytes] {
            let mut cluster = pinned_and_scrubbed(pace);
            // No follower needs to be sent the damaged entries.
            cluster.isolated.clear();
            cluster.wait_stored(QUIET, &quiet(39));
            harm(&cluster, 1);
            if pace == 0 {
                cluster.run_for(Duration::from_secs(20));
                assert_eq!((poisoned(&cluster, 1), cluster.leader(1)), (None, 1), "{what}");
                continue;
            }
            cluster.run_until("scrub finds the damage", |cluster| poisoned(cluster, 1).is_some());
            let why = poisoned(&cluster, 1).unwrap();
            assert!(why.starts_with("log: 0000") && why.contains(what), "{why}");
            assert_eq!((poisoned(&cluster, 2), poisoned(&cluster, 3)), (None, None));
            for region in [1, 2] {
                assert_ne!(cluster.leader(region), 1);
            }
            cluster.write(1, KEY, b"goes on");
            cluster.write(2, QUIET, b"goes on");
        }
    }
}

/// Flips a bit in the middle of an entry.
fn damage_a_block(cluster: &Cluster, store: u64) {
    let disk = &cluster.nodes[&store].disk;
    let (name, sought) = ("0000000000000001.log", quiet(5));
    let content = disk.content(name).unwrap();
    let at = content.windows(sought.len()).position(|bytes| bytes == sought).unwrap() + 2000;
    disk.open(name).unwrap().write_at(&[content[at] ^ 4], at as u64).unwrap();
}

/// Changes the last bytes of each sealed file.
fn damage_sealed_files(cluster: &Cluster, store: u64) {
    let disk = cluster.nodes[&store].disk.as_ref();
    let mut files: Vec<String> = disk.list().unwrap().into_iter().filter(|name| name.ends_with(".log")).collect();
    files.pop();
    assert!(!files.is_empty());
    for name in files {
        let file = disk.open(&name).unwrap();
        let at = file.len().unwrap() - 5;
        let mut byte = [0];
        file.read_at(&mut byte, at).unwrap();
        file.write_at(&[byte[0] ^ 4], at).unwrap();
    }
}

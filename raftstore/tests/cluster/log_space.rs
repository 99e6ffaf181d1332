//! The log's space: a region that writes little must not keep the files alive that others have filled since.

use std::time::Duration;

use engine::log::LogOptions;
use raftstore::StoreConfig;

use crate::harness::{Cluster, KEY};

/// In region 2.
const QUIET: &[u8] = b"quiet";

/// Region 2 has written a few log files and then nothing more, and store 3 has not heard of the end of it. It keeps far less than the tail that
/// each region may keep.
fn pinned() -> Cluster {
    let config =
        StoreConfig { log_gc_ticks: 2, log_tail_entries: 100, flush_log_bytes: 1 << 30, ..StoreConfig::default() };
    let log = LogOptions { file_bytes: 64 << 10, prefill_bytes: 0, purge_threshold: 2 << 20, ..LogOptions::default() };
    let mut cluster = Cluster::with_log(3, config, log);
    cluster.lead(1, 1);
    cluster.lead(2, 1);
    for number in 0..40u8 {
        if number == 30 {
            cluster.isolated.insert(3);
        }
        // Nothing that compresses.
        let value: Vec<u8> = (0..4096u64)
            .map(|at| ((at * at + u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u8)
            .collect();
        cluster.write(2, QUIET, &value);
    }
    cluster
}

fn oldest_file(cluster: &Cluster, store: u64) -> bool {
    cluster.nodes[&store].disk.content("0000000000000001.log").is_some()
}

#[test]
fn a_quiet_region_gives_up_the_old_files_it_pins() {
    let mut cluster = pinned();
    assert!(oldest_file(&cluster, 1));
    for number in 0..700u32 {
        let value: Vec<u8> =
            (0..4096u32).map(|at| ((at * at + number).wrapping_mul(0x9e37_79b9) >> 20) as u8).collect();
        cluster.write(1, KEY, &value);
    }
    cluster.run_for(Duration::from_secs(5));
    assert!(!oldest_file(&cluster, 1) && !oldest_file(&cluster, 2), "the leader and a follower");
    // Who needs what is gone gets a snapshot.
    let sent = cluster.snapshots_sent;
    cluster.isolated.clear();
    cluster.write(2, QUIET, b"last");
    cluster.wait_stored(QUIET, b"last");
    assert!(cluster.snapshots_sent > sent);
    // And what is left is whole: it survives a restart.
    for id in 1..=3 {
        cluster.crash(id, id);
        cluster.start(id);
    }
    cluster.write(2, QUIET, b"again");
    cluster.wait_stored(QUIET, b"again");
}

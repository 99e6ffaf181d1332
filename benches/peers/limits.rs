//! The limits of the disk, measured in the same run: no synced append of one writer is faster than an overwrite and an
//! fdatasync.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::measure::{Figures, push, sync_all};

/// The figure to compare small synced appends of one thread with: such a group fills a sector or two.
pub const SYNCS: &str = "overwrite-512B-fdatasync/s";
/// The figure to compare large appends with.
pub const BANDWIDTH: &str = "sequential-MB/s";

/// Overwrites a file full of written bytes: blocks with an fdatasync each, for `time`; then the whole file
/// sequentially.
pub fn measure(dir: &Path, time: Duration, bytes: u64) -> Figures {
    let path = dir.join("limit");
    let file = OpenOptions::new().create_new(true).read(true).write(true).open(&path).unwrap();
    fill(&file, bytes);
    sync_all(dir);
    let mut figures = Figures::new();
    let (rate, p999_us) = syncs(&file, 4096, bytes, time);
    push(&mut figures, "overwrite-4KiB-fdatasync/s", rate);
    push(&mut figures, "overwrite-4KiB-fdatasync-p99.9-us", p999_us);
    push(&mut figures, SYNCS, syncs(&file, 512, bytes, time).0);
    let started = Instant::now();
    fill(&file, bytes);
    push(&mut figures, BANDWIDTH, bytes as f64 / 1e6 / started.elapsed().as_secs_f64());
    figures
}

/// Writes the whole file, in steps of 1 MiB, to stable storage.
fn fill(file: &File, bytes: u64) {
    let block = vec![0x5a; 1 << 20];
    (0..bytes >> 20).for_each(|at| file.write_all_at(&block, at << 20).unwrap());
    file.sync_data().unwrap();
}

/// Durable writes of `len` bytes, one at a time: how many per second, and what all but one in a thousand take at most,
/// in microseconds.
fn syncs(file: &File, len: usize, bytes: u64, time: Duration) -> (f64, f64) {
    let block = vec![0xa5; len];
    let (started, mut took) = (Instant::now(), Vec::new());
    while started.elapsed() < time {
        let begun = Instant::now();
        file.write_all_at(&block, took.len() as u64 * len as u64 % bytes).unwrap();
        file.sync_data().unwrap();
        took.push(begun.elapsed());
    }
    let rate = took.len() as f64 / started.elapsed().as_secs_f64();
    took.sort_unstable();
    let p999 = took.get(took.len() * 999 / 1000).copied().unwrap_or_default();
    (rate, p999.as_secs_f64() * 1e6)
}

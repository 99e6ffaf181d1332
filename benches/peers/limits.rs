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
    push(&mut figures, "overwrite-4KiB-fdatasync/s", syncs(&file, 4096, bytes, time));
    push(&mut figures, SYNCS, syncs(&file, 512, bytes, time));
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

/// Durable writes of `len` bytes per second, one at a time.
fn syncs(file: &File, len: usize, bytes: u64, time: Duration) -> f64 {
    let block = vec![0xa5; len];
    let (started, mut count) = (Instant::now(), 0);
    while started.elapsed() < time {
        file.write_all_at(&block, count * len as u64 % bytes).unwrap();
        file.sync_data().unwrap();
        count += 1;
    }
    count as f64 / started.elapsed().as_secs_f64()
}

//! The costs of a run: time, CPU, bytes on the device, memory, space.
//!
//! A run has a process of its own, so the counters of the process are those of the run. Bytes written come from the
//! counters of the block device of the directory. These count all processes: on a quiet machine, only the run. Without
//! such a device the process's own `write_bytes` is used.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use rustix::fs::Advice;
use rustix::time::ClockId;

/// The figures of one run, by name. A figure whose name ends in `/s` is better when higher, every other when lower.
pub type Figures = Vec<(String, f64)>;

/// Adds a figure.
pub fn push(figures: &mut Figures, name: &str, value: f64) {
    figures.push((name.to_owned(), value));
}

/// Counters of a device or, without one, of this process.
#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    /// Bytes written to the device.
    device_bytes: u64,
    /// Cache flushes of the device; unknown without a device.
    flushes: Option<u64>,
    /// Bytes passed to write calls by this process.
    written: u64,
}

impl Counters {
    fn now(dir: &Path) -> Counters {
        let (written, stored) = (own_io("wchar"), own_io("write_bytes"));
        match device(dir).and_then(|device| fs::read_to_string(device.join("stat")).ok()) {
            Some(stat) => {
                let fields: Vec<u64> = stat.split_whitespace().map(|field| field.parse().unwrap()).collect();
                // Documentation/block/stat.rst: sectors written are field 7, flushes field 16.
                Counters { device_bytes: fields[6] * 512, flushes: fields.get(15).copied(), written }
            }
            None => Counters { device_bytes: stored, flushes: None, written },
        }
    }
}

/// The block device of a directory, if there is exactly one.
fn device(dir: &Path) -> Option<PathBuf> {
    let number = fs::metadata(dir).unwrap().dev();
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    fs::canonicalize(format!("/sys/dev/block/{major}:{minor}")).ok()
}

/// The source of the count of bytes on the device.
pub fn byte_source(dir: &Path) -> String {
    match device(dir) {
        Some(device) => format!("{} (whole machine)", device.join("stat").display()),
        None => "write_bytes of /proc/self/io (this process; no single block device below the directory)".to_owned(),
    }
}

fn own_io(name: &str) -> u64 {
    field(&fs::read_to_string("/proc/self/io").unwrap(), name)
}

/// The number after `name:` in a file of /proc.
fn field(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap().split_whitespace().next().unwrap().parse().unwrap()
}

/// The memory of this process now, in bytes.
pub fn resident() -> u64 {
    field(&fs::read_to_string("/proc/self/status").unwrap(), "VmRSS") * 1024
}

/// The peak memory of this process.
pub fn peak_resident() -> u64 {
    field(&fs::read_to_string("/proc/self/status").unwrap(), "VmHWM") * 1024
}

fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Writes all cached data of the file system to its device.
pub fn sync_all(dir: &Path) {
    rustix::fs::syncfs(fs::File::open(dir).unwrap()).unwrap();
}

/// Drops the files in `dir` from the page cache.
pub fn drop_cache(dir: &Path) {
    sync_all(dir);
    for path in files(dir) {
        rustix::fs::fadvise(fs::File::open(path).unwrap(), 0, None, Advice::DontNeed).unwrap();
    }
}

/// All files below a directory, except those that disappear meanwhile.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => found.extend(files(&entry.path())),
            Ok(kind) if kind.is_file() => found.push(entry.path()),
            _ => {}
        }
    }
    found
}

/// Bytes of the files in `dir` on the disk.
pub fn disk_bytes(dir: &Path) -> u64 {
    files(dir).iter().filter_map(|path| fs::metadata(path).ok()).map(|file| file.blocks() * 512).sum()
}

/// Samples the size of a directory from a thread of its own.
pub struct HighWater {
    stop: SyncSender<()>,
    watcher: std::thread::JoinHandle<u64>,
}

impl HighWater {
    /// Samples every 20 ms from now on.
    pub fn watch(dir: &Path) -> HighWater {
        let dir = dir.to_owned();
        let (stop, stopped) = sync_channel::<()>(1);
        let watcher = std::thread::spawn(move || {
            let mut most = disk_bytes(&dir);
            while stopped.recv_timeout(Duration::from_millis(20)) == Err(RecvTimeoutError::Timeout) {
                most = most.max(disk_bytes(&dir));
            }
            most.max(disk_bytes(&dir))
        });
        HighWater { stop, watcher }
    }

    /// The largest sample.
    pub fn finish(self) -> u64 {
        drop(self.stop);
        self.watcher.join().unwrap()
    }
}

/// Measures a part of a run.
pub struct Meter {
    dir: PathBuf,
    before: Counters,
    cpu: Duration,
    started: Instant,
}

impl Meter {
    /// Starts once all earlier writes are on the device.
    pub fn start(dir: &Path) -> Meter {
        sync_all(dir);
        Meter { dir: dir.to_owned(), before: Counters::now(dir), cpu: cpu_time(), started: Instant::now() }
    }

    /// Time since the start.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Ends the measured time, then waits until all data is on the device; those bytes count too. Returns the figures
    /// of `tally`'s operations and bytes; the first is called `rate`.
    pub fn stop(self, rate: &str, tally: &Tally) -> Figures {
        let mut figures = self.stop_reading(rate, tally);
        sync_all(&self.dir);
        let after = Counters::now(&self.dir);
        let (operations, bytes) = (tally.operations.max(1) as f64, tally.bytes.max(1) as f64);
        push(&mut figures, "device-bytes/byte", (after.device_bytes - self.before.device_bytes) as f64 / bytes);
        push(&mut figures, "written-bytes/byte", (after.written - self.before.written) as f64 / bytes);
        if let (Some(before), Some(after)) = (self.before.flushes, after.flushes) {
            push(&mut figures, "device-flushes/op", (after - before) as f64 / operations);
        }
        figures
    }

    /// Ends the measured time of a read-only run.
    pub fn stop_reading(&self, rate: &str, tally: &Tally) -> Figures {
        let (elapsed, cpu) = (self.started.elapsed().as_secs_f64(), cpu_time() - self.cpu);
        let (operations, bytes) = (tally.operations.max(1) as f64, tally.bytes.max(1) as f64);
        let per_second = if rate == "MB/s" { bytes / 1e6 } else { operations };
        let mut figures = Figures::new();
        push(&mut figures, rate, per_second / elapsed);
        tally.push_latencies(&mut figures);
        push(&mut figures, "cpu-s/GB", cpu.as_secs_f64() / (bytes / 1e9));
        figures
    }
}

/// Bytes that this process has passed to write calls so far.
pub fn written() -> u64 {
    own_io("wchar")
}

/// Bytes that this process has read from a device so far.
pub fn read_from_device() -> u64 {
    own_io("read_bytes")
}

/// Operations, and the latency of each call.
pub struct Tally {
    /// Calls, and other counts of a workload.
    pub operations: u64,
    /// Bytes of payload.
    pub bytes: u64,
    /// Nanoseconds of each timed call.
    pub latency: Histogram<u64>,
}

impl Default for Tally {
    fn default() -> Tally {
        Tally { operations: 0, bytes: 0, latency: Histogram::new(3).unwrap() }
    }
}

impl Tally {
    /// One operation on `bytes` of payload.
    pub fn timed<T>(&mut self, bytes: u64, call: impl FnOnce() -> T) -> T {
        let started = Instant::now();
        let out = call();
        self.latency.record(started.elapsed().as_nanos() as u64).unwrap();
        self.operations += 1;
        self.bytes += bytes;
        out
    }

    /// Adds the operations of another thread.
    pub fn merge(&mut self, other: &Tally) {
        self.operations += other.operations;
        self.bytes += other.bytes;
        self.latency.add(&other.latency).unwrap();
    }

    /// A quantile of the call latencies, in microseconds.
    pub fn micros(&self, quantile: f64) -> f64 {
        self.latency.value_at_quantile(quantile) as f64 / 1e3
    }

    fn push_latencies(&self, figures: &mut Figures) {
        if self.latency.is_empty() {
            return;
        }
        for (name, quantile) in [("p50-us", 0.5), ("p99-us", 0.99), ("p99.9-us", 0.999), ("max-us", 1.0)] {
            push(figures, name, self.micros(quantile));
        }
    }
}

/// Runs one worker per thread repeatedly until the time is up. `worker` is called once per thread, with its number.
pub fn closed_loop<W>(threads: usize, time: Duration, worker: impl Fn(usize) -> W + Sync) -> Tally
where
    W: FnMut(&mut Tally),
{
    let until = Instant::now() + time;
    on_threads(threads, |thread| {
        let (mut tally, mut work) = (Tally::default(), worker(thread));
        while Instant::now() < until {
            work(&mut tally);
        }
        tally
    })
}

/// Runs `work` once on each thread, with the number of the thread.
pub fn on_threads(threads: usize, work: impl Fn(usize) -> Tally + Sync) -> Tally {
    let work = &work;
    let mut sum = Tally::default();
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|thread| scope.spawn(move || work(thread))).collect();
        running.into_iter().for_each(|thread| sum.merge(&thread.join().unwrap()));
    });
    sum
}

/// Calls `chore` every `pause` on a thread of its own while `work` runs.
pub fn beside<T>(pause: Duration, chore: impl FnMut() + Send, work: impl FnOnce() -> T) -> T {
    let (stop, stopped) = sync_channel::<()>(1);
    let mut chore = chore;
    std::thread::scope(|scope| {
        scope.spawn(move || {
            while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                chore();
            }
        });
        let out = work();
        drop(stop);
        out
    })
}

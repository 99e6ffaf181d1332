//! The disk cost of reads: a cold block is read once, a warm one not at all.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bytes::Bytes;
use engine::disk::{DiskFile, Operation, SimDisk};
use engine::log::{Budget, Durability, GroupId, LogBatch, LogEngine, LogError, LogOptions, LogWriter};
use parking_lot::Mutex;

use crate::hooked_disk::{HookedDisk, Hooks};

/// Counts reads, and can block one until other readers may have arrived.
#[derive(Default)]
struct Gate {
    reads: AtomicUsize,
    /// A read waits until this many threads are about to read; 0 does not block.
    expected: AtomicUsize,
    arriving: AtomicUsize,
    crowded: AtomicBool,
    /// Runs on another thread while the next read waits.
    between: Mutex<Option<Between>>,
}

type Between = Box<dyn FnMut() + Send>;

impl Gate {
    fn pass(&self) {
        // Taken out, because it may read as well.
        let between = self.between.lock().take();
        if let Some(mut between) = between {
            std::thread::scope(|scope| drop(scope.spawn(&mut between)));
            *self.between.lock() = Some(between);
        }
        if self.reads.fetch_add(1, Ordering::AcqRel) > 0 {
            self.crowded.store(true, Ordering::Release);
        }
        while self.arriving.load(Ordering::Acquire) < self.expected.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        // The other readers are about to read. Wait long enough for one to arrive here, unless it is blocked.
        for _ in 0..10_000 {
            if self.expected.load(Ordering::Acquire) == 0 || self.crowded.load(Ordering::Acquire) {
                return;
            }
            std::thread::yield_now();
        }
    }

    fn take_reads(&self) -> usize {
        self.reads.swap(0, Ordering::AcqRel)
    }
}

impl Hooks for Gate {
    fn read(&self, file: &dyn DiskFile, _name: &str, buf: &mut [u8], offset: u64) -> std::io::Result<()> {
        self.pass();
        file.read_at(buf, offset)
    }
}

fn options(cache_bytes: usize) -> LogOptions {
    LogOptions { file_bytes: 256 << 10, prefill_bytes: 0, cache_bytes, ..LogOptions::default() }
}

/// Bytes that do not compress.
fn entry(index: u64, len: usize) -> Bytes {
    let mut state = index + 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..len).map(|_| next()).collect()
}

fn write(log: &mut (LogEngine, LogWriter), batch: LogBatch) {
    log.0.submit_with(batch, Durability::Buffered, Box::new(|outcome| assert!(outcome.is_ok()))).unwrap();
    log.1.turn();
}

/// The log opened from the disk, with an empty cache.
fn cold(disk: &SimDisk, cache_bytes: usize) -> (LogEngine, LogWriter, Arc<Gate>) {
    let gate = Arc::new(Gate::default());
    let counting = HookedDisk { disk: disk.session(), hooks: gate.clone() };
    let (engine, writer, _) = LogEngine::open_driven(Arc::new(counting), options(cache_bytes)).unwrap();
    gate.take_reads();
    (engine, writer, gate)
}

/// A hundred entries of one group, ten to a commit group: blocks of many sizes.
fn filled(len: usize) -> Arc<SimDisk> {
    let disk = SimDisk::new();
    let (engine, writer, _) = LogEngine::open_driven(disk.session(), options(0)).unwrap();
    let mut log = (engine, writer);
    for first in (1..=100).step_by(10) {
        let mut batch = LogBatch::new();
        batch.append(GroupId(1), first, (first..first + 10).map(|index| entry(index, len)).collect());
        write(&mut log, batch);
    }
    disk
}

#[test]
fn a_range_reads_each_block_once() {
    // A commit group has one block for entries of ten bytes, four for ten thousand, ten for forty thousand.
    for (len, blocks) in [(10, 10), (3_000, 10), (10_000, 40), (40_000, 100)] {
        let disk = filled(len);
        let expected: Vec<Bytes> = (1..=100).map(|index| entry(index, len)).collect();
        let (engine, _writer, gate) = cold(&disk, 64 << 20);
        for first in (1..=100).step_by(10) {
            let part = engine.entries(GroupId(1), first, first + 10, usize::MAX).unwrap();
            assert_eq!(part, expected[first as usize - 1..][..10]);
        }
        assert_eq!(gate.take_reads(), blocks, "cold, entries of {len} bytes");
        assert_eq!(engine.entries(GroupId(1), 1, 101, usize::MAX).unwrap(), expected);
        (1..=100).for_each(|index| assert_eq!(engine.entry(GroupId(1), index).unwrap(), entry(index, len)));
        assert_eq!(gate.take_reads(), 0, "warm, entries of {len} bytes");
        // A range reads each block once even without a cache.
        let (engine, _writer, gate) = cold(&disk, 0);
        assert_eq!(engine.entries(GroupId(1), 1, 101, usize::MAX).unwrap(), expected);
        assert_eq!(gate.take_reads(), blocks, "without a cache, entries of {len} bytes");
    }
}

/// A long scan uses the cached blocks and does not change the cache.
#[test]
fn a_long_range_does_not_change_the_cache() {
    let disk = filled(40_000);
    let (engine, _writer, gate) = cold(&disk, 64 << 20);
    engine.entries(GroupId(1), 41, 51, usize::MAX).unwrap();
    assert_eq!((gate.take_reads(), engine.stats().cached_bytes / 40_000), (10, 10));
    for _ in 0..2 {
        assert_eq!(engine.entries(GroupId(1), 1, 101, usize::MAX).unwrap().len(), 100);
        assert_eq!((gate.take_reads(), engine.stats().cached_bytes / 40_000), (90, 10));
    }
}

#[test]
fn runs_that_share_a_block_share_its_read() {
    let disk = SimDisk::new();
    let (engine, writer, _) = LogEngine::open_driven(disk.session(), options(0)).unwrap();
    let mut batch = LogBatch::new();
    for index in 1..=20 {
        batch.append(GroupId(1), index, vec![entry(index, 20)]);
        batch.append(GroupId(2), index, vec![entry(index, 30)]);
    }
    write(&mut (engine, writer), batch);
    let (engine, _writer, gate) = cold(&disk, 0);
    let read = engine.entries(GroupId(1), 1, 21, usize::MAX).unwrap();
    assert_eq!(read, (1..=20).map(|index| entry(index, 20)).collect::<Vec<_>>());
    assert_eq!(gate.take_reads(), 1);
}

#[test]
fn new_entries_are_warm() {
    let gate = Arc::new(Gate::default());
    let counting = HookedDisk { disk: SimDisk::new().session(), hooks: gate.clone() };
    let (engine, writer, _) = LogEngine::open_driven(Arc::new(counting), options(1 << 20)).unwrap();
    gate.take_reads();
    let mut batch = LogBatch::new();
    batch.append(GroupId(1), 1, (1..=10).map(|index| entry(index, 1000)).collect());
    write(&mut (engine.clone(), writer), batch);
    assert_eq!(engine.entries(GroupId(1), 1, 11, usize::MAX).unwrap().len(), 10);
    assert_eq!(gate.take_reads(), 0);
}

#[test]
fn readers_of_one_cold_block_share_its_read() {
    const READERS: usize = 8;
    let disk = filled(10);
    let (engine, _writer, gate) = cold(&disk, 1 << 20);
    gate.expected.store(READERS, Ordering::Release);
    std::thread::scope(|scope| {
        for _ in 0..READERS {
            scope.spawn(|| {
                gate.arriving.fetch_add(1, Ordering::AcqRel);
                assert_eq!(engine.entry(GroupId(1), 5).unwrap(), entry(5, 10));
            });
        }
    });
    assert_eq!(gate.take_reads(), 1);
}

#[test]
fn a_failed_read_is_retried() {
    let disk = filled(10);
    let (engine, _writer, gate) = cold(&disk, 1 << 20);
    disk.fail_nth(Operation::Read, 1, std::io::ErrorKind::Other);
    assert!(matches!(engine.entry(GroupId(1), 5), Err(LogError::Io(_))));
    assert_eq!(engine.entry(GroupId(1), 5).unwrap(), entry(5, 10));
    assert_eq!(gate.take_reads(), 2);
}

/// During a long read, purge moves entries, one file after another, each just before it is read. The read returns all
/// of them.
#[test]
fn a_long_read_follows_entries_that_purge_moves() {
    const ENTRIES: u64 = 60;
    let disk = SimDisk::new();
    let gate = Arc::new(Gate::default());
    let counting = HookedDisk { disk: disk.session(), hooks: gate.clone() };
    let options = LogOptions { purge_threshold: 0, spare_files: 0, file_bytes: 64 << 10, ..options(0) };
    let (engine, writer, _) = LogEngine::open_driven(Arc::new(counting), options).unwrap();
    let mut log = (engine.clone(), writer);
    for index in 1..=ENTRIES {
        let mut batch = LogBatch::new();
        batch.append(GroupId(1), index, vec![entry(index, 20)]);
        write(&mut log, batch);
        // Has a file of its own.
        let mut batch = LogBatch::new();
        batch.append(GroupId(2), index, vec![entry(index, 64_000)]);
        write(&mut log, batch);
    }
    let mut batch = LogBatch::new();
    batch.compact(GroupId(2), ENTRIES + 1);
    write(&mut log, batch);
    let moves = Arc::new(AtomicUsize::new(1));
    let (name, moved, purged) = (|seq: usize| format!("{seq:016}.log"), moves.clone(), disk.clone());
    *gate.between.lock() = Some(Box::new(move || {
        // The entry after the current one: each odd file has one.
        let next = moved.fetch_add(1, Ordering::AcqRel) + 1;
        for _ in 0..200 {
            if purged.content(&name(2 * next - 1)).is_none() {
                return;
            }
            log.0.purge(Budget { find_pinning: false, ..Budget::default() }).unwrap();
            log.1.turn();
        }
        assert!(next as u64 >= ENTRIES, "the file of entry {next} stays");
    }));
    let read = engine.entries(GroupId(1), 1, ENTRIES + 1, usize::MAX).unwrap();
    assert_eq!(read, (1..=ENTRIES).map(|index| entry(index, 20)).collect::<Vec<_>>());
    assert!(moves.load(Ordering::Acquire) > 10, "too few entries were moved");
}

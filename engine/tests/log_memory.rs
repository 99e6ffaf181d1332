//! The memory of the log, counted at the allocator: bytes per entry, bytes per idle group, and the temporary memory of
//! opening.
//!
//! An allocation counts with the overhead of a common allocator: a header of 8 bytes, rounded up to 16. The allocator
//! is global to this test binary, so the tests run one at a time.

#![expect(clippy::unwrap_used, reason = "a test says what must hold")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicI64, Ordering};

use bytes::Bytes;
use engine::disk::RealDisk;
use engine::log::{Durability, GroupId, LogBatch, LogEngine, LogOptions, LogWriter, RecoveryReport};
use parking_lot::Mutex;

struct Counting;

static ALLOCATED: AtomicI64 = AtomicI64::new(0);
/// The peak of the allocated bytes.
static PEAK: AtomicI64 = AtomicI64::new(0);

/// The size of an allocation of `bytes` with overhead.
fn taken(bytes: usize) -> i64 {
    (bytes + 8).next_multiple_of(16).max(32) as i64
}

fn count(bytes: i64) {
    let now = ALLOCATED.fetch_add(bytes, Ordering::Relaxed) + bytes;
    PEAK.fetch_max(now, Ordering::Relaxed);
}

#[expect(unsafe_code, reason = "GlobalAlloc is an unsafe trait")]
// SAFETY: every call is passed unchanged to the system allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(taken(layout.size()));
        // SAFETY: the caller keeps the contract of `alloc`, which is the same here.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        count(-taken(layout.size()));
        // SAFETY: `ptr` came from `alloc` or `realloc` above, and so from the system allocator.
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count(taken(new_size) - taken(layout.size()));
        // SAFETY: as for `dealloc`; the caller guarantees that the new size is valid.
        unsafe { System.realloc(ptr, layout, new_size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

static TURNS: Mutex<()> = Mutex::new(());

fn allocated() -> i64 {
    ALLOCATED.load(Ordering::Relaxed)
}

/// Small files, and no cache.
fn options() -> LogOptions {
    LogOptions {
        file_bytes: 1 << 20,
        align_bytes: 8,
        prefill_bytes: 0,
        block_bytes: 1 << 10,
        queue_batches: 16,
        cache_bytes: 0,
        ..LogOptions::default()
    }
}

fn open(dir: &tempfile::TempDir) -> (LogEngine, LogWriter) {
    let (engine, writer, _) = LogEngine::open_driven(RealDisk::open(dir.path()).unwrap(), options()).unwrap();
    (engine, writer)
}

/// Writes a log and returns its memory: after writing, and after reopening.
fn measure(write: impl Fn(&mut dyn FnMut(LogBatch))) -> [i64; 2] {
    let _turn = TURNS.lock();
    let dir = tempfile::tempdir().unwrap();
    let before = allocated();
    let (engine, mut writer) = open(&dir);
    let mut submit = |batch| {
        engine.submit_with(batch, Durability::Buffered, Box::new(|outcome| assert!(outcome.is_ok()))).unwrap();
        writer.turn();
    };
    write(&mut submit);
    // The index of the active file is in memory until the seal. Fill the file up: the next one has little in its index.
    let files = engine.stats().files;
    for number in 1.. {
        let mut state: u64 = number;
        let noise = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        });
        let mut batch = LogBatch::new();
        batch.append(GroupId(u64::MAX), number, vec![noise.take(64 << 10).collect()]);
        submit(batch);
        if engine.stats().files > files {
            break;
        }
    }
    let written = allocated() - before;
    drop((engine, writer));
    let before = allocated();
    let (engine, writer) = open(&dir);
    let opened = allocated() - before;
    drop((engine, writer));
    [written, opened]
}

#[test]
fn an_entry_in_a_block_of_its_own_takes_eight_bytes() {
    const GROUPS: u64 = 1000;
    const ENTRIES: u64 = 1000;
    // An entry as long as a block has a block of its own; these compress to a few bytes each.
    let entry = Bytes::from(vec![b'e'; 1 << 10]);
    let taken = measure(|submit| {
        for index in 1..=ENTRIES {
            let mut batch = LogBatch::new();
            (0..GROUPS).for_each(|group| batch.append(GroupId(group), index, vec![entry.clone()]));
            submit(batch);
        }
    });
    for bytes in taken {
        let each = bytes as f64 / (GROUPS * ENTRIES) as f64;
        println!("{each:.2} bytes per entry");
        assert!(each < 8.0, "{each:.2} bytes per entry");
    }
}

#[test]
fn an_idle_group_takes_less_than_half_a_kilobyte() {
    const GROUPS: u64 = 100_000;
    let entry = Bytes::from(vec![b'e'; 100]);
    let taken = measure(|submit| {
        for index in 1..=5 {
            for some in 0..GROUPS / 1000 {
                let mut batch = LogBatch::new();
                for group in some * 1000..(some + 1) * 1000 {
                    batch.append(GroupId(group), index, vec![entry.clone()]);
                    batch.put(GroupId(group), b"h", &[index as u8; 33]);
                }
                submit(batch);
            }
        }
    });
    for bytes in taken {
        let each = bytes as f64 / GROUPS as f64;
        println!("{each:.0} bytes per group");
        assert!(each < 512.0, "{each:.0} bytes per group");
    }
}

/// Opens a log. Returns the bytes that it keeps, and the temporary peak above that.
fn measure_opening(open: impl FnOnce() -> (LogEngine, LogWriter, RecoveryReport)) -> (RecoveryReport, i64, i64) {
    let before = allocated();
    PEAK.store(before, Ordering::Relaxed);
    let (_engine, _writer, report) = open();
    let opened = allocated() - before;
    (report, opened, PEAK.load(Ordering::Relaxed) - before - opened)
}

/// Opening decodes the index of a file piece by piece: its runs are never all in memory at once, even if all belong to
/// one group.
#[test]
fn opening_takes_little_more_than_the_index() {
    let _turn = TURNS.lock();
    let dir = tempfile::tempdir().unwrap();
    let options = || LogOptions { file_bytes: 16 << 20, recovery_threads: 1, ..options() };
    let open = || LogEngine::open_driven(RealDisk::open(dir.path()).unwrap(), options()).unwrap();
    let entry = Bytes::from(vec![b'e'; 1 << 10]);
    let (engine, mut writer, _) = open();
    let mut next = 1;
    while engine.stats().files < 3 {
        for _ in 0..50 {
            let mut batch = LogBatch::new();
            batch.append(GroupId(1), next, vec![entry.clone(); 1000]);
            let written = engine.submit(batch, Durability::Buffered).unwrap();
            writer.turn();
            written.wait().unwrap();
            next += 1000;
        }
    }
    writer.finish();
    drop((engine, writer));
    let (report, opened, more) = measure_opening(open);
    assert_eq!((report.entries, report.files), (next - 1, 3));
    let each = more as f64 / (next as f64 / 2.5);
    println!("{opened} bytes, {more} more to open, {each:.1} for each run of a file");
    assert!(each < 24.0, "{each:.1} bytes for each run of a file");
}

/// The newest file has no index. Opening reads and verifies it one commit group at a time, whatever its length.
#[test]
fn scanning_the_newest_file_takes_little_more_than_a_commit_group() {
    const LEN: u64 = 48 << 20;
    let _turn = TURNS.lock();
    let dir = tempfile::tempdir().unwrap();
    let options = || LogOptions { file_bytes: 2 * LEN, recovery_threads: 4, ..options() };
    let open = || LogEngine::open_driven(RealDisk::open(dir.path()).unwrap(), options()).unwrap();
    let (engine, mut writer, _) = open();
    let mut state: u64 = 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state.to_le_bytes()
    };
    let mut index = 1;
    while engine.stats().disk_bytes < LEN {
        let mut batch = LogBatch::new();
        let entry: Vec<u8> = (0..64 << 7).flat_map(|_| next()).collect();
        batch.append(GroupId(1), index, vec![entry.into()]);
        let written = engine.submit(batch, Durability::Buffered).unwrap();
        writer.turn();
        written.wait().unwrap();
        index += 1;
    }
    writer.finish();
    drop((engine, writer));
    let (report, opened, more) = measure_opening(open);
    assert!(report.bytes_read >= LEN && report.files == 1, "{report:?}");
    println!("{more} more than the {opened} that it keeps");
    assert!(more < 4 << 20, "{more} more than the {opened} that it keeps");
}

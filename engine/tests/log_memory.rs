//! What the log keeps in memory, counted at the allocator: bytes per entry, and bytes per idle group.
//!
//! Each allocation counts as what a common allocator takes for it: a header of 8 bytes, and whole steps of 16. The allocator serves
//! this test binary alone; the tests take turns, because it counts for all of them.

#![expect(clippy::unwrap_used, reason = "a test says what must hold")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicI64, Ordering};

use bytes::Bytes;
use engine::disk::RealDisk;
use engine::log::{Durability, GroupId, LogBatch, LogEngine, LogOptions, LogWriter};
use parking_lot::Mutex;

struct Counting;

static ALLOCATED: AtomicI64 = AtomicI64::new(0);

/// What an allocation of `bytes` takes.
fn taken(bytes: usize) -> i64 {
    (bytes + 8).next_multiple_of(16).max(32) as i64
}

#[expect(unsafe_code, reason = "an allocator is unsafe by its nature")]
// SAFETY: every call goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(taken(layout.size()), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`, which is the same here.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        ALLOCATED.fetch_sub(taken(layout.size()), Ordering::Relaxed);
        // SAFETY: `ptr` came from `alloc` or `realloc` above, and so from the system's allocator.
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        ALLOCATED.fetch_add(taken(new_size) - taken(layout.size()), Ordering::Relaxed);
        // SAFETY: as for `dealloc`; the caller vouches for the new size.
        unsafe { System.realloc(ptr, layout, new_size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

static TURNS: Mutex<()> = Mutex::new(());

fn allocated() -> i64 {
    ALLOCATED.load(Ordering::Relaxed)
}

/// Small files, so that little is in memory of what the active one will say when it is sealed; no cache.
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

/// Writes a log, and says what it takes in memory: as written, and when it is opened again.
fn measure(write: impl Fn(&mut dyn FnMut(LogBatch))) -> [i64; 2] {
    let _turn = TURNS.lock();
    let dir = tempfile::tempdir().unwrap();
    let before = allocated();
    let (engine, mut writer) = open(&dir);
    write(&mut |batch| {
        engine.submit_with(batch, Durability::Buffered, Box::new(|outcome| assert!(outcome.is_ok()))).unwrap();
        writer.turn();
    });
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
    // An entry as long as a block has one for itself; these are stored in a few bytes each.
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

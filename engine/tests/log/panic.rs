//! A thread that panics while it writes a commit group leaves nobody waiting: every batch is answered once, and nothing is written any more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;

use bytes::Bytes;
use engine::disk::{DiskFile, SimDisk};
use engine::log::{Durability, GroupId, LogBatch, LogEngine, LogError, LogOptions};

use crate::hooked_disk::{HookedDisk, Hooks};

/// Panics at the next write, or the next sync, once it is told to.
#[derive(Default)]
struct Trap {
    armed: AtomicBool,
    at_sync: AtomicBool,
}

impl Trap {
    fn spring(&self, at_sync: bool) {
        let springs = self.armed.load(Ordering::SeqCst) && self.at_sync.load(Ordering::SeqCst) == at_sync;
        assert!(!springs, "a planted panic");
    }
}

impl Hooks for Trap {
    fn write(&self) {
        self.spring(false);
    }
    fn sync(&self, file: &dyn DiskFile) -> std::io::Result<()> {
        self.spring(true);
        file.sync()
    }
}

fn entry(group: u64) -> LogBatch {
    let mut batch = LogBatch::new();
    batch.append(GroupId(group), 1, vec![Bytes::from_static(b"entry")]);
    batch
}

fn trapped() -> (Arc<HookedDisk<Trap>>, Arc<Trap>) {
    let trap = Arc::new(Trap::default());
    (Arc::new(HookedDisk { disk: SimDisk::new(), hooks: trap.clone() }), trap)
}

fn options() -> LogOptions {
    LogOptions { prefill_bytes: 0, ..LogOptions::default() }
}

#[test]
fn those_whose_batches_a_thread_of_the_log_drops_by_a_panic_are_told() {
    for at_sync in [false, true] {
        told_by_threads(at_sync);
    }
}

fn told_by_threads(at_sync: bool) {
    let (disk, trap) = trapped();
    let (log, _) = LogEngine::open(disk, options()).unwrap();
    trap.at_sync.store(at_sync, Ordering::SeqCst);
    trap.armed.store(true, Ordering::SeqCst);
    let (tell, told) = sync_channel(16);
    let mut tickets = Vec::new();
    for group in 1..=8 {
        // Whoever comes after the panic is refused, and not called.
        let tell = tell.clone();
        let done = Box::new(move |outcome| tell.try_send((group, outcome)).unwrap());
        let queued = log.submit_with(entry(group), Durability::Synced, done);
        assert!(matches!(queued, Ok(()) | Err(LogError::Poisoned(_))), "{queued:?}");
        match log.submit(entry(100 + group), Durability::Synced) {
            Ok(ticket) => tickets.push(ticket),
            Err(error) => assert!(matches!(error, LogError::Poisoned(_)), "{error}"),
        }
    }
    drop(tell);
    // Neither loop ends where somebody is forgotten.
    for ticket in tickets {
        assert!(matches!(ticket.wait(), Err(LogError::Poisoned(_))));
    }
    let mut called = 0;
    while let Ok((group, outcome)) = told.recv() {
        assert!(matches!(outcome, Err(LogError::Poisoned(_))), "{group}: {outcome:?}");
        called += 1;
    }
    assert!(called > 0);
    assert!(matches!(log.poisoned(), Some(LogError::Poisoned(_))));
}

/// The other half: a group in flight lands with whatever comes next.
#[test]
fn a_group_in_flight_that_a_panic_drops_is_told() {
    let (disk, trap) = trapped();
    let (log, mut writer, _) = LogEngine::open_driven(disk, options()).unwrap();
    let ticket = log.submit(entry(1), Durability::Synced).unwrap();
    assert_eq!(writer.begin(1), 1);
    trap.at_sync.store(true, Ordering::SeqCst);
    trap.armed.store(true, Ordering::SeqCst);
    let broken = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| writer.turn()));
    assert!(broken.is_err());
    assert!(matches!(ticket.wait(), Err(LogError::Poisoned(_))));
    assert!(matches!(log.poisoned(), Some(LogError::Poisoned(_))), "and nothing comes after it");
}

/// Whoever is called may drop the last handle, as ever: it must not wait for a thread that waits for the lock which its own thread holds.
#[test]
fn a_callback_that_a_panic_brings_about_may_drop_the_last_handle() {
    let (disk, trap) = trapped();
    let (log, _) = LogEngine::open(disk, options()).unwrap();
    trap.armed.store(true, Ordering::SeqCst);
    let (tell, told) = sync_channel(1);
    let last = log.clone();
    let done = Box::new(move |outcome: engine::log::Result<engine::log::Lsn>| {
        drop(last);
        tell.try_send(outcome.map(drop)).unwrap();
    });
    log.submit_with(entry(1), Durability::Synced, done).unwrap();
    drop(log);
    let outcome = told.recv_timeout(std::time::Duration::from_secs(60)).unwrap();
    assert!(matches!(outcome, Err(LogError::Poisoned(_))), "{outcome:?}");
}

/// The caller's own thread does the work where nobody else does: its panic is its own, but others waited for it as well.
#[test]
fn those_whose_batches_another_caller_drops_by_a_panic_are_told() {
    let (disk, trap) = trapped();
    let (log, mut writer, _) = LogEngine::open_driven(disk, options()).unwrap();
    let ticket = log.submit(entry(1), Durability::Synced).unwrap();
    trap.armed.store(true, Ordering::SeqCst);
    let broken = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| writer.turn()));
    assert!(broken.is_err());
    assert!(matches!(ticket.poll(), Some(Err(LogError::Poisoned(_)))));
    trap.armed.store(false, Ordering::SeqCst);
    let later = log.submit(entry(2), Durability::Synced).map(drop);
    assert!(matches!(later, Err(LogError::Poisoned(_))), "what is on disk is unknown: {later:?}");
}

//! A thread panics while it writes a commit group: every batch is completed exactly once, and the log writes nothing
//! more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;

use bytes::Bytes;
use engine::disk::{DiskFile, SimDisk};
use engine::log::{Durability, GroupId, LogBatch, LogEngine, LogError, LogOptions};

use crate::hooked_disk::{HookedDisk, Hooks};

/// Panics at the next write or sync, once armed.
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
fn a_panic_of_a_log_thread_completes_all_batches() {
    for at_sync in [false, true] {
        panic_in_a_log_thread(at_sync);
    }
}

fn panic_in_a_log_thread(at_sync: bool) {
    let (disk, trap) = trapped();
    let (log, _) = LogEngine::open(disk, options()).unwrap();
    trap.at_sync.store(at_sync, Ordering::SeqCst);
    trap.armed.store(true, Ordering::SeqCst);
    let (sender, receiver) = sync_channel(16);
    let mut tickets = Vec::new();
    for group in 1..=8 {
        // Batches after the panic are refused without a callback.
        let sender = sender.clone();
        let done = Box::new(move |outcome| sender.try_send((group, outcome)).unwrap());
        let queued = log.submit_with(entry(group), Durability::Synced, done);
        assert!(matches!(queued, Ok(()) | Err(LogError::Poisoned(_))), "{queued:?}");
        match log.submit(entry(100 + group), Durability::Synced) {
            Ok(ticket) => tickets.push(ticket),
            Err(error) => assert!(matches!(error, LogError::Poisoned(_)), "{error}"),
        }
    }
    drop(sender);
    // Either loop hangs if a batch is never completed.
    for ticket in tickets {
        assert!(matches!(ticket.wait(), Err(LogError::Poisoned(_))));
    }
    let mut called = 0;
    while let Ok((group, outcome)) = receiver.recv() {
        assert!(matches!(outcome, Err(LogError::Poisoned(_))), "{group}: {outcome:?}");
        called += 1;
    }
    assert!(called > 0);
    assert!(matches!(log.poisoned(), Some(LogError::Poisoned(_))));
}

/// A group in flight is published by the next call, which panics here.
#[test]
fn a_panic_completes_a_group_in_flight() {
    let (disk, trap) = trapped();
    let (log, mut writer, _) = LogEngine::open_driven(disk, options()).unwrap();
    let ticket = log.submit(entry(1), Durability::Synced).unwrap();
    assert_eq!(writer.begin(1), 1);
    trap.at_sync.store(true, Ordering::SeqCst);
    trap.armed.store(true, Ordering::SeqCst);
    let broken = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| writer.turn()));
    assert!(broken.is_err());
    assert!(matches!(ticket.wait(), Err(LogError::Poisoned(_))));
    assert!(matches!(log.poisoned(), Some(LogError::Poisoned(_))), "and the log stays poisoned");
}

/// A callback may always drop the last handle. It must not wait for a thread that waits for a lock of the callback's
/// own thread.
#[test]
fn a_callback_after_a_panic_may_drop_the_last_handle() {
    let (disk, trap) = trapped();
    let (log, _) = LogEngine::open(disk, options()).unwrap();
    trap.armed.store(true, Ordering::SeqCst);
    let (sender, receiver) = sync_channel(1);
    let last = log.clone();
    let done = Box::new(move |outcome: engine::log::Result<engine::log::Lsn>| {
        drop(last);
        sender.try_send(outcome.map(drop)).unwrap();
    });
    log.submit_with(entry(1), Durability::Synced, done).unwrap();
    drop(log);
    let outcome = receiver.recv_timeout(std::time::Duration::from_secs(60)).unwrap();
    assert!(matches!(outcome, Err(LogError::Poisoned(_))), "{outcome:?}");
}

/// A caller that serves the queue panics. The batches of other callers are completed.
#[test]
fn a_panic_of_a_caller_completes_the_batches_of_others() {
    let (disk, trap) = trapped();
    let (log, mut writer, _) = LogEngine::open_driven(disk, options()).unwrap();
    let ticket = log.submit(entry(1), Durability::Synced).unwrap();
    trap.armed.store(true, Ordering::SeqCst);
    let broken = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| writer.turn()));
    assert!(broken.is_err());
    assert!(matches!(ticket.poll(), Some(Err(LogError::Poisoned(_)))));
    trap.armed.store(false, Ordering::SeqCst);
    let later = log.submit(entry(2), Durability::Synced).map(drop);
    assert!(matches!(later, Err(LogError::Poisoned(_))), "the content of the disk is unknown: {later:?}");
}

//! Tests of the pipeline: the bounded queue, rejected batches, sequences, rotation.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;

use super::active::ActiveFile;
use crate::disk::{Operation, SimDisk};
use crate::log::read::WriteError;
use crate::log::{Compression, Durability, GroupId, LogBatch, LogEngine, LogError, LogOptions, LogWriter};

fn options() -> LogOptions {
    LogOptions { file_bytes: 64 << 10, prefill_bytes: 0, block_bytes: 1 << 10, ..LogOptions::default() }
}

#[test]
fn full_queue_is_busy_and_closed_queue_is_closed() {
    let disk = SimDisk::new();
    let small = LogOptions { queue_batches: 2, queue_bytes: 1000, ..options() };
    let (engine, mut writer, _) = LogEngine::open_driven(disk, small).unwrap();
    let submit = |bytes: usize| {
        let mut batch = LogBatch::new();
        batch.put(GroupId(1), b"k", &vec![0; bytes]);
        engine.submit_with(batch, Durability::Buffered, Box::new(|_| ()))
    };
    submit(1).unwrap();
    submit(1).unwrap();
    assert!(matches!(submit(1), Err(LogError::Busy)), "by number");
    assert_eq!(writer.turn(), 2);
    submit(2000).unwrap();
    assert!(matches!(submit(1), Err(LogError::Busy)), "by bytes");
    assert_eq!(writer.turn(), 1);
    submit(1).unwrap();
    engine.close();
    assert!(matches!(submit(1), Err(LogError::Closed)));
    assert_eq!(writer.turn(), 1, "what was queued is still written");
}

#[test]
fn batch_out_of_bounds_is_invalid() {
    let disk = SimDisk::new();
    let (engine, mut writer, _) = LogEngine::open_driven(disk, options()).unwrap();
    let refused = |fill: &dyn Fn(&mut LogBatch), writer: &mut LogWriter| {
        let mut batch = LogBatch::new();
        fill(&mut batch);
        let outcome_slot = Arc::new(parking_lot::Mutex::new(None));
        let slot = outcome_slot.clone();
        engine.submit_with(batch, Durability::Buffered, Box::new(move |outcome| *slot.lock() = Some(outcome))).unwrap();
        writer.turn();
        let outcome_slot = outcome_slot.lock().take();
        matches!(outcome_slot, Some(Err(LogError::Invalid(_))))
    };
    assert!(refused(&|batch| batch.put(GroupId(1), &vec![0; 70 << 10], b""), &mut writer));
    assert!(refused(&|batch| batch.append(GroupId(1), u64::MAX, vec![Bytes::new()]), &mut writer));
    assert!(refused(&|batch| batch.compact(GroupId(1), u64::MAX), &mut writer));
    assert!(engine.groups().is_empty());
    let out_of_bounds = LogOptions { file_bytes: 1, ..options() };
    assert!(matches!(LogEngine::open_driven(SimDisk::new(), out_of_bounds), Err(LogError::Invalid(_))));
}

/// In a sequence no batch is written after a failed one, until the caller resumes it.
#[test]
fn failed_batch_fails_the_rest_of_its_sequence() {
    let disk = SimDisk::new();
    let options = LogOptions { spare_files: 0, compression: Compression::Off, ..options() };
    let (engine, mut writer, _) = LogEngine::open_driven(disk.session(), options).unwrap();
    let sequence = engine.sequence();
    let append = |index: u64, len: usize| {
        let mut batch = LogBatch::new();
        let noise = (0..len as u64).map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u8);
        batch.append(GroupId(1), index, vec![noise.collect()]);
        batch
    };
    let put = || {
        let mut batch = LogBatch::new();
        batch.put(GroupId(2), b"k", b"v");
        batch
    };
    sequence.submit(append(1, 10), Durability::Synced).unwrap();
    writer.turn();
    disk.set_capacity(Some(disk.used() + 9000));
    let long = sequence.submit(append(2, 20_000), Durability::Synced).unwrap();
    writer.turn();
    let (behind, aside) =
        (sequence.submit(put(), Durability::Synced).unwrap(), engine.submit(append(2, 5), Durability::Synced));
    writer.turn();
    assert!(matches!(long.wait(), Err(LogError::NoSpace(_))));
    assert!(matches!(behind.wait(), Err(LogError::NoSpace(_))), "it would fit, but depends on the failed batch");
    assert!(aside.unwrap().wait().is_ok(), "batches outside the sequence are independent");
    sequence.resume();
    let retried = sequence.submit(put(), Durability::Synced).unwrap();
    let gap = sequence.submit(append(9, 5), Durability::Synced).unwrap();
    let last = sequence.submit(put(), Durability::Synced).unwrap();
    writer.turn();
    assert!(retried.wait().is_ok());
    assert!(matches!((gap.wait(), last.wait()), (Err(LogError::Gap { .. }), Err(LogError::Gap { .. }))));
}

/// A log with more files than a header can list gets no next file: nothing is written, and the error names the reason.
#[test]
fn log_of_too_many_files_gets_no_next_file() {
    let disk = SimDisk::new();
    let (engine, writer, _) = LogEngine::open_driven(disk.session(), options()).unwrap();
    let mut batch = LogBatch::new();
    batch.put(GroupId(1), b"k", b"v");
    engine.write(batch, Durability::Synced).unwrap();
    let state = writer.pipeline.state();
    let mut active = ActiveFile::new(state.files.get(1).unwrap(), 4096 + 512, 1, 0);
    active.older = (10..10 + (1 << 20)).collect();
    let before = disk.changes();
    let refused = active.rotate(&writer.pipeline.context, false);
    assert!(matches!(refused, Err(WriteError::Rejected(LogError::Invalid(_)))), "{refused:?}");
    assert!(state.poisoned().is_none());
    let made = disk.changes() - before;
    assert!(made <= 1, "{made} changes: at most space for the seal");
}

/// A publisher that waits for the lock of a file finds its groups synced by the one that held it: no second sync.
#[test]
fn a_sync_that_another_one_covers_is_not_repeated() {
    let disk = SimDisk::new();
    let (engine, mut writer, _) = LogEngine::open_driven(disk.session(), options()).unwrap();
    let mut batch = LogBatch::new();
    batch.put(GroupId(1), b"k", b"v");
    engine.submit_with(batch, Durability::Buffered, Box::new(|_| ())).unwrap();
    writer.turn();
    let state = writer.pipeline.state();
    let file = state.files.get(1).unwrap();
    let lsn = file.last_lsn.load(Ordering::Acquire);
    assert!(state.synced.load(Ordering::Acquire) < lsn);
    let before = disk.calls(Operation::Sync);
    let guard = file.sync_lock.lock();
    let begun = AtomicBool::new(false);
    std::thread::scope(|threads| {
        let waiting = threads.spawn(|| {
            begun.store(true, Ordering::Release);
            state.sync(&file, lsn).unwrap();
        });
        // It then takes the thread a moment to reach the lock. If it comes too late, it has nothing to sync either.
        while !begun.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        (0..1000).for_each(|_| std::thread::yield_now());
        state.synced.store(lsn, Ordering::Release);
        drop(guard);
        waiting.join().unwrap();
    });
    assert_eq!(disk.calls(Operation::Sync), before);
}

//! The log on a real disk with its own thread: many writers, readers and purge at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use engine::disk::RealDisk;
use engine::log::{Budget, Durability, GroupId, LogBatch, LogEngine, LogError, LogOptions};

/// A small cache: so that most reads go to files that purge may take away.
fn options() -> LogOptions {
    LogOptions {
        file_bytes: 256 << 10,
        prefill_bytes: 64 << 10,
        cache_bytes: 64 << 10,
        purge_threshold: 0,
        ..LogOptions::default()
    }
}

/// Bytes that depend on group and index alone, and hardly compress.
fn entry(group: u64, index: u64) -> Bytes {
    let mut state = (group << 32) + index;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..index % 7 * 100).map(|_| next()).collect()
}

/// Reads what is there while it is compacted and moved away: the right entry, or `Compacted`.
fn read_along(engine: &LogEngine, group: GroupId, stop: &AtomicBool) -> u64 {
    let mut found = 0;
    while !stop.load(Ordering::Acquire) {
        let Some(bounds) = engine.bounds(group) else { continue };
        for index in bounds.first..=bounds.last {
            match engine.entry(group, index) {
                Ok(read) => {
                    assert_eq!(read, entry(group.0, index));
                    found += 1;
                }
                Err(LogError::Compacted { first }) => assert!(first > index),
                Err(other) => panic!("{other}"),
            }
        }
    }
    found
}

#[test]
fn writers_readers_and_purge_run_together() {
    const GROUPS: u64 = 4;
    const BATCHES: u64 = 400;
    let dir = tempfile::tempdir().unwrap();
    let (engine, writer, _) = LogEngine::open(RealDisk::open(dir.path()).unwrap(), options()).unwrap();
    let thread = writer.spawn().unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let readers: Vec<_> = (0..GROUPS)
        .map(|group| {
            let (engine, stop) = (engine.clone(), stop.clone());
            std::thread::spawn(move || read_along(&engine, GroupId(group), &stop))
        })
        .collect();
    let writers: Vec<_> = (0..GROUPS)
        .map(|group| {
            let engine = engine.clone();
            std::thread::spawn(move || {
                let id = GroupId(group);
                for round in 0..BATCHES {
                    let first = round * 5 + 1;
                    let mut batch = LogBatch::new();
                    batch.append(id, first, (first..first + 5).map(|index| entry(group, index)).collect());
                    batch.put(id, b"round", &round.to_le_bytes());
                    // One group lags far behind and has to be moved along.
                    let keep = if group == 0 { 1500 } else { 50 };
                    batch.compact(id, first.saturating_sub(keep).max(1));
                    let durability = if round % 16 == 0 { Durability::Synced } else { Durability::Buffered };
                    engine.write(batch, durability).unwrap();
                    if group == 1 && round % 4 == 0 {
                        engine.purge(Budget::default()).unwrap();
                    }
                }
            })
        })
        .collect();
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    stop.store(true, Ordering::Release);
    let found: u64 = readers.into_iter().map(|reader| reader.join().unwrap()).sum();
    assert!(found > 0);
    let bounds: Vec<_> = engine.groups().into_iter().map(|group| engine.bounds(group)).collect();
    // However the threads met: a few more calls and the oldest file is gone, though a group had lagged behind in it.
    let oldest = dir.path().join("0000000000000001.log");
    for _ in 0..50 {
        engine.purge(Budget::default()).unwrap();
        engine.write(LogBatch::new(), Durability::Synced).unwrap();
    }
    assert!(!oldest.exists());
    engine.close();
    thread.join().unwrap();
    assert!(matches!(engine.write(LogBatch::new(), Durability::Synced), Err(LogError::Closed)));
    drop(engine);

    let (engine, _writer, report) = LogEngine::open(RealDisk::open(dir.path()).unwrap(), options()).unwrap();
    assert_eq!(report.truncated_bytes, 0);
    assert_eq!(engine.groups().into_iter().map(|group| engine.bounds(group)).collect::<Vec<_>>(), bounds);
    for group in engine.groups() {
        let bounds = engine.bounds(group).unwrap();
        let entries = engine.entries(group, bounds.first, bounds.last + 1, usize::MAX).unwrap();
        for (index, read) in (bounds.first..).zip(entries) {
            assert_eq!(read, entry(group.0, index));
        }
        assert_eq!(engine.get(group, b"round").unwrap().unwrap(), (BATCHES - 1).to_le_bytes().as_slice());
    }
}

/// Two logs that are the same to the last byte of their files' places, but for what their entries say.
#[test]
fn two_logs_in_one_process_do_not_mix() {
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let options = LogOptions { identity: Some(1), ..options() };
    let logs: Vec<LogEngine> = dirs
        .iter()
        .map(|dir| {
            let (engine, writer, _) = LogEngine::open(RealDisk::open(dir.path()).unwrap(), options.clone()).unwrap();
            writer.spawn().unwrap();
            engine
        })
        .collect();
    for index in 1..200 {
        for (engine, letter) in logs.iter().zip([b'a', b'b']) {
            let mut batch = LogBatch::new();
            batch.append(GroupId(1), index, vec![Bytes::from(vec![letter; 3000])]);
            engine.write(batch, Durability::Buffered).unwrap();
        }
    }
    for index in 1..200 {
        for (engine, letter) in logs.iter().zip([b'a', b'b']) {
            assert_eq!(engine.entry(GroupId(1), index).unwrap(), vec![letter; 3000], "{index}");
        }
    }
}

#[test]
fn a_directory_in_use_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let held = RealDisk::open(dir.path()).unwrap();
    let error = RealDisk::open(dir.path()).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
    assert!(error.to_string().contains(dir.path().to_str().unwrap()));
    drop(held);
    RealDisk::open(dir.path()).unwrap();
}

#[test]
fn the_thread_ends_when_the_last_handle_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, writer, _) = LogEngine::open(RealDisk::open(dir.path()).unwrap(), options()).unwrap();
    let thread = writer.spawn().unwrap();
    let (sender, receiver) = crossbeam_channel::bounded(1);
    let mut batch = LogBatch::new();
    batch.put(GroupId(1), b"k", b"v");
    engine.submit(batch, Durability::Synced, Box::new(move |outcome| drop(sender.send(outcome)))).unwrap();
    drop(engine);
    thread.join().unwrap();
    assert!(receiver.recv().unwrap().is_ok(), "what was queued is written first");
}

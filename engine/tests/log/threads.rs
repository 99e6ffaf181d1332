//! The log on a real disk with its own threads: concurrent writers, readers, purge and scrub.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use bytes::Bytes;
use engine::disk::RealDisk;
use engine::log::{Budget, Durability, GroupId, LogBatch, LogEngine, LogError, LogOptions};

/// A small cache, so that most reads go to files that purge may remove.
fn options() -> LogOptions {
    LogOptions {
        file_bytes: 256 << 10,
        prefill_bytes: 64 << 10,
        cache_bytes: 64 << 10,
        purge_threshold: 0,
        ..LogOptions::default()
    }
}

/// Bytes that depend only on group and index, and hardly compress.
fn entry(group: u64, index: u64) -> Bytes {
    let mut state = (group << 32) + index;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..index % 7 * 100).map(|_| next()).collect()
}

/// Reads entries while they are compacted and moved: the right entry, or `Compacted`.
fn read_until(engine: &LogEngine, group: GroupId, stop: &AtomicBool) -> u64 {
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

/// Scrubs in rounds while files are sealed, removed and reused: no damage is reported. Returns the number of rounds.
fn scrub_until(engine: &LogEngine, stop: &AtomicBool) -> u32 {
    let mut rounds = 0;
    loop {
        let report = engine.scrub(32 << 10);
        assert_eq!(report.damage, []);
        rounds += u32::from(report.done);
        if report.done && stop.load(Ordering::Acquire) {
            return rounds;
        }
    }
}

#[test]
fn writers_readers_and_purge_run_together() {
    const GROUPS: u64 = 4;
    const BATCHES: u64 = 400;
    let dir = tempfile::tempdir().unwrap();
    let (engine, _) = LogEngine::open(RealDisk::open(dir.path()).unwrap(), options()).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let readers: Vec<_> = (0..GROUPS)
        .map(|group| {
            let (engine, stop) = (engine.clone(), stop.clone());
            std::thread::spawn(move || read_until(&engine, GroupId(group), &stop))
        })
        .collect();
    let scrub = {
        let (engine, stop) = (engine.clone(), stop.clone());
        std::thread::spawn(move || scrub_until(&engine, &stop))
    };
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
                    // One group keeps many old entries, which purge has to rewrite.
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
    assert!(scrub.join().unwrap() > 0);
    let found: u64 = readers.into_iter().map(|reader| reader.join().unwrap()).sum();
    assert!(found > 0);
    let bounds: Vec<_> = engine.groups().into_iter().map(|group| engine.bounds(group)).collect();
    // After any interleaving, a few more calls remove the oldest file, although it had live entries of one group.
    let oldest = dir.path().join("0000000000000001.log");
    for _ in 0..50 {
        engine.purge(Budget::default()).unwrap();
        engine.write(LogBatch::new(), Durability::Synced).unwrap();
    }
    assert!(!oldest.exists());
    engine.close();
    assert!(matches!(engine.write(LogBatch::new(), Durability::Synced), Err(LogError::Closed)));
    drop(engine);

    let (engine, report) = LogEngine::open(RealDisk::open(dir.path()).unwrap(), options()).unwrap();
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

/// Two logs with identical layouts that differ only in the content of their entries.
#[test]
fn two_logs_in_one_process_do_not_mix() {
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let options = LogOptions { identity: Some(1), ..options() };
    let logs: Vec<LogEngine> = dirs
        .iter()
        .map(|dir| LogEngine::open(RealDisk::open(dir.path()).unwrap(), options.clone()).unwrap().0)
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
fn queued_batches_are_written_when_the_last_handle_is_dropped() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, _) = LogEngine::open(RealDisk::open(dir.path()).unwrap(), options()).unwrap();
    let tickets: Vec<_> = (1..200).map(|index| engine.submit(append(index, 10), Durability::Synced).unwrap()).collect();
    drop(engine);
    assert!(tickets.iter().all(|ticket| matches!(ticket.poll(), Some(Ok(_)))), "close waits for all batches");
    let (engine, report) = LogEngine::open(RealDisk::open(dir.path()).unwrap(), options()).unwrap();
    assert_eq!((report.truncated_bytes, engine.bounds(GroupId(1)).unwrap().last), (0, 199));
}

fn append(index: u64, len: usize) -> LogBatch {
    let mut batch = LogBatch::new();
    batch.append(GroupId(1), index, vec![vec![index as u8; len].into()]);
    batch
}

/// Many batches in flight, so that groups are encoded while others sync. Each is checked against earlier ones, which
/// are not in the index yet, and all are acknowledged in order.
#[test]
fn batches_in_flight_are_checked_against_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let options = LogOptions { group_bytes: 16 << 10, file_bytes: 1 << 20, ..LogOptions::default() };
    let (engine, _) = LogEngine::open(RealDisk::open(dir.path()).unwrap(), options).unwrap();
    let order = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let mut tickets = Vec::new();
    for index in 1..=600 {
        let order = order.clone();
        let done = Box::new(move |outcome: engine::log::Result<_>| {
            order.lock().push(index);
            outcome.unwrap();
        });
        engine.submit_with(append(index, 4 << 10), Durability::Synced, done).unwrap();
        if index % 50 == 0 {
            tickets.push((index, engine.submit(append(index + 2, 10), Durability::Synced).unwrap()));
        }
    }
    for (index, ticket) in tickets {
        assert!(matches!(ticket.wait(), Err(LogError::Gap { expected }) if expected == index + 1));
    }
    engine.write(LogBatch::new(), Durability::Synced).unwrap();
    assert!(order.lock().iter().copied().eq(1..=600));
    let entries = engine.entries(GroupId(1), 1, 601, usize::MAX).unwrap();
    assert!(entries.iter().zip(1u64..).all(|(entry, index)| entry[0] == index as u8 && entry.len() == 4 << 10));
}

/// A waiting caller serves the queue if no worker is active, and hands over to a thread if more batches arrive.
#[test]
fn waiting_and_submitting_callers_serve_the_queue() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, _) = LogEngine::open(RealDisk::open(dir.path()).unwrap(), options()).unwrap();
    std::thread::scope(|scope| {
        for group in 0..8u64 {
            let engine = &engine;
            scope.spawn(move || {
                let mut last = None;
                for index in 1..=300u64 {
                    let mut batch = LogBatch::new();
                    batch.append(GroupId(group), index, vec![entry(group, index)]);
                    let durability = if index % 3 == 0 { Durability::Synced } else { Durability::Buffered };
                    if (index + group) % 4 == 0 {
                        last = Some(engine.submit(batch, durability).unwrap());
                    } else {
                        engine.write(batch, durability).unwrap();
                    }
                }
                if let Some(ticket) = last {
                    ticket.wait().unwrap();
                }
            });
        }
    });
    for group in 0..8 {
        let entries = engine.entries(GroupId(group), 1, 301, usize::MAX).unwrap();
        assert!(entries.iter().zip(1..).all(|(read, index)| *read == entry(group, index)));
    }
}

/// After a panic in a callback the log writes nothing, and no caller waits for ever.
#[test]
fn a_callback_that_panics_poisons_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, _) = LogEngine::open(RealDisk::open(dir.path()).unwrap(), options()).unwrap();
    let done = Box::new(|_| panic!("planted"));
    engine.submit_with(append(1, 10), Durability::Synced, done).unwrap();
    let outcome = (0..10_000).find_map(|_| engine.write(LogBatch::new(), Durability::Synced).err());
    assert!(matches!(outcome, Some(LogError::Poisoned(_))), "{outcome:?}");
    engine.close();
}

/// A batch that does not fit into a commit group goes into the next one, even if the thread that wrote the group
/// returns.
#[test]
fn a_leftover_batch_is_not_stranded() {
    const TOGETHER: u64 = 2;
    let dir = tempfile::tempdir().unwrap();
    let options = LogOptions { group_bytes: 4 << 10, ..options() };
    let (engine, _) = LogEngine::open(RealDisk::open(dir.path()).unwrap(), options).unwrap();
    let start = Arc::new(Barrier::new(TOGETHER as usize));
    for index in 1..=300u64 {
        let (sender, receiver) = crossbeam_channel::bounded(TOGETHER as usize);
        for group in 0..TOGETHER {
            let (engine, sender, start) = (engine.clone(), sender.clone(), start.clone());
            std::thread::spawn(move || {
                let mut batch = LogBatch::new();
                batch.append(GroupId(group), index, vec![vec![group as u8; 3000].into()]);
                start.wait();
                sender.send(engine.write(batch, Durability::Synced).is_ok()).unwrap();
            });
        }
        for _ in 0..TOGETHER {
            assert_eq!(receiver.recv_timeout(Duration::from_secs(60)), Ok(true), "round {index}");
        }
    }
}

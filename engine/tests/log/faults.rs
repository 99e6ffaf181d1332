//! Failing calls: each call of each kind fails once, the power fails at each change, and single failures have the
//! required effect.
//!
//! The model accompanies the engine throughout, so every history is also checked against the invariants of
//! `model::check`.

use std::io::ErrorKind;

use engine::disk::{Applied, Operation, SimDisk};
use engine::log::{Budget, Durability, GroupId, LogError, LogOptions};
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::model::check::recovered;
use crate::model::{After, Change, Driver, Generator, batch_of, small_options};

const OPERATIONS: [Operation; 6] =
    [Operation::Write, Operation::Sync, Operation::Create, Operation::Rename, Operation::Remove, Operation::SyncDir];

fn options() -> LogOptions {
    LogOptions { prefill_bytes: 32 << 10, align_bytes: 512, ..small_options() }
}

/// The same work each time: rotations, rewrites, dropped and deleted files. Stops when the log is poisoned.
fn work(driver: &mut Driver, steps: u64) {
    let mut rng = StdRng::seed_from_u64(11);
    let generator = Generator { groups: 3, max_entry: 6000, removes: false };
    for step in 0..steps {
        let changes = generator.batch(&mut rng, driver.history.latest());
        let durability = if step % 2 == 0 { Durability::Synced } else { Durability::Buffered };
        driver.submit(changes, durability);
        driver.turn();
        // Errors of purge come from the disk; the test checks their consequences.
        let _ = driver.engine.purge(Budget::default());
        driver.turn();
        if driver.engine.poisoned().is_some() {
            return;
        }
    }
}

const STEPS: u64 = 60;

/// The number of changes of the undisturbed work. Also checks that the work rotates and purges.
fn undisturbed() -> u64 {
    let mut driver = Driver::new(options());
    work(&mut driver, STEPS);
    driver.check_live();
    let files: Vec<String> = engine::disk::Disk::list(driver.disk.as_ref()).unwrap();
    assert!(files[0].as_str() > "0000000000000003.log", "files were dropped: {files:?}");
    driver.disk.changes()
}

#[test]
fn the_power_fails_at_each_change() {
    let changes = undisturbed();
    for stop in 0..=changes {
        let mut halted = Driver::new(options());
        halted.disk.halt_after(stop);
        work(&mut halted, STEPS);
        for seed in 0..4 {
            let mut driver =
                halted.crashed_fork(seed).unwrap_or_else(|what| panic!("power off after {stop}, crash {seed}: {what}"));
            // Recovery itself is interrupted and gives the same result when repeated.
            driver.disk.halt_after(seed);
            drop(engine::log::LogEngine::open_driven(driver.disk.session(), driver.options.clone()));
            driver.crash(seed).unwrap_or_else(|what| panic!("power off after {stop}, second crash {seed}: {what}"));
            work(&mut driver, 5);
            driver.check_live();
        }
    }
}

#[test]
fn the_power_fails_while_the_log_is_created() {
    for stop in 0..8 {
        for seed in 0..16 {
            let disk = SimDisk::new();
            disk.halt_after(stop);
            let outcome = engine::log::LogEngine::open_driven(disk.session(), options());
            assert_eq!(outcome.is_ok(), stop >= 5, "create, write, sync, rename, sync the directory");
            disk.crash(seed);
            let mut driver = Driver::on(disk, options());
            work(&mut driver, 5);
            driver.check_live();
        }
    }
}

/// After each failure of each call: nothing is acknowledged wrongly, only a failed sync poisons the log, and a reopened
/// log continues, whether the machine crashed or only the process ended.
#[test]
fn each_call_fails_once() {
    for operation in OPERATIONS {
        let mut failed = 0;
        for nth in 1.. {
            let mut driver = Driver::new(options());
            driver.disk.fail_nth(operation, nth, ErrorKind::Other);
            work(&mut driver, STEPS);
            if driver.disk.failures_left() > 0 {
                break;
            }
            let poisoned = driver.engine.poisoned().is_some();
            failed += u64::from(poisoned);
            driver.check_live();
            let context = format!("{operation:?} {nth}");
            assert_eq!(poisoned, driver.disk.failed_syncs() > 0, "{context}");
            if nth % 2 == 0 {
                driver.reopen().unwrap_or_else(|what| panic!("{context}: reopened: {what}"));
                work(&mut driver, 3);
            }
            driver.crash(nth).unwrap_or_else(|what| panic!("{context}: {what}"));
            work(&mut driver, 5);
            driver.check_live();
        }
        assert_eq!(failed > 0, matches!(operation, Operation::Sync | Operation::SyncDir), "{operation:?}");
    }
}

/// A read that fails during recovery makes the open fail and changes nothing.
#[test]
fn each_read_of_recovery_fails_once() {
    let mut driver = Driver::new(options());
    work(&mut driver, STEPS);
    driver.crash(1).unwrap();
    for nth in 1.. {
        driver.disk.fail_nth(Operation::Read, nth, ErrorKind::Other);
        let outcome = engine::log::LogEngine::open_driven(driver.disk.session(), driver.options.clone());
        if driver.disk.failures_left() > 0 {
            assert!(nth > 4, "at least a header, a scan, a seal");
            break;
        }
        assert!(matches!(outcome, Err(LogError::Io(_))));
    }
    driver.crash(2).unwrap();
    driver.check_live();
}

#[test]
fn a_failed_sync_poisons_until_reopened() {
    let mut driver = Driver::new(options());
    work(&mut driver, 3);
    driver.disk.fail_nth(Operation::Sync, 1, ErrorKind::Other);
    let append =
        |first| crate::model::Change::Append { group: 9, first, entries: vec![bytes::Bytes::from_static(b"e")] };
    driver.submit(vec![append(1)], Durability::Synced);
    driver.turn();
    assert!(matches!(driver.engine.poisoned(), Some(LogError::Poisoned(why)) if why.contains("sync")));
    let refused = driver.engine.submit(crate::model::batch_of(&[append(1)]), Durability::Buffered);
    assert!(matches!(refused, Err(LogError::Poisoned(_))));
    // The page cache still shows data that is not on the disk. The reopened log makes it durable or reports it as lost.
    driver.reopen().unwrap();
    driver.crash(1).unwrap();
    assert!(driver.engine.poisoned().is_none());
}

/// A failed write breaks its sequence, as a full disk does: later batches are not written until the caller resumes the
/// sequence.
#[test]
fn a_sequence_broken_by_a_failed_write_continues_when_resumed() {
    let append = |first| Change::Append { group: 1, first, entries: vec![vec![b'e'; 2000].into()] };
    let mut driver = Driver::new(LogOptions { prefill_bytes: 0, ..options() });
    let sequence = driver.engine.sequence();
    let outcome_of = |driver: &mut Driver, first| {
        let ticket = sequence.submit(batch_of(&[append(first)]), Durability::Synced).unwrap();
        driver.writer.turn();
        ticket.poll().unwrap()
    };
    outcome_of(&mut driver, 1).unwrap();
    driver.disk.fail_nth(Operation::Write, 1, ErrorKind::Other);
    for first in [2, 3] {
        let outcome = outcome_of(&mut driver, first);
        assert!(matches!(outcome, Err(LogError::Io(_))), "{outcome:?}");
    }
    sequence.resume();
    outcome_of(&mut driver, 2).unwrap();
    driver.disk.crash(1);
    let (engine, ..) = crate::model::open(&driver.disk, &driver.options).unwrap();
    assert_eq!(engine.bounds(GroupId(1)).unwrap().last, 2);
}

/// The remains of a failed write must be overwritten and synced. If that sync fails, the log is poisoned and syncs
/// nothing again.
#[test]
fn a_failed_sync_of_overwritten_remains_poisons() {
    let put = |value: u8| vec![Change::Put { group: 1, key: vec![1], value: vec![value; 600] }];
    let mut driver = Driver::new(LogOptions { prefill_bytes: 0, ..options() });
    driver.submit(put(1), Durability::Synced);
    driver.turn();
    driver.disk.fail_nth(Operation::Write, 1, ErrorKind::Other);
    driver.disk.fail_nth(Operation::Sync, 1, ErrorKind::Other);
    driver.submit(put(2), Durability::Synced);
    driver.turn();
    assert!(matches!(driver.engine.poisoned(), Some(LogError::Poisoned(why)) if why.contains("sync")));
    let syncs = driver.disk.calls(Operation::Sync);
    driver.submit(put(3), Durability::Synced);
    driver.turn();
    driver.stop();
    assert_eq!(driver.disk.calls(Operation::Sync), syncs);
    driver.crash(1).unwrap();
}

/// The same if the overwrite itself fails, as on a disk that accepts no more writes.
#[test]
fn a_failed_overwrite_of_remains_poisons() {
    let put = |value: u8| vec![Change::Put { group: 1, key: vec![1], value: vec![value; 600] }];
    let mut driver = Driver::new(LogOptions { prefill_bytes: 32 << 10, ..options() });
    for value in 1..3 {
        driver.submit(put(value), Durability::Synced);
        driver.turn();
    }
    driver.disk.halt_after(0);
    driver.submit(put(3), Durability::Synced);
    driver.turn();
    assert!(matches!(driver.engine.poisoned(), Some(LogError::Poisoned(why)) if why.contains("wipe")));
    driver.crash(1).unwrap();
}

/// A rename returns an error, and its outcome cannot be determined: the log is poisoned.
#[test]
fn a_rename_with_an_unknown_outcome_poisons() {
    // Not applied, with one file or the other visible: the log can retry. Applied, with neither visible: the outcome is
    // unknown.
    for (left, opens, poisoned) in [(Applied::Nothing, 0, false), (Applied::Nothing, 2, false), (Applied::All, 2, true)]
    {
        let mut driver = Driver::new(LogOptions { prefill_bytes: 0, compress_from: usize::MAX, ..options() });
        let big = |first| vec![Change::Append { group: 1, first, entries: vec![vec![b'e'; 60_000].into()] }];
        driver.submit(big(1), Durability::Synced);
        driver.turn();
        driver.disk.fail_nth_applying(Operation::Rename, 1, ErrorKind::Other, left);
        if opens > 0 {
            driver.disk.fail_nth(Operation::Open, opens, ErrorKind::Other);
        }
        let ticket = driver.engine.submit(batch_of(&big(2)), Durability::Synced).unwrap();
        driver.writer.turn();
        let outcome = ticket.poll().unwrap();
        assert_eq!(matches!(outcome, Err(LogError::Poisoned(_))), poisoned, "{outcome:?}");
        assert_eq!(matches!(outcome, Err(LogError::Io(_))), !poisoned, "{outcome:?}");
        driver.crash(1).unwrap();
    }
}

/// The write of the next file's header fails, and its bytes reach the disk. The full file takes a group that frees
/// space, and the next attempt writes another header. After a crash the first one must not come back: the groups behind
/// the second would not continue it.
#[test]
fn a_header_whose_write_failed_does_not_come_back() {
    let append = |first, len| vec![Change::Append { group: 1, first, entries: vec![vec![b'e'; len].into()] }];
    for applied in [Applied::Nothing, Applied::Half, Applied::All] {
        let mut driver =
            Driver::new(LogOptions { prefill_bytes: 0, align_bytes: 8, compress_from: usize::MAX, ..options() });
        driver.submit(append(1, 60_000), Durability::Synced);
        driver.turn();
        // The first write is the empty page of the prepared file.
        driver.disk.fail_nth_applying(Operation::Write, 2, ErrorKind::Other, applied);
        driver.submit(append(2, 3000), Durability::Synced);
        driver.turn();
        assert_eq!((driver.history.current, driver.disk.failures_left()), (1, 0), "{applied:?}");
        let next = driver.disk.content("0000000000000002.log").unwrap();
        assert!(next.iter().all(|byte| *byte == 0), "{applied:?}: a header is left");
        driver.submit(vec![Change::Compact { group: 1, first_kept: 2 }], Durability::Synced);
        driver.turn();
        for first in [2, 3] {
            driver.submit(append(first, 150), Durability::Buffered);
            driver.submit(Vec::new(), Durability::Buffered);
            driver.lag();
        }
        assert!(driver.engine.poisoned().is_none());
        let mut tried = 0;
        crate::model::each_crash(&driver.disk, 500, |disk| {
            tried += 1;
            recovered(disk, &driver.options, &driver.history, After::Crash)
                .map(drop)
                .unwrap_or_else(|what| panic!("{applied:?}: {what}"));
        });
        assert!(tried > 50, "{applied:?}: {tried} crashes");
    }
}

/// Deleting spares is harmless: the log makes the next file from another spare, or a new one.
#[test]
fn deleted_spares_are_forgotten() {
    for deleted in 1..=3 {
        let mut driver = Driver::new(LogOptions { spare_files: 3, compress_from: usize::MAX, ..options() });
        let append = |driver: &mut Driver, first| {
            let entries = vec![vec![first as u8; 9000].into()];
            driver.submit(vec![Change::Append { group: 1, first, entries }], Durability::Synced);
            driver.turn();
        };
        (1..40).for_each(|first| append(&mut driver, first));
        driver.submit(vec![Change::Compact { group: 1, first_kept: 40 }], Durability::Synced);
        driver.turn();
        (0..40).for_each(|_| drop(driver.purge().unwrap()));
        let spares = |driver: &Driver| {
            let names = engine::disk::Disk::list(driver.disk.as_ref()).unwrap();
            names.into_iter().filter(|name| name.ends_with(".spare")).collect::<Vec<_>>()
        };
        let there = spares(&driver);
        assert_eq!(there.len(), 3);
        there[..deleted].iter().for_each(|name| driver.disk.lose(name));
        (40..80).for_each(|first| append(&mut driver, first));
        assert_eq!(driver.engine.bounds(GroupId(1)).unwrap().last, 79);
        driver.check_live();
        driver.crash(1).unwrap();
    }
}

/// Recovery does not read the groups of a sealed file: they must be durable before the seal is written.
#[test]
fn a_file_is_sealed_only_after_its_groups_are_synced() {
    let options = LogOptions { compress_from: usize::MAX, prefill_bytes: 0, ..options() };
    // Fills the first file and starts the second. Returns the disk's change counts before and after that last step.
    let fill = |driver: &mut Driver| {
        for index in 1.. {
            let before = driver.disk.changes();
            let entry = (0..4000u32).map(|at| ((at * index as u32) >> 3) as u8).collect();
            let append = crate::model::Change::Append { group: 1, first: index, entries: vec![entry] };
            driver.submit(vec![append], Durability::Buffered);
            driver.turn();
            if driver.disk.content("0000000000000002.log").is_some() || driver.disk.is_halted() {
                return before..=driver.disk.changes();
            }
        }
        unreachable!("the file is full eventually")
    };
    for stop in fill(&mut Driver::new(options.clone())) {
        let mut halted = Driver::new(options.clone());
        halted.disk.halt_after(stop);
        fill(&mut halted);
        for seed in 0..500 {
            let crashed = halted.crashed_fork(seed).map(drop);
            crashed.unwrap_or_else(|what| panic!("power off after {stop}, seed {seed}: {what}"));
        }
    }
}

/// After a failed call the length of the file is unknown. The log queries it before it writes the seal, which must end
/// the file.
#[test]
fn a_seal_ends_a_file_of_unknown_length() {
    let mut driver = Driver::new(LogOptions { prefill_bytes: 32 << 10, compress_from: usize::MAX, ..options() });
    let append = |first, len| vec![Change::Append { group: 1, first, entries: vec![vec![b'e'; len].into()] }];
    driver.submit(append(1, 25_000), Durability::Synced);
    driver.turn();
    driver.disk.fail_nth(Operation::Len, 1, ErrorKind::Other);
    driver.submit(append(2, 10_000), Durability::Synced);
    driver.turn();
    assert_eq!((driver.history.current, driver.disk.failures_left()), (1, 0), "an unknown amount of space was taken");
    driver.submit(append(2, 50_000), Durability::Synced);
    driver.turn();
    assert_eq!(driver.history.current, 2);
    driver.reopen().unwrap();
    driver.check_live();
}

/// A commit group is one write, one sync if any of its batches asks for it, and no larger than `group_bytes`.
#[test]
fn a_commit_group_is_one_write_and_one_sync_of_bounded_size() {
    let plain = LogOptions { prefill_bytes: 0, compress_from: usize::MAX, file_bytes: 8 << 20, ..options() };
    for (count, len, group_bytes, groups) in [(64, 1000, 8 << 10, 10), (64, 1000, 1 << 20, 1), (3, 9000, 8 << 10, 3)] {
        let mut driver = Driver::new(LogOptions { group_bytes, ..plain.clone() });
        let append = |group| vec![Change::Append { group, first: 1, entries: vec![vec![7; len].into()] }];
        (1..=count).for_each(|group| driver.submit(append(group), Durability::Synced));
        let calls = |driver: &Driver| [Operation::Write, Operation::Sync].map(|of| driver.disk.calls(of));
        let before = calls(&driver);
        driver.turn();
        assert_eq!(driver.history.current as u64, count);
        let made = calls(&driver).iter().zip(before).map(|(now, before)| now - before).collect::<Vec<_>>();
        assert_eq!(made, [groups, groups], "{count} batches of {len} bytes, at most {group_bytes} to a group");
        assert_eq!(driver.history.positions[count as usize], groups, "as many positions");
    }
    assert_eq!(LogOptions::default().group_bytes, 1 << 20);
}

/// A full disk fails batches and leaves no trace of them. Once there is space, the log continues without being
/// reopened.
#[test]
fn a_full_disk_is_survived() {
    let mut refused = 0;
    for spare in (0..40).map(|step| step * 7_001) {
        let mut driver = Driver::new(LogOptions { prefill_bytes: (spare % 3) << 14, ..options() });
        work(&mut driver, 10);
        driver.disk.set_capacity(Some(driver.disk.used() + spare));
        work(&mut driver, STEPS);
        assert!(driver.engine.poisoned().is_none(), "{:?}", driver.engine.poisoned());
        driver.check_live();
        refused += u64::from(driver.history.len() < STEPS as usize + 10);
        if spare % 2 == 0 {
            driver.crash(spare).unwrap_or_else(|what| panic!("full with {spare}: {what}"));
            driver.check_live();
        }
        driver.disk.set_capacity(None);
        let before = driver.history.current;
        work(&mut driver, 10);
        assert!(driver.history.current > before, "writes resume");
        driver.crash(spare + 1).unwrap_or_else(|what| panic!("after full with {spare}: {what}"));
        driver.check_live();
    }
    assert!(refused > 10);
}

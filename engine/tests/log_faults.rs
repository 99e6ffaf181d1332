//! Failing calls: each call of each kind fails once, the disk fills up, the power goes at each change.
//!
//! The model of `log_model` stands beside the engine throughout, so that every history is also checked for invariants 1 to 7 of the
//! log's documentation.

#![expect(clippy::unwrap_used, reason = "a test says what must hold")]

#[path = "log_model/mod.rs"]
mod log_model;

use std::io::ErrorKind;

use engine::disk::{Operation, SimDisk};
use engine::log::{Budget, Durability, GroupId, LogError, LogOptions};
use log_model::{Change, Driver, Generator, batch_of, small_options};
use rand::SeedableRng;
use rand::rngs::StdRng;

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
        // Errors of purge are those of the disk; what matters is what they leave behind.
        let _ = driver.engine.purge(Budget::default());
        driver.turn();
        if driver.engine.poisoned().is_some() {
            return;
        }
    }
}

const STEPS: u64 = 60;

/// How many changes the undisturbed work makes; proves that it does what it is meant to.
fn undisturbed() -> u64 {
    let mut driver = Driver::new(options());
    work(&mut driver, STEPS);
    driver.check_live();
    let files: Vec<String> = engine::disk::Disk::list(driver.disk.as_ref()).unwrap();
    assert!(files[0].as_str() > "0000000000000003.log", "files were dropped: {files:?}");
    driver.disk.changes()
}

#[test]
fn the_power_goes_at_each_change() {
    let changes = undisturbed();
    for stop in 0..=changes {
        for seed in 0..4 {
            let disk = SimDisk::new();
            let mut driver = Driver::on(disk, options());
            driver.disk.halt_after(stop);
            work(&mut driver, STEPS);
            driver.crash(seed).unwrap_or_else(|what| panic!("power gone after {stop}, crash {seed}: {what}"));
            // The recovery itself is cut off, and comes to the same end when it is done again.
            driver.disk.halt_after(seed);
            drop(engine::log::LogEngine::open_driven(driver.disk.session(), driver.options.clone()));
            driver.crash(seed).unwrap_or_else(|what| panic!("power gone after {stop}, second crash {seed}: {what}"));
            work(&mut driver, 5);
            driver.check_live();
        }
    }
}

#[test]
fn the_power_goes_while_the_log_is_created() {
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

/// After each failure of each call: nothing is acknowledged that is not so, and a reopened log goes on, whether
/// the machine crashed or only the process ended.
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
            if nth % 2 == 0 {
                driver.reopen().unwrap_or_else(|what| panic!("{context}: reopened: {what}"));
                work(&mut driver, 3);
            }
            driver.crash(nth).unwrap_or_else(|what| panic!("{context}: {what}"));
            work(&mut driver, 5);
            driver.check_live();
        }
        // Only a deletion that fails is harmless: it is tried again.
        assert_eq!(failed > 0, operation != Operation::Remove, "{operation:?}");
    }
}

/// A read that fails while the log is opened fails the opening, and changes nothing.
#[test]
fn each_read_of_the_recovery_fails_once() {
    let mut driver = Driver::new(options());
    work(&mut driver, STEPS);
    driver.crash(1).unwrap();
    for nth in 1.. {
        driver.disk.fail_nth(Operation::Read, nth, ErrorKind::Other);
        let outcome = engine::log::LogEngine::open_driven(driver.disk.session(), driver.options.clone());
        if driver.disk.failures_left() > 0 {
            assert!(nth > 4, "a header, a scan, a seal at least");
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
    let append = |first| log_model::Change::Append { group: 9, first, entries: vec![bytes::Bytes::from_static(b"e")] };
    driver.submit(vec![append(1)], Durability::Synced);
    driver.turn();
    assert!(matches!(driver.engine.poisoned(), Some(LogError::Poisoned(why)) if why.contains("sync")));
    let refused = driver.engine.submit(log_model::batch_of(&[append(1)]), Durability::Buffered);
    assert!(matches!(refused, Err(LogError::Poisoned(_))));
    // The page cache still shows what the disk does not have. The reopened log makes it durable, or says that it is gone.
    driver.reopen().unwrap();
    driver.crash(1).unwrap();
    assert!(driver.engine.poisoned().is_none());
}

/// A write that fails for lack of space may have left a whole group but for its padding: it must not be found later.
#[test]
fn a_batch_that_found_no_space_does_not_come_back() {
    for spare in 0..600 {
        for seed in 0..6 {
            let mut driver = Driver::new(LogOptions { prefill_bytes: 0, align_bytes: 512, ..options() });
            let append =
                |first, len| log_model::Change::Append { group: 1, first, entries: vec![vec![b'e'; len].into()] };
            driver.submit(vec![append(1, 10)], Durability::Synced);
            driver.turn();
            driver.disk.set_capacity(Some(driver.disk.used() + spare));
            driver.submit(vec![append(2, 20)], Durability::Synced);
            driver.turn();
            assert_eq!(driver.history.current, if spare < 512 { 1 } else { 2 });
            driver.crash(seed).unwrap_or_else(|what| panic!("spare {spare}, seed {seed}: {what}"));
        }
    }
}

/// Two batches share a commit group that finds no space. The second is refused because of what the first would have done: but that
/// was not done, so it is told the same as the first and not that entries are compacted or missing.
#[test]
fn a_batch_that_found_no_space_refuses_no_other() {
    let append = |first| Change::Append { group: 1, first, entries: vec![vec![b'e'; 2000].into()] };
    let mut driver = Driver::new(LogOptions { prefill_bytes: 0, ..options() });
    driver.submit(vec![append(1)], Durability::Synced);
    driver.turn();
    driver.disk.set_capacity(Some(driver.disk.used()));
    driver.submit(vec![Change::Compact { group: 1, first_kept: 50 }, append(50)], Durability::Synced);
    driver.submit(vec![append(2)], Durability::Synced);
    driver.turn();
    driver.disk.set_capacity(None);
    driver.check_live();
    driver.submit(vec![append(2)], Durability::Synced);
    driver.turn();
    assert_eq!(driver.engine.bounds(GroupId(1)).unwrap().last, 2);
}

/// The same in a sequence: also those that are submitted later are told why it broke.
#[test]
fn a_sequence_that_found_no_space_says_so() {
    let append = |first| Change::Append { group: 1, first, entries: vec![vec![b'e'; 2000].into()] };
    let mut driver = Driver::new(LogOptions { prefill_bytes: 0, ..options() });
    driver.submit(vec![append(1)], Durability::Synced);
    driver.turn();
    driver.disk.set_capacity(Some(driver.disk.used()));
    let sequence = driver.engine.sequence();
    let submit = |changes: &[Change]| sequence.submit(batch_of(changes), Durability::Synced).unwrap();
    // The second is wrong after the first, and the third has the second before it.
    let compacted = submit(&[Change::Compact { group: 1, first_kept: 50 }, append(50)]);
    let together = [compacted, submit(&[append(2)]), submit(&[append(51)])];
    driver.writer.turn();
    let later = submit(&[append(3)]);
    driver.writer.turn();
    for ticket in together.into_iter().chain([later]) {
        let outcome = ticket.poll().unwrap();
        assert!(matches!(outcome, Err(LogError::NoSpace(_))), "{outcome:?}");
    }
}

/// A sealed file is believed without being read: so its groups must be durable before the seal can be.
#[test]
fn a_seal_vouches_only_for_what_is_synced() {
    let options = LogOptions { compress_from: usize::MAX, prefill_bytes: 0, ..options() };
    // Fills the first file and begins the second; the changes that the disk saw before and after that last step.
    let fill = |driver: &mut Driver| {
        for index in 1.. {
            let before = driver.disk.changes();
            let entry = (0..4000u32).map(|at| ((at * index as u32) >> 3) as u8).collect();
            let append = log_model::Change::Append { group: 1, first: index, entries: vec![entry] };
            driver.submit(vec![append], Durability::Buffered);
            driver.turn();
            if driver.disk.content("0000000000000002.log").is_some() || driver.engine.poisoned().is_some() {
                return before..=driver.disk.changes();
            }
        }
        unreachable!("the file is full some time")
    };
    for stop in fill(&mut Driver::new(options.clone())) {
        for seed in 0..500 {
            let mut driver = Driver::new(options.clone());
            driver.disk.halt_after(stop);
            fill(&mut driver);
            driver.crash(seed).unwrap_or_else(|what| panic!("power gone after {stop}, seed {seed}: {what}"));
        }
    }
}

/// A full disk fails batches and leaves no trace of them; once there is space again, the log goes on without being reopened.
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

/// The disk is full to the last byte: entries are refused, but what lets entries go is taken, purge works in the space that was
/// kept for it, and appends go on without a restart.
#[test]
fn a_full_disk_is_purged_with_the_reserve() {
    let options = LogOptions { spare_files: 1, ..options() };
    let mut driver = Driver::new(options);
    let mut last = 0;
    let mut append = |driver: &mut Driver| {
        last += 1;
        let entries = vec![vec![last as u8; 3000].into()];
        driver.submit(vec![Change::Append { group: 1, first: last, entries }], Durability::Synced);
        let before = driver.history.current;
        driver.turn();
        last -= u64::from(driver.history.current == before);
        driver.history.current > before
    };
    let purge = |driver: &mut Driver| {
        let report = driver.engine.purge(Budget::default()).unwrap();
        driver.turn();
        report.freed
    };
    (0..20).for_each(|_| assert!(append(&mut driver)));
    purge(&mut driver);
    driver.disk.set_capacity(Some(driver.disk.used() + (100 << 10)));
    let written = (0..1000).take_while(|_| append(&mut driver)).count();
    assert!(written < 1000, "the disk never filled up");
    driver.disk.set_capacity(Some(driver.disk.used()));
    assert!(!append(&mut driver));
    driver.submit(vec![Change::Compact { group: 1, first_kept: 10 }], Durability::Synced);
    driver.turn();
    assert_eq!(driver.engine.bounds(GroupId(1)).unwrap().first, 10, "a full disk kept entries from being let go");
    driver.submit(vec![Change::Remove { group: 1 }], Durability::Synced);
    driver.turn();
    let freed: u64 = (0..20).map(|_| purge(&mut driver)).sum();
    assert!(freed > 0);
    last = 0;
    let mut append = |driver: &mut Driver| {
        last += 1;
        let entries = vec![vec![last as u8; 3000].into()];
        driver.submit(vec![Change::Append { group: 2, first: last, entries }], Durability::Synced);
        driver.turn();
    };
    (0..5).for_each(|_| append(&mut driver));
    assert_eq!(driver.engine.bounds(GroupId(2)).unwrap().last, 5);
    driver.check_live();
    driver.crash(4).unwrap();
    driver.check_live();
}

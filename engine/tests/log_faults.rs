//! Failing calls: each call of each kind fails once, the disk fills up, the power goes at each change.
//!
//! The model of `log_model` stands beside the engine throughout, so that every history is also checked for invariants 1 to 7 of the
//! log's documentation.

#![expect(clippy::unwrap_used, reason = "a test says what must hold")]

#[path = "log_model/mod.rs"]
mod log_model;

use std::io::ErrorKind;

use engine::disk::{Left, Operation, SimDisk};
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

/// After each failure of each call: nothing is acknowledged that is not so, only a failed sync ends the log's life, and a reopened log goes
/// on, whether the machine crashed or only the process ended.
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

/// A write that failed breaks its sequence as a full disk does: what is behind it is not written until the caller says so.
#[test]
fn a_sequence_that_met_a_failed_write_goes_on_when_it_is_resumed() {
    let append = |first| Change::Append { group: 1, first, entries: vec![vec![b'e'; 2000].into()] };
    let mut driver = Driver::new(LogOptions { prefill_bytes: 0, ..options() });
    let sequence = driver.engine.sequence();
    let told = |driver: &mut Driver, first| {
        let ticket = sequence.submit(batch_of(&[append(first)]), Durability::Synced).unwrap();
        driver.writer.turn();
        ticket.poll().unwrap()
    };
    told(&mut driver, 1).unwrap();
    driver.disk.fail_nth(Operation::Write, 1, ErrorKind::Other);
    for first in [2, 3] {
        let outcome = told(&mut driver, first);
        assert!(matches!(outcome, Err(LogError::Io(_))), "{outcome:?}");
    }
    sequence.resume();
    told(&mut driver, 2).unwrap();
    driver.disk.crash(1);
    let (engine, ..) = log_model::open(&driver.disk, &driver.options).unwrap();
    assert_eq!(engine.bounds(GroupId(1)).unwrap().last, 2);
}

/// What a write that failed left must be wiped out durably: where that sync fails the log is poisoned, and nothing is synced again.
#[test]
fn a_failed_write_that_cannot_be_wiped_out_poisons() {
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

/// The same where the wipe itself fails, as it does on a disk that takes no writes any more.
#[test]
fn a_wipe_that_fails_poisons() {
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

/// A rename that says it failed, and nobody can tell whether it did: the log does not guess.
#[test]
fn a_rename_with_an_unknown_outcome_poisons() {
    // Not done, with the one file and the other to be seen: so it can be tried again. Done, and not to be seen: nobody knows.
    for (left, opens, poisoned) in [(Left::Nothing, 0, false), (Left::Nothing, 2, false), (Left::All, 2, true)] {
        let mut driver = Driver::new(LogOptions { prefill_bytes: 0, compress_from: usize::MAX, ..options() });
        let big = |first| vec![Change::Append { group: 1, first, entries: vec![vec![b'e'; 60_000].into()] }];
        driver.submit(big(1), Durability::Synced);
        driver.turn();
        driver.disk.fail_nth_leaving(Operation::Rename, 1, ErrorKind::Other, left);
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

/// Whoever deletes spares does no harm: they are forgotten, and the next file is made of another one, or new.
#[test]
fn spares_that_were_deleted_are_forgotten() {
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
            if driver.disk.content("0000000000000002.log").is_some() || driver.disk.is_halted() {
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

/// Space is taken in steps, but what is taken is what there is: a group that fits is written though a step does not, and a step that
/// finds no space leaves others what there was.
#[test]
fn a_step_of_space_that_does_not_fit_is_not_insisted_on() {
    for synced in [true, false] {
        let durability = if synced { Durability::Synced } else { Durability::Buffered };
        let put = |value: u8| vec![Change::Put { group: 1, key: vec![1], value: vec![value; 600] }];
        let mut driver = Driver::new(LogOptions { prefill_bytes: 32 << 10, ..options() });
        let room = |free: u64| driver.disk.set_capacity(Some(driver.disk.used() + free));
        room(600);
        driver.submit(put(1), durability);
        let before = driver.disk.used();
        driver.turn();
        assert_eq!((driver.history.current, driver.disk.used()), (0, before), "not even the group fits");
        driver.disk.set_capacity(Some(before + (16 << 10)));
        driver.submit(put(2), durability);
        driver.turn();
        assert_eq!(driver.history.current, 1, "half a step is enough for it");
        assert!(driver.disk.used() < before + (12 << 10), "and takes no more than it needs");
        driver.check_live();
        driver.reopen().unwrap();
        driver.check_live();
    }
}

/// A log that is opened while the disk is full: batches are refused, what lets entries go is taken, purge frees space, and batches
/// go on, all before anyone else gives space back.
#[test]
fn a_log_that_is_opened_on_a_full_disk_purges_and_goes_on() {
    let options = LogOptions { spare_files: 1, compress_from: usize::MAX, ..options() };
    let mut driver = Driver::new(options);
    let append = |driver: &mut Driver, group, first| {
        let entries = vec![vec![first as u8; 3000].into()];
        let before = driver.history.current;
        driver.submit(vec![Change::Append { group, first, entries }], Durability::Synced);
        driver.turn();
        driver.history.current > before
    };
    assert!((1..=60).all(|first| append(&mut driver, 1, first)));
    (0..20).for_each(|_| drop(driver.purge().unwrap()));
    driver.disk.set_capacity(Some(driver.disk.used() + (40 << 10)));
    let last = (61..160).take_while(|first| append(&mut driver, 1, *first)).last().unwrap_or(60);
    driver.disk.set_capacity(Some(driver.disk.used()));
    driver.reopen().unwrap();
    // What the active file has taken already may still be filled.
    let last = (last + 1..160).take_while(|first| append(&mut driver, 1, *first)).last().unwrap_or(last);
    assert!(last < 159, "the disk is full");
    driver.submit(vec![Change::Compact { group: 1, first_kept: last }], Durability::Synced);
    driver.turn();
    let freed: u64 = (0..40).map(|_| driver.purge().unwrap().freed).sum();
    assert!(freed > 0, "purge works in what was kept for it");
    assert!((last + 1..last + 6).all(|first| append(&mut driver, 1, first)), "and batches go on");
    driver.check_live();
    driver.crash(3).unwrap();
    driver.check_live();
}

/// There is no next file, for the disk is full and nothing was kept: what lets entries go goes past the end of the file that there is.
#[test]
fn what_gives_space_back_does_not_need_the_next_file() {
    let plain = LogOptions { prefill_bytes: 0, compress_from: usize::MAX, spare_files: 0, ..options() };
    let mut driver = Driver::new(plain);
    let append = |first, len| vec![Change::Append { group: 1, first, entries: vec![vec![b'e'; len].into()] }];
    // What is left of the file is less than any commit group takes.
    driver.submit(append(1, 60_600), Durability::Synced);
    driver.turn();
    driver.disk.set_capacity(Some(driver.disk.used() + 3000));
    driver.submit(append(2, 10), Durability::Synced);
    driver.turn();
    assert_eq!(driver.history.current, 1, "it belongs into the next file, for which there is no space");
    for first_kept in 2..=4 {
        driver.submit(vec![Change::Compact { group: 1, first_kept }], Durability::Synced);
        driver.turn();
        assert_eq!(driver.engine.bounds(GroupId(1)).unwrap().first, first_kept);
    }
    driver.disk.set_capacity(None);
    driver.submit(append(4, 100), Durability::Synced);
    driver.turn();
    assert_eq!(driver.history.current, 5, "with space there is a next file");
    driver.crash(1).unwrap();
    driver.check_live();
}

/// The length of the file is not known after a call that failed to tell it: it is asked for before the seal is placed, which must be the last
/// of the file.
#[test]
fn a_seal_is_the_end_of_a_file_whose_length_was_not_told() {
    let mut driver = Driver::new(LogOptions { prefill_bytes: 32 << 10, compress_from: usize::MAX, ..options() });
    let append = |first, len| vec![Change::Append { group: 1, first, entries: vec![vec![b'e'; len].into()] }];
    driver.submit(append(1, 25_000), Durability::Synced);
    driver.turn();
    driver.disk.fail_nth(Operation::Len, 1, ErrorKind::Other);
    driver.submit(append(2, 10_000), Durability::Synced);
    driver.turn();
    assert_eq!(
        (driver.history.current, driver.disk.failures_left()),
        (1, 0),
        "space was taken, and how much is not known"
    );
    driver.submit(append(2, 50_000), Durability::Synced);
    driver.turn();
    assert_eq!(driver.history.current, 2);
    driver.reopen().unwrap();
    driver.check_live();
}

/// A commit group is one write, and one sync where a batch of it asks for that; and it is no larger than is said.
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

/// Others fill the disk, and there is no reserve. For as long as that lasts nothing is written and nothing is lost, each try and each step of purge costs the disk a few
/// calls, and nothing is poisoned; when the others leave some room, the log goes on, with the next full disk as with the first.
#[test]
fn a_disk_that_others_fill_is_survived_without_a_reserve() {
    for prefill_bytes in [0, 16 << 10] {
        let mut driver = Driver::new(LogOptions { spare_files: 0, prefill_bytes, ..options() });
        let (mut last, mut kept) = (0, 1);
        let mut try_append = |driver: &mut Driver| {
            let entries = vec![vec![last as u8; 3000].into()];
            let before = driver.history.current;
            driver.submit(vec![Change::Append { group: 1, first: last + 1, entries }], Durability::Synced);
            driver.turn();
            let written = driver.history.current > before;
            last += u64::from(written);
            (written, last)
        };
        for round in 0..5 {
            driver.disk.set_capacity(None);
            (0..60).for_each(|_| assert!(try_append(&mut driver).0, "round {round}: there is space"));
            let (_, last) = try_append(&mut driver);
            driver.submit(vec![Change::Compact { group: 1, first_kept: last - 5 }], Durability::Synced);
            driver.turn();
            kept = kept.max(last - 5);
            driver.disk.set_capacity(Some(driver.disk.used()));
            while try_append(&mut driver).0 {}
            for tried in 0..50 {
                let before = driver.disk.changes();
                try_append(&mut driver);
                let report = driver.engine.purge(Budget::default()).unwrap();
                driver.turn();
                let changes = driver.disk.changes() - before;
                assert!(changes <= 40, "round {round}, try {tried}: {changes} changes, {report:?}");
            }
            assert!(driver.engine.poisoned().is_none());
            driver.check_live();
            let mut other = driver.fork();
            other.crash(round).unwrap();
        }
        assert_eq!(driver.engine.bounds(GroupId(1)).unwrap().first, kept);
        driver.crash(1).unwrap();
        driver.check_live();
    }
}

//! Full disks: the log refuses batches without a trace, still accepts those that free space, and continues without a
//! reopen once there is space.
//!
//! The model accompanies the engine throughout, as in `faults`.

use engine::log::{Budget, Durability, GroupId, LogError, LogOptions};

use crate::model::{Change, Driver, batch_of, small_options};

fn options() -> LogOptions {
    LogOptions { prefill_bytes: 32 << 10, align_bytes: 512, ..small_options() }
}

/// A write that fails for lack of space may have left a whole group without its padding. Recovery must not find it.
#[test]
fn a_batch_without_space_does_not_reappear() {
    for spare in 0..600 {
        for seed in 0..6 {
            let mut driver = Driver::new(LogOptions { prefill_bytes: 0, align_bytes: 512, ..options() });
            let append =
                |first, len| crate::model::Change::Append { group: 1, first, entries: vec![vec![b'e'; len].into()] };
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

/// Two batches share a commit group for which there is no space. The second is invalid after the first. But the first
/// was not applied, so the second fails with the same error, not with `Compacted` or `Gap`.
#[test]
fn a_batch_without_space_invalidates_no_other() {
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

/// The same in a sequence: batches submitted later fail with the same error.
#[test]
fn a_sequence_without_space_reports_it() {
    let append = |first| Change::Append { group: 1, first, entries: vec![vec![b'e'; 2000].into()] };
    let mut driver = Driver::new(LogOptions { prefill_bytes: 0, ..options() });
    driver.submit(vec![append(1)], Durability::Synced);
    driver.turn();
    driver.disk.set_capacity(Some(driver.disk.used()));
    let sequence = driver.engine.sequence();
    let submit = |changes: &[Change]| sequence.submit(batch_of(changes), Durability::Synced).unwrap();
    // The second is invalid after the first, and the third depends on the second.
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

/// Space is reserved in steps, but the space that exists is used: a group that fits is written even if a step does not
/// fit, and a step that finds no space leaves the space to others.
#[test]
fn a_reservation_step_that_does_not_fit_is_not_required() {
    for synced in [true, false] {
        let durability = if synced { Durability::Synced } else { Durability::Buffered };
        let put = |value: u8| vec![Change::Put { group: 1, key: vec![1], value: vec![value; 600] }];
        let mut driver = Driver::new(LogOptions { prefill_bytes: 32 << 10, ..options() });
        let room = |free: u64| driver.disk.set_capacity(Some(driver.disk.used() + free));
        room(600);
        driver.submit(put(1), durability);
        let before = driver.disk.used();
        driver.turn();
        assert_eq!((driver.history.current, driver.disk.used()), (0, before), "the group does not fit either");
        driver.disk.set_capacity(Some(before + (16 << 10)));
        driver.submit(put(2), durability);
        driver.turn();
        assert_eq!(driver.history.current, 1, "half a step is enough");
        assert!(driver.disk.used() < before + (12 << 10), "and takes no more than it needs");
        driver.check_live();
        driver.reopen().unwrap();
        driver.check_live();
    }
}

/// A log opened on a full disk refuses batches, accepts truncations, and purges. Then batches succeed, although only
/// purge has freed space.
#[test]
fn a_log_opened_on_a_full_disk_purges_and_continues() {
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
    // Space that the active file has reserved may still be filled.
    let last = (last + 1..160).take_while(|first| append(&mut driver, 1, *first)).last().unwrap_or(last);
    assert!(last < 159, "the disk is full");
    driver.submit(vec![Change::Compact { group: 1, first_kept: last }], Durability::Synced);
    driver.turn();
    let freed: u64 = (0..40).map(|_| driver.purge().unwrap().freed).sum();
    assert!(freed > 0, "purge works in the reserve");
    assert!((last + 1..last + 6).all(|first| append(&mut driver, 1, first)), "then batches succeed");
    driver.check_live();
    driver.crash(3).unwrap();
    driver.check_live();
}

/// There is no next file, because the disk is full and there is no reserve. A truncation is written past the nominal
/// end of the current file.
#[test]
fn a_truncation_does_not_need_the_next_file() {
    let plain = LogOptions { prefill_bytes: 0, compress_from: usize::MAX, spare_files: 0, ..options() };
    let mut driver = Driver::new(plain);
    let append = |first, len| vec![Change::Append { group: 1, first, entries: vec![vec![b'e'; len].into()] }];
    // The rest of the file is smaller than any commit group.
    driver.submit(append(1, 60_600), Durability::Synced);
    driver.turn();
    driver.disk.set_capacity(Some(driver.disk.used() + 3000));
    driver.submit(append(2, 10), Durability::Synced);
    driver.turn();
    assert_eq!(driver.history.current, 1, "it needs the next file, and there is no space for one");
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

/// The disk is full to the last byte. Entries are refused, truncations are accepted, purge works in the reserve, and
/// appends continue without a restart.
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
    assert!(written < 1000, "the disk never fills up");
    driver.disk.set_capacity(Some(driver.disk.used()));
    assert!(!append(&mut driver));
    driver.submit(vec![Change::Compact { group: 1, first_kept: 10 }], Durability::Synced);
    driver.turn();
    assert_eq!(driver.engine.bounds(GroupId(1)).unwrap().first, 10, "a full disk prevented a truncation");
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

/// Other files fill the disk, and there is no reserve. Meanwhile no batch is written, none is lost, the log is not
/// poisoned, and each attempt and each step of purge makes only a few disk calls. Once there is space, the log
/// continues; the next full disk behaves like the first.
#[test]
fn a_disk_filled_by_others_is_survived_without_a_reserve() {
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

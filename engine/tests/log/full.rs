//! Full disks: what meets one is refused and leaves no trace, what gives space back goes on, and with the space the log does, without being
//! opened again.
//!
//! The model of `log_model` stands beside the engine throughout, as in `log_faults`.

use engine::log::{Budget, Durability, GroupId, LogError, LogOptions};

use crate::model::{Change, Driver, batch_of, small_options};

fn options() -> LogOptions {
    LogOptions { prefill_bytes: 32 << 10, align_bytes: 512, ..small_options() }
}

/// A write that fails for lack of space may have left a whole group but for its padding: it must not be found later.
#[test]
fn a_batch_that_found_no_space_does_not_come_back() {
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

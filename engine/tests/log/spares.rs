//! Spare files: their number, the creation of the reserve, and its use on a full disk.

use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use engine::disk::{Applied, Disk, Operation, RealDisk, SimDisk};
use engine::log::{Budget, Durability, GroupId, LogBatch, LogEngine, LogOptions, PurgeOutcome, PurgeReport};
use parking_lot::Mutex;

use crate::model::{Change, Driver, small_options};

const FILE: u64 = 64 << 10;

fn options(spare_files: usize) -> LogOptions {
    LogOptions { prefill_bytes: 0, align_bytes: 8, compress_from: usize::MAX, spare_files, ..small_options() }
}

/// One spare, and prefilled space: a file has space for its seal.
fn prefilled() -> LogOptions {
    LogOptions { prefill_bytes: 16 << 10, ..options(1) }
}

fn names(disk: &SimDisk, end: &str) -> Vec<String> {
    Disk::list(disk).unwrap().into_iter().filter(|name| name.ends_with(end)).collect()
}

fn append(group: u64, first: u64, len: usize) -> Change {
    Change::Append { group, first, entries: vec![vec![first as u8; len].into()] }
}

/// Whether the batch was accepted.
fn write(driver: &mut Driver, change: Change) -> bool {
    let before = driver.history.current;
    driver.submit(vec![change], Durability::Synced);
    driver.turn();
    driver.history.current > before
}

fn purge(driver: &mut Driver, bytes: usize) -> PurgeReport {
    let report = driver.engine.purge(Budget { bytes, find_pinning: false }).unwrap();
    driver.turn();
    report
}

/// Like `purge`, and whether a step was queued.
fn queued_step(driver: &mut Driver) -> (PurgeReport, bool) {
    let report = driver.engine.purge(Budget { bytes: 256 << 10, find_pinning: false }).unwrap();
    let queued = driver.engine.stats().queued_batches > 0;
    driver.turn();
    (report, queued)
}

/// Leaves the active file nearly full.
fn fill(driver: &mut Driver, index: u64) {
    assert!(write(driver, append(9, index, 60_000)));
}

#[test]
fn no_more_spares_are_kept_than_wanted() {
    for wanted in 0..4 {
        let mut driver = Driver::new(options(wanted));
        (1..=8).for_each(|index| fill(&mut driver, index));
        write(&mut driver, Change::Compact { group: 9, first_kept: 9 });
        for _ in 0..20 {
            purge(&mut driver, 256 << 10);
            assert!(names(&driver.disk, ".spare").len() <= wanted);
            assert_eq!(names(&driver.disk, ".spare").len(), driver.engine.stats().spare_files);
        }
        assert_eq!((names(&driver.disk, ".spare").len(), names(&driver.disk, ".log").len()), (wanted, 1));
    }
}

/// Spares found at open count; surplus and short ones are removed.
#[test]
fn spares_found_at_open_are_bounded() {
    let driver = Driver::new(options(2));
    for number in [3, 4, 7, 9] {
        driver.disk.set_content(&format!("{number:016}.spare"), vec![1; FILE as usize]);
    }
    driver.disk.set_content("0000000000000001.spare", vec![1; 100]);
    let mut driver = driver;
    driver.reopen().unwrap();
    assert_eq!(names(&driver.disk, ".spare"), ["0000000000000003.spare", "0000000000000004.spare"]);
    assert_eq!(driver.engine.stats().spare_files, 2);
}

/// The reserve is made in steps, as the report says, and becomes a spare only when it is complete.
#[test]
fn the_reserve_is_made_in_steps() {
    const STEP: usize = 20 << 10;
    let mut driver = Driver::new(options(1));
    for made in 0..3 {
        let before = driver.disk.used();
        assert!(purge(&mut driver, STEP).outcome != PurgeOutcome::Idle, "step {made}");
        assert_eq!(driver.disk.used() - before, STEP as u64, "step {made}");
        assert_eq!(driver.engine.stats().spare_files, 0);
    }
    purge(&mut driver, STEP);
    assert_eq!(driver.engine.stats().spare_files, 1);
    assert!(purge(&mut driver, STEP).outcome == PurgeOutcome::Idle);
    let name = names(&driver.disk, ".spare").pop().unwrap();
    assert_eq!(driver.disk.content(&name).unwrap().len() as u64, FILE);
}

/// The power fails at each change while the reserve is made: a complete spare is left, or none, and nothing else.
#[test]
fn a_partial_reserve_is_not_a_spare() {
    let made = |halt: Option<u64>| {
        let mut driver = Driver::new(options(1));
        assert!(write(&mut driver, append(1, 1, 50)));
        let start = driver.disk.changes();
        if let Some(halt) = halt {
            driver.disk.halt_after(start + halt);
        }
        (0..5).for_each(|_| drop(driver.engine.purge(Budget { bytes: 40 << 10, find_pinning: false })));
        let changes = driver.disk.changes() - start;
        (driver, changes)
    };
    let (_, changes) = made(None);
    assert!(changes > 5, "{changes}");
    for halt in 0..=changes {
        for seed in 0..20 {
            let (mut driver, _) = made(Some(halt));
            driver.crash(seed).unwrap();
            assert!(names(&driver.disk, ".tmp").is_empty(), "after {halt}: {:?}", names(&driver.disk, ""));
            let spares = names(&driver.disk, ".spare");
            assert!(spares.iter().all(|name| driver.disk.content(name).unwrap().len() as u64 == FILE), "after {halt}");
            assert_eq!(spares.len(), driver.engine.stats().spare_files);
        }
    }
}

/// No reserve is started on a nearly full disk, and a partial one is released if the disk fills up.
#[test]
fn the_reserve_does_not_use_the_last_space() {
    let mut driver = Driver::new(options(1));
    driver.disk.set_capacity(Some(driver.disk.used() + 2 * FILE - 1));
    let before = driver.disk.changes();
    assert!(purge(&mut driver, 20 << 10).outcome == PurgeOutcome::Idle);
    assert_eq!(driver.disk.changes(), before, "not for a moment");
    driver.disk.set_capacity(Some(driver.disk.used() + 2 * FILE));
    let used = driver.disk.used();
    assert!(purge(&mut driver, 20 << 10).outcome != PurgeOutcome::Idle);
    assert!(driver.disk.used() > used);
    driver.disk.set_capacity(Some(driver.disk.used() + FILE));
    assert!(purge(&mut driver, 20 << 10).outcome == PurgeOutcome::Idle);
    assert_eq!(driver.disk.used(), used);
}

/// Truncations may use the reserve, but do not while there is space for a new file.
#[test]
fn the_reserve_is_not_used_while_there_is_space() {
    let mut driver = Driver::new(prefilled());
    purge(&mut driver, 256 << 10);
    assert_eq!(driver.engine.stats().spare_files, 1);
    fill(&mut driver, 1);
    assert!(write(&mut driver, append(1, 1, 1000)));
    let before = names(&driver.disk, ".log").len();
    for first_kept in 2.. {
        if names(&driver.disk, ".log").len() > before {
            break;
        }
        assert!(write(&mut driver, Change::Compact { group: 9, first_kept }));
    }
    assert_eq!(driver.engine.stats().spare_files, 1);
    // Other files fill the disk: dead files are removed nevertheless.
    driver.disk.set_capacity(Some(driver.disk.used()));
    assert!(write(&mut driver, Change::Compact { group: 1, first_kept: 2 }));
    let freed: u64 = (0..20).map(|_| purge(&mut driver, 256 << 10).freed).sum();
    assert!(freed > 0);
    driver.crash(1).unwrap();
}

/// The disk has space only for the header of the next file, so the active file is empty and cannot grow. The reserve
/// replaces it.
#[test]
fn an_empty_file_that_cannot_grow_is_replaced_by_the_reserve() {
    for spare in [4096, 4096 + 200, 8192] {
        let mut driver = Driver::new(prefilled());
        purge(&mut driver, 256 << 10);
        fill(&mut driver, 1);
        driver.disk.set_capacity(Some(driver.disk.used() + spare));
        assert!(!write(&mut driver, append(9, 2, 30_000)));
        driver.disk.set_capacity(Some(driver.disk.used()));
        for first_kept in 2..6 {
            assert!(write(&mut driver, Change::Compact { group: 9, first_kept }), "{spare}: {first_kept}");
        }
        assert_eq!(driver.engine.stats().spare_files, 0);
        let freed: u64 = (0..20).map(|_| purge(&mut driver, 256 << 10).freed).sum();
        assert!(freed > 0, "{spare}");
        assert!(write(&mut driver, append(9, 6, 1000)));
        driver.check_live();
        driver.crash(spare).unwrap();
        driver.check_live();
    }
}

/// A live record in the oldest file keeps the dead files behind it, whatever the size of the log. On a full disk purge
/// rewrites that record, so that the files can be removed.
#[test]
fn a_full_disk_makes_purge_rewrite() {
    let mut driver = Driver::new(LogOptions { purge_threshold: 1 << 30, ..prefilled() });
    assert!(write(&mut driver, Change::Put { group: 1, key: b"k".to_vec(), value: b"v".to_vec() }));
    (1..=5).for_each(|index| fill(&mut driver, index));
    while purge(&mut driver, 256 << 10).outcome != PurgeOutcome::Idle {}
    driver.disk.set_capacity(Some(driver.disk.used()));
    let index = (6..).find(|index| !write(&mut driver, append(9, *index, 9000))).unwrap();
    assert!(write(&mut driver, Change::Compact { group: 9, first_kept: index }), "truncations have the reserve");
    let files = names(&driver.disk, ".log").len();
    for _ in 0..40 {
        purge(&mut driver, 256 << 10);
    }
    let left = names(&driver.disk, ".log").len();
    assert!(left + 2 < files, "{left} of {files} files are left");
    assert!(write(&mut driver, append(9, index, 9000)), "the log continues, and only purge freed space");
    driver.crash(1).unwrap();
}

/// The callback of purge is called once: when the step is written, or during the call if nothing was queued. A log far
/// beyond its threshold returns `Now`.
#[test]
fn a_step_reports_when_it_is_written() {
    let mut driver = Driver::new(LogOptions { purge_threshold: 100 << 10, ..options(0) });
    let over = Arc::new(AtomicUsize::new(0));
    // The report, and whether the step was queued: then the callback was not called yet.
    let step = |driver: &Driver| {
        let before = over.load(Ordering::SeqCst);
        let counter = over.clone();
        let count = move |written: bool| {
            assert!(written);
            counter.fetch_add(1, Ordering::SeqCst);
        };
        let report = driver.engine.purge_then(Budget::default(), count).unwrap();
        (report, over.load(Ordering::SeqCst) == before)
    };
    let (report, queued) = step(&driver);
    assert!(!queued && report.outcome == PurgeOutcome::Idle, "{report:?}");
    (1..=4).for_each(|index| fill(&mut driver, index));
    write(&mut driver, Change::Compact { group: 9, first_kept: 4 });
    let (report, queued) = step(&driver);
    assert!(queued && report.outcome == PurgeOutcome::Now, "{report:?}");
    let (second, queued) = step(&driver);
    assert!(!queued && second.outcome == PurgeOutcome::NextTick, "one step at a time: {second:?}");
    let before = over.load(Ordering::SeqCst);
    driver.turn();
    assert_eq!(over.load(Ordering::SeqCst), before + 1);
    let (report, _) = step(&driver);
    assert!(report.freed > 0 && report.outcome != PurgeOutcome::Now, "{report:?}");
}

/// The disk stays full, and there is no reserve: the callback reports that the step was not written. If the queue is
/// full, the next tick retries the step.
#[test]
fn a_step_reports_that_it_was_not_written() {
    let mut driver = Driver::new(LogOptions { purge_threshold: 100 << 10, queue_batches: 1, ..options(0) });
    (1..=4).for_each(|index| fill(&mut driver, index));
    write(&mut driver, Change::Compact { group: 9, first_kept: 4 });
    let outcomes = Arc::new(Mutex::new(Vec::new()));
    let step = |driver: &Driver| {
        let (before, queue) = (outcomes.lock().len(), outcomes.clone());
        let report = driver.engine.purge_then(Budget::default(), move |written| queue.lock().push(written)).unwrap();
        (report, outcomes.lock().len() == before)
    };
    driver.disk.set_capacity(Some(driver.disk.used()));
    for tried in 1..4 {
        let (report, queued) = step(&driver);
        assert!(queued && report.outcome == PurgeOutcome::Now, "{report:?}");
        driver.turn();
        assert_eq!(*outcomes.lock(), vec![false; tried]);
    }
    driver.disk.set_capacity(None);
    // Another batch fills the queue.
    driver.submit(vec![append(1, 1, 10)], Durability::Buffered);
    let (report, queued) = step(&driver);
    assert!(!queued && report.outcome == PurgeOutcome::NextTick, "{report:?}");
    driver.turn();
    assert!(step(&driver).1);
    driver.turn();
    assert_eq!(outcomes.lock().last(), Some(&true));
    assert!(step(&driver).0.freed > 0);
}

/// Whether the log considers its disk full, after a step of purge.
fn is_full(driver: &mut Driver) -> bool {
    purge(driver, 256 << 10);
    driver.engine.stats().is_full
}

/// A log far below its threshold whose disk was full and has space again.
fn was_full() -> Driver {
    let mut driver = Driver::new(LogOptions { purge_threshold: 1 << 30, ..options(0) });
    assert!(write(&mut driver, append(1, 1, 100)));
    driver.disk.set_capacity(Some(driver.disk.used() + 100));
    assert!(!write(&mut driver, append(1, 2, 1000)));
    driver.disk.set_capacity(Some(driver.disk.used() + FILE / 2));
    assert!(is_full(&mut driver), "no write has shown that there is space");
    driver
}

/// In a log that writes only keys, a written key shows that the disk has space again.
#[test]
fn written_keys_show_that_the_disk_has_space_again() {
    let mut driver = was_full();
    assert!(is_full(&mut driver), "half a file is not enough to create one");
    assert!(write(&mut driver, Change::Put { group: 1, key: b"k".to_vec(), value: b"v".to_vec() }));
    assert!(!is_full(&mut driver));
}

/// An idle log does not consider its disk full for ever.
#[test]
fn an_idle_log_notices_that_the_disk_has_space_again() {
    let mut driver = was_full();
    assert!(driver.engine.stats().is_full);
    driver.disk.set_capacity(Some(driver.disk.used() + FILE));
    assert!(!is_full(&mut driver));
}

/// A truncation that finds no space reports a full disk. A truncation that succeeds does not show that there is space.
#[test]
fn a_truncation_does_not_show_that_there_is_space() {
    let mut driver = was_full();
    assert!(write(&mut driver, Change::Compact { group: 1, first_kept: 2 }));
    assert!(is_full(&mut driver));
    assert!(write(&mut driver, append(1, 2, 10)));
    assert!(!is_full(&mut driver));
    driver.disk.set_capacity(Some(driver.disk.used()));
    assert!(!write(&mut driver, Change::Compact { group: 1, first_kept: 3 }));
    assert!(is_full(&mut driver));
}

/// Files 1 to 4. The first three are recorded as dropped and not removed.
fn dropped_files(options: LogOptions) -> Driver {
    let mut driver = Driver::new(options);
    (1..=4).for_each(|index| fill(&mut driver, index));
    write(&mut driver, Change::Compact { group: 9, first_kept: 4 });
    let (report, queued) = queued_step(&mut driver);
    assert!(queued && report.freed == 0, "{report:?}");
    assert_eq!(names(&driver.disk, ".log").len(), 4);
    driver
}

/// A file that the disk fails to remove delays no other: neither those dropped with it nor those that die later. It is
/// removed once the disk allows it.
#[test]
fn a_file_that_cannot_be_removed_delays_no_other() {
    let mut driver = dropped_files(options(0));
    let failing = |driver: &mut Driver| {
        driver.disk.fail_nth(Operation::Remove, 1, ErrorKind::Other);
        let (report, queued) = queued_step(driver);
        assert_eq!(driver.disk.failures_left(), 0);
        let failed = report.failed.as_ref().is_some_and(|failed| failed.starts_with("0000000000000001.log: "));
        assert!(failed && report.outcome != PurgeOutcome::Idle, "{report:?}");
        (report, queued)
    };
    assert!(failing(&mut driver).0.freed >= 2 * 60_000);
    for last in 5..8 {
        assert_eq!(names(&driver.disk, ".log").len(), 2, "{:?}", names(&driver.disk, ""));
        let (report, queued) = failing(&mut driver);
        assert!(report.freed == 0 && !queued && report.outcome == PurgeOutcome::NextTick, "{report:?}");
        fill(&mut driver, last);
        write(&mut driver, Change::Compact { group: 9, first_kept: last });
        assert!(failing(&mut driver).1);
        assert!(failing(&mut driver).0.freed >= 60_000);
    }
    let report = purge(&mut driver, 256 << 10);
    assert!(report.freed > 0 && report.failed.is_none() && report.outcome == PurgeOutcome::Idle, "{report:?}");
    assert_eq!(names(&driver.disk, ".log").len(), 1);
    driver.check_live();
    driver.crash(1).unwrap();
}

/// The directory has no space for the name of a spare. The file is deleted: free space is more important than a spare.
#[test]
fn a_file_that_cannot_become_a_spare_is_deleted() {
    let mut driver = dropped_files(options(3));
    driver.disk.fail_nth(Operation::Rename, 2, ErrorKind::StorageFull);
    let report = purge(&mut driver, 256 << 10);
    assert_eq!((driver.disk.failures_left(), &report.failed), (0, &None));
    assert!(report.freed >= 3 * 60_000, "{report:?}");
    assert_eq!((names(&driver.disk, ".log").len(), names(&driver.disk, ".spare").len()), (1, 2));
    assert_eq!(driver.engine.stats().spare_files, 2);
    driver.crash(1).unwrap();
}

/// A file becomes a spare, and the outcome of the rename is unknown. The next call finds the spare and uses it.
#[test]
fn a_spare_after_an_unknown_outcome_is_found() {
    let mut driver = dropped_files(options(3));
    driver.disk.fail_nth_applying(Operation::Rename, 2, ErrorKind::Other, Applied::All);
    driver.disk.fail_nth(Operation::Open, 1, ErrorKind::Other);
    let report = purge(&mut driver, 256 << 10);
    assert!(report.failed.as_ref().is_some_and(|failed| failed.contains("unknown outcome")), "{report:?}");
    assert_eq!((names(&driver.disk, ".spare").len(), driver.engine.stats().spare_files), (3, 2));
    let report = purge(&mut driver, 256 << 10);
    assert!(report.freed > 0 && report.failed.is_none(), "{report:?}");
    assert_eq!((names(&driver.disk, ".spare").len(), driver.engine.stats().spare_files), (3, 3));
    driver.crash(1).unwrap();
}

/// The same, and there are enough spares by then: the file is deleted under either name.
#[test]
fn a_surplus_spare_after_an_unknown_outcome_is_deleted() {
    let mut driver = dropped_files(options(2));
    driver.disk.fail_nth_applying(Operation::Rename, 1, ErrorKind::Other, Applied::All);
    driver.disk.fail_nth(Operation::Open, 1, ErrorKind::Other);
    assert!(purge(&mut driver, 256 << 10).failed.is_some());
    assert_eq!((names(&driver.disk, ".spare").len(), driver.engine.stats().spare_files), (3, 2));
    assert!(purge(&mut driver, 256 << 10).failed.is_none());
    assert_eq!((names(&driver.disk, ".spare").len(), driver.engine.stats().spare_files), (2, 2));
    driver.crash(1).unwrap();
}

/// A failure to create the reserve does not stop the next step of purge.
#[test]
fn a_reserve_that_fails_does_not_stop_purge() {
    let mut driver = Driver::new(LogOptions { purge_threshold: 0, ..options(1) });
    assert!(write(&mut driver, append(1, 1, 500)));
    (1..=3).for_each(|index| fill(&mut driver, index));
    write(&mut driver, Change::Compact { group: 9, first_kept: 4 });
    // A step that drops files comes before the reserve. Here there is none: the oldest file holds live data.
    driver.disk.fail_nth(Operation::Create, 1, ErrorKind::Other);
    let (report, queued) = queued_step(&mut driver);
    assert!(report.failed.as_ref().is_some_and(|failed| failed.starts_with("reserve: ")), "{report:?}");
    assert!(queued && report.rewritten > 0, "{report:?}");
    while purge(&mut driver, 256 << 10).outcome != PurgeOutcome::Idle {}
    assert_eq!(names(&driver.disk, ".log").len(), 1);
    driver.crash(1).unwrap();
}

/// A spare with a second name is never overwritten: the other name keeps its content.
#[test]
fn a_spare_with_a_second_name_is_dropped_at_open() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let options = || LogOptions { file_bytes: 64 << 10, prefill_bytes: 0, ..LogOptions::default() };
    let start = || LogEngine::open(RealDisk::open(&log).unwrap(), options()).unwrap().0;
    start().close();
    let spare = |number: u64| log.join(format!("{number:016}.spare"));
    for number in [1, 2, 3] {
        std::fs::write(spare(number), vec![number as u8; 64 << 10]).unwrap();
    }
    std::fs::hard_link(spare(1), dir.path().join("kept")).unwrap();
    let engine = start();
    assert!(!spare(1).exists());
    assert_eq!(engine.stats().spare_files, 2);
    // Bytes that hardly compress.
    let noise = |index: u64| {
        let step = |at: u64| ((index << 40) + at).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        (0..200 + index % 5 * 100).map(|at| step(at) as u8).collect()
    };
    let mut index = 1;
    while engine.stats().files < 4 {
        let mut batch = LogBatch::new();
        batch.append(GroupId(1), index, vec![noise(index)]);
        engine.write(batch, Durability::Buffered).unwrap();
        index += 1;
    }
    engine.close();
    assert!(!spare(2).exists() || !spare(3).exists(), "one is in use");
    assert_eq!(std::fs::read(dir.path().join("kept")).unwrap(), vec![1; 64 << 10]);
}

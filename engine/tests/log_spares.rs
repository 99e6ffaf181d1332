//! Spare files: how many are kept, how the last one is made, and what it is kept for.

#![expect(clippy::unwrap_used, reason = "a test says what must hold")]

#[path = "log_model/mod.rs"]
mod log_model;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use engine::disk::{Disk, SimDisk};
use engine::log::{Budget, Durability, LogOptions, PurgeReport};
use log_model::{Change, Driver, small_options};

const FILE: u64 = 64 << 10;

fn options(spare_files: usize) -> LogOptions {
    LogOptions { prefill_bytes: 0, align_bytes: 8, compress_from: usize::MAX, spare_files, ..small_options() }
}

/// One spare, and space taken ahead: so that a file has room for its seal.
fn prefilled() -> LogOptions {
    LogOptions { prefill_bytes: 16 << 10, ..options(1) }
}

fn names(disk: &SimDisk, end: &str) -> Vec<String> {
    Disk::list(disk).unwrap().into_iter().filter(|name| name.ends_with(end)).collect()
}

fn append(group: u64, first: u64, len: usize) -> Change {
    Change::Append { group, first, entries: vec![vec![first as u8; len].into()] }
}

/// Whether it was taken.
fn does(driver: &mut Driver, change: Change) -> bool {
    let before = driver.history.current;
    driver.submit(vec![change], Durability::Synced);
    driver.turn();
    driver.history.current > before
}

fn purge(driver: &mut Driver, bytes: usize) -> PurgeReport {
    let report = driver.engine.purge(Budget { bytes, laggards: false }).unwrap();
    driver.turn();
    report
}

/// Ends with the active file nearly full.
fn fill(driver: &mut Driver, index: u64) {
    assert!(does(driver, append(9, index, 60_000)));
}

#[test]
fn no_more_spares_are_kept_than_wanted() {
    for wanted in 0..4 {
        let mut driver = Driver::new(options(wanted));
        (1..=8).for_each(|index| fill(&mut driver, index));
        does(&mut driver, Change::Compact { group: 9, first_kept: 9 });
        for _ in 0..20 {
            purge(&mut driver, 256 << 10);
            assert!(names(&driver.disk, ".spare").len() <= wanted);
            assert_eq!(names(&driver.disk, ".spare").len(), driver.engine.stats().spare_files);
        }
        assert_eq!((names(&driver.disk, ".spare").len(), names(&driver.disk, ".log").len()), (wanted, 1));
    }
}

/// Those that are found at open count, those that are too many or too short go.
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

/// The reserve is made a step at a time, which the report tells, and is a spare only when it is whole.
#[test]
fn the_reserve_is_made_in_steps() {
    const STEP: usize = 20 << 10;
    let mut driver = Driver::new(options(1));
    for made in 0..3 {
        let before = driver.disk.used();
        assert!(purge(&mut driver, STEP).more, "step {made}");
        assert_eq!(driver.disk.used() - before, STEP as u64, "step {made}");
        assert_eq!(driver.engine.stats().spare_files, 0);
    }
    purge(&mut driver, STEP);
    assert_eq!(driver.engine.stats().spare_files, 1);
    assert!(!purge(&mut driver, STEP).more);
    let name = names(&driver.disk, ".spare").pop().unwrap();
    assert_eq!(driver.disk.content(&name).unwrap().len() as u64, FILE);
}

/// The power goes at each change while it is made: what is left is a whole spare or none, and nothing else.
#[test]
fn a_reserve_that_is_half_made_is_none() {
    let made = |halt: Option<u64>| {
        let mut driver = Driver::new(options(1));
        assert!(does(&mut driver, append(1, 1, 50)));
        let start = driver.disk.changes();
        if let Some(halt) = halt {
            driver.disk.halt_after(start + halt);
        }
        (0..5).for_each(|_| drop(driver.engine.purge(Budget { bytes: 40 << 10, laggards: false })));
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

/// A disk that is nearly full is left alone, and what was made of a reserve is given back when it becomes so.
#[test]
fn no_reserve_is_made_of_the_last_space() {
    let mut driver = Driver::new(options(1));
    driver.disk.set_capacity(Some(driver.disk.used() + 2 * FILE - 1));
    let before = driver.disk.changes();
    assert!(!purge(&mut driver, 20 << 10).more);
    assert_eq!(driver.disk.changes(), before, "not for a moment");
    driver.disk.set_capacity(Some(driver.disk.used() + 2 * FILE));
    let used = driver.disk.used();
    assert!(purge(&mut driver, 20 << 10).more);
    assert!(driver.disk.used() > used);
    driver.disk.set_capacity(Some(driver.disk.used() + FILE));
    assert!(!purge(&mut driver, 20 << 10).more);
    assert_eq!(driver.disk.used(), used);
}

/// What gives space back may take the reserve, but does not while there is room for a new file.
#[test]
fn the_reserve_is_not_spent_while_there_is_room() {
    let mut driver = Driver::new(prefilled());
    purge(&mut driver, 256 << 10);
    assert_eq!(driver.engine.stats().spare_files, 1);
    fill(&mut driver, 1);
    assert!(does(&mut driver, append(1, 1, 1000)));
    let before = names(&driver.disk, ".log").len();
    for first_kept in 2.. {
        if names(&driver.disk, ".log").len() > before {
            break;
        }
        assert!(does(&mut driver, Change::Compact { group: 9, first_kept }));
    }
    assert_eq!(driver.engine.stats().spare_files, 1);
    // Something else fills the disk: files in which nothing lives go all the same.
    driver.disk.set_capacity(Some(driver.disk.used()));
    assert!(does(&mut driver, Change::Compact { group: 1, first_kept: 2 }));
    let freed: u64 = (0..20).map(|_| purge(&mut driver, 256 << 10).freed).sum();
    assert!(freed > 0);
    driver.crash(1).unwrap();
}

/// The disk has room for the header of the next file and no more, so that the log stands in an empty file that cannot grow: the reserve takes
/// its place, whatever was in the file before.
#[test]
fn an_empty_file_that_cannot_grow_is_replaced_by_the_reserve() {
    for spare in [4096, 4096 + 200, 8192] {
        let mut driver = Driver::new(prefilled());
        purge(&mut driver, 256 << 10);
        fill(&mut driver, 1);
        driver.disk.set_capacity(Some(driver.disk.used() + spare));
        assert!(!does(&mut driver, append(9, 2, 30_000)));
        driver.disk.set_capacity(Some(driver.disk.used()));
        for first_kept in 2..6 {
            assert!(does(&mut driver, Change::Compact { group: 9, first_kept }), "{spare}: {first_kept}");
        }
        assert_eq!(driver.engine.stats().spare_files, 0);
        let freed: u64 = (0..20).map(|_| purge(&mut driver, 256 << 10).freed).sum();
        assert!(freed > 0, "{spare}");
        assert!(does(&mut driver, append(9, 6, 1000)));
        driver.check_live();
        driver.crash(spare).unwrap();
        driver.check_live();
    }
}

/// A record that lives on in the oldest file keeps the dead files behind it, whatever the log takes; on a full disk it is written again,
/// so that they can go.
#[test]
fn a_full_disk_is_reason_enough_to_write_again() {
    let mut driver = Driver::new(LogOptions { purge_threshold: 1 << 30, ..prefilled() });
    assert!(does(&mut driver, Change::Put { group: 1, key: b"k".to_vec(), value: b"v".to_vec() }));
    (1..=5).for_each(|index| fill(&mut driver, index));
    while purge(&mut driver, 256 << 10).more {}
    driver.disk.set_capacity(Some(driver.disk.used()));
    let index = (6..).find(|index| !does(&mut driver, append(9, *index, 9000))).unwrap();
    assert!(
        does(&mut driver, Change::Compact { group: 9, first_kept: index }),
        "what gives space back has the reserve"
    );
    let files = names(&driver.disk, ".log").len();
    for _ in 0..40 {
        purge(&mut driver, 256 << 10);
    }
    let left = names(&driver.disk, ".log").len();
    assert!(left + 2 < files, "{left} of {files} files are left");
    assert!(does(&mut driver, append(9, index, 9000)), "the log goes on, and nobody gave it space");
    driver.crash(1).unwrap();
}

/// The caller is told when a step that was queued is written, and only then; a log far beyond its threshold says so.
#[test]
fn a_step_tells_when_it_is_written() {
    let mut driver = Driver::new(LogOptions { purge_threshold: 100 << 10, ..options(0) });
    let landed = Arc::new(AtomicUsize::new(0));
    let step = |driver: &Driver| {
        let landed = landed.clone();
        let count = move || {
            landed.fetch_add(1, Ordering::SeqCst);
        };
        driver.engine.purge_then(Budget::default(), count).unwrap()
    };
    let report = step(&driver);
    assert!(!report.queued && !report.more && !report.pressed, "{report:?}");
    (1..=4).for_each(|index| fill(&mut driver, index));
    does(&mut driver, Change::Compact { group: 9, first_kept: 4 });
    let report = step(&driver);
    assert!(report.queued && report.more && report.pressed, "{report:?}");
    let again = step(&driver);
    assert!(!again.queued && again.more, "one at a time: {again:?}");
    assert_eq!(landed.load(Ordering::SeqCst), 0);
    driver.turn();
    assert_eq!(landed.load(Ordering::SeqCst), 1);
    let report = step(&driver);
    assert!(report.freed > 0 && !report.pressed, "{report:?}");
}

//! The offline tools: a check finds exactly the damage, a dump and stats have the content of the log, a repaired log
//! opens.

mod check;
mod content;
mod repair;

use engine::disk::{Disk, SimDisk};
use engine::log::tools::{CheckReport, DumpOptions, Progress, RepairOptions, check, dump, repair, stats};
use engine::log::{Budget, Durability, LogError, LogOptions};
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::model::{Driver, Generator, contents, small_options};

fn options() -> LogOptions {
    LogOptions { prefill_bytes: 0, align_bytes: 512, ..small_options() }
}

fn logs(disk: &SimDisk) -> Vec<String> {
    Disk::list(disk).unwrap().into_iter().filter(|name| name.ends_with(".log")).collect()
}

/// Checks the log. Changes nothing, and reports progress up to the end.
fn checked(disk: &SimDisk) -> CheckReport {
    let (before, changes) = (contents(disk), disk.changes());
    let mut reported: Vec<Progress> = Vec::new();
    let report = check(disk, &mut |progress| reported.push(progress)).unwrap();
    assert_eq!((contents(disk), disk.changes()), (before, changes));
    let last = reported[reported.len() - 1];
    assert_eq!((last.done, last.total), (report.bytes, report.bytes));
    assert!(reported.windows(2).all(|pair| pair[0].done <= pair[1].done));
    report
}

/// A log of several files with records of every kind.
fn busy_log(seed: u64, options: LogOptions, finish: bool) -> Driver {
    let mut rng = StdRng::seed_from_u64(seed);
    // Every other log is purged early; the others have many files.
    let purge_threshold = if seed.is_multiple_of(2) { 1 << 20 } else { 0 };
    let mut driver = Driver::new(LogOptions { purge_threshold, ..options });
    let generator = Generator { groups: 6, max_entry: 2500, removes: false };
    for step in 0..90 {
        let changes = generator.batch(&mut rng, &driver.history[driver.history.len() - 1]);
        driver.submit(changes, if step % 3 == 0 { Durability::Synced } else { Durability::Buffered });
        driver.turn();
        driver.engine.purge(Budget::default()).unwrap();
        driver.turn();
    }
    if finish {
        driver.writer.finish();
    }
    driver
}

#[test]
fn tools_refuse_an_empty_directory() {
    let disk = SimDisk::new();
    disk.set_content("notes.txt", b"mine".to_vec());
    assert!(matches!(check(disk.as_ref(), &mut |_| ()), Err(LogError::NoLog)));
    assert!(matches!(stats(disk.as_ref(), &mut |_| ()), Err(LogError::NoLog)));
    let shown = dump(disk.as_ref(), &DumpOptions::default(), &mut |_| Ok(()), &mut |_| ());
    assert!(matches!(shown, Err(LogError::NoLog)));
    let repaired = repair(disk.as_ref(), || panic!("nothing to write"), &RepairOptions::default(), &mut |_| ());
    assert!(matches!(repaired, Err(LogError::NoLog)));
}

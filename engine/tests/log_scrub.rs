//! Scrub: damage to what lives in sealed files is found without anybody asking for it, within a round, and told once.

#![expect(clippy::unwrap_used, reason = "a test says what must hold")]

#[path = "log_model/mod.rs"]
mod log_model;

use engine::disk::Operation;
use engine::log::{Budget, Durability, GroupId, LogOptions, ScrubReport};
use log_model::cases::entry;
use log_model::{Change, Driver, file, flip, small_options};

fn options() -> LogOptions {
    LogOptions { prefill_bytes: 0, compress_from: usize::MAX, spare_files: 0, ..small_options() }
}

fn append(driver: &mut Driver, group: u64, first: u64, len: usize) {
    let entries = vec![entry(group, first, len)];
    driver.submit(vec![Change::Append { group, first, entries }], Durability::Synced);
    driver.turn();
}

/// Groups 1 to 3 with entries of 3000 bytes each, in several files.
fn log() -> Driver {
    let mut driver = Driver::new(options());
    for index in 1..=30 {
        (1..=3).for_each(|group| append(&mut driver, group, index, 3000));
    }
    driver
}

/// A whole round, in steps of `most` bytes.
fn round(driver: &Driver, most: u64) -> (usize, ScrubReport) {
    let mut sum = ScrubReport::default();
    for step in 1..10_000 {
        let report = driver.engine.scrub(most);
        assert!(report.done || report.bytes >= most && report.bytes < most + 70_000, "{report:?}");
        sum.bytes += report.bytes;
        sum.damage.extend(report.damage);
        if report.done {
            return (step, sum);
        }
    }
    panic!("no end");
}

/// Flips a bit in the middle of an entry.
fn damage(driver: &Driver, seq: u64, group: u64, index: u64) {
    let content = driver.disk.content(&file(seq)).unwrap();
    let sought = entry(group, index, 3000);
    flip(&driver.disk, &file(seq), content.windows(sought.len()).position(|bytes| bytes == sought).unwrap() + 1500);
}

#[test]
fn a_sound_log_is_gone_through_in_steps_and_nothing_is_found() {
    let driver = log();
    let (steps, sum) = round(&driver, 10_000);
    let sealed = driver.engine.stats().disk_bytes / 3;
    assert!(steps > 10 && sum.bytes > sealed && sum.damage.is_empty(), "{steps} {sum:?}");
    let (again, same) = round(&driver, u64::MAX);
    assert_eq!((again, same.bytes), (1, sum.bytes), "the next round begins anew");
}

#[test]
fn damage_to_what_lives_is_told_once_with_its_group() {
    let driver = log();
    damage(&driver, 2, 2, 10);
    let (_, sum) = round(&driver, 5000);
    let [found] = sum.damage.as_slice() else { panic!("{sum:?}") };
    assert_eq!((found.file.as_str(), found.groups.as_slice()), (file(2).as_str(), &[GroupId(2)][..]), "{found}");
    assert!(round(&driver, 5000).1.damage.is_empty(), "told already");
}

/// Nobody needs what is dead; the index of a file is needed as long as there is the file.
#[test]
fn damage_to_what_is_dead_is_nobodys_concern_and_that_to_an_index_is() {
    let mut driver = log();
    damage(&driver, 2, 2, 10);
    driver.submit(vec![Change::Compact { group: 2, first_kept: 20 }], Durability::Synced);
    driver.turn();
    assert!(round(&driver, 5000).1.damage.is_empty());
    let end = driver.disk.content(&file(1)).unwrap().len();
    flip(&driver.disk, &file(1), end - 20);
    let (_, sum) = round(&driver, 5000);
    assert!(matches!(sum.damage.as_slice(), [found] if found.file == file(1)), "{sum:?}");
}

/// Files come and go under a round, and calls of the disk fail: it comes to its end.
#[test]
fn a_round_ends_whatever_becomes_of_the_log_meanwhile() {
    let mut driver = log();
    let mut next = 31;
    let mut rounds = 0;
    for step in 0..400 {
        if step % 10 == 0 {
            driver.disk.fail_nth(Operation::Read, 3, std::io::ErrorKind::Other);
        }
        rounds += u32::from(driver.engine.scrub(4000).done);
        append(&mut driver, 1 + next % 3, next / 3 + 20, 1000);
        if step % 20 == 0 {
            driver.submit(vec![Change::Compact { group: 1 + step / 20 % 3, first_kept: next / 3 }], Durability::Synced);
        }
        // A read of purge may be the one that fails.
        let _ = driver.engine.purge(Budget::default());
        driver.turn();
        next += 3;
    }
    assert!(rounds > 3, "{rounds}");
}

//! Scrub: one round finds damage to data that a read or a restart would need, and reports it once.

use std::io::ErrorKind;
use std::sync::Arc;

use bytes::Bytes;
use engine::disk::{Applied, Disk, Operation};
use engine::log::tools::Finding;
use engine::log::{Budget, Durability, GroupId, LogEngine, LogOptions, LogWriter, RecoveryMode, ScrubReport};
use parking_lot::Mutex;
use prometheus::Registry;

use crate::hooked_disk::HookedDisk;
use crate::model::cases::entry;
use crate::model::{Change, Driver, file, flip, small_options};
use crate::worn_disk::Wear;

fn options() -> LogOptions {
    LogOptions { prefill_bytes: 0, compress_from: usize::MAX, spare_files: 0, ..small_options() }
}

fn append(driver: &mut Driver, group: u64, first: u64, len: usize) {
    let entries = vec![entry(group, first, len)];
    driver.submit(vec![Change::Append { group, first, entries }], Durability::Synced);
    driver.turn();
}

/// Groups 1 to 3 with entries of 3000 bytes each, in several files.
fn log_with(options: LogOptions) -> Driver {
    let mut driver = Driver::new(options);
    for index in 1..=30 {
        (1..=3).for_each(|group| append(&mut driver, group, index, 3000));
    }
    driver
}

fn log() -> Driver {
    log_with(options())
}

/// A whole round, in steps of about `max_bytes`.
fn round_of(engine: &LogEngine, max_bytes: u64) -> (usize, ScrubReport) {
    let mut sum = ScrubReport::default();
    for step in 1..10_000 {
        let report = engine.scrub(max_bytes);
        assert!(report.done || report.bytes >= max_bytes && report.bytes < max_bytes + 9000, "{report:?}");
        sum.bytes += report.bytes;
        sum.damage.extend(report.damage);
        if report.done {
            return (step, sum);
        }
    }
    panic!("no end");
}

fn round(driver: &Driver, max_bytes: u64) -> (usize, ScrubReport) {
    round_of(&driver.engine, max_bytes)
}

/// The location of an entry of 3000 bytes.
fn place(driver: &Driver, group: u64, index: u64) -> (u64, usize) {
    let sought = entry(group, index, 3000);
    let find = |seq: u64| {
        let content = driver.disk.content(&file(seq))?;
        Some((seq, content.windows(sought.len()).position(|bytes| bytes == sought)?))
    };
    (1..20).find_map(find).unwrap()
}

/// Flips a bit in the middle of an entry.
fn damage(driver: &Driver, group: u64, index: u64) -> u64 {
    let (seq, at) = place(driver, group, index);
    flip(&driver.disk, &file(seq), at + 1500);
    seq
}

/// The log on a worn disk, with its pages cached as they were written. The last file is the active one.
struct Worn {
    engine: LogEngine,
    _writer: LogWriter,
    wear: Arc<Mutex<Wear>>,
    files: Vec<String>,
}

fn worn(driver: &Driver) -> Worn {
    let copy = driver.disk.fork();
    let wear = Arc::<Mutex<Wear>>::default();
    let disk = Arc::new(HookedDisk { disk: copy.session(), hooks: wear.clone() });
    let files = disk.list().unwrap();
    let (engine, writer, _) = LogEngine::open_driven(disk, driver.options.clone()).unwrap();
    wear.lock().reset_reads();
    Worn { engine, _writer: writer, wear, files }
}

fn names(damage: &[Finding]) -> Vec<&str> {
    damage.iter().map(|found| found.file.as_str()).collect()
}

#[test]
fn a_round_over_a_sound_log_in_steps_finds_nothing() {
    let driver = log();
    let (steps, sum) = round(&driver, 10_000);
    let all = driver.engine.stats().disk_bytes;
    assert!(
        steps > 10 && sum.bytes > all / 10 * 9 && sum.bytes < all && sum.damage.is_empty(),
        "{steps} {all} {sum:?}"
    );
    let (again, same) = round(&driver, u64::MAX - 9000);
    assert_eq!((again, same.bytes), (1, sum.bytes), "the next round starts over");
}

#[test]
fn damage_to_a_live_block_is_reported_once_with_its_group() {
    let driver = log();
    let seq = damage(&driver, 2, 10);
    let (_, sum) = round(&driver, 5000);
    let [found] = sum.damage.as_slice() else { panic!("{sum:?}") };
    assert_eq!((found.file.as_str(), found.groups.as_slice()), (file(seq).as_str(), &[GroupId(2)][..]), "{found}");
    assert!(round(&driver, 5000).1.damage.is_empty(), "already reported");
}

/// Dead blocks are not needed; the index of a file is needed while the file exists.
#[test]
fn dead_blocks_are_skipped_and_indexes_are_not() {
    let mut driver = log();
    assert_eq!(damage(&driver, 2, 10), 2);
    driver.submit(vec![Change::Compact { group: 2, first_kept: 20 }], Durability::Synced);
    driver.turn();
    assert!(round(&driver, 5000).1.damage.is_empty());
    // Also if the block dies after the lookup.
    assert!(!driver.engine.scrub(60_000).done);
    assert_eq!(damage(&driver, 3, 20), 4);
    driver.submit(vec![Change::Compact { group: 3, first_kept: 25 }], Durability::Synced);
    driver.turn();
    assert!(round(&driver, 5000).1.damage.is_empty());
    let end = driver.disk.content(&file(1)).unwrap().len();
    flip(&driver.disk, &file(1), end - 20);
    let (_, sum) = round(&driver, 5000);
    let [found] = sum.damage.as_slice() else { panic!("{sum:?}") };
    assert_eq!((found.file.as_str(), found.groups.len()), (file(1).as_str(), 3), "as the next file records: {found}");
}

/// The page cache holds the pages as written; scrub must read sealed files from the disk.
#[test]
fn sealed_files_are_read_from_the_disk() {
    let driver = log();
    let sound = worn(&driver);
    assert_eq!(round_of(&sound.engine, 5000).1.damage, []);
    let active = sound.files.last().unwrap();
    let wear = sound.wear.lock();
    let (stale, left): (Vec<_>, Vec<_>) = wear.stale.iter().partition(|(name, ..)| name != active);
    assert!(stale.is_empty(), "read from the page cache: {stale:?}");
    assert!(left.len() > 5, "the active file stays cached");

    let worn = worn(&driver);
    let (seq, at) = place(&driver, 2, 10);
    let len = |seq| driver.disk.content(&file(seq)).unwrap().len() as u64;
    let places = [(1, 30), (seq, at as u64 + 1500), (3, len(3) - 20), (4, len(4) - 64 - 100)];
    worn.wear.lock().rot = places.map(|(seq, at)| (file(seq), at)).to_vec();
    let (_, sum) = round_of(&worn.engine, 5000);
    assert_eq!(names(&sum.damage), places.map(|(seq, _)| file(seq)), "header, block, footer and index: {sum:?}");
}

/// A file that is read in many steps: also its last parts come from the disk.
#[test]
fn a_long_file_is_read_from_the_disk_to_the_end() {
    let mut driver = Driver::new(LogOptions { file_bytes: 3 << 20, ..options() });
    (1..=70).for_each(|index| append(&mut driver, 1, index, 60_000));
    let worn = worn(&driver);
    let (mut sum, mut steps) = (ScrubReport::default(), 0);
    while !sum.done {
        let report = worn.engine.scrub(256 << 10);
        sum.bytes += report.bytes;
        sum.damage.extend(report.damage);
        (sum.done, steps) = (report.done, steps + 1);
        assert!(steps < 100, "no end");
    }
    assert!(steps > 10 && sum.bytes > 70 * 60_000 && sum.damage.is_empty(), "{sum:?}");
    let wear = worn.wear.lock();
    let stale: Vec<_> = wear.stale.iter().filter(|(name, ..)| *name == file(1)).collect();
    assert!(worn.files.len() == 2 && stale.is_empty(), "{stale:?}");
}

/// Small entries of many groups share blocks: each block is read once, and counts for its own bytes.
#[test]
fn a_shared_block_is_read_once() {
    let mut driver = Driver::new(LogOptions { block_bytes: 8 << 10, ..options() });
    for index in 1..=120 {
        let append = |group| Change::Append { group, first: index, entries: vec![entry(group, index, 150)] };
        driver.submit((1..=10).map(append).collect(), Durability::Synced);
        driver.turn();
    }
    let worn = worn(&driver);
    let (_, sum) = round_of(&worn.engine, 20_000);
    let all = worn.engine.stats().disk_bytes;
    assert!(sum.damage.is_empty() && sum.bytes > all / 10 * 8 && sum.bytes < all, "{all} {sum:?}");
    // Headers are read by pages, a footer once more for the length of its index.
    let read: u64 = worn.wear.lock().read.values().sum();
    assert!(read.abs_diff(sum.bytes) < 1000, "{read} {sum:?}");
}

/// Empty entries use space too.
#[test]
fn empty_entries_do_not_make_a_step_unbounded() {
    let mut driver = Driver::new(options());
    for index in 1..=1500 {
        append(&mut driver, 1, index, 0);
    }
    let (steps, sum) = round(&driver, 2000);
    assert!(steps > 25 && sum.bytes > 1500 * 17 && sum.damage.is_empty(), "{steps} {sum:?}");
}

/// Damage to the parts that a restart reads first.
#[test]
fn a_damaged_header_and_a_missing_name_are_found() {
    let driver = log();
    flip(&driver.disk, &file(2), 20);
    driver.disk.remove(&file(3)).unwrap();
    driver.disk.rename(&file(5), "elsewhere").unwrap();
    let content = driver.disk.content(&file(1)).unwrap();
    driver.disk.set_content(&file(5), content);
    let (_, sum) = round(&driver, 5000);
    assert_eq!(names(&sum.damage), [file(5), file(2), file(3)], "the active one first: {sum:?}");
    let names_cause = |at: usize, cause: &str| sum.damage[at].what.contains(cause);
    assert!(names_cause(0, "it is file 1") && names_cause(1, "checksum") && names_cause(2, "missing"), "{sum:?}");
    assert!(sum.damage.iter().all(|found| found.offset == 0 && !found.groups.is_empty()), "{sum:?}");
    assert!(round(&driver, 5000).1.damage.is_empty(), "already reported");
}

/// A file that purge has removed is not reported missing, even if the disk failed to remove it.
#[test]
fn a_file_that_purge_removed_is_not_missing() {
    let mut driver = log();
    (1..=3).for_each(|group| driver.submit(vec![Change::Compact { group, first_kept: 12 }], Durability::Synced));
    driver.turn();
    driver.engine.purge(Budget::default()).unwrap();
    driver.turn();
    driver.disk.fail_nth_applying(Operation::Remove, 1, ErrorKind::Other, Applied::All);
    assert!(driver.engine.purge(Budget::default()).unwrap().failed.is_some());
    assert!(driver.disk.content(&file(1)).is_none());
    assert_eq!(round(&driver, 5000).1.damage, []);
    assert!(driver.engine.purge(Budget::default()).unwrap().freed > 0);
    assert_eq!(round(&driver, 5000).1.damage, []);
}

/// A restart reads every commit group of the active file.
#[test]
fn damage_to_the_synced_part_of_the_active_file_is_found() {
    let mut driver = Driver::new(options());
    (1..=5).for_each(|index| append(&mut driver, 1, index, 3000));
    let entries = vec![entry(2, 1, 3000)];
    driver.submit(vec![Change::Append { group: 2, first: 1, entries }], Durability::Buffered);
    driver.turn();
    damage(&driver, 2, 1);
    assert_eq!(round(&driver, 5000).1.damage, [], "it is being written");
    append(&mut driver, 1, 6, 3000);
    let (_, sum) = round(&driver, 5000);
    let [found] = sum.damage.as_slice() else { panic!("{sum:?}") };
    assert_eq!(found.groups, [GroupId(2)], "{found}");
    // The header of the group with entry 4: nothing after it can be read.
    let (_, at) = place(&driver, 1, 4);
    let head = at - 16 - 2 - 64;
    flip(&driver.disk, &file(1), head + 8);
    let (_, sum) = round(&driver, 5000);
    let [found] = sum.damage.as_slice() else { panic!("{sum:?}") };
    assert_eq!((found.offset, found.groups.as_slice()), (head as u64, &[GroupId(1), GroupId(2)][..]), "{found}");
}

/// The disk fails to read two parts of a file: two locations.
#[test]
fn each_bad_sector_is_reported_with_its_location_and_groups() {
    let driver = log();
    let worn = worn(&driver);
    let bad = [(1, 3), (2, 3)].map(|(group, index)| (group, place(&driver, group, index)));
    assert_eq!((bad[0].1.0, bad[1].1.0), (1, 1));
    worn.wear.lock().bad = bad.map(|(_, (seq, at))| (file(seq), at as u64 + 100)).to_vec();
    let (_, sum) = round_of(&worn.engine, 5000);
    let reported: Vec<_> = sum.damage.iter().map(|found| (found.offset, found.groups.clone())).collect();
    assert_eq!(reported, bad.map(|(group, (_, at))| (at as u64 - 18, vec![GroupId(group)])), "{sum:?}");
    assert!(sum.damage.iter().all(|found| found.what.contains("bad sector")), "{sum:?}");
    assert_eq!(round_of(&worn.engine, 5000).1.damage, [], "already reported");
}

/// Running out of file descriptors (EMFILE) is no evidence of damage; an error of the disk (EIO) is.
#[test]
fn running_out_of_file_descriptors_is_not_damage() {
    let driver = log();
    for (number, damaged) in [(24, 0), (5, 5)] {
        let worn = worn(&driver);
        worn.wear.lock().refuses = Some(number);
        let (_, sum) = round_of(&worn.engine, 5000);
        assert_eq!((worn.files.len(), sum.damage.len()), (5, damaged), "{sum:?}");
        assert!(sum.damage.iter().all(|found| !found.groups.is_empty()), "{sum:?}");
    }
}

/// Only the first of the two to find it reports it.
#[test]
fn damage_found_by_scrub_and_purge_is_reported_once() {
    for scrub_first in [true, false] {
        let registry = Registry::new();
        let mut driver = log_with(LogOptions { registry: Some(registry.clone()), ..options() });
        (1..=3).for_each(|group| driver.submit(vec![Change::Compact { group, first_kept: 12 }], Durability::Synced));
        append(&mut driver, 4, 1, 3000);
        let end = driver.disk.content(&file(2)).unwrap().len();
        flip(&driver.disk, &file(2), end - 64 - 100);
        let mut reported = if scrub_first { round(&driver, 5000).1.damage } else { Vec::new() };
        for _ in 0..20 {
            reported.extend(driver.engine.purge(Budget::default()).unwrap().damage);
            driver.turn();
        }
        reported.extend(round(&driver, 5000).1.damage);
        assert_eq!(names(&reported), [file(2)], "scrub first: {scrub_first}, {reported:?}");
        let families = registry.gather();
        let damage = families.iter().find(|family| family.name() == "cortado_log_damage_total").unwrap();
        assert_eq!(damage.get_metric()[0].get_counter().get_value(), 1.0, "scrub first: {scrub_first}");
    }
}

/// A salvaged log is not scrubbed: its damage is reported at open, and it is not written.
#[test]
fn a_salvaged_log_is_not_scrubbed() {
    let driver = log();
    let end = driver.disk.content(&file(2)).unwrap().len();
    flip(&driver.disk, &file(2), end - 20);
    driver.disk.remove(&file(3)).unwrap();
    let options = LogOptions { recovery: RecoveryMode::Salvage, registry: None, ..driver.options.clone() };
    let (engine, _writer, report) = LogEngine::open_driven(driver.disk.fork().session(), options).unwrap();
    assert!(!report.losses.is_empty());
    assert_eq!(engine.scrub(1 << 20), ScrubReport { done: true, ..ScrubReport::default() });
}

/// During a round files are added, removed and reused, and disk calls fail. The round ends, and reports only the failed
/// calls.
#[test]
fn a_round_ends_while_the_log_changes_and_calls_fail() {
    let mut driver = log_with(LogOptions { spare_files: 2, ..options() });
    let mut next = 31;
    let (mut rounds, mut failures) = (0, 0);
    let mut damage = Vec::new();
    for step in 0..400 {
        if step % 10 == 0 {
            driver.disk.fail_nth(Operation::Read, 3, ErrorKind::Other);
            failures += 1;
        }
        let report = driver.engine.scrub(4000);
        rounds += u32::from(report.done);
        damage.extend(report.damage);
        append(&mut driver, 1 + next % 3, next / 3 + 20, 1000);
        if step % 20 == 0 {
            driver.submit(vec![Change::Compact { group: 1 + step / 20 % 3, first_kept: next / 3 }], Durability::Synced);
        }
        // The failing read may be one of purge.
        damage.extend(driver.engine.purge(Budget::default()).unwrap().damage);
        driver.turn();
        next += 3;
    }
    assert!(rounds > 3, "{rounds}");
    assert!(damage.len() <= failures, "{damage:?}");
    let unplanned: Vec<_> = damage.iter().filter(|found| !found.what.contains("planned failure")).collect();
    assert!(unplanned.is_empty(), "{unplanned:?}");
    assert!(driver.disk.list().unwrap().iter().any(|name| name.ends_with(".spare")));
    assert_eq!(round(&driver, 5000).1.damage, []);
}

/// A commit group in flight: a restart need not read it yet.
#[test]
fn groups_in_flight_are_left_for_the_next_round() {
    let mut driver = Driver::new(options());
    append(&mut driver, 1, 1, 3000);
    let (_, before) = round(&driver, 5000);
    let mut batch = engine::log::LogBatch::new();
    batch.append(GroupId(1), 2, vec![Bytes::from(vec![7; 3000])]);
    let ticket = driver.engine.submit(batch, Durability::Synced).unwrap();
    driver.writer.begin(1);
    assert_eq!(round(&driver, 5000).1, before);
    driver.writer.turn();
    ticket.wait().unwrap();
    assert!(round(&driver, 5000).1.bytes > before.bytes + 3000);
}

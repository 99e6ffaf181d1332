//! The tools on a damaged log: they change nothing, show only data that was written, and agree with opening.

use std::sync::Arc;

use engine::disk::SimDisk;
use engine::log::tools::{CheckReport, DumpOptions, Record, RepairOptions, RepairReport, check, dump, repair, stats};
use engine::log::{LogError, LogOptions, RecoveryMode, Result};

use crate::bases::{Base, Files, disk_with, files, is_damage_error, was_written};
use crate::log_model::open;

/// The number of bytes of each entry to dump.
const PREFIX: usize = 8;

/// Detectable damage: a log that `check` calls sound opens as reported, and a dump shows only data that was written.
pub fn inspect(base: &Base, files: &Files) {
    let disk = disk_with(files);
    match checked(&disk) {
        Ok(report) if report.is_sound() => {
            let tail = report.torn_tail.as_ref().map(|tail| (tail.file.clone(), tail.offset));
            let opened = open(&disk_with(files), &base.options).map(|(.., report)| report);
            let opened = opened.map(|report| (report.truncated_at.clone(), report.groups, report.entries));
            let opened = opened.unwrap_or_else(|error| panic!("sound, but not opened: {error}"));
            assert_eq!(opened, (tail, report.groups, report.entries), "sound, but opened differently");
        }
        Ok(_) => {}
        Err(error) => assert!(is_refusal(&error), "{error}"),
    }
    let shown = dumped(&disk, &mut |record| assert!(shows_written(base, record), "never written: {record}"));
    shown.unwrap_or_else(|error| assert!(is_refusal(&error), "{error}"));
    counted(&disk).unwrap_or_else(|error| assert!(is_refusal(&error), "{error}"));
    assert_eq!((self::files(&disk), disk.changes()), (files.clone(), 0), "inspected, but changed");
}

/// Detectable damage: a repaired log is sound and holds only data that was written.
pub fn repair_damaged(base: &Base, files: &Files) {
    let disk = disk_with(files);
    for keep_doubtful in [false, true] {
        match repaired(&disk, &base.options, keep_doubtful) {
            Ok((fixed, report)) => {
                let options = LogOptions { recovery: RecoveryMode::Strict, ..base.options.clone() };
                let (engine, ..) = open(&fixed, &options).unwrap_or_else(|error| panic!("repaired: {error}"));
                assert!(was_written(base, &engine), "{report:?}");
                let again = checked(&fixed).unwrap_or_else(|error| panic!("repaired: {error}"));
                assert!(again.is_sound() && again.entries <= report.entries, "{again:?}\n{report:?}");
            }
            Err(error) => assert!(is_refusal(&error), "{error}"),
        }
    }
    assert_eq!((self::files(&disk), disk.changes()), (files.clone(), 0), "repaired, but changed");
}

/// Arbitrary files: the tools may refuse them, and nothing panics.
pub fn inspect_arbitrary(files: &Files) {
    let disk = disk_with(files);
    for outcome in [checked(&disk).map(drop), dumped(&disk, &mut |_| ()), counted(&disk)] {
        outcome.unwrap_or_else(|error| assert!(is_refusal(&error), "{error}"));
    }
    assert_eq!((self::files(&disk), disk.changes()), (files.clone(), 0), "inspected, but changed");
}

/// Arbitrary files: a repair may refuse them, also because they hold more than a log accepts. Nothing panics.
pub fn repair_arbitrary(files: &Files, options: &LogOptions) {
    let disk = disk_with(files);
    [false, true].into_iter().for_each(|keep_doubtful| drop(repaired(&disk, options, keep_doubtful)));
    assert_eq!((self::files(&disk), disk.changes()), (files.clone(), 0), "repaired, but changed");
}

/// Whether a tool refused because of the files.
fn is_refusal(error: &LogError) -> bool {
    is_damage_error(error) || matches!(error, LogError::NoLog)
}

fn checked(disk: &SimDisk) -> Result<CheckReport> {
    let mut done = 0;
    let report = check(disk, &mut |progress| {
        assert!(progress.done >= done && progress.done <= progress.total, "{progress:?} after {done}");
        done = progress.done;
    })?;
    assert_eq!(done, report.bytes);
    Ok(report)
}

fn dumped(disk: &SimDisk, look: &mut dyn FnMut(&Record)) -> Result<()> {
    let mut show = |record: &Record| {
        look(record);
        assert!(!record.to_string().is_empty());
        Ok(())
    };
    dump(disk, &DumpOptions { group: None, entries: Some(PREFIX) }, &mut show, &mut |_| ()).map(drop)
}

fn counted(disk: &SimDisk) -> Result<()> {
    stats(disk, &mut |_| ()).map(drop)
}

fn repaired(disk: &SimDisk, log: &LogOptions, keep_doubtful: bool) -> Result<(Arc<SimDisk>, RepairReport)> {
    let fixed = SimDisk::new();
    let options = RepairOptions { keep_doubtful, log: log.clone() };
    let report = repair(disk, || Ok(fixed.session()), &options, &mut |_| ())?;
    Ok((fixed, report))
}

/// Whether a record shows only data that was written.
fn shows_written(base: &Base, record: &Record) -> bool {
    use engine::log::tools::Change::Put;
    match record {
        Record::Entry(entry) => {
            let written = |len: u64| base.history.was_appended(entry.group.0, entry.index, len as usize, &entry.prefix);
            entry.bytes.is_none_or(written)
        }
        Record::Change(Put { group, key, value }) => base.history.was_set(group.0, key, value),
        _ => true,
    }
}

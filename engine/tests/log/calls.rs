//! Each disk call of the log fails once, in every way that it can: with ENOSPC or EIO, with nothing, half or all of it
//! applied. Then the log continues, the process ends, the page cache drops the pages of a failed sync, or the power
//! fails. All invariants of `model::check` are checked.

use std::fmt;
use std::io::ErrorKind;

use engine::disk::{Applied, Operation};
use engine::log::{Durability, GroupId, LogError, PurgeOutcome};

use crate::model::cases::{Case, append, case, cases, put, write};
use crate::model::check::recovered;
use crate::model::{After, Driver, Violation, each_crash, open};

const OPERATIONS: [Operation; 11] = [
    Operation::Open,
    Operation::List,
    Operation::Len,
    Operation::Links,
    Operation::Read,
    Operation::Write,
    Operation::Sync,
    Operation::Create,
    Operation::Rename,
    Operation::Remove,
    Operation::SyncDir,
];

/// A failing call: which one, the error, and how much of it is applied.
#[derive(Clone, Copy)]
struct Failure {
    operation: Operation,
    nth: u64,
    kind: ErrorKind,
    applied: Applied,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {} failed with {:?}, applying {:?}", self.operation, self.nth, self.kind, self.applied)
    }
}

/// The ways in which a call can fail. A call that only reads applies nothing and needs no space.
fn failure_kinds(operation: Operation) -> Vec<(ErrorKind, Applied)> {
    use Operation::{Len, Links, List, Open, Read};
    if matches!(operation, Open | List | Len | Links | Read) {
        return vec![(ErrorKind::Other, Applied::Nothing)];
    }
    let kinds = [ErrorKind::Other, ErrorKind::StorageFull];
    let each = |kind| [Applied::Nothing, Applied::Half, Applied::All].map(|applied| (kind, applied));
    kinds.into_iter().flat_map(each).collect()
}

/// Calls `check` with the log after each failure of each call in the steps of a case. Returns the number of failures.
fn each_failure(case: &Case, mut check: impl FnMut(Failure, Driver)) -> usize {
    let prepared = case.prepared();
    let mut failures = 0;
    for operation in OPERATIONS {
        for (kind, applied) in failure_kinds(operation) {
            for nth in 1.. {
                let mut driver = prepared.fork();
                driver.disk.fail_nth_applying(operation, nth, kind, applied);
                case.run(&mut driver);
                if driver.disk.failures_left() > 0 {
                    break;
                }
                failures += 1;
                check(Failure { operation, nth, kind, applied }, driver);
            }
        }
    }
    failures
}

fn write_more(driver: &mut Driver) {
    write(driver, vec![append(7, 1, &[100]), put(7, "k", "v")], Durability::Synced);
}

/// Only acknowledged batches are visible. A failed sync poisons the log: it syncs nothing again, neither a file nor the
/// directory. After any other failure the log continues: it writes the next batches, and purge finishes.
#[test]
fn the_log_continues_or_is_poisoned() {
    for case in cases() {
        let mut poisoned = 0;
        let failures = each_failure(&case, |failure, mut driver| {
            let context = format!("{}, {failure}", case.name);
            driver.live().unwrap_or_else(|what| panic!("{context}: {what}"));
            let is_poisoned = driver.engine.poisoned().is_some();
            poisoned += usize::from(is_poisoned);
            let sync = driver.disk.failed_syncs() > 0;
            assert!(
                sync || !matches!(failure.operation, Operation::Sync | Operation::SyncDir),
                "{context}: not counted"
            );
            assert!(is_poisoned || !sync, "invariant 10: {context}: not poisoned");
            assert!(sync || !is_poisoned, "invariant 11: {context}: {:?}", driver.engine.poisoned());
            let syncs = |driver: &Driver| [Operation::Sync, Operation::SyncDir].map(|of| driver.disk.calls(of));
            let (before, synced) = (driver.history.current, syncs(&driver));
            write_more(&mut driver);
            assert_eq!(driver.history.current > before, !is_poisoned, "{context}: the next batch");
            let purged = purge_until_done(&mut driver);
            assert!(is_poisoned || purged.is_ok(), "{context}: {purged:?}");
            driver.stop();
            assert!(!is_poisoned || syncs(&driver) == synced, "{context}: synced again");
            driver.live().unwrap_or_else(|what| panic!("{context}, continued: {what}"));
        });
        assert!(poisoned > 0 && failures > poisoned, "{}: {poisoned} of {failures} failures poisoned", case.name);
    }
}

fn purge_until_done(driver: &mut Driver) -> Result<(), LogError> {
    for _ in 0..60 {
        let report = driver.purge()?;
        if report.outcome == PurgeOutcome::Idle && report.freed == 0 {
            return Ok(());
        }
    }
    panic!("purge does not finish");
}

/// The process ends after the failure. All acknowledged batches are there, and those that the next process acknowledges
/// survive.
#[test]
fn a_failure_then_the_process_ends() {
    for case in cases() {
        each_failure(&case, |failure, mut driver| {
            let context = |what| panic!("{}, {failure}, reopened: {what}", case.name);
            driver.reopen().map(drop).unwrap_or_else(context);
            write_more(&mut driver);
            each_crash(&driver.disk, 4, |disk| {
                recovered(disk, &driver.options, &driver.history, After::Crash).map(drop).unwrap_or_else(context);
            });
        });
    }
}

#[test]
fn a_failure_then_a_crash() {
    for case in cases() {
        each_failure(&case, |failure, driver| {
            each_crash(&driver.disk, 12, |disk| {
                recovered(disk, &driver.options, &driver.history, After::Crash)
                    .map(drop)
                    .unwrap_or_else(|what| panic!("{}, {failure}: {what}", case.name));
            });
        });
    }
}

/// The page cache drops its clean pages after the failure: readers see the old content of data that a failed sync did
/// not write. No read returns wrong data, data acknowledged as synced is unaffected, and a log that is opened on this
/// disk makes durable the entries that it returns.
#[test]
fn a_failure_then_clean_pages_are_dropped() {
    for case in cases() {
        each_failure(&case, |failure, mut driver| {
            let context = |what| panic!("{}, {failure}, pages dropped: {what}", case.name);
            driver.disk.drop_clean_pages();
            check_reads(&driver).unwrap_or_else(context);
            driver.disk.kill();
            driver.recover(After::Crash).map(drop).unwrap_or_else(context);
            write_more(&mut driver);
            each_crash(&driver.disk, 4, |disk| {
                recovered(disk, &driver.options, &driver.history, After::Crash).map(drop).unwrap_or_else(context);
            });
        });
    }
}

/// Each visible entry reads as written or fails; each synced entry reads as written.
fn check_reads(driver: &Driver) -> Result<(), Violation> {
    let (current, synced) = (&driver.history[driver.history.current], &driver.history[driver.history.synced]);
    for (id, group) in &current.0 {
        for (index, entry) in &group.entries {
            let safe = synced.0.get(id).and_then(|group| group.entries.get(index)) == Some(entry);
            match driver.engine.entry(GroupId(*id), *index) {
                Ok(read) if read == *entry => {}
                Err(LogError::Corrupt { .. }) if !safe => {}
                other => {
                    let what = format!("entry {index} of group {id}, synced: {safe}: {other:?}");
                    return Err(Violation::new(14, what));
                }
            }
        }
    }
    Ok(())
}

/// A call that fails during recovery makes the open fail with a typed error. The next open gives the same result.
#[test]
fn each_call_of_recovery_fails() {
    for name in ["append into new space", "rotate", "recycle", "purge, keeping spares"] {
        let case = case(name);
        let prepared = case.prepared();
        for stop in 0..=case.changes(&prepared) {
            let mut driver = prepared.fork();
            driver.disk.halt_after(stop);
            case.run(&mut driver);
            driver.disk.crash(stop);
            for operation in OPERATIONS {
                for (kind, applied) in failure_kinds(operation) {
                    for nth in 1.. {
                        let disk = driver.disk.fork();
                        disk.fail_nth_applying(operation, nth, kind, applied);
                        let outcome = open(&disk, &driver.options);
                        if disk.failures_left() > 0 {
                            break;
                        }
                        let failure = Failure { operation, nth, kind, applied };
                        let context = format!("{name}, power off after {stop}, {failure}");
                        let is_typed = match outcome.err() {
                            Some(LogError::NoSpace(_)) => kind == ErrorKind::StorageFull,
                            Some(LogError::Io(_)) => kind != ErrorKind::StorageFull,
                            _ => false,
                        };
                        assert!(is_typed, "{context}");
                        disk.kill();
                        recovered(&disk, &driver.options, &driver.history, After::Crash)
                            .map(drop)
                            .unwrap_or_else(|what| panic!("{context}: {what}"));
                        disk.crash(nth);
                        recovered(&disk, &driver.options, &driver.history, After::Crash)
                            .map(drop)
                            .unwrap_or_else(|what| panic!("{context}, and a crash: {what}"));
                    }
                }
            }
        }
    }
}

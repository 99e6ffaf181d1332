//! Each call that the log makes to the disk fails once, in each way in which it can: for lack of space or otherwise, with nothing, half
//! or all of it done all the same. Then the log goes on, or the process ends, or pages that a failed sync did not write
//! are dropped, or the power goes; whatever it is, all that must hold is checked (`log_model::check` has the list).

#[path = "log_model/mod.rs"]
mod log_model;

use std::fmt;
use std::io::ErrorKind;

use engine::disk::{Left, Operation};
use engine::log::{Durability, GroupId, LogError, PurgeOutcome};
use log_model::cases::{Case, append, case, cases, does, put};
use log_model::check::recovered;
use log_model::{After, Driver, Violation, each_crash, open};

const OPERATIONS: [Operation; 12] = [
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
    Operation::Link,
    Operation::SyncDir,
];

/// A failing call: which one, why it fails, and what of it is done all the same.
#[derive(Clone, Copy)]
struct Failure {
    operation: Operation,
    nth: u64,
    kind: ErrorKind,
    left: Left,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {} failed with {:?}, leaving {:?}", self.operation, self.nth, self.kind, self.left)
    }
}

/// The ways in which a call can fail. What only looks leaves nothing and takes no space.
fn ways(operation: Operation) -> Vec<(ErrorKind, Left)> {
    use Operation::{Len, Links, List, Open, Read};
    if matches!(operation, Open | List | Len | Links | Read) {
        return vec![(ErrorKind::Other, Left::Nothing)];
    }
    let kinds = [ErrorKind::Other, ErrorKind::StorageFull];
    let each = |kind| [Left::Nothing, Left::Half, Left::All].map(|left| (kind, left));
    kinds.into_iter().flat_map(each).collect()
}

/// Calls `check` with the log after each failure of each call in the steps of a case; returns how many there were.
fn each_failure(case: &Case, mut check: impl FnMut(Failure, Driver)) -> usize {
    let prepared = case.prepared();
    let mut failures = 0;
    for operation in OPERATIONS {
        for (kind, left) in ways(operation) {
            for nth in 1.. {
                let mut driver = prepared.fork();
                driver.disk.fail_nth_leaving(operation, nth, kind, left);
                case.run(&mut driver);
                if driver.disk.failures_left() > 0 {
                    break;
                }
                failures += 1;
                check(Failure { operation, nth, kind, left }, driver);
            }
        }
    }
    failures
}

fn more(driver: &mut Driver) {
    does(driver, vec![append(7, 1, &[100]), put(7, "k", "v")], Durability::Synced);
}

/// What is shown afterwards is what was acknowledged. A failed sync poisons, and then nothing is synced again, neither a file nor the
/// directory. Whatever else fails, the log goes on: the next batches are written, and purge comes to its end.
#[test]
fn the_log_goes_on_or_is_poisoned() {
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
            more(&mut driver);
            assert_eq!(driver.history.current > before, !is_poisoned, "{context}: the next batch");
            let purged = purge_to_its_end(&mut driver);
            assert!(is_poisoned || purged.is_ok(), "{context}: {purged:?}");
            driver.stop();
            assert!(!is_poisoned || syncs(&driver) == synced, "{context}: synced again");
            driver.live().unwrap_or_else(|what| panic!("{context}, gone on: {what}"));
        });
        assert!(poisoned > 0 && failures > poisoned, "{}: {poisoned} of {failures} failures poisoned", case.name);
    }
}

fn purge_to_its_end(driver: &mut Driver) -> Result<(), LogError> {
    for _ in 0..60 {
        let report = driver.purge()?;
        if report.outcome == PurgeOutcome::Idle && report.freed == 0 {
            return Ok(());
        }
    }
    panic!("purge does not come to an end");
}

/// The process ends after the failure: all that was acknowledged is there, and what the next process acknowledges survives.
#[test]
fn a_failure_and_the_end_of_the_process() {
    for case in cases() {
        each_failure(&case, |failure, mut driver| {
            let context = |what| panic!("{}, {failure}, reopened: {what}", case.name);
            driver.reopen().map(drop).unwrap_or_else(context);
            more(&mut driver);
            each_crash(&driver.disk, 4, |disk| {
                recovered(disk, &driver.options, &driver.history, After::Crash).map(drop).unwrap_or_else(context);
            });
        });
    }
}

#[test]
fn a_failure_and_a_crash() {
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

/// Memory is short after the failure: what a failed sync did not write is read from the disk as it was before. Nothing wrong is
/// returned for it, nothing that was acknowledged as synced is concerned, and a log that is opened on it makes durable what
/// it shows.
#[test]
fn a_failure_and_dropped_pages() {
    for case in cases() {
        each_failure(&case, |failure, mut driver| {
            let context = |what| panic!("{}, {failure}, pages dropped: {what}", case.name);
            driver.disk.drop_clean_pages();
            reads_right(&driver).unwrap_or_else(context);
            driver.disk.kill();
            driver.recover(After::Crash).map(drop).unwrap_or_else(context);
            more(&mut driver);
            each_crash(&driver.disk, 4, |disk| {
                recovered(disk, &driver.options, &driver.history, After::Crash).map(drop).unwrap_or_else(context);
            });
        });
    }
}

/// Each entry that is shown is read as it was written, or not at all; those that are synced are read.
fn reads_right(driver: &Driver) -> Result<(), Violation> {
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

/// A call that fails while the log is opened fails the opening with a typed error, and the next one comes to the same end.
#[test]
fn each_call_of_the_recovery_fails() {
    for name in ["append into new space", "rotate", "recycle", "purge, keeping spares"] {
        let case = case(name);
        let prepared = case.prepared();
        for stop in 0..=case.changes(&prepared) {
            let mut driver = prepared.fork();
            driver.disk.halt_after(stop);
            case.run(&mut driver);
            driver.disk.crash(stop);
            for operation in OPERATIONS {
                for (kind, left) in ways(operation) {
                    for nth in 1.. {
                        let disk = driver.disk.fork();
                        disk.fail_nth_leaving(operation, nth, kind, left);
                        let outcome = open(&disk, &driver.options);
                        if disk.failures_left() > 0 {
                            break;
                        }
                        let failure = Failure { operation, nth, kind, left };
                        let context = format!("{name}, power gone after {stop}, {failure}");
                        let is_told = match outcome.err() {
                            Some(LogError::NoSpace(_)) => kind == ErrorKind::StorageFull,
                            Some(LogError::Io(_)) => kind != ErrorKind::StorageFull,
                            _ => false,
                        };
                        assert!(is_told, "{context}");
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

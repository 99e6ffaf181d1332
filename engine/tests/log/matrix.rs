//! Small histories, exhaustively: the power fails at each change that the log makes to the disk, every possible crash
//! is tried, and all invariants of `model::check` are checked after each.

use std::collections::HashSet;
use std::sync::Arc;

use engine::disk::SimDisk;
use engine::log::Durability;

use crate::model::cases::{Case, append, case, cases, put, write};
use crate::model::check::recovered;
use crate::model::{After, Driver, History, each_crash, fingerprint, observe, open};

/// The number of different crashes to try at each power failure. `CORTADO_LOG_CRASHES` overrides it.
fn crashes(default: usize) -> usize {
    std::env::var("CORTADO_LOG_CRASHES").ok().and_then(|crashes| crashes.parse().ok()).unwrap_or(default)
}

/// Calls `check` with a driver for each change of the case at which the power fails.
fn each_stop(case: &Case, mut check: impl FnMut(u64, &mut Driver)) {
    let prepared = case.prepared();
    for stop in 0..=case.changes(&prepared) {
        let mut driver = prepared.fork();
        driver.disk.halt_after(stop);
        case.run(&mut driver);
        check(stop, &mut driver);
    }
}

/// Crashes already tried, each with the length and the synced position of the history.
#[derive(Default)]
struct Tried(HashSet<(u64, usize, usize)>);

impl Tried {
    fn is_new(&mut self, disk: &SimDisk, history: &History) -> bool {
        self.0.insert((fingerprint(disk), history.synced, history.len()))
    }
}

/// Tries the crashes at each power failure. Returns how many were tried, and at how many failures not all of them were.
fn crash_everywhere(case: &Case, limit: usize) -> (usize, usize) {
    let (mut tried, mut partial) = (Tried::default(), 0);
    each_stop(case, |stop, driver| {
        let all = each_crash(&driver.disk, limit, |disk| {
            if tried.is_new(disk, &driver.history) {
                recovered(disk, &driver.options, &driver.history, After::Crash)
                    .map(drop)
                    .unwrap_or_else(|what| panic!("{}, power off after {stop}: {what}", case.name));
            }
        });
        partial += usize::from(!all);
    });
    (tried.0.len(), partial)
}

#[test]
fn appends_survive_every_crash() {
    for name in
        ["append, packed", "append into new space", "append into zeros", "append, by pages", "append, overlapping"]
    {
        let (tried, partial) = crash_everywhere(&case(name), usize::MAX);
        assert!(partial == 0 && tried > 1000, "{name}: {tried} crashes, not all of them at {partial} stops");
    }
}

#[test]
fn rotations_survive_crashes_at_each_change() {
    for name in ["rotate", "rotate with zeros", "rotate, overlapping", "stop"] {
        crash_everywhere(&case(name), crashes(300));
    }
}

#[test]
fn recycled_files_survive_crashes_at_each_change() {
    for name in ["recycle, packed", "recycle", "recycle, by pages"] {
        crash_everywhere(&case(name), crashes(300));
    }
}

#[test]
fn purges_survive_crashes_at_each_change() {
    for name in [
        "purge",
        "purge, keeping spares",
        "purge a file with a gap after it",
        "purge behind batches",
        "purge, overlapping",
    ] {
        crash_everywhere(&case(name), crashes(300));
    }
}

#[test]
fn work_on_a_full_disk_survives_crashes_at_each_change() {
    for name in ["purge on a full disk", "refit on a full disk", "make a reserve"] {
        crash_everywhere(&case(name), crashes(300));
    }
}

/// The process ends at each change, and the machine keeps running: no acknowledged batch is lost. Batches that the next
/// process acknowledges survive a crash, at whatever change the first process ended.
#[test]
fn the_process_ends_at_each_change() {
    for case in cases() {
        each_stop(&case, |stop, driver| {
            let context = |what| panic!("{}, process ended after {stop}: {what}", case.name);
            driver.reopen().map(drop).unwrap_or_else(context);
            write(driver, vec![append(7, 1, &[100]), put(7, "k", "v")], Durability::Synced);
            each_crash(&driver.disk, crashes(20), |disk| {
                recovered(disk, &driver.options, &driver.history, After::Crash).map(drop).unwrap_or_else(context);
            });
        });
    }
}

/// The power fails, or the process ends, at each change while the log is created.
#[test]
fn a_log_is_created_whole_or_not_at_all() {
    let options = case("rotate").options;
    for stop in 0..=5 {
        let disk = SimDisk::new();
        disk.halt_after(stop);
        assert_eq!(open(&disk, &options).is_ok(), stop == 5, "create, write, sync, rename, sync the directory");
        let used = |disk: &Arc<SimDisk>| {
            let mut driver = Driver::on(disk.clone(), options.clone());
            write(&mut driver, vec![append(1, 1, &[100]), put(1, "k", "v")], Durability::Synced);
            each_crash(disk, usize::MAX, |disk| {
                recovered(disk, &options, &driver.history, After::Crash)
                    .map(drop)
                    .unwrap_or_else(|what| panic!("used after {stop}: {what}"));
            });
        };
        each_crash(&disk, usize::MAX, used);
        disk.kill();
        used(&disk);
    }
}

/// Recovery is interrupted at each of its changes by any crash. Repeated once, and after many interruptions, it gives
/// the same result.
#[test]
fn recovery_is_interrupted_repeatedly() {
    for case in cases() {
        let mut tried = Tried::default();
        each_stop(&case, |stop, driver| {
            each_crash(&driver.disk, crashes(10), |disk| {
                if tried.is_new(disk, &driver.history) {
                    interrupt_recovery(disk, driver, &format!("{}, power off after {stop}", case.name));
                }
            });
        });
    }
}

fn interrupt_recovery(disk: &Arc<SimDisk>, driver: &Driver, context: &str) {
    let uninterrupted = disk.fork();
    let before = uninterrupted.changes();
    let (engine, ..) = open(&uninterrupted, &driver.options).unwrap_or_else(|error| panic!("{context}: {error}"));
    let expected = observe(&engine).unwrap();
    let changes = uninterrupted.changes() - before;
    let often = disk.fork();
    for cut in 0..changes {
        let once = disk.fork();
        once.halt_after(cut);
        assert!(open(&once, &driver.options).is_err(), "{context}: recovery succeeded without power");
        each_crash(&once, crashes(6), |disk| {
            let (engine, ..) = open(disk, &driver.options).unwrap_or_else(|error| panic!("{context}, {cut}: {error}"));
            assert_eq!(
                observe(&engine).unwrap(),
                expected,
                "invariant 13: {context}, recovery interrupted after {cut}"
            );
        });
        often.halt_after(cut);
        // The open may succeed: recovery may have less to do this time.
        drop(open(&often, &driver.options));
        often.crash(cut);
    }
    let (engine, ..) = open(&often, &driver.options).unwrap_or_else(|error| panic!("{context}, often: {error}"));
    assert_eq!(observe(&engine).unwrap(), expected, "invariant 13: {context}, recovery interrupted {changes} times");
}

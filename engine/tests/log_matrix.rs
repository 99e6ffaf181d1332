//! Small histories, exhaustively: the power goes at each change that the log makes to the disk, every crash that is then
//! possible is tried, and after each all that must hold is checked (`log_model::check` has the list).

#![expect(clippy::unwrap_used, reason = "a test says what must hold")]

#[path = "log_model/mod.rs"]
mod log_model;

use std::collections::HashSet;
use std::sync::Arc;

use engine::disk::SimDisk;
use engine::log::Durability;
use log_model::cases::{Case, append, case, cases, does, put};
use log_model::check::recovered;
use log_model::{After, Driver, History, each_crash, fingerprint, observe, open};

/// How many different crashes are looked at for each place where the power goes; `CORTADO_LOG_CRASHES` looks at more.
fn crashes(default: usize) -> usize {
    std::env::var("CORTADO_LOG_CRASHES").ok().and_then(|crashes| crashes.parse().ok()).unwrap_or(default)
}

/// Calls `check` with a driver for each change of the case at which the power goes.
fn each_stop(case: &Case, mut check: impl FnMut(u64, &mut Driver)) {
    let prepared = case.prepared();
    for stop in 0..=case.changes(&prepared) {
        let mut driver = prepared.fork();
        driver.disk.halt_after(stop);
        case.run(&mut driver);
        check(stop, &mut driver);
    }
}

/// Crashes that were looked at already, with what was known of the log then.
#[derive(Default)]
struct Met(HashSet<(u64, usize, usize)>);

impl Met {
    fn is_new(&mut self, disk: &SimDisk, history: &History) -> bool {
        self.0.insert((fingerprint(disk), history.synced, history.len()))
    }
}

/// Tries the crashes of each stop; returns how many were looked at, and at how many stops there were more than that.
fn crash_everywhere(case: &Case, limit: usize) -> (usize, usize) {
    let (mut met, mut partial) = (Met::default(), 0);
    each_stop(case, |stop, driver| {
        let all = each_crash(&driver.disk, limit, |disk| {
            if met.is_new(disk, &driver.history) {
                recovered(disk, &driver.options, &driver.history, After::Crash)
                    .map(drop)
                    .unwrap_or_else(|what| panic!("{}, power gone after {stop}: {what}", case.name));
            }
        });
        partial += usize::from(!all);
    });
    (met.0.len(), partial)
}

#[test]
fn appends_survive_every_crash() {
    for name in
        ["append, packed", "append into new space", "append into zeros", "append, by pages", "append, overlapping"]
    {
        let (looked, partial) = crash_everywhere(&case(name), usize::MAX);
        assert!(partial == 0 && looked > 1000, "{name}: {looked} crashes, {partial} stops not gone through");
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
    for name in
        ["purge", "purge, keeping spares", "purge from the middle", "purge behind batches", "purge, overlapping"]
    {
        crash_everywhere(&case(name), crashes(300));
    }
}

#[test]
fn what_is_done_on_a_full_disk_survives_crashes_at_each_change() {
    for name in ["purge on a full disk", "refit on a full disk", "make a reserve"] {
        crash_everywhere(&case(name), crashes(300));
    }
}

/// The process ends where the power went before, and the machine goes on: nothing acknowledged is lost. What the next process then
/// acknowledges survives a crash, whatever the first one left half done.
#[test]
fn the_process_ends_at_each_change() {
    for case in cases() {
        each_stop(&case, |stop, driver| {
            let context = |what| panic!("{}, process gone after {stop}: {what}", case.name);
            driver.reopen().map(drop).unwrap_or_else(context);
            does(driver, vec![append(7, 1, &[100]), put(7, "k", "v")], Durability::Synced);
            each_crash(&driver.disk, crashes(20), |disk| {
                recovered(disk, &driver.options, &driver.history, After::Crash).map(drop).unwrap_or_else(context);
            });
        });
    }
}

/// The log is created, and the power or the process goes at each change of that.
#[test]
fn a_log_is_created_whole_or_not_at_all() {
    let options = case("rotate").options;
    for stop in 0..=5 {
        let disk = SimDisk::new();
        disk.halt_after(stop);
        assert_eq!(open(&disk, &options).is_ok(), stop == 5, "create, write, sync, rename, sync the directory");
        let used = |disk: &Arc<SimDisk>| {
            let mut driver = Driver::on(disk.clone(), options.clone());
            does(&mut driver, vec![append(1, 1, &[100]), put(1, "k", "v")], Durability::Synced);
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

/// Recovery that is cut off at each of its changes, by a crash that leaves whatever it may, comes to the same end when it is done
/// again: once, and after being cut off again and again.
#[test]
fn recovery_is_cut_off_again_and_again() {
    for case in cases() {
        let mut met = Met::default();
        each_stop(&case, |stop, driver| {
            each_crash(&driver.disk, crashes(10), |disk| {
                if met.is_new(disk, &driver.history) {
                    cut_off(disk, driver, &format!("{}, power gone after {stop}", case.name));
                }
            });
        });
    }
}

fn cut_off(disk: &Arc<SimDisk>, driver: &Driver, context: &str) {
    let whole = disk.fork();
    let before = whole.changes();
    let (engine, ..) = open(&whole, &driver.options).unwrap_or_else(|error| panic!("{context}: {error}"));
    let expected = observe(&engine).unwrap();
    let changes = whole.changes() - before;
    let often = disk.fork();
    for cut in 0..changes {
        let once = disk.fork();
        once.halt_after(cut);
        assert!(open(&once, &driver.options).is_err(), "{context}: recovery went on without power");
        each_crash(&once, crashes(6), |disk| {
            let (engine, ..) = open(disk, &driver.options).unwrap_or_else(|error| panic!("{context}, {cut}: {error}"));
            assert_eq!(observe(&engine).unwrap(), expected, "invariant 13: {context}, recovery cut off after {cut}");
        });
        often.halt_after(cut);
        // It may have had less to do this time.
        drop(open(&often, &driver.options));
        often.crash(cut);
    }
    let (engine, ..) = open(&often, &driver.options).unwrap_or_else(|error| panic!("{context}, often: {error}"));
    assert_eq!(observe(&engine).unwrap(), expected, "invariant 13: {context}, recovery cut off {changes} times");
}

//! One test with a cluster at a time, each within a time limit.
//!
//! The nodes of one cluster keep a small machine busy. Two clusters at once would slow each other beyond the tests'
//! bounds. So every test that starts nodes acquires a [`ClusterLock`] first and holds it to its end; the functions that
//! start a cluster take it. The lock's watchdog ends a test that exceeds the limit.

use std::io::{self, Write};
use std::panic::Location;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::process;

/// The time limit of a test that names no other, counted from when it holds the lock.
const TEST_LIMIT: Duration = Duration::from_secs(180);

static CLUSTER: Mutex<()> = Mutex::new(());

/// The process-wide lock that a test holds while its nodes run. Dropping it stops its watchdog.
pub struct ClusterLock {
    _stop_watchdog: mpsc::SyncSender<()>,
    _guard: MutexGuard<'static, ()>,
}

impl ClusterLock {
    /// Waits for the lock, and starts the watchdog with the usual limit.
    #[track_caller]
    pub fn acquire() -> ClusterLock {
        ClusterLock::acquire_for(TEST_LIMIT)
    }

    /// As [`ClusterLock::acquire`], with a limit for a test that has to take longer.
    #[track_caller]
    pub fn acquire_for(limit: Duration) -> ClusterLock {
        let caller = Location::caller();
        // libtest names the thread after the test, unless it runs all tests on the main thread.
        let test = format!("{} ({caller})", thread::current().name().unwrap_or("a test"));
        // A failed test poisons the lock; the next test starts nodes of its own.
        let guard = CLUSTER.lock().unwrap_or_else(PoisonError::into_inner);
        let (stop_watchdog, stopped) = mpsc::sync_channel::<()>(1);
        thread::spawn(move || {
            if stopped.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                abort(&test, limit);
            }
        });
        ClusterLock { _stop_watchdog: stop_watchdog, _guard: guard }
    }
}

/// Reports the test and the logs of its processes, kills them, and ends this process: a test that hangs cannot be
/// unwound. Writes to stderr itself, because libtest would capture `eprintln!`.
fn abort(test: &str, limit: Duration) -> ! {
    let mut out = io::stderr().lock();
    let _ = writeln!(out, "\n{test} did not end within {limit:?}");
    for (id, log) in process::running() {
        let _ = writeln!(out, "---- {}\n{}", log.display(), process::tail(&log));
        process::kill_group(id);
    }
    std::process::exit(101)
}

//! sysbench 1.0 as the load program, with its default settings, on the table of [`crate::load`] or on its own one.
//!
//! Its own `prepare` makes a serial id, char(n) and an index of column k, which the table of [`crate::load`] lacks: its
//! results reach back to before there were indexes. The two scripts that select by column k read that one as a whole.

use std::process::Command;
use std::time::Duration;

use hdrhistogram::Histogram;

use crate::load::{Outcome, Workload};

/// Whether sysbench is installed.
pub fn is_installed() -> bool {
    Command::new("sysbench").arg("--version").output().is_ok_and(|out| out.status.success())
}

/// A table of a server on this machine.
#[derive(Clone, Copy)]
pub struct Table {
    pub port: u16,
    pub rows: i64,
    /// Whether [`prepare`] made it.
    pub is_its_own: bool,
}

/// Makes the table anew by sysbench's own `prepare`.
pub fn prepare(table: Table) {
    let script = Workload::ReadWrite.script();
    call(Command::new("sysbench").arg(script), table, "cleanup");
    call(Command::new("sysbench").arg(script), table, "prepare");
}

/// Runs `clients` threads for `time`.
pub fn run(table: Table, workload: Workload, clients: usize, time: Duration) -> Outcome {
    let mut command = Command::new("sysbench");
    command
        .arg(workload.script())
        .args(["--histogram=on", "--rand-type=uniform"])
        .arg(format!("--threads={clients}"))
        .arg(format!("--time={}", time.as_secs()));
    parse(&call(&mut command, table, "run"))
}

/// Runs one of sysbench's commands to its end. Returns what it printed.
fn call(command: &mut Command, table: Table, what: &str) -> String {
    let out = command
        .args(["--db-driver=pgsql", "--pgsql-host=127.0.0.1", "--pgsql-user=postgres", "--pgsql-db=postgres"])
        .args(["--tables=1", if table.is_its_own { "--auto_inc=on" } else { "--auto_inc=off" }])
        .arg(format!("--pgsql-port={}", table.port))
        .arg(format!("--table-size={}", table.rows))
        .arg(what)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success(), "sysbench {what}: {text}{}", String::from_utf8_lossy(&out.stderr));
    text.into_owned()
}

/// Parses sysbench's report: the histogram (upper bounds in milliseconds and counts), the total time, and the ignored
/// errors.
fn parse(report: &str) -> Outcome {
    let mut outcome = Outcome { requests: 0, errors: 0, elapsed: Duration::ZERO, latency: Histogram::new(3).unwrap() };
    for line in report.lines() {
        if let Some((value, rest)) = line.split_once('|') {
            let millis: f64 = value.trim().parse().unwrap();
            let count: u64 = rest.split_whitespace().next_back().unwrap().parse().unwrap();
            outcome.latency.record_n((millis * 1e6) as u64, count).unwrap();
        } else if let Some(seconds) = line.trim().strip_prefix("total time:") {
            outcome.elapsed = Duration::from_secs_f64(seconds.trim().trim_end_matches('s').parse().unwrap());
        } else if let Some(errors) = line.trim().strip_prefix("ignored errors:") {
            outcome.errors = errors.split_whitespace().next().unwrap().parse().unwrap();
        }
    }
    outcome.requests = outcome.latency.len();
    assert!(outcome.requests > 0 && !outcome.elapsed.is_zero(), "not a report of sysbench 1.0:\n{report}");
    outcome
}

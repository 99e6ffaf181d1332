//! sysbench 1.0 as the load program, with its default settings, on the table of [`crate::load`].
//!
//! Its own `prepare` needs char(n) and secondary indexes. The statements of its runs need neither, but the two scripts
//! that select by column k read the whole table without its index. `bulk_insert` runs only on its own tables.

use std::process::Command;
use std::time::Duration;

use hdrhistogram::Histogram;

use crate::load::{Outcome, Workload};

/// Whether sysbench is installed.
pub fn is_installed() -> bool {
    Command::new("sysbench").arg("--version").output().is_ok_and(|out| out.status.success())
}

/// Runs `clients` threads for `time`.
pub fn run(port: u16, workload: Workload, clients: usize, rows: i64, time: Duration) -> Outcome {
    let out = Command::new("sysbench")
        .arg(workload.script())
        .args(["--db-driver=pgsql", "--pgsql-host=127.0.0.1", "--pgsql-user=postgres", "--pgsql-db=postgres"])
        .args(["--tables=1", "--auto_inc=off", "--histogram=on", "--rand-type=uniform"])
        .arg(format!("--pgsql-port={port}"))
        .arg(format!("--table-size={rows}"))
        .arg(format!("--threads={clients}"))
        .arg(format!("--time={}", time.as_secs()))
        .arg("run")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success(), "sysbench: {text}{}", String::from_utf8_lossy(&out.stderr));
    parse(&text)
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

//! pgbench as the load program: its TPC-B-like script, with a log of every transaction.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use clap::ValueEnum;
use hdrhistogram::Histogram;

/// Where Debian installs it.
const DEBIAN: &str = "/usr/lib/postgresql/15/bin/pgbench";
/// Threads of the load program.
const THREADS: usize = 2;

/// How statements are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Mode {
    Simple,
    /// Parsed anew each time
    Extended,
    Prepared,
}

impl Mode {
    pub fn name(self) -> &'static str {
        match self {
            Mode::Simple => "simple",
            Mode::Extended => "extended",
            Mode::Prepared => "prepared",
        }
    }
}

/// The measurements of one run.
pub struct Outcome {
    pub transactions: u64,
    pub per_second: f64,
    /// In microseconds.
    pub latency: Histogram<u64>,
}

fn program() -> PathBuf {
    if Path::new(DEBIAN).exists() { PathBuf::from(DEBIAN) } else { PathBuf::from("pgbench") }
}

/// Whether pgbench is installed.
pub fn is_installed() -> bool {
    Command::new(program()).arg("--version").output().is_ok_and(|out| out.status.success())
}

/// Runs `clients` clients for `time`. Panics if a client meets an error, or a transaction fails.
pub fn run(port: u16, mode: Mode, clients: usize, time: Duration) -> Outcome {
    let dir = tempfile::tempdir().unwrap();
    let out = Command::new(program())
        .current_dir(dir.path())
        .args(["-n", "-h", "127.0.0.1", "-U", "postgres", "-p", &port.to_string(), "-M", mode.name()])
        .args(["-c", &clients.to_string(), "-j", &THREADS.to_string(), "-T", &time.as_secs().to_string()])
        .args(["--failures-detailed", "--log", "postgres"])
        .output()
        .unwrap();
    let (text, errors) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success() && !errors.contains("aborted"), "pgbench at port {port}: {text}{errors}");
    let number = |label: &str| {
        let line = text.lines().find_map(|line| line.trim().strip_prefix(label));
        let line = line.unwrap_or_else(|| panic!("no {label:?} in the report of pgbench 15:\n{text}"));
        line.trim().split([' ', '/']).next().unwrap().parse::<f64>().unwrap()
    };
    assert_eq!(number("number of failed transactions:"), 0.0, "an error reached a client:\n{text}{errors}");
    let mut latency = Histogram::new(3).unwrap();
    for entry in std::fs::read_dir(dir.path()).unwrap().flatten() {
        for line in std::fs::read_to_string(entry.path()).unwrap().lines() {
            // Client, number, latency in microseconds, script, time.
            latency.record(line.split(' ').nth(2).unwrap().parse().unwrap()).unwrap();
        }
    }
    let transactions = number("number of transactions actually processed:") as u64;
    assert_eq!(latency.len(), transactions, "the log is complete");
    Outcome { transactions, per_second: number("tps ="), latency }
}

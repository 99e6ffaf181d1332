//! The log against its peers: raft-engine and RocksDB, on the same data, the same disk, in the same run.
//!
//! ```text
//! cargo bench -p peers [-- --only W2,W4 --engines ours,raft-engine --seconds 2 --rounds 5 --scale 0.1 --dir DIR
//!     --json=FILE --markdown FILE --svg FILE]
//! ```
//!
//! [`workloads`] are divided into cells. Each cell runs in rounds, the engines in turn, so that a slowdown of the
//! machine affects all of them. Every run has a process of its own ([`runs`]). The output has one line of medians per
//! figure ([`report`]): ours, the peers', the ratios, and whether the target is met. The limits of the disk
//! ([`limits`]) come first. [`engines`] says how each engine is configured, and why.
//!
//! `--scale 1` is the full size of the data (10 GB, 10 million entries). The default is a tenth and takes about half an
//! hour. `--quick` only checks that everything works.

#![allow(
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a benchmark, at the edge"
)]

mod chart;
mod engines;
mod limits;
mod measure;
mod payload;
mod report;
mod runs;
mod table;
mod workloads;

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Parser;

use crate::engines::EngineKind;
use crate::measure::{Figures, byte_source};
use crate::payload::Payloads;
use crate::report::{FourDigits, Row};
use crate::runs::Runner;
use crate::workloads::{Cell, Scale, cells};

#[derive(Parser)]
pub struct Options {
    /// Cells, or workloads with all their cells
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Engines
    #[arg(long, value_delimiter = ',', default_value = "ours,raft-engine,rocksdb")]
    engines: Vec<EngineKind>,
    /// Seconds of each run with a time limit
    #[arg(long)]
    seconds: Option<f64>,
    /// Runs of each cell; the median is reported
    #[arg(long)]
    rounds: Option<usize>,
    /// Share of the full data size
    #[arg(long)]
    scale: Option<f64>,
    /// Directory of the logs; a temporary one by default
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Leave raft-engine's prefill off, its default
    #[arg(long)]
    no_prefill: bool,
    /// Only check that it works: one round, tiny sizes
    #[arg(long)]
    quick: bool,
    /// Print JSON instead of lines, or also write it to a file
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    json: Option<PathBuf>,
    /// Write the medians as a Markdown table
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Write a chart of the ratios
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// List the cells and exit
    #[arg(long)]
    list: bool,
    /// The task of a child process
    #[arg(long, hide = true)]
    child: Option<String>,
    /// Passed by cargo
    #[arg(long, hide = true)]
    bench: bool,
}

impl Options {
    fn seconds(&self) -> f64 {
        self.seconds.unwrap_or(if self.quick { 0.3 } else { 2.0 })
    }

    fn rounds(&self) -> usize {
        self.rounds.unwrap_or(if self.quick { 1 } else { 5 })
    }

    fn scale(&self) -> Scale {
        Scale(self.scale.unwrap_or(if self.quick { 0.002 } else { 0.1 }))
    }

    /// The selected cells.
    fn cells(&self) -> Vec<Cell> {
        let wanted = |cell: &Cell| {
            let workload = cell.name.split('/').next().unwrap_or_default();
            self.only.is_empty() || self.only.iter().any(|only| *only == cell.name || only == workload)
        };
        cells(self.scale()).into_iter().filter(wanted).collect()
    }

    fn is_json_on_stdout(&self) -> bool {
        self.json.as_deref() == Some(Path::new("-"))
    }
}

fn main() {
    let options = Options::parse();
    if let Some(task) = &options.child {
        return runs::child(&options, task);
    }
    let chosen = options.cells();
    if chosen.is_empty() {
        eprintln!("peers: no such cell; --list names them");
        std::process::exit(2);
    }
    if options.list {
        chosen.iter().for_each(|cell| println!("{:<16} {}", cell.name, cell.about));
        return;
    }
    let started = Instant::now();
    let parent = options.dir.clone().unwrap_or_else(std::env::temp_dir);
    std::fs::create_dir_all(&parent).unwrap();
    let root = tempfile::Builder::new().prefix("peers-").tempdir_in(&parent).unwrap();
    let say = |line: &dyn std::fmt::Display| {
        if options.is_json_on_stdout() { eprintln!("{line}") } else { println!("{line}") }
    };
    header(&options, &parent).iter().for_each(|line| say(line));
    let mut runner = Runner::new(&options, &root.path().join("logs"));
    std::fs::create_dir_all(root.path().join("logs")).unwrap();
    let limits = runner.limits();
    for (name, value) in &limits {
        say(&format!("disk {name}={}", FourDigits(*value)));
    }
    let mut rows: Vec<Row> = Vec::new();
    for cell in &chosen {
        say(&format!("# {}: {}", cell.name, cell.about));
        let found = report::rows(cell, &runner.cell(cell), &limits);
        found.iter().for_each(|row| say(row));
        rows.extend(found);
    }
    say(&report::summary(&rows).trim_end());
    say(&format!("# took {} s", started.elapsed().as_secs()));
    write(&options, &parent, &limits, &rows);
    let failures = runner.failures;
    // Before the exit, which runs no destructors.
    drop(root);
    if failures > 0 {
        eprintln!("peers: {failures} run(s) failed");
        std::process::exit(1);
    }
}

/// What runs, and on which machine.
fn header(options: &Options, dir: &Path) -> Vec<String> {
    let space = rustix::fs::statvfs(dir).unwrap();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    vec![
        format!(
            "# {cores} core(s); logs in {}, {} GB free",
            dir.display(),
            space.f_bavail * space.f_frsize / 1_000_000_000
        ),
        format!("# device bytes from {}", byte_source(dir)),
        format!(
            "# scale {}, {} s, median of {} round(s); LZ4 leaves {:.2} of the half-compressible data",
            options.scale().0,
            options.seconds(),
            options.rounds(),
            Payloads::half_compressible().compressed_share(),
        ),
    ]
}

/// Writes the requested files.
fn write(options: &Options, dir: &Path, limits: &Figures, rows: &[Row]) {
    if let Some(file) = &options.json {
        let all = serde_json::json!({
            "run": header(options, dir),
            "limits": limits.iter().cloned().collect::<std::collections::BTreeMap<_, _>>(),
            "rows": rows,
        });
        let text = serde_json::to_string_pretty(&all).unwrap();
        match options.is_json_on_stdout() {
            true => println!("{text}"),
            false => std::fs::write(file, text + "\n").unwrap(),
        }
    }
    if let Some(file) = &options.markdown {
        std::fs::write(file, table::markdown(rows)).unwrap();
    }
    if let Some(file) = &options.svg {
        let title = "Cortado's log against its peers: how many times better (to the right) or worse";
        std::fs::write(file, chart::svg(rows, title)).unwrap();
    }
}

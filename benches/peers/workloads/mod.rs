//! The workloads W1 to W9, divided into cells. A cell is one row of measurements, the same for every engine.
//!
//! A cell is code plus targets. Every run of a cell has a process and (unless cells share prepared data) a directory of
//! its own. A child finds its cell by name in the list, which is the same in every process for the same arguments.

mod article;
mod idle;
mod index;
mod large;
mod mixed;
mod purge;
mod reads;
mod recovery;
mod steady;
mod synced;

use std::path::PathBuf;
use std::time::Duration;

use crate::engines::{self, EngineKind, RaftLog, Settings};
use crate::measure::Figures;

/// A row of measurements.
pub struct Cell {
    /// Workload and variant, as `W2/16thr`.
    pub name: String,
    /// One line about the cell, with its sizes.
    pub about: String,
    /// The figure in the chart.
    pub headline: &'static str,
    /// The targets of our figures.
    pub targets: Vec<(&'static str, Target)>,
    /// Data written once per engine, for all rounds and for other cells with the same name.
    pub prepared: Option<Prepared>,
    /// Whether the prepared files are dropped from the page cache before each run.
    pub cold: bool,
    /// One run.
    pub run: Box<dyn Fn(&Context) -> Figures>,
}

/// The initial data of runs.
pub struct Prepared {
    /// The same for cells that share it.
    pub name: String,
    /// Writes it. The process ends right after, without closing the log, as if killed.
    pub write: Box<dyn Fn(&Context)>,
}

/// The target of a figure of ours.
#[derive(Clone, Copy, Debug)]
pub enum Target {
    /// This many times better than a peer.
    Times(EngineKind, f64),
    /// At most this value.
    AtMost(f64),
    /// At least this share of a limit of the disk, by its name.
    OfLimit(&'static str, f64),
}

/// The parameters of a run.
pub struct Context {
    /// The engine.
    pub engine: EngineKind,
    /// The log's directory.
    pub dir: PathBuf,
    /// The duration of a run with a time limit.
    pub time: Duration,
    /// Whether raft-engine may prefill files.
    pub prefill: bool,
}

impl Context {
    /// Opens the engine.
    pub fn open(&self, settings: Settings) -> Box<dyn RaftLog> {
        let prefill = settings.prefill && self.prefill;
        engines::open(self.engine, &self.dir, &Settings { prefill, ..settings })
    }
}

/// The share of the full data sizes.
#[derive(Clone, Copy, Debug)]
pub struct Scale(pub f64);

impl Scale {
    /// A scaled number, at least `least`.
    pub fn of(self, full: u64, least: u64) -> u64 {
        ((full as f64 * self.0) as u64).max(least)
    }

    /// The purge threshold whose full size is 2 GB: at least 32 MiB.
    pub fn threshold(self) -> u64 {
        self.of(2 << 30, 32 << 20) & !4095
    }

    /// A purge threshold of 1 GB from a tenth of the scale on: for cells whose figures do not depend on the amount of
    /// data.
    pub fn steady_threshold(self) -> u64 {
        self.of(10 << 30, 64 << 20).min(1 << 30)
    }
}

/// Decimal megabytes, for descriptions.
pub fn megabytes(bytes: u64) -> String {
    format!("{} MB", bytes / 1_000_000)
}

/// All cells, in execution order.
pub fn cells(scale: Scale) -> Vec<Cell> {
    let all = [
        article::cells(scale),
        synced::cells(scale),
        mixed::cells(scale),
        recovery::cells(scale),
        purge::cells(scale),
        idle::cells(scale),
        index::cells(scale),
        reads::cells(scale),
        large::cells(scale),
    ];
    all.into_iter().flatten().collect()
}

//! The workloads W1 to W9, cut into cells: a cell is one row of measurements, the same for every engine.
//!
//! A cell is code plus targets. Every run of a cell has a process and (unless cells share prepared data) a directory of its own; the
//! parent finds the cell by its name in the list that the same arguments give in every process.

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
    /// What is done, in a line, with the sizes used.
    pub about: String,
    /// The figure that is shown in the chart.
    pub headline: &'static str,
    /// What is asked of our figures.
    pub targets: Vec<(&'static str, Target)>,
    /// Data that is written once per engine and used by all rounds, and by other cells that name it alike.
    pub prepared: Option<Prepared>,
    /// Whether the page cache is emptied of the prepared files before each run.
    pub cold: bool,
    /// One run.
    pub run: Box<dyn Fn(&Context) -> Figures>,
}

/// Data that runs begin with.
pub struct Prepared {
    /// The same for cells that share it.
    pub name: String,
    /// Writes it. The process ends right after, without closing the log: as killed.
    pub write: Box<dyn Fn(&Context)>,
}

/// What is asked of a figure of ours.
#[derive(Clone, Copy, Debug)]
pub enum Target {
    /// This many times better than a peer.
    Times(EngineKind, f64),
    /// This value at most.
    AtMost(f64),
    /// At least this share of one of the disk's own limits, by its name.
    OfLimit(&'static str, f64),
}

/// Where and on what a run works.
pub struct Context {
    /// The engine.
    pub engine: EngineKind,
    /// The log's directory.
    pub dir: PathBuf,
    /// How long a run that is bounded by time takes.
    pub time: Duration,
    /// Whether raft-engine may fill files ahead.
    pub prefill: bool,
}

impl Context {
    /// Opens the engine.
    pub fn open(&self, settings: Settings) -> Box<dyn RaftLog> {
        let prefill = settings.prefill && self.prefill;
        engines::open(self.engine, &self.dir, &Settings { prefill, ..settings })
    }
}

/// The share of the full data sizes that is used.
#[derive(Clone, Copy, Debug)]
pub struct Scale(pub f64);

impl Scale {
    /// A number of things, at least `least`.
    pub fn of(self, full: u64, least: u64) -> u64 {
        ((full as f64 * self.0) as u64).max(least)
    }

    /// The purge threshold whose full size is 2 GB: at least 32 MiB.
    pub fn threshold(self) -> u64 {
        self.of(2 << 30, 32 << 20) & !4095
    }

    /// A purge threshold that is 1 GB from a tenth of the scale on: for cells whose figures do not depend on how much there is.
    pub fn steady_threshold(self) -> u64 {
        self.of(10 << 30, 64 << 20).min(1 << 30)
    }
}

/// Decimal megabytes, for descriptions.
pub fn megabytes(bytes: u64) -> String {
    format!("{} MB", bytes / 1_000_000)
}

/// All cells, in the order in which they run.
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

//! The table: percentiles with and without scans, and their ratio; and the chart of the 99th.

use std::fmt::Write as _;

use crate::bars::{Bars, Scale};
use crate::load::{Measured, Outcome};
use crate::median::median;

/// The percentiles in the report.
const PERCENTS: [f64; 3] = [50.0, 99.0, 99.9];
/// The index of the 99th among them.
const P99: usize = 1;

/// The percentiles of one kind of request at a gateway, of each round, without scans and with them.
#[derive(Default)]
pub struct Cell {
    pub gateway: String,
    pub kind: &'static str,
    rounds: [Vec<[f64; PERCENTS.len()]>; 2],
    failed: u64,
}

impl Cell {
    /// The median of a percentile, in milliseconds.
    pub fn median(&self, with_scans: bool, percent: usize) -> f64 {
        median(self.rounds[usize::from(with_scans)].iter().map(|round| round[percent]))
    }

    /// The median of the ratios of the 99th percentiles.
    pub fn ratio(&self) -> f64 {
        let [without, with] = &self.rounds;
        median(without.iter().zip(with).map(|(without, with)| with[P99] / without[P99]))
    }

    fn add(&mut self, measured: &Measured, with_scans: bool) {
        let percentiles = PERCENTS.map(|percent| measured.percentile_ms(percent));
        self.rounds[usize::from(with_scans)].push(percentiles);
        self.failed += measured.errors;
    }
}

/// The cells, in the order in which they were measured, and the scans per second of each gateway.
#[derive(Default)]
pub struct Report {
    pub cells: Vec<Cell>,
    scans: Vec<(String, Vec<f64>)>,
}

impl Report {
    /// Adds a measurement.
    pub fn add(&mut self, gateway: &str, outcome: &Outcome, with_scans: bool) {
        for (kind, measured) in [("reads", &outcome.reads), ("writes", &outcome.writes)] {
            let at = self.cells.iter().position(|cell| cell.gateway == gateway && cell.kind == kind);
            let at = at.unwrap_or_else(|| {
                self.cells.push(Cell { gateway: gateway.to_owned(), kind, ..Cell::default() });
                self.cells.len() - 1
            });
            self.cells[at].add(measured, with_scans);
        }
        if with_scans {
            match self.scans.iter_mut().find(|(name, _)| name == gateway) {
                Some((_, rates)) => rates.push(outcome.scans.per_second()),
                None => self.scans.push((gateway.to_owned(), vec![outcome.scans.per_second()])),
            }
        }
    }

    /// The table in Markdown. Milliseconds.
    pub fn to_markdown(&self) -> String {
        let mut out = String::from(
            "| gateway | requests | p50 | p99 | p99.9 | with scans: p50 | p99 | p99.9 | ratio of p99 | failed \
             | scans/s |\n\
             |---|---|---|---|---|---|---|---|---|---|---|\n",
        );
        for cell in &self.cells {
            let figures: Vec<String> = [false, true]
                .into_iter()
                .flat_map(|with| (0..PERCENTS.len()).map(move |percent| (with, percent)))
                .map(|(with, percent)| format!("{:.2}", cell.median(with, percent)))
                .collect();
            let scans = self.scans.iter().find(|(name, _)| *name == cell.gateway);
            let scans = scans.map_or(f64::NAN, |(_, rates)| median(rates.iter().copied()));
            let (gateway, kind, ratio, failed) = (&cell.gateway, cell.kind, cell.ratio(), cell.failed);
            let figures = figures.join(" | ");
            // Writing to a String cannot fail.
            let _ = writeln!(out, "| {gateway} | {kind} | {figures} | {ratio:.2} | {failed} | {scans:.1} |");
        }
        out
    }

    /// The 99th percentiles as bars.
    pub fn to_svg(&self) -> String {
        let title = "99th percentile in ms, without and with a client that scans in a loop";
        let mut bars = Bars::new(title, Scale::Linear, &["without scans", "with scans"]);
        for cell in &self.cells {
            let [without, with] = [false, true].map(|with| cell.median(with, P99));
            let texts = [format!("{without:.2}"), format!("{with:.2} ({:.2}x)", cell.ratio())];
            bars.group(format!("{}, {}", cell.gateway, cell.kind), [without, with].into_iter().zip(texts).map(Some));
        }
        bars.svg()
    }
}

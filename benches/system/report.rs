//! Medians, ratios and the table for `docs/benchmarks.md`.

use std::collections::BTreeMap;
use std::fmt;
use std::fmt::Write as _;
use std::time::Duration;

use serde::Serialize;

use crate::Driver;
use crate::load::{Outcome, Workload};
use crate::median::median;

/// The system that the others are compared with.
const BASELINE: &str = "postgres";

/// The figures of one system, or the ratios between those of two.
#[derive(Clone, Copy, Debug, Serialize)]
struct Figures {
    per_second: f64,
    p50_us: f64,
    p95_us: f64,
    p99_us: f64,
    gateway_cpu_us: f64,
    all_cpu_us: f64,
}

impl Figures {
    /// Computes each figure separately.
    fn each(figure: impl Fn(fn(&Figures) -> f64) -> f64) -> Figures {
        Figures {
            per_second: figure(|f| f.per_second),
            p50_us: figure(|f| f.p50_us),
            p95_us: figure(|f| f.p95_us),
            p99_us: figure(|f| f.p99_us),
            gateway_cpu_us: figure(|f| f.gateway_cpu_us),
            all_cpu_us: figure(|f| f.all_cpu_us),
        }
    }

    /// The figures as table cells, in the order of the head.
    fn cells(&self, digits: usize) -> String {
        [self.per_second, self.p50_us, self.p95_us, self.p99_us, self.gateway_cpu_us, self.all_cpu_us]
            .map(|figure| format!("{figure:.digits$}"))
            .join(" | ")
    }
}

/// The figures of one run, or the medians of several.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Cell {
    #[serde(flatten)]
    figures: Figures,
    /// Failed requests.
    errors: u64,
}

impl Cell {
    /// The figures of a run, given the CPU time that each server used.
    pub fn new(outcome: &Outcome, cpu: &[Duration]) -> Cell {
        let requests = outcome.requests.max(1) as f64;
        let quantile = |q| outcome.latency.value_at_quantile(q) as f64 / 1000.0;
        let micros = |time: &Duration| time.as_secs_f64() * 1e6 / requests;
        let figures = Figures {
            per_second: requests / outcome.elapsed.as_secs_f64(),
            p50_us: quantile(0.5),
            p95_us: quantile(0.95),
            p99_us: quantile(0.99),
            gateway_cpu_us: cpu.first().map_or(0.0, micros),
            all_cpu_us: cpu.iter().map(micros).sum(),
        };
        Cell { figures, errors: outcome.errors }
    }

    /// The median of each figure, and the sum of the errors: one error makes the other figures doubtful.
    fn median(runs: &[Cell]) -> Cell {
        let figures = Figures::each(|figure| median(runs.iter().map(|run| figure(&run.figures))));
        Cell { figures, errors: runs.iter().map(|run| run.errors).sum() }
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Figures { per_second, p50_us, p95_us, p99_us, gateway_cpu_us, all_cpu_us } = self.figures;
        write!(f, "{per_second:.0}/s p50 {p50_us:.0} us p95 {p95_us:.0} us p99 {p99_us:.0} us ")?;
        write!(f, "cpu {gateway_cpu_us:.1} us, all {all_cpu_us:.1} us, {} error(s)", self.errors)
    }
}

/// A load: the load program, the workload and the number of clients.
pub type Load = (Driver, Workload, usize);

/// All cells by load, by system and by round.
#[derive(Default)]
pub struct Report {
    cells: BTreeMap<Load, BTreeMap<&'static str, Vec<Cell>>>,
}

/// The figures of all systems under one load.
#[derive(Debug, Serialize)]
struct Row {
    load: String,
    systems: BTreeMap<&'static str, Cell>,
    /// Each system's figures over those of [`BASELINE`], if that was measured too.
    ratios: BTreeMap<&'static str, Figures>,
}

impl Row {
    fn new((driver, workload, clients): Load, runs: &BTreeMap<&'static str, Vec<Cell>>) -> Row {
        let load = match driver {
            Driver::Sysbench => format!("sysbench {workload}, {clients} thread(s)"),
            Driver::Own => format!("{workload}, prepared and binary, {clients} client(s)"),
        };
        let systems: BTreeMap<_, _> = runs.iter().map(|(name, runs)| (*name, Cell::median(runs))).collect();
        let mut ratios = BTreeMap::new();
        if let Some(peer) = systems.get(BASELINE) {
            for (name, cell) in systems.iter().filter(|(name, _)| **name != BASELINE) {
                ratios.insert(*name, Figures::each(|figure| figure(&cell.figures) / figure(&peer.figures)));
            }
        }
        Row { load, systems, ratios }
    }
}

impl Report {
    /// Adds the cell of a run.
    pub fn add(&mut self, load: Load, system: &'static str, cell: Cell) {
        self.cells.entry(load).or_default().entry(system).or_default().push(cell);
    }

    fn rows(&self) -> Vec<Row> {
        self.cells.iter().map(|(load, runs)| Row::new(*load, runs)).collect()
    }

    /// The report as a table.
    pub fn to_markdown(&self) -> String {
        let mut out = String::from(
            "| load | system | requests/s | p50 us | p95 us | p99 us \
             | CPU us/request, gateway | CPU us/request, all nodes | errors |\n\
             |---|---|---|---|---|---|---|---|---|\n",
        );
        for row in self.rows() {
            // Writing to a String cannot fail.
            for (name, cell) in &row.systems {
                let _ = writeln!(out, "| {} | {name} | {} | {} |", row.load, cell.figures.cells(1), cell.errors);
            }
            for (name, ratios) in &row.ratios {
                let _ = writeln!(out, "| {} | {name} / {BASELINE} | {} | |", row.load, ratios.cells(2));
            }
        }
        out
    }

    /// The report as JSON: a list of loads, each with the figures of the systems and their ratios.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(&self.rows()).unwrap()
    }
}

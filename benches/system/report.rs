//! Medians, ratios and the table for `docs/benchmarks.md`.

use std::collections::BTreeMap;
use std::fmt;
use std::fmt::Write as _;
use std::time::Duration;

use serde::Serialize;

use crate::load::{Outcome, Workload};

/// The figures of one run.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Cell {
    per_second: f64,
    p50_us: f64,
    p95_us: f64,
    p99_us: f64,
    gateway_cpu_us: f64,
    all_cpu_us: f64,
    errors: u64,
}

impl Cell {
    /// From a run, and the CPU time that each server spent on it.
    pub fn new(outcome: &Outcome, cpu: &[Duration]) -> Cell {
        let requests = outcome.requests.max(1) as f64;
        let quantile = |q| outcome.latency.value_at_quantile(q) as f64 / 1000.0;
        let micros = |time: &Duration| time.as_secs_f64() * 1e6 / requests;
        Cell {
            per_second: requests / outcome.elapsed.as_secs_f64(),
            p50_us: quantile(0.5),
            p95_us: quantile(0.95),
            p99_us: quantile(0.99),
            gateway_cpu_us: cpu.first().map_or(0.0, micros),
            all_cpu_us: cpu.iter().map(micros).sum(),
            errors: outcome.errors,
        }
    }

    fn figures(&self) -> [f64; 6] {
        [self.per_second, self.p50_us, self.p95_us, self.p99_us, self.gateway_cpu_us, self.all_cpu_us]
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [per_second, p50, p95, p99, gateway, all] = self.figures();
        write!(
            f,
            "{per_second:.0}/s p50 {p50:.0} us p95 {p95:.0} us p99 {p99:.0} us cpu {gateway:.1} us, all {all:.1} us"
        )
    }
}

/// All cells: by workload and clients, then by system, then rounds.
#[derive(Default)]
pub struct Report {
    cells: BTreeMap<(Workload, usize), BTreeMap<&'static str, Vec<Cell>>>,
}

impl Report {
    /// Adds a run.
    pub fn add(&mut self, workload: Workload, clients: usize, system: &'static str, cell: Cell) {
        self.cells.entry((workload, clients)).or_default().entry(system).or_default().push(cell);
    }

    fn medians(&self) -> BTreeMap<String, BTreeMap<&'static str, [f64; 6]>> {
        let median = |cells: &[Cell], i: usize| {
            let mut values: Vec<f64> = cells.iter().map(|cell| cell.figures()[i]).collect();
            values.sort_by(f64::total_cmp);
            values[values.len() / 2]
        };
        let row = |systems: &BTreeMap<&'static str, Vec<Cell>>| {
            systems.iter().map(|(name, cells)| (*name, std::array::from_fn(|i| median(cells, i)))).collect()
        };
        self.cells.iter().map(|((workload, n), systems)| (format!("{workload}, {n} client(s)"), row(systems))).collect()
    }

    /// The table.
    pub fn to_markdown(&self) -> String {
        let mut out = String::from(
            "| workload | system | requests/s | p50 us | p95 us | p99 us | CPU us/request, gateway | CPU us/request, all nodes |\n\
             |---|---|---|---|---|---|---|---|\n",
        );
        for (workload, systems) in self.medians() {
            for (name, figures) in &systems {
                let cells: Vec<String> = figures.iter().map(|figure| format!("{figure:.1}")).collect();
                // Writing to a String cannot fail.
                let _ = writeln!(out, "| {workload} | {name} | {} |", cells.join(" | "));
            }
            if let (Some(ours), Some(theirs)) = (systems.get("cortado"), systems.get("postgres")) {
                let ratios: Vec<String> = ours.iter().zip(theirs).map(|(a, b)| format!("{:.2}", a / b)).collect();
                let _ = writeln!(out, "| {workload} | ratio | {} |", ratios.join(" | "));
            }
        }
        out
    }

    /// The same figures for programs.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(&self.medians()).unwrap()
    }
}

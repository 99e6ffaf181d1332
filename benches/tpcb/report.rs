//! Medians, ratios and the table for `docs/benchmarks.md`.

use std::collections::BTreeMap;
use std::fmt;
use std::fmt::Write as _;
use std::time::Duration;

use serde::Serialize;

use crate::median::median;
use crate::pgbench::{Mode, Outcome};

/// The system that the others are compared with.
const BASELINE: &str = "postgres";

/// The figures of one run, or the medians of several.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Cell {
    per_second: f64,
    p50_ms: f64,
    p95_ms: f64,
    p99_ms: f64,
    gateway_cpu_us: f64,
    all_cpu_us: f64,
    /// The wait for row locks of a transaction, on average.
    lock_wait_ms: f64,
}

impl Cell {
    /// The figures of a run, given the CPU time of each server, and the time that all clients waited for row locks.
    pub fn new(outcome: &Outcome, cpu: &[Duration], waited: Duration) -> Cell {
        let transactions = outcome.transactions.max(1) as f64;
        let quantile = |q| outcome.latency.value_at_quantile(q) as f64 / 1000.0;
        let micros = |time: &Duration| time.as_secs_f64() * 1e6 / transactions;
        Cell {
            per_second: outcome.per_second,
            p50_ms: quantile(0.5),
            p95_ms: quantile(0.95),
            p99_ms: quantile(0.99),
            gateway_cpu_us: cpu.first().map_or(0.0, micros),
            all_cpu_us: cpu.iter().map(micros).sum(),
            lock_wait_ms: waited.as_secs_f64() * 1e3 / transactions,
        }
    }

    /// In the order of the head of the table.
    fn figures(&self) -> [f64; 7] {
        let Cell { per_second, p50_ms, p95_ms, p99_ms, gateway_cpu_us, all_cpu_us, lock_wait_ms } = *self;
        [per_second, p50_ms, p95_ms, p99_ms, gateway_cpu_us, all_cpu_us, lock_wait_ms]
    }

    /// Computes each figure separately.
    fn each(figure: impl Fn(usize) -> f64) -> Cell {
        let [per_second, p50_ms, p95_ms, p99_ms, gateway_cpu_us, all_cpu_us, lock_wait_ms] =
            std::array::from_fn(figure);
        Cell { per_second, p50_ms, p95_ms, p99_ms, gateway_cpu_us, all_cpu_us, lock_wait_ms }
    }

    fn cells(&self) -> String {
        self.figures().map(|figure| format!("{figure:.2}")).join(" | ")
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Cell { per_second, p50_ms, p95_ms, p99_ms, gateway_cpu_us, all_cpu_us, lock_wait_ms } = self;
        write!(f, "{per_second:.0}/s p50 {p50_ms:.2} ms p95 {p95_ms:.2} ms p99 {p99_ms:.2} ms ")?;
        write!(f, "cpu {gateway_cpu_us:.0} us, all {all_cpu_us:.0} us, lock waits {lock_wait_ms:.2} ms")
    }
}

/// All cells by protocol, by system and by round.
#[derive(Default)]
pub struct Report {
    cells: BTreeMap<Mode, BTreeMap<&'static str, Vec<Cell>>>,
}

/// The figures of all systems by one protocol.
#[derive(Debug, Serialize)]
struct Row {
    mode: &'static str,
    systems: BTreeMap<&'static str, Cell>,
    /// Each system's figures over those of [`BASELINE`].
    ratios: BTreeMap<&'static str, Cell>,
}

impl Report {
    /// Adds the cell of a run.
    pub fn add(&mut self, mode: Mode, system: &'static str, cell: Cell) {
        self.cells.entry(mode).or_default().entry(system).or_default().push(cell);
    }

    fn rows(&self) -> Vec<Row> {
        let row = |(mode, runs): (&Mode, &BTreeMap<&'static str, Vec<Cell>>)| {
            let middle = |runs: &Vec<Cell>| Cell::each(|n| median(runs.iter().map(|run| run.figures()[n])));
            let systems: BTreeMap<_, _> = runs.iter().map(|(name, runs)| (*name, middle(runs))).collect();
            let peer = systems[BASELINE];
            let others = systems.iter().filter(|(name, _)| **name != BASELINE);
            let ratio = |cell: &Cell| Cell::each(|n| cell.figures()[n] / peer.figures()[n]);
            let ratios = others.map(|(name, cell)| (*name, ratio(cell))).collect();
            Row { mode: mode.name(), systems, ratios }
        };
        self.cells.iter().map(row).collect()
    }

    /// The report as a table.
    pub fn to_markdown(&self) -> String {
        let mut out = String::from(
            "| protocol | system | transactions/s | p50 ms | p95 ms | p99 ms | CPU us, gateway | CPU us, all \
             | lock waits ms |\n|---|---|---:|---:|---:|---:|---:|---:|---:|\n",
        );
        for row in self.rows() {
            // Writing to a String cannot fail.
            for (name, cell) in &row.systems {
                let _ = writeln!(out, "| {} | {name} | {} |", row.mode, cell.cells());
            }
            for (name, ratio) in &row.ratios {
                let _ = writeln!(out, "| {} | {name} / {BASELINE} | {} |", row.mode, ratio.cells());
            }
        }
        out
    }

    /// The report as JSON: a list of protocols, each with the figures of the systems and their ratios.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(&self.rows()).unwrap()
    }
}

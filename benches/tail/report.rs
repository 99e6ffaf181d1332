//! Medians, the table for `docs/benchmarks.md`, and the chart.

use std::collections::BTreeMap;
use std::fmt;
use std::fmt::Write as _;

use crate::Workload;
use crate::bars::{Bars, Scale};
use crate::gateway::Counts;
use crate::load::Outcome;
use crate::median::median;

/// The figures of one run, or the medians of several.
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    per_second: f64,
    p50_ms: f64,
    p99_ms: f64,
    p999_ms: f64,
    /// Hedges per hundred reads.
    extra: f64,
    /// Of a hundred hedges, those that answered first.
    won: f64,
    /// Slow reads without a hedge, per hundred reads.
    suppressed: f64,
    errors: f64,
}

const FIGURES: [fn(&Cell) -> f64; 8] = [
    |c| c.per_second,
    |c| c.p50_ms,
    |c| c.p99_ms,
    |c| c.p999_ms,
    |c| c.extra,
    |c| c.won,
    |c| c.suppressed,
    |c| c.errors,
];

impl Cell {
    pub fn new(outcome: &Outcome, counts: Counts) -> Cell {
        let quantile = |q| outcome.latency.value_at_quantile(q) as f64 / 1e6;
        let percent = |part: f64, whole: f64| if whole > 0.0 { 100.0 * part / whole } else { 0.0 };
        Cell {
            per_second: outcome.latency.len() as f64 / outcome.elapsed.as_secs_f64(),
            p50_ms: quantile(0.5),
            p99_ms: quantile(0.99),
            p999_ms: quantile(0.999),
            extra: percent(counts.sent, counts.reads),
            won: percent(counts.won, counts.sent),
            suppressed: percent(counts.suppressed, counts.reads),
            errors: outcome.errors as f64,
        }
    }

    fn median(runs: &[Cell]) -> Cell {
        let [per_second, p50_ms, p99_ms, p999_ms, extra, won, suppressed, errors] =
            FIGURES.map(|figure| median(runs.iter().map(figure)));
        Cell { per_second, p50_ms, p99_ms, p999_ms, extra, won, suppressed, errors }
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Cell { per_second, p50_ms, p99_ms, p999_ms, extra, won, suppressed, errors } = self;
        write!(f, "{per_second:.0}/s p50 {p50_ms:.2} ms p99 {p99_ms:.2} ms p99.9 {p999_ms:.2} ms, ")?;
        write!(f, "{extra:.2} % extra, {won:.0} % won, {suppressed:.2} % suppressed, {errors} error(s)")
    }
}

/// A workload, whether a follower is paused, and the value of `cortado.hedge`.
pub type Load = (Workload, bool, &'static str);

/// All runs.
#[derive(Default)]
pub struct Report {
    cells: BTreeMap<Load, Vec<Cell>>,
    capacities: BTreeMap<(Workload, &'static str), Vec<f64>>,
}

impl Report {
    pub fn add(&mut self, load: Load, cell: Cell) {
        self.cells.entry(load).or_default().push(cell);
    }

    pub fn add_capacity(&mut self, workload: Workload, hedge: &'static str, per_second: f64) {
        self.capacities.entry((workload, hedge)).or_default().push(per_second);
    }

    /// The loads with the medians of their runs: unhedged before hedged.
    fn rows(&self) -> Vec<(Load, Cell)> {
        let mut rows: Vec<_> = self.cells.iter().map(|(load, runs)| (*load, Cell::median(runs))).collect();
        rows.sort_by_key(|((workload, paused, hedge), _)| (*workload, *paused, *hedge == "auto"));
        rows
    }

    fn capacity(&self, workload: Workload, hedge: &'static str) -> f64 {
        self.capacities.get(&(workload, hedge)).map_or(0.0, |runs| median(runs.iter().copied()))
    }

    pub fn to_markdown(&self) -> String {
        let mut out = String::from(
            "| workload | a follower | hedge | reads/s | p50 ms | p99 ms | p99.9 ms | extra requests % | of them won % \
             | not hedged % | errors |\n|---|---|---|---|---|---|---|---|---|---|---|\n",
        );
        for ((workload, paused, hedge), cell) in self.rows() {
            let follower = if paused { "paused 50 to 200 ms" } else { "runs" };
            let Cell { per_second, p50_ms, p99_ms, p999_ms, extra, won, suppressed, errors } = cell;
            // Writing to a String cannot fail.
            let _ = writeln!(
                out,
                "| {} | {follower} | {hedge} | {per_second:.0} | {p50_ms:.2} | {p99_ms:.2} | {p999_ms:.2} | {extra:.2} \
                 | {won:.0} | {suppressed:.2} | {errors:.0} |",
                workload.name()
            );
        }
        out.push_str("\n| workload | closed loop, hedge off | hedge auto | ratio |\n|---|---|---|---|\n");
        let workloads: Vec<Workload> = self.capacities.keys().map(|(workload, _)| *workload).collect();
        for workload in workloads.into_iter().step_by(2) {
            let (off, auto) = (self.capacity(workload, "off"), self.capacity(workload, "auto"));
            let _ = writeln!(out, "| {} | {off:.0}/s | {auto:.0}/s | {:.3} |", workload.name(), auto / off);
        }
        out
    }

    /// The 99.9th percentiles as bars on a logarithmic scale.
    pub fn to_svg(&self) -> String {
        let title = "99.9th percentile of point reads in ms, one follower running or paused 50 to 200 ms at random";
        let mut bars = Bars::new(title, Scale::From(0.1), &["hedge off", "hedge auto"]);
        let rows = self.rows();
        for pair in rows.chunk_by(|(a, _), (b, _)| (a.0, a.1) == (b.0, b.1)) {
            let Some(((workload, paused, _), _)) = pair.first() else { continue };
            let of = |hedge| pair.iter().find(|(load, _)| load.2 == hedge).map(|(_, cell)| cell.p999_ms);
            let drawn = ["off", "auto"].map(|hedge| of(hedge).map(|value| (value, format!("{value:.2}"))));
            bars.group(format!("{}, {}", workload.name(), if *paused { "paused" } else { "running" }), drawn);
        }
        bars.svg()
    }
}

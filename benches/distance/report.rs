//! Medians, ratios and the table for `docs/benchmarks.md`.

use std::collections::BTreeMap;
use std::fmt;
use std::fmt::Write as _;

use serde::Serialize;

use crate::chart::Line;
use crate::load::Statements;
use crate::median::median;
use crate::modes::{BASELINE, Client, Cost, FOLLOWER, LEADER, MODES, Mode, PUBLISHED};

/// What a figure is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Cell {
    pub mode: &'static str,
    /// Whether there is a distance between the regions.
    pub apart: bool,
    pub statements: Statements,
    /// Rows of each scan.
    pub keys: i64,
}

/// The figures of one run, or the medians of several.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Figures {
    pub per_second: f64,
    pub p50_ms: f64,
    pub p99_ms: f64,
    /// Between regions, in both directions, Raft and heartbeats included.
    pub bytes_per_scan: Option<f64>,
    pub client_cores: f64,
    pub node_cores: f64,
    pub proxy_cores: f64,
    pub errors: u64,
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Figures { per_second, p50_ms, p99_ms, client_cores, node_cores, proxy_cores, errors, .. } = self;
        write!(f, "{per_second:.0}/s p50 {p50_ms:.2} ms p99 {p99_ms:.2} ms, {} between regions, ", self.kilobytes())?;
        write!(f, "{client_cores:.2} + {node_cores:.2} + {proxy_cores:.2} cores, {errors} error(s)")
    }
}

impl Figures {
    fn median(runs: &[Figures]) -> Figures {
        let each = |figure: fn(&Figures) -> f64| median(runs.iter().map(figure));
        Figures {
            per_second: each(|f| f.per_second),
            p50_ms: each(|f| f.p50_ms),
            p99_ms: each(|f| f.p99_ms),
            bytes_per_scan: runs.first().and_then(|f| f.bytes_per_scan).map(|_| {
                // All runs of a cell have it, or none.
                each(|f| f.bytes_per_scan.unwrap_or_default())
            }),
            client_cores: each(|f| f.client_cores),
            node_cores: each(|f| f.node_cores),
            proxy_cores: each(|f| f.proxy_cores),
            errors: runs.iter().map(|f| f.errors).sum(),
        }
    }

    fn kilobytes(&self) -> String {
        self.bytes_per_scan.map_or_else(|| "-".to_string(), |bytes| format!("{:.2} KB", bytes / 1e3))
    }
}

/// The table of a follower beside its clients over a leader beside its clients, without a distance.
fn beside_clients(medians: &BTreeMap<Cell, Figures>) -> String {
    let mut out = String::new();
    for (cell, follower) in medians.iter().filter(|(cell, _)| cell.mode == FOLLOWER && !cell.apart) {
        let Some(leader) = medians.get(&Cell { mode: LEADER, ..*cell }) else { continue };
        if out.is_empty() {
            out.push_str("\n| statements | keys | follower beside clients | leader beside clients | ratio (0.95) |\n");
            out.push_str("|---|---:|---:|---:|---:|\n");
        }
        let (follower, leader) = (follower.per_second, leader.per_second);
        let ratio = follower / leader;
        let _ = writeln!(out, "| {} | {} | {follower:.0}/s | {leader:.0}/s | {ratio:.2} |", cell.statements, cell.keys);
    }
    out
}

/// All cells, by round.
pub struct Report {
    /// The number of clients, each of which waits for its scan.
    clients: usize,
    /// A round trip between the regions.
    rtt_ms: f64,
    runs: BTreeMap<Cell, Vec<Figures>>,
    /// Why a mode is not available, with or without a distance.
    refused: BTreeMap<(&'static str, bool), String>,
    /// What the server says about the last read of a cell, if it can.
    last_reads: BTreeMap<Cell, String>,
}

#[derive(Serialize)]
struct Row {
    #[serde(flatten)]
    cell: Cell,
    #[serde(flatten)]
    figures: Figures,
    last_read: Option<String>,
}

impl Report {
    /// An empty report of measurements with so many clients and this round trip.
    pub fn new(clients: usize, rtt_ms: f64) -> Report {
        Report { clients, rtt_ms, runs: BTreeMap::new(), refused: BTreeMap::new(), last_reads: BTreeMap::new() }
    }

    /// Adds the figures of a run.
    pub fn add(&mut self, cell: Cell, figures: Figures, last_read: Option<String>) {
        self.runs.entry(cell).or_default().push(figures);
        self.last_reads.extend(last_read.map(|said| (cell, said)));
    }

    /// Records that the server does not have what a mode needs.
    pub fn refuse(&mut self, mode: &Mode, apart: bool, why: String) {
        self.refused.insert((mode.name, apart), why);
    }

    fn medians(&self) -> BTreeMap<Cell, Figures> {
        self.runs.iter().map(|(cell, runs)| (*cell, Figures::median(runs))).collect()
    }

    /// The report as tables.
    pub fn to_markdown(&self) -> String {
        let mut out = String::from(
            "| clients read | statements | keys | scans/s | p50 ms | p99 ms | between regions, per scan \
             | cores: clients + nodes + proxies | scans/s without distance | p50 ms | p99 ms | target \
             | over remote leader | published | errors |\n\
             |---|---|---:|---:|---:|---:|---:|---|---:|---:|---:|---|---:|---:|---:|\n",
        );
        let medians = self.medians();
        for mode in &MODES {
            for (cell, far) in medians.iter().filter(|(cell, _)| cell.mode == mode.name && cell.apart) {
                out += &self.row(mode, *cell, far, &medians);
            }
        }
        out += &beside_clients(&medians);
        for ((mode, apart), why) in &self.refused {
            let place = if *apart { "at a distance" } else { "without distance" };
            // Writing to a String cannot fail.
            let _ = writeln!(out, "\n{mode}, {place}: not available ({why})");
        }
        out
    }

    fn row(&self, mode: &Mode, cell: Cell, far: &Figures, medians: &BTreeMap<Cell, Figures>) -> String {
        let near = medians.get(&Cell { apart: false, ..cell });
        let remote = medians.get(&Cell { mode: BASELINE, ..cell }).filter(|_| mode.client == Client::ByFollower);
        let without = near.map_or_else(
            || " | | ".to_string(),
            |f| format!("{:.0} | {:.2} | {:.2}", f.per_second, f.p50_ms, f.p99_ms),
        );
        let ratio = remote.map_or_else(String::new, |other| format!("{:.2}", far.per_second / other.per_second));
        let published =
            PUBLISHED.iter().find(|(keys, _)| *keys == cell.keys && remote.is_some() && mode.name != BASELINE);
        format!(
            "| {} | {} | {} | {:.0} | {:.2} | {:.2} | {} | {:.2} + {:.2} + {:.2} | {without} | {} | {ratio} | {} | {} \
             |\n",
            cell.mode,
            cell.statements,
            cell.keys,
            far.per_second,
            far.p50_ms,
            far.p99_ms,
            far.kilobytes(),
            far.client_cores,
            far.node_cores,
            far.proxy_cores,
            near.map_or_else(String::new, |near| self.verdict(mode.cost(cell.statements), far, near)),
            published.map_or_else(String::new, |(_, ratio)| ratio.to_string()),
            far.errors + near.map_or(0, |f| f.errors),
        )
    }

    /// What a distance costs, and whether that is as little as it should be.
    fn verdict(&self, cost: Cost, far: &Figures, near: &Figures) -> String {
        // Each of the clients waits for its scan, so a rate is the inverse of the mean time.
        let mean_ms = |figures: &Figures| 1e3 * self.clients as f64 / figures.per_second;
        let (share, most) = (far.per_second / near.per_second, mean_ms(far) / (mean_ms(near) + self.rtt_ms));
        let (text, is_met) = match cost {
            Cost::Any => return format!("{share:.2} of it"),
            Cost::Little => (format!("{share:.2} of it (0.9)"), share >= 0.9),
            Cost::RoundTrip => (format!("{most:.2} of its time and a round trip (1.1)"), most <= 1.1),
        };
        if is_met { text } else { format!("**{text}**") }
    }

    /// The report as JSON: a list of cells with their figures.
    pub fn to_json(&self) -> String {
        let row = |(cell, figures)| Row { cell, figures, last_read: self.last_reads.get(&cell).cloned() };
        let rows: Vec<Row> = self.medians().into_iter().map(row).collect();
        serde_json::to_string_pretty(&rows).unwrap()
    }

    /// The lines of the chart: scans per second over keys.
    pub fn lines(&self) -> Vec<Line> {
        let medians = self.medians();
        let mut lines = Vec::new();
        for mode in &MODES {
            for apart in [true, false] {
                for statements in [Statements::First, Statements::Later] {
                    let is_on =
                        |cell: &Cell| cell.mode == mode.name && cell.apart == apart && cell.statements == statements;
                    let on_line = medians.iter().filter(|(cell, _)| is_on(cell));
                    let points = on_line.map(|(cell, f)| (cell.keys as f64, f.per_second)).collect();
                    lines.push(Line { mode: mode.name, apart, statements, points });
                }
            }
        }
        lines.retain(|line| !line.points.is_empty());
        lines
    }
}

//! Medians, ratios and targets: one line per figure of a cell, and the same as JSON.
//!
//! A ratio above 1 means that ours is better than the peer. A figure whose name ends in `/s` is better when higher,
//! every other when lower, and its line says so. The last ratio, `ratio`, is against the better peer. A target in `x`
//! is against raft-engine, or the named peer, as in the acceptance table.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};

use serde::Serialize;

use crate::engines::EngineKind;
use crate::measure::Figures;
use crate::workloads::{Cell, Target};

/// One figure of a cell.
#[derive(Serialize)]
pub struct Row {
    /// The cell.
    pub cell: String,
    /// The figure.
    pub figure: String,
    /// Whether lower is better.
    pub lower: bool,
    /// Whether the chart shows it.
    pub headline: bool,
    /// Medians by engine.
    pub medians: BTreeMap<String, f64>,
    /// Every round, by engine.
    pub rounds: BTreeMap<String, Vec<f64>>,
    /// Ours against each peer; above 1 is better.
    pub ratios: BTreeMap<String, f64>,
    /// Ours against the better peer.
    pub ratio: Option<f64>,
    /// The target, and whether it is met.
    pub targets: Vec<Verdict>,
}

/// An evaluated target.
#[derive(Serialize)]
pub struct Verdict {
    /// The target.
    pub asked: String,
    /// Whether the median meets it.
    pub met: bool,
}

/// The runs of one cell: by engine, the figures of each round.
pub type Runs = BTreeMap<EngineKind, Vec<Figures>>;

/// Whether a figure is better when lower.
fn is_lower_better(figure: &str) -> bool {
    !figure.ends_with("/s")
}

/// The median; of an even number, the higher of the two in the middle.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// Ours against a peer's; above 1 is better.
fn ratio(ours: f64, peer: f64, lower: bool) -> f64 {
    let (better, worse) = if lower { (peer, ours) } else { (ours, peer) };
    if better == worse { 1.0 } else { better / worse }
}

/// The rows of a cell. `limits` are the disk's own.
pub fn rows(cell: &Cell, runs: &Runs, limits: &Figures) -> Vec<Row> {
    let mut names: Vec<&String> = Vec::new();
    for (name, _) in runs.values().flatten().flatten() {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.into_iter().map(|name| row(cell, name, runs, limits)).collect()
}

fn row(cell: &Cell, figure: &str, runs: &Runs, limits: &Figures) -> Row {
    let lower = is_lower_better(figure);
    let mut rounds = BTreeMap::new();
    for (engine, figures) in runs {
        let values = figures.iter().flatten().filter(|(name, _)| name == figure).map(|(_, value)| *value);
        let values: Vec<f64> = values.collect();
        if !values.is_empty() {
            rounds.insert(engine.to_string(), values);
        }
    }
    let medians: BTreeMap<String, f64> = rounds.iter().map(|(name, values)| (name.clone(), median(values))).collect();
    let ours = EngineKind::Ours.to_string();
    let mut ratios = BTreeMap::new();
    if let Some(mine) = medians.get(&ours) {
        let peers = medians.iter().filter(|(name, _)| **name != ours);
        ratios.extend(peers.map(|(name, value)| (name.clone(), ratio(*mine, *value, lower))));
    }
    let asked = cell.targets.iter().filter(|(name, _)| *name == figure);
    let targets =
        asked.filter_map(|(_, target)| evaluate(*target, medians.get(&ours), &ratios, lower, limits)).collect();
    Row {
        cell: cell.name.clone(),
        figure: figure.to_owned(),
        lower,
        headline: figure == cell.headline,
        ratio: ratios.values().copied().reduce(f64::min),
        medians,
        rounds,
        ratios,
        targets,
    }
}

/// Whether a target is met; `None` if the reference was not measured.
fn evaluate(
    target: Target,
    ours: Option<&f64>,
    ratios: &BTreeMap<String, f64>,
    lower: bool,
    limits: &Figures,
) -> Option<Verdict> {
    let ours = *ours?;
    Some(match target {
        Target::Times(peer, times) => {
            let met = *ratios.get(&peer.to_string())? >= times;
            let asked = if lower { format!("<={:.2}x", 1.0 / times) } else { format!(">={times}x") };
            let peer = if peer == EngineKind::RaftEngine { String::new() } else { format!("-{peer}") };
            Verdict { asked: asked + &peer, met }
        }
        Target::AtMost(most) => Verdict { asked: format!("<={}", FourDigits(most)), met: ours <= most },
        Target::OfLimit(name, share) => {
            let limit = limits.iter().find(|(limit, _)| limit == name)?.1;
            Verdict { asked: format!(">={share}-of-{name}={}", FourDigits(limit)), met: ours >= share * limit }
        }
    })
}

/// A number with four significant digits.
pub struct FourDigits(pub f64);

impl fmt::Display for FourDigits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = match self.0.abs() {
            size if size >= 1000.0 => 0,
            size if size >= 100.0 => 1,
            size if size >= 10.0 => 2,
            _ => 3,
        };
        write!(f, "{:.digits$}", self.0)
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}{}", self.cell, self.figure, if self.lower { "(lower)" } else { "" })?;
        for (engine, value) in &self.medians {
            write!(f, " {engine}={}", FourDigits(*value))?;
        }
        if let Some(ratio) = self.ratio {
            write!(f, " ratio={ratio:.2}")?;
        }
        for (peer, ratio) in &self.ratios {
            write!(f, " vs-{peer}={ratio:.2}")?;
        }
        for verdict in &self.targets {
            write!(f, " target{} {}", verdict.asked, if verdict.met { "met" } else { "MISSED" })?;
        }
        Ok(())
    }
}

/// All missed targets and lost comparisons, so that no average hides one.
pub fn summary(rows: &[Row]) -> String {
    let mut out = String::new();
    let verdicts = rows.iter().flat_map(|row| row.targets.iter().map(move |verdict| (row, verdict)));
    let (met, missed): (Vec<_>, Vec<_>) = verdicts.partition(|(_, verdict)| verdict.met);
    // Writing to a String cannot fail.
    let _ = writeln!(out, "{} target(s) met, {} missed", met.len(), missed.len());
    for (row, verdict) in missed {
        let _ = writeln!(out, "MISSED {} {} target{}", row.cell, row.figure, verdict.asked);
    }
    // A cell is lost if any of its figures is, not only its headline.
    let mut lost: BTreeSet<&str> = BTreeSet::new();
    for row in rows {
        for (peer, ratio) in row.ratios.iter().filter(|(_, ratio)| **ratio < 1.0) {
            lost.insert(&row.cell);
            let _ = writeln!(out, "LOST {} {} to {peer}: {ratio:.2}", row.cell, row.figure);
        }
    }
    let cells: BTreeSet<&str> = rows.iter().map(|row| row.cell.as_str()).collect();
    let _ = writeln!(out, "{} of {} cell(s) lost on some figure", lost.len(), cells.len());
    out
}

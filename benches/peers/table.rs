//! The figures as a Markdown table for `docs/benchmarks.md`: the headline of each cell, all figures with targets, tails
//! and costs.

use std::fmt::Write as _;

use crate::engines::EngineKind;
use crate::report::{FourDigits, Row};

/// Figures that are always shown, besides headlines and figures with targets: rates, so that no cell hides one, and
/// their costs.
const SHOWN: [&str; 9] = [
    "ops/s",
    "entries/s",
    "MB/s",
    "p99-us",
    "p99.9-us",
    "p99.9-idle-us",
    "p99.9-purge-us",
    "cpu-s/GB",
    "written-bytes/byte",
];

/// The table. A ratio above 1 means that ours is better. Lost comparisons and missed targets are bold.
pub fn markdown(rows: &[Row]) -> String {
    let engines = [EngineKind::Ours, EngineKind::RaftEngine, EngineKind::RocksDb];
    let mut out = String::from("| cell | figure | ours | raft-engine | RocksDB | ratio | ratio | target |\n");
    out += "|---|---|---:|---:|---:|---:|---:|---|\n";
    let shown = |row: &&Row| row.headline || !row.targets.is_empty() || SHOWN.contains(&row.figure.as_str());
    for row in rows.iter().filter(shown) {
        let lower = if row.lower { " (lower)" } else { "" };
        // Writing to a String cannot fail.
        let _ = write!(out, "| {} | {}{lower} |", row.cell, row.figure);
        for engine in engines {
            let value = row.medians.get(&engine.to_string());
            let _ = write!(out, " {} |", value.map_or(String::new(), |value| FourDigits(*value).to_string()));
        }
        for peer in &engines[1..] {
            let ratio = row.ratios.get(&peer.to_string());
            let text = ratio.map_or(String::new(), |ratio| bold(&format!("{ratio:.2}"), *ratio < 1.0));
            let _ = write!(out, " {text} |");
        }
        let targets = row.targets.iter().map(|target| {
            let verdict = if target.met { "met" } else { "missed" };
            bold(&format!("{} {verdict}", target.asked), !target.met)
        });
        let _ = writeln!(out, " {} |", targets.collect::<Vec<_>>().join(", "));
    }
    out
}

fn bold(text: &str, is_bad: bool) -> String {
    if is_bad { format!("**{text}**") } else { text.to_owned() }
}

//! Scans per second over the number of keys as a line chart in SVG, both on logarithmic scales: a panel for the first
//! statements of transactions and one for later ones. Solid lines are with the distance, dashed ones without.
//!
//! The chart is written as text, like that of `benches/peers`, with a background of its own.

use std::fmt::Write as _;

use crate::load::Statements;
use crate::modes::MODES;

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 470.0;
const TOP: f64 = 110.0;
const BOTTOM: f64 = 430.0;
/// The left edges of the panels.
const LEFT: [f64; 2] = [60.0, 500.0];
const PANEL: f64 = 370.0;
const COLOURS: [&str; MODES.len()] = ["#6b7280", "#7c3aed", "#2563eb", "#059669", "#d97706", "#111827", "#dc2626"];

/// A line of the chart.
pub struct Line {
    pub mode: &'static str,
    pub apart: bool,
    pub statements: Statements,
    /// Keys and scans per second.
    pub points: Vec<(f64, f64)>,
}

/// A logarithmic scale from values to positions.
struct Scale {
    values: (f64, f64),
    positions: (f64, f64),
}

impl Scale {
    /// A scale that has all values.
    fn over(values: impl Iterator<Item = f64>, positions: (f64, f64)) -> Scale {
        let (low, high) = values.fold((f64::INFINITY, 0.0_f64), |(low, high), v| (low.min(v), high.max(v)));
        let (low, high) = if high > low { (low, high) } else { (low / 2.0, low.max(1.0) * 2.0) };
        Scale { values: (low, high), positions }
    }

    fn at(&self, value: f64) -> f64 {
        let ((low, high), (from, to)) = (self.values, self.positions);
        from + (value.max(low) / low).ln() / (high / low).ln() * (to - from)
    }

    /// Powers of ten and their halves within the scale.
    fn marks(&self) -> Vec<f64> {
        let all = (-1..7).flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10_f64.powi(power)));
        all.filter(|value| (self.values.0..=self.values.1).contains(value)).collect()
    }
}

/// The chart of all lines.
pub fn svg(lines: &[Line], about: &str) -> String {
    let mut body = String::new();
    let rates = lines.iter().flat_map(|line| &line.points).map(|(_, rate)| rate.max(0.1));
    let y = Scale::over(rates, (BOTTOM, TOP));
    for (panel, statements) in [Statements::First, Statements::Later].into_iter().enumerate() {
        let keys = lines.iter().flat_map(|line| &line.points).map(|(keys, _)| *keys);
        let x = Scale::over(keys, (LEFT[panel], LEFT[panel] + PANEL));
        body += &grid(&x, &y, statements);
        let of_panel = lines.iter().filter(|line| line.statements == statements);
        of_panel.for_each(|line| body += &drawn(line, &x, &y));
    }
    let title = format!("Scans per second: {about}");
    let font = r##"font-family="system-ui, sans-serif" font-size="12" fill="#111827""##;
    format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" {font}>
<title>{title}</title>
<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>
<text x="14" y="24" font-size="15" font-weight="600">{title}</text>
{}{body}</svg>
"##,
        legend(lines)
    )
}

fn colour(mode: &str) -> &'static str {
    MODES.iter().position(|known| known.name == mode).map_or("#000000", |at| COLOURS[at])
}

fn drawn(line: &Line, x: &Scale, y: &Scale) -> String {
    let points: Vec<String> =
        line.points.iter().map(|(keys, rate)| format!("{:.1},{:.1}", x.at(*keys), y.at(*rate))).collect();
    let dashes = if line.apart { "" } else { r#" stroke-dasharray="4 4" opacity="0.6""# };
    let (points, colour) = (points.join(" "), colour(line.mode));
    format!("<polyline points=\"{points}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"{dashes}/>\n")
}

/// The lines and numbers behind a panel.
fn grid(x: &Scale, y: &Scale, statements: Statements) -> String {
    let (left, right) = x.positions;
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(out, r#"<text x="{left}" y="{}" font-weight="600">{statements} statements</text>"#, TOP - 12.0);
    for value in y.marks() {
        let at = y.at(value);
        let line = format!(r#"<line x1="{left}" y1="{at:.1}" x2="{right}" y2="{at:.1}" stroke="{GRID}"/>"#);
        let (text, base) = (left - 6.0, at + 4.0);
        let _ = writeln!(out, r#"{line}<text x="{text}" y="{base:.1}" text-anchor="end">{value}</text>"#);
    }
    for value in x.marks() {
        let at = x.at(value);
        let line = format!(r#"<line x1="{at:.1}" y1="{TOP}" x2="{at:.1}" y2="{BOTTOM}" stroke="{GRID}"/>"#);
        let base = BOTTOM + 16.0;
        let _ = writeln!(out, r#"{line}<text x="{at:.1}" y="{base}" text-anchor="middle">{value}</text>"#);
    }
    let (middle, base) = ((left + right) / 2.0, BOTTOM + 34.0);
    let _ = writeln!(out, r#"<text x="{middle}" y="{base}" text-anchor="middle">keys per scan</text>"#);
    out
}

const GRID: &str = "#d1d5db";

fn legend(lines: &[Line]) -> String {
    let mut out = String::new();
    let shown = MODES.iter().filter(|mode| lines.iter().any(|line| line.mode == mode.name));
    for (at, mode) in shown.enumerate() {
        let (x, y) = (14.0 + 220.0 * (at % 4) as f64, 40.0 + 18.0 * (at / 4) as f64);
        let (text, base, colour) = (x + 16.0, y + 10.0, colour(mode.name));
        let _ = writeln!(
            out,
            r#"<rect x="{x}" y="{y}" width="11" height="11" fill="{colour}"/><text x="{text}" y="{base}">{}</text>"#,
            mode.name
        );
    }
    let _ = writeln!(out, r#"<text x="886" y="24" text-anchor="end">dashed: without distance</text>"#);
    out
}

//! The ratios as a bar chart in SVG: for every cell its headline figure against each peer, on a logarithmic scale
//! around 1. A ratio above 1 is always better, for rates and for costs.
//!
//! The chart is written as text: bars need no library. It has its own background, so that its colours have enough
//! contrast on white and on dark pages.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::report::Row;

const WIDTH: f64 = 900.0;
const LEFT: f64 = 300.0;
const RIGHT: f64 = 70.0;
const TOP: f64 = 74.0;
const BAR: f64 = 11.0;
const GAP: f64 = 8.0;
/// The scale goes from 1/32 to 32. Longer bars end at the edge; their numbers are exact.
const DOUBLINGS: (f64, f64) = (-5.0, 5.0);
const COLOURS: [&str; 2] = ["#2563eb", "#d97706"];

/// The x position of a ratio.
fn place(ratio: f64) -> f64 {
    let (low, high) = DOUBLINGS;
    let at = ratio.log2().clamp(low, high);
    LEFT + (at - low) / (high - low) * (WIDTH - LEFT - RIGHT)
}

/// The chart of the headline figures.
pub fn svg(rows: &[Row], title: &str) -> String {
    let rows: Vec<&Row> = rows.iter().filter(|row| row.headline && !row.ratios.is_empty()).collect();
    let mut colours: BTreeMap<&str, &str> = BTreeMap::new();
    for peer in rows.iter().flat_map(|row| row.ratios.keys()) {
        let next = COLOURS[colours.len() % COLOURS.len()];
        colours.entry(peer).or_insert(next);
    }
    let mut body = String::new();
    let mut y = TOP;
    for row in &rows {
        let middle = y + BAR * row.ratios.len() as f64 / 2.0 + 4.0;
        // Writing to a String cannot fail.
        let _ = writeln!(body, r#"<text x="{}" y="{middle}" text-anchor="end">{}</text>"#, LEFT - 10.0, label(row));
        for (peer, ratio) in &row.ratios {
            body.push_str(&bar(y, *ratio, colours[peer.as_str()]));
            y += BAR;
        }
        y += GAP;
    }
    let height = y + 16.0;
    let (grid, legend) = (grid(y), legend(&colours));
    let font = r##"font-family="system-ui, sans-serif" font-size="12" fill="#111827""##;
    format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" {font}>
<title>{title}</title>
<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>
<text x="14" y="24" font-size="15" font-weight="600">{title}</text>
{legend}{grid}{body}</svg>
"##
    )
}

fn label(row: &Row) -> String {
    format!("{} {}", row.cell, row.figure).replace('&', "&amp;").replace('<', "&lt;")
}

fn bar(y: f64, ratio: f64, colour: &str) -> String {
    let (one, end) = (place(1.0), place(ratio));
    let (x, width) = (one.min(end), (one - end).abs().max(1.0));
    let height = BAR - 1.5;
    // The number is past the end of the bar, on its side of the line.
    let (at, anchor) = if end >= one { (end + 4.0, "start") } else { (end - 4.0, "end") };
    let number = if ratio >= 10.0 { format!("{ratio:.0}") } else { format!("{ratio:.2}") };
    let base = y + height - 0.5;
    format!(
        "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height}\" fill=\"{colour}\"/>\n\
         <text x=\"{at:.1}\" y=\"{base:.1}\" font-size=\"10\" text-anchor=\"{anchor}\">{number}</text>\n"
    )
}

/// Lines at the powers of two, a strong one at 1.
fn grid(bottom: f64) -> String {
    let mut out = String::new();
    for doubling in DOUBLINGS.0 as i32..=DOUBLINGS.1 as i32 {
        let x = place(2f64.powi(doubling));
        let (colour, width) = if doubling == 0 { ("#111827", 1.5) } else { ("#d1d5db", 1.0) };
        let name = if doubling < 0 { format!("1/{}", 1 << -doubling) } else { format!("{}", 1 << doubling) };
        let (top, text) = (TOP - 6.0, TOP - 12.0);
        let line = format!(r#"<line x1="{x:.1}" y1="{top}" x2="{x:.1}" y2="{bottom}""#);
        let _ = write!(out, r#"{line} stroke="{colour}" stroke-width="{width}"/>"#);
        let _ = writeln!(out, r#"<text x="{x:.1}" y="{text}" text-anchor="middle">{name}</text>"#);
    }
    out
}

fn legend(colours: &BTreeMap<&str, &str>) -> String {
    let mut out = String::new();
    let mut x = 14.0;
    for (peer, colour) in colours {
        let _ = writeln!(
            out,
            r#"<rect x="{x}" y="36" width="11" height="11" fill="{colour}"/><text x="{}" y="46">against {peer}</text>"#,
            x + 16.0,
        );
        x += 40.0 + 8.0 * (peer.len() as f64 + 8.0);
    }
    out
}

//! Figures as a bar chart in SVG: groups of bars with a label on their left, and the figure behind each bar.
//!
//! The chart is written as text: bars need no library. It has its own background, so that its colours have enough
//! contrast on white and on dark pages.

use std::fmt::Write as _;

const WIDTH: f64 = 900.0;
const LEFT: f64 = 270.0;
const RIGHT: f64 = 130.0;
const TOP: f64 = 66.0;
const BAR: f64 = 14.0;
const GAP: f64 = 12.0;
const COLOURS: [&str; 3] = ["#2563eb", "#d97706", "#059669"];

/// How long a bar is.
#[derive(Clone, Copy)]
#[allow(dead_code, reason = "each benchmark that shares this file has one scale")]
pub enum Scale {
    /// In proportion to its value
    Linear,
    /// In proportion to the logarithm of its value over this one
    From(f64),
}

/// A chart that grows by groups.
pub struct Bars {
    pub title: String,
    pub scale: Scale,
    /// The names of the bars of each group, at most as many as there are colours.
    pub names: Vec<&'static str>,
    groups: Vec<Group>,
}

/// A label, and the bars with their numbers within the group, their values and what stands behind them.
type Group = (String, Vec<(usize, f64, String)>);

impl Bars {
    pub fn new(title: impl Into<String>, scale: Scale, names: &[&'static str]) -> Bars {
        assert!(names.len() <= COLOURS.len(), "a colour for each bar of a group");
        Bars { title: title.into(), scale, names: names.to_vec(), groups: Vec::new() }
    }

    /// Adds a group: for each of its bars the value and the text behind it, if it was measured.
    pub fn group(&mut self, label: impl Into<String>, bars: impl IntoIterator<Item = Option<(f64, String)>>) {
        let bars = bars.into_iter().enumerate().filter_map(|(at, bar)| bar.map(|(value, text)| (at, value, text)));
        self.groups.push((label.into(), bars.collect()));
    }

    /// The chart.
    pub fn svg(&self) -> String {
        let Bars { title, .. } = self;
        let (bars, end) = self.drawn();
        let font = r##"font-family="system-ui, sans-serif" font-size="12" fill="#111827""##;
        format!(
            r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {end}" {font}>
<title>{title}</title>
<rect width="{WIDTH}" height="{end}" fill="#ffffff"/>
<text x="14" y="24" font-size="15" font-weight="600">{title}</text>
{}{bars}</svg>
"##,
            self.legend()
        )
    }

    fn legend(&self) -> String {
        let mut out = String::new();
        for (number, (name, colour)) in self.names.iter().zip(COLOURS).enumerate() {
            let (x, text) = (14.0 + 160.0 * number as f64, 30.0 + 160.0 * number as f64);
            // Writing to a String cannot fail.
            let _ = writeln!(
                out,
                r#"<rect x="{x}" y="36" width="11" height="11" fill="{colour}"/><text x="{text}" y="46">{name}</text>"#,
            );
        }
        out
    }

    /// All groups, and where they end.
    fn drawn(&self) -> (String, f64) {
        let (mut out, mut y) = (String::new(), TOP);
        for (label, bars) in &self.groups {
            let (x, middle) = (LEFT - 10.0, y + BAR * bars.len() as f64 / 2.0 + 4.0);
            let _ = writeln!(out, r#"<text x="{x}" y="{middle}" text-anchor="end">{label}</text>"#);
            for (at, value, text) in bars {
                let (width, height, base) = (self.length(*value).max(1.0), BAR - 1.5, y + BAR - 3.0);
                let _ = writeln!(
                    out,
                    "<rect x=\"{LEFT}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height}\" fill=\"{}\"/>\n\
                     <text x=\"{:.1}\" y=\"{base:.1}\" font-size=\"11\">{text}</text>",
                    COLOURS[*at],
                    LEFT + width + 5.0,
                );
                y += BAR;
            }
            y += GAP;
        }
        (out, y)
    }

    fn length(&self, value: f64) -> f64 {
        let values = self.groups.iter().flat_map(|(_, bars)| bars).map(|(_, value, _)| *value);
        let longest = values.fold(f64::MIN_POSITIVE, f64::max);
        let share = match self.scale {
            Scale::Linear => value / longest,
            Scale::From(low) if longest > low => (value.max(low) / low).ln() / (longest / low).ln(),
            Scale::From(_) => 0.0,
        };
        share * (WIDTH - LEFT - RIGHT)
    }
}

//! The trace of a run: a line per step, a hash over all lines, and the last lines for a report.
//!
//! Two runs of a seed that differ in any visible step have different hashes.

use std::collections::VecDeque;
use std::fmt::{self, Write as _};

/// Lines kept for the report of a failure.
const KEPT: usize = 80;

/// See the module documentation.
pub struct Trace {
    hash: u64,
    lines: u64,
    print: bool,
    kept: VecDeque<String>,
    buffer: String,
}

impl Trace {
    /// An empty trace. `print` writes each line to standard output.
    pub(crate) fn new(print: bool) -> Trace {
        // The offset basis of FNV-1a.
        Trace { hash: 0xcbf2_9ce4_8422_2325, lines: 0, print, kept: VecDeque::new(), buffer: String::new() }
    }

    /// Adds a line: the virtual time in nanoseconds, and the step.
    pub fn line(&mut self, now: u64, what: fmt::Arguments<'_>) {
        let mut line = std::mem::take(&mut self.buffer);
        line.clear();
        // Writing to a string cannot fail.
        let _ = write!(line, "{:>12.6} {what}", now as f64 / 1e9);
        for byte in line.bytes() {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        self.lines += 1;
        if self.print {
            println!("{line}");
        }
        if self.kept.len() == KEPT {
            self.buffer = self.kept.pop_front().unwrap_or_default();
        }
        self.kept.push_back(line);
    }

    /// FNV-1a over all lines.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// Number of lines.
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// The last lines.
    pub fn tail(&self) -> Vec<String> {
        self.kept.iter().cloned().collect()
    }
}

//! EXPLAIN: shows a plan, as text in PostgreSQL's form or as its JSON. EXPLAIN ANALYZE adds what a run has counted of
//! each node.
//!
//! [`walk`] makes a tree of nodes with properties of a plan, which [`text`] and [`json`] print. The executor counts
//! into a [`profile`].
//!
//! # Layers
//!
//! 1. `keys`, `profile`, `report`, `tree`: conditions of access paths as text; what a run counts; how reads were
//!    served, as text; the tree
//! 2. `json`, `options`, `text`, `walk`: the formats, the options, from plans to trees

mod json;
mod keys;
mod options;
mod profile;
mod report;
mod text;
mod tree;
mod walk;

use std::time::Duration;

use super::explained::{Explain, ExplainFormat};
use super::node::{ResultColumn, Whole};
pub(crate) use options::{format_of, no_plan, options_of};
use pgtypes::{Names, SqlType};
pub(crate) use profile::{NodeKey, Profile, StatementRun};
pub(crate) use report::show_report;

impl Explain {
    /// The rows of the result. `names`: the names of types.
    pub(crate) fn rows(&self, whole: &Whole<'_>, run: Option<&StatementRun<'_>>, names: &dyn Names) -> Vec<String> {
        let tree = walk::tree(whole, (&self.options, names), run);
        let milliseconds = |time: Duration| time.as_secs_f64() * 1_000.0;
        let mut summary = Vec::new();
        if self.options.summary {
            summary.push(("Planning Time", milliseconds(self.planning)));
            summary.extend(run.map(|run| ("Execution Time", milliseconds(run.elapsed))));
        }
        match self.options.format {
            ExplainFormat::Json => vec![json::document(&tree, &summary)],
            ExplainFormat::Text => {
                let mut lines = text::lines(&tree);
                lines.extend(summary.into_iter().map(|(name, time)| format!("{name}: {time:.3} ms")));
                lines
            }
        }
    }
}

/// The column of EXPLAIN's result.
pub(crate) fn column(format: ExplainFormat) -> ResultColumn {
    let ty = if format == ExplainFormat::Json { SqlType::JSON } else { SqlType::TEXT };
    ResultColumn { name: "QUERY PLAN".to_owned(), ty, origin: (0, 0) }
}

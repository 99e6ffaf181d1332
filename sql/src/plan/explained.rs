//! What a plan keeps of the EXPLAIN that it is for. Pure data.

use std::time::Duration;

/// The form of the result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ExplainFormat {
    /// A row for each line.
    #[default]
    Text,
    /// One row.
    Json,
}

/// The options of an EXPLAIN. BUFFERS, SETTINGS and WAL are accepted and show nothing: there are no shared buffers, no
/// settings of the planner, and the log is not the statement's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ExplainOptions {
    /// Whether the statement runs.
    pub(crate) analyze: bool,
    /// Whether the output columns are shown.
    pub(crate) verbose: bool,
    /// Whether estimates are shown.
    pub(crate) costs: bool,
    /// Whether the times of nodes are shown.
    pub(crate) timing: bool,
    /// Whether the times of planning and of the run are shown.
    pub(crate) summary: bool,
    pub(crate) format: ExplainFormat,
}

/// An EXPLAIN of a bound statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Explain {
    pub(crate) options: ExplainOptions,
    /// The time that the binder has taken.
    pub(crate) planning: Duration,
}

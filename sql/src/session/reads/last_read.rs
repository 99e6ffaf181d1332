//! What a statement has read, as `SHOW cortado.last_read` and EXPLAIN ANALYZE print it. Pure.

use std::fmt;

use kv::client::ReadReport;
use tso::Timestamp;

use crate::plan::show_report;

/// How the last statement read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum LastRead {
    /// It read no data.
    #[default]
    Nothing,
    /// The leaders served it, at this snapshot. Nobody counted.
    Leader(Timestamp),
    /// What its requests have reported.
    Reported(ReadReport),
}

impl LastRead {
    /// Adds the report of more requests of the same statement.
    pub(crate) fn add(&mut self, report: ReadReport) {
        let (requests, round_trips) = match self {
            LastRead::Reported(before) => (before.requests, before.round_trips),
            LastRead::Nothing | LastRead::Leader(_) => (0, 0),
        };
        *self = LastRead::Reported(ReadReport {
            requests: report.requests.saturating_add(requests),
            round_trips: report.round_trips.saturating_add(round_trips),
            ..report
        });
    }
}

impl fmt::Display for LastRead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LastRead::Nothing => f.write_str("none"),
            LastRead::Leader(start_ts) => write!(f, "path=leader start_ts={start_ts}"),
            LastRead::Reported(report) => f.write_str(&show_report(report)),
        }
    }
}

#[cfg(test)]
mod tests {
    use kv::api::ReadPath;
    use kv::client::Endpoint;
    use kv::memory::MemoryCluster;

    use super::*;

    #[test]
    fn reports_of_a_statement_add_up() {
        let at = |ms| Timestamp::new(ms, 1);
        let store = MemoryCluster::new().stores()[0];
        let report =
            |path, round_trips| ReadReport { path, store, start_ts: at(5), safe_ts: at(6), requests: 1, round_trips };
        let mut last = LastRead::default();
        assert_eq!(last.to_string(), "none");
        last.add(report(ReadPath::ReadIndex, 1));
        last.add(report(ReadPath::Grant, 0));
        let text = format!("path=grant store={store} node={store} round_trips=1 requests=2 start_ts=5.1 safe_ts=6.1");
        assert_eq!(last.to_string(), text);
        assert_eq!(LastRead::Leader(at(7)).to_string(), "path=leader start_ts=7.1");
    }
}

//! How reads were served, as text: for EXPLAIN ANALYZE and `SHOW cortado.last_read`. Pure.

use kv::api::ReadPath;
use kv::client::ReadReport;

/// A report on one line.
pub(crate) fn show_report(report: &ReadReport) -> String {
    let ReadReport { path, store, start_ts, safe_ts, requests, round_trips } = report;
    let path = match path {
        ReadPath::Lease => "lease",
        ReadPath::ReadIndex => "read_index",
        ReadPath::Grant => "grant",
        ReadPath::SessionSnapshot => "session_snapshot",
        ReadPath::Unproven => "unproven",
    };
    // A node has one store, with its id.
    format!(
        "path={path} store={store} node={store} round_trips={round_trips} requests={requests} start_ts={start_ts} \
         safe_ts={safe_ts}"
    )
}

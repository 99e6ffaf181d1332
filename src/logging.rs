//! Logs: where they go, in which form, and which ones.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

use crate::cli::LogFormat;

/// A filter that does not parse; printed as one line.
#[derive(Debug, thiserror::Error)]
#[error("--log {filter:?}: {why}")]
pub(crate) struct BadFilter {
    filter: String,
    why: String,
}

/// Starts logging to standard error. `filter` wins over RUST_LOG, which wins over `info`.
pub(crate) fn start(format: LogFormat, filter: Option<&str>) -> Result<(), BadFilter> {
    let from_environment = std::env::var("RUST_LOG").ok();
    let filter = filter.or(from_environment.as_deref()).unwrap_or("info");
    let parsed =
        EnvFilter::try_new(filter).map_err(|e| BadFilter { filter: filter.to_string(), why: e.to_string() })?;
    let logs = tracing_subscriber::fmt()
        .with_env_filter(parsed)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    match format {
        LogFormat::Text => logs.init(),
        LogFormat::Json => logs.json().init(),
    }
    Ok(())
}

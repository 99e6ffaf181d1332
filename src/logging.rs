//! Sets up logging: the filter, the format and the output.

use std::env::{self, VarError};
use std::io::{self, IsTerminal};

use tracing_subscriber::EnvFilter;

use crate::cli::{LogArgs, LogFormat};

/// An invalid log filter; printed as one line.
#[derive(Debug, thiserror::Error)]
#[error("{origin} {filter:?}: {why}")]
pub(crate) struct BadFilter {
    origin: &'static str,
    filter: String,
    why: String,
}

/// Starts logging to standard error. `--log` overrides RUST_LOG, which overrides `info`.
pub(crate) fn start(logs: &LogArgs) -> Result<(), BadFilter> {
    let filter = choose_filter(logs.log.as_deref(), env::var("RUST_LOG"))?;
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        // If the reader has closed the pipe, the node continues without logs. Reporting the error on the same stream
        // would panic.
        .log_internal_errors(false);
    match logs.log_format {
        LogFormat::Text => lines.init(),
        LogFormat::Json => lines.json().init(),
    }
    Ok(())
}

fn choose_filter(flag: Option<&str>, environment: Result<String, VarError>) -> Result<EnvFilter, BadFilter> {
    let (origin, filter) = match (flag, environment) {
        (Some(flag), _) => ("--log", flag.to_string()),
        (None, Ok(filter)) => ("RUST_LOG", filter),
        (None, Err(VarError::NotPresent)) => ("--log", "info".to_string()),
        (None, Err(VarError::NotUnicode(filter))) => {
            let filter = filter.to_string_lossy().into_owned();
            return Err(BadFilter { origin: "RUST_LOG", filter, why: "not UTF-8".to_string() });
        }
    };
    EnvFilter::try_new(&filter).map_err(|e| BadFilter { origin, filter, why: e.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_filter_is_reported_with_its_origin() {
        let filter = |flag, environment: Result<&str, VarError>| {
            choose_filter(flag, environment.map(str::to_string)).map(|f| f.to_string()).map_err(|e| e.to_string())
        };
        let unset = || Err(VarError::NotPresent);
        assert_eq!(filter(None, unset()), Ok("info".to_string()));
        assert_eq!(filter(None, Ok("warn")), Ok("warn".to_string()));
        assert_eq!(filter(Some("debug"), Ok("==")), Ok("debug".to_string()));
        assert!(filter(Some("=="), unset()).unwrap_err().starts_with("--log \"==\": "));
        assert!(filter(None, Ok("==")).unwrap_err().starts_with("RUST_LOG \"==\": "));
    }
}

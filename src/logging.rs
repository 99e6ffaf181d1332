//! Logs: where they go, in which form, and which ones.

use std::env::{self, VarError};
use std::io::{self, IsTerminal};

use tracing_subscriber::EnvFilter;

use crate::cli::{LogArgs, LogFormat};

/// A filter that does not parse; printed as one line.
#[derive(Debug, thiserror::Error)]
#[error("{origin} {filter:?}: {why}")]
pub(crate) struct BadFilter {
    origin: &'static str,
    filter: String,
    why: String,
}

/// Starts logging to standard error. `--log` wins over RUST_LOG, which wins over `info`.
pub(crate) fn start(logs: &LogArgs) -> Result<(), BadFilter> {
    let filter = chosen(logs.log.as_deref(), env::var("RUST_LOG"))?;
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        // Nobody may be reading any more. It would say so on the same stream, by way of a panic, and the node serves on without logs.
        .log_internal_errors(false);
    match logs.log_format {
        LogFormat::Text => lines.init(),
        LogFormat::Json => lines.json().init(),
    }
    Ok(())
}

fn chosen(flag: Option<&str>, environment: Result<String, VarError>) -> Result<EnvFilter, BadFilter> {
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
    fn a_bad_filter_is_told_by_where_it_stands() {
        let told = |flag, environment: Result<&str, VarError>| {
            chosen(flag, environment.map(str::to_string)).map(|f| f.to_string()).map_err(|e| e.to_string())
        };
        let unset = || Err(VarError::NotPresent);
        assert_eq!(told(None, unset()), Ok("info".to_string()));
        assert_eq!(told(None, Ok("warn")), Ok("warn".to_string()));
        assert_eq!(told(Some("debug"), Ok("==")), Ok("debug".to_string()));
        assert!(told(Some("=="), unset()).unwrap_err().starts_with("--log \"==\": "));
        assert!(told(None, Ok("==")).unwrap_err().starts_with("RUST_LOG \"==\": "));
    }
}

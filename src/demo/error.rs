//! The errors of the demo.

use std::fmt::Display;
use std::io;
use std::time::Duration;

use super::regions::RegionsError;
use crate::client::ClientError;

/// All nodes must serve within this time.
pub(super) const START_TIMEOUT: Duration = Duration::from_secs(60);

/// Why the demo cannot run; printed as one line.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DemoError {
    /// A port is taken.
    #[error("port {port} is not free: {source}; choose others with --pg-port")]
    Port { port: u16, source: io::Error },
    /// Ports would lie above 65535.
    #[error("--pg-port {0} leaves no room for the nodes' other ports")]
    PortTooHigh(u16),
    /// A file or process could not be created.
    #[error("{what}: {source}")]
    Io { what: String, source: io::Error },
    /// A node ended by itself.
    #[error("node {node} did not start: {last_line} (more in {log})")]
    NodeDied { node: u16, last_line: String, log: String },
    /// All nodes ended by themselves.
    #[error("all nodes ended by themselves; see the logs in {dir}")]
    AllEnded { dir: String },
    /// The nodes did not serve in time.
    #[error("the nodes did not come up within {START_TIMEOUT:?}; see the logs in {dir}")]
    Timeout { dir: String },
    /// The flags of the regions do not fit together.
    #[error(transparent)]
    Regions(#[from] RegionsError),
    /// A call to a node failed.
    #[error(transparent)]
    Client(#[from] ClientError),
}

/// The error of a file, a socket or a process, which `what` names.
pub(super) fn io_error(what: impl Display) -> impl FnOnce(io::Error) -> DemoError {
    move |source| DemoError::Io { what: what.to_string(), source }
}

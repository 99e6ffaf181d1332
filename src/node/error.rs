//! The errors that end a node.

use super::join::JoinError;
use super::ports::PortError;
use crate::data_dir::DataDirError;

/// Why a node does not start or cannot continue; printed as one line.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NodeError {
    /// A port is not available.
    #[error(transparent)]
    Port(#[from] PortError),
    /// The data directory cannot be used.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// The node cannot be a member of the cluster.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// A layer failed to start, or failed for good.
    #[error(transparent)]
    Serving(#[from] ServingError),
    /// The gRPC server ended by itself.
    #[error("the server for other nodes failed: {0}")]
    Grpc(#[from] tonic::transport::Error),
}

/// Why the layers do not start, or failed for good; printed as one line.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServingError {
    /// The data directory failed.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// A port failed.
    #[error(transparent)]
    Port(#[from] PortError),
    /// A layer failed to start.
    #[error("{layer}: {why}")]
    Layer { layer: &'static str, why: String },
    /// The node belongs to another cluster.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// The disk or the log failed; no write is acknowledged any more.
    #[error("the store stopped serving: {0}")]
    Poisoned(String),
}

/// Maps any error to [`ServingError::Layer`] with the name of the layer.
pub(super) fn in_layer<E: std::fmt::Display>(layer: &'static str) -> impl Fn(E) -> ServingError {
    move |error| ServingError::Layer { layer, why: error.to_string() }
}

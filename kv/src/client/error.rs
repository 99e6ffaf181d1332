//! What the client tells the transaction layer, grouped by what that layer does next.

use std::time::Duration;

use raftstore::RegionId;

use crate::api::KeyError;

/// What the transaction layer sees.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// Resolve, wait or abort.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A write may or may not have taken effect.
    #[error("outcome of a write to region {0} is unknown")]
    Undetermined(RegionId),
    /// Retries ran out; the last failure is given. Nothing is known to have been done.
    #[error("no replica could serve within {waited:?}: {last}")]
    Unavailable {
        /// How long it was tried.
        waited: Duration,
        /// The last failure.
        last: String,
    },
    /// A failure that no retry mends.
    #[error("{0}")]
    Failed(String),
}

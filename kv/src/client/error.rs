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
    /// A request writes more than a region takes at a time. It had no effect.
    #[error("a write of {bytes} bytes; at most {limit} fit into one")]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The most that is taken.
        limit: usize,
    },
    /// A request was refused as such: it contradicts itself or a limit. It had no effect.
    #[error("invalid request: {0}")]
    Invalid(String),
    /// A failure that retries did not mend.
    #[error("{0}")]
    Failed(String),
}

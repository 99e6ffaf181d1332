//! Errors that the client returns, grouped by what the transaction layer does next.

use std::time::Duration;

use raftstore::RegionId;

use crate::api::{KeyError, Response};

/// Why an operation of the client failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// A region evaluated the request and refused it. The transaction resolves locks, waits or aborts.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A commit may have been delivered, and no response says what became of it: it took effect, will take effect, or
    /// never does. The deadline passed, a later attempt was refused for good, or a response was of another kind than a
    /// commit asks for. Only `commit` and `commit_primary` return it.
    #[error("outcome of a write to region {0} is unknown")]
    Undetermined(RegionId),
    /// The deadline passed. An idempotent write may have taken effect; the failed request of a commit did not.
    #[error("no replica could serve within {waited:?}: {last}")]
    Unavailable {
        /// Time from the first failure to the last.
        waited: Duration,
        /// The last failure.
        last: String,
    },
    /// A read was refused until the deadline passed, because a store has no room for it: it serves others first.
    #[error("no room for a read within {waited:?}: {last}")]
    Overloaded {
        /// Time from the first failure to the last.
        waited: Duration,
        /// The last failure.
        last: String,
    },
    /// One item exceeds the largest message or proposal. That request had no effect.
    #[error("a write of {bytes} bytes; at most {limit} fit into one")]
    TooLarge {
        /// Size of the message or proposal.
        bytes: usize,
        /// The limit that it exceeds.
        limit: usize,
    },
    /// A request contradicts itself or exceeds a limit, so every store refuses it. That request had no effect.
    #[error("invalid request: {0}")]
    Invalid(String),
    /// A failure that retries did not cure, such as corrupt data on every replica asked, or a response of another kind
    /// than the request asks for. An idempotent write may have taken effect; the failed request of a commit did not.
    /// Also a setting out of range, when a client is created.
    #[error("{0}")]
    Failed(String),
}

impl ClientError {
    /// A store answered `request` with a response of another kind.
    pub(super) fn unexpected_response(request: &str, response: &Response) -> ClientError {
        let kind = match response {
            Response::Value(_) => "a value",
            Response::Pairs { .. } => "pairs",
            Response::Started { .. } => "a read at a timestamp of its own",
            Response::Replica { .. } => "a read at a replica",
            Response::Status(_) => "a transaction status",
            Response::Locks(_) => "the state of locks",
            Response::AsyncLocked { .. } => "locks of an async commit",
            Response::Committed { .. } => "a commit",
            Response::Waits { .. } => "waits",
            Response::OldLocks { .. } => "old locks",
            Response::Acquired(_) => "row locks",
            Response::Ttl(_) => "a ttl",
            Response::Done => "an acknowledgement",
        };
        ClientError::Failed(format!("a store answered {request} with {kind}"))
    }
}

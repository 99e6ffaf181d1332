//! What travels over a link: requests one way, answers the other, and a few messages about the link itself.

use std::fmt;

use bytes::Bytes;

/// The most bytes of a request or an answer.
pub const PAYLOAD_BYTES_MAX: usize = 16 << 20;

/// A request of one link. The requesting side numbers its requests from 1 and uses no number twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestId(u64);

impl RequestId {
    /// Wraps a number.
    pub const fn new(raw: u64) -> RequestId {
        RequestId(raw)
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a request asks for, hence how its payload and its answer are encoded. The crate that serves a kind assigns its
/// number; `docs/formats.md` lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kind(u8);

impl Kind {
    /// Wraps a number.
    pub const fn new(raw: u8) -> Kind {
        Kind(raw)
    }

    /// The number.
    pub const fn get(self) -> u8 {
        self.0
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Why a node did not execute a request. It had no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A limit is reached; a later attempt may succeed.
    Busy,
    /// The node is stopping.
    Stopping,
    /// The node serves no requests of this kind.
    UnknownKind,
    /// The payload cannot be decoded; every node would refuse it.
    Malformed,
}

/// A refusal with its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// What the caller reacts to.
    pub reason: Reason,
    /// For logs and error texts.
    pub why: String,
}

/// The answer to a request: its encoded result, or why it was not executed.
pub type Reply = Result<Bytes, Refused>;

/// One message. Which ones a side accepts is decided by [`crate::caller`] and [`crate::callee`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Asks for the execution of a request.
    Request {
        /// Its number.
        id: RequestId,
        /// What it asks for.
        kind: Kind,
        /// After so many milliseconds the requesting side no longer waits.
        timeout_ms: u32,
        /// The encoded request.
        payload: Bytes,
    },
    /// Nobody waits for the answer any more.
    Cancel(RequestId),
    /// The result of a request.
    Answer {
        /// The request.
        id: RequestId,
        /// The encoded result.
        payload: Bytes,
    },
    /// The request was not executed.
    Refusal {
        /// The request.
        id: RequestId,
        /// Why.
        refused: Refused,
    },
    /// Asks for a [`Message::Pong`]: is the other side alive?
    Ping,
    /// Answers a [`Message::Ping`].
    Pong,
    /// The serving side is stopping: it answers what it has and takes no more.
    GoAway,
}

impl Message {
    /// The bytes that it takes in memory and about those on the wire, beyond a fixed overhead.
    pub fn payload_len(&self) -> usize {
        match self {
            Message::Request { payload, .. } | Message::Answer { payload, .. } => payload.len(),
            Message::Refusal { refused, .. } => refused.why.len(),
            Message::Cancel(_) | Message::Ping | Message::Pong | Message::GoAway => 0,
        }
    }
}

//! What the store needs from outside: a way to send messages to other stores, and somebody to tell who leads.

use raft::eraftpb::Message;

use crate::region::{Epoch, PeerMeta, RegionId, Term};
use crate::snapshot::SnapshotKey;

/// A Raft message with its envelope.
#[derive(Clone, Debug, PartialEq)]
pub struct RaftMessage {
    /// The region whose replicas talk.
    pub region: RegionId,
    /// The sender's version of the region.
    pub epoch: Epoch,
    /// The sender.
    pub from: PeerMeta,
    /// The receiver.
    pub to: PeerMeta,
    /// What raft-rs says.
    pub message: Message,
}

/// Why a message was not taken; Raft repeats what matters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The bounded queue to that store is full, or its connection is down.
    #[error("queue to the store is full or its connection is down")]
    Unreachable,
    /// It is larger than a frame may be.
    #[error("a message of {bytes} bytes; at most {limit} fit into a frame")]
    TooLarge {
        /// What it may take.
        bytes: usize,
        /// The most that is taken.
        limit: usize,
    },
    /// No address is known for the store.
    #[error("no address is known for the store")]
    UnknownStore,
}

/// Sends messages to other stores. Never blocks; may drop, duplicate, delay and reorder.
pub trait Transport: Send + Sync + 'static {
    /// Queues a message to `message.to.store`.
    fn send(&self, message: RaftMessage) -> Result<(), SendError>;
    /// Queues a `MsgSnapshot` together with the snapshot file it names, which the receiver has in full and durable before it sees the
    /// message. Calls `done` with whether it was delivered.
    fn send_snapshot(&self, message: RaftMessage, snapshot: SnapshotKey, done: Box<dyn FnOnce(bool) + Send>);
}

/// Told about changes of leadership on this store. Called on the store's thread: must not block.
pub trait RoleListener: Send + Sync + 'static {
    /// This store leads `region` in `term` and has applied an entry of that term: it serves.
    fn on_leader(&self, region: RegionId, term: Term);
    /// This store no longer leads `region`; `term` is the last one announced by `on_leader`.
    fn on_step_down(&self, region: RegionId, term: Term);
}

/// A listener that does nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoListener;

impl RoleListener for NoListener {
    fn on_leader(&self, _region: RegionId, _term: Term) {}
    fn on_step_down(&self, _region: RegionId, _term: Term) {}
}

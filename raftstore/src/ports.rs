//! The interfaces the store needs from outside: a transport to other stores, a listener for leadership changes, and
//! what a leader hands to its successor.

use std::io;
use std::sync::Arc;

use engine::store::StoreError;
use parking_lot::RwLock;
use raft::eraftpb::Message;
use rustix::io::Errno;

use crate::region::{Epoch, LogIndex, PeerMeta, RegionId, Term};
use crate::snapshot::SnapshotKey;

/// A Raft message with its envelope.
#[derive(Clone, Debug, PartialEq)]
pub struct RaftMessage {
    /// The region of sender and receiver.
    pub region: RegionId,
    /// The sender's epoch of the region.
    pub epoch: Epoch,
    /// The sending replica.
    pub from: PeerMeta,
    /// The receiving replica.
    pub to: PeerMeta,
    /// The raft-rs message.
    pub message: Message,
}

impl RaftMessage {
    /// The snapshot file that a `MsgSnapshot` refers to.
    pub(crate) fn snapshot_key(&self) -> Option<SnapshotKey> {
        let metadata = self.message.snapshot.as_ref()?.metadata.as_ref()?;
        Some(SnapshotKey { region: self.region, term: Term::new(metadata.term), index: LogIndex::new(metadata.index) })
    }
}

/// Why a transport refused a message. Raft repeats what matters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The bounded queue to the store is full, or its connection is down.
    #[error("queue to the store is full or its connection is down")]
    Unreachable,
    /// The message exceeds the frame limit.
    #[error("a message of {bytes} bytes; at most {limit} fit into a frame")]
    TooLarge {
        /// Upper bound of its encoded size.
        bytes: usize,
        /// The largest size accepted.
        limit: usize,
    },
    /// No address is known for the store.
    #[error("no address is known for the store")]
    UnknownStore,
}

/// What became of a snapshot that was to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// The file is complete and durable at the receiver, and the receiver's store has taken the message.
    Delivered,
    /// The receiver, or the way to it, is busy, slow, full or down. That says nothing against the file: it is sent
    /// again later. The receiver may even have it.
    Busy,
    /// The file is missing, unreadable or damaged here, or arrived damaged. A file for which this is repeated is built
    /// anew.
    Damaged,
}

impl Delivery {
    /// The delivery of a file that could not be read at the sender. Only damage says something against the file: a
    /// process without file descriptors or memory reads it later.
    pub fn of_unreadable(error: &StoreError) -> Delivery {
        let is_lost = |error: &io::Error| {
            error.kind() == io::ErrorKind::NotFound || Errno::from_io_error(error) == Some(Errno::IO)
        };
        match error {
            StoreError::Corrupt(_) => Delivery::Damaged,
            StoreError::Io(error) if is_lost(error) => Delivery::Damaged,
            _ => Delivery::Busy,
        }
    }
}

/// Reports a [`Delivery`]; called exactly once, on any thread.
pub type DeliveryDone = Box<dyn FnOnce(Delivery) + Send>;

/// Sends messages to other stores. Never blocks. May drop, duplicate, delay and reorder messages.
pub trait Transport: Send + Sync + 'static {
    /// Queues a message to `message.to.store`. It leaves with the next [`Transport::flush`], or before.
    fn send(&self, message: RaftMessage) -> Result<(), SendError>;
    /// Sends the queued messages. Called at the end of each turn that queued any. Does nothing where
    /// [`Transport::send`] sends at once.
    fn flush(&self) {}
    /// Queues a `MsgSnapshot` and the snapshot file it refers to. The file is complete and durable at the receiver
    /// before the message is delivered there. A file that the receiver already has need not be sent again. Calls `done`
    /// exactly once.
    fn send_snapshot(&self, message: RaftMessage, snapshot: SnapshotKey, done: DeliveryDone);
}

/// Notified of leadership changes of this store. Called on the store's thread; must not block.
pub trait RoleListener: Send + Sync + 'static {
    /// This store leads `region` in `term`, has applied an entry of that term, and now serves.
    fn on_leader(&self, region: RegionId, term: Term);
    /// This store no longer leads `region`. `term` is that of the last `on_leader`.
    fn on_step_down(&self, region: RegionId, term: Term);
}

/// What leaders have in memory and hand over with their leadership. Called on the store's thread; must not block.
///
/// It travels in the `MsgTimeoutNow` of a transfer, which is obeyed only by a replica that has exactly the leader's
/// log. Its receiver inherits it if it wins the election that the message started. Then no leader came in between, and
/// the old one has committed nothing since it packed: otherwise a quorum would have had more log than the candidate.
pub trait LeaderMemory: Send + Sync + 'static {
    /// The leader of `region` in `term` offers its leadership to another replica. Returns what that one is to inherit.
    /// From now on nothing changes in it, until [`LeaderMemory::keep`] for the same term. May be called again.
    fn pack(&self, region: RegionId, term: Term) -> Option<Vec<u8>>;
    /// This store leads `region` in `term`, and inherits what the leader of the term before has packed. Comes before
    /// the first request of that term is served.
    fn inherit(&self, region: RegionId, term: Term, packed: &[u8]);
    /// The leader of `region` in `term` keeps its leadership: nobody can inherit what it has packed any more.
    fn keep(&self, region: RegionId, term: Term);
}

/// The place of a [`LeaderMemory`], which is set once the store is open.
pub(crate) type MemorySlot = Arc<RwLock<Option<Arc<dyn LeaderMemory>>>>;

/// A listener that ignores all events.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoListener;

impl RoleListener for NoListener {
    fn on_leader(&self, _region: RegionId, _term: Term) {}
    fn on_step_down(&self, _region: RegionId, _term: Term) {}
}

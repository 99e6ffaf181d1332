//! Errors of the multi-Raft layer, grouped by the caller's reaction.

use crate::region::{PeerMeta, Region, RegionId, StoreId};
use crate::snapshot::SnapshotKey;

/// The request reached the wrong peer or came at the wrong time. It had no effect: refresh the route and send it again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegionError {
    /// Another replica leads, or none does; or the store stops, or is poisoned, and will not serve again.
    #[error("store does not lead region {region}")]
    NotLeader {
        /// The requested region.
        region: RegionId,
        /// The leader, if this replica knows one.
        leader: Option<PeerMeta>,
    },
    /// This store holds no replica of the region.
    #[error("region {region} is not on store {store}")]
    RegionNotFound {
        /// The requested region.
        region: RegionId,
        /// The store that received the request.
        store: StoreId,
    },
    /// The request was made for another epoch of the region.
    #[error("epoch of region {} does not match", current.id)]
    EpochNotMatch {
        /// The region as this replica knows it.
        current: Box<Region>,
    },
    /// A key lies outside the region's range.
    #[error("key is not in region {region}")]
    KeyNotInRegion {
        /// The requested region.
        region: RegionId,
    },
    /// A bounded queue is full: back off, then send again.
    #[error("store {store} is busy: {what}")]
    ServerBusy {
        /// The store that received the request.
        store: StoreId,
        /// The queue that is full.
        what: String,
    },
    /// The replica changed term during the request. The request had no effect.
    #[error("leadership of region {region} changed under the request")]
    StaleCommand {
        /// The requested region.
        region: RegionId,
    },
    /// The replica cannot serve yet: it has not applied an entry of its own term, it installs a snapshot, leadership is
    /// being transferred, or no quorum answers.
    #[error("region {region} cannot serve yet: {why}")]
    NotReady {
        /// The requested region.
        region: RegionId,
        /// What prevents it from serving.
        why: String,
    },
}

/// Why a proposal was not confirmed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProposeError {
    /// The proposal had no effect: reroute and send again.
    #[error(transparent)]
    Region(#[from] RegionError),
    /// The batch exceeds `max_proposal_bytes`. It had no effect, and a retry fails the same way.
    #[error("a write of {bytes} bytes; at most {limit} fit into one")]
    TooLarge {
        /// Bytes of the batch.
        bytes: usize,
        /// The largest batch accepted, in bytes.
        limit: usize,
    },
    /// The proposal may or may not take effect: this replica lost leadership, installed a snapshot or stopped before
    /// the outcome was known.
    #[error("outcome of a proposal to region {region} is unknown")]
    Undetermined {
        /// The region of the proposal.
        region: RegionId,
    },
    /// The store is poisoned: its log or disk failed, its data is damaged, or one of its threads panicked. It
    /// acknowledges nothing until it is restarted. A proposal that was already queued may still take effect on other
    /// replicas.
    #[error("store is poisoned: {0}")]
    Poisoned(String),
}

/// Why a store failed to open.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A setting is out of range.
    #[error(transparent)]
    Config(#[from] crate::config::InvalidConfig),
    /// The key-value store failed.
    #[error(transparent)]
    Store(#[from] engine::store::StoreError),
    /// The log failed.
    #[error(transparent)]
    Log(#[from] engine::log::LogError),
    /// Records on disk contradict each other.
    #[error("region {region} is damaged: {what}")]
    Damaged {
        /// The region.
        region: RegionId,
        /// The contradiction.
        what: String,
    },
    /// A snapshot installation was interrupted, and its file is missing.
    #[error(
        "snapshot {snapshot} of region {region} was being installed, and its file is missing; put it back into the \
         snapshot directory, or replace this store by a new one with an empty data directory: the other replicas have \
         the data"
    )]
    SnapshotMissing {
        /// The region.
        region: RegionId,
        /// Names the file.
        snapshot: SnapshotKey,
    },
    /// A snapshot installation was interrupted, and its file is damaged.
    #[error(
        "snapshot {snapshot} of region {region} was being installed, and its file is damaged ({what}); put a sound \
         copy into the snapshot directory, or replace this store by a new one with an empty data directory: the other \
         replicas have the data"
    )]
    SnapshotDamaged {
        /// The region.
        region: RegionId,
        /// Names the file.
        snapshot: SnapshotKey,
        /// Offset and kind of the damage.
        what: String,
    },
    /// A region on disk has no peer on this store.
    #[error("region {region} has no peer on store {store}")]
    NotHere {
        /// The region.
        region: RegionId,
        /// This store.
        store: StoreId,
    },
    /// The registry already holds metrics of a store.
    #[error(transparent)]
    Metrics(#[from] prometheus::Error),
    /// A thread could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(#[from] std::io::Error),
}

/// Why a store did not stop cleanly. Acknowledged writes are safe in the log.
#[derive(Debug, thiserror::Error)]
pub enum StopError {
    /// The store had failed before.
    #[error("store is poisoned: {0}")]
    Poisoned(String),
    /// The last flush failed; the next start replays more of the log.
    #[error(transparent)]
    Store(#[from] engine::store::StoreError),
}

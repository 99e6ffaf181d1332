//! Errors of the multi-Raft layer, grouped by what the caller does next.

use crate::region::{PeerMeta, Region, RegionId, StoreId};
use crate::snapshot::SnapshotKey;

/// The request reached the wrong peer, or at a wrong time: refresh the route and send it again. Nothing was done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegionError {
    /// Another replica leads, or none does.
    #[error("store does not lead region {region}")]
    NotLeader {
        /// The region asked for.
        region: RegionId,
        /// Who leads, as far as this replica knows.
        leader: Option<PeerMeta>,
    },
    /// This store holds no replica of the region.
    #[error("region {region} is not on store {store}")]
    RegionNotFound {
        /// The region asked for.
        region: RegionId,
        /// The store that was asked.
        store: StoreId,
    },
    /// The request was made for another version of the region; the present one is given.
    #[error("epoch of region {} does not match", current.id)]
    EpochNotMatch {
        /// The region as this replica knows it.
        current: Box<Region>,
    },
    /// A key outside the region's range.
    #[error("key is not in region {region}")]
    KeyNotInRegion {
        /// The region asked for.
        region: RegionId,
    },
    /// A bounded queue is full: back off, then send again.
    #[error("store {store} is busy: {what}")]
    ServerBusy {
        /// The store that was asked.
        store: StoreId,
        /// Which queue.
        what: String,
    },
    /// The replica changed term while the request was under way; it had no effect.
    #[error("leadership of region {region} changed under the request")]
    StaleCommand {
        /// The region asked for.
        region: RegionId,
    },
    /// The replica cannot serve yet: its own term is not applied, it installs a snapshot, or no quorum answers.
    #[error("region {region} cannot serve yet: {why}")]
    NotReady {
        /// The region asked for.
        region: RegionId,
        /// What it waits for.
        why: String,
    },
}

/// Why a proposal was not confirmed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProposeError {
    /// It had no effect: reroute and send again.
    #[error(transparent)]
    Region(#[from] RegionError),
    /// It exceeds the store's `max_proposal_bytes`. It had no effect, and would be refused again.
    #[error("a write of {bytes} bytes; at most {limit} fit into one")]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The most that is taken.
        limit: usize,
    },
    /// It may or may not take effect: leadership was lost, or the node is stopping, before its fate was known.
    #[error("outcome of a proposal to region {region} is unknown")]
    Undetermined {
        /// The region it was proposed to.
        region: RegionId,
    },
    /// The store's log or disk failed; it acknowledges nothing until restarted.
    #[error("store is poisoned: {0}")]
    Poisoned(String),
}

/// Why a store did not open.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A setting is wrong.
    #[error(transparent)]
    Config(#[from] crate::config::InvalidConfig),
    /// The key-value store failed.
    #[error(transparent)]
    Store(#[from] engine::store::StoreError),
    /// The log failed.
    #[error(transparent)]
    Log(#[from] engine::log::LogError),
    /// What is on disk contradicts itself.
    #[error("region {region} is damaged: {what}")]
    Damaged {
        /// The region.
        region: RegionId,
        /// What does not fit.
        what: String,
    },
    /// A snapshot was being installed when the store stopped, and its file is not there to go on with.
    #[error(
        "snapshot {snapshot} of region {region} was being installed, and its file is missing; put it back into the snapshot \
         directory, or replace this store by a new one with an empty data directory: the other replicas have the data"
    )]
    SnapshotMissing {
        /// The region.
        region: RegionId,
        /// What names the file.
        snapshot: SnapshotKey,
    },
    /// A snapshot was being installed when the store stopped, and its file is damaged.
    #[error(
        "snapshot {snapshot} of region {region} was being installed, and its file is damaged ({what}); put a sound copy into \
         the snapshot directory, or replace this store by a new one with an empty data directory: the other replicas have the data"
    )]
    SnapshotDamaged {
        /// The region.
        region: RegionId,
        /// What names the file.
        snapshot: SnapshotKey,
        /// Where, and what is wrong there.
        what: String,
    },
    /// A region that has no peer on this store.
    #[error("region {region} has no peer on store {store}")]
    NotHere {
        /// The region.
        region: RegionId,
        /// This store.
        store: StoreId,
    },
    /// Metrics of this store are in the registry already.
    #[error(transparent)]
    Metrics(#[from] prometheus::Error),
    /// A thread could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(#[from] std::io::Error),
}

/// Why a store did not stop cleanly. What it had acknowledged is safe in the log.
#[derive(Debug, thiserror::Error)]
pub enum StopError {
    /// It had failed before.
    #[error("store is poisoned: {0}")]
    Poisoned(String),
    /// The last flush failed; the next start replays more of the log.
    #[error(transparent)]
    Store(#[from] engine::store::StoreError),
}

//! Ids of the multi-Raft layer, and the region descriptor.

use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u64);

        impl $name {
            /// Wraps a number.
            pub const fn new(raw: u64) -> $name {
                $name(raw)
            }
            /// The number.
            pub const fn get(self) -> u64 {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id!(
    /// A region: one key range and the Raft group that replicates it. 0 is never used.
    RegionId
);
id!(
    /// A replica of a region, unique over the life of the cluster. 0 is never used.
    PeerId
);
id!(
    /// The store of a node. 0 is never used.
    StoreId
);
id!(
    /// A Raft term.
    Term
);
id!(
    /// An index of a region's Raft log. 0 is the position before the first entry.
    LogIndex
);

id!(
    /// A bound in the order of time of the layer above, which this crate only compares. 0 bounds nothing.
    Floor
);

/// The floors of a region. They are replicated with its data and only rise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Floors {
    /// A dated write at or below it has no effect on any replica, from the entry that raised it on.
    pub writes: Floor,
    /// What is read below it may be incomplete, because old data is removed up to it. Not above `writes`.
    pub reads: Floor,
}

impl Floors {
    /// Each floor is the higher one of both.
    pub fn raised_to(self, other: Floors) -> Floors {
        Floors { writes: self.writes.max(other.writes), reads: self.reads.max(other.reads) }
    }
}

impl RegionId {
    /// The system region: store registry, id counters, the oracle's mark, the SQL catalog. It never splits.
    pub const SYSTEM: RegionId = RegionId(1);
    /// The first data region: all keys outside the system region.
    pub const FIRST_DATA: RegionId = RegionId(2);
}

/// The version of a region's descriptor. A request made under another epoch is refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Epoch {
    /// Increases with every membership change.
    pub conf_ver: u64,
    /// Increases with every range change (split, merge).
    pub version: u64,
}

/// The role of a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PeerRole {
    /// Counts in quorums and may lead.
    Voter,
    /// Receives the log, but neither votes nor leads.
    Learner,
}

/// A replica and its store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PeerMeta {
    /// Id of the replica.
    pub id: PeerId,
    /// The store that holds it.
    pub store: StoreId,
    /// Voter or learner.
    pub role: PeerRole,
}

/// A region's descriptor: its range of storage keys, its epoch and its replicas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// Id of the region.
    pub id: RegionId,
    /// First key of the range; empty means before every key.
    pub start: Vec<u8>,
    /// First key after the range; empty means after every key.
    pub end: Vec<u8>,
    /// Version of this descriptor.
    pub epoch: Epoch,
    /// The replicas.
    pub peers: Vec<PeerMeta>,
}

impl Region {
    /// Whether the range contains `key`.
    pub fn contains(&self, key: &[u8]) -> bool {
        key >= self.start.as_slice() && (self.end.is_empty() || key < self.end.as_slice())
    }

    /// Whether the range contains all of `[start, end)`. An empty `end` means after every key.
    pub fn contains_range(&self, start: &[u8], end: &[u8]) -> bool {
        start >= self.start.as_slice() && (self.end.is_empty() || (!end.is_empty() && end <= self.end.as_slice()))
    }

    /// Whether a replica can run on this descriptor: the range is not empty, there is a voter, no id is 0, and no peer
    /// or store occurs twice.
    pub fn is_sound(&self) -> bool {
        let distinct = |mut ids: Vec<u64>| {
            let count = ids.len();
            ids.sort_unstable();
            ids.dedup();
            ids.len() == count && ids.first() != Some(&0)
        };
        self.id.get() != 0
            && self.peers.iter().any(|p| p.role == PeerRole::Voter)
            && distinct(self.peers.iter().map(|p| p.id.get()).collect())
            && distinct(self.peers.iter().map(|p| p.store.get()).collect())
            && (self.end.is_empty() || self.start < self.end)
    }

    /// The replica on `store`, if any.
    pub fn peer_on(&self, store: StoreId) -> Option<PeerMeta> {
        self.peers.iter().copied().find(|p| p.store == store)
    }

    /// The replica with this id, if any.
    pub fn peer(&self, id: PeerId) -> Option<PeerMeta> {
        self.peers.iter().copied().find(|p| p.id == id)
    }
}

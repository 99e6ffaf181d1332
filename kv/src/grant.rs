//! What stores say to each other about grants. `proto` has the wire form.

use raftstore::{LogIndex, RegionError, RegionId, StoreId};
use tso::Timestamp;

/// Every transaction that can commit at or below `ts` has its lock or its commit record in the region's log at or below
/// `index`. It holds for ever, for the range that the region has at this version of its epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The region.
    pub region: RegionId,
    /// The version of its epoch.
    pub version: u64,
    /// A timestamp; 0 grants nothing.
    pub ts: Timestamp,
    /// An index of its log.
    pub index: LogIndex,
}

/// Asks the store that leads some regions for grants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskGrants {
    /// Who asks.
    pub from: StoreId,
    /// The grants shall cover this timestamp, which the oracle has issued. [`Timestamp::ZERO`]: a fresh one, which the
    /// store takes when the request arrives.
    pub ts: Timestamp,
    /// The regions.
    pub regions: Vec<RegionId>,
}

/// Answers [`AskGrants`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenGrants {
    /// The timestamp that was asked for, or a later one; the fresh one. [`Timestamp::ZERO`] if all is refused.
    pub ts: Timestamp,
    /// How often the leader asked another node for the fresh one.
    pub asked: u32,
    /// A grant that does not cover `ts` waits for a write that has no place in the log yet.
    pub grants: Vec<Grant>,
    /// The regions without a grant.
    pub refused: Vec<(RegionId, RegionError)>,
}

/// Grants that nobody asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushGrants {
    /// Who gives them.
    pub from: StoreId,
    /// Of all grants that the exchange implies.
    pub ts: Timestamp,
    /// Some regions' grants.
    pub grants: Vec<Grant>,
    /// Set if the message speaks for all regions that the sender leads and the receiver has.
    pub exchange: Option<Exchange>,
}

/// One of a sequence of messages from a store to another, each of which says what has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// The sequence. Each life of a sender begins another one.
    pub incarnation: u64,
    /// The place in the sequence.
    pub number: u64,
    /// Whether the message stands for itself: what is not in it is not granted.
    pub is_full: bool,
    /// Regions that are not granted any more.
    pub withdrawn: Vec<RegionId>,
}

/// Answers [`PushGrants`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushAnswer {
    /// Whether the receiver lacks an earlier message of the sequence: the next one must be full.
    pub lacks: bool,
    /// Regions of the sender that were read at the receiver lately.
    pub wanted: Vec<RegionId>,
}

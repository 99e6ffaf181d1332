//! Plain types of the log: group ids, positions, durability. The lowest layer of the engine.

/// The number of a Raft group. The log does not interpret it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(pub u64);

/// The position of a commit group in the log. Grows by one per commit group; all batches of the group have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn(pub u64);

/// The condition for the acknowledgement of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// It reached the operating system.
    Buffered,
    /// It survives power loss.
    Synced,
}

/// The first and last index a group holds; `last + 1 == first` when it holds none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupBounds {
    /// Index of the first entry kept.
    pub first: u64,
    /// Index of the last entry.
    pub last: u64,
}

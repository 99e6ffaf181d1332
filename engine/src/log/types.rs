//! The log's plain types: group ids, positions, durability. Nothing of the engine is below this file.

/// A Raft group, by its number. What it stands for is the caller's business.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(pub u64);

/// Position of a commit group in the log's history. Grows with every commit group; batches that share one share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn(pub u64);

/// When a write may be acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Once the operating system has it.
    Buffered,
    /// Once it survives power loss.
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

//! The column families of the key-value store.
//!
//! There are four, fixed by the format: three for MVCC data and one for the store's own records of its regions. Every
//! layer above names them through this enum, never by string.

/// A column family of the key-value store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cf {
    /// Long values, by key and start_ts, and the raw records of the system region.
    Default,
    /// Percolator locks, by key.
    Lock,
    /// Commit and rollback records, by key and descending commit_ts.
    Write,
    /// Per-region state and applied index, by region. Local to this store, never part of a snapshot.
    Meta,
}

impl Cf {
    /// Every column family, in the order of their codes.
    pub const ALL: [Cf; 4] = [Cf::Default, Cf::Lock, Cf::Write, Cf::Meta];
    /// The column families that hold a region's replicated data, in the order of their codes.
    pub const DATA: [Cf; 3] = [Cf::Default, Cf::Lock, Cf::Write];

    /// Its name in RocksDB.
    pub const fn name(self) -> &'static str {
        match self {
            Cf::Default => "default",
            Cf::Lock => "lock",
            Cf::Write => "write",
            Cf::Meta => "meta",
        }
    }

    /// Its code on disk and on the wire.
    pub const fn code(self) -> u8 {
        match self {
            Cf::Default => 0,
            Cf::Lock => 1,
            Cf::Write => 2,
            Cf::Meta => 3,
        }
    }

    /// The column family with this code, if any.
    pub const fn from_code(code: u8) -> Option<Cf> {
        match code {
            0 => Some(Cf::Default),
            1 => Some(Cf::Lock),
            2 => Some(Cf::Write),
            3 => Some(Cf::Meta),
            _ => None,
        }
    }
}

//! Deliberate bugs, so that a test can prove that it finds real ones. Each is inert unless a setting names it.

/// A deliberate bug of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlantedBug {
    /// A write releases its latches when it is proposed, before it is applied.
    EarlyLatchRelease,
    /// A proposal with an unknown outcome does not fence its region.
    MissingFence,
    /// A kept scan reads the locks of each page from a new snapshot, but its cursor over the write records stays on the
    /// old one.
    StaleScanCursor,
    /// A read does not raise `max_ts`.
    MaxTsNotRaised,
    /// A write reads `max_ts` before it publishes its locks in memory.
    MaxTsBeforeLocks,
    /// A write releases its locks in memory when it is proposed, before it is applied.
    EarlyMemoryRelease,
    /// A leader computes commit_ts although `max_ts` is not synced in its term.
    UnsyncedOnePhase,
    /// A store takes the timestamp of each read that has none ahead, when the read before it arrives.
    TimestampAhead,
    /// A store takes no least commit_ts for a prewrite that leaves it to the store: start_ts is the only bound.
    LeastNotTaken,
    /// The primary's lock of an async commit does not name the last secondary.
    ForgottenSecondary,
}

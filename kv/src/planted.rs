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
}

//! Deliberate bugs, so that a test can prove that it finds real ones. Each is inert unless a setting names it.

/// A deliberate bug of the coordinator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlantedBug {
    /// The commit_ts is fetched before the prewrites are sent.
    CommitTsBeforePrewrites,
    /// A transaction whose outcome is unknown is run again, under a new start_ts.
    UnknownOutcomeRerun,
    /// The secondaries are committed before the primary.
    SecondariesFirst,
    /// The resolver rolls back the locks of a committed transaction.
    CommittedRolledBack,
    /// A commit falls back to two phases although every lock that it has is one of an async commit.
    FallbackOnAsyncLocks,
}

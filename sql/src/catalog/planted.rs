//! Deliberate bugs of leases and schema changes, so that a test can prove that it finds real ones. Inert unless a test
//! plants one.

/// A deliberate bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlantedBug {
    /// A transaction commits without a greatest commit_ts.
    UnboundCommit,
    /// A renewal commits without a greatest commit_ts.
    UnboundRenewal,
    /// A node that acquires a lease takes the catalog of its first look.
    NoSecondLook,
    /// A table is dropped or truncated without being closed first.
    NoClosing,
    /// A step does not wait for a node that has not adopted its version.
    ImpatientStep,
    /// A transaction that has taken its start_ts with its first read does not look at the catalog again.
    UncheckedStart,
    /// A node adopts a version without waiting for its transactions.
    NoDrain,
    /// The locks of a node without a lease are left alone.
    LocksLeft,
    /// Closed tables are opened again without a mark that their schema change fails on.
    UnfencedReopening,
}

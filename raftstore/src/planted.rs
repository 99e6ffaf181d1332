//! Deliberate bugs, so that a simulator can prove that its checkers would find real ones.
//!
//! Compiled only with the feature `planted-bugs`, and inert unless `StoreConfig::planted_bug` names one.

/// A deliberate bug, so that a simulator can prove that its checkers find real ones. Inert unless
/// `StoreConfig::planted_bug` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PlantedBug {
    /// Entries and votes count as durable once queued. A crash then loses acknowledged writes.
    AckBeforeFsync,
    /// A leader applies and acknowledges its entries when it appends them, before a quorum has them.
    ApplyAboveCommit,
    /// A restarted replica forgets its vote in its term.
    VoteForgottenOnRestart,
    /// A restarted replica votes at once, although it may have promised a leader not to vote for one election timeout.
    PromiseForgottenOnRestart,
    /// The leader's lease never ends, so it answers reads while a newer leader writes.
    LeaseReadAfterNewerLeader,
    /// A read index request is answered under the lease, by a clock reading from before the request arrived.
    ReadIndexUnderOldClock,
}

//! Deliberate bugs, so that a simulator can prove that its checkers would find real ones.
//!
//! Compiled only with the feature `planted-bugs`, and inert unless `StoreConfig::planted_bug` names one.

/// A bug that breaks one promise of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PlantedBug {
    /// Entries and votes count as durable as soon as they are queued: acknowledged writes are lost by a crash.
    AckBeforeFsync,
    /// A leader applies (and acknowledges) its entries when it appends them, before a quorum has them.
    ApplyAboveCommit,
    /// A restarted replica has forgotten for whom it voted in its term.
    VoteForgottenOnRestart,
    /// A restarted replica votes at once, although it may have promised a leader an election timeout of peace.
    PromiseForgottenOnRestart,
    /// The leader's lease never ends: it answers reads although a newer leader writes.
    LeaseReadAfterNewerLeader,
    /// A read that asks for a read index is answered under the lease, as of a clock that was read before the request came.
    ReadIndexUnderOldClock,
}

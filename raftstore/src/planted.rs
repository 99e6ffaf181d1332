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
    /// A restarted replica has forgotten for whom it voted, and votes at once.
    VoteForgottenOnRestart,
    /// The leader's lease never ends: it answers reads although a newer leader writes.
    LeaseReadAfterNewerLeader,
}

//! The checkers. They know nothing of the simulator: they take observations and answer whether these are allowed. The
//! world feeds those of the cluster. A load feeds those of what clients see: `history`, `independent`, `replay`,
//! `snapshot_isolation`.
//!
//! # Layers
//!
//! 1. `history`, `raft`, `replicas`, `snapshot_isolation`, `snapshots`: each stands alone
//! 2. `independent`, `replay`: take the histories of `snapshot_isolation`
//!
//! # What they check
//!
//! - `history`: reads and writes of shared registers are linearizable; read-modify-writes of private lists lose
//!   nothing.
//! - `independent`: the histories of `snapshot_isolation`, by a checker of others, for several consistency models.
//! - `raft`: one leader per term, one vote per peer and term; terms and applied indexes never move back.
//! - `replicas`: an index stands for the same entry and the same data on every replica.
//! - `replay`: transactions on lists fit the timestamps that they were given.
//! - `snapshot_isolation`: transactions that read and append to lists are snapshot isolated, also in real time.
//! - `snapshots`: no file is sent twice, and none is built anew because its receiver was busy. Counts the writes
//!   confirmed while snapshots of their region are built, sent and installed.

pub mod history;
pub mod independent;
pub(crate) mod raft;
pub mod replay;
pub(crate) mod replicas;
pub mod snapshot_isolation;
pub(crate) mod snapshots;

/// The description of a violation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation(pub String);

/// Result of a check.
pub type Checked = Result<(), Violation>;

/// Returns a violation.
pub fn violated<T>(what: impl Into<String>) -> Result<T, Violation> {
    Err(Violation(what.into()))
}

//! The checkers of the cluster. They know nothing of the simulator: they take observations and answer whether these
//! are allowed.
//!
//! # Layers
//!
//! 1. `raft`, `replicas`, `snapshots`: each stands alone
//!
//! # What they check
//!
//! - `raft`: one leader per term, one vote per peer and term; terms and applied indexes never move back.
//! - `replicas`: an index stands for the same entry and the same data on every replica.
//! - `snapshots`: no file is sent twice, and none is built anew because its receiver was busy. Counts the writes
//!   confirmed while snapshots of their region are built, sent and installed.

pub(crate) mod raft;
pub(crate) mod replicas;
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

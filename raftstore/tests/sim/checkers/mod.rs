//! What must hold. The checkers know nothing of the simulator: they are told what was seen and answer whether it may be.
//!
//! - `history`: reads and writes of shared registers are linearizable, reads-modify-writes of private lists lose nothing.
//! - `raft`: one leader per term, one vote per term, terms and applied indexes never go back.
//! - `replicas`: the same index means the same entry and the same data on every replica.

pub(crate) mod history;
pub(crate) mod raft;
pub(crate) mod replicas;

/// A broken promise, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Violation(pub(crate) String);

/// Result of a check.
pub(crate) type Checked = Result<(), Violation>;

/// A violation, for `return`.
pub(crate) fn violated<T>(what: impl Into<String>) -> Result<T, Violation> {
    Err(Violation(what.into()))
}

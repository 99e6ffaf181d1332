//! The checkers of what clients see. They know nothing of the simulator: they take observations and answer whether
//! these are allowed.
//!
//! - `availability`: writes succeed and leaderships last while enough stores are healthy.
//! - `history`: reads and writes of shared registers are linearizable; read-modify-writes of private lists lose
//!   nothing.

pub(crate) mod availability;
pub(crate) mod history;

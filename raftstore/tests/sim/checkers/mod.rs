//! The checkers of what clients see that only this simulation needs. They know nothing of the simulator: they take
//! observations and answer whether these are allowed. `simulator::checkers::history` checks the answers.
//!
//! - `availability`: writes succeed and leaderships last while enough stores are healthy.

pub(crate) mod availability;

//! Functions of dates, times and spans of time. What they compute is in [`crate::datetime`]; the zone and the start of
//! the transaction are those of the call's environment.
//!
//! # Layers
//!
//! 1. `value`: arguments and results
//! 2. `arithmetic`, `fields`, `forms`, `make`, `periods`, `zones`: rows and their functions

pub(super) mod arithmetic;
pub(super) mod fields;
pub(super) mod forms;
pub(super) mod make;
pub(super) mod periods;
mod value;
pub(super) mod zones;

#[cfg(test)]
mod tests;

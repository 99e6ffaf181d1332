//! A simulated cluster, for tests: the production store loop, apply, log engine and snapshot code of several stores,
//! one thread at a time, over simulated disks, network and time.
//!
//! A test implements [`Load`], what runs on the cluster, and starts a [`World`] with it. The world injects the faults
//! that a seed draws and checks the cluster. The load makes calls into stores and checks their answers. Both share one
//! queue of events, so a seed replays exactly. `raftstore/tests/sim` and `tests/sim` are such tests.
//!
//! # Layers
//!
//! A module imports from layers with a lower number only.
//!
//! 1. `checkers`, `events`, `options`, `preempted`, `stats`, `trace`: invariants, events and faults, what a seed
//!    decides, reads that stop before they look at the clock, counts, and the steps of a run
//! 2. `failure`, `network`: the report of a violation; which messages arrive, and when
//! 3. `node`, `seeds`: a store: its disks survive crashes, its processes do not; running many seeds
//! 4. `world`: the run, and the interface of the load
//! 5. `delivery`, `faults`, `health`, `recovery`: parts of the world: messages and snapshot files, how each fault
//!    begins and ends, what keeps a store from serving, and how all heals

pub mod checkers;
mod delivery;
pub mod events;
pub mod failure;
mod faults;
mod health;
pub mod network;
pub mod node;
pub mod options;
pub mod preempted;
mod recovery;
pub mod seeds;
pub mod stats;
#[cfg(test)]
mod tests;
pub mod trace;
pub mod world;

pub use world::{Load, World};

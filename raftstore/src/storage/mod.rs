//! The Raft log of one region, over its group in the log engine.
//!
//! raft-rs reads the log through [`PeerStorage`]. Changes leave the peer as [`LogOp`]s, which the store loop adds to
//! its batch. After a restart [`recover()`] reads the durable state.
//!
//! # Layers
//!
//! 1. `log_op`, `cache`: changes to a group and the bytes of an entry; the newest entries in memory
//! 2. `recover`: the durable state after a restart
//! 3. `peer_storage`: the `raft::Storage`

mod cache;
mod log_op;
mod peer_storage;
mod recover;
#[cfg(test)]
mod tests;

pub(crate) use log_op::{LogOp, group, restart, truncate};
pub(crate) use peer_storage::PeerStorage;
pub(crate) use recover::{Recovered, recover};

//! The Raft log of one region, over its group in the log engine.
//!
//! raft-rs reads the log through [`PeerStorage`]. Changes leave the peer as [`LogOp`]s, which the store loop adds to
//! its batch. After a restart [`recover()`] reads the durable state.
//!
//! # Layers
//!
//! 1. `log_op`, `cache`, `terms`: changes to a group and the bytes of an entry; newest entries and all terms in memory
//! 2. `recover`, `fetches`: the durable state after a restart; old entries read by another thread
//! 3. `peer_storage`: the `raft::Storage`

mod cache;
mod fetches;
mod log_op;
mod peer_storage;
mod recover;
mod terms;
#[cfg(test)]
mod tests;

pub(crate) use fetches::Fetch;
pub(crate) use log_op::{LogOp, decode_entry, group, restart, truncate};
pub(crate) use peer_storage::PeerStorage;
pub(crate) use recover::{Recovered, recover};

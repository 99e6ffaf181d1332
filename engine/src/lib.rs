//! Storage of one node: the Raft log engine and the key-value store of the replicated state.
//!
//! The crate has two independent parts:
//!
//! - [`log`], the only write-ahead log of a node. It takes batches of entries for many Raft groups and makes them
//!   durable with one fdatasync per commit group.
//! - [`store`], the ordered key-value store that committed entries are applied to. Its own WAL is off
//!   (`ARCHITECTURE.md`, "What must always hold").
//!
//! Both store bytes: nothing in this crate knows regions, Raft messages or MVCC versions.
//!
//! # Layers
//!
//! Lowest first.
//!
//! 1. `cf`, `disk`: column families, the file system
//! 2. `batch`: write batches
//! 3. `log`, `store`: the two parts

pub mod batch;
pub mod cf;
pub mod disk;
pub mod log;
pub mod store;

pub use batch::{Op, WriteBatch};
pub use cf::Cf;

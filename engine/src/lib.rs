//! Storage of one node: the Raft log engine and the key-value store of the replicated state.
//!
//! Two things live here and know nothing of each other: [`log`], the only write-ahead log of a node,
//! which takes batches of entries for many Raft groups and makes them durable with one fdatasync per
//! commit group; and [`store`], the ordered key-value store that committed entries are applied to, whose
//! own WAL is off (`ARCHITECTURE.md`, "One fsync"). Both are plain about bytes: nothing in this crate
//! knows what a region, a Raft message or an MVCC version is.

pub mod batch;
pub mod cf;
pub mod disk;
pub mod log;
pub mod store;

pub use batch::{Op, WriteBatch};
pub use cf::Cf;

//! Transactions on one region, and the client that finds regions.
//!
//! Server side: key encoding, MVCC records, the Percolator actions (pure), latches, reads, the gRPC service.
//! Client side: [`client`], which routes requests to region leaders. The two meet in [`api`] and its wire form [`proto`] only.

pub mod api;
pub mod client;
pub mod error;
pub mod key;
pub mod latch;
pub mod memory;
pub mod metrics;
pub mod mvcc;
pub mod percolator;
pub mod placement;
pub mod port;
pub mod proto;
pub mod read;
pub mod read_pool;
pub mod scheduler;
pub mod server;
pub mod service;
pub mod size;

pub use key::Key;

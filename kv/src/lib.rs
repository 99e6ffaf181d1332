//! Transactions on one region, and the client that routes requests to regions.
//!
//! Server side: MVCC records ([`mvcc`]), the Percolator actions ([`percolator`], pure), latches, the read and write
//! paths, and the adapter to links. Client side: [`client`], which finds region leaders and retries. The two sides
//! share only [`api`], [`mod@key`], [`size`] and the wire form [`proto`].
//!
//! # Layers
//!
//! 1. `key`, `placement`, `read_pool`, `detach`: keys and their storage form, the cluster's stores, threads for reads
//!    that take long, futures that run to their end
//! 2. `api`, `grant`, `latch`: requests and responses, what stores say about grants, taking turns on a key
//! 3. `error`, `size`, `proto`, `metrics`, `planted`: errors below the wire, limits, the wire form, the server's
//!    metrics, deliberate bugs
//! 4. `mvcc`, `region_store`, `client`, `locks`: records and snapshot reads, the interface to raftstore, routing and
//!    retries, row locks in memory
//! 5. `percolator`, `scan_cache`, `scan_cost`, `concurrency`, `gc`: the actions (pure), scans and what they have cost
//!    between two pages, computed commit_ts, collection of old versions
//! 6. `grants`, `scan_page`: what lets a replica serve reads; one page of a scan, in slices
//! 7. `read`: the read path
//! 8. `scheduler`, `replica_read`, `old_locks`: the write path, reads that any replica may serve, locks of old
//!    transactions
//! 9. `acquire`: row locks in memory
//! 10. `server`, `memory`: admission limits, reads and writes; a test double of server and endpoint
//! 11. `service`: the adapter to links

mod acquire;
pub mod api;
pub mod client;
pub mod concurrency;
pub mod detach;
pub mod error;
pub mod gc;
pub mod grant;
pub mod grants;
pub mod key;
pub mod latch;
pub mod locks;
pub mod memory;
pub mod metrics;
pub mod mvcc;
mod old_locks;
pub mod percolator;
pub mod placement;
#[cfg(feature = "planted-bugs")]
pub mod planted;
pub mod proto;
pub mod read;
pub mod read_pool;
pub mod region_store;
mod replica_read;
pub mod scan_cache;
pub mod scan_cost;
mod scan_page;
pub mod scheduler;
pub mod server;
pub mod service;
pub mod size;

pub use key::Key;

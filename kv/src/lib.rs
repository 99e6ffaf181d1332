//! Transactions on one region, and the client that routes requests to regions.
//!
//! Server side: MVCC records ([`mvcc`]), the Percolator actions ([`percolator`], pure), latches, the read and write
//! paths, and the gRPC service. Client side: [`client`], which finds region leaders and retries. The two sides share
//! only [`api`], [`mod@key`], [`size`] and the wire form [`proto`].
//!
//! Modules import in one direction, from the top of this list to the bottom:
//!
//! ```text
//! service                      gRPC adapter
//! server                       admission limits, dispatch to reads and writes     memory  test double of both sides
//! scheduler  read              write path, read path                              client  routing and retries
//! region_store                 what the server needs of raftstore                 placement
//! percolator                   actions: snapshot + request -> batch + response
//! mvcc  latch  read_pool  metrics
//! error  proto  size           errors of actions, wire form, size limits
//! api                          requests, responses, errors
//! key                          keys and their storage form
//! ```

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
pub mod proto;
pub mod read;
pub mod read_pool;
pub mod region_store;
pub mod scheduler;
pub mod server;
pub mod service;
pub mod size;

pub use key::Key;

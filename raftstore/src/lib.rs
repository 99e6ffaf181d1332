//! The multi-Raft layer: regions, peers, leases, read index, apply, snapshots, and the transport between stores.
//!
//! It replicates opaque write batches and knows nothing of MVCC, timestamps, transactions or SQL. A node opens a
//! [`StoreRuntime`] and works through its [`StoreHandle`]; a simulator drives a [`StoreCore`] by plain calls.
//!
//! # Layers
//!
//! A module imports from layers with a lower number only.
//!
//! 1. `region`, `time`, `codec`, `config`, `reply`, `mailbox`, `metrics`: ids, time, settings, plain tools
//! 2. `command`, `snapshot`: the bytes of replicated commands and of snapshot files
//! 3. `records`, `error`, `ports`: persistent records, errors, and the interfaces the store needs from outside
//! 4. `storage`: a region's Raft log, as raft-rs reads it
//! 5. `peer`: a region's replica, a pure state machine around raft-rs
//! 6. `delegate`: what readers on other threads see of a replica
//! 7. `messages`: what the loops and workers share
//! 8. `store`, `apply`, `background`, `snapshot_worker`, `log_reader`, `handle`: loops, workers, and their callers'
//!    interface
//! 9. `recovery`, `transport`: from disk to regions, and messages between stores
//! 10. `assembly`: a store without threads
//! 11. `runtime`: a store on threads

mod apply;
pub mod assembly;
mod background;
mod codec;
pub mod command;
pub mod config;
mod delegate;
pub mod error;
pub mod handle;
mod log_reader;
mod mailbox;
mod messages;
mod metrics;
mod peer;
pub mod ports;
pub mod records;
mod recovery;
pub mod region;
mod reply;
pub mod runtime;
pub mod snapshot;
mod snapshot_worker;
mod storage;
mod store;
pub mod time;
pub mod transport;

pub use assembly::{StoreCore, StoreParts, bootstrap};
pub use config::StoreConfig;
pub use error::{OpenError, ProposeError, RegionError, StopError};
pub use handle::{Basis, OnOutcome, RegionContext, RegionSnapshot, RegionStatus, StoreHandle};
pub use region::{Epoch, LogIndex, PeerId, PeerMeta, PeerRole, Region, RegionId, StoreId, Term};
pub use runtime::StoreRuntime;
pub use time::{Clock, MonoTime, RealClock};

//! The multi-Raft layer: regions, peers, leases, read index, apply, snapshots, and the transport between stores.
//!
//! It replicates opaque write batches and knows nothing of MVCC, timestamps, transactions or SQL. A node opens a
//! [`StoreRuntime`] and works through its [`StoreHandle`]; a simulator drives a [`StoreCore`] by plain calls.
//!
//! # Layers
//!
//! A module imports from layers with a lower number only.
//!
//! 1. `region`, `time`, `codec`, `config`, `mailbox`, `metrics`: ids, time, settings, plain tools
//! 2. `command`, `gather`, `snapshot`, `reply`: the bytes of replicated commands and of snapshot files, answers to
//!    futures; when a thread lets others run
//! 3. `records`, `error`, `ports`: persistent records, errors, and the interfaces the store needs from outside
//! 4. `storage`: a region's Raft log, as raft-rs reads it
//! 5. `peer`: a region's replica, a pure state machine around raft-rs
//! 6. `applied`: the applied position and who waits for it
//! 7. `delegate`: what readers on other threads see of a replica
//! 8. `messages`: what the loops and workers share
//! 9. `store`, `apply`, `background`, `snapshot_worker`, `log_reader`, `handle`: loops, workers, and their callers'
//!    interface
//! 10. `recovery`, `transport`, `replica`: from disk to regions, messages between stores, reads at any replica
//! 11. `assembly`: a store without threads
//! 12. `runtime`: a store on threads

mod applied;
mod apply;
pub mod assembly;
mod background;
mod codec;
pub mod command;
pub mod config;
mod delegate;
pub mod error;
mod gather;
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
mod replica;
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
pub use delegate::{DataGeneration, ReplicaState};
pub use error::{OpenError, ProposeError, RegionError, StopError};
pub use handle::{Basis, ProposalObserver, RegionContext, RegionSnapshot, RegionStatus, StoreHandle};
pub use region::{Epoch, Floor, Floors, LogIndex, PeerId, PeerMeta, PeerRole, Region, RegionId, StoreId, Term};
pub use reply::Observer;
pub use runtime::StoreRuntime;
pub use time::{Clock, MonoTime, RealClock};

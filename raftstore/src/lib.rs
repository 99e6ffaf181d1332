//! The multi-Raft layer: regions, peers, leases, read index, apply, snapshots, and routing to peers.
//!
//! It replicates opaque write batches; it knows nothing of MVCC, timestamps, transactions or SQL.

mod apply;
pub mod assembly;
mod background;
mod codec;
pub mod command;
pub mod config;
mod delegate;
pub mod error;
pub mod handle;
mod health;
mod mailbox;
mod messages;
mod metrics;
mod peer;
#[cfg(feature = "planted-bugs")]
pub mod planted;
pub mod ports;
pub mod records;
mod recovery;
pub mod region;
mod reply;
mod router;
pub mod runtime;
pub mod snapshot;
mod storage;
mod store;
pub mod time;
pub mod transport;

pub use assembly::{StoreCore, StoreParts, bootstrap};
pub use config::StoreConfig;
pub use error::{OpenError, ProposeError, RegionError, StopError};
pub use handle::{RegionContext, RegionSnapshot, RegionStatus, StoreHandle};
pub use region::{Epoch, LogIndex, PeerId, PeerMeta, PeerRole, Region, RegionId, StoreId, Term};
pub use runtime::StoreRuntime;
pub use time::{Clock, MonoTime, RealClock};

//! Placement: which stores exist, which are alive, and where every region's leader is.
//!
//! It runs on the leader of the system region. What must survive that leader (the stores, the id counter, the oracle's
//! mark) is replicated there as plain records ([`registry`]). What changes all the time (liveness, leaders) is not
//! stored: each new leader rebuilds it from heartbeats ([`cluster`]), and chooses the safe point of garbage collection
//! by it ([`safe_point`]). These modules are pure. The node does the reads,
//! proposals and messages. The timestamp oracle runs beside it, over the same region ([`oracle`]).
//!
//! # Layers
//!
//! 1. `cluster`, `registry`: the live view, the durable records
//! 2. `oracle`, `safe_point`: the oracle's mark and lease, the choice of the safe point

pub mod cluster;
pub mod oracle;
pub mod registry;
pub mod safe_point;

pub use cluster::{ClusterView, Heartbeat, Liveness, Oldest, RegionEntry, RegionReport, StoreEntry};
pub use registry::{Admission, InstanceId, RegistryError, StoreRecord};

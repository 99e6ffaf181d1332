//! Placement: which stores exist, which are alive, where every region leads.
//!
//! It runs on the leader of the system region. What must outlive a leader (the stores, the id counter) is replicated there
//! as plain records ([`registry`]); what changes all the time (liveness, leaders) is rebuilt from heartbeats by each
//! new leader ([`cluster`]) and never stored. Both are pure: the node carries reads, proposals and messages.

pub mod cluster;
pub mod registry;

pub use cluster::{ClusterView, Heartbeat, Liveness, RegionEntry, RegionReport, StoreEntry};
pub use registry::{Admission, InstanceId, RegistryError, StoreRecord};

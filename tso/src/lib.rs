//! Timestamps: the type, the oracle that issues them, its service and its batching client.
//!
//! Timestamps order transactions over the whole cluster. One oracle at a time issues them, on the leader of the system
//! region (Percolator's design; the physical/logical split is TiDB's).
//!
//! ```text
//! many callers ─▶ TsoClient ─▶ TsoRouter ─┬─▶ TsoService (this node) ─▶ Oracle ─▶ Window (durable mark, lease)
//!                 (batches)    (finds it) └─▶ RemoteSource ─▶ link ─▶ the TsoService of another node
//! ```
//!
//! [`oracle`] is the pure state machine, without clock or disk. [`service`] runs it on the leader. Transactions use
//! [`client`]. [`leap`] decides where the time of a new leader starts.
//!
//! # Layers
//!
//! 1. `timestamp`, `metrics`: the types, the counters
//! 2. `leap`: where the time of a new leader starts
//! 3. `source`, `window`: the interfaces to timestamps and to the system region, with their errors
//! 4. `oracle`, `ahead`: the state machines: timestamps to issue, and those that a client keeps
//! 5. `client`: the batching client
//! 6. `service`: runs the oracle on a node
//! 7. `remote`: the service and the client over the network
//! 8. `router`: finds the oracle among the nodes

mod ahead;
pub mod client;
pub mod leap;
pub mod metrics;
pub mod oracle;
pub mod remote;
pub mod router;
pub mod service;
pub mod source;
pub mod timestamp;
pub mod window;

pub use client::{NewestTimestamp, TsoClient, TsoClientOptions};
pub use leap::{Survey, TimeReport};
pub use metrics::{ClientMetrics, ServiceMetrics};
pub use remote::RemoteSource;
pub use router::{NodeDirectory, TsoRouter};
pub use service::TsoService;
pub use source::{AllocateError, Connect, OracleNode, TsoError, TsoSource};
pub use timestamp::{Timestamp, TsRange};
pub use window::{Inquiry, LeaderTerm, Window, WindowError};

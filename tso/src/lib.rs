//! Timestamps: the type, the oracle that hands them out, its service and its batching client.
//!
//! A timestamp orders transactions over the whole cluster. One oracle at a time serves them, on the leader of
//! the system region (Percolator's design; the physical/logical split is TiDB's).
//!
//! ```text
//! many callers ─▶ TsoClient ─▶ TsoRouter ─┬─▶ TsoService (this node) ─▶ Oracle ─▶ Window (durable mark, lease)
//!                 (batches)    (finds it) └─▶ RemoteSource ─▶ gRPC ─▶ the TsoService of another node
//! ```
//!
//! [`oracle`] decides, without clock or disk; [`service`] runs it on the node that leads; [`client`] is what
//! transactions use; [`cluster`] keeps other clusters out. [`counter`] replaces all of it in tests and in programs of a single process.

pub mod client;
pub mod cluster;
pub mod counter;
pub mod grpc;
pub mod metrics;
pub mod oracle;
pub mod router;
pub mod service;
pub mod timestamp;
pub mod window;

pub use client::{TsRange, TsoClient, TsoClientOptions, TsoError, TsoSource};
pub use cluster::ClusterTag;
pub use counter::CounterSource;
pub use grpc::RemoteSource;
pub use metrics::{ClientMetrics, ServiceMetrics};
pub use router::{Directory, TsoRouter};
pub use service::{AllocateError, TsoService};
pub use timestamp::Timestamp;
pub use window::{LeaderTerm, Window, WindowError};

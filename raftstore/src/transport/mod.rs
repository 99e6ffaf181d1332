//! Raft messages and snapshot files between stores, over gRPC: the production [`Transport`](crate::ports::Transport).
//!
//! ```text
//! store thread -> Queue (two per target store, bounded) -> lane task: frames -> a long-lived stream of each
//!   -> server: decode, check -> Inbox of the target (bounded, never blocks)
//! ```
//!
//! - `lane_kind`: which messages do not wait behind entries. Each of the two lanes to a store is a queue, a task and a
//!   connection.
//! - `queue`: the messages waiting for one lane. If it is full, or closed because the connection is down, it refuses
//!   messages at once.
//! - `lane`: the task that connects, sends the queue in frames, and reconnects with jittered backoff.
//! - `snapshot_stream`: snapshot files, each on its own connection so that bulk data never delays a heartbeat. Few are
//!   sent at a time, under a common rate limit.
//! - `server`: the receiving side. A stream starts with a Hello that names this cluster and this store. A malformed or
//!   oversized message ends its stream and nothing else.
//! - `proto`: the generated types and their checked conversion.
//!
//! Delivery is not reliable; Raft repeats what matters. Guarantees: a message arrives whole or not at all, at the store
//! it is addressed to. A `MsgSnapshot` arrives only after its file is durable there.
//!
//! # Layers
//!
//! 1. `cluster_id`, `metrics`, `pacing`, `proto`: the cluster's identity, counters, delays, wire messages
//! 2. `options`, `queue`, `lane_kind`: settings, the messages waiting for one lane, the lanes to a store
//! 3. `context`, `server`: what outgoing tasks share, the receiving end of all streams
//! 4. `lane`, `snapshot_stream`: the sending ends of message and snapshot streams
//! 5. `sender`: the `Transport`

mod cluster_id;
mod context;
mod lane;
mod lane_kind;
mod metrics;
mod options;
mod pacing;
mod proto;
mod queue;
mod sender;
mod server;
mod snapshot_stream;
#[cfg(test)]
mod tests;

pub use cluster_id::{BadClusterId, ClusterId};
pub use context::AddressBook;
pub use lane_kind::LaneKind;
pub use metrics::{DropReason, TransportMetrics};
pub use options::TransportOptions;
pub use queue::frame_bytes;
pub use sender::GrpcTransport;
pub use server::{Inbox, NotTaken, TransportServer, TransportService};

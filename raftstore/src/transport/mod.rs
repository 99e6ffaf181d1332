//! Raft messages and snapshot files between stores: the production [`Transport`](crate::ports::Transport).
//!
//! ```text
//! store thread: send -> Queue (two per target store, bounded)
//!               flush -> one frame and one write for each lane ═══ TCP ═══> FrameReader -> Inbox of the target
//!                          (the lane's task: connect, what the network did not take, probes)
//! ```
//!
//! - `lane_kind`: which messages do not wait behind entries. Each of the two lanes to a store is a queue, a connection
//!   and a task.
//! - `queue`: the messages waiting for one lane. If it is full, or closed because the connection is down, it refuses
//!   messages at once.
//! - `lane`: the connection. The store thread writes to it at the end of its turn, and never waits. The task connects,
//!   writes what the network did not take at once, probes the other side, and reconnects with jittered backoff.
//! - `stream`: the bytes of a connection: handshake, frames, probes.
//! - `receiver`: the receiving end. Each read of a stream delivers all whole frames in it, with one wake-up. A
//!   malformed or oversized frame ends its stream and nothing else.
//! - `snapshot_stream`: snapshot files, each over gRPC on its own connection so that bulk data never delays a
//!   heartbeat. Few are sent at a time, under a common rate limit.
//! - `server`: accepts both kinds of streams. A stream names the cluster and both stores first.
//! - `proto`: the generated types and their checked conversion.
//!
//! Lanes do not share the link that carries requests between two nodes. A link has one connection, and what the network
//! has taken of a long answer would delay a heartbeat.
//!
//! Delivery is not reliable; Raft repeats what matters. Guarantees: a message arrives whole or not at all, at the store
//! it is addressed to. A `MsgSnapshot` arrives only after its file is durable there.
//!
//! # Layers
//!
//! 1. `cluster_id`, `metrics`, `pacing`, `proto`: the cluster's identity, counters, delays, wire messages
//! 2. `options`, `queue`, `lane_kind`: settings, the messages waiting for one lane, the lanes to a store
//! 3. `context`, `stream`: what outgoing tasks share, the bytes of message streams
//! 4. `lane`, `receiver`, `snapshot_stream`: both ends of message streams, the sending end of snapshots
//! 5. `sender`, `server`: the `Transport`, and the receiving end of all streams

mod cluster_id;
mod context;
mod lane;
mod lane_kind;
mod metrics;
mod options;
mod pacing;
mod proto;
mod queue;
mod receiver;
mod sender;
mod server;
mod snapshot_stream;
mod stream;
#[cfg(test)]
mod tests;

pub use cluster_id::{BadClusterId, ClusterId};
pub use context::AddressBook;
pub use lane_kind::LaneKind;
pub use metrics::{DropReason, TransportMetrics};
pub use options::TransportOptions;
pub use queue::frame_bytes;
pub use receiver::Inbox;
pub use sender::StoreTransport;
pub use server::{TransportServer, TransportService};
pub use stream::FIRST_BYTE;

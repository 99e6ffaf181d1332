//! Requests between two nodes over one connection, many per frame, in both directions at once.
//!
//! ```text
//! callers ─▶ Peer::call ─▶ Caller ─▶ Outbox ─▶ frames ═══ TCP ═══▶ FrameReader ─▶ Callee ─▶ Service
//!    ▲                       │  (pending, deadlines)                                │ (in flight)  │
//!    └────── outcome ◀───────┴◀─ FrameReader ◀══ TCP ══ frames ◀── Outbox ◀─────────┴◀── reply ◀───┘
//! ```
//!
//! A link is opened by the node that requests. Each thread of that node that has a runtime of its own has a link of its
//! own to each other node, its *lane*; all other threads share one. So an answer arrives on the thread that waits for
//! it. A link carries requests of any [`Kind`], as bytes: the crates above put their messages into it. Answers come in
//! any order.
//!
//! Guarantees:
//! - Every request ends once, in bounded time. If it fails, [`CallError`] says whether it may have been executed:
//!   `Lost` only if all of it was handed to the network and no answer came.
//! - Nothing waits for a timer to fill a frame, and no request has a timer of its own.
//! - Every queue is bounded by number and bytes; what exceeds a bound is refused as `Busy`. A side that does not read
//!   delays the other side's sending, then loses its link.
//! - A long payload delays short ones by a part of it and by what the network buffers.
//! - A dead node is found within [`CallerOptions`]'s `2 * keep_alive + keep_alive_timeout`.
//!
//! Transport: plain TCP. `docs/benchmarks.md` has the comparison with gRPC.
//!
//! `hello`, `handshake` and `wire` know nothing of requests. The transport of Raft messages uses them with a protocol
//! of its own.
//!
//! # Layers
//!
//! 1. `lanes`, `message`, `hello`, `metrics`: which thread uses which link; messages, the handshake, counters
//! 2. `frame`, `handshake`: the bytes of frames, the handshake on a connection
//! 3. `outbox`: what waits to be sent
//! 4. `caller`, `callee`: the two sides (pure)
//! 5. `wire`: the connection
//! 6. `client`, `server`: the two sides at work

pub mod callee;
pub mod caller;
pub mod client;
pub mod frame;
pub mod handshake;
pub mod hello;
mod lanes;
pub mod message;
pub mod metrics;
pub mod outbox;
pub mod server;
pub mod wire;

pub use callee::CalleeOptions;
pub use caller::{CallError, CallerOptions, Outcome};
pub use client::{BadAddress, LinkOptions, Links, Peer};
pub use hello::{ClusterTag, FIRST_BYTE};
pub use message::{Kind, PAYLOAD_BYTES_MAX, Reason, Refused, Reply};
pub use metrics::{LinkMetrics, WireMetrics};
pub use server::{Answer, LinkServer, ServerOptions, Service};

//! Grants: how a replica that does not lead proves that a read misses nothing.
//!
//! A [`Grant`](crate::grant::Grant) says: every transaction that can commit at or below `ts` has its lock or its commit
//! record in the region's log at or below `index`. A replica that has applied `index` may serve every read at or below
//! `ts`, for ever, and resolves the locks that it meets like any other reader. `docs/read-paths.md` has the argument.
//!
//! ```text
//! leader's store                                             replica's store
//!   Giver::try_give  <── ask (all regions, one in flight) ──  AskQueue  <── reads that wait
//!        │           ──  answer ───────────────────────────>  HeldGrants ──> reads, once the index is applied
//!        ├── push, every few ms, what is read there ───────>      ^
//!        └── exchange, every 200 ms, what changed ─────────>  Incoming
//! ```
//!
//! # Layers
//!
//! 1. `held`, `asking`, `exchange`, `readers`, `give`, `peers`: the decisions of both sides, the way to other stores
//! 2. `hub`, `links`: reads that wait, requests and answers; other stores over links
//! 3. `stream`: what is sent without being asked

mod asking;
mod exchange;
mod give;
mod held;
mod hub;
mod links;
mod peers;
mod readers;
mod stream;

pub use hub::{Covered, Grants, Wanted};
pub use links::{Addresses, LinkPeers};
pub use peers::{GrantMetrics, GrantsConfig, NoAnswer, Peers};

#[cfg(test)]
mod tests;

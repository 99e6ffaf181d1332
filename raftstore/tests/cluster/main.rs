//! Stores on one thread, with virtual time and a controllable network: replication, reads, transfer, restart,
//! snapshots.

#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod backlog;
mod harness;
mod inheritance;
mod liveness;
mod log_space;
mod messages;
mod reads;
mod replication;
mod runtime;
mod snapshots;
mod stopping;
mod threads;

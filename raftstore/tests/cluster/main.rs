//! Stores on one thread, with virtual time and a network that tests can cut: replication, reads, transfer, restart, snapshots.

#![expect(clippy::unwrap_used, reason = "a test fails where a result is not what it must be")]

mod backlog;
mod harness;
mod log_space;
mod reads;
mod replication;
mod runtime;
mod snapshots;

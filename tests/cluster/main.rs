//! The system's promises, shown with real processes, real drivers and `kill -9`.
//!
//! - [`failures`]: nodes die while clients write; nothing acknowledged is lost and writing goes on.
//! - [`bank`]: transfers between accounts keep the total at every snapshot, through a crash.
//! - [`drivers`]: tokio-postgres, psycopg and psql run one script and see the same.
//! - [`command_line`], [`joining`]: what is typed wrongly, and who does not belong, is told in one line, and nothing changes.
//! - [`demo`], [`single_node`]: what the commands promise, from the first line they print to the last process they end.
//! - [`log_tools`]: what an operator sees of a log, sound and damaged, and that looking changes nothing.
//! - [`serving`]: what a node says while it cannot serve.
//!
//! [`process`] runs the binary, [`harness`] clusters of it, [`clients`] talk to them.

#![allow(
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a test binary, at the edge"
)]

mod bank;
mod clients;
mod command_line;
mod demo;
mod drivers;
mod failures;
mod harness;
mod joining;
mod log_tools;
mod process;
mod serving;
mod single_node;

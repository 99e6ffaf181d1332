//! The system's promises, shown with real processes, real drivers and `kill -9`.
//!
//! - [`failures`]: nodes die while clients write; nothing acknowledged is lost and writing goes on.
//! - [`bank`]: transfers between accounts keep the total at every snapshot, through a crash.
//! - [`drivers`]: tokio-postgres, psycopg and psql run one script and see the same.
//! - [`command_line`]: what is typed wrongly is told in one line, and changes nothing.

#![allow(
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a test binary, at the edge"
)]

mod bank;
mod command_line;
mod drivers;
mod failures;
mod harness;

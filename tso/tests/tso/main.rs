//! The integration tests of `tso`, in one binary.

#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod handovers;
mod oracle_random;
mod oracle_scripts;
mod pauses;
mod region;
mod service;

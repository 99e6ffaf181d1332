//! The integration tests of `txn`, in one binary, because each binary links all layers below.

#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod bank;
mod collection;
mod common;
mod crash;
mod first_reads;
mod handovers;
mod history;
mod limits;
mod real_stores;
mod row_locks;
mod semantics;
mod session_locks;
mod shadow;

//! The integration tests of `kv`, in one binary, because each binary links all layers below.

#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod client;
mod cluster;
mod gc;
mod hot_row;
mod model;
mod page;
mod percolator;
mod point;
mod scan_cost;
mod versions;
mod write_path;

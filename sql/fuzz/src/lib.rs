//! The fuzz targets of the SQL front end.
//!
//! - [`connection`]: bytes of a client, whole and in pieces, through the connection loop.
//! - [`statement`]: a text through parser and binder.

// The future of a session nests deeper than the default depth of the check that it may move between threads.
#![recursion_limit = "256"]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, reason = "code of tests")]

pub mod connection;
pub mod node;
pub mod program;
pub mod replies;
pub mod statement;

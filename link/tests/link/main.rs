//! The integration tests of `link`, in one binary.

#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod misbehaviour;
mod pair;
mod scripts;
mod sockets;
mod support;

//! The tests of the key-value store: one binary, one module for each subject. `common` opens, crashes and dumps stores.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod common;
mod hooks;
mod random;
mod rocks;
mod scripts;

//! The fuzz targets of the Raft log. Each input is a small program, so that the fuzzer mutates operations, and not only
//! bytes that a checksum detects.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, reason = "code of tests")]

pub mod bases;
pub mod batch_decode;
pub mod mutate;
pub mod recover;
pub mod tools;

#[path = "../../tests/log/model/mod.rs"]
pub mod log_model;

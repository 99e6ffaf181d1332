//! What the fuzz targets of the Raft log do with their input. Each input is a small program, so that the fuzzer changes what is
//! done and not only bytes that a checksum refuses.

pub mod bases;
pub mod batch_decode;
pub mod mutate;
pub mod recover;
pub mod tools;

#[path = "../../tests/log/model/mod.rs"]
pub mod log_model;

//! The tests of the Raft log: one binary, one module for each subject.
//!
//! `model` is the reference that the log is compared with. `hooked_disk` and `worn_disk` are disks that tests interfere
//! with. Some tests have a binary of their own: `log_memory` owns the global allocator, `log_power_loss` spawns
//! processes and mounts file systems, `log_corpus` needs the feature `fuzzing`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod api;
mod calls;
mod crash;
mod damage;
mod disk;
mod faults;
mod full;
mod hooked_disk;
mod hostile;
mod in_flight;
mod matrix;
mod metrics;
mod model;
mod modes;
mod panic;
mod planted;
mod prepared;
mod purge;
mod reads;
mod salvage;
mod script;
mod scrub;
mod spares;
mod threads;
mod tools;
mod unsealed;
mod worn_disk;
mod write_back;

//! The integration tests of `sql`, in one binary, because each binary links all layers below.

#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod advisory;
mod behaviour;
mod copy;
mod documented;
mod foreign_keys;
mod gateways;
mod indexes;
mod replica_reads;
mod scripts;
mod sequences;
mod sessions;
mod sqllogic;
mod support;
mod temporary;
mod wire_drivers;
mod wire_golden;
mod wire_malformed;
mod wire_pipelines;

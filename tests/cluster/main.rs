//! System tests with real processes, real drivers and `kill -9`.
//!
//! - [`failures`]: nodes are killed while clients write. No acknowledged row is lost, and writing resumes.
//! - [`advisory`]: advisory locks outlive the leader and end with their node; the statements of migration tools.
//! - [`bank`]: transfers between accounts keep the total in every snapshot, [`versions`] are whole and never stale, and
//!   [`lists`] are snapshot isolated, at every choice of replicas, also when a leader is killed, stopped, replaced, cut
//!   off or paused, and when all nodes are paused.
//! - [`drivers`]: tokio-postgres, psycopg and psql run one script with the same results.
//! - [`command_line`], [`joining`]: invalid flags and foreign nodes are rejected with one line, and nothing changes on
//!   disk.
//! - [`collection`]: old versions go after the ttl, and snapshots that are held stay.
//! - [`counts`]: timestamps, messages, Raft rounds and syncs of each kind of statement.
//! - [`demo`], [`single_node`]: the commands from the first line of output to the end of the last process.
//! - [`mod@differential`]: generated statements answer as on PostgreSQL 15, run beside it.
//! - [`histories`]: what each level of isolation promises holds while a leader is killed, and what it allows is found.
//! - [`isolation`]: Hermitage's cases and our own, on two gateways, answer as PostgreSQL 15, run beside it.
//! - [`locks`]: `cortado locks` names who waits for whom, through any node.
//! - [`log_tools`]: `cortado log` on intact and damaged logs. Inspection changes nothing.
//! - [`power`]: a node loses nothing acknowledged when the power is cut, where it can be cut.
//! - [`replicas`]: what reads at a replica cost, and what goes on at one that is cut off.
//! - [`checks`]: `cortado check table`.
//! - [`serving`]: the answers of a node that cannot serve.
//! - [`truncating`]: DROP and TRUNCATE lose no acknowledged row of another gateway.
//! - [`unknown`]: what `cortado txn status` says of an unknown outcome is so.
//!
//! [`process`] runs the binary, [`harness`] runs clusters of it, over [`links`] where a test asks for them,
//! [`operator`] moves leaderships, [`clients`] are the clients. [`exclusive`] runs one test with a cluster at a time
//! and bounds its time.

#![allow(
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a test binary, at the edge"
)]

mod advisory;
mod bank;
mod checks;
mod clients;
mod collection;
mod command_line;
mod counts;
mod demo;
mod differential;
mod drivers;
mod exclusive;
mod failures;
mod harness;
mod histories;
mod isolation;
mod joining;
mod links;
mod lists;
mod locks;
mod log_tools;
mod operator;
mod power;
#[path = "../../engine/tests/power/mod.rs"]
mod power_cut;
mod process;
mod replicas;
mod serving;
mod sessions;
mod single_node;
mod truncating;
mod unknown;
mod versions;

//! The transaction coordinator: snapshot, write buffer, two-phase commit, lock resolution.
//!
//! Everything that spans regions is decided here; everything on one region is decided by its leader in `kv`.
//!
//! The life of a transaction:
//! 1. [`Database::begin`] takes start_ts from the oracle: the snapshot.
//! 2. [`Transaction::get`], `batch_get` and `scan` read at start_ts with the write buffer laid over (`buffer.rs`).
//!    Locks in the way are
//!    resolved or waited for (`resolver.rs`, `lock_wait.rs`).
//! 3. [`Transaction::put`] and the like buffer; nothing is sent.
//! 4. [`Transaction::commit`] runs the state machine of `committer.rs` in a task of its own (`driver.rs`).
//!
//! Guarantees: snapshot isolation, lost updates included (a key committed after start_ts that we write gives
//! [`TxnError::Conflict`]); an outcome that is not known is told as such, never as a failure.

mod buffer;
mod clock;
mod committer;
mod config;
mod database;
mod decided;
mod driver;
mod error;
mod lock_wait;
mod metrics;
mod resolver;
mod transaction;

pub use config::{BufferLimits, CommitLimits, TxnConfig};
pub use database::Database;
pub use error::TxnError;
pub use transaction::Transaction;

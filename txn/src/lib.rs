//! The transaction coordinator: snapshot, write buffer, commit in one phase, asynchronously or in two phases, lock
//! resolution.
//!
//! The coordinator decides everything that spans regions. The leader of a region, in `kv`, decides everything within
//! it.
//!
//! The life of a transaction:
//! 1. [`Database::begin`] fetches start_ts from the oracle: the snapshot.
//! 2. [`Transaction::get`], `batch_get` and `scan` read at start_ts, with the write buffer laid over (`buffer.rs`).
//!    Locks of other transactions are resolved, passed or waited for (`coordinator.rs`, `resolver.rs`, `timing.rs`).
//! 3. [`Transaction::put`], `insert`, `delete` and `lock` write to the buffer; nothing is sent.
//!    [`Transaction::lock_rows`] locks rows in the memory of their leaders before they are written, and waits for
//!    others (`row_locks.rs`).
//! 4. [`Transaction::commit`] runs the state machine of `committer.rs` (`driver.rs`), to its end whether the caller
//!    waits or not.
//!
//! Guarantees:
//! - Snapshot isolation without lost updates: a write to a key that was committed after start_ts fails with
//!   [`TxnError::Conflict`].
//! - An unknown outcome is reported as [`TxnError::Undetermined`], never as a failure.
//!
//! # Layers
//!
//! 1. `bound`, `error`, `planted`, `timing`: the greatest commit_ts, errors, planted bugs, clock and pauses
//! 2. `config`: settings
//! 3. `buffer`, `committer`, `live_locks`, `live_snapshots`, `metrics`, `renewed`, `status_cache`: the pure parts, what
//!    lives on this node, and the counters
//! 4. `resolver`: resolves the locks of other transactions
//! 5. `coordinator`: what the transactions and commits of a node share
//! 6. `collection`, `row_locks`, `shadow`: a round of garbage collection, up to the safe point of every region; row
//!    locks in memory; compare reads of replicas with the leader's
//! 7. `driver`: runs a commit
//! 8. `transaction`: reads, writes, commit
//! 9. `database`: begins transactions
//! 10. `session_locks`: locks of sessions, across transactions

mod bound;
mod buffer;
mod collection;
mod committer;
mod config;
mod coordinator;
mod database;
mod driver;
mod error;
mod live_locks;
mod live_snapshots;
mod metrics;
#[cfg(feature = "planted-bugs")]
pub mod planted;
mod renewed;
mod resolver;
mod row_locks;
mod session_locks;
mod shadow;
mod status_cache;
mod timing;
mod transaction;

pub use bound::CommitBound;
pub use buffer::View;
pub use collection::{Collection, CollectionError};
pub use config::{BufferLimits, CommitLimits, TxnConfig};
pub use database::Database;
pub use error::TxnError;
pub use live_locks::LockKind;
pub use live_snapshots::OldestSnapshot;
pub use resolver::TxnOutcome;
pub use row_locks::{LockAsk, LockWait};
pub use session_locks::SessionLocks;
pub use transaction::{Savepoint, StatementSnapshot, Transaction};

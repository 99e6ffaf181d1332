//! Versions of a key in the store: the records, and snapshot reads through them.
//!
//! Three column families hold a key. A [`lock`] record in `Cf::Lock` says that a transaction is about to change the
//! key.
//! [`write`](mod@write) records in `Cf::Write`, one per commit or rollback and newest first, say what each transaction
//! did. Long values are in `Cf::Default`, under the start_ts of the transaction that wrote them. [`reader`] serves
//! point reads and [`scanner`] range reads, on any `engine::store::Reader`. Nothing here writes. `docs/formats.md` pins
//! the layout of keys and records.
//!
//! # Layers
//!
//! 1. `lock`, `write`: the records
//! 2. `versions`: a cursor over the versions of a key
//! 3. `reader`, `scanner`: point reads, range reads

pub mod lock;
pub mod reader;
pub mod scanner;
pub mod versions;
pub mod write;

pub use lock::{LockKind, LockRecord};
pub use write::{WriteKind, WriteRecord};

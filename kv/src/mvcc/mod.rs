//! Versions of a key in the store: the records, and snapshot reads through them.
//!
//! Three column families hold a key. A [`lock`] record in `Cf::Lock` says that a transaction is about to change the
//! key, and [`shared`] locks beside it, which no reader looks at, that transactions rely on it.
//! [`write`](mod@write) records in `Cf::Write`, one per commit and newest first, say what each transaction did.
//! `Cf::Default` holds, under the start_ts of a transaction, its long value or the [`mark`] of its rollback. [`reader`]
//! serves point reads and [`scanner`] range reads, on any `engine::store::Reader`. Nothing here writes.
//! `docs/formats.md` pins the layout of keys and records.
//!
//! A read takes a bounded number of steps per key, however many transactions only locked the key or were rolled back
//! there: the record of a lock names the last data record, and marks are not among the records.
//!
//! # Layers
//!
//! 1. `arena`, `lock`, `mark`, `write`: memory of pages, the records
//! 2. `versions`: a cursor over the versions of a key
//! 3. `shared`: the shared locks of a key
//! 4. `lock_walk`: the locks of a range
//! 5. `old_locks`, `point`, `reader`, `scanner`: the locks of old transactions, point reads of the newest state, point
//!    reads on a snapshot, range reads

mod arena;
pub mod lock;
mod lock_walk;
pub mod mark;
pub mod old_locks;
pub mod point;
pub mod reader;
pub mod scanner;
pub mod shared;
pub mod versions;
pub mod write;

pub use lock::{LockKind, LockRecord};
pub use shared::{LockRow, SharedLock};
pub use write::{WriteKind, WriteRecord};

//! The store over RocksDB: one instance, four column families, WAL off, atomic flush.
//!
//! The Raft log is the only write-ahead log: writes go to the memtables only. After a crash the store holds what was
//! flushed, which is a consistent prefix of all writes, because all column families always flush together. Dropping the
//! last handle has the effect of a crash; a clean stop calls `flush` first.
//!
//! A get or a cursor reads a RocksDB snapshot and takes no lock that a write holds for long. After a failed write or
//! flush the store is poisoned: it still serves reads, and refuses writes until it is reopened.
//!
//! # Layers
//!
//! Lowest first. No file imports from its own or a later layer.
//!
//! 1. `dir`, `errors`, `version_cursors`: the directory, its lock and its format version; errors; idle cursors
//! 2. `options`: the options of RocksDB
//! 3. `database`: the open database
//! 4. `flush`, `ingest`, `newest`, `snapshot`: parts of a store
//! 5. `compaction`: requested compactions and the owner's filter
//! 6. `store`: the handle
//! 7. `metrics`: gauges

mod compaction;
mod database;
mod dir;
mod errors;
mod flush;
mod ingest;
mod metrics;
mod newest;
mod options;
mod snapshot;
mod store;
mod version_cursors;

pub use self::dir::check_format;
pub use self::metrics::StoreMetrics;
pub use self::options::RocksOptions;
pub use self::snapshot::RocksSnapshot;
pub use self::store::RocksStore;

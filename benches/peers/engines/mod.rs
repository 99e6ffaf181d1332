//! The engines side by side, behind what the workloads ask of a Raft log.
//!
//! A batch is plain data that the workload hands over; each adapter turns it into its engine's own form within the measured
//! call, as an application would. Entries are owned vectors, so that no adapter copies what another one need not.
//! An engine that refuses a call ends the run: a benchmark has nobody who could react.

mod ours;
mod raft_engine;
mod rocks;

use std::fmt;
use std::path::Path;

use clap::ValueEnum;

/// Which engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum EngineKind {
    /// Cortado's log.
    Ours,
    /// TiKV's log.
    RaftEngine,
    /// RocksDB as a Raft log.
    #[value(name = "rocksdb")]
    RocksDb,
}

impl fmt::Display for EngineKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            EngineKind::Ours => "ours",
            EngineKind::RaftEngine => "raft-engine",
            EngineKind::RocksDb => "rocksdb",
        })
    }
}

/// What a workload asks of every engine alike. Everything else is in the adapters, with the reasons.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// LZ4 as the engine does it, or none.
    pub compress: bool,
    /// Bytes of files up to which purge leaves live data alone.
    pub purge_threshold: u64,
    /// Bytes of decompressed blocks kept for readers, in engines that keep any.
    pub cache_bytes: usize,
    /// Whether raft-engine fills files with zeros at open, for the first ones to be as fast as later ones.
    pub prefill: bool,
    /// Threads that read files at open.
    pub recovery_threads: usize,
    /// Open without changing a file, so that the next open finds the same (RocksDB; the others' open changes none anyway).
    pub frozen: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            compress: true,
            purge_threshold: 1 << 30,
            cache_bytes: 16 << 20,
            prefill: true,
            recovery_threads: 4,
            frozen: false,
        }
    }
}

impl Settings {
    /// Size of a file: the engine's default, but an eighth of the threshold at most, so that a scaled-down run has as
    /// many files to choose from.
    fn file_bytes(&self, default: u64) -> u64 {
        default.min((self.purge_threshold / 8) & !4095)
    }
}

/// Changes that become durable together.
#[derive(Default)]
pub struct Batch {
    ops: Vec<Op>,
    bytes: u64,
}

enum Op {
    Append { group: u64, first: u64, entries: Vec<Vec<u8>> },
    Put { group: u64, key: &'static [u8], value: Vec<u8> },
    Compact { group: u64, from: u64, to: u64 },
}

impl Batch {
    /// Appends entries from index `first`.
    pub fn append(mut self, group: u64, first: u64, entries: Vec<Vec<u8>>) -> Batch {
        self.bytes += entries.iter().map(|entry| entry.len() as u64).sum::<u64>();
        self.ops.push(Op::Append { group, first, entries });
        self
    }

    /// Sets a small key.
    pub fn put(mut self, group: u64, key: &'static [u8], value: Vec<u8>) -> Batch {
        self.bytes += (key.len() + value.len()) as u64;
        self.ops.push(Op::Put { group, key, value });
        self
    }

    /// Drops the entries `from..to`; those below `from` are gone already, as the owner of a log knows.
    pub fn compact(mut self, group: u64, from: u64, to: u64) -> Batch {
        self.ops.push(Op::Compact { group, from, to });
        self
    }

    /// Bytes of entries, keys and values: what the caller wants stored.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// What the workloads ask of an engine. All of it may be called from many threads.
pub trait RaftLog: Send + Sync {
    /// Writes a batch: to the operating system, or, with `sync`, to stable storage.
    fn write(&self, batch: Batch, sync: bool);
    /// The value of a small key.
    fn key(&self, group: u64, key: &'static [u8]) -> Option<Vec<u8>>;
    /// One entry, which must be there.
    fn entry(&self, group: u64, index: u64) -> Vec<u8>;
    /// Reads the entries `first..end`, which must be there; their bytes in all.
    fn entries(&self, group: u64, first: u64, end: u64) -> u64;
    /// Index of the last entry, 0 where there is none.
    fn last(&self, group: u64) -> u64;
    /// Gives space back, as far as the engine does that by itself; the groups whose entries stand in the way.
    fn purge(&self) -> Vec<u64>;
    /// Finishes what the engine has put off, so that a measurement begins at rest.
    fn settle(&self);
}

/// Opens the log in `dir`, creating it where there is none.
pub fn open(kind: EngineKind, dir: &Path, settings: &Settings) -> Box<dyn RaftLog> {
    match kind {
        EngineKind::Ours => Box::new(ours::Ours::open(dir, settings)),
        EngineKind::RaftEngine => Box::new(raft_engine::RaftEngine::open(dir, settings)),
        EngineKind::RocksDb => Box::new(rocks::Rocks::open(dir, settings)),
    }
}

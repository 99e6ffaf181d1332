//! The engines, behind the interface that the workloads use.
//!
//! A batch is plain data of the workload. Each adapter converts it into the form of its engine within the measured
//! call, as an application would. Entries are owned vectors, so no adapter copies what another one need not. An engine
//! that refuses a call ends the run.

mod ours;
mod raft_engine;
mod rocks;

use std::fmt;
use std::path::Path;

use clap::ValueEnum;

/// An engine.
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

/// The settings that a workload makes for every engine. All other settings are in the adapters, with the reasons.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The engine's own LZ4 compression, or none.
    pub compress: bool,
    /// The size of all files below which purge does not rewrite live data.
    pub purge_threshold: u64,
    /// The size of the cache of decompressed blocks, in engines that have one.
    pub cache_bytes: usize,
    /// Whether raft-engine prefills files with zeros at open, so that the first ones are as fast as later ones.
    pub prefill: bool,
    /// Threads that read files at open.
    pub recovery_threads: usize,
    /// Open without changing a file, so that the next open finds the same (RocksDB; the others' open changes none
    /// anyway).
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
    /// The size of a file: the engine's default, but at most an eighth of the threshold, so that a scaled-down run has
    /// as many files to choose from.
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

    /// Deletes the entries `from..to`; those below `from` are deleted already.
    pub fn compact(mut self, group: u64, from: u64, to: u64) -> Batch {
        self.ops.push(Op::Compact { group, from, to });
        self
    }

    /// Bytes of entries, keys and values: the payload.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// The calls of a workload on an engine, from many threads.
pub trait RaftLog: Send + Sync {
    /// Writes a batch to the page cache or, with `sync`, to stable storage.
    fn write(&self, batch: Batch, sync: bool);
    /// The value of a small key.
    fn key(&self, group: u64, key: &'static [u8]) -> Option<Vec<u8>>;
    /// One entry, which must exist.
    fn entry(&self, group: u64, index: u64) -> Vec<u8>;
    /// Reads the entries `first..end`, which must exist. Returns their total bytes.
    fn entries(&self, group: u64, first: u64, end: u64) -> u64;
    /// The index of the last entry, or 0.
    fn last(&self, group: u64) -> u64;
    /// Frees space, as far as the engine does that on its own. Returns the groups whose entries pin files.
    fn purge(&self) -> Vec<u64>;
    /// Finishes background work, so that a measurement starts at rest.
    fn settle(&self);
}

/// Opens the log in `dir`, creating it if it does not exist.
pub fn open(kind: EngineKind, dir: &Path, settings: &Settings) -> Box<dyn RaftLog> {
    match kind {
        EngineKind::Ours => Box::new(ours::Ours::open(dir, settings)),
        EngineKind::RaftEngine => Box::new(raft_engine::RaftEngine::open(dir, settings)),
        EngineKind::RocksDb => Box::new(rocks::Rocks::open(dir, settings)),
    }
}

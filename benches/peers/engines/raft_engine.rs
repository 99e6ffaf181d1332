//! raft-engine 0.4.2, the newest on crates.io, without its scripting and its internals.
//!
//! Configuration, and why:
//! - files of 128 MB, recycled, format 2, 16 KB blocks at recovery: its defaults;
//! - compression from 4 KB on, as TiKV sets it with asynchronous I/O (the default is 8 KB), at its fastest level;
//! - prefilled files (`prefill-for-recycle`, off by default): synced appends are faster with them, because overwriting
//!   commits no metadata. `--no-prefill` shows it as TiKV ships it.
//!
//! Entries are protobuf messages of one bytes field, the smallest possible; the index is the first 8 bytes of the
//! payload.

use std::cell::RefCell;
use std::path::Path;

use protobuf::well_known_types::BytesValue;
use raft_engine::{Command, Config, Engine, LogBatch, MessageExt, ReadableSize};

use super::{Batch, Op, RaftLog, Settings};

/// The zeros written at open last until recycling provides the space.
const PREFILL: u64 = 512 << 20;

#[derive(Clone)]
struct Payload;

impl MessageExt for Payload {
    type Entry = BytesValue;

    fn index(entry: &BytesValue) -> u64 {
        u64::from_le_bytes(*entry.value.first_chunk().unwrap())
    }
}

/// An open log.
pub struct RaftEngine {
    log: Engine,
}

impl RaftEngine {
    /// Opens the log in `dir`.
    pub fn open(dir: &Path, settings: &Settings) -> RaftEngine {
        let defaults = Config::default();
        let file_bytes = settings.file_bytes(defaults.target_file_size.0);
        let prefill = PREFILL.min(settings.purge_threshold);
        let config = Config {
            dir: dir.to_str().unwrap().to_owned(),
            batch_compression_threshold: ReadableSize::kb(if settings.compress { 4 } else { 0 }),
            target_file_size: ReadableSize(file_bytes),
            purge_threshold: ReadableSize(settings.purge_threshold),
            recovery_threads: settings.recovery_threads,
            prefill_for_recycle: settings.prefill,
            prefill_limit: settings.prefill.then_some(ReadableSize(prefill)),
            ..defaults
        };
        RaftEngine { log: Engine::open(config).unwrap() }
    }
}

fn message(value: Vec<u8>) -> BytesValue {
    BytesValue { value, ..BytesValue::default() }
}

impl RaftLog for RaftEngine {
    fn write(&self, batch: Batch, sync: bool) {
        // Reused, as its API intends: a write drains it and keeps its buffers.
        thread_local!(static NATIVE: RefCell<LogBatch> = RefCell::new(LogBatch::default()));
        NATIVE.with_borrow_mut(|native| {
            for op in batch.ops {
                match op {
                    // The first index is in the first entry.
                    Op::Append { group, entries, .. } => {
                        let entries: Vec<BytesValue> = entries.into_iter().map(message).collect();
                        native.add_entries::<Payload>(group, &entries).unwrap();
                    }
                    Op::Put { group, key, value } => native.put(group, key.to_vec(), value).unwrap(),
                    Op::Compact { group, to, .. } => native.add_command(group, Command::Compact { index: to }),
                }
            }
            self.log.write(native, sync).unwrap();
            assert!(native.is_empty(), "a write drains its batch");
        });
    }

    fn key(&self, group: u64, key: &'static [u8]) -> Option<Vec<u8>> {
        self.log.get(group, key)
    }

    fn entry(&self, group: u64, index: u64) -> Vec<u8> {
        self.log.get_entry::<Payload>(group, index).unwrap().unwrap().value
    }

    fn entries(&self, group: u64, first: u64, end: u64) -> u64 {
        let mut entries = Vec::new();
        let count = self.log.fetch_entries_to::<Payload>(group, first, end, None, &mut entries).unwrap();
        assert_eq!(count as u64, end - first);
        entries.iter().map(|entry| entry.value.len() as u64).sum()
    }

    fn last(&self, group: u64) -> u64 {
        self.log.last_index(group).unwrap_or(0)
    }

    fn purge(&self) -> Vec<u64> {
        self.log.purge_expired_files().unwrap()
    }

    fn settle(&self) {
        self.log.purge_expired_files().unwrap();
        self.log.sync().unwrap();
    }
}

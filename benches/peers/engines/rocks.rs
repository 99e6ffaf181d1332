//! RocksDB as a Raft log: what TiKV ran before raft-engine, with its `raftdb` settings.
//!
//! Configuration, and why:
//! - one column family; the WAL is on, and synced if the workload syncs;
//! - WAL files are recycled (`recycle_log_file_num`), which TiKV leaves off: an overwrite commits no metadata, so
//!   synced writes are faster. The recovery mode is TiKV's, point in time, which allows it;
//! - memtables of 128 MB, up to 5 (scaled down with the purge threshold, as the files of the others), levels from 512
//!   MB, tables of 8 MB, pipelined writes: TiKV's;
//! - LZ4 from level 2 on: TiKV's, with LZ4 in place of its ZSTD for the last levels. The WAL is not compressed: RocksDB
//!   supports only ZSTD there;
//! - table blocks of 16 KiB instead of TiKV's 64 KiB: faster reads at no cost for writes;
//! - truncation deletes key by key, as TiKV does, and with a range tombstone from 64 keys on, where that is cheaper.
//!
//! A key is the group, a kind (1 entry, 2 small key) and the index, big endian: a log is a range.

use std::path::Path;

use rocksdb::{
    BlockBasedOptions, Cache, DB, DBCompressionType, DBRecoveryMode, Options, ReadOptions, WaitForCompactOptions,
    WriteBatch, WriteOptions,
};

use super::{Batch, Op, RaftLog, Settings};

const ENTRY: u8 = 1;
const SMALL_KEY: u8 = 2;
/// The number of keys from which a range tombstone is cheaper than single deletes.
const RANGE_FROM: u64 = 64;

/// An open log.
pub struct Rocks {
    db: DB,
}

fn entry_key(group: u64, index: u64) -> [u8; 17] {
    let mut key = [0; 17];
    key[..8].copy_from_slice(&group.to_be_bytes());
    key[8] = ENTRY;
    key[9..].copy_from_slice(&index.to_be_bytes());
    key
}

fn small_key(group: u64, key: &[u8]) -> Vec<u8> {
    [&group.to_be_bytes()[..], &[SMALL_KEY], key].concat()
}

fn options(settings: &Settings) -> Options {
    let mut options = Options::default();
    options.create_if_missing(true);
    options.set_wal_recovery_mode(DBRecoveryMode::PointInTime);
    options.set_recycle_log_file_num(4);
    options.set_max_total_wal_size(4 << 30);
    options.set_wal_bytes_per_sync(512 << 10);
    options.set_bytes_per_sync(1 << 20);
    options.set_writable_file_max_buffer_size(1 << 20);
    options.set_enable_pipelined_write(true);
    options.set_allow_concurrent_memtable_write(true);
    options.set_max_background_jobs(4);
    options.set_max_subcompactions(2);
    options.set_max_open_files(40960);
    options.set_max_file_opening_threads(i32::try_from(settings.recovery_threads).unwrap());
    options.set_write_buffer_size(settings.file_bytes(128 << 20) as usize);
    options.set_max_write_buffer_number(5);
    options.set_max_bytes_for_level_base(512 << 20);
    options.set_target_file_size_base(8 << 20);
    options.set_level_zero_file_num_compaction_trigger(4);
    options.set_level_zero_slowdown_writes_trigger(20);
    options.set_level_zero_stop_writes_trigger(36);
    options.set_level_compaction_dynamic_level_bytes(true);
    let (raw, lz4) = (DBCompressionType::None, DBCompressionType::Lz4);
    match settings.compress {
        true => options.set_compression_per_level(&[raw, raw, lz4, lz4, lz4, lz4, lz4]),
        false => options.set_compression_type(raw),
    }
    let mut table = BlockBasedOptions::default();
    table.set_block_size(16 << 10);
    table.set_block_cache(&Cache::new_lru_cache(settings.cache_bytes.max(1 << 20)));
    table.set_cache_index_and_filter_blocks(true);
    table.set_pin_l0_filter_and_index_blocks_in_cache(true);
    options.set_block_based_table_factory(&table);
    options
}

impl Rocks {
    /// Opens the log in `dir`.
    pub fn open(dir: &Path, settings: &Settings) -> Rocks {
        let options = options(settings);
        let db = match settings.frozen {
            true => DB::open_for_read_only(&options, dir, false),
            false => DB::open(&options, dir),
        };
        Rocks { db: db.unwrap() }
    }
}

impl RaftLog for Rocks {
    fn write(&self, batch: Batch, sync: bool) {
        let mut native = WriteBatch::default();
        for op in batch.ops {
            match op {
                Op::Append { group, first, entries } => {
                    for (index, entry) in (first..).zip(entries) {
                        native.put(entry_key(group, index), entry);
                    }
                }
                Op::Put { group, key, value } => native.put(small_key(group, key), value),
                Op::Compact { group, from, to } if to.saturating_sub(from) >= RANGE_FROM => {
                    native.delete_range(entry_key(group, from), entry_key(group, to));
                }
                Op::Compact { group, from, to } => {
                    (from..to).for_each(|index| native.delete(entry_key(group, index)));
                }
            }
        }
        let mut options = WriteOptions::default();
        options.set_sync(sync);
        self.db.write_opt(native, &options).unwrap();
    }

    fn key(&self, group: u64, key: &'static [u8]) -> Option<Vec<u8>> {
        self.db.get(small_key(group, key)).unwrap()
    }

    fn entry(&self, group: u64, index: u64) -> Vec<u8> {
        self.db.get(entry_key(group, index)).unwrap().unwrap()
    }

    fn entries(&self, group: u64, first: u64, end: u64) -> u64 {
        let mut options = ReadOptions::default();
        options.set_iterate_upper_bound(entry_key(group, end));
        let mut cursor = self.db.raw_iterator_opt(options);
        cursor.seek(entry_key(group, first));
        // The other engines return owned entries, so these are copied too.
        let mut entries = Vec::with_capacity((end - first) as usize);
        while let Some(value) = cursor.value() {
            entries.push(value.to_vec());
            cursor.next();
        }
        cursor.status().unwrap();
        assert_eq!(entries.len() as u64, end - first);
        entries.iter().map(|entry| entry.len() as u64).sum()
    }

    fn last(&self, group: u64) -> u64 {
        let mut cursor = self.db.raw_iterator();
        cursor.seek_for_prev(entry_key(group, u64::MAX));
        let key = cursor.key().filter(|key| key[..9] == entry_key(group, 0)[..9]);
        key.map_or(0, |key| u64::from_be_bytes(*key.last_chunk().unwrap()))
    }

    /// RocksDB frees space in the background.
    fn purge(&self) -> Vec<u64> {
        Vec::new()
    }

    fn settle(&self) {
        self.db.flush().unwrap();
        self.db.wait_for_compact(&WaitForCompactOptions::default()).unwrap();
    }
}

//! Settings of the RocksDB store and the RocksDB options built from them.
//!
//! Two options are required for correctness and set only here: `atomic_flush`, and no flush on close. So dropping the
//! store has the effect of a crash, and a clean stop is an explicit flush.

use rocksdb::{BlockBasedOptions, Cache, DBCompressionType, Options, ReadOptions, ReadTier, SliceTransform};

use super::errors::on_open;
use crate::cf::Cf;
use crate::store::{Result, VERSION_LEN};

/// Settings of the store.
#[derive(Clone, Debug)]
pub struct RocksOptions {
    /// Bytes of the block cache that all column families share. Default 256 MiB, minimum 1 MiB.
    pub block_cache_bytes: usize,
    /// Bytes of memtables in all column families at which a flush starts. Default 128 MiB, minimum 64 KiB. While a
    /// flush runs, about twice as much may be in memory.
    pub write_buffer_bytes: usize,
}

impl Default for RocksOptions {
    fn default() -> RocksOptions {
        RocksOptions { block_cache_bytes: 256 << 20, write_buffer_bytes: 128 << 20 }
    }
}

const MIN_BLOCK_CACHE_BYTES: usize = 1 << 20;
const MIN_WRITE_BUFFER_BYTES: usize = 64 << 10;

/// Memtables per family, including the active one. Bounds memory: writes stall while two wait for their flush.
const MAX_WRITE_BUFFERS: i32 = 3;
const TARGET_FILE_BYTES: u64 = 64 << 20;
const BLOCK_BYTES: usize = 8 << 10;
const BLOOM_BITS_PER_KEY: f64 = 10.0;
/// The share of a memtable used for a bloom filter. Most reads look for a lock that does not exist.
const MEMTABLE_BLOOM_RATIO: f64 = 0.02;
/// A new file is compacted soon if, of this many adjacent entries, so many are deletions, or of all its entries so
/// large a share. Every transaction leaves a deleted lock for each of its keys, and a cursor walks over each of them.
const DELETION_WINDOW: usize = 4_096;
const DELETIONS_IN_WINDOW: usize = 2_048;
const DELETED_SHARE: f64 = 0.5;
/// Well below the default limit of 1,024 descriptors per process; the rest is for sockets and the log.
const MAX_OPEN_FILES: i32 = 512;

/// The options of the database and of each column family, in the order of [`Cf::ALL`].
pub(super) fn build(options: &RocksOptions) -> Result<(Options, [Options; Cf::ALL.len()])> {
    let write_buffer_bytes = options.write_buffer_bytes.max(MIN_WRITE_BUFFER_BYTES);
    // Lock-free on a hit, so concurrent readers do not contend. A charge of 0 lets the cache measure its entries.
    let cache = Cache::new_hyper_clock_cache(options.block_cache_bytes.max(MIN_BLOCK_CACHE_BYTES), 0);
    let db = database(write_buffer_bytes)?;
    let family_options = Cf::ALL.map(|cf| family(cf, write_buffer_bytes, &cache));
    Ok((db, family_options))
}

fn database(write_buffer_bytes: usize) -> Result<Options> {
    // The binding has no setter for this option. It comes first because parsing starts from default options.
    let mut db = Options::default().get_options_from_string("avoid_flush_during_shutdown=true").map_err(on_open)?;
    db.create_if_missing(true);
    db.create_missing_column_families(true);
    db.set_atomic_flush(true);
    db.set_db_write_buffer_size(write_buffer_bytes);
    db.set_max_background_jobs(background_jobs());
    db.set_max_open_files(MAX_OPEN_FILES);
    // A reader that drops the last reference to an old file does not delete the file itself.
    db.set_avoid_unnecessary_blocking_io(true);
    db.set_bytes_per_sync(1 << 20);
    db.set_keep_log_file_num(4);
    db.set_max_log_file_size(16 << 20);
    Ok(db)
}

/// Read options of a cursor that moves over any keys. Without them a seek uses the filters over prefixes, and may not
/// find keys of another prefix than that of its target.
pub(super) fn ordered_reads() -> ReadOptions {
    let mut reads = ReadOptions::default();
    reads.set_total_order_seek(true);
    reads
}

/// Read options of a cursor that stays on the versions of one key, in memory.
pub(super) fn version_reads() -> ReadOptions {
    let mut reads = cached_reads();
    reads.set_prefix_same_as_start(true);
    reads
}

/// Read options of reads from memory alone: memtables and the block cache.
pub(super) fn cached_reads() -> ReadOptions {
    let mut reads = ReadOptions::default();
    reads.set_read_tier(ReadTier::BlockCache);
    reads
}

/// The filters of `Cf::Write` hold its keys without their versions: a point read seeks the newest version of a key, and
/// so skips the files that have none. Nothing reads a record there by its whole key.
fn filter_by_key(family: &mut Options, table: &mut BlockBasedOptions) {
    fn without_version(key: &[u8]) -> &[u8] {
        key.split_at_checked(key.len().saturating_sub(VERSION_LEN)).map_or(key, |(key, _)| key)
    }
    fn has_version(key: &[u8]) -> bool {
        key.len() > VERSION_LEN
    }
    family.set_prefix_extractor(SliceTransform::create("cortado.key", without_version, Some(has_version)));
    family.set_memtable_whole_key_filtering(false);
    table.set_whole_key_filtering(false);
}

fn family(cf: Cf, write_buffer_bytes: usize, cache: &Cache) -> Options {
    let mut table = BlockBasedOptions::default();
    table.set_block_cache(cache);
    table.set_block_size(BLOCK_BYTES);
    table.set_bloom_filter(BLOOM_BITS_PER_KEY, false);
    table.set_cache_index_and_filter_blocks(true);
    table.set_pin_l0_filter_and_index_blocks_in_cache(true);
    table.set_format_version(6);

    let mut family = Options::default();
    family.set_memtable_whole_key_filtering(true);
    family.set_memtable_prefix_bloom_ratio(MEMTABLE_BLOOM_RATIO);
    if cf == Cf::Write {
        filter_by_key(&mut family, &mut table);
    }
    family.set_block_based_table_factory(&table);
    family.set_compression_type(DBCompressionType::Lz4);
    // The effective limit is the one over all families. One family may use all of it.
    family.set_write_buffer_size(write_buffer_bytes);
    family.set_max_write_buffer_number(MAX_WRITE_BUFFERS);
    family.set_target_file_size_base(TARGET_FILE_BYTES);
    family.set_level_compaction_dynamic_level_bytes(true);
    family.add_compact_on_deletion_collector_factory(DELETION_WINDOW, DELETIONS_IN_WINDOW, DELETED_SHARE);
    family
}

/// Half of the processors for flushes and compactions; at least two, so that a flush does not wait for a compaction.
fn background_jobs() -> i32 {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    i32::try_from(processors / 2).unwrap_or(i32::MAX).clamp(2, 8)
}

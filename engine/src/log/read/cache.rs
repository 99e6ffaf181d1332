//! Decompressed blocks, shared by all readers.
//!
//! The key contains the file number, which a log never reuses, and the cache belongs to one engine. So a hit is always
//! the right block. A missing block is read once, however many readers request it at the same time: one reads, the others
//! wait for its result, also if the block is not cached.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};

use crate::log::error::Result;
use crate::log::format::Block;

/// Number of shards. More shards than processors would only make each one too small.
const SHARDS: usize = 16;
/// Approximate size of a block, in bytes. Determines the size of tables.
const USUAL_BLOCK: usize = 4 << 10;
/// The share of the capacity for blocks that were used again. The other half is for new blocks, which a cache for hot
/// items would evict soon: a log is mostly read where it was just written.
const KEPT_FOR_USED: f64 = 0.5;

/// File and offset of a block.
pub(crate) type BlockKey = (u64, u64);

/// The cache, with its hits and misses.
pub(crate) struct BlockCache {
    blocks: Cache<BlockKey, Arc<Block>, Weights>,
    hits: AtomicU64,
    misses: AtomicU64,
}

#[derive(Clone)]
struct Weights;

impl Weighter<BlockKey, Arc<Block>> for Weights {
    fn weight(&self, _: &BlockKey, block: &Arc<Block>) -> u64 {
        block.weight() as u64
    }
}

impl BlockCache {
    /// A cache of at most `bytes`.
    #[expect(clippy::expect_used, reason = "the builder fails only where a capacity is not given")]
    pub(crate) fn new(bytes: usize) -> BlockCache {
        let options = OptionsBuilder::new()
            .weight_capacity(bytes as u64)
            .estimated_items_capacity(bytes / USUAL_BLOCK)
            .shards(SHARDS)
            .hot_allocation(KEPT_FOR_USED)
            // An evicted key has no claim to the place of a new block.
            .ghost_allocation(0.0)
            .build()
            .expect("all that is asked for is set");
        let blocks = Cache::with_options(options, Weights, DefaultHashBuilder::default(), DefaultLifecycle::default());
        BlockCache { blocks, hits: AtomicU64::new(0), misses: AtomicU64::new(0) }
    }

    /// A block from the cache, or the result of `read`. `Ok(None)` if there is none.
    pub(crate) fn get_or_read(
        &self,
        key: BlockKey,
        read: impl FnOnce() -> Result<Option<Block>>,
    ) -> Result<Option<Arc<Block>>> {
        let mut was_cached = true;
        let found = self.blocks.get_or_insert_with(&key, || {
            was_cached = false;
            match read() {
                Ok(Some(block)) => Ok(Arc::new(block)),
                Ok(None) => Err(None),
                Err(error) => Err(Some(error)),
            }
        });
        self.count(was_cached);
        match found {
            Ok(block) => Ok(Some(block)),
            Err(None) => Ok(None),
            Err(Some(error)) => Err(error),
        }
    }

    /// A block, if it is cached.
    pub(crate) fn get(&self, key: BlockKey) -> Option<Arc<Block>> {
        let found = self.blocks.get(&key);
        self.count(found.is_some());
        found
    }

    fn count(&self, was_cached: bool) {
        let counter = if was_cached { &self.hits } else { &self.misses };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Hits and misses.
    pub(crate) fn used(&self) -> (u64, u64) {
        (self.hits.load(Ordering::Relaxed), self.misses.load(Ordering::Relaxed))
    }

    /// Caches a block, and evicts others. A block larger than a shard is not cached.
    pub(crate) fn insert(&self, key: BlockKey, block: Arc<Block>) {
        self.blocks.insert(key, block);
    }

    /// Bytes of the cached blocks.
    pub(crate) fn bytes(&self) -> usize {
        self.blocks.weight() as usize
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use bytes::Bytes;

    use super::*;

    fn block(len: usize) -> Block {
        let mut raw = Vec::new();
        crate::log::format::put_varint(&mut raw, len as u64);
        raw.resize(raw.len() + len, 7);
        Block::parse(Bytes::from(raw), 1).unwrap()
    }

    fn read_whole(cache: &BlockCache, key: BlockKey, len: usize) -> Option<Arc<Block>> {
        cache.get_or_read(key, || Ok(Some(block(len)))).unwrap()
    }

    /// A read that fails or panics does not block the next one.
    #[test]
    fn failed_read_is_retried() {
        let cache = BlockCache::new(1 << 20);
        let broken = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            cache.get_or_read((1, 8), || panic!("a reader fails"))
        }));
        assert!(broken.is_err());
        assert!(cache.get_or_read((1, 8), || Err(std::io::Error::other("unreadable").into())).is_err());
        assert!(cache.get_or_read((1, 8), || Ok(None)).unwrap().is_none());
        assert!(read_whole(&cache, (1, 8), 10).is_some());
        assert!(cache.get_or_read((1, 8), || panic!("it is there")).unwrap().is_some());
    }

    /// Readers that request a block during a read share its result. A block that is not cached is read again later.
    #[test]
    fn concurrent_misses_share_one_read() {
        const WAITING: usize = 7;
        for bytes in [0, 1 << 20] {
            let (cache, key) = (BlockCache::new(bytes), (1, 8));
            let (asking, reads) = (AtomicUsize::new(0), AtomicUsize::new(0));
            std::thread::scope(|scope| {
                let read = cache.get_or_read(key, || {
                    for _ in 0..WAITING {
                        scope.spawn(|| {
                            asking.fetch_add(1, Ordering::SeqCst);
                            let read = cache.get_or_read(key, || {
                                reads.fetch_add(1, Ordering::SeqCst);
                                Ok(Some(block(10)))
                            });
                            assert!(read.unwrap().is_some());
                        });
                    }
                    while asking.load(Ordering::SeqCst) < WAITING {
                        std::thread::yield_now();
                    }
                    assert_eq!(reads.load(Ordering::SeqCst), 0, "a second read while the first is under way");
                    Ok(Some(block(10)))
                });
                assert!(read.unwrap().is_some());
            });
            assert!(bytes == 0 || reads.into_inner() == 0, "a read of what was there");
        }
    }

    #[test]
    fn cache_stays_within_its_capacity() {
        const BYTES: usize = SHARDS * 10_000;
        let cache = BlockCache::new(BYTES);
        for number in 0..10_000u64 {
            assert!(read_whole(&cache, (number % 7, number * 8), 900).is_some());
            // A block that is too large is returned, and not cached.
            assert!(read_whole(&cache, (8, number * 8), BYTES).is_some());
            assert!(cache.bytes() <= BYTES);
        }
        assert!(cache.bytes() > BYTES / 2, "{}", cache.bytes());
    }

    /// The newest blocks are cached, also if the cache is full of others that were used more often.
    #[test]
    fn newest_blocks_are_cached() {
        const OLD: u64 = 8000;
        const NEW: u64 = 1000;
        let cache = BlockCache::new(OLD as usize * 1024);
        for _ in 0..3 {
            (0..OLD).for_each(|number| assert!(read_whole(&cache, (1, number * 8), 900).is_some()));
        }
        (0..NEW).for_each(|number| cache.insert((2, number * 8), Arc::new(block(900))));
        assert_eq!((0..NEW).filter(|number| cache.get((2, number * 8)).is_some()).count() as u64, NEW);
        assert!((0..OLD).filter(|number| cache.get((1, number * 8)).is_some()).count() as u64 > OLD / 3);
    }
}

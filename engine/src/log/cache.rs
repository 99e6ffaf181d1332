//! Decompressed blocks, shared by all readers.
//!
//! Sharded by place; each shard forgets what was used longest ago once it is over its share of the bytes. The key names
//! a file by its number, which is never used twice in the life of a log, and the cache belongs to one engine: a hit
//! is always the right block.
//!
//! A block that is not here is read once, however many ask for it at the same time: one reads, the others wait for what it
//! finds, also where the block is not kept.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

use super::block::Block;
use super::error::Result;

const SHARDS: usize = 16;

/// File and offset of a block.
pub(crate) type BlockKey = (u64, u64);

/// The cache.
pub(crate) struct BlockCache {
    shards: Vec<Mutex<Shard>>,
    shard_bytes: usize,
}

#[derive(Default)]
struct Shard {
    blocks: HashMap<BlockKey, (Arc<Block>, u64)>,
    /// Uses in order; one that is not the block's last is passed over.
    uses: VecDeque<(BlockKey, u64)>,
    clock: u64,
    bytes: usize,
    /// Reads under way.
    reads: HashMap<BlockKey, Arc<Pending>>,
}

/// A read that others may wait for.
#[derive(Default)]
struct Pending {
    /// Once it is over: what it found.
    outcome: Mutex<Option<Option<Arc<Block>>>>,
    over: Condvar,
}

/// Whose turn it is to read a block. When it ends, in whatever way, those who wait go on.
struct Turn<'a> {
    cache: &'a BlockCache,
    key: BlockKey,
    found: Option<Arc<Block>>,
}

impl BlockCache {
    /// A cache of at most `bytes`.
    pub(crate) fn new(bytes: usize) -> BlockCache {
        BlockCache { shards: (0..SHARDS).map(|_| Mutex::default()).collect(), shard_bytes: bytes / SHARDS }
    }

    /// A block: from here, or what `read` finds. `Ok(None)` where there is none.
    pub(crate) fn get_or_read(
        &self,
        key: BlockKey,
        read: impl FnOnce() -> Result<Option<Block>>,
    ) -> Result<Option<Arc<Block>>> {
        let mut turn = loop {
            let mut shard = self.shard(key).lock();
            if let Some(block) = shard.touch(key) {
                return Ok(Some(block));
            }
            let pending = match shard.reads.entry(key) {
                Entry::Occupied(pending) => pending.get().clone(),
                Entry::Vacant(place) => {
                    place.insert(Arc::default());
                    break Turn { cache: self, key, found: None };
                }
            };
            drop(shard);
            // A read that failed says nothing about the next one.
            if let Some(block) = pending.wait() {
                return Ok(Some(block));
            }
        };
        turn.found = read()?.map(Arc::new);
        Ok(turn.found.clone())
    }

    /// Keeps a block, and forgets older ones. A block larger than a shard is not kept.
    pub(crate) fn insert(&self, key: BlockKey, block: Arc<Block>) {
        let weight = block.weight();
        if weight > self.shard_bytes {
            return;
        }
        let mut shard = self.shard(key).lock();
        if let Some((old, _)) = shard.blocks.insert(key, (block, 0)) {
            shard.bytes -= old.weight();
        }
        shard.bytes += weight;
        shard.touch(key);
        shard.shrink(self.shard_bytes);
    }

    /// Bytes of the blocks that are kept.
    pub(crate) fn bytes(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().bytes).sum()
    }

    fn shard(&self, (file, offset): BlockKey) -> &Mutex<Shard> {
        let mixed = ((offset / 8) ^ (file << 20)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        &self.shards[(mixed >> 60) as usize % SHARDS]
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let found = self.found.take();
        // It is in the cache before nobody reads it any more: so nobody reads it again.
        if let Some(block) = &found {
            self.cache.insert(self.key, block.clone());
        }
        let pending = self.cache.shard(self.key).lock().reads.remove(&self.key);
        if let Some(pending) = pending {
            *pending.outcome.lock() = Some(found);
            pending.over.notify_all();
        }
    }
}

impl Pending {
    /// What the read found, once it is over.
    fn wait(&self) -> Option<Arc<Block>> {
        let mut outcome = self.outcome.lock();
        loop {
            if let Some(found) = outcome.as_ref() {
                return found.clone();
            }
            self.over.wait(&mut outcome);
        }
    }
}

impl Shard {
    fn touch(&mut self, key: BlockKey) -> Option<Arc<Block>> {
        let (block, used) = self.blocks.get_mut(&key)?;
        let block = block.clone();
        // A block that was used just now is not moved again: hits stay cheap.
        if *used == 0 || self.clock - *used > self.uses.len() as u64 / 4 {
            self.clock += 1;
            *used = self.clock;
            self.uses.push_back((key, self.clock));
        }
        if self.uses.len() > 64 + 4 * self.blocks.len() {
            let blocks = &self.blocks;
            self.uses.retain(|(key, used)| blocks.get(key).is_some_and(|(_, last)| last == used));
        }
        Some(block)
    }

    fn shrink(&mut self, bytes: usize) {
        while self.bytes > bytes {
            let Some((key, used)) = self.uses.pop_front() else { return };
            if self.blocks.get(&key).is_some_and(|(_, last)| *last == used)
                && let Some((block, _)) = self.blocks.remove(&key)
            {
                self.bytes -= block.weight();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn block(len: usize) -> Block {
        let mut raw = Vec::new();
        super::super::format::put_bytes(&mut raw, &vec![7; len]);
        Block::parse(Bytes::from(raw), 1).unwrap()
    }

    fn read_whole(cache: &BlockCache, key: BlockKey, len: usize) -> Option<Arc<Block>> {
        cache.get_or_read(key, || Ok(Some(block(len)))).unwrap()
    }

    /// Whatever becomes of a read, the next one is not kept waiting for it.
    #[test]
    fn a_read_that_ends_badly_is_done_again() {
        let cache = BlockCache::new(1 << 20);
        let broken = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            cache.get_or_read((1, 8), || panic!("a reader breaks"))
        }));
        assert!(broken.is_err());
        assert!(cache.get_or_read((1, 8), || Err(std::io::Error::other("unreadable").into())).is_err());
        assert!(cache.get_or_read((1, 8), || Ok(None)).unwrap().is_none());
        assert!(read_whole(&cache, (1, 8), 10).is_some());
        assert!(cache.get_or_read((1, 8), || panic!("it is there")).unwrap().is_some());
    }

    /// Also a block that is not kept is read once for all who ask meanwhile.
    #[test]
    fn those_who_wait_are_given_what_was_read() {
        const WAITING: usize = 7;
        let (cache, key) = (BlockCache::new(0), (1, 8));
        let waiting = || cache.shard(key).lock().reads.get(&key).map_or(0, |pending| Arc::strong_count(pending) - 1);
        std::thread::scope(|scope| {
            let read = cache.get_or_read(key, || {
                for _ in 0..WAITING {
                    scope.spawn(|| {
                        assert!(cache.get_or_read(key, || panic!("a second read")).unwrap().is_some());
                    });
                }
                while waiting() < WAITING {
                    std::thread::yield_now();
                }
                Ok(Some(block(10)))
            });
            assert!(read.unwrap().is_some());
        });
        assert_eq!(waiting(), 0);
    }

    #[test]
    fn what_is_kept_stays_within_the_bound() {
        let cache = BlockCache::new(SHARDS * 10_000);
        for number in 0..10_000u64 {
            assert!(read_whole(&cache, (number % 7, number * 8), 900).is_some());
            // What is too large is handed on, and not kept.
            assert!(read_whole(&cache, (8, number * 8), 20_000).is_some());
        }
        let mut kept = 0;
        for shard in &cache.shards {
            let shard = shard.lock();
            let weight: usize = shard.blocks.values().map(|(block, _)| block.weight()).sum();
            assert_eq!(weight, shard.bytes);
            assert!(shard.bytes <= 10_000 && shard.reads.is_empty());
            kept += shard.blocks.len();
        }
        assert!(kept > SHARDS * 8, "{kept}");
    }
}

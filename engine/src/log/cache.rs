//! Decompressed blocks, shared by all readers.
//!
//! Sharded by place; each shard forgets what was used longest ago once it is over its share of the bytes. The key names
//! a file by its number, which is never used twice in the life of a log, and the cache belongs to one engine: a hit
//! is always the right block.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;

use super::block::Block;

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
}

impl BlockCache {
    /// A cache of at most `bytes`.
    pub(crate) fn new(bytes: usize) -> BlockCache {
        BlockCache { shards: (0..SHARDS).map(|_| Mutex::default()).collect(), shard_bytes: bytes / SHARDS }
    }

    /// A block, if it is here.
    pub(crate) fn get(&self, key: BlockKey) -> Option<Arc<Block>> {
        self.shard(key).lock().touch(key)
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

//! Memory for the pairs of a page: keys and values are cut from a few larger blocks instead of being allocated one by
//! one. A block lives until the last pair that was cut from it is dropped.

use bytes::{Bytes, BytesMut};

use crate::key::{Key, MalformedKey};

/// Bytes of the first block. Each further one is twice as large, up to `BLOCK_MAX`. Larger values have blocks of their
/// own.
const BLOCK_MIN: usize = 2 << 10;
const BLOCK_MAX: usize = 64 << 10;

/// See the module documentation.
#[derive(Debug, Default)]
pub(super) struct Arena {
    block: BytesMut,
    last_block: usize,
}

impl Arena {
    /// A copy of `bytes`.
    pub(super) fn copy(&mut self, bytes: &[u8]) -> Bytes {
        if bytes.len() > BLOCK_MAX / 4 {
            return Bytes::copy_from_slice(bytes);
        }
        self.reserve(bytes.len());
        self.block.extend_from_slice(bytes);
        self.block.split().freeze()
    }

    /// The key with this storage form.
    pub(super) fn key(&mut self, storage: &[u8]) -> Result<Key, MalformedKey> {
        // The storage form is longer than the key.
        if storage.len() > BLOCK_MAX / 4 {
            return Key::from_storage(storage);
        }
        self.reserve(storage.len());
        Key::from_storage_in(storage, &mut self.block)
    }

    /// Drops the rest of the block.
    pub(super) fn clear(&mut self) {
        *self = Arena::default();
    }

    fn reserve(&mut self, bytes: usize) {
        if self.block.capacity() - self.block.len() < bytes {
            self.last_block = (self.last_block * 2).clamp(BLOCK_MIN, BLOCK_MAX);
            self.block = BytesMut::with_capacity(self.last_block.max(bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_keep_their_bytes_across_blocks() {
        let mut arena = Arena::default();
        let values: Vec<Vec<u8>> = (0..2_000).map(|n| vec![n as u8; n % 700]).chain([vec![7; BLOCK_MAX]]).collect();
        let copies: Vec<Bytes> = values.iter().map(|value| arena.copy(value)).collect();
        let keys: Vec<Key> = values.iter().map(|value| Key::new(value.clone())).collect();
        let decoded: Vec<Key> = keys.iter().map(|key| arena.key(&key.to_storage()).unwrap()).collect();
        assert!(copies == values && decoded == keys);
        assert!(arena.key(b"no storage key").is_err());
        assert_eq!(arena.copy(b"after an error"), "after an error");
    }
}

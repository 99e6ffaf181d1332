//! Blocks: the unit in which entries are compressed, read and cached. No I/O.
//!
//! Raw form: the length of each entry as a varint, then the entries one after another. An entry never spans blocks.
//!
//! A Raft group with 2 KiB or more in a commit group gets blocks of its own: a reader of that group reads and
//! decompresses nothing else. Smaller groups share blocks, because a block of a few hundred bytes is mostly header and
//! hardly compresses.

use bytes::Bytes;

use super::compress::{Compressor, decompress};
use super::group_header::{BLOCK_HEADER, BlockHeader};
use super::items::{BLOCK_ENTRIES, BlockRef};
use super::numbers::{Cursor, put_varint};
use super::place::{Codec, Place, UNIT, align};
use super::write_buffer::WriteBuffer;
use crate::log::error::Damage;
use crate::log::types::GroupId;

/// Minimum bytes of a Raft group in a commit group for which it gets blocks of its own.
const OWN_BLOCK_BYTES: usize = 2 << 10;

/// Minimum size of a block that is not cached when it is written, in bytes. The caller that wrote such entries usually
/// still holds them, and a copy of each costs more than an occasional read.
const LARGE_BLOCK_BYTES: usize = 128 << 10;

/// A decoded block.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    /// The lengths of the entries, then the entries.
    raw: Bytes,
    /// Where the first entry begins in `raw`.
    start: u32,
    entries: u16,
}

impl Block {
    /// Checks that the raw form holds exactly `entries` entries.
    pub(crate) fn parse(raw: Bytes, entries: u16) -> Result<Block, Damage> {
        let mut cursor = Cursor(&raw);
        let mut bytes = 0u64;
        for _ in 0..entries {
            bytes = bytes.checked_add(cursor.varint()?).ok_or(Damage("entry is too long"))?;
        }
        if cursor.0.len() as u64 != bytes {
            return Err(Damage("block and its entries differ in length"));
        }
        let start = (raw.len() - cursor.0.len()) as u32;
        Ok(Block { raw, start, entries })
    }

    /// Decodes a block. `bytes` begin with the header at `offset` of `place`.
    pub(crate) fn decode(bytes: &[u8], place: Place, offset: u64) -> Result<Block, Damage> {
        let Some((head, rest)) = bytes.split_first_chunk::<BLOCK_HEADER>() else {
            return Err(Damage("block is cut off"));
        };
        let header = BlockHeader::decode(head)?;
        let stored = rest.get(..header.stored as usize).ok_or(Damage("block is cut off"))?;
        BlockHeader::verify(head, place, offset, stored)?;
        Block::parse(Bytes::from(decompress(header.codec, stored, header.raw as usize)?), header.entries)
    }

    /// Its memory, in bytes.
    pub(crate) fn weight(&self) -> usize {
        self.raw.len() + 128
    }

    /// The entries from number `ordinal` on. An entry that is most of its block shares the block's memory. A smaller
    /// one is copied, so that it does not keep the whole block in memory.
    pub(crate) fn entries(&self, ordinal: u32) -> impl Iterator<Item = Bytes> + '_ {
        let mut lengths = Cursor(&self.raw[..self.start as usize]);
        let mut end = self.start as usize;
        let places = (0..u32::from(self.entries)).map_while(move |at| {
            let start = end;
            end += lengths.varint().ok()? as usize;
            Some((at, start..end))
        });
        places.skip_while(move |(at, _)| *at < ordinal).map(|(_, place)| {
            if place.len() * 2 > self.raw.len() {
                self.raw.slice(place)
            } else {
                Bytes::copy_from_slice(&self.raw[place])
            }
        })
    }

    /// One entry.
    pub(crate) fn entry(&self, ordinal: u32) -> Option<Bytes> {
        self.entries(ordinal).next()
    }
}

/// A block that is built but has no location yet.
#[derive(Clone, Debug)]
pub(crate) struct DraftBlock {
    codec: Codec,
    stored: Bytes,
    raw_len: usize,
    entries: u16,
    /// The decoded form, for the cache; `None` for a large block.
    block: Option<Block>,
}

impl DraftBlock {
    /// Its size in the file with header and padding, in bytes.
    pub(crate) fn total(&self) -> u64 {
        align((BLOCK_HEADER + self.stored.len()) as u64, UNIT)
    }

    /// Its size without compression and padding, in bytes.
    pub(crate) fn raw_total(&self) -> u64 {
        (BLOCK_HEADER + self.raw_len) as u64
    }

    /// Appends the block to `out`, for a location at `offset` of `place`.
    pub(crate) fn write<'a>(&'a self, out: &mut WriteBuffer<'a>, place: Place, offset: u64) -> BlockRef {
        let (stored, entries) = (&self.stored, self.entries);
        let (header, checksum) = BlockHeader::encode(self.codec, self.raw_len as u32, entries, stored, place, offset);
        out.copy(&header);
        out.lend(stored);
        out.zeros(self.total() as usize - BLOCK_HEADER - stored.len());
        BlockRef { offset, stored: stored.len() as u32, entries, checksum }
    }

    /// The decoded form; `None` for a block that is too large to be cached when it is written.
    pub(crate) fn block(&self) -> Option<&Block> {
        self.block.as_ref()
    }
}

/// Cuts a commit group's entries into blocks.
pub(crate) struct BlockBuilder<'a> {
    target: usize,
    compressor: &'a mut Compressor,
    /// The Raft group of the last entries.
    group: Option<GroupId>,
    pending: Vec<Bytes>,
    pending_bytes: usize,
    blocks: Vec<DraftBlock>,
}

impl<'a> BlockBuilder<'a> {
    /// Cuts blocks of approximately `target` bytes.
    pub(crate) fn new(target: usize, compressor: &'a mut Compressor) -> BlockBuilder<'a> {
        BlockBuilder { target, compressor, group: None, pending: Vec::new(), pending_bytes: 0, blocks: Vec::new() }
    }

    /// Adds the next entries, which are of `group`.
    pub(crate) fn append(&mut self, group: GroupId, entries: &[Bytes]) {
        if self.group.replace(group) != Some(group) {
            let bytes: usize = entries.iter().map(Bytes::len).sum();
            if self.pending_bytes >= OWN_BLOCK_BYTES || bytes >= OWN_BLOCK_BYTES {
                self.close();
            }
        }
        entries.iter().for_each(|entry| self.push(entry));
    }

    /// Adds finished blocks, of the entries of one group.
    pub(crate) fn take(&mut self, blocks: Vec<DraftBlock>) {
        self.close();
        self.blocks.extend(blocks);
    }

    fn push(&mut self, entry: &Bytes) {
        if !self.pending.is_empty() && self.pending_bytes + entry.len() > self.target {
            self.close();
        }
        self.pending.push(entry.clone());
        self.pending_bytes += entry.len() + 2;
        if self.pending_bytes >= self.target || self.pending.len() == BLOCK_ENTRIES {
            self.close();
        }
    }

    fn close(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        let large = self.pending_bytes >= LARGE_BLOCK_BYTES;
        let mut raw = if large { self.compressor.take_buffer() } else { Vec::new() };
        raw.reserve(self.pending_bytes + self.pending.len() * 3);
        self.pending.iter().for_each(|entry| put_varint(&mut raw, entry.len() as u64));
        let start = raw.len() as u32;
        self.pending.iter().for_each(|entry| raw.extend_from_slice(entry));
        let (raw_len, entries) = (raw.len(), self.pending.len() as u16);
        let draft = match self.compressor.compress(&raw) {
            Some((codec, packed)) => {
                let block = if large {
                    self.compressor.return_buffer(raw);
                    None
                } else {
                    Some(Block { raw: Bytes::from(raw), start, entries })
                };
                DraftBlock { codec, stored: Bytes::from(packed), raw_len, entries, block }
            }
            None => {
                let stored = Bytes::from(raw);
                let block = (!large).then(|| Block { raw: stored.clone(), start, entries });
                DraftBlock { codec: Codec::Raw, stored, raw_len, entries, block }
            }
        };
        self.blocks.push(draft);
        self.pending.clear();
        self.pending_bytes = 0;
    }

    /// The blocks.
    pub(crate) fn finish(mut self) -> Vec<DraftBlock> {
        self.close();
        self.blocks
    }
}

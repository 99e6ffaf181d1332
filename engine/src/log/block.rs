//! Blocks: the unit in which entries are compressed, read and cached. Pure.
//!
//! Raw form: the length of each entry as a varint, then the entries one after another. Entries of different groups share
//! a block when they share a commit group; an entry never spans blocks.

use bytes::Bytes;

use super::compress::{Compressor, expand};
use super::error::Damage;
use super::format::{BLOCK_HEADER, BlockHeader, Codec, Cursor, Place, UNIT, align, put_varint};
use super::items::{BLOCK_ENTRIES, BlockRef};
use super::pieces::Pieces;

/// A decoded block.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    raw: Bytes,
    /// Where each entry ends in `raw`; the first begins at `start`.
    ends: Box<[u32]>,
    start: u32,
}

impl Block {
    /// Finds the entries in the raw form.
    pub(crate) fn parse(raw: Bytes, entries: u16) -> Result<Block, Damage> {
        let mut cursor = Cursor(&raw);
        let mut ends = Vec::with_capacity(usize::from(entries));
        let mut end = 0u64;
        for _ in 0..entries {
            end = end.checked_add(cursor.varint()?).ok_or(Damage("entry is too long"))?;
            ends.push(end);
        }
        if cursor.0.len() as u64 != end {
            return Err(Damage("block and its entries differ in length"));
        }
        let start = raw.len() as u64 - end;
        let ends = ends.into_iter().map(|end| u32::try_from(start + end).map_err(|_| Damage("block is too long")));
        Ok(Block { ends: ends.collect::<Result<_, _>>()?, raw, start: start as u32 })
    }

    /// Reads a block: `bytes` begin with the header that stands at `offset` of `place`.
    pub(crate) fn decode(bytes: &[u8], place: Place, offset: u64) -> Result<Block, Damage> {
        let Some((head, rest)) = bytes.split_first_chunk::<BLOCK_HEADER>() else {
            return Err(Damage("block is cut off"));
        };
        let header = BlockHeader::decode(head)?;
        let stored = rest.get(..header.stored as usize).ok_or(Damage("block is cut off"))?;
        BlockHeader::verify(head, place, offset, stored)?;
        Block::parse(Bytes::from(expand(header.codec, stored, header.raw as usize)?), header.entries)
    }

    /// Bytes of memory it takes.
    pub(crate) fn weight(&self) -> usize {
        self.raw.len() + self.ends.len() * 4 + 64
    }

    /// One entry. An entry that is most of its block shares the block's memory; a small one is copied, so that it does not
    /// hold on to all of it.
    pub(crate) fn entry(&self, ordinal: u32) -> Option<Bytes> {
        let at = ordinal as usize;
        let end = *self.ends.get(at)? as usize;
        let start = if at == 0 { self.start } else { self.ends[at - 1] } as usize;
        let slice = self.raw.get(start..end)?;
        if slice.len() * 2 > self.raw.len() {
            Some(self.raw.slice(start..end))
        } else {
            Some(Bytes::copy_from_slice(slice))
        }
    }
}

/// A block that is built but has no place yet.
pub(crate) struct DraftBlock {
    raw: Bytes,
    /// The compressed form, where it is worth it.
    packed: Option<(Codec, Vec<u8>)>,
    entries: u16,
}

impl DraftBlock {
    fn stored(&self) -> &[u8] {
        self.packed.as_ref().map_or(&self.raw, |(_, packed)| packed)
    }

    /// Bytes it takes in the file.
    pub(crate) fn total(&self) -> u64 {
        align((BLOCK_HEADER + self.stored().len()) as u64, UNIT)
    }

    /// Bytes of its entries.
    pub(crate) fn raw_len(&self) -> usize {
        self.raw.len()
    }

    /// Appends the block to `out`, for a place at `offset` of `place`.
    pub(crate) fn write<'a>(&'a self, out: &mut Pieces<'a>, place: Place, offset: u64) -> BlockRef {
        let stored = self.stored();
        let codec = self.packed.as_ref().map_or(Codec::Raw, |(codec, _)| *codec);
        let raw_len = self.raw.len() as u32;
        let (header, checksum) = BlockHeader::encode(codec, raw_len, self.entries, stored, place, offset);
        out.copy(&header);
        out.lend(stored);
        out.zeros(self.total() as usize - BLOCK_HEADER - stored.len());
        BlockRef { offset, stored: stored.len() as u32, entries: self.entries, checksum }
    }

    /// The block as a reader wants it.
    pub(crate) fn to_block(&self) -> Result<Block, Damage> {
        Block::parse(self.raw.clone(), self.entries)
    }
}

/// Cuts a commit group's entries into blocks.
pub(crate) struct BlockBuilder<'a> {
    target: usize,
    compressor: &'a mut Compressor,
    pending: Vec<Bytes>,
    pending_bytes: usize,
    blocks: Vec<DraftBlock>,
}

impl<'a> BlockBuilder<'a> {
    /// Blocks of about `target` bytes.
    pub(crate) fn new(target: usize, compressor: &'a mut Compressor) -> BlockBuilder<'a> {
        BlockBuilder { target, compressor, pending: Vec::new(), pending_bytes: 0, blocks: Vec::new() }
    }

    /// Adds the next entry.
    pub(crate) fn push(&mut self, entry: &Bytes) {
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
        let mut raw = Vec::with_capacity(self.pending_bytes + self.pending.len() * 3);
        self.pending.iter().for_each(|entry| put_varint(&mut raw, entry.len() as u64));
        self.pending.iter().for_each(|entry| raw.extend_from_slice(entry));
        let packed = self.compressor.shrink(&raw);
        self.blocks.push(DraftBlock { raw: Bytes::from(raw), packed, entries: self.pending.len() as u16 });
        self.pending.clear();
        self.pending_bytes = 0;
    }

    /// The blocks.
    pub(crate) fn finish(mut self) -> Vec<DraftBlock> {
        self.close();
        self.blocks
    }
}

//! A commit group in its states: drafted, encoded, written and in flight.

use std::sync::Arc;

use super::batch::{Entries, Op};
use super::completion::PendingJob;
use crate::log::error::Result;
use crate::log::format::{
    BlockBuilder, BlockRef, Codec, Compressor, DraftBlock, GROUP_HEADER, GroupHeader, Item, Place, UNIT, WriteBuffer,
    align, encode_blocks,
};
use crate::log::read::LogFile;

/// Maximum size of a block's entry in the meta, in bytes.
const MAX_BLOCK_META: usize = 16;

/// A commit group that has no position yet.
#[derive(Default)]
pub(crate) struct Draft {
    pub(crate) items: Vec<Item>,
    pub(crate) blocks: Vec<DraftBlock>,
    pub(crate) batches: u32,
    pub(crate) synced: bool,
    /// Whether it frees space, and so may use the reserve file.
    pub(crate) may_use_reserve: bool,
}

/// A commit group that is written and not published.
pub(crate) struct InFlightGroup {
    pub(crate) draft: Draft,
    /// Its position; without content, the position of the last group before it.
    pub(crate) lsn: u64,
    pub(crate) file: Arc<LogFile>,
    pub(crate) blocks: Vec<BlockRef>,
}

/// The output of the first stage, and input of the second.
pub(crate) struct WrittenGroup {
    pub(crate) pending: Vec<PendingJob>,
    pub(crate) outcome: Result<InFlightGroup>,
}

/// The location of a group, and the group that it continues.
pub(crate) struct GroupPlace {
    pub(crate) place: Place,
    pub(crate) offset: u64,
    /// Position and checksum of the group before.
    pub(crate) last_lsn: u64,
    pub(crate) chain: u32,
    /// The position up to which everything is durable before this group is on disk.
    pub(crate) synced: u64,
    /// The alignment of the group's end, if it is synced.
    pub(crate) align_bytes: u64,
}

/// A group as bytes.
pub(crate) struct EncodedGroup<'d> {
    pub(crate) bytes: WriteBuffer<'d>,
    pub(crate) checksum: u32,
    pub(crate) blocks: Vec<BlockRef>,
    /// An upper bound of the bytes that it adds to the file's index.
    pub(crate) index_room: usize,
    /// Its bytes before compression, without padding.
    pub(crate) raw: u64,
    pub(crate) padding: u64,
}

impl Draft {
    /// The mark of a clean stop: a group without content, which proves that everything before it is synced.
    pub(crate) fn clean_stop() -> Draft {
        Draft { synced: true, ..Draft::default() }
    }

    /// Adds one change.
    pub(crate) fn add(&mut self, op: Op, builder: &mut BlockBuilder<'_>) {
        self.items.push(match op {
            Op::Append { group, first, entries } => {
                let count = entries.count();
                match entries {
                    Entries::Loose(entries) => builder.append(group, &entries),
                    Entries::Packed { blocks, .. } => builder.take(blocks),
                }
                Item::Append { group, first, count }
            }
            Op::Put { group, key, value } => Item::Put { group, key, value },
            Op::Delete { group, key } => Item::Delete { group, key },
            Op::Compact { group, first_kept } => Item::Compact { group, first_kept },
            Op::Remove { group } => Item::Remove { group },
        });
    }

    /// The files that it drops.
    pub(crate) fn dropped(&self) -> impl Iterator<Item = u64> + '_ {
        self.items.iter().filter_map(|item| match item {
            Item::Drop { file } => Some(*file),
            _ => None,
        })
    }

    /// Bytes of all blocks with their headers.
    pub(crate) fn body_len(&self) -> u64 {
        self.blocks.iter().map(DraftBlock::total).sum()
    }

    /// An upper bound of the meta's length, given that of the encoded items.
    pub(crate) fn max_meta_len(&self, items: usize) -> u64 {
        (items + self.blocks.len() * MAX_BLOCK_META) as u64
    }

    /// Encodes the group for its location. `items` are the encoded items of the draft.
    pub(crate) fn encode<'d>(&'d self, at: &GroupPlace, items: &[u8], compressor: &mut Compressor) -> EncodedGroup<'d> {
        let mut bytes = WriteBuffer::default();
        bytes.zeros(GROUP_HEADER);
        let mut blocks = Vec::with_capacity(self.blocks.len());
        for block in &self.blocks {
            let offset = at.offset + bytes.len() as u64;
            blocks.push(block.write(&mut bytes, at.place, offset));
        }
        let body = bytes.len() - GROUP_HEADER;
        let mut raw = encode_blocks(&blocks);
        raw.extend_from_slice(items);
        let packed = compressor.compress(&raw);
        let meta_codec = packed.as_ref().map_or(Codec::Raw, |(codec, _)| *codec);
        let meta = packed.as_ref().map_or(&raw, |(_, packed)| packed);
        bytes.copy(meta);
        let unit = if self.synced { at.align_bytes } else { UNIT };
        let end = align(at.offset + bytes.len() as u64, unit);
        let padding = end - at.offset - bytes.len() as u64;
        let header = GroupHeader {
            lsn: at.last_lsn + 1,
            synced: at.synced,
            chain: at.chain,
            pad: padding as u32,
            meta_stored: meta.len() as u32,
            meta_raw: raw.len() as u32,
            body: body as u32,
            blocks: blocks.len() as u32,
            batches: self.batches,
            meta_codec,
        };
        let (head, checksum) = header.encode(at.place, at.offset, meta);
        bytes.zeros(padding as usize);
        bytes.set_head(&head);
        // Keys, values and numbers are as large in the index as in the meta, and each block adds a location.
        let index_room = 4 * raw.len() + 128 * blocks.len();
        let raw = (GROUP_HEADER + raw.len()) as u64 + self.blocks.iter().map(DraftBlock::raw_total).sum::<u64>();
        EncodedGroup { bytes, checksum, blocks, index_room, raw, padding }
    }
}

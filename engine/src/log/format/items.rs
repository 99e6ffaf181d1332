//! The meta of a commit group: its blocks and its changes. No I/O.
//!
//! Entries are in the blocks, in the order of the items that name them. So an item needs no locations: the first item
//! with entries takes the first `count` of them, and so on. [`replay`] walks items and blocks together and passes the
//! changes, with the locations of entries, to a [`Sink`]. The writer after a write and recovery after a read both use it.

use bytes::Bytes;

use super::group_header::BLOCK_HEADER;
use super::numbers::{Cursor, put_bytes, put_varint};
use super::place::{UNIT, align};
use crate::log::error::Damage;
use crate::log::types::GroupId;

/// Maximum number of entries in a block.
pub(crate) const BLOCK_ENTRIES: usize = 4096;

/// One change, as recorded in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    /// `count` entries from index `first`. They replace all earlier entries at or after `first`.
    Append { group: GroupId, first: u64, count: u64 },
    /// `count` existing entries from index `first` at a new location, so that the old file can be dropped. At this
    /// position the group's log is exactly `floor..=last`; earlier entries outside are dead.
    Rewrite { group: GroupId, floor: u64, last: u64, first: u64, count: u64 },
    /// A small key is set.
    Put { group: GroupId, key: Bytes, value: Bytes },
    /// A small key is removed.
    Delete { group: GroupId, key: Bytes },
    /// Entries below `first_kept` are dropped.
    Compact { group: GroupId, first_kept: u64 },
    /// The group is removed.
    Remove { group: GroupId },
    /// A file holds no live record and will be deleted.
    Drop { file: u64 },
}

const APPEND: u8 = 1;
const REWRITE: u8 = 2;
const PUT: u8 = 3;
const DELETE: u8 = 4;
const COMPACT: u8 = 5;
const REMOVE: u8 = 6;
const DROP: u8 = 7;

/// The location and size of a block of a commit group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockRef {
    /// Offset of its header in the file.
    pub(crate) offset: u64,
    /// Stored bytes, without the header.
    pub(crate) stored: u32,
    pub(crate) entries: u16,
    pub(crate) checksum: u32,
}

impl BlockRef {
    /// Its size in the file, in bytes.
    pub(crate) fn total(&self) -> u64 {
        align(BLOCK_HEADER as u64 + u64::from(self.stored), UNIT)
    }
}

/// Encodes the block table, which is the first part of the meta.
pub(crate) fn encode_blocks(blocks: &[BlockRef]) -> Vec<u8> {
    let mut out = Vec::with_capacity(blocks.len() * 12);
    for block in blocks {
        put_varint(&mut out, u64::from(block.stored));
        put_varint(&mut out, u64::from(block.entries));
        out.extend_from_slice(&block.checksum.to_le_bytes());
    }
    out
}

/// Encodes the items, which follow the block table.
pub(crate) fn encode_items(items: &[Item]) -> Vec<u8> {
    let mut out = Vec::with_capacity(items.len() * 24);
    items.iter().for_each(|item| item.encode(&mut out));
    out
}

/// Decodes what [`encode_blocks`] and [`encode_items`] wrote. `body_offset` is the offset of the first block; blocks
/// follow each other.
pub(crate) fn decode_meta(meta: &[u8], blocks: u32, body_offset: u64) -> Result<(Vec<BlockRef>, Vec<Item>), Damage> {
    let mut cursor = Cursor(meta);
    let mut offset = body_offset;
    let mut table = Vec::new();
    for _ in 0..blocks {
        let stored = u32::try_from(cursor.varint()?).map_err(|_| Damage("block is too large"))?;
        let entries = u16::try_from(cursor.varint()?).map_err(|_| Damage("block has too many entries"))?;
        if entries == 0 || usize::from(entries) > BLOCK_ENTRIES {
            return Err(Damage("block has an impossible number of entries"));
        }
        let block = BlockRef { offset, stored, entries, checksum: cursor.u32()? };
        offset += block.total();
        table.push(block);
    }
    let mut items = Vec::new();
    while !cursor.is_empty() {
        items.push(Item::decode(&mut cursor)?);
    }
    Ok((table, items))
}

impl Item {
    /// The group that it changes.
    pub(crate) fn group(&self) -> Option<GroupId> {
        match self {
            Item::Append { group, .. }
            | Item::Rewrite { group, .. }
            | Item::Put { group, .. }
            | Item::Delete { group, .. }
            | Item::Compact { group, .. }
            | Item::Remove { group } => Some(*group),
            Item::Drop { .. } => None,
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Item::Append { group, first, count } => put_numbers(out, APPEND, &[group.0, *first, *count]),
            Item::Rewrite { group, floor, last, first, count } => {
                put_numbers(out, REWRITE, &[group.0, *floor, *last, *first, *count]);
            }
            Item::Put { group, key, value } => {
                put_numbers(out, PUT, &[group.0]);
                put_bytes(out, key);
                put_bytes(out, value);
            }
            Item::Delete { group, key } => {
                put_numbers(out, DELETE, &[group.0]);
                put_bytes(out, key);
            }
            Item::Compact { group, first_kept } => put_numbers(out, COMPACT, &[group.0, *first_kept]),
            Item::Remove { group } => put_numbers(out, REMOVE, &[group.0]),
            Item::Drop { file } => put_numbers(out, DROP, &[*file]),
        }
    }

    fn decode(cursor: &mut Cursor<'_>) -> Result<Item, Damage> {
        let tag = cursor.byte()?;
        let number = cursor.varint()?;
        let group = GroupId(number);
        Ok(match tag {
            APPEND => Item::Append { group, first: cursor.varint()?, count: cursor.varint()? },
            REWRITE => Item::Rewrite {
                group,
                floor: cursor.varint()?,
                last: cursor.varint()?,
                first: cursor.varint()?,
                count: cursor.varint()?,
            },
            PUT => Item::Put {
                group,
                key: Bytes::copy_from_slice(cursor.bytes()?),
                value: Bytes::copy_from_slice(cursor.bytes()?),
            },
            DELETE => Item::Delete { group, key: Bytes::copy_from_slice(cursor.bytes()?) },
            COMPACT => Item::Compact { group, first_kept: cursor.varint()? },
            REMOVE => Item::Remove { group },
            DROP => Item::Drop { file: number },
            _ => return Err(Damage("unknown item")),
        })
    }
}

fn put_numbers(out: &mut Vec<u8>, tag: u8, numbers: &[u64]) {
    out.push(tag);
    numbers.iter().for_each(|number| put_varint(out, *number));
}

/// A run of consecutive entries in one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    /// Index of the first entry.
    pub(crate) first: u64,
    /// Number of entries, 1 to 4096.
    pub(crate) count: u32,
    /// The file's number.
    pub(crate) file: u64,
    /// Offset of the block's header in it.
    pub(crate) offset: u64,
    /// The first entry's number in the block.
    pub(crate) ordinal: u32,
    /// Their approximate size in the file, in bytes.
    pub(crate) bytes: u64,
}

impl Span {
    /// The index after the last entry.
    pub(crate) fn end(&self) -> u64 {
        self.first + u64::from(self.count)
    }

    /// The number in the block of the entry with this index, which is in the span.
    pub(crate) fn ordinal_of(&self, index: u64) -> u32 {
        self.ordinal + (index - self.first) as u32
    }
}

/// Receives changes: the engine's index, or the summary of one file.
pub(crate) trait Sink {
    /// Drops the entries of the group at or after `end`. Then places `spans`, which ascend, and replaces the entries at
    /// their indexes.
    fn place(&mut self, group: GroupId, end: u64, spans: &[Span]) -> Result<(), Damage>;
    /// Sets a key, by a record in `file`.
    fn put(&mut self, group: GroupId, key: &Bytes, value: &Bytes, file: u64);
    /// Removes a key.
    fn delete(&mut self, group: GroupId, key: &[u8]);
    /// Drops entries below `first_kept`, by a record in `file`.
    fn compact(&mut self, group: GroupId, first_kept: u64, file: u64);
    /// Removes the group.
    fn remove(&mut self, group: GroupId);
    /// Drops the file `dropped`.
    fn drop_file(&mut self, dropped: u64);
}

/// Applies `items` to `sink`, with entries in `blocks` of `file`. An error is damage: items and blocks do not match.
pub(crate) fn replay(items: &[Item], blocks: &[BlockRef], file: u64, sink: &mut dyn Sink) -> Result<(), Damage> {
    let mut entries = EntryCursor { blocks, file, ordinal: 0, spans: Vec::new() };
    for item in items {
        match item {
            Item::Append { group, first, count } => {
                entries.take(*first, *count)?;
                sink.place(*group, *first, &entries.spans)?;
            }
            Item::Rewrite { group, floor, last, first, count } => {
                let end = last.checked_add(1).ok_or(Damage("index is too large"))?;
                entries.take(*first, *count)?;
                if *floor > 0 {
                    sink.compact(*group, *floor, file);
                }
                sink.place(*group, end, &entries.spans)?;
            }
            Item::Put { group, key, value } => sink.put(*group, key, value, file),
            Item::Delete { group, key } => sink.delete(*group, key),
            Item::Compact { group, first_kept } => sink.compact(*group, *first_kept, file),
            Item::Remove { group } => sink.remove(*group),
            Item::Drop { file: dropped } => sink.drop_file(*dropped),
        }
    }
    if entries.blocks.is_empty() { Ok(()) } else { Err(Damage("commit group has entries that no item names")) }
}

/// A position in the entries of a commit group.
struct EntryCursor<'a> {
    /// The remaining blocks; `ordinal` is a position in the first.
    blocks: &'a [BlockRef],
    file: u64,
    ordinal: u32,
    spans: Vec<Span>,
}

impl EntryCursor<'_> {
    /// Puts the locations of the next `count` entries into `spans`, numbered from `first`.
    fn take(&mut self, first: u64, count: u64) -> Result<(), Damage> {
        self.spans.clear();
        if first.checked_add(count).is_none() {
            return Err(Damage("index is too large"));
        }
        let (mut index, mut left) = (first, count);
        while left > 0 {
            let Some((block, rest)) = self.blocks.split_first() else {
                return Err(Damage("items name more entries than the commit group has"));
            };
            let entries = u32::from(block.entries);
            let step = u64::from(entries - self.ordinal).min(left) as u32;
            self.spans.push(Span {
                first: index,
                count: step,
                file: self.file,
                offset: block.offset,
                ordinal: self.ordinal,
                bytes: block.total() * u64::from(step) / u64::from(entries),
            });
            index += u64::from(step);
            left -= u64::from(step);
            self.ordinal += step;
            if self.ordinal == entries {
                self.blocks = rest;
                self.ordinal = 0;
            }
        }
        Ok(())
    }
}

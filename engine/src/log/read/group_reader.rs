//! Reads and verifies commit groups of a file, one at a time and at any offset. The caller decides how to handle
//! damage: `scan.rs` stops there.

use super::log_file::LogFile;
use crate::log::error::{Damage, LogError, Result};
use crate::log::format::{
    BLOCK_HEADER, Block, BlockHeader, BlockRef, GROUP_HEADER, GroupHeader, Item, UNIT, decode_meta, decompress, replay,
};
use crate::log::index::FileSummary;
use crate::log::types::GroupId;

/// Minimum size of a read, in bytes.
pub(crate) const CHUNK: u64 = 256 << 10;
/// Size of a read after a failed one, in bytes: the smallest unit that a disk loses.
const SECTOR: usize = 512;

/// A decoded value, or the damage of its bytes.
pub(crate) type Verified<T> = std::result::Result<T, Damage>;

/// A window of a file in memory, moved along as needed.
pub(crate) struct GroupReader<'a> {
    pub(crate) file: &'a LogFile,
    /// The length of the file.
    pub(crate) len: u64,
    /// Minimum size of a read, in bytes.
    chunk: u64,
    start: u64,
    bytes: Vec<u8>,
    /// Bytes read from the file so far.
    pub(crate) bytes_read: u64,
    /// Whether unreadable parts are read as zeros.
    tolerant: bool,
    /// Offset and error of the first failed read.
    pub(crate) failed: Option<(u64, LogError)>,
}

/// Header and meta of a group, verified by their checksum.
pub(crate) struct Head {
    pub(crate) offset: u64,
    pub(crate) header: GroupHeader,
    pub(crate) checksum: u32,
    meta: Vec<u8>,
}

/// A commit group without the content of its blocks.
pub(crate) struct CommitGroup {
    pub(crate) offset: u64,
    pub(crate) header: GroupHeader,
    pub(crate) checksum: u32,
    pub(crate) blocks: Vec<BlockRef>,
    pub(crate) items: Vec<Item>,
}

/// The part of a file after the last readable group.
pub(crate) struct Rest {
    /// Where garbage ends; the beginning of the rest if only zeros follow, or, in a reused file, no bytes that resemble
    /// a group of this file.
    pub(crate) garbage_end: u64,
    /// Groups whose header and meta pass their checksum.
    pub(crate) heads: Vec<HeadRef>,
}

/// The offset of a group and fields of its header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeadRef {
    pub(crate) offset: u64,
    pub(crate) lsn: u64,
    pub(crate) synced: u64,
    pub(crate) chain: u32,
}

impl<'a> GroupReader<'a> {
    /// Reads `file` up to its present length.
    pub(crate) fn new(file: &'a LogFile) -> GroupReader<'a> {
        let len = file.len();
        GroupReader {
            file,
            len,
            chunk: CHUNK,
            start: 0,
            bytes: Vec::new(),
            bytes_read: 0,
            tolerant: false,
            failed: None,
        }
    }

    /// As [`GroupReader::new`], with zeros in place of unreadable parts: they match no checksum.
    pub(crate) fn tolerant(file: &'a LogFile) -> GroupReader<'a> {
        GroupReader { tolerant: true, ..GroupReader::new(file) }
    }

    /// As [`GroupReader::new`], without reading ahead.
    pub(crate) fn exact(file: &'a LogFile) -> GroupReader<'a> {
        GroupReader { chunk: 0, ..GroupReader::new(file) }
    }

    /// `count` bytes at `offset`; `None` past the end of the file.
    pub(crate) fn get(&mut self, offset: u64, count: u64) -> Result<Option<&[u8]>> {
        let Some(end) = offset.checked_add(count).filter(|end| *end <= self.len) else { return Ok(None) };
        let buffered_end = self.start + self.bytes.len() as u64;
        if offset < self.start || end > buffered_end {
            let read_to = (offset + self.chunk).max(end).min(self.len);
            self.bytes.clear();
            self.bytes.resize((read_to - offset) as usize, 0);
            self.start = offset;
            let mut bytes = std::mem::take(&mut self.bytes);
            self.read(&mut bytes, offset)?;
            self.bytes = bytes;
        }
        let at = (offset - self.start) as usize;
        Ok(Some(&self.bytes[at..at + count as usize]))
    }

    /// Reads from the file. If the reader is tolerant and the read fails, reads sector by sector, with zeros for those
    /// that fail.
    fn read(&mut self, bytes: &mut [u8], offset: u64) -> Result<()> {
        self.bytes_read += bytes.len() as u64;
        match self.file.read(bytes, offset) {
            Err(error) if self.tolerant => self.failed.get_or_insert((offset, error)),
            outcome => return outcome,
        };
        for (at, piece) in bytes.chunks_mut(SECTOR).enumerate() {
            if self.file.read(piece, offset + (at * SECTOR) as u64).is_err() {
                piece.fill(0);
            }
        }
        Ok(())
    }

    /// Header and meta of the group at `offset`.
    pub(crate) fn head(&mut self, offset: u64) -> Result<Verified<Head>> {
        let place = self.file.place;
        let head = self.get(offset, GROUP_HEADER as u64)?.and_then(|bytes| bytes.first_chunk::<GROUP_HEADER>());
        let Some(head) = head.copied() else { return Ok(Err(Damage("file ends"))) };
        let header = match GroupHeader::decode(&head, place) {
            Ok(header) => header,
            Err(damage) => return Ok(Err(damage)),
        };
        let meta_offset = offset + GROUP_HEADER as u64 + u64::from(header.body);
        let Some(meta) = self.get(meta_offset, u64::from(header.meta_stored))? else {
            return Ok(Err(Damage("commit group is cut off")));
        };
        let verified = GroupHeader::verify(&head, place, offset, meta);
        Ok(verified.map(|checksum| Head { offset, header, checksum, meta: meta.to_vec() }))
    }

    /// Verifies the blocks of a group. Returns the first damaged one, if any.
    pub(crate) fn damaged_block<'g>(&mut self, group: &'g CommitGroup) -> Result<Option<(&'g BlockRef, Damage)>> {
        for block in &group.blocks {
            if let Err(damage) = self.verify_block(block)? {
                return Ok(Some((block, damage)));
            }
        }
        Ok(None)
    }

    /// Verifies one block of a group.
    pub(crate) fn verify_block(&mut self, block: &BlockRef) -> Result<Verified<()>> {
        let place = self.file.place;
        let bytes = self.get(block.offset, BLOCK_HEADER as u64 + u64::from(block.stored))?;
        let Some((head, stored)) = bytes.and_then(|bytes| bytes.split_first_chunk::<BLOCK_HEADER>()) else {
            return Ok(Err(Damage("block is cut off")));
        };
        Ok(BlockHeader::decode(head).and_then(|header| {
            if header.checksum != block.checksum || header.stored != block.stored || header.entries != block.entries {
                return Err(Damage("block and its commit group differ"));
            }
            BlockHeader::verify(head, place, block.offset, stored)
        }))
    }

    /// Reads, verifies and decodes one block of a group.
    pub(crate) fn check_block(&mut self, block: &BlockRef) -> Result<Verified<()>> {
        // Loads the whole block with one read.
        self.get(block.offset, block.total())?;
        if let Err(damage) = self.verify_block(block)? {
            return Ok(Err(damage));
        }
        let place = self.file.place;
        let bytes = self.get(block.offset, block.total())?.unwrap_or_default();
        Ok(Block::decode(bytes, place, block.offset).map(drop))
    }

    /// Reads everything from `from` on, where no group can be read. `after` is the position of the group before, if
    /// only groups that may follow it are of interest.
    ///
    /// In a reused file most of the rest is content of an earlier file, which never decodes as a group of this one. It
    /// may contain a group of this file that was written before a crash and not reached by the scan. That group must be
    /// overwritten before the log grows up to it.
    ///
    /// Clients write the content and may imitate group headers in it. So an impossible header causes no read
    /// ([`is_plausible`]), and all reads to verify headers are limited to [`READ_LIMIT_FACTOR`] times the size of the
    /// rest. That suffices for all real groups, because groups of a file do not overlap. The shortest metas are
    /// verified first: a few long ones that use up the limit cannot hide a shorter group.
    pub(crate) fn scan_rest(&mut self, from: u64, reused: bool, after: Option<u64>) -> Result<Rest> {
        let mut rest = Rest { garbage_end: from, heads: Vec::new() };
        let mut candidates: Vec<(u32, u64)> = Vec::new();
        let (place, len) = (self.file.place, self.len);
        let mut offset = from;
        while offset < len {
            // A header that begins in this step may end in the next.
            let bytes = self.get(offset, (len - offset).min(CHUNK + GROUP_HEADER as u64))?.unwrap_or_default();
            if let Some(last) = bytes.iter().rposition(|byte| *byte != 0) {
                let units = (offset..offset + CHUNK).step_by(UNIT as usize);
                for (at, _) in units.zip(bytes.chunks(UNIT as usize)).filter(|(_, unit)| GroupHeader::starts(unit)) {
                    let head =
                        bytes.get((at - offset) as usize..).and_then(|bytes| bytes.first_chunk::<GROUP_HEADER>());
                    let header = head.and_then(|head| GroupHeader::decode(head, place).ok());
                    let Some(header) = header.filter(|header| is_plausible(header, at, len)) else { continue };
                    if after.is_none_or(|after| may_follow(header.lsn, after, at - from)) {
                        candidates.push((header.meta_stored, at));
                        if reused {
                            rest.garbage_end = rest.garbage_end.max((at + header.total()).min(len));
                        }
                    }
                }
                if !reused {
                    rest.garbage_end = rest.garbage_end.max(offset + last as u64 + 1);
                }
            }
            offset += CHUNK;
        }
        candidates.sort_unstable();
        let mut read_budget = READ_LIMIT_FACTOR * (len - from.min(len));
        for (meta, at) in candidates {
            let cost = GROUP_HEADER as u64 + u64::from(meta);
            let Some(left) = read_budget.checked_sub(cost) else { break };
            read_budget = left;
            rest.heads.extend(self.head_ref(at)?);
        }
        rest.heads.sort_unstable_by_key(|head| head.offset);
        Ok(rest)
    }

    /// Fields of the header at `offset`, if header and meta pass their checksum. Reads no other bytes.
    fn head_ref(&mut self, offset: u64) -> Result<Option<HeadRef>> {
        let place = self.file.place;
        let mut head = [0; GROUP_HEADER];
        self.read(&mut head, offset)?;
        let Ok(header) = GroupHeader::decode(&head, place) else { return Ok(None) };
        let mut meta = vec![0; header.meta_stored as usize];
        self.read(&mut meta, offset + GROUP_HEADER as u64 + u64::from(header.body))?;
        let GroupHeader { lsn, synced, chain, .. } = header;
        Ok(GroupHeader::verify(&head, place, offset, &meta).ok().map(|_| HeadRef { offset, lsn, synced, chain }))
    }

    /// The groups that the commit groups at `heads` change, ascending, as far as their metas decode.
    pub(crate) fn groups_of(&mut self, heads: &[HeadRef]) -> Result<Vec<GroupId>> {
        let mut groups = Vec::new();
        for head in heads {
            if let Ok(group) = self.head(head.offset)?.and_then(Head::open) {
                groups.extend(group.groups());
            }
        }
        groups.sort_unstable();
        groups.dedup();
        Ok(groups)
    }

    /// Whether a group header at `offset` continues the group with this position and checksum. Its own checksum is not
    /// verified, but a client that imitates a header in content does not know `chain`.
    pub(crate) fn seems_to_continue(&mut self, offset: u64, lsn: u64, chain: u32) -> Result<bool> {
        let (place, len) = (self.file.place, self.len);
        let head = self.get(offset, GROUP_HEADER as u64)?.and_then(|bytes| bytes.first_chunk::<GROUP_HEADER>());
        let header = head.and_then(|head| GroupHeader::decode(head, place).ok());
        Ok(header.is_some_and(|header| is_plausible(&header, offset, len) && continues(&header, lsn, chain)))
    }
}

/// Maximum bytes that [`GroupReader::scan_rest`] reads to verify plausible headers, as a multiple of the rest.
const READ_LIMIT_FACTOR: u64 = 4;

/// Whether a group with this header may exist at `offset` of a file of `len` bytes.
fn is_plausible(header: &GroupHeader, offset: u64, len: u64) -> bool {
    let content = GROUP_HEADER as u64 + u64::from(header.body) + u64::from(header.meta_stored);
    // The padding of the last group may be missing.
    let fits = offset.checked_add(content).is_some_and(|end| end <= len);
    let blocks = u64::from(header.blocks) * BLOCK_HEADER as u64 <= u64::from(header.body);
    fits && blocks && header.synced < header.lsn && header.total().is_multiple_of(UNIT)
}

/// Whether a group at position `lsn` may start `bytes` after the one at `after`: every group between takes at least a
/// header.
fn may_follow(lsn: u64, after: u64, bytes: u64) -> bool {
    let between = lsn.checked_sub(after).and_then(|steps| steps.checked_sub(1));
    between.is_some_and(|between| between <= bytes / GROUP_HEADER as u64)
}

/// Whether a header is that of the group after the one with this position and checksum.
fn continues(header: &GroupHeader, lsn: u64, chain: u32) -> bool {
    lsn.checked_add(1) == Some(header.lsn) && header.chain == chain && header.synced < header.lsn
}

impl Head {
    /// Whether the group follows the one with this position and checksum.
    pub(crate) fn continues(&self, lsn: u64, chain: u32) -> bool {
        continues(&self.header, lsn, chain)
    }

    /// Decodes the meta.
    pub(crate) fn open(self) -> Verified<CommitGroup> {
        let Head { offset, header, checksum, meta } = self;
        if header.total() % UNIT != 0 {
            return Err(Damage("commit group has an impossible length"));
        }
        let meta = decompress(header.meta_codec, &meta, header.meta_raw as usize)?;
        let body = offset + GROUP_HEADER as u64;
        let (blocks, items) = decode_meta(&meta, header.blocks, body)?;
        if blocks.last().is_some_and(|last| last.offset + last.total() != body + u64::from(header.body)) {
            return Err(Damage("blocks differ in length from their commit group"));
        }
        Ok(CommitGroup { offset, header, checksum, blocks, items })
    }
}

impl CommitGroup {
    /// Where the next group may begin.
    pub(crate) fn end(&self) -> u64 {
        self.offset + self.header.total()
    }

    /// The groups that it changes, ascending.
    pub(crate) fn groups(&self) -> Vec<GroupId> {
        let mut groups: Vec<GroupId> = self.items.iter().filter_map(Item::group).collect();
        groups.sort_unstable();
        groups.dedup();
        groups
    }

    /// The groups with entries in one of its blocks, ascending.
    pub(crate) fn groups_in(&self, block: &BlockRef) -> Vec<GroupId> {
        // Only offsets within this file are compared, so its number does not matter.
        let mut summary = FileSummary::default();
        // Damage is ignored here: callers that replay the group report it.
        let _ = replay(&self.items, &self.blocks, 0, &mut summary);
        summary.groups_in(block.offset, block.offset + 1)
    }
}

//! Reads commit groups out of a file and verifies them, one at a time and wherever asked. What follows from damage is up to the
//! caller: [`super::scan`] stops there.

use super::compress::expand;
use super::error::{Damage, LogError, Result};
use super::file::LogFile;
use super::format::{BLOCK_HEADER, BlockHeader, GROUP_HEADER, GroupHeader, UNIT};
use super::items::{BlockRef, Item, decode};

/// How much is read at once.
pub(crate) const CHUNK: u64 = 256 << 10;
/// How much at once where reading fails: what a disk loses at least.
const PIECE: usize = 512;

/// What is read, or what is wrong with the bytes.
pub(crate) type Verified<T> = std::result::Result<T, Damage>;

/// A part of a file in memory, moved along as needed.
pub(crate) struct GroupReader<'a> {
    pub(crate) file: &'a LogFile,
    /// The length of the file.
    pub(crate) len: u64,
    start: u64,
    bytes: Vec<u8>,
    /// Bytes read from the file so far.
    pub(crate) bytes_read: u64,
    /// Whether parts that the disk does not give are read as zeros.
    tolerant: bool,
    /// Where the disk first failed, and how.
    pub(crate) failed: Option<(u64, LogError)>,
}

/// A group's header and meta, which pass their checksum.
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

/// What stands after the last group that could be read.
pub(crate) struct Rest {
    /// Where what cannot be read as groups ends; the beginning of the rest where only zeros follow, or, in a reused file, nothing
    /// that could be taken for a group of this file.
    pub(crate) garbage_end: u64,
    /// Groups in it whose header and meta pass their checksum.
    pub(crate) heads: Vec<HeadRef>,
}

/// Where a group stands and what its header says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeadRef {
    pub(crate) offset: u64,
    pub(crate) lsn: u64,
    pub(crate) synced: u64,
    pub(crate) chain: u32,
}

impl<'a> GroupReader<'a> {
    /// Reads `file` as long as it is now.
    pub(crate) fn new(file: &'a LogFile) -> GroupReader<'a> {
        let len = file.len();
        GroupReader { file, len, start: 0, bytes: Vec::new(), bytes_read: 0, tolerant: false, failed: None }
    }

    /// The same, with zeros in place of what the disk does not give: no checksum fits them.
    pub(crate) fn tolerant(file: &'a LogFile) -> GroupReader<'a> {
        GroupReader { tolerant: true, ..GroupReader::new(file) }
    }

    /// `count` bytes at `offset`; `None` past the end of the file.
    pub(crate) fn get(&mut self, offset: u64, count: u64) -> Result<Option<&[u8]>> {
        let Some(end) = offset.checked_add(count).filter(|end| *end <= self.len) else { return Ok(None) };
        let have = self.start + self.bytes.len() as u64;
        if offset < self.start || end > have {
            let upto = (offset + CHUNK).max(end).min(self.len);
            self.bytes.clear();
            self.bytes.resize((upto - offset) as usize, 0);
            self.start = offset;
            match self.file.read(&mut self.bytes, offset) {
                Err(error) if self.tolerant => self.read_in_pieces(error),
                outcome => outcome?,
            }
            self.bytes_read += upto - offset;
        }
        let at = (offset - self.start) as usize;
        Ok(Some(&self.bytes[at..at + count as usize]))
    }

    /// Reads what can be read of the part in memory, after all of it at once failed.
    fn read_in_pieces(&mut self, error: LogError) {
        self.failed.get_or_insert((self.start, error));
        let start = self.start;
        for (at, piece) in self.bytes.chunks_mut(PIECE).enumerate() {
            if self.file.read(piece, start + (at * PIECE) as u64).is_err() {
                piece.fill(0);
            }
        }
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

    /// Verifies every block of a group; the first that is damaged decides.
    pub(crate) fn verify_blocks(&mut self, group: &CommitGroup) -> Result<Verified<()>> {
        for block in &group.blocks {
            if let Err(damage) = self.verify_block(block)? {
                return Ok(Err(damage));
            }
        }
        Ok(Ok(()))
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

    /// Looks at everything from `from` on, where no group can be read.
    ///
    /// In a reused file most of it is the content of an earlier file, which is never taken for a group of this one. What could be
    /// is a group of this file that was written before a crash and not reached by the scan: it must not be there any more
    /// when the log has grown up to it.
    pub(crate) fn rest(&mut self, from: u64, reused: bool) -> Result<Rest> {
        let mut rest = Rest { garbage_end: from, heads: Vec::new() };
        let mut offset = from;
        while offset < self.len {
            let count = (self.len - offset).min(CHUNK);
            let Some(bytes) = self.get(offset, count)? else { break };
            let Some(last) = bytes.iter().rposition(|byte| *byte != 0) else {
                offset += count;
                continue;
            };
            let starts = bytes.chunks(UNIT as usize).enumerate().filter(|(_, unit)| GroupHeader::starts(unit));
            let candidates: Vec<u64> = starts.map(|(at, _)| offset + at as u64 * UNIT).collect();
            if !reused {
                rest.garbage_end = offset + last as u64 + 1;
            }
            for candidate in candidates {
                if let Ok(Head { header, .. }) = self.head(candidate)? {
                    let GroupHeader { lsn, synced, chain, .. } = header;
                    rest.heads.push(HeadRef { offset: candidate, lsn, synced, chain });
                }
                if reused {
                    rest.garbage_end = rest.garbage_end.max(self.claimed_end(candidate)?);
                }
            }
            offset += count;
        }
        Ok(rest)
    }

    /// Where the group of this file that seems to begin at `offset` would end; 0 if it is none of this file.
    fn claimed_end(&mut self, offset: u64) -> Result<u64> {
        let (place, len) = (self.file.place, self.len);
        let head = self.get(offset, GROUP_HEADER as u64)?.and_then(|bytes| bytes.first_chunk::<GROUP_HEADER>());
        let header = head.and_then(|head| GroupHeader::decode(head, place).ok());
        Ok(header.map_or(0, |header| offset.saturating_add(header.total()).min(len)))
    }
}

impl Head {
    /// Whether the group follows the one with this position and checksum.
    pub(crate) fn continues(&self, lsn: u64, chain: u32) -> bool {
        lsn.checked_add(1) == Some(self.header.lsn)
            && self.header.chain == chain
            && self.header.synced < self.header.lsn
    }

    /// Decodes the meta.
    pub(crate) fn open(self) -> Verified<CommitGroup> {
        let Head { offset, header, checksum, meta } = self;
        if header.total() % UNIT != 0 {
            return Err(Damage("commit group has an impossible length"));
        }
        let meta = expand(header.meta_codec, &meta, header.meta_raw as usize)?;
        let body = offset + GROUP_HEADER as u64;
        let (blocks, items) = decode(&meta, header.blocks, body)?;
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
}

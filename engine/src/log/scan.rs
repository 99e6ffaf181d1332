//! Reads a file group by group: the active file at open, any file when everything is to be verified.
//!
//! The scan ends where no valid group stands. Whether that is a torn tail or damage is decided by what else the file says: a
//! group further on that passes its checksum and knows this position to be synced proves damage; otherwise what is left
//! was never acknowledged as synced, as far as anyone can tell, and may be cut. (Of the very last group nobody
//! can tell: no later one vouches for it. The report names what was cut.)

use super::compress::expand;
use super::effects::FileEffects;
use super::error::{Damage, Result};
use super::file::LogFile;
use super::format::{BLOCK_HEADER, BlockHeader, FileHeader, GROUP_HEADER, GroupHeader, REUSED, UNIT};
use super::items::{BlockRef, decode, replay};

/// What a file holds.
pub(crate) struct Scan {
    pub(crate) effects: FileEffects,
    /// Where the last group ends.
    pub(crate) end: u64,
    /// Position and checksum of the last group; of the one before the file where it has none.
    pub(crate) last_lsn: u64,
    pub(crate) chain: u32,
    /// The position up to which groups of this file prove that all was synced.
    pub(crate) vouched: u64,
    /// Where the first group begins that is not proven to be synced.
    pub(crate) unvouched_from: u64,
    /// Number of groups, and whether the last one is the mark of a clean stop.
    pub(crate) groups: u64,
    pub(crate) stopped_cleanly: bool,
    /// Where what cannot be read as groups ends; equal to `end` where only zeros follow, or, in a reused file, nothing that
    /// could be taken for a group of this file.
    pub(crate) garbage_end: u64,
}

/// How much is read at once.
const CHUNK: u64 = 256 << 10;

/// A part of a file in memory, moved along as needed.
struct Window<'a> {
    file: &'a LogFile,
    len: u64,
    start: u64,
    bytes: Vec<u8>,
}

impl<'a> Window<'a> {
    fn new(file: &'a LogFile) -> Window<'a> {
        Window { file, len: file.len(), start: 0, bytes: Vec::new() }
    }

    /// `count` bytes at `offset`; `None` past the end of the file.
    fn get(&mut self, offset: u64, count: u64) -> Result<Option<&[u8]>> {
        let Some(end) = offset.checked_add(count).filter(|end| *end <= self.len) else { return Ok(None) };
        let have = self.start + self.bytes.len() as u64;
        if offset < self.start || end > have {
            let upto = (offset + CHUNK).max(end).min(self.len);
            self.bytes.clear();
            self.bytes.resize((upto - offset) as usize, 0);
            self.start = offset;
            self.file.read(&mut self.bytes, offset)?;
        }
        let at = (offset - self.start) as usize;
        Ok(Some(&self.bytes[at..at + count as usize]))
    }
}

/// A group whose header and meta pass their checksum.
struct Read {
    header: GroupHeader,
    checksum: u32,
    meta: Vec<u8>,
}

/// Reads the group at `offset`, but not its blocks. The outer error is I/O, the inner what is wrong with the bytes.
fn read_group(window: &mut Window<'_>, offset: u64) -> Result<std::result::Result<Read, Damage>> {
    let place = window.file.place;
    let Some(head) = window.get(offset, GROUP_HEADER as u64)?.and_then(|bytes| bytes.first_chunk::<GROUP_HEADER>())
    else {
        return Ok(Err(Damage("file ends")));
    };
    let head = *head;
    let header = match GroupHeader::decode(&head, place) {
        Ok(header) => header,
        Err(damage) => return Ok(Err(damage)),
    };
    let meta_offset = offset + GROUP_HEADER as u64 + u64::from(header.body);
    let Some(meta) = window.get(meta_offset, u64::from(header.meta_stored))? else {
        return Ok(Err(Damage("commit group is cut off")));
    };
    let meta = meta.to_vec();
    Ok(GroupHeader::verify(&head, place, offset, &meta).map(|checksum| Read { header, checksum, meta }))
}

/// Verifies every block of a group.
fn verify_blocks(
    window: &mut Window<'_>,
    blocks: &[BlockRef],
    body_end: u64,
) -> Result<std::result::Result<(), Damage>> {
    let place = window.file.place;
    let mut end = None;
    for block in blocks {
        let Some(bytes) = window.get(block.offset, BLOCK_HEADER as u64 + u64::from(block.stored))? else {
            return Ok(Err(Damage("block is cut off")));
        };
        let Some((head, stored)) = bytes.split_first_chunk::<BLOCK_HEADER>() else {
            return Ok(Err(Damage("block is cut off")));
        };
        let checked = BlockHeader::decode(head).and_then(|header| {
            if header.checksum != block.checksum || header.stored != block.stored || header.entries != block.entries {
                return Err(Damage("block and its commit group differ"));
            }
            BlockHeader::verify(head, place, block.offset, stored)
        });
        if checked.is_err() {
            return Ok(checked);
        }
        end = Some(block.offset + block.total());
    }
    if end.is_some_and(|end| end != body_end) {
        Ok(Err(Damage("blocks differ in length from their commit group")))
    } else {
        Ok(Ok(()))
    }
}

/// Scans `file`. `Corrupt` where damage is proven.
pub(crate) fn scan(file: &LogFile, header: &FileHeader) -> Result<Scan> {
    let start = u64::from(header.data_offset);
    let last_lsn = header.first_lsn.saturating_sub(1);
    let mut scan = Scan {
        effects: FileEffects::default(),
        end: start,
        last_lsn,
        chain: header.chain,
        vouched: last_lsn,
        unvouched_from: start,
        groups: 0,
        stopped_cleanly: false,
        garbage_end: start,
    };
    let mut window = Window::new(file);
    // Where each group starts that is not vouched for yet, ascending.
    let mut starts: Vec<(u64, u64)> = Vec::new();
    let stopped_by = loop {
        let (read, items, blocks) = match next_group(&mut window, &scan)? {
            Ok(next) => next,
            Err(damage) => break damage,
        };
        if let Err(damage) = replay(&items, &blocks, file.place.seq, &mut scan.effects) {
            return Err(damage.at(&file.name, scan.end));
        }
        starts.push((read.header.lsn, scan.end));
        scan.vouched = scan.vouched.max(read.header.synced);
        scan.end += read.header.total();
        scan.last_lsn = read.header.lsn;
        scan.chain = read.checksum;
        scan.groups += 1;
        scan.stopped_cleanly = read.header.batches == 0;
    };
    let unvouched = starts.iter().find(|(lsn, _)| *lsn > scan.vouched);
    scan.unvouched_from = unvouched.map_or(scan.end, |(_, offset)| *offset);
    look_ahead(&mut window, &mut scan, stopped_by, header.flags & REUSED != 0)?;
    Ok(scan)
}

type Next = (Read, Vec<super::items::Item>, Vec<BlockRef>);

/// The group that continues the chain, with everything in it verified.
fn next_group(window: &mut Window<'_>, scan: &Scan) -> Result<std::result::Result<Next, Damage>> {
    let offset = scan.end;
    let read = match read_group(window, offset)? {
        Ok(read) => read,
        Err(damage) => return Ok(Err(damage)),
    };
    let header = &read.header;
    if header.lsn != scan.last_lsn + 1 || header.chain != scan.chain || header.synced >= header.lsn {
        return Ok(Err(Damage("commit group does not continue the chain")));
    }
    if header.total() % UNIT != 0 {
        return Ok(Err(Damage("commit group has an impossible length")));
    }
    let decoded = expand(header.meta_codec, &read.meta, header.meta_raw as usize);
    let body = offset + GROUP_HEADER as u64;
    let (blocks, items) = match decoded.and_then(|meta| decode(&meta, header.blocks, body)) {
        Ok(decoded) => decoded,
        Err(damage) => return Ok(Err(damage)),
    };
    Ok(verify_blocks(window, &blocks, body + u64::from(header.body))?.map(|()| (read, items, blocks)))
}

/// Looks at what stands after the last valid group: finds where it ends, and whether it proves damage.
///
/// In a reused file most of it is the content of an earlier file, which is never taken for a group of this one. What could be
/// is a group of this file that was written before a crash and not reached by the scan: it must not be there any more
/// when the log has grown up to it.
fn look_ahead(window: &mut Window<'_>, scan: &mut Scan, stopped_by: Damage, reused: bool) -> Result<()> {
    let expected = scan.last_lsn + 1;
    let mut offset = scan.end;
    scan.garbage_end = scan.end;
    while offset < window.len {
        let count = (window.len - offset).min(CHUNK);
        let Some(bytes) = window.get(offset, count)? else { break };
        let Some(last) = bytes.iter().rposition(|byte| *byte != 0) else {
            offset += count;
            continue;
        };
        let starts = bytes.chunks(UNIT as usize).enumerate().filter(|(_, unit)| GroupHeader::starts(unit));
        let candidates: Vec<u64> = starts.map(|(at, _)| offset + at as u64 * UNIT).collect();
        if !reused {
            scan.garbage_end = offset + last as u64 + 1;
        }
        for candidate in candidates {
            if let Ok(read) = read_group(window, candidate)?
                && read.header.lsn >= expected
                && read.header.synced >= expected
            {
                return Err(stopped_by.at(&window.file.name, scan.end));
            }
            if reused {
                scan.garbage_end = scan.garbage_end.max(claimed_end(window, candidate)?);
            }
        }
        offset += count;
    }
    Ok(())
}

/// Where the group of this file that seems to begin at `offset` would end; 0 if it is none of this file.
fn claimed_end(window: &mut Window<'_>, offset: u64) -> Result<u64> {
    let place = window.file.place;
    let len = window.len;
    let head = window.get(offset, GROUP_HEADER as u64)?.and_then(|bytes| bytes.first_chunk::<GROUP_HEADER>());
    let header = head.and_then(|head| GroupHeader::decode(head, place).ok());
    Ok(header.map_or(0, |header| offset.saturating_add(header.total()).min(len)))
}

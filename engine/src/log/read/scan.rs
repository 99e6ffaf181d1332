//! Reads a file group by group: the active file at open, any file if `LogOptions::verify` is set.
//!
//! One group is in memory at a time (or a chunk of the file, if that is more), because a file may be long. The scan
//! keeps the file's summary, and 16 bytes for each group that is not proven to be synced.
//!
//! The scan ends at the first invalid group. The rest of the file decides whether that is a torn tail or damage. A
//! later group that passes its checksum and records this position as synced proves damage. Otherwise nothing proves
//! that the rest was synced, and it may be truncated. (For the very last group both are possible: no later group
//! records it as synced. The report names it and calls it uncertain.)

use std::collections::VecDeque;

use super::group_reader::{CommitGroup, GroupReader};
use super::log_file::LogFile;
use crate::log::error::{Damage, Result};
use crate::log::format::{FileHeader, REUSED, replay};
use crate::log::index::FileSummary;
use crate::log::types::GroupId;

/// The content of a file.
pub(crate) struct Scan {
    pub(crate) summary: FileSummary,
    /// Where the last group ends.
    pub(crate) end: u64,
    /// Position and checksum of the last group; of the group before the file if it has none.
    pub(crate) last_lsn: u64,
    pub(crate) chain: u32,
    /// The position up to which groups of this file prove that everything was synced.
    pub(crate) proven_synced: u64,
    /// The highest position that a readable group of this file records as synced; 0 if there is none.
    pub(crate) recorded_synced: u64,
    /// The offset of the first group that is not proven to be synced.
    pub(crate) unproven_from: u64,
    /// Number of groups.
    pub(crate) groups: u64,
    /// Whether the last group is the mark of a clean stop.
    pub(crate) stopped_cleanly: bool,
    /// Where garbage ends; equal to `end` if only zeros follow, or, in a reused file, no bytes that resemble a group of
    /// this file.
    pub(crate) garbage_end: u64,
    /// Groups that the garbage changes, ascending, as far as it is readable.
    pub(crate) torn_groups: Vec<GroupId>,
    /// Whether something proves that the file was written to. (Content of an earlier file in reused space does not.)
    pub(crate) in_use: bool,
    /// Bytes read.
    pub(crate) bytes_read: u64,
}

/// The reason why a scan ends.
struct Stop {
    damage: Damage,
    /// The groups that the damage concerns; empty if unknown.
    concerned: Vec<GroupId>,
    /// The groups that the unreadable commit group changes; empty if unknown.
    changed: Vec<GroupId>,
}

impl From<Damage> for Stop {
    fn from(damage: Damage) -> Stop {
        Stop { damage, concerned: Vec::new(), changed: Vec::new() }
    }
}

/// Scans `file`. Fails with `Corrupt` if damage is proven.
pub(crate) fn scan(file: &LogFile, header: &FileHeader) -> Result<Scan> {
    let start = u64::from(header.data_offset);
    let last_lsn = header.first_lsn.saturating_sub(1);
    let mut scan = Scan {
        summary: FileSummary::default(),
        end: start,
        last_lsn,
        chain: header.chain,
        proven_synced: last_lsn,
        recorded_synced: 0,
        unproven_from: start,
        groups: 0,
        stopped_cleanly: false,
        garbage_end: start,
        torn_groups: Vec::new(),
        in_use: false,
        bytes_read: 0,
    };
    let mut reader = GroupReader::new(file);
    // Offsets of groups that are not proven to be synced yet, ascending. A log that is synced regularly has few.
    let mut unproven: VecDeque<(u64, u64)> = VecDeque::new();
    let stopped_by = loop {
        let group = match next_group(&mut reader, &scan)? {
            Ok(group) => group,
            Err(stop) => break stop,
        };
        if let Err(damage) = replay(&group.items, &group.blocks, file.place.seq, &mut scan.summary) {
            return Err(damage.at(&file.name, scan.end));
        }
        unproven.push_back((group.header.lsn, scan.end));
        scan.recorded_synced = scan.recorded_synced.max(group.header.synced);
        scan.proven_synced = scan.proven_synced.max(group.header.synced);
        while unproven.front().is_some_and(|(lsn, _)| *lsn <= scan.proven_synced) {
            unproven.pop_front();
        }
        scan.end = group.end();
        scan.last_lsn = group.header.lsn;
        scan.chain = group.checksum;
        scan.groups += 1;
        scan.stopped_cleanly = group.header.batches == 0;
    };
    scan.unproven_from = unproven.front().map_or(scan.end, |(_, offset)| *offset);
    let reused = header.flags & REUSED != 0;
    let rest = reader.scan_rest(scan.end, reused, Some(scan.last_lsn))?;
    let expected = scan.last_lsn.saturating_add(1);
    if rest.heads.iter().any(|head| head.lsn >= expected && head.synced >= expected) {
        return Err(stopped_by.damage.at(&file.name, scan.end).concerning(|| stopped_by.concerned));
    }
    scan.recorded_synced = rest.heads.iter().map(|head| head.synced).fold(scan.recorded_synced, u64::max);
    scan.garbage_end = rest.garbage_end;
    scan.torn_groups = stopped_by.changed;
    scan.torn_groups.extend(reader.groups_of(&rest.heads)?);
    scan.torn_groups.sort_unstable();
    scan.torn_groups.dedup();
    scan.in_use = scan.groups > 0
        || !rest.heads.is_empty()
        || match reused {
            true => reader.seems_to_continue(scan.end, scan.last_lsn, scan.chain)?,
            false => rest.garbage_end > scan.end,
        };
    scan.bytes_read = reader.bytes_read;
    Ok(scan)
}

/// The next group of the chain, with all blocks verified.
fn next_group(reader: &mut GroupReader<'_>, scan: &Scan) -> Result<std::result::Result<CommitGroup, Stop>> {
    let head = match reader.head(scan.end)? {
        Ok(head) if head.continues(scan.last_lsn, scan.chain) => head,
        Ok(_) => return Ok(Err(Damage("commit group does not continue the chain").into())),
        Err(damage) => return Ok(Err(damage.into())),
    };
    let group = match head.open() {
        Ok(group) => group,
        Err(damage) => return Ok(Err(damage.into())),
    };
    let damaged = reader.damaged_block(&group)?;
    let stop =
        damaged.map(|(block, damage)| Stop { damage, concerned: group.groups_in(block), changed: group.groups() });
    Ok(stop.map_or(Ok(group), Err))
}
